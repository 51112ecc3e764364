/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a value explains how long requests take: latency = base + factor · value^exponent. */
#ifndef WHYLATE_ANALYSIS_VALUE_FIT_H
#define WHYLATE_ANALYSIS_VALUE_FIT_H

#include "analysis/results.h"

struct value_fit_point {
	double value, latency_ns, weight;
};

struct value_fit {
	double exponent; /* NAN: the value does not explain the latency, or varies too little to tell how */
	struct ci exponent_ci;
	double explained; /* share of the latency's variance, 0…1; NAN: not defined */
};

/* 0 or -ENOMEM. */
int value_fit(struct value_fit *fit, const struct value_fit_point *points, size_t cnt, uint64_t seed);

#endif
