// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments_difference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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
	followed = findings_follow(findings, reader);
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

int segments_difference__make(struct segments_difference *difference, struct shard_reader *reader,
			      const struct segments *segments, const struct dataset_filter *filter)
{
	size_t first = segments->median < segments->worst ? segments->median : segments->worst;
	size_t last = segments->median + segments->worst - first;
	struct dataset_filter both = *filter;
	int made;

	*difference = (struct segments_difference){0};
	if (first == last)
		return 0;
	/* Within the times that the filter wants: the first and the last segment may be longer than those. */
	both.since_wall_ns = segments->items[first].begin_wall_ns;
	if (both.since_wall_ns < filter->since_wall_ns)
		both.since_wall_ns = filter->since_wall_ns;
	both.until_wall_ns = segments->items[last].begin_wall_ns + segments->length_ns;
	if (filter->until_wall_ns && both.until_wall_ns > filter->until_wall_ns)
		both.until_wall_ns = filter->until_wall_ns;
	shard_reader__rewind(reader);
	made = dataset_load(&difference->findings.dataset, reader, &both);
	if (made)
		return made == -ESRCH || made == -ENOENT ? 0 : made;
	made = compare(difference, reader, segments);
	if (made <= 0)
		dataset_free(&difference->findings.dataset);
	return made;
}

void segments_difference__free(struct segments_difference *difference)
{
	comparison_free(&difference->comparison);
	findings_unfollow(&difference->findings);
	dataset_free(&difference->findings.dataset);
}
