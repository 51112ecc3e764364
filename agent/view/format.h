/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers for a person.  Each writes at most FORMAT_SZ bytes into buf and returns it; NAN becomes a dash. */
#ifndef WHYLATE_VIEW_FORMAT_H
#define WHYLATE_VIEW_FORMAT_H

#include "analysis/results.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_SZ 48

static inline double known(double number)
{
	return isfinite(number) ? number : 0;
}

const char *format_dash(void);
/* "104,233" */
const char *format_count(char buf[FORMAT_SZ], uint64_t count);
/* "41 %", "0.4 %", "-3 %" */
const char *format_share(char buf[FORMAT_SZ], double share);
/* Likewise, and "below 0.1 %" instead of "0 %" where it is not nothing. */
const char *format_part(char buf[FORMAT_SZ], double share);
/* "[37–45]" in percent, "[-2 to 5]" where a bound is negative; "" when there is none */
const char *format_ci(char buf[FORMAT_SZ], struct ci ci);
/* "p99", "p99.9"; percentile is 0…1 */
const char *format_percentile(char buf[FORMAT_SZ], double percentile);
/* Three digits: "2.14", "12,402", "3.1e+15" */
const char *format_number(char buf[FORMAT_SZ], double number);
/* A change of so much of itself: "+28 %", "-0.4 %" */
const char *format_change(char buf[FORMAT_SZ], double ratio);
/* "[+12 % to +46 %]"; "" when there is none */
#define FORMAT_CI_SZ (2 * FORMAT_SZ + 8)
const char *format_change_ci(char buf[FORMAT_CI_SZ], struct ci ci);
/* "+1.23 ms", "[-1.2 µs to +1.23 ms]" */
const char *format_time_change(char buf[FORMAT_SZ], double ns);
const char *format_time_change_ci(char buf[FORMAT_CI_SZ], struct ci ci);
/* A weighted count as a whole number. */
const char *format_weighted(char buf[FORMAT_SZ], double count);

#endif
