/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this machine can and cannot measure, and why. */
#ifndef WHYLATE_SELFTEST_SURVEY_H
#define WHYLATE_SELFTEST_SURVEY_H

#include <stdbool.h>

/* Prints it as text or as JSON (schema whylate.doctor/1): EXIT_DONE, EXIT_LIMITS if nothing can be recorded here,
 * EXIT_FAILED. */
int survey_machine(bool json, const char *btf_path);

#endif
