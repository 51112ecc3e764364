// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/format.h"

#include "base/units.h"
#include "base/utf8.h"
#include "view/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *format_dash(void)
{
	return utf8_locale() ? "–" : "-";
}

static const char *dash_into(char *buf, size_t sz)
{
	snprintf(buf, sz, "%s", format_dash());
	return buf;
}

const char *view_duration(char *buf, size_t sz, double ns)
{
	char *micro;

	if (!isfinite(ns))
		return dash_into(buf, sz);
	units_duration_text(buf, sz, ns);
	micro = utf8_locale() ? NULL : strstr(buf, "µ");
	if (micro) {
		*micro = 'u';
		memmove(micro + 1, micro + strlen("µ"), strlen(micro + strlen("µ")) + 1);
	}
	return buf;
}

const char *format_count(char buf[FORMAT_SZ], uint64_t count)
{
	char digits[24];
	int cnt = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	char *end = buf;

	for (int i = 0; i < cnt; i++) {
		if (i && (cnt - i) % 3 == 0)
			*end++ = ',';
		*end++ = digits[i];
	}
	*end = '\0';
	return buf;
}

/* Percent as it will be printed, so that callers may ask for its sign. */
static double rounded_percent(double share, int *digits)
{
	double percent = share * 100;
	double rounded;

	*digits = fabs(percent) < 0.95 ? 1 : 0;
	rounded = *digits ? round(percent * 10) / 10 : round(percent);
	if (rounded == 0) {
		*digits = 0;
		rounded = 0; /* not -0 */
	}
	return rounded;
}

const char *format_share(char buf[FORMAT_SZ], double share)
{
	double percent;
	int digits;

	if (!isfinite(share))
		return dash_into(buf, FORMAT_SZ);
	percent = rounded_percent(share, &digits);
	snprintf(buf, FORMAT_SZ, fabs(percent) < 1e6 ? "%.*f %%" : "%.*e %%", digits, percent);
	return buf;
}

const char *format_part(char buf[FORMAT_SZ], double share)
{
	if (!(share > 0 && share < 0.0005))
		return format_share(buf, share);
	snprintf(buf, FORMAT_SZ, "below 0.1 %%");
	return buf;
}

const char *format_ci(char buf[FORMAT_SZ], struct ci ci)
{
	double lo, hi;

	buf[0] = '\0';
	if (!isfinite(ci.lo) || !isfinite(ci.hi))
		return buf;
	lo = round(ci.lo * 100) + 0.0;
	hi = round(ci.hi * 100) + 0.0;
	if (fabs(lo) >= 1e6 || fabs(hi) >= 1e6)
		snprintf(buf, FORMAT_SZ, "[%.1e to %.1e]", lo, hi);
	else if (lo < 0 || hi < 0)
		snprintf(buf, FORMAT_SZ, "[%.0f to %.0f]", lo, hi);
	else
		snprintf(buf, FORMAT_SZ, "[%.0f%s%.0f]", lo, format_dash(), hi);
	return buf;
}

const char *format_percentile(char buf[FORMAT_SZ], double percentile)
{
	if (!isfinite(percentile))
		return dash_into(buf, FORMAT_SZ);
	snprintf(buf, FORMAT_SZ, "p%.4g", percentile * 100);
	return buf;
}

const char *format_number(char buf[FORMAT_SZ], double number)
{
	if (!isfinite(number))
		return dash_into(buf, FORMAT_SZ);
	if (fabs(number) < 99.95 || fabs(number) >= 1e15)
		snprintf(buf, FORMAT_SZ, "%.3g", number + 0.0);
	else if (number < 0)
		snprintf(buf, FORMAT_SZ, "%.0f", number);
	else
		format_count(buf, (uint64_t)llround(number));
	return buf;
}

const char *format_weighted(char buf[FORMAT_SZ], double count)
{
	if (!isfinite(count) || count < 0)
		return dash_into(buf, FORMAT_SZ);
	if (count >= 1e18)
		snprintf(buf, FORMAT_SZ, "%.3g", count);
	else
		format_count(buf, (uint64_t)llround(count));
	return buf;
}

#define TIMES_MIN 9.995 /* more than so much longer is read as a factor */

const char *format_change(char buf[FORMAT_SZ], double ratio)
{
	char share[FORMAT_SZ];

	if (isnan(ratio))
		return format_dash();
	if (ratio >= TIMES_MIN) {
		snprintf(buf, FORMAT_SZ, "%s times", format_count(share, (uint64_t)fmin(ratio + 1.5, 1e15)));
		return buf;
	}
	snprintf(buf, FORMAT_SZ, "%s%s", ratio > 0 ? "+" : "", format_share(share, ratio));
	return buf;
}

static const char *change_ci(char buf[FORMAT_CI_SZ], struct ci ci,
			     const char *(*format)(char buf[FORMAT_SZ], double value))
{
	char lo[FORMAT_SZ], hi[FORMAT_SZ];

	*buf = '\0';
	if (!isnan(ci.lo))
		snprintf(buf, FORMAT_CI_SZ, "[%s to %s]", format(lo, ci.lo), format(hi, ci.hi));
	return buf;
}

const char *format_change_ci(char buf[FORMAT_CI_SZ], struct ci ci)
{
	return change_ci(buf, ci, format_change);
}

const char *format_time_change(char buf[FORMAT_SZ], double ns)
{
	char duration[FORMAT_SZ];

	if (isnan(ns))
		return format_dash();
	snprintf(buf, FORMAT_SZ, "%s%s", ns > 0 ? "+" : "", view_duration(duration, sizeof(duration), ns));
	return buf;
}

const char *format_time_change_ci(char buf[FORMAT_CI_SZ], struct ci ci)
{
	return change_ci(buf, ci, format_time_change);
}
