/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions that the self-test probes in its own program: their names must survive, and so must each call. */
#ifndef WHYLATE_SELFTEST_PROBED_H
#define WHYLATE_SELFTEST_PROBED_H

#include "selftest/scene.h"

#define PROBED __attribute__((noinline, noclone, used, visibility("default")))

/* An interval with one deed in it; the report's `inner` is counted within. */
PROBED void whylate_selftest_deed(struct scene *scene, enum deed_kind kind, struct deed_report *report);
/* An interval with next to nothing in it. */
PROBED uint64_t whylate_selftest_quick(uint64_t number);

#endif
