/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How different the samples of a variable are in two sets of requests or recordings (vProf §5.1): k-sample
 * Anderson-Darling (Scholz and Stephens 1987), Hellinger distance, discount ratio.  Pure functions.
 */
#ifndef WHYLATE_ANALYSIS_VALUE_STATS_H
#define WHYLATE_ANALYSIS_VALUE_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* vProf §5.1 */
#define VALUE_DEFAULT_DISCOUNT 0.8
#define VALUE_VALID_DISCOUNT   0.1

struct value_point {
	double value, weight;
};

/* The functions below sort it by value. */
struct value_set {
	struct value_point *points;
	size_t cnt;
	/* So many independent samples it is worth, where neighbours depend on each other; 0: by the weights alone. */
	double effective;
};

/*
 * The standardised statistic, as SciPy's anderson_ksamp(midrank=...): with equal weights the same number.  Otherwise
 * each set counts as its effective size (Kish: (Σw)²/Σw², or less).  NAN where it is not defined: fewer than two sets,
 * an empty set, fewer than four samples, one distinct value.
 */
double value_anderson_darling(struct value_set *sets, size_t set_cnt, bool midrank);
/* What the statistic exceeds by chance in 5 % of the cases. */
double value_anderson_darling_critical(size_t set_cnt);

/*
 * 0: equal, 1: disjoint.  Each distinct value is a class; more than VALUE_CLASSES_MAX are put together into classes of
 * equal weight in both sets taken together.  NAN where a set is empty.
 */
#define VALUE_CLASSES_MAX 64
double value_hellinger(struct value_set *a, struct value_set *b);

/*
 * Kolmogorov's distance of the set from the uniform distribution over 0 to 1, as SciPy's kstest(values, "uniform");
 * each value counts once.  NAN where it is empty.
 */
double value_uniform_distance(struct value_set *set);

/*
 * The discount ratio of a slow set against a normal one: the default where they do not differ at 5 %, else one minus
 * the Hellinger distance, 0 below the valid discount.  Values that only the slow set has are an anomaly: 0.  NAN where
 * the slow set is empty.
 */
double value_discount(struct value_set *normal, struct value_set *slow);

#endif
