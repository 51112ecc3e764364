#!/bin/bash
# Installs what building, testing, linting or benchmarking whylate needs from Debian's packages.
#
#   scripts/setup.sh build|test|lint|bench …
#
# Idempotent, and quiet when there is nothing to do.  The mirror is the one apt is configured with; backports are added
# only where the release's own package is too old, and only for the packages that need it.  Servers that are installed
# for the tests are not started: the tests start their own.
set -euo pipefail

# Debian 12's libbpf (1.1) has no uprobe_multi: these come from backports where the release's own are too old.
readonly libbpf_min=1.3

build=(gcc libc6-dev make pkg-config clang-19 bpftool libbpf-dev libelf-dev zlib1g-dev libzstd-dev libjson-c-dev libcap-dev
	libseccomp-dev)
run_tests=("${build[@]}" libcunit1-dev libcap2-bin python3 procps iproute2 util-linux
	redis-server redis-tools memcached libmemcached-tools postgresql postgresql-contrib nginx apache2-utils)
lint=(clang-format-19 cppcheck libclang-rt-19-dev)
bench=("${run_tests[@]}" bpftrace linux-perf trace-cmd mariadb-server sysbench apache2 wrk)

say() { echo "setup: $*" >&2; }

wanted=()
for what in "${@:-build}"; do
	case "$what" in
	build) wanted+=("${build[@]}") ;;
	test) wanted+=("${run_tests[@]}") ;;
	lint) wanted+=("${lint[@]}") ;;
	bench) wanted+=("${bench[@]}") ;;
	*) say "unknown part '$what': build, test, lint or bench"; exit 2 ;;
	esac
done

installed_version() { dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2>/dev/null | sed -n 's/^installed //p' || true; }
version_ge() { dpkg --compare-versions "${1#*:}" ge "$2"; }

need_bpf=
missing=()
for pkg in "${wanted[@]}"; do
	version=$(installed_version "$pkg")
	if [ "$pkg" = libbpf-dev ] && ! { [ -n "$version" ] && version_ge "$version" "$libbpf_min"; }; then
		need_bpf=1
	elif [ "$pkg" = bpftool ] && ! { [ -n "$version" ] && version_ge "$version" 7.3; }; then
		need_bpf=1
	elif [ -z "$version" ]; then
		missing+=("$pkg")
	fi
done
[ -n "$need_bpf" ] || [ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	say "these packages are missing and only root can install them: ${missing[*]}${need_bpf:+ libbpf-dev (>= $libbpf_min) bpftool}"
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

say "installing ${missing[*]}${need_bpf:+ libbpf-dev bpftool}"
apt update
if [ -n "$need_bpf" ]; then
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	candidate=$(apt-cache policy libbpf-dev | sed -n 's/^  Candidate: //p')
	if version_ge "$candidate" "$libbpf_min"; then
		apt install --no-install-recommends libbpf-dev bpftool
	else
		add_backports "$codename"
		apt install --no-install-recommends -t "$codename-backports" libbpf-dev libbpf1 bpftool
	fi
fi
[ ${#missing[@]} -eq 0 ] || apt install --no-install-recommends "${missing[@]}"
