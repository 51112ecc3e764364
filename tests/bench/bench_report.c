// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long the ranking of causes takes: report_make() over synthetic intervals with counters that are nonzero in nearly
 * every one (DESIGN §8: five million intervals × 30 counters in 10 s on two cores).
 *
 *	bench_report [INTERVALS [COUNTERS]]
 *
 * One line on stdout: intervals, counters, seconds.  Making the data is not counted.
 */
#include "analysis/results.h"
#include "base/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEOPLE_CNT 64

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double random_unit(void)
{
	return ((double)(random_u64() >> 11) + 0.5) * 0x1p-53;
}

static void *room(size_t cnt, size_t sz)
{
	void *memory = calloc(cnt, sz);

	if (!memory) {
		fprintf(stderr, "bench_report: no memory for %zu values\n", cnt);
		exit(1);
	}
	return memory;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Every category gets an exponential time and, one time in fifty, a wait a hundred times as long; others carry blame.
 */
static void make_rows(struct dataset *dataset, size_t cnt)
{
	dataset->row_cnt = cnt;
	dataset->latency_ns = room(cnt, sizeof(uint64_t));
	dataset->weight = room(cnt, sizeof(double));
	dataset->type = room(cnt, sizeof(uint32_t));
	dataset->flags = room(cnt, sizeof(uint64_t));
	for (size_t i = 0; i < cnt; i++)
		dataset->weight[i] = random_u64() % 4 ? 1 : 100;
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		bool blame = c == WL_CATEGORY_RUNQ || c == WL_CATEGORY_LOCK || c == WL_CATEGORY_IO_DISK;

		dataset->category_ns[c] = room(cnt, sizeof(uint64_t));
		dataset->blame[c] = blame ? room(cnt, sizeof(struct dataset_blame)) : NULL;
		for (size_t i = 0; i < cnt; i++) {
			double ns = -log(random_unit()) * 1000 * (c + 1) * (random_u64() % 50 ? 1 : 100);

			dataset->category_ns[c][i] = (uint64_t)ns;
			dataset->latency_ns[i] += (uint64_t)ns;
			if (blame)
				dataset->blame[c][i] = (struct dataset_blame){.who = random_u64() % PEOPLE_CNT,
									      .pid = 1 + random_u64() % 1000};
		}
	}
}

/* Lengths and counts of the first states, then hardware counters with a third of their values missing. */
static void make_events(struct dataset *dataset, size_t event_cnt)
{
	static const char *const hwcounters[] = {"hw.cycles",     "hw.instructions", "hw.cache_misses",
						 "hw.cache_refs", "hw.branches",     "hw.branch_misses"};
	size_t hw_cnt = event_cnt < 6 ? 0 : 6;
	char name[64];

	dataset->events = room(event_cnt, sizeof(*dataset->events));
	for (size_t e = 0; e < event_cnt; e++) {
		uint64_t *values = room(dataset->row_cnt, sizeof(uint64_t));
		bool hw = e >= event_cnt - hw_cnt;
		int state = (int)(e / 2 % WL_STATE_CNT);
		uint64_t *missing = hw ? room(dataset->row_cnt / 64 + 1, sizeof(uint64_t)) : NULL;
		const uint64_t *part =
			dataset->category_ns[hw ? WL_CATEGORY_ONCPU : (enum wl_category)(e % WL_CATEGORY_CNT)];

		for (size_t i = 0; i < dataset->row_cnt; i++) {
			values[i] = e % 2 && !hw ? 1 + random_u64() % 200 : part[i] + random_u64() % 1000 + 1;
			if (hw && i / 4096 % 3 == 0)
				missing[i / 64] |= 1ULL << (i % 64);
		}
		snprintf(name, sizeof(name), "%s.%s", state_name(state), e % 2 ? "count" : "ns");
		dataset->events[e].name = strdup(hw ? hwcounters[e - (event_cnt - hw_cnt)] : name);
		dataset->events[e].is_length = e % 2 == 0 && !hw;
		dataset->events[e].values = values;
		dataset->events[e].missing = missing;
	}
	dataset->event_cnt = event_cnt;
}

int main(int argc, char **argv)
{
	size_t row_cnt = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
	size_t event_cnt = argc > 2 ? strtoull(argv[2], NULL, 10) : 30;
	const struct report_opts opts = {.tail = 0.99, .seed = 1};
	const char *strings[PEOPLE_CNT];
	struct dataset dataset = {.pid = -1, .strings = strings, .string_cnt = PEOPLE_CNT};
	struct report report;
	double begin_s;

	if (!row_cnt || !event_cnt) {
		fprintf(stderr, "usage: bench_report [INTERVALS [COUNTERS]]\n");
		return 2;
	}
	strings[0] = "";
	for (int i = 1; i < PEOPLE_CNT; i++)
		strings[i] = "somebody";
	make_rows(&dataset, row_cnt);
	make_events(&dataset, event_cnt);
	begin_s = now_s();
	if (report_make(&report, &dataset, &opts)) {
		fprintf(stderr, "bench_report: report_make failed\n");
		return 1;
	}
	printf("%zu intervals x %zu counters ranked in %.2f s; %zu causes\n", row_cnt, event_cnt, now_s() - begin_s,
	       report.cause_cnt);
	report_free(&report);
	return 0;
}
