// SPDX-License-Identifier: GPL-2.0-or-later
/* When the tail of the segments changed its level, apart from what the time of day does to it. */
#include "analysis/segments_read.h"
#include "analysis/sort.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHUFFLES    500
#define CHANGE_P    0.01
#define CHANGE_SIDE 3 /* segments on either side of a change, at least */
#define CHANGES_MAX 64
#define CHANGE_MIN  (1.0 / 32) /* of a logarithm: the sketch's error */
#define DAY_NS      86400000000000ULL
#define SLOT_NS     900000000000ULL /* of the day, at least */
#define SLOTS_MAX   (DAY_NS / SLOT_NS)
#define RHYTHM_DAYS 3

/* The segments with requests: logarithms of their tails, and their numbers. */
struct series {
	double *values, *scratch, *limits;
	size_t *numbers, cnt;
};

static double median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare_doubles);
	return cnt ? values[(cnt - 1) / 2] : NAN;
}

/* --- the daily rhythm ----------------------------------------------------------------------------------------------
 */

static size_t slot_of(uint64_t wall_ns, uint64_t slot_ns)
{
	return wall_ns % DAY_NS / slot_ns;
}

/* Each day's values become differences from that day's median, in series->scratch. */
static void without_days(const struct segments *segments, struct series *series, double *of_day)
{
	for (size_t first = 0, next; first < series->cnt; first = next) {
		uint64_t day = segments->items[series->numbers[first]].begin_wall_ns / DAY_NS;
		double middle;

		for (next = first; next < series->cnt; next++) {
			if (segments->items[series->numbers[next]].begin_wall_ns / DAY_NS != day)
				break;
			of_day[next - first] = series->values[next];
		}
		middle = median(of_day, next - first);
		for (size_t i = first; i < next; i++)
			series->scratch[i] = series->values[i] - middle;
	}
}

/* The rhythm at a time: between the middles of two slots by interpolation. */
static double rhythm_at(const double *slots, size_t slot_cnt, uint64_t slot_ns, uint64_t wall_ns)
{
	double place = ((double)(wall_ns % DAY_NS) / (double)slot_ns) - 0.5, whole = floor(place);
	size_t before = (size_t)(whole + (double)slot_cnt) % slot_cnt;

	return slots[before] + (place - whole) * (slots[(before + 1) % slot_cnt] - slots[before]);
}

/* Each slot's median over the days; false: a slot has values of too few days. */
static bool slot_medians(const struct segments *segments, const struct series *series, uint64_t slot_ns, double *slots,
			 double *of_slot)
{
	uint64_t least = RHYTHM_DAYS * (slot_ns / segments->length_ns);

	for (size_t slot = 0; slot < DAY_NS / slot_ns; slot++) {
		size_t cnt = 0;

		for (size_t i = 0; i < series->cnt; i++)
			if (slot_of(segments->items[series->numbers[i]].begin_wall_ns, slot_ns) == slot)
				of_slot[cnt++] = series->scratch[i];
		if (cnt < least)
			return false;
		slots[slot] = median(of_slot, cnt);
	}
	return true;
}

static int take_out_rhythm(struct segments *segments, struct series *series)
{
	uint64_t slot_ns = segments->length_ns > SLOT_NS ? segments->length_ns : SLOT_NS;
	struct segment_rhythm *rhythm = &segments->rhythm;
	double slots[SLOTS_MAX], *some;
	size_t slot_cnt = DAY_NS / slot_ns, high = 0, low = 0;

	if (DAY_NS % slot_ns || slot_ns % segments->length_ns || slot_cnt < 4 || series->cnt < RHYTHM_DAYS * slot_cnt)
		return 0;
	some = calloc(series->cnt, sizeof(*some));
	if (!some)
		return -ENOMEM;
	without_days(segments, series, some);
	rhythm->is_known = slot_medians(segments, series, slot_ns, slots, some);
	free(some);
	if (!rhythm->is_known)
		return 0;
	for (size_t i = 0; i < series->cnt; i++)
		series->values[i] -=
			rhythm_at(slots, slot_cnt, slot_ns,
				  segments->items[series->numbers[i]].begin_wall_ns + segments->length_ns / 2);
	for (size_t slot = 1; slot < slot_cnt; slot++) {
		high = slots[slot] > slots[high] ? slot : high;
		low = slots[slot] < slots[low] ? slot : low;
	}
	rhythm->high_min = (uint32_t)(high * slot_ns / 60000000000ULL);
	rhythm->low_min = (uint32_t)(low * slot_ns / 60000000000ULL);
	rhythm->high = exp(slots[high]);
	rhythm->low = exp(slots[low]);
	return 0;
}

/* --- changes -------------------------------------------------------------------------------------------------------
 */

/*
 * The largest squared CUSUM, scaled for its place, and where it is: values[at] is the first one of the other level.
 */
static double largest_cusum(const double *values, size_t cnt, size_t *at)
{
	double mean = 0, sum = 0, largest = 0, its_place = 1;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i];
	mean /= (double)cnt;
	*at = 0;
	for (size_t i = 0; i + CHANGE_SIDE < cnt; i++) {
		double place = (double)(i + 1) * (double)(cnt - i - 1), squared;

		sum += values[i] - mean;
		squared = sum * sum;
		if (squared * its_place <= largest * place || i + 1 < CHANGE_SIDE)
			continue;
		largest = squared;
		its_place = place;
		*at = i + 1;
	}
	return largest / its_place * (double)cnt;
}

/*
 * Of random orders, how many have as large a CUSUM.  Values that differ from their mean, which sum up to 0, so that
 * sums from the end are as large as those from the beginning: a value's place is final once it is drawn, from the last
 * one down, and is summed up at once.  limits: room for what the square of a sum has to be, at each place.
 */
static double change_p(double *values, double *limits, size_t cnt, double found)
{
	uint64_t state = cnt;
	size_t as_large = 0;
	double mean = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i];
	mean /= (double)cnt;
	for (size_t i = 0; i < cnt; i++) {
		bool is_place = i >= CHANGE_SIDE && cnt - i >= CHANGE_SIDE;

		values[i] -= mean;
		/* Orders with the same values on both sides are as large but for rounding. */
		limits[i] = is_place ? found / (double)cnt * (double)i * (double)(cnt - i) * (1 - 1e-9) : INFINITY;
	}
	for (int s = 0; s < SHUFFLES; s++) {
		double sum = 0;
		bool is_large = false;

		for (size_t i = cnt - 1; i > 0; i--) {
			size_t j = (size_t)((random_next(&state) >> 32) * (i + 1) >> 32);
			double drawn = values[j];

			values[j] = values[i];
			values[i] = drawn;
			sum += drawn;
			is_large |= sum * sum >= limits[i];
		}
		as_large += is_large;
		/* It will not become a change any more. */
		if (as_large > SHUFFLES * CHANGE_P)
			return 1;
	}
	return (double)(as_large + 1) / (SHUFFLES + 1);
}

static int find_changes(struct segments *segments, const struct series *series, size_t first, size_t cnt)
{
	struct segment_change change;
	size_t at;
	double found;
	int err;

	if (cnt < 2 * CHANGE_SIDE || segments->changes.cnt >= CHANGES_MAX)
		return 0;
	found = largest_cusum(series->values + first, cnt, &at);
	if (!at)
		return 0;
	memcpy(series->scratch, series->values + first, cnt * sizeof(*series->scratch));
	/* Its place in the series, until the levels are known. */
	change = (struct segment_change){.at = first + at, .p = change_p(series->scratch, series->limits, cnt, found)};
	if (change.p > CHANGE_P)
		return 0;
	err = find_changes(segments, series, first, at);
	if (!err && vec_push(&segments->changes, change))
		err = -ENOMEM;
	return err ? err : find_changes(segments, series, first + at, cnt - at);
}

static double level(const struct series *series, size_t from, size_t to)
{
	memcpy(series->scratch, series->values + from, (to - from) * sizeof(*series->scratch));
	return median(series->scratch, to - from);
}

/* The levels on both sides; the smallest change goes while it is smaller than the sketch's error. */
static void tell_levels(struct segments *segments, const struct series *series)
{
	struct segment_change *changes = segments->changes.items;

	while (segments->changes.cnt) {
		size_t cnt = segments->changes.cnt, smallest = 0;
		double least = INFINITY, size;

		for (size_t c = 0; c < cnt; c++) {
			changes[c].before_ns = level(series, c ? changes[c - 1].at : 0, changes[c].at);
			changes[c].after_ns =
				level(series, changes[c].at, c + 1 < cnt ? changes[c + 1].at : series->cnt);
			size = fabs(changes[c].after_ns - changes[c].before_ns);
			smallest = size < least ? c : smallest;
			least = size < least ? size : least;
		}
		if (least >= CHANGE_MIN)
			break;
		memmove(&changes[smallest], &changes[smallest + 1], (cnt - smallest - 1) * sizeof(*changes));
		segments->changes.cnt--;
	}
	for (size_t c = 0; c < segments->changes.cnt; c++) {
		changes[c].at = series->numbers[changes[c].at];
		changes[c].before_ns = exp(changes[c].before_ns);
		changes[c].after_ns = exp(changes[c].after_ns);
	}
}

int segments_find_changes(struct segments *segments)
{
	struct series series = {.values = calloc(segments->cnt + 1, 3 * sizeof(*series.values)),
				.numbers = calloc(segments->cnt + 1, sizeof(*series.numbers))};
	int err = series.values && series.numbers ? 0 : -ENOMEM;

	if (!err) {
		series.scratch = series.values + segments->cnt + 1;
		series.limits = series.scratch + segments->cnt + 1;
	}
	for (size_t s = 0; s < segments->cnt && !err; s++) {
		if (segments->items[s].is_empty)
			continue;
		series.numbers[series.cnt] = s;
		series.values[series.cnt++] = log(fmax(segments->items[s].tail_ns, 1));
	}
	if (!err)
		err = take_out_rhythm(segments, &series);
	if (!err)
		err = find_changes(segments, &series, 0, series.cnt);
	if (!err)
		tell_levels(segments, &series);
	free(series.values);
	free(series.numbers);
	return err;
}
