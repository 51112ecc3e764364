#!/bin/bash
# Installs what building, testing, linting or benchmarking whylate needs from Debian's packages.
#
#   scripts/setup.sh build|test|rest|lint|bench|cluster|matrix|matrix-all|deb …
#   scripts/setup.sh charts                                     only what the HTML page embeds, from the npm registry
#   scripts/setup.sh list PART                                  only prints the names; `libraries` is a part as well
#
# Idempotent, and quiet when there is nothing to do.  The mirror is the one apt is configured with; backports are added
# only where the release's own package is too old, and only for the packages that need it.  Servers that are installed
# for the tests are not started: the tests start their own.
set -euo pipefail

# Debian 12's libbpf (1.1) has no uprobe_multi, its QEMU (7.2) corrupts newer guests: these come from backports where the
# release's own are too old.
declare -rA at_least=([libbpf-dev]=1.3 [bpftool]=7.3 [libdw-dev]=0.190 [qemu-system-x86]=10 [qemu-system-arm]=10)

# libcurl by GnuTLS, as the collector: one TLS library in the program.
libraries=(libc6-dev libbpf-dev libdw-dev libelf-dev zlib1g-dev libzstd-dev libjson-c-dev libcap-dev libseccomp-dev
	libmicrohttpd-dev libgnutls28-dev libcurl4-gnutls-dev libcapstone-dev liblzma-dev libiberty-dev libncurses-dev)
build=(gcc g++ make pkg-config clang-19 bpftool "${libraries[@]}")
# Another distribution's Node.js brings its own npm, which Debian's package conflicts with.
command -v npm >/dev/null || build+=(npm)
run_tests=("${build[@]}" libcunit1-dev llvm protobuf-compiler libcap2-bin python3 procps iproute2 nftables util-linux
	curl openssl redis-server redis-tools memcached libmemcached-tools postgresql postgresql-contrib nginx apache2-utils
	apache2 mariadb-server mariadb-client sysbench golang-go chromium fonts-dejavu-core
	clickhouse-server prometheus python3-scipy tmux zsh fish lighttpd haproxy python3-aiohttp)
# Beside it, what only the live tests take that `make test` leaves out.
run_rest=("${run_tests[@]}" golang-1.22-go golang-1.23-go python3-mysqldb runc)
# What a release may lack; the tests that need it are skipped with their reason.
optional=" golang-1.22-go golang-1.23-go chromium clickhouse-server prometheus python3-scipy zsh fish libzookeeper-java "
targets=("${build[@]}" python3 lighttpd haproxy squid varnish rabbitmq-server nats-server golang-go python3-flask
	python3-aiohttp node-express default-jdk-headless dovecot-imapd exim4-daemon-light)
lint=(clang-format-19 cppcheck llvm libclang-rt-19-dev)
# The last line builds the servers of tests/bench/values from their sources, and the LLVM pass.
bench=("${run_tests[@]}" clickhouse-client bpftrace linux-perf trace-cmd wrk haproxy squid python3-mysqldb
	libapr1-dev libaprutil1-dev libpcre2-dev bison flex dpkg-dev llvm-19-dev)
# tests/torture/cluster, scripts/fleet-demo: servers that are a cluster
cluster=("${run_tests[@]}" libzookeeper-java default-jre-headless)
matrix=(qemu-system-x86 busybox-static binutils e2fsprogs python3 util-linux)
deb=(debhelper dpkg-dev fakeroot lintian debootstrap)
matrix_all=("${matrix[@]}" qemu-system-arm gcc-aarch64-linux-gnu)

say() { echo "setup: $*" >&2; }

packages_of() {
	case "$1" in
	libraries) echo "${libraries[@]}" ;;
	build) echo "${build[@]}" ;;
	test) echo "${run_tests[@]}" ;;
	rest) echo "${run_rest[@]}" ;;
	targets) echo "${targets[@]}" ;;
	lint) echo "${lint[@]}" ;;
	bench) echo "${bench[@]}" ;;
	cluster) echo "${cluster[@]}" ;;
	deb) echo "${deb[@]}" ;;
	matrix) echo "${matrix[@]}" ;;
	matrix-all) echo "${matrix_all[@]}" ;;
	*) say "unknown part '$1': build, test, rest, targets, lint, bench, cluster, matrix, matrix-all or deb"; exit 2 ;;
	esac
}

# uPlot, at the version and with the checksum of package-lock.json.
install_charts() {
	local page
	page=$(dirname "$0")/../agent/view/html
	[ "$page/node_modules/.package-lock.json" -nt "$page/package-lock.json" ] && return
	say "installing what the HTML page embeds"
	if ! npm ci --prefix "$page" --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
		say "npm ci failed (its output is above)"
		exit 1
	fi
	touch "$page/node_modules/.package-lock.json"
}

if [ "${1:-}" = list ]; then
	packages_of "${2:-}"
	exit
fi
if [ "${1:-}" = charts ]; then
	install_charts
	exit
fi
wanted=()
for what in "${@:-build}"; do
	names=$(packages_of "$what")
	read -ra names <<<"$names"
	wanted+=("${names[@]}")
done

installed_version() { dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2>/dev/null | sed -n 's/^installed //p' || true; }
version_ge() { dpkg --compare-versions "${1#*:}" ge "$2"; }

too_old=()
missing=()
for pkg in "${wanted[@]}"; do
	version=$(installed_version "$pkg")
	if [ -z "${at_least[$pkg]:-}" ]; then
		[ -n "$version" ] || missing+=("$pkg")
	elif [ -z "$version" ] || ! version_ge "$version" "${at_least[$pkg]}"; then
		too_old+=("$pkg")
	fi
done
[ ${#missing[@]} -gt 0 ] || [ ${#too_old[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	say "these packages are missing and only root can install them: ${missing[*]} ${too_old[*]}"
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
own_policy=
cleanup() {
	[ -z "$own_policy" ] || rm -f "$policy"
	rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# A package that starts a service on installation would give the tests a neighbour nobody asked for.
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	own_policy=1
fi

apt() {
	if ! apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1; then
		cat "$log" >&2
		say "apt-get $* failed (its output is above)"
		exit 1
	fi
}

# Adds CODENAME-backports of the mirror that serves CODENAME itself, unless apt knows it already.
add_backports() {
	local codename=$1 mirror signed_by
	if apt-get indextargets --format '$(RELEASE)' 'Created-By: Packages' | grep -qx "$codename-backports"; then
		return
	fi
	mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		awk -v r="$codename" '$1 == r { print $2; exit }')
	if [ -z "$mirror" ]; then
		say "apt has no source for $codename: cannot tell where its backports are"
		exit 1
	fi
	signed_by=/usr/share/keyrings/debian-archive-keyring.gpg
	printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\nSigned-By: %s\n' \
		"$mirror" "$codename" "$signed_by" >/etc/apt/sources.list.d/whylate-backports.sources
	apt update
}

apt update
say "installing ${missing[*]} ${too_old[*]}"
newer=()
for pkg in "${too_old[@]}"; do
	candidate=$(apt-cache policy "$pkg" | sed -n 's/^  Candidate: //p')
	if version_ge "$candidate" "${at_least[$pkg]}"; then
		missing+=("$pkg")
	else
		newer+=("$pkg")
	fi
done
if [ ${#newer[@]} -gt 0 ]; then
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	add_backports "$codename"
	apt install --no-install-recommends -t "$codename-backports" "${newer[@]}"
fi
# Backports may have what the release lacks.
to_install=()
for pkg in "${missing[@]}"; do
	if [[ $optional == *" $pkg "* && -z $(apt-cache policy "$pkg" | sed -n '/Candidate: (none)/d; s/^  Candidate: //p') ]]; then
		say "this release has no package $pkg: the tests that need it are skipped"
	else
		to_install+=("$pkg")
	fi
done
missing=("${to_install[@]}")
[ ${#missing[@]} -eq 0 ] || apt install --no-install-recommends "${missing[@]}"
