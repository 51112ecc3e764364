// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_load.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* From when to when the recordings last. */
static int span_of(const struct dataset *dataset, uint64_t *begin_wall_ns, uint64_t *end_wall_ns)
{
	*begin_wall_ns = *end_wall_ns = 0;
	for (size_t h = 0; h < dataset->host_cnt; h++) {
		const struct dataset_host *host = &dataset->hosts[h];

		if (!host->begin_wall_ns)
			continue;
		if (!*begin_wall_ns || host->begin_wall_ns < *begin_wall_ns)
			*begin_wall_ns = host->begin_wall_ns;
		if (host->end_wall_ns > *end_wall_ns)
			*end_wall_ns = host->end_wall_ns;
	}
	return *begin_wall_ns ? 0 : -ENODATA;
}

void compare_side__facts(struct compare_facts *facts, const struct side *side, const struct dataset *dataset)
{
	*facts = (struct compare_facts){
		.label = side->label,
		.host = dataset->host,
		.kernel = dataset->kernel,
		.comm = dataset->comm,
		.pid = dataset->pid,
		.host_cnt = dataset->host_cnt,
		.duration_s = dataset->duration_s,
		.intervals_seen = dataset->intervals_seen,
		.intervals_flagged = dataset->intervals_flagged,
		.records_lost = dataset->records_lost,
		.intervals_kept = dataset->row_cnt,
		.windowed = dataset->window_cnt > 0,
		.lost_share = report_lost_share(dataset),
	};
	for (size_t h = 0; h < dataset->host_cnt; h++)
		facts->session_cnt += dataset->hosts[h].session_cnt;
	memcpy(facts->loss, dataset->loss, sizeof(facts->loss));
	span_of(dataset, &facts->begin_wall_ns, &facts->end_wall_ns);
}

int compare_side__load(struct compare_loaded *loaded, const struct side *side, const char *type,
		       struct shard_reader *reader)
{
	struct dataset_filter filter = {.type = type, .host = side->host, .without_events = true};
	uint64_t begin_wall_ns, end_wall_ns;
	int err = dataset_load(&loaded->dataset, reader, &filter);

	if (err || !side->has_span)
		return err;
	err = span_of(&loaded->dataset, &begin_wall_ns, &end_wall_ns);
	dataset_free(&loaded->dataset);
	if (err)
		return err;
	filter.since_wall_ns = loaded->since_wall_ns = side_time__wall_ns(&side->from, begin_wall_ns, end_wall_ns);
	filter.until_wall_ns = loaded->until_wall_ns = side_time__wall_ns(&side->to, begin_wall_ns, end_wall_ns);
	return dataset_load(&loaded->dataset, reader, &filter);
}

static bool has_session(const struct compare_loaded *loaded, uint64_t id)
{
	for (size_t s = 0; s < loaded->dataset.session_cnt; s++)
		if (loaded->dataset.session_ids[s] == id)
			return true;
	return false;
}

static bool is_on_side(const struct compare_loaded *loaded, const struct side *side, const struct dataset *dataset,
		       size_t row)
{
	uint32_t session = dataset->session[row];
	uint64_t wall_ns = dataset->begin_ts[row] + (uint64_t)dataset->session_clock_ns[session];
	uint32_t host = dataset->host_idx ? dataset->host_idx[row] : 0;

	if (!has_session(loaded, dataset->session_ids[session]))
		return false;
	if (side->host && dataset->host_cnt && fnmatch(side->host, dataset->hosts[host].name, 0))
		return false;
	return wall_ns >= loaded->since_wall_ns && (!loaded->until_wall_ns || wall_ns < loaded->until_wall_ns);
}

uint8_t *compare_sides_of(const struct dataset *dataset, const struct side *sides_of,
			  const struct compare_loaded *loaded)
{
	uint8_t *sides = calloc(dataset->row_cnt + 1, sizeof(*sides));

	for (size_t row = 0; sides && row < dataset->row_cnt; row++) {
		if (is_on_side(&loaded[COMPARE_A], &sides_of[COMPARE_A], dataset, row))
			sides[row] |= COMPARE_IN_A;
		if (is_on_side(&loaded[COMPARE_B], &sides_of[COMPARE_B], dataset, row))
			sides[row] |= COMPARE_IN_B;
	}
	return sides;
}
