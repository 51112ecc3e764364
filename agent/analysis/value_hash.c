// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_hash.h"

#include "analysis/value_stats.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>

/* So many values either side must have, and so large a part of them must be distinct. */
#define SAMPLES_MIN  50
#define DISTINCT_MIN 0.9
/* What 1 % of uniform samples exceed, times √n: Kolmogorov's distance, and the correlation of neighbours. */
#define UNIFORM_CRITICAL     1.628
#define CORRELATION_CRITICAL 2.576

typedef VEC(struct value_point) point_list;

struct side {
	point_list points;
	double x, y, xx, yy, xy, pairs; /* sums over adjacent values, as parts of the type's range */
};

/* Where in the range of its type the value is, 0 to 1. */
static double part_of(const struct value_variable_facts *facts, uint64_t value)
{
	double range = ldexp(1, 8 * facts->size);

	return value_number(facts, value) / range + (facts->kind == VALUE_SIGNED ? 0.5 : 0);
}

/* The values of one unit; one that stays is one value. */
static int take_unit(struct side *side, const struct value_variable_facts *facts, const struct value_row *rows,
		     size_t cnt)
{
	double last = NAN;

	for (size_t i = 0; i < cnt; i++) {
		double part = part_of(facts, rows[i].value);

		if (i && rows[i].value == rows[i - 1].value)
			continue;
		if (vec_push(&side->points, ((struct value_point){part, 1})))
			return -ENOMEM;
		if (!isnan(last)) {
			side->x += last;
			side->y += part;
			side->xx += last * last;
			side->yy += part * part;
			side->xy += last * part;
			side->pairs++;
		}
		last = part;
	}
	return 0;
}

static double correlation(const struct side *side)
{
	double n = side->pairs, xx = side->xx - side->x * side->x / n, yy = side->yy - side->y * side->y / n;

	return (side->xy - side->x * side->y / n) / sqrt(xx * yy);
}

static bool is_random(struct side *side)
{
	struct value_set set = {.points = side->points.items, .cnt = side->points.cnt};
	double n = (double)set.cnt;
	size_t distinct = 1;

	if (set.cnt < SAMPLES_MIN || value_uniform_distance(&set) * sqrt(n) > UNIFORM_CRITICAL)
		return false;
	for (size_t i = 1; i < set.cnt; i++)
		distinct += set.points[i].value > set.points[i - 1].value;
	if ((double)distinct < DISTINCT_MIN * n)
		return false;
	/* A request may have one sample only: then there are no neighbours. */
	return side->pairs < 3 || !(fabs(correlation(side)) * sqrt(side->pairs) > CORRELATION_CRITICAL);
}

int value_is_hash(const struct value_input *input, const struct value_row *rows, size_t cnt)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	struct side sides[2] = {{.pairs = 0}, {.pairs = 0}};
	bool is_hash;
	int err = 0;

	if (facts->kind != VALUE_SIGNED && facts->kind != VALUE_UNSIGNED)
		return 0;
	for (size_t i = 0, end; i < cnt && !err; i = end) {
		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile && rows[end].unit == rows[i].unit;)
			end++;
		err = take_unit(&sides[input->is_slow[rows[i].profile]], facts, rows + i, end - i);
	}
	is_hash = !err && is_random(&sides[0]) && is_random(&sides[1]);
	vec_free(&sides[0].points);
	vec_free(&sides[1].points);
	return err ? err : is_hash;
}
