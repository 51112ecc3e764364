/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `doctor --self-test`: every kind of event once, with a witness, through the capture that a recording uses. */
#ifndef WHYLATE_SELFTEST_SELFTEST_H
#define WHYLATE_SELFTEST_SELFTEST_H

#include "capture/hooks.h"

struct selftest_options {
	uint32_t force_tier[HOOK_FEATURE_CNT]; /* 0: the best */
	const char *btf_path;                  /* NULL: the kernel's own */
	bool json;
};

/* Prints to stdout; an exit code: EXIT_DONE when all checks passed or were skipped. */
int selftest_run(const struct selftest_options *options);

#endif
