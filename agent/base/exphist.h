/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations in exponential buckets of scale 3, 8 an octave: those of OpenTelemetry's exponential histograms and of
 * Prometheus' native ones.  Bucket i holds what is above 2^((i-1)/8) s and not above 2^(i/8) s, by Prometheus' count;
 * OpenTelemetry calls it i - 1.
 */
#ifndef WHYLATE_BASE_EXPHIST_H
#define WHYLATE_BASE_EXPHIST_H

#include <math.h>
#include <stdint.h>

#define EXPHIST_SCALE 3
#define EXPHIST_SUBS  (1 << EXPHIST_SCALE)
#define EXPHIST_MIN   (-30 * EXPHIST_SUBS) /* up to 0.93 ns; what is shorter counts there */
#define EXPHIST_MAX   (14 * EXPHIST_SUBS)  /* up to 4.6 h; what is longer counts there */
#define EXPHIST_CNT   (EXPHIST_MAX - EXPHIST_MIN + 1)

static inline int exphist_index(double seconds)
{
	/* 2^(k/8 - 1) */
	static const double bounds[EXPHIST_SUBS] = {
		0.5,
		0.5452538663326288,
		0.5946035575013605,
		0.6484197773255048,
		0.7071067811865475,
		0.7711054127039704,
		0.8408964152537145,
		0.9170040432046712,
	};
	int exponent, sub = 0, index;
	double fraction = frexp(seconds, &exponent);

	while (sub < EXPHIST_SUBS && fraction > bounds[sub])
		sub++;
	index = (exponent - 1) * EXPHIST_SUBS + sub;
	return seconds <= 0 || index < EXPHIST_MIN ? EXPHIST_MIN : index > EXPHIST_MAX ? EXPHIST_MAX : index;
}

#endif
