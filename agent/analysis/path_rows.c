// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/path_rows.h"

#include <stdlib.h>

int path_rows__init(struct path_rows *ranked, const struct report *report, const struct paths *paths)
{
	const struct dataset *dataset = report->dataset;
	size_t cnt = 0;

	ranked->latency_ns = malloc((paths->row_cnt + 1) * sizeof(*ranked->latency_ns));
	ranked->weights = malloc((paths->row_cnt + 1) * sizeof(*ranked->weights));
	ranked->at = malloc((paths->row_cnt + 1) * sizeof(*ranked->at));
	ranked->windows = malloc((paths->row_cnt + 1) * sizeof(*ranked->windows));
	if (!ranked->latency_ns || !ranked->weights || !ranked->windows || !ranked->at)
		return -ENOMEM;
	for (size_t row = 0; row < paths->row_cnt; row++) {
		double latency_ns = (double)dataset->latency_ns[row];

		if (!paths->ranked[row])
			continue;
		ranked->at[row] = (uint32_t)cnt;
		ranked->latency_ns[cnt] = dataset->latency_ns[row];
		ranked->windows[cnt] = dataset->window_cnt ? dataset->window[row] : 0;
		ranked->weights[cnt++] = dataset->weight[row];
		if (latency_ns >= report->tail_threshold_ns)
			ranked->late_weight += dataset->weight[row];
		if (latency_ns <= report->typical_ns)
			ranked->typical_weight += dataset->weight[row];
	}
	ranked->rows = (struct share_rows){
		.row_cnt = cnt,
		.latency_ns = ranked->latency_ns,
		.weights = ranked->weights,
		.windows = dataset->window_cnt ? ranked->windows : NULL,
		.median_ns = report->typical_ns,
		.late_ns = report->tail_threshold_ns,
	};
	return 0;
}

void path_rows__free(struct path_rows *ranked)
{
	free(ranked->at);
	free(ranked->windows);
	free(ranked->weights);
	free(ranked->latency_ns);
}
