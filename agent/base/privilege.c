// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/privilege.h"

#include "base/capabilities.h"
#include "base/log.h"
#include "base/sandbox.h"

#include <errno.h>
#include <linux/bpf.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

void privilege_survey(struct privilege privileges[PRIVILEGE_CNT])
{
	cap_t caps = cap_get_proc();
	bool admin = capability_had(caps, CAP_SYS_ADMIN);

	privileges[0] = (struct privilege){"CAP_BPF", "loading BPF programs (they can read the kernel's memory)",
					   admin || capability_had(caps, CAP_BPF), true};
	privileges[1] = (struct privilege){"CAP_PERFMON", "tracing", admin || capability_had(caps, CAP_PERFMON), true};
	privileges[2] = (struct privilege){"CAP_SYS_PTRACE",
					   "reading /proc of the target (it opens the memory of every process)",
					   capability_had(caps, CAP_SYS_PTRACE), true};
	privileges[3] = (struct privilege){"CAP_DAC_READ_SEARCH",
					   "finding where other users' processes listen (it opens every file)",
					   capability_had(caps, CAP_DAC_READ_SEARCH), false};
	privileges[4] =
		(struct privilege){"CAP_CHECKPOINT_RESTORE", "functions of files that were deleted or replaced since",
				   admin || capability_had(caps, CAP_CHECKPOINT_RESTORE), false};
	privileges[5] = (struct privilege){"CAP_SYSLOG", "names of the kernel's functions",
					   capability_had(caps, CAP_SYSLOG), false};
	privileges[6] = (struct privilege){"CAP_SYS_ADMIN", "knowing what tracing costs", admin, false};
	if (caps)
		cap_free(caps);
}

int privilege_check(void)
{
	struct privilege privileges[PRIVILEGE_CNT];
	char missing[128] = "";

	privilege_survey(privileges);
	for (int i = 0; i < PRIVILEGE_CNT; i++) {
		size_t len = strlen(missing);

		if (privileges[i].required && !privileges[i].had)
			snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "", privileges[i].name);
	}
	if (!missing[0])
		return 0;
	log_error("attaching needs %s: run it as root (report and doctor need no privilege)", missing);
	return -EPERM;
}

int privilege_as_caller(void)
{
	int err = getuid() ? capabilities_keep(NULL, 0) : 0;

	if (err)
		log_error("cannot give up the capabilities of this program's file");
	return err;
}

/* CAP_SYS_NICE: to come back from SCHED_IDLE (base/priority.h). */
static const cap_value_t running[] = {CAP_BPF,       CAP_PERFMON,         CAP_SYS_PTRACE,
				      CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, CAP_SYS_NICE};
static const cap_value_t attaching[] = {CAP_SYS_RESOURCE, CAP_FOWNER, CAP_SYSLOG};
/* The output and the spool may be in another user's directory. */
static const cap_value_t writing[] = {CAP_DAC_OVERRIDE};
static const cap_value_t looking_up[] = {CAP_CHECKPOINT_RESTORE};
/* The spool is its uploader's. */
static const cap_value_t spooling[] = {CAP_CHOWN};
static const cap_value_t changing_user[] = {CAP_SETUID, CAP_SETGID, CAP_KILL};

struct cap_list {
	cap_value_t items[16];
	size_t cnt;
};

static void add(struct cap_list *list, const cap_value_t *caps, size_t cnt)
{
	for (size_t i = 0; i < cnt && list->cnt < ARRAY_CNT(list->items); i++)
		list->items[list->cnt++] = caps[i];
}

void privilege_narrow(const struct privilege_uses *uses)
{
	struct cap_list wanted = {};
	int err;

	add(&wanted, running, ARRAY_CNT(running));
	add(&wanted, attaching, ARRAY_CNT(attaching));
	add(&wanted, writing, ARRAY_CNT(writing));
	add(&wanted, looking_up, ARRAY_CNT(looking_up));
	if (uses->spools)
		add(&wanted, spooling, ARRAY_CNT(spooling));
	if (uses->changes_user)
		add(&wanted, changing_user, ARRAY_CNT(changing_user));
	err = capabilities_keep(wanted.items, wanted.cnt);
	if (err)
		log_debug("cannot give up capabilities: %s", strerror(-err));
}

/* What a recording under way has no business to call. */
static const int denied[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(move_mount),
	SCMP_SYS(fsopen),
	SCMP_SYS(open_tree),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	SCMP_SYS(add_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(request_key),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(acct),
	SCMP_SYS(mknodat),
	SCMP_SYS(quotactl),
};
static const int denied_as_one_user[] = {
	SCMP_SYS(setuid),   SCMP_SYS(setreuid),  SCMP_SYS(setresuid), SCMP_SYS(setgid),
	SCMP_SYS(setregid), SCMP_SYS(setresgid), SCMP_SYS(setgroups),
};

/*
 * They fail with EPERM instead of ending the process: what comes next in this program, after the recording, may well
 * find a library that tries one of them.
 */
static int filter_calls(const struct privilege_uses *uses)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? sandbox_filter_add(filter, SCMP_ACT_ERRNO(EPERM), denied, ARRAY_CNT(denied)) : -ENOMEM;

	if (!err && !uses->changes_user)
		err = sandbox_filter_add(filter, SCMP_ACT_ERRNO(EPERM), denied_as_one_user,
					 ARRAY_CNT(denied_as_one_user));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(bpf), 1,
				       SCMP_A0_32(SCMP_CMP_EQ, BPF_PROG_LOAD));
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	return sandbox_filter_load(filter, err);
}

/* All other capabilities, and new ones by programs that are started.  0 or -errno. */
static int give_up(const struct cap_list *wanted)
{
	int err = capabilities_keep(wanted->items, wanted->cnt);

	return !err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : err;
}

void privilege_confine(const struct privilege_uses *uses)
{
	struct cap_list wanted = {};
	int err;

	add(&wanted, running, ARRAY_CNT(running));
	if (uses->more_processes)
		add(&wanted, looking_up, ARRAY_CNT(looking_up));
	if (uses->spools)
		add(&wanted, spooling, ARRAY_CNT(spooling));
	if (uses->changes_user)
		add(&wanted, changing_user, ARRAY_CNT(changing_user));
	if (uses->spools || uses->writes_foreign)
		add(&wanted, writing, ARRAY_CNT(writing));
	err = give_up(&wanted);
	if (!err)
		err = filter_calls(uses);
	if (err)
		log_warn("the agent keeps what only attaching took, which this kernel or container refuses to give up: "
			 "%s",
			 strerror(-err));
}

static void confine_beside(const struct cap_list *wanted)
{
	int err = give_up(wanted);

	if (err)
		log_warn("this process keeps privileges that it does not use: %s", strerror(-err));
}

void privilege_confine_viewer(bool reads_foreign, bool writes_foreign)
{
	static const cap_value_t reading[] = {CAP_DAC_READ_SEARCH};
	struct cap_list wanted = {};

	if (reads_foreign)
		add(&wanted, reading, ARRAY_CNT(reading));
	if (writes_foreign)
		add(&wanted, writing, ARRAY_CNT(writing));
	confine_beside(&wanted);
}

void privilege_confine_watch(void)
{
	static const cap_value_t events[] = {CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE};
	struct cap_list wanted = {};

	add(&wanted, events, ARRAY_CNT(events));
	confine_beside(&wanted);
}
