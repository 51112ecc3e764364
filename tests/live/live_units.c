// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The systemd units: what systemd counts that they leave open, and that the program works within what they forbid.  No
 * systemd runs here: the system calls, capabilities, address families, files and processes that a unit takes away are
 * taken away by this test, as systemd 252 does it.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX  1024
#define CAPS_MAX   64
#define WORDS_MAX  64
#define SYSTEM_SET "systemd-analyze syscall-filter --no-pager "

/* --- how exposed they are ----------------------------------------------------------------------------------------- */

static void test_exposure(void)
{
	static const struct {
		const char *name;
		double most;
	} units[] = {{"whylate-collect.service", 1.5},
		     {"whylate-upload.service", 2},
		     {"whylate@.service", 2},
		     {"whylate-watch@.service", 3.4}};
	struct path unit, from;
	struct process process;
	double exposure;

	if (program_missing("units_exposure", "systemd-analyze"))
		return;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const char *said;

		unit = temp_path("%s", units[i].name);
		snprintf(from.s, sizeof(from.s), "packaging/%s.in", units[i].name);
		if (process_start(&process, "sed -n -e s|@bindir@|/usr/bin|;w%s %s", unit.s, from.s) ||
		    process_wait(&process, 5)) {
			skip("units_exposure", "not run from the source tree");
			process_end(&process);
			return;
		}
		process_end(&process);
		process_start(&process, "systemd-analyze security --offline=true --no-pager %s", unit.s);
		process_wait(&process, 20);
		said = strstr(process_out(&process), "Overall exposure level");
		exposure = said && strchr(said, ':') ? strtod(strchr(said, ':') + 1, NULL) : 10;
		CHECKF(exposure <= units[i].most, "%s: %g %s", units[i].name, exposure, process_err(&process));
		process_end(&process);
	}
}

/* --- within them -------------------------------------------------------------------------------------------------- */

/* What a unit's file says of what may be done. */
struct limits {
	bool known[CALLS_MAX], allowed[CALLS_MAX];
	bool kills; /* a forbidden call ends the process */
	bool caps[CAPS_MAX];
	char families[WORDS_MAX];
	bool strict, no_home, hides_processes, no_tunables, no_network;
	bool has_group; /* that of the spool, besides root's */
};

/* The end of a line and of those that continue it. */
static const char *end_of(const char *line)
{
	const char *end = strchrnul(line, '\n');

	while (*end && end > line && end[-1] == '\\')
		end = strchrnul(end + 1, '\n');
	return end;
}

static const char *next_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; *line; line = *end_of(line) ? end_of(line) + 1 : end_of(line))
		if (!strncmp(line, key, len) && line[len] == '=')
			return line + len + 1;
	return NULL;
}

/* All lines `Key=`, or after an empty one those that follow it, as systemd joins them: to be freed. */
static char *list_of(const char *text, const char *key)
{
	char *list = calloc(1, strlen(text) + 2);
	size_t len = 0;

	for (const char *value = text; list && (value = next_value(value, key)); value = end_of(value)) {
		size_t sz = (size_t)(end_of(value) - value);

		len = sz ? len : 0;
		memcpy(list + len, value, sz);
		len += sz;
		list[len++] = ' ';
		list[len] = '\0';
	}
	for (char *c = list; c && *c; c++)
		if (strchr("\\\n\t", *c))
			*c = ' ';
	return list;
}

/* Of the last line `Key=`. */
static bool has_value(const char *text, const char *key, const char *wanted)
{
	const char *last = NULL;

	for (const char *value = text; (value = next_value(value, key)); value = end_of(value))
		last = value;
	return last && !strncmp(last, wanted, strlen(wanted)) && end_of(last) == last + strlen(wanted);
}

static void take_call(const char *name, bool *calls)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number >= 0 && number < CALLS_MAX)
		calls[number] = true;
}

/* One of systemd's own sets, and those that are in it. */
static void take_set(const char *name, bool *calls, int depth)
{
	char line[256], command[128];
	FILE *in;

	snprintf(command, sizeof(command), SYSTEM_SET "%s", name);
	in = popen(command, "re");
	while (in && fgets(line, sizeof(line), in)) {
		char *word = line + strspn(line, " ");

		word[strcspn(word, "\n")] = '\0';
		if (*line != ' ' || *word == '#')
			continue;
		if (*word == '@' && depth < 4)
			take_set(word, calls, depth + 1);
		else if (*word != '@')
			take_call(word, calls);
	}
	if (in)
		pclose(in);
}

static void limits_read(struct limits *limits, const char *text)
{
	char *calls = list_of(text, "SystemCallFilter"), *caps = list_of(text, "CapabilityBoundingSet"), *rest, *word;
	char *families = list_of(text, "RestrictAddressFamilies");

	take_set("@known", limits->known, 0);
	for (word = calls ? strtok_r(calls, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest)) {
		if (*word == '@')
			take_set(word, limits->allowed, 0);
		else
			take_call(word, limits->allowed);
	}
	for (word = caps ? strtok_r(caps, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest)) {
		cap_value_t cap;

		for (char *c = word; *c; c++)
			*c = (char)tolower(*c);
		if (!cap_from_name(word, &cap) && cap < CAPS_MAX)
			limits->caps[cap] = true;
		else
			fprintf(stderr, "no capability '%s'\n", word);
	}
	snprintf(limits->families, sizeof(limits->families), "%s", families ? families : "");
	limits->kills = !has_value(text, "SystemCallErrorNumber", "EPERM");
	limits->strict = has_value(text, "ProtectSystem", "strict");
	limits->no_home = has_value(text, "ProtectHome", "yes");
	limits->hides_processes = has_value(text, "ProtectProc", "invisible");
	limits->no_tunables = has_value(text, "ProtectKernelTunables", "yes");
	limits->no_network = has_value(text, "PrivateNetwork", "yes");
	limits->has_group = next_value(text, "SupplementaryGroups");
	/* What these take away besides. */
	if (has_value(text, "ProtectKernelLogs", "yes"))
		limits->caps[CAP_SYSLOG] = false;
	free(calls);
	free(caps);
	free(families);
}

/* In the child: 0 or where it failed. */
static int take_files(const struct limits *limits, const char *writable)
{
	static const char *const tunables[] = {"/proc/sys", "/sys"};
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY}, again = {.attr_clr = MOUNT_ATTR_RDONLY};

	if (unshare(CLONE_NEWNS | (limits->no_network ? CLONE_NEWNET : 0)) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 1;
	if (limits->hides_processes && mount("proc", "/proc", "proc", MS_NOSUID, "hidepid=2"))
		return 2;
	if (mount(writable, writable, NULL, MS_BIND, NULL))
		return 3;
	if (limits->strict && mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)))
		return 4;
	if (limits->strict && (mount_setattr(AT_FDCWD, writable, 0, &again, sizeof(again)) ||
			       mount_setattr(AT_FDCWD, "/dev", AT_RECURSIVE, &again, sizeof(again))))
		return 5;
	if (limits->no_home && mount("none", "/root", "tmpfs", MS_RDONLY, "mode=000"))
		return 6;
	for (size_t i = 0; limits->no_tunables && i < 2; i++)
		if (mount(tunables[i], tunables[i], NULL, MS_BIND | MS_REC, NULL) ||
		    mount_setattr(AT_FDCWD, tunables[i], AT_RECURSIVE, &read_only, sizeof(read_only)))
			return 7;
	if (limits->no_tunables && mount("/dev/null", "/proc/kallsyms", NULL, MS_BIND, NULL))
		return 8;
	return 0;
}

static int take_sockets(const struct limits *limits)
{
	static const struct {
		int number;
		const char *name;
	} families[] = {
		{AF_UNIX, "AF_UNIX "}, {AF_INET, "AF_INET "}, {AF_INET6, "AF_INET6 "}, {AF_NETLINK, "AF_NETLINK "}};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !err; i++)
		if (!strstr(limits->families, families[i].name))
			err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
					       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i].number));
	return err ? err : seccomp_load(filter);
}

/* A call that systemd's libseccomp does not know is answered with ENOSYS. */
static int take_calls(const struct limits *limits)
{
	uint32_t refuse = limits->kills ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int err = filter ? 0 : -ENOMEM;

	for (int i = 0; i < CALLS_MAX && !err; i++)
		if (limits->known[i] || limits->allowed[i])
			err = seccomp_rule_add(filter, limits->allowed[i] ? SCMP_ACT_ALLOW : refuse, i, 0);
	return err ? err : seccomp_load(filter);
}

/* The unit's limits, then the command: for a child. */
static int run_within(const struct limits *limits, const char *writable, uid_t uid, char *const argv[])
{
	const gid_t group = ID_NOBODY;
	int err = take_files(limits, writable);

	if (err)
		return 100 + err;
	if (limits->has_group && setgroups(1, &group))
		return 109;
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!limits->caps[cap] && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return 110;
	if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		return 111;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || take_sockets(limits))
		return 112;
	if (take_calls(limits))
		return 113;
	execv(argv[0], argv);
	return 127;
}

/* How this program runs itself: UNIT WRITABLE UID COMMAND… */
int units_main(int argc, char **argv)
{
	struct limits limits = {0};
	char *text = argc > 4 ? file_read(argv[1], NULL) : NULL;

	if (!text)
		return 2;
	limits_read(&limits, text);
	free(text);
	return run_within(&limits, argv[2], (uid_t)atoi(argv[3]), argv + 4);
}

struct stay {
	const char *unit, *drop_in, *says; /* drop_in: or NULL */
	uid_t uid;
	char line[1200]; /* the program's arguments */
};

static bool begin_within(struct process *process, const struct stay *stay, const char *writable)
{
	char self[512] = "", unit[512];
	ssize_t sz = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct path with = temp_path("%s", stay->unit);
	struct process cat = {0};
	bool made;

	snprintf(unit, sizeof(unit), "packaging/%s.in", stay->unit);
	if (sz <= 0 || !is_there(unit)) {
		skip(stay->unit, "not run from the source tree");
		return false;
	}
	made = !process_start(&cat, "sed -n w%s %s %s", with.s, unit, stay->drop_in ? stay->drop_in : "") &&
	       CHECK(process_wait(&cat, 5) == 0);
	process_end(&cat);
	return made &&
	       !process_start(process, "%s --within %s %s %u %s %s", self, with.s, writable, stay->uid, whylate_path(),
			      stay->line) &&
	       CHECKF(process_says(process, true, stay->says, NULL, 30), "%s: code %d: %s", stay->unit, process->code,
		      process_err(process));
}

/* Nothing was refused that the program says of. */
static void end_within(struct process *process, const struct stay *stay, int signal_no)
{
	const char *said;

	process_signal(process, signal_no);
	CHECKF(process_wait(process, 30) == 0, "%s: code %d: %s", stay->unit, process->code, process_err(process));
	said = process_err(process);
	CHECKF(!strstr(said, "keeps") && !strstr(said, "confined") && !strstr(said, "refuse") &&
		       !strstr(said, "uploader has ended") && !strstr(said, "no uploader"),
	       "%s: %s", stay->unit, said);
	process_end(process);
}

static void test_within(void)
{
	struct path writable = temp_path("within"), spool = temp_path("within/spool"),
		    store = temp_path("within/store");
	int port = port_free();
	struct process collector = {0}, uploader = {0}, recorder = {0}, watch = {0};
	struct workload workload = {0};
	struct stay collecting = {.unit = "whylate-collect.service", .says = "listening on", .uid = ID_NOBODY};
	struct stay uploading = {.unit = "whylate-upload.service", .says = "sending ", .uid = ID_NOBODY};
	struct stay recording = {.unit = "whylate@.service", .says = "recording "};
	struct stay watching = {.unit = "whylate-watch@.service", .says = "armed: "};

	if (program_missing("units_within", "systemd-analyze"))
		return;
	CHECK(!mkdir(writable.s, 0755) && !mkdir(store.s, 0755) && !chown(store.s, ID_NOBODY, ID_NOBODY) &&
	      !mkdir(spool.s, 0700) && !chown(spool.s, ID_NOBODY, ID_NOBODY));
	snprintf(collecting.line, sizeof(collecting.line), "collect --listen 127.0.0.1:%d --store %s/s --insecure",
		 port, store.s);
	snprintf(uploading.line, sizeof(uploading.line), "upload --stream http://127.0.0.1:%d --spool %s", port,
		 spool.s);
	if (!workload_start(&workload, "sleep", 40) || !begin_within(&collector, &collecting, writable.s) ||
	    !begin_within(&uploader, &uploading, writable.s))
		goto cleanup;
	snprintf(recording.line, sizeof(recording.line),
		 "record -p %d --budget 100%% --mode trace --stacks -o %s/r --stream spool --spool %s",
		 (int)workload.server_pid, writable.s, spool.s);
	snprintf(watching.line, sizeof(watching.line), "watch -p %d --when p99>20s -o %s/w", (int)workload.server_pid,
		 writable.s);
	if (begin_within(&recorder, &recording, writable.s) && begin_within(&watch, &watching, writable.s)) {
		sleep_ms(2500);
		end_within(&watch, &watching, SIGTERM);
		end_within(&recorder, &recording, SIGTERM);
		end_within(&uploader, &uploading, SIGTERM);
		CHECKF(!strstr(process_err(&collector), "refused"), "%s", process_err(&collector));
		end_within(&collector, &collecting, SIGTERM);
		CHECK(!process_start(&recorder, "find %s -type f -size +4k -name *.wls", store.s) &&
		      process_wait(&recorder, 10) == 0 && *process_out(&recorder));
	}
cleanup:
	process_end(&uploader);
	process_end(&watch);
	process_end(&recorder);
	process_end(&collector);
	workload_end(&workload);
}

/* With the drop-in, by an uploader of its own, and with metrics. */
static void test_network(void)
{
	struct path writable = temp_path("networked"), spool = temp_path("networked/spool");
	int port = port_free(), metrics_port = port_free();
	struct stay collecting = {.unit = "whylate-collect.service", .says = "listening on", .uid = ID_NOBODY};
	struct stay recording = {.unit = "whylate@.service", .drop_in = "packaging/network.conf", .says = "recording "};
	struct process collector = {0}, recorder = {0}, asker = {0};
	struct workload workload = {0};

	if (program_missing("units_network", "systemd-analyze"))
		return;
	CHECK(!mkdir(writable.s, 0755) && !chown(writable.s, ID_NOBODY, ID_NOBODY) && !mkdir(spool.s, 0700) &&
	      !chown(spool.s, ID_NOBODY, ID_NOBODY));
	snprintf(collecting.line, sizeof(collecting.line), "collect --listen 127.0.0.1:%d --store %s/s --insecure",
		 port, writable.s);
	if (!workload_start(&workload, "sleep", 40) || !begin_within(&collector, &collecting, writable.s))
		goto cleanup;
	snprintf(recording.line, sizeof(recording.line),
		 "record -p %d -o %s/r --stream http://127.0.0.1:%d --spool %s --metrics 127.0.0.1:%d",
		 (int)workload.server_pid, writable.s, port, spool.s, metrics_port);
	if (begin_within(&recorder, &recording, writable.s)) {
		CHECK(!process_start(&asker, "curl -s http://127.0.0.1:%d/metrics", metrics_port) &&
		      process_wait(&asker, 10) == 0 && strstr(process_out(&asker), "whylate_"));
		process_end(&asker);
		end_within(&recorder, &recording, SIGTERM);
		end_within(&collector, &collecting, SIGTERM);
		CHECK(!process_start(&asker, "find %s/s -type f -size +1k -name *.wls", writable.s) &&
		      process_wait(&asker, 10) == 0 && *process_out(&asker));
	}
cleanup:
	process_end(&asker);
	process_end(&recorder);
	process_end(&collector);
	workload_end(&workload);
}

/* --- their user --------------------------------------------------------------------------------------------------- */

/* $1: a directory; $2: a program that the system has not.  /etc is a copy without the account, seen by this alone. */
#define ACCOUNT_SCRIPT                                                                  \
	"set -e\n"                                                                      \
	"mkdir $1/etc\n"                                                                \
	"for file in passwd group shadow gshadow login.defs nsswitch.conf; do\n"        \
	"  test ! -f /etc/$file || cp -p /etc/$file $1/etc; done\n"                     \
	"sed -i /^whylate:/d $1/etc/passwd $1/etc/group $1/etc/shadow $1/etc/gshadow\n" \
	"mount --bind $1/etc /etc\n"                                                    \
	"test -z \"$2\" || test ! -f \"$2\" || mount --bind /dev/null $2\n"             \
	"scripts/make-account; scripts/make-account\n"                                  \
	"grep -o '^whylate:.*spool.*nologin' /etc/passwd; grep -c ^whylate: /etc/group\n"

/* make install makes it by what the system has, once. */
static void test_account(void)
{
	static const char *const missing[] = {"", "/usr/bin/systemd-sysusers"};
	struct path script = temp_path("account.sh"), dir;
	struct process process;

	if (access("scripts/make-account", X_OK)) {
		skip("units_account", "not run from the source tree");
		return;
	}
	CHECK(!file_write(script.s, ACCOUNT_SCRIPT, strlen(ACCOUNT_SCRIPT)));
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		dir = temp_path("account-%zu", i);
		CHECK(!mkdir(dir.s, 0755));
		CHECK(!process_start(&process, "unshare -m sh %s %s %s", script.s, dir.s, missing[i]));
		CHECKF(process_wait(&process, 20) == 0 && !strstr(process_err(&process), "Failed"), "%s",
		       process_err(&process));
		CHECKF(strstr(process_out(&process), "/var/spool/whylate:") && strstr(process_out(&process), "\n1\n"),
		       "without '%s': %s", missing[i], process_out(&process));
		process_end(&process);
	}
}

static const struct live_test tests[] = {
	{"units_exposure", test_exposure, SHORT},
	{"units_within", test_within, SHORT},
	{"units_network", test_network, REST},
	{"units_account", test_account, SHORT},
};

int suite_units(void)
{
	return live_suite("units", tests, sizeof(tests) / sizeof(tests[0]));
}
