// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cause: the value of a variable in a library that the server loads a second and a half after the warm-up.
 * Tables of late requests have some thousand items, those of others some hundred.
 *
 * PLUGIN_LOG names a file that gets a line `FROM_TS TO_TS ITEMS` for each call of the library.
 */
#include "lib/plugin.h"
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define LOADED_NS     1500000000ULL
#define BIG_PER_MILLE 30

static pthread_once_t once = PTHREAD_ONCE_INIT;
static plugin_scan_fn scan;
static FILE *items_log;

static void load(void)
{
	*(void **)&scan = library_symbol("libwlplugin.so", "plugin_scan");
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	bool big = request_chosen(request, BIG_PER_MILLE);
	struct plugin_table table = {.items = big ? (int)random_between(&worker->random_state, 4000, 9000)
						  : (int)random_between(&worker->random_state, 300, 500)};
	uint64_t from_ts = clock_now_ns(), to_ts, count_from_ts = atomic_load(&worker->run->board->count_from_ts);

	if (!count_from_ts || from_ts < count_from_ts + LOADED_NS) {
		burn(200 * NS_PER_US);
		return 0;
	}
	pthread_once(&once, load);
	from_ts = clock_now_ns();
	scan(&table);
	to_ts = clock_now_ns();
	if (items_log)
		fprintf(items_log, "%" PRIu64 " %" PRIu64 " %d\n", from_ts, to_ts, table.items);
	return big ? to_ts - from_ts : 0;
}

static int server_start(struct run *run)
{
	(void)run;
	items_log = log_open("PLUGIN_LOG");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct workload workload = {
		.name = "plugin",
		.category = "oncpu",
		.planted = "plugin_scan",
		.connection_cnt = 2,
		.rate_hz = 100,
		.default_duration_s = 10,
		.cpu_cnt_needed = 1,
		.server_start = server_start,
		.handle = handle,
	};

	return workload_main(argc, argv, &workload);
}
