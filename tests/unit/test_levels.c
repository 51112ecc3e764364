// SPDX-License-Identifier: GPL-2.0-or-later
/* The intervals of quantiles against a truth that is known. */
#include "test_analysis_fixture.h"
#include "unit.h"

#include "analysis/levels.h"
#include "analysis/stats.h"

#include <math.h>
#include <string.h>

#define US 1000ULL
#define MS 1000000ULL

#define WINDOW_CNT 40
#define OF_WINDOW  50
#define ROW_CNT    ((size_t)WINDOW_CNT * OF_WINDOW)
#define RUNS       100

struct sample {
	uint64_t latency_ns[ROW_CNT];
	double weights[ROW_CNT];
	uint32_t windows[ROW_CNT];
};

/* Episodes: so many windows of a hundred meet one, and in these so many requests of a hundred take 16 ms. */
static void draw(struct sample *sample, double windows_slow, double requests_slow, uint64_t *state)
{
	for (size_t w = 0; w < WINDOW_CNT; w++) {
		bool slow = fixture_uniform(state) < windows_slow / 100;

		for (size_t i = w * OF_WINDOW; i < (w + 1) * OF_WINDOW; i++) {
			sample->windows[i] = (uint32_t)w + 1;
			sample->weights[i] = 1;
			sample->latency_ns[i] = slow && fixture_uniform(state) < requests_slow / 100
							? 16 * MS
							: 50 * US + (uint64_t)(fixture_uniform(state) * 100 * US);
		}
	}
}

static bool is_in(struct ci ci, double ns)
{
	return ci.lo <= ns && ns <= ci.hi;
}

static struct levels levels_of(const struct sample *sample, uint64_t seed, struct latency_summary *latency)
{
	struct dataset dataset = {.window_cnt = WINDOW_CNT, .intervals_seen = ROW_CNT};
	const struct share_rows rows = {.row_cnt = ROW_CNT,
					.latency_ns = sample->latency_ns,
					.weights = sample->weights,
					.windows = sample->windows};
	const struct report_opts opts = {.bootstrap_cnt = 100, .seed = seed};
	struct report report = {.dataset = &dataset};
	struct stats_order order;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, sample->latency_ns, sample->weights, ROW_CNT), 0);
	stats_summarize(&report.latency, &order);
	stats_order__free(&order);
	CU_ASSERT_EQUAL_FATAL(levels_make(&report, &rows, &opts), 0);
	CU_ASSERT(is_in(report.levels.p50_ci, report.latency.p50_ns));
	CU_ASSERT(is_in(report.levels.p90_ci, report.latency.p90_ns));
	CU_ASSERT(is_in(report.levels.p99_ci, report.latency.p99_ns));
	/* Of 2000 rows two are beyond it; as long as it, episodes may be more. */
	CU_ASSERT(report.levels.p999_ci.lo <= report.latency.p999_ns);
	CU_ASSERT(isnan(report.levels.p999_ci.hi) || report.latency.p999_ns <= report.levels.p999_ci.hi);
	*latency = report.latency;
	return report.levels;
}

static struct ci p99_of(const struct sample *sample, uint64_t seed, double *p99_ns)
{
	struct latency_summary latency;
	struct levels levels = levels_of(sample, seed, &latency);

	*p99_ns = latency.p99_ns;
	return levels.p99_ci;
}

/* One and a half of a hundred requests take 16 ms, half of one in the other case: four windows or one meet any. */
static void its_interval_tells_how_few_episodes_were_met(void)
{
	static struct sample sample;
	uint64_t state = 5;
	int found = 0, covered = 0, covered_rare = 0;
	double p99_ns;

	for (uint64_t run = 0; run < RUNS; run++) {
		struct ci ci;

		draw(&sample, 10, 15, &state);
		ci = p99_of(&sample, run, &p99_ns);
		found += p99_ns >= 15 * MS;
		covered += ci.hi >= 15 * MS;
		draw(&sample, 3, 15, &state);
		ci = p99_of(&sample, run, &p99_ns);
		covered_rare += ci.lo <= 150 * US;
	}
	CU_ASSERT(found < 85);
	CU_ASSERT(covered >= 90);
	CU_ASSERT(covered_rare >= 95);
}

/* Where all windows are alike it is short; where two requests reach the p99.9, it has no upper end. */
static void it_is_short_where_all_is_alike(void)
{
	static struct sample sample;
	struct latency_summary latency;
	uint64_t state = 5;
	double p99_ns;
	struct ci ci;

	draw(&sample, 0, 0, &state);
	ci = p99_of(&sample, 1, &p99_ns);
	CU_ASSERT(ci.lo > 145 * US && ci.hi < 150 * US);
	CU_ASSERT(isnan(levels_of(&sample, 1, &latency).p999_ci.hi));
}

/*
 * A server that stands still now and then: in a quarter of the windows every second request takes 16 ms, an eighth of
 * all.  Of few windows the p90 is either one or the other, and its interval says so; the median of all is short.
 */
static void a_p90_of_few_windows_is_not_sure(void)
{
	static struct sample sample;
	uint64_t state = 9;
	int covered = 0, covered_p50 = 0, wrong = 0;

	for (uint64_t run = 0; run < RUNS; run++) {
		struct latency_summary latency;
		struct levels levels;

		draw(&sample, 25, 50, &state);
		levels = levels_of(&sample, run, &latency);
		wrong += latency.p90_ns < 15 * MS;
		covered += is_in(levels.p90_ci, 16 * MS);
		/* Of the seven eighths that are drawn from 50 to 150 us, four sevenths are below the median. */
		covered_p50 += is_in(levels.p50_ci, 107.1 * US);
	}
	CU_ASSERT(wrong > 10);
	CU_ASSERT(covered >= 90);
	CU_ASSERT(covered_p50 >= 90);
}

int suite_levels(void)
{
	static const struct unit_test tests[] = {
		{"its interval tells how few episodes were met", its_interval_tells_how_few_episodes_were_met},
		{"it is short where all is alike", it_is_short_where_all_is_alike},
		{"a p90 of few windows is not sure", a_p90_of_few_windows_is_not_sure},
	};

	return unit_suite("levels", tests, sizeof(tests) / sizeof(tests[0]));
}
