// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/days.h"

#include "base/order.h"
#include "base/vec.h"
#include "net/project/sql.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define DAY_S 86400

ORDER(by_date, struct project_day, BY(a->date, b->date));

struct project_day *project_days__by_date(const struct project_days *days, uint32_t date)
{
	const struct project_day wanted = {.date = date};

	return days->cnt ? bsearch(&wanted, days->items, days->cnt, sizeof(wanted), by_date) : NULL;
}

/* "20261113": false where it is no day. */
static bool take_date(struct project_day *day, const char *text)
{
	unsigned year, month, of_month;
	struct tm tm = {0};
	int end = 0;
	time_t at;

	if (sscanf(text, "%4u%2u%2u%n", &year, &month, &of_month, &end) != 3 || text[end] || year < 1970 || !month ||
	    month > 12 || !of_month || of_month > 31)
		return false;
	tm.tm_year = (int)year - 1900;
	tm.tm_mon = (int)month - 1;
	tm.tm_mday = (int)of_month;
	at = timegm(&tm);
	day->number = (uint32_t)(at / DAY_S);
	day->date = year * 10000 + month * 100 + of_month;
	snprintf(day->text, sizeof(day->text), "%04u-%02u-%02u", year, month, of_month);
	return true;
}

static int ask_partitions(struct clickhouse *server, const char *parts, struct clickhouse_rows *rows)
{
	return sql_ask(server, 2, rows,
		       "SELECT partition_id, sum(rows) FROM %s WHERE database = '%s' AND table IN ('intervals', "
		       "'intervals_local') AND active GROUP BY partition_id",
		       parts, clickhouse__database(server));
}

static int load_partitions(struct project_days *days, struct clickhouse *server)
{
	VEC(struct project_day) found = {0};
	struct clickhouse_rows rows = {0};
	char parts[96];
	int err;

	snprintf(parts, sizeof(parts), "%s.server_parts", clickhouse__database(server));
	err = ask_partitions(server, parts, &rows);
	/* A database of an older whylate. */
	if (err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE)
		err = ask_partitions(server, "system.parts", &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		struct project_day day = {0};

		if (!take_date(&day, rows.cells[2 * i]) || !clickhouse_u64(rows.cells[2 * i + 1], &day.row_cnt))
			err = -EBADMSG;
		else
			err = vec_push(&found, day);
	}
	clickhouse_rows__free(&rows);
	vec_sort(&found, by_date);
	days->items = found.items;
	days->cnt = found.cnt;
	return err;
}

static int load_rollups(struct project_days *days, struct clickhouse *server)
{
	struct clickhouse_rows rows;
	int err = sql_ask(server, 5, &rows,
			  "SELECT toYYYYMMDD(day), max(generation), argMax(row_cnt, generation), argMax(begin_min, "
			  "generation), argMax(begin_max, generation) FROM %s.summed_days GROUP BY day",
			  clickhouse__database(server));

	if (err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE)
		return 0;
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + 5 * i;
		uint64_t date, row_cnt, generation, begin_min, begin_max;
		struct project_day *day;

		if (!clickhouse_u64(cells[0], &date) || !clickhouse_u64(cells[1], &generation) ||
		    !clickhouse_u64(cells[2], &row_cnt) || !clickhouse_u64(cells[3], &begin_min) ||
		    !clickhouse_u64(cells[4], &begin_max)) {
			err = -EBADMSG;
			break;
		}
		day = project_days__by_date(days, (uint32_t)date);
		if (!day)
			continue;
		day->generation = generation;
		day->is_whole = row_cnt == day->row_cnt;
		day->begin_min = begin_min;
		day->begin_max = begin_max;
	}
	clickhouse_rows__free(&rows);
	return err;
}

int project_days__load(struct project_days *days, struct clickhouse *server)
{
	int err;

	*days = (struct project_days){0};
	err = load_partitions(days, server) ?: load_rollups(days, server);
	if (err)
		project_days__free(days);
	return err;
}

void project_days__free(struct project_days *days)
{
	free(days->items);
	*days = (struct project_days){0};
}
