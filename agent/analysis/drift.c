// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/drift.h"

#include "analysis/sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DAY_NS 86400000000000ULL

static double median_of(double *values, size_t cnt)
{
	if (!cnt)
		return NAN;
	qsort(values, cnt, sizeof(*values), compare_doubles);
	return cnt % 2 ? values[cnt / 2] : (values[cnt / 2 - 1] + values[cnt / 2]) / 2;
}

struct daily {
	double day, value;
};

/* Weighted means by day. */
static size_t make_daily(struct daily *daily, const uint64_t *wall_ns, const double *values, const double *weights,
			 size_t cnt)
{
	size_t day_cnt = 0, i = 0;

	while (i < cnt) {
		uint64_t number = wall_ns[i] / DAY_NS;
		double sum = 0, weight = 0;

		for (; i < cnt && wall_ns[i] / DAY_NS == number; i++) {
			if (isnan(values[i]) || !(weights[i] > 0))
				continue;
			sum += values[i] * weights[i];
			weight += weights[i];
		}
		if (weight > 0)
			daily[day_cnt++] = (struct daily){(double)number, sum / weight};
	}
	return day_cnt;
}

/* Kendall 1975: the normal approximation with the correction of continuity; two-sided. */
static double mann_kendall(const struct daily *daily, size_t cnt)
{
	double n = (double)cnt, variance = n * (n - 1) * (2 * n + 5) / 18;
	long sum = 0;

	for (size_t i = 0; i < cnt; i++)
		for (size_t j = i + 1; j < cnt; j++)
			sum += (daily[j].value > daily[i].value) - (daily[j].value < daily[i].value);
	return erfc(fmax((double)labs(sum) - 1, 0) / sqrt(variance) / M_SQRT2);
}

int drift_find(struct drift *drift, const uint64_t *wall_ns, const double *values, const double *weights, size_t cnt)
{
	struct daily *daily = calloc(cnt + 1, sizeof(*daily));
	double *slopes = NULL, level;
	size_t slope_cnt = 0;
	int err = daily ? 0 : -ENOMEM;

	*drift = (struct drift){.p = NAN};
	if (!err)
		drift->days = make_daily(daily, wall_ns, values, weights, cnt);
	if (err || drift->days < DRIFT_DAYS_MIN)
		goto cleanup;
	slopes = calloc(drift->days * drift->days / 2 + 1, sizeof(*slopes));
	if (!slopes) {
		err = -ENOMEM;
		goto cleanup;
	}
	for (size_t i = 0; i < drift->days; i++)
		for (size_t j = i + 1; j < drift->days; j++)
			slopes[slope_cnt++] = (daily[j].value - daily[i].value) / (daily[j].day - daily[i].day);
	drift->per_day = median_of(slopes, slope_cnt);
	for (size_t i = 0; i < drift->days; i++)
		slopes[i] = daily[i].value - drift->per_day * (daily[i].day - daily[0].day);
	level = median_of(slopes, drift->days);
	drift->first = level;
	drift->last = level + drift->per_day * (daily[drift->days - 1].day - daily[0].day);
	drift->p = mann_kendall(daily, drift->days);
	drift->found = drift->p <= DRIFT_P;
cleanup:
	free(slopes);
	free(daily);
	return err;
}
