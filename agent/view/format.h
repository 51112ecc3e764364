/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers for a person.  Each writes at most FORMAT_SZ bytes into buf and returns it; NAN becomes a dash. */
#ifndef WHYLATE_VIEW_FORMAT_H
#define WHYLATE_VIEW_FORMAT_H

#include "analysis/results.h"

#include <stddef.h>
#include <stdint.h>

#define FORMAT_SZ 48

const char *format_dash(void);
/* "104,233" */
const char *format_count(char buf[FORMAT_SZ], uint64_t count);
/* "41 %", "0.4 %", "-3 %" */
const char *format_share(char buf[FORMAT_SZ], double share);
/* "[37–45]" in percent, "[-2 to 5]" where a bound is negative; "" when there is none */
const char *format_ci(char buf[FORMAT_SZ], struct ci ci);
/* "p99", "p99.9"; percentile is 0…1 */
const char *format_percentile(char buf[FORMAT_SZ], double percentile);
/* Three digits: "2.14", "12,402", "3.1e+15" */
const char *format_number(char buf[FORMAT_SZ], double number);
/* A weighted count as a whole number. */
const char *format_weighted(char buf[FORMAT_SZ], double count);

#endif
