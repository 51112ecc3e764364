/* SPDX-License-Identifier: GPL-2.0-only */
/* What this process may do. */
#ifndef WHYLATE_CMD_PRIVILEGE_H
#define WHYLATE_CMD_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

struct privilege {
	const char *name; /* "CAP_BPF" */
	const char *what; /* what it is needed for */
	bool had;
};

#define PRIVILEGE_CNT 3

/* The capabilities that a recording needs; CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON as in the kernel. */
void privilege_survey(struct privilege privileges[PRIVILEGE_CNT]);

/* 0, or -EPERM after one line that names what is missing. */
int privilege_check(void);

#endif
