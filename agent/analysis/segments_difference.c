// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments_difference.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of each segment; 0 of one of them: they cannot be compared. */
static uint8_t *assign_sides(const struct dataset *dataset, const struct segments *segments,
			     size_t cnt[COMPARE_SIDE_CNT])
{
	uint8_t *sides = calloc(dataset->row_cnt + 1, sizeof(*sides));

	for (size_t row = 0; sides && row < dataset->row_cnt; row++) {
		uint64_t wall_ns = dataset->begin_ts[row] + (uint64_t)dataset->session_clock_ns[dataset->session[row]];
		size_t number = (wall_ns - segments->begin_wall_ns) / segments->length_ns;

		sides[row] = number == segments->median ? COMPARE_IN_A : number == segments->worst ? COMPARE_IN_B : 0;
		cnt[COMPARE_A] += sides[row] == COMPARE_IN_A;
		cnt[COMPARE_B] += sides[row] == COMPARE_IN_B;
	}
	return sides;
}

static int compare(struct segments_difference *difference, struct shard_reader *reader, const struct segments *segments)
{
	struct findings *findings = &difference->findings;
	struct compare_opts opts = {.tail = segments->tail, .seed = 1};
	size_t cnt[COMPARE_SIDE_CNT] = {0};
	uint8_t *sides = assign_sides(&findings->dataset, segments, cnt);
	int followed, err = sides ? 0 : -ENOMEM;

	if (err || !cnt[COMPARE_A] || !cnt[COMPARE_B]) {
		free(sides);
		return err;
	}
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		opts.limits[m] = NAN;
	followed = findings_follow(findings, reader, false);
	if (followed > 0) {
		opts.paths = &findings->paths;
		opts.roots = &findings->roots;
	}
	err = followed < 0 ? followed : comparison_make(&difference->comparison, &findings->dataset, sides, &opts);
	if (err && followed >= 0)
		findings_unfollow(findings);
	free(sides);
	return err ? err : 1;
}

/* --- events --------------------------------------------------------------------------------------------------------
 */

#define GAIN_MIN  0.005
#define BOOTSTRAP 400

/* Of one segment, within the times that the filter wants: the first and the last one may be longer than those. */
static struct dataset_filter filter_of(const struct segments *segments, size_t first, size_t last,
				       const struct dataset_filter *filter)
{
	struct dataset_filter of = *filter;

	of.since_wall_ns = segments->items[first].begin_wall_ns;
	if (of.since_wall_ns < filter->since_wall_ns)
		of.since_wall_ns = filter->since_wall_ns;
	of.until_wall_ns = segments->items[last].begin_wall_ns + segments->length_ns;
	if (filter->until_wall_ns && of.until_wall_ns > filter->until_wall_ns)
		of.until_wall_ns = filter->until_wall_ns;
	return of;
}

static double no_less(double share)
{
	return isnan(share) ? 0 : share;
}

static double size_of(const struct segments_event *event)
{
	return no_less(event->gain[COMPARE_B]) - no_less(event->gain[COMPARE_A]);
}

ORDER(compare_events, struct segments_event, BY(size_of(b), size_of(a)), strcmp(a->event, b->event));

/* B comes first: its events are the lines. */
static int take_event(struct segments_difference *difference, const struct event_line *line, int side)
{
	struct segments_event *event = NULL;

	for (size_t e = 0; e < difference->event_cnt && !event; e++)
		if (!strcmp(difference->events[e].event, line->event))
			event = &difference->events[e];
	if (!event && side == COMPARE_B && !line->dropped_for && line->gain >= GAIN_MIN) {
		event = &difference->events[difference->event_cnt++];
		*event = (struct segments_event){
			.event = arena__strdup(difference->comparison.arena, line->event),
			.gain = {NAN, NAN},
			.impact = {NAN, NAN},
			.gain_ci = {{NAN, NAN}, {NAN, NAN}},
			.impact_ci = {{NAN, NAN}, {NAN, NAN}},
		};
		if (!event->event)
			return -ENOMEM;
	}
	if (!event)
		return 0;
	event->gain[side] = line->gain;
	event->gain_ci[side] = line->gain_ci;
	event->impact[side] = line->impact;
	event->impact_ci[side] = line->impact_ci;
	return 0;
}

static int add_events(struct segments_difference *difference, struct shard_reader *reader, double tail,
		      const struct dataset_filter *filter, int side)
{
	const struct report_opts opts = {.tail = tail, .bootstrap_cnt = BOOTSTRAP, .seed = 1};
	struct dataset dataset;
	struct report report;
	int err;

	err = dataset_load(&dataset, reader, filter);
	if (err)
		return err == -ESRCH || err == -ENOENT ? 0 : err;
	err = report_make(&report, &dataset, &opts);
	if (!err) {
		if (side == COMPARE_B)
			difference->events = arena__alloc(difference->comparison.arena, report.event_cnt + 1,
							  sizeof(*difference->events));
		err = difference->events ? 0 : -ENOMEM;
		for (size_t e = 0; e < report.event_cnt && !err; e++)
			err = take_event(difference, &report.events[e], side);
		report_free(&report);
	}
	dataset_free(&dataset);
	return err;
}

static int find_events(struct segments_difference *difference, struct shard_reader *reader,
		       const struct segments *segments, const struct dataset_filter *filter)
{
	const size_t numbers[COMPARE_SIDE_CNT] = {segments->median, segments->worst};
	int err = 0;

	for (int side = COMPARE_B; side >= COMPARE_A && !err && (side == COMPARE_B || difference->events); side--) {
		struct dataset_filter of = filter_of(segments, numbers[side], numbers[side], filter);

		err = add_events(difference, reader, segments->tail, &of, side);
	}
	if (difference->event_cnt)
		qsort(difference->events, difference->event_cnt, sizeof(*difference->events), compare_events);
	return err;
}

int segments_difference__make(struct segments_difference *difference, struct shard_reader *reader,
			      const struct segments *segments, const struct dataset_filter *filter)
{
	size_t first = segments->median < segments->worst ? segments->median : segments->worst;
	size_t last = segments->median + segments->worst - first;
	struct dataset_filter both;
	int made;

	*difference = (struct segments_difference){0};
	if (first == last)
		return 0;
	both = filter_of(segments, first, last, filter);
	made = dataset_load(&difference->findings.dataset, reader, &both);
	if (made)
		return made == -ESRCH || made == -ENOENT ? 0 : made;
	made = compare(difference, reader, segments);
	if (made > 0) {
		int err = find_events(difference, reader, segments, filter);

		if (!err)
			return made;
		segments_difference__free(difference);
		return err;
	}
	dataset_free(&difference->findings.dataset);
	return made;
}

void segments_difference__free(struct segments_difference *difference)
{
	comparison_free(&difference->comparison);
	findings_unfollow(&difference->findings);
	dataset_free(&difference->findings.dataset);
}
