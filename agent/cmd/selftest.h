/* SPDX-License-Identifier: GPL-2.0-only */
/* `doctor --self-test`: every kind of event once, with a witness, through the capture that a recording uses. */
#ifndef WHYLATE_CMD_SELFTEST_H
#define WHYLATE_CMD_SELFTEST_H

#include "capture/hooks.h"

struct selftest_options {
	uint32_t force_tier[HOOK_FEATURE_CNT]; /* 0: the best */
	const char *btf_path;                  /* NULL: the kernel's own */
	bool json;
};

/* "FEATURE=N" of --force-tier: 0, or -EINVAL after a line that says what is wrong with it. */
int selftest_force_tier(struct selftest_options *options, const char *arg);
/* Prints to stdout; an exit code: EXIT_DONE when all checks passed or were skipped. */
int selftest_run(const struct selftest_options *options);

#endif
