// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A plain decimal number, not in hex, not "inf", without a sign; *rest is what follows it, blanks skipped. */
static int number_of(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	*value = strtod(text, &end);
	if (end == text || !isfinite(*value))
		return -EINVAL;
	while (*end == ' ')
		end++;
	*rest = end;
	return 0;
}

int units_duration_ns(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9},
	};
	const char *unit;
	double value;

	if (number_of(text, &value, &unit))
		return -EINVAL;
	if (!*unit)
		return -EDOM;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double wanted = value * units[i].ns;

		if (strcmp(unit, units[i].name))
			continue;
		if (wanted < 1 || wanted > 100 * 365 * 86400e9)
			return -EINVAL;
		*ns = wanted;
		return 0;
	}
	return -EINVAL;
}

int units_share(const char *text, double *share)
{
	const char *unit;
	double value;

	if (number_of(text, &value, &unit))
		return -EINVAL;
	if (!*unit)
		return -EDOM;
	value /= 100;
	if (strcmp(unit, "%") || !(value > 0) || value > 1)
		return -EINVAL;
	*share = value;
	return 0;
}

int units_percentile(const char *text, double *quantile)
{
	const char *rest;
	double value;

	if (number_of(text[0] == 'p' ? text + 1 : text, &value, &rest))
		return -EINVAL;
	if (!strcmp(rest, "%") || (!*rest && value >= 1))
		value /= 100;
	else if (*rest)
		return -EINVAL;
	if (value <= 0 || value >= 1)
		return -EINVAL;
	*quantile = value;
	return 0;
}

int units_bytes(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	const char *unit, *letter;
	double value;

	if (number_of(text, &value, &unit))
		return -EINVAL;
	if (*unit) {
		letter = strchr(letters, toupper((unsigned char)*unit));
		if (!letter)
			return -EINVAL;
		value *= (double)(1ULL << (10 * (letter - letters + 1)));
		unit++;
		if (!strcmp(unit, "iB") || !strcmp(unit, "B"))
			unit += strlen(unit);
	}
	if (*unit || value < 1 || value > 0x1p60)
		return -EINVAL;
	*bytes = value;
	return 0;
}

int units_time_ns(const char *text, uint64_t now_wall_ns, uint64_t *wall_ns)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
					      "%Y-%m-%d %H:%M:%S"};
	uint64_t ago_ns;

	if (!units_duration_ns(text, &ago_ns)) {
		*wall_ns = ago_ns < now_wall_ns ? now_wall_ns - ago_ns : 1;
		return 0;
	}
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, formats[i], &tm);
		time_t seconds = end && !*end ? timegm(&tm) : 0;

		/* What fits into 64 bits of nanoseconds. */
		if (seconds <= 0 || seconds > (time_t)(INT64_MAX / 1000000000))
			continue;
		*wall_ns = (uint64_t)seconds * 1000000000;
		return 0;
	}
	return -EINVAL;
}

int units_number(const char *text, uint64_t max, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || !value || value > max)
		return -EINVAL;
	*number = value;
	return 0;
}

/* Three digits, so that 999.7 ns is "1.00 µs" and never "1000 ns". */
static int digits_after_point(double number)
{
	return number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
}

const char *units_duration_text(char *buf, size_t sz, double ns)
{
	static const struct {
		double unit_ns, below; /* in that unit */
		const char *name;
	} units[] = {
		{1, 999.5, "ns"},     {1e3, 999.5, "µs"},      {1e6, 999.5, "ms"},       {1e9, 3599.5, "s"},
		{3600e9, 999.5, "h"}, {86400e9, 99999.5, "d"}, {86400e9, INFINITY, "d"},
	};
	double number = fabs(ns);
	const char *sign;
	size_t i = 0;

	while (number / units[i].unit_ns >= units[i].below)
		i++;
	sign = ns < 0 && (i || number >= 0.5) ? "-" : "";
	number /= units[i].unit_ns;
	snprintf(buf, sz, units[i].below == INFINITY ? "%s%.*e %s" : "%s%.*f %s", sign,
		 i ? digits_after_point(number) : 0, number, units[i].name);
	return buf;
}
