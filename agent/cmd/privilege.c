// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/privilege.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

static bool has(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t value = CAP_CLEAR;

	return caps && !cap_get_flag(caps, cap, CAP_EFFECTIVE, &value) && value == CAP_SET;
}

void privilege_survey(struct privilege privileges[PRIVILEGE_CNT])
{
	cap_t caps = cap_get_proc();
	bool admin = has(caps, CAP_SYS_ADMIN);

	privileges[0] = (struct privilege){"CAP_BPF", "loading BPF programs", admin || has(caps, CAP_BPF)};
	privileges[1] = (struct privilege){"CAP_PERFMON", "tracing", admin || has(caps, CAP_PERFMON)};
	privileges[2] = (struct privilege){"CAP_SYS_PTRACE", "reading /proc of the target", has(caps, CAP_SYS_PTRACE)};
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

		if (!privileges[i].had)
			snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "", privileges[i].name);
	}
	if (!missing[0])
		return 0;
	log_error("attaching needs %s: run it as root (report and doctor need no privilege)", missing);
	return -EPERM;
}
