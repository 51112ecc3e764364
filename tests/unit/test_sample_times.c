// SPDX-License-Identifier: GPL-2.0-or-later
/* What samples tell of functions, against the exact times of a simulated server. */
#include "test_analysis_fixture.h"
#include "unit.h"

#include "analysis/factors_report.h"
#include "analysis/sample_times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS        1000000.0
#define CNT       2000
#define OWN_NS    (1e9 / 997)
#define KERNEL_NS 4000000.0
#define TID       7

enum { HANDLE, PARSE, REBUILD, COPY, COMPARE, LOCK, FUNC_CNT };
static const int parents[FUNC_CNT] = {-1, HANDLE, HANDLE, REBUILD, REBUILD, HANDLE};

#define BARS .bias_max = 0.01, .covered_min = 0.90

/* A kind of load, and how it is recorded. */
struct load {
	const char *name;
	double parse_ns, rebuild_ns, lock_ns; /* means */
	double rebuild_chance;
	double sigma;   /* of the logarithm of a rebuild's length */
	bool episodes;  /* rebuilds come in bursts */
	bool weighted;  /* of typical ones a tenth is kept */
	bool own_clock; /* ours alone */
	double mix_ns;  /* pieces in which copy and compare take turns; 0: one after the other */
	double bias_max, covered_min;
};

struct simulation {
	const struct load *load;
	uint64_t state, seed;
	double now, own_ts, own_ns, redraw_ts, kernel_ts;
	double episode_until;
	struct variance_tree *exact, *estimated, *all;
	uint32_t nodes[FUNC_CNT];
	struct sample_times times;
	struct call_times row; /* of one request */
	double ns[FUNC_CNT];   /* self times of the request under way */
	uint64_t latency_ns[CNT];
	double weights[CNT];
	size_t cnt;
};

static double uniform(struct simulation *sim)
{
	return fixture_uniform(&sim->state);
}

/* The next tick of either clock; *period_ns is that of both together. */
static double next_tick(struct simulation *sim, double *period_ns)
{
	double ts;

	if (sim->own_ts > sim->redraw_ts) {
		sim->own_ns = OWN_NS * (0.8 + 0.4 * uniform(sim));
		sim->redraw_ts += 50 * MS;
	}
	*period_ns = sim->load->own_clock ? sim->own_ns : 1 / (1 / sim->own_ns + 1 / KERNEL_NS);
	if (sim->load->own_clock || sim->own_ts < sim->kernel_ts) {
		ts = sim->own_ts;
		sim->own_ts += sim->own_ns;
	} else {
		ts = sim->kernel_ts;
		sim->kernel_ts += KERNEL_NS;
	}
	return ts;
}

static void run(struct simulation *sim, int func, double ns, bool kept)
{
	double end = sim->now + ns, period_ns;

	sim->ns[func] += ns;
	while (fmin(sim->own_ts, sim->load->own_clock ? INFINITY : sim->kernel_ts) < end) {
		double ts = next_tick(sim, &period_ns);

		if (ts >= sim->now && kept)
			sample_times__tick(&sim->times, TID, sim->nodes[func], (uint64_t)ts, period_ns);
	}
	if (kept)
		sample_times__stretch(&sim->times, TID, (uint64_t)sim->now, (uint64_t)end);
	sim->now = end;
}

static bool rebuilds(struct simulation *sim)
{
	const struct load *load = sim->load;

	if (!load->episodes)
		return uniform(sim) < load->rebuild_chance;
	if (sim->now > sim->episode_until && uniform(sim) < load->rebuild_chance / 20)
		sim->episode_until = sim->now + 20 * (load->parse_ns + load->rebuild_ns);
	return sim->now < sim->episode_until;
}

static void add_exact(struct simulation *sim, double weight, uint64_t latency_ns)
{
	struct tree_interval interval = {.weight = weight, .latency_ns = latency_ns};
	struct tree_time times[FUNC_CNT];
	size_t cnt = 0;

	for (int f = 0; f < FUNC_CNT; f++)
		times[f] = (struct tree_time){.node = sim->nodes[f]};
	for (int f = FUNC_CNT - 1; f >= 0; f--)
		for (int at = f; at >= 0; at = parents[at])
			times[at].ns += (uint64_t)sim->ns[f];
	for (int f = 0; f < FUNC_CNT; f++)
		if (times[f].ns)
			times[cnt++] = times[f];
	CU_ASSERT_EQUAL_FATAL(variance_tree__add(sim->exact, &interval, times, cnt), 0);
	CU_ASSERT_EQUAL_FATAL(variance_tree__add(sim->all, &interval, times, cnt), 0);
}

static void request(struct simulation *sim)
{
	const struct load *load = sim->load;
	double begin = sim->now, weight = 1, rebuild_ns = 0, lock_ns = 0;
	bool slow = rebuilds(sim), kept = true;

	/* Most of what is not late is not recorded. */
	if (load->weighted && !slow && uniform(sim) >= 0.1)
		kept = false;
	else if (load->weighted && !slow)
		weight = 10;
	memset(sim->ns, 0, sizeof(sim->ns));
	if (kept)
		sample_times__begin(&sim->times, 0);
	run(sim, PARSE, load->parse_ns * fixture_exponential(&sim->state), kept);
	if (slow) {
		double normal = sqrt(2 * fixture_exponential(&sim->state)) * cos(6.283185307 * uniform(sim));

		rebuild_ns = load->rebuild_ns * exp(load->sigma * normal - load->sigma * load->sigma / 2);
		rebuild_ns = fmin(rebuild_ns, 1000 * MS);
	}
	for (double left = rebuild_ns; left > 0; left -= load->mix_ns > 0 ? load->mix_ns : rebuild_ns) {
		double piece = load->mix_ns > 0 ? fmin(left, load->mix_ns) : left;

		run(sim, REBUILD, piece * 0.1, kept);
		run(sim, COPY, piece * 0.6, kept);
		run(sim, COMPARE, piece * 0.3, kept);
	}
	if (load->lock_ns > 0 && uniform(sim) < 0.2)
		lock_ns = load->lock_ns * fixture_exponential(&sim->state);
	sim->ns[LOCK] = lock_ns;
	sim->now += lock_ns;
	if (!kept)
		return;
	if (lock_ns > 0)
		sample_times__wait(&sim->times, sim->nodes[LOCK], (uint64_t)lock_ns, TREE_LOCK);
	sim->latency_ns[sim->cnt] = (uint64_t)(sim->now - begin) + FUNC_CNT;
	sim->weights[sim->cnt] = weight;
	add_exact(sim, weight, sim->latency_ns[sim->cnt]);
	sim->cnt++;
}

/* What is exact is added to `all`, too, whose nodes have the same numbers. */
static void simulate(struct simulation *sim, const struct load *load, uint64_t seed, struct variance_tree *all)
{
	*sim = (struct simulation){.load = load, .state = seed, .own_ns = OWN_NS, .all = all};
	sim->own_ts = uniform(sim) * OWN_NS;
	sim->kernel_ts = uniform(sim) * KERNEL_NS;
	sim->exact = variance_tree__new();
	sim->estimated = variance_tree__new();
	CU_ASSERT_FATAL(sim->exact && sim->estimated);
	variance_tree__estimate(sim->estimated);
	for (int f = 0; f < FUNC_CNT; f++) {
		const struct tree_call call = {.func = (uint32_t)f};
		uint32_t parent = parents[f] < 0 ? TREE_ROOT : sim->nodes[parents[f]];

		uint32_t node;

		CU_ASSERT_EQUAL_FATAL(variance_tree__node(sim->exact, parent, &call, &sim->nodes[f]), 0);
		CU_ASSERT_EQUAL_FATAL(variance_tree__node(all, parent, &call, &node), 0);
		CU_ASSERT_EQUAL_FATAL(node, sim->nodes[f]);
		CU_ASSERT_EQUAL_FATAL(variance_tree__node(sim->estimated, parent, &call, &sim->nodes[f]), 0);
	}
	while (sim->cnt < CNT) {
		sim->now += 0.3 * MS * fixture_exponential(&sim->state);
		request(sim);
	}
	sample_times__settle(&sim->times);
}

static void simulation_free(struct simulation *sim)
{
	variance_tree__free(sim->exact);
	variance_tree__free(sim->estimated);
	sample_times__free(&sim->times);
	call_times__free(&sim->row);
}

static struct tree_interval interval_of(struct simulation *sim, size_t row)
{
	CU_ASSERT_EQUAL_FATAL(sample_times__row(&sim->times, sim->estimated, row, &sim->row), 0);
	return (struct tree_interval){
		.weight = sim->weights[row],
		.latency_ns = sim->latency_ns[row],
		.noise = sim->times.noise.items,
		.noise_cnt = sim->times.noise.cnt,
	};
}

static uint32_t height_of(void *ctx, uint32_t func)
{
	(void)ctx;
	return func == HANDLE ? 2 : func == REBUILD;
}

/* --- sums over recordings ------------------------------------------------------------------------------------------
 */

#define FACTORS_MAX 64
#define RUNS        24

struct outcome {
	double estimate, exact;
	struct ci ci;
};

struct kept_factor {
	uint32_t funcs[2];
	bool body[2];
	struct outcome runs[RUNS];
	size_t run_cnt;
	double weighted_var; /* of the exact term over all runs */
};

struct study {
	struct kept_factor factors[FACTORS_MAX];
	size_t cnt;
	struct variance_tree *all; /* exact, of all runs */
	uint32_t nodes[FUNC_CNT];
};

static double exact_contribution(const struct variance_tree *tree, const struct factors *factors,
				 const struct factor *factor)
{
	struct tree_stats root, stats;
	const uint32_t *nodes = factors->instances.items + factor->first_instance;

	variance_tree__stats(tree, TREE_ROOT, &root);
	if (factor->funcs[1] != FACTOR_NONE)
		return 2 * variance_tree__cov(tree, nodes[0], nodes[1]) / root.variance_ns2;
	variance_tree__stats(tree, nodes[0], &stats);
	return stats.variance_ns2 / root.variance_ns2;
}

static struct kept_factor *kept(struct study *study, const struct factor *factor)
{
	struct kept_factor *at = study->factors;

	for (size_t i = 0; i < study->cnt; i++, at++)
		if (at->funcs[0] == factor->funcs[0] && at->funcs[1] == factor->funcs[1] &&
		    at->body[0] == factor->body[0] && at->body[1] == factor->body[1])
			return at;
	CU_ASSERT_FATAL(study->cnt < FACTORS_MAX);
	study->cnt++;
	*at = (struct kept_factor){.funcs = {factor->funcs[0], factor->funcs[1]},
				   .body = {factor->body[0], factor->body[1]}};
	return at;
}

static void look_at(struct study *study, struct simulation *sim)
{
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	const struct share_opts opts = {.bootstrap_cnt = 200, .seed = 1};
	struct share_rows rows = {.row_cnt = sim->cnt, .latency_ns = sim->latency_ns, .weights = sim->weights};
	struct factor_line lines[FACTORS_MAX];
	uint32_t order[FACTORS_MAX];
	struct factor_confidence *confidence;
	struct factors factors;

	for (size_t row = 0; row < sim->cnt; row++) {
		struct tree_interval interval = interval_of(sim, row);

		CU_ASSERT_EQUAL_FATAL(
			variance_tree__add(sim->estimated, &interval, sim->row.times.items, sim->row.times.cnt), 0);
	}
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, sim->estimated, &rule, 3, height_of, NULL), 0);
	CU_ASSERT_FATAL(factors.list.cnt <= FACTORS_MAX);
	for (uint32_t f = 0; f < factors.list.cnt; f++) {
		order[f] = f;
		lines[f].contribution = factors.list.items[f].contribution;
	}
	confidence = factor_confidence__new(order, factors.list.cnt, &factors, &rows, &opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(confidence);
	for (size_t row = 0; row < sim->cnt; row++) {
		struct tree_interval interval = interval_of(sim, row);

		CU_ASSERT_EQUAL_FATAL(
			variance_tree__visit(sim->estimated, &interval, sim->row.times.items, sim->row.times.cnt), 0);
		factor_confidence__add(confidence, row, sim->estimated);
	}
	CU_ASSERT_EQUAL_FATAL(factor_confidence__finish(confidence, lines, factors.list.cnt), 0);
	for (size_t f = 0; f < factors.list.cnt; f++) {
		struct kept_factor *to = kept(study, &factors.list.items[f]);

		to->runs[to->run_cnt++] = (struct outcome){
			lines[f].contribution, exact_contribution(sim->exact, &factors, &factors.list.items[f]),
			lines[f].contribution_ci};
	}
	factor_confidence__free(confidence);
	factors_free(&factors);
}

/* Of all runs together, which no run's chance moves. */
static double truth_of(const struct study *study, const struct kept_factor *factor)
{
	struct tree_stats root, stats;
	struct tree_node node;
	uint32_t at[2];

	variance_tree__stats(study->all, TREE_ROOT, &root);
	for (int i = 0; i < 2 && factor->funcs[i] != FACTOR_NONE; i++) {
		at[i] = study->nodes[factor->funcs[i]];
		variance_tree__node_at(study->all, at[i], &node);
		if (factor->body[i])
			at[i] = node.body;
	}
	if (factor->funcs[1] != FACTOR_NONE)
		return 2 * variance_tree__cov(study->all, at[0], at[1]) / root.variance_ns2;
	variance_tree__stats(study->all, at[0], &stats);
	return stats.variance_ns2 / root.variance_ns2;
}

/* The means of a few runs are off by chance, too. */
static double standard_error(const struct kept_factor *factor, double bias)
{
	double sum = 0;

	for (size_t r = 0; r < factor->run_cnt; r++)
		sum += pow(factor->runs[r].estimate - factor->runs[r].exact - bias, 2);
	return sqrt(sum) / (double)factor->run_cnt;
}

static void check_load(const struct load *load)
{
	static struct simulation sim;
	static struct study study;
	size_t covered = 0, asked = 0;

	study = (struct study){.all = variance_tree__new()};
	CU_ASSERT_PTR_NOT_NULL_FATAL(study.all);
	for (uint64_t run = 0; run < RUNS; run++) {
		simulate(&sim, load, 1000 * run + 17, study.all);
		memcpy(study.nodes, sim.nodes, sizeof(study.nodes));
		look_at(&study, &sim);
		simulation_free(&sim);
	}
	for (size_t f = 0; f < study.cnt; f++) {
		const struct kept_factor *factor = &study.factors[f];
		double bias = 0, truth = truth_of(&study, factor);

		for (size_t r = 0; r < factor->run_cnt; r++) {
			bias += (factor->runs[r].estimate - factor->runs[r].exact) / (double)factor->run_cnt;
			if (fabs(truth) < 0.02)
				continue;
			asked++;
			covered += factor->runs[r].ci.lo <= truth && truth <= factor->runs[r].ci.hi;
		}
		if (getenv("VERBOSE"))
			printf("%s %u%s %d%s: truth %.4f bias %.4f\n", load->name, factor->funcs[0],
			       factor->body[0] ? "b" : "", (int)factor->funcs[1], factor->body[1] ? "b" : "", truth,
			       bias);
		if (factor->run_cnt == RUNS)
			CU_ASSERT(fabs(bias) <= load->bias_max + 2.5 * standard_error(factor, bias));
	}
	if (getenv("VERBOSE"))
		printf("%s: covered %.3f of %zu\n", load->name, (double)covered / (double)asked, asked);
	CU_ASSERT((double)covered >= load->covered_min * (double)asked);
	CU_ASSERT((double)covered <= 0.985 * (double)asked);
	variance_tree__free(study.all);
}

static void squares_have_no_bias(void)
{
	static const struct load loads[] = {
		{.name = "long",
		 BARS,
		 .parse_ns = 2 * MS,
		 .rebuild_ns = 10 * MS,
		 .lock_ns = 5 * MS,
		 .rebuild_chance = 0.3,
		 .sigma = 0.5},
		{.name = "mixed",
		 BARS,
		 .parse_ns = 2 * MS,
		 .rebuild_ns = 10 * MS,
		 .lock_ns = 5 * MS,
		 .rebuild_chance = 0.3,
		 .sigma = 0.5,
		 .mix_ns = 0.1 * MS},
		{.name = "short",
		 BARS,
		 .parse_ns = 0.2 * MS,
		 .rebuild_ns = 1 * MS,
		 .lock_ns = 0.5 * MS,
		 .rebuild_chance = 0.3,
		 .sigma = 0.5},
		{.name = "heavy", BARS, .parse_ns = 1 * MS, .rebuild_ns = 5 * MS, .rebuild_chance = 0.3, .sigma = 0.8},
		{.name = "rare",
		 BARS,
		 .parse_ns = 0.3 * MS,
		 .rebuild_ns = 20 * MS,
		 .rebuild_chance = 0.02,
		 .sigma = 0.2},
		{.name = "episodes",
		 BARS,
		 .parse_ns = 1 * MS,
		 .rebuild_ns = 8 * MS,
		 .lock_ns = 3 * MS,
		 .rebuild_chance = 0.1,
		 .sigma = 0.3,
		 .episodes = true},
		{.name = "weighted",
		 BARS,
		 .parse_ns = 1 * MS,
		 .rebuild_ns = 8 * MS,
		 .lock_ns = 3 * MS,
		 .rebuild_chance = 0.03,
		 .sigma = 0.3,
		 .weighted = true},
		/* One clock never ticks twice within most of its period: what varies in less is not seen. */
		{.name = "own clock",
		 .bias_max = 0.02,
		 .covered_min = 0.85,
		 .parse_ns = 1 * MS,
		 .rebuild_ns = 8 * MS,
		 .lock_ns = 3 * MS,
		 .rebuild_chance = 0.1,
		 .sigma = 0.3,
		 .own_clock = true},
	};

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		check_load(&loads[i]);
}

int suite_sample_times(void)
{
	static const struct unit_test tests[] = {
		{"squares_have_no_bias", squares_have_no_bias},
	};

	return unit_suite("sample_times", tests, sizeof(tests) / sizeof(tests[0]));
}
