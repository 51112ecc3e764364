/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The days that the database has rows of, and which of them are rolled up as they are now (project_rollups.c). */
#ifndef WHYLATE_NET_PROJECT_DAYS_H
#define WHYLATE_NET_PROJECT_DAYS_H

#include "net/project/clickhouse.h"

struct project_day {
	uint32_t number;               /* since 1970 */
	uint32_t date;                 /* 20261113 */
	char text[16];                 /* "2026-11-13" */
	uint64_t row_cnt;              /* in `intervals` */
	uint64_t generation;           /* the latest one that has a row in `summed_days`; 0: none */
	bool is_whole;                 /* it is of as many rows */
	uint64_t begin_min, begin_max; /* where it is whole: of rows that stand for something */
};

struct project_days {
	struct project_day *items;
	size_t cnt;
};

/* By date.  0 or as clickhouse__ask(); a database of an older whylate has no rollups. */
int project_days__load(struct project_days *days, struct clickhouse *server);
void project_days__free(struct project_days *days);
/* NULL: there are no rows of that day. */
struct project_day *project_days__by_date(const struct project_days *days, uint32_t date);

#endif
