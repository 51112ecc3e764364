// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes on many functions of a process, by the product's own planner and capture and nothing else of it: for the tests
 * that prove them harmless and exact, and for the benchmarks.  A line of JSON per round on stdout.
 *
 *   prober -p PID [-m MODULE]… [-r FUNCTION] [-g GLOB] [-n MAX] [-t ROUNDS] [-w MS] [-e] [-i FUNCTION] [-x | -l | -k]
 *
 * -m   the executable unless given (several: all of them)      -g   functions whose raw name matches
 * -r   of the executable, those beneath this function, the nearest first
 * -n   at most so many, spread over all there are              -t   attach, wait -w milliseconds, detach: so often
 * -e   entries only                                            -i   calls of this function are the intervals
 * -x   compare: first find what is called at all, then probe the planned site and the plain entry of each together; the
 *      target is stopped while probes come and go, so that both see the same calls
 * -l   list those that are called at all and how often, one a line: of one bearer only, and such as others can probe
 * -k   nothing is probed: breakpoint registers count; one a line with the calls that were met, and in how many ns of
 * CPU time; four times, each within so many seconds as -t says
 */
#include "capture/call_rates.h"
#include "capture/capture.h"
#include "capture/probes.h"
#include "probe/plan.h"
#include "target/program.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULES_MAX      8
#define RING_SZ          (4U << 20)
#define MODULE_WAITS     2000
#define PROBES_AT_A_TIME 4000
#define COUNT_ROUNDS     4 /* of -k */

struct options {
	pid_t pid;
	const char *modules[MODULES_MAX];
	uint32_t module_cnt;
	const char *glob, *interval, *root;
	size_t max;
	uint32_t rounds, wait_ms;
	bool entry_only, compare, list, counted;
};

/* A function, and the probe that it gets. */
struct target_function {
	struct program_function function; /* a copy: reading another module may move them */
	const char *file;
	struct plan plan, plain;
	uint64_t hits; /* in the time that was waited */
};

struct prober {
	struct options options;
	struct program *program;
	struct capture *capture;
	target_processes processes;
	target_listeners listeners;
	target_mappings mappings; /* where calls are counted without probes */
	VEC(struct target_function) functions;
	VEC(struct probe) probes;
	struct probe_hits *hits;
	size_t refused_cnt, exit_cnt[3], cost_cnt[PLAN_COST_CNT], plain_cost_cnt[PLAN_COST_CNT], moved_cnt;
	uint64_t record_cnt;
};

/* --- which functions --------------------------------------------------------------------------------------------- */

static int add_function(struct prober *prober, const char *file, const struct program_function *function)
{
	const struct plan_needs needs = {.exit = !prober->options.entry_only};
	struct target_function target = {.function = *function, .file = file};
	const char *why;
	int err = plan_make(prober->program, function->id, &needs, &target.plan);

	if (err || !target.plan.possible) {
		prober->refused_cnt += !err;
		plan_free(&target.plan);
		return err;
	}
	target.plain = (struct plan){
		.function = function->id,
		.possible = true,
		.entry = {.file_off = function->file_off, .cost = PLAN_STEPPED},
		.exit = PLAN_EXIT_NONE,
	};
	target.plain.possible =
		!plan_site_check(prober->program, function->module, function->file_off, &target.plain.entry.cost, &why);
	return vec_push(&prober->functions, target) ? -ENOMEM : 0;
}

static int add_module(struct prober *prober, uint32_t idx)
{
	const struct program_module *module;
	uint32_t first, cnt;
	int err = program__module_functions(prober->program, idx, &first, &cnt);

	module = program__module(prober->program, idx);
	if (err || !module->file) {
		log_error("%s has no functions: %s", module->name, strerror(err ? -err : ENOENT));
		return err ? err : -ENOENT;
	}
	for (uint32_t i = 0; !err && i < cnt; i++) {
		const struct program_function *function = program__function(prober->program, first + i);

		if (!function->is_part && !function->is_ifunc && function->size &&
		    (!prober->options.glob || !fnmatch(prober->options.glob, function->name, FNM_EXTMATCH)))
			err = add_function(prober, module->file, function);
	}
	return err;
}

/* It may be one that comes and goes. */
static int add_module_named(struct prober *prober, const char *name)
{
	for (int i = 0; i < MODULE_WAITS; i++) {
		uint32_t idx = program__module_find(prober->program, name);

		if (idx != PROGRAM_NONE && !program__module(prober->program, idx)->gone)
			return add_module(prober, idx);
		usleep(1000);
		program__refresh(prober->program);
	}
	log_error("'%s' is not mapped", name);
	return -ENOENT;
}

/* Every so manieth, so that they come from everywhere. */
static void thin_out(struct prober *prober, size_t max)
{
	size_t cnt = prober->functions.cnt, kept = 0;

	if (!max || cnt <= max)
		return;
	/* The nearest are the first. */
	if (prober->options.root) {
		while (prober->functions.cnt > max)
			plan_free(&prober->functions.items[--prober->functions.cnt].plan);
		return;
	}
	for (size_t i = 0; i < cnt; i++) {
		struct target_function *target = &prober->functions.items[i];

		if (i * max / cnt == (i + 1) * max / cnt)
			plan_free(&target->plan);
		else
			prober->functions.items[kept++] = *target;
	}
	prober->functions.cnt = kept;
}

/* Breadth first over the calls that its machine code shows. */
static int add_beneath(struct prober *prober, const char *root_name)
{
	const struct program_module *module = program__module(prober->program, 0);
	VEC(uint32_t) queue = {0};
	uint32_t first, cnt, root;
	uint8_t *seen;
	int err = program__module_functions(prober->program, 0, &first, &cnt);

	if (err)
		return err;
	root = program__function_find(prober->program, 0, root_name);
	seen = calloc(cnt, 1);
	if (root == PROGRAM_NONE || !seen) {
		log_error("%s has no function '%s'", module->name, root_name);
		free(seen);
		return -ENOENT;
	}
	seen[root - first] = 1;
	err = vec_push(&queue, root);
	for (size_t i = 0; !err && i < queue.cnt; i++) {
		const struct call_edge *edges;
		size_t edge_cnt;

		err = program__callees(prober->program, queue.items[i], &edges, &edge_cnt);
		for (size_t j = 0; !err && j < edge_cnt; j++) {
			uint32_t callee = edges[j].callee;
			const struct program_function *function = program__function(prober->program, callee);

			if (function->module || seen[callee - first] || function->is_part)
				continue;
			seen[callee - first] = 1;
			err = vec_push(&queue, callee);
		}
		if (!err && i)
			err = add_function(prober, module->file, program__function(prober->program, queue.items[i]));
	}
	vec_free(&queue);
	free(seen);
	return err;
}

static int choose_functions(struct prober *prober)
{
	const struct options *options = &prober->options;
	int err = program__open(options->pid, NULL, &prober->program);

	if (err) {
		log_error("the code of process %d cannot be read: %s", options->pid, strerror(-err));
		return err;
	}
	if (options->root)
		return add_beneath(prober, options->root);
	if (!options->module_cnt)
		err = add_module(prober, 0);
	for (uint32_t i = 0; !err && i < options->module_cnt; i++)
		err = add_module_named(prober, options->modules[i]);
	return err;
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

static int add_probe(struct prober *prober, uint32_t func, const struct target_function *target,
		     const struct plan *plan, enum probe_role role)
{
	struct probe probe = {.func = func, .role = role, .file = target->file, .plan = plan};

	return vec_push(&prober->probes, probe) ? -ENOMEM : 0;
}

/* For the functions from `first` on, `cnt` at most; of each the planned site, the plain entry, or both. */
static int make_probes(struct prober *prober, size_t first, size_t cnt, bool planned, bool plain)
{
	int err = 0;

	prober->probes.cnt = 0;
	for (size_t i = first; !err && i < prober->functions.cnt && i < first + cnt; i++) {
		const struct target_function *target = &prober->functions.items[i];
		const char *interval = prober->options.interval;

		if (planned)
			err = add_probe(prober, 2 * (uint32_t)i, target, &target->plan, PROBE_FUNCTION);
		if (!err && plain)
			err = add_probe(prober, 2 * (uint32_t)i + 1, target, &target->plain, PROBE_FUNCTION);
		if (!err && interval && !strcmp(interval, target->function.name) && target->plan.exit != PLAN_EXIT_NONE)
			err = add_probe(prober, 2 * (uint32_t)i, target, &target->plan, PROBE_INTERVAL);
	}
	free(prober->hits);
	prober->hits = calloc(prober->probes.cnt + 1, sizeof(*prober->hits));
	return prober->hits ? err : -ENOMEM;
}

static void print_plans(struct prober *prober)
{
	for (size_t i = 0; i < prober->functions.cnt; i++) {
		const struct target_function *target = &prober->functions.items[i];

		prober->exit_cnt[target->plan.exit]++;
		prober->cost_cnt[target->plan.entry.cost]++;
		prober->plain_cost_cnt[target->plain.entry.cost]++;
		prober->moved_cnt += target->plan.entry.file_off != target->function.file_off;
	}
	printf("{\"functions\":%zu,\"refused\":%zu,\"moved\":%zu,\"emulated\":%zu,\"stepped\":%zu,"
	       "\"plain_emulated\":%zu,\"plain_stepped\":%zu,\"uretprobes\":%zu,\"exit_sites\":%zu,\"no_exit\":%zu}\n",
	       prober->functions.cnt, prober->refused_cnt, prober->moved_cnt, prober->cost_cnt[PLAN_EMULATED],
	       prober->cost_cnt[PLAN_STEPPED], prober->plain_cost_cnt[PLAN_EMULATED],
	       prober->plain_cost_cnt[PLAN_STEPPED], prober->exit_cnt[PLAN_EXIT_URETPROBE],
	       prober->exit_cnt[PLAN_EXIT_SITES], prober->exit_cnt[PLAN_EXIT_NONE]);
	fflush(stdout);
}

static void signal_all(const struct prober *prober, int signal_no)
{
	for (size_t i = 0; i < prober->processes.cnt; i++)
		kill(prober->processes.items[i].pid, signal_no);
	/* Until the last thread is out of user space. */
	if (signal_no == SIGSTOP)
		usleep(50000);
}

static int take_record(void *owner, const struct wl_record_header *record)
{
	struct prober *prober = owner;

	(void)record;
	prober->record_cnt++;
	return 0;
}

static int wait_for(struct prober *prober, uint32_t wait_ms)
{
	uint64_t until_ts = monotonic_ns() + wait_ms * 1000000ULL;
	int err = 0;

	while (err >= 0 && monotonic_ns() < until_ts)
		err = capture__poll(prober->capture, 10, take_record, prober);
	return err < 0 && err != -EINTR ? err : 0;
}

/* Attaches, waits, reads the hits, detaches. */
static int one_round(struct prober *prober, uint32_t wait_ms, bool stop, uint64_t *attach_ns, uint64_t *detach_ns)
{
	struct probe_set *set = NULL;
	uint64_t begin_ts;
	int err;

	if (stop)
		signal_all(prober, SIGSTOP);
	begin_ts = monotonic_ns();
	err = capture__attach_probes(prober->capture, prober->probes.items, prober->probes.cnt, &set);
	*attach_ns = monotonic_ns() - begin_ts;
	if (stop)
		signal_all(prober, SIGCONT);
	if (err)
		return err;
	err = wait_for(prober, wait_ms);
	if (stop)
		signal_all(prober, SIGSTOP);
	capture__probe_hits(prober->capture, set, prober->hits);
	begin_ts = monotonic_ns();
	capture__detach_probes(prober->capture, set);
	*detach_ns = monotonic_ns() - begin_ts;
	if (stop)
		signal_all(prober, SIGCONT);
	return err;
}

/* --- what it is for ----------------------------------------------------------------------------------------------- */

static int attach_and_detach(struct prober *prober)
{
	int err = make_probes(prober, 0, SIZE_MAX, true, false);

	for (uint32_t round = 0; !err && round < prober->options.rounds; round++) {
		uint64_t attach_ns, detach_ns, entries = 0, exits = 0, stepped = 0;

		err = one_round(prober, prober->options.wait_ms, false, &attach_ns, &detach_ns);
		for (size_t i = 0; i < prober->probes.cnt; i++) {
			entries += prober->hits[i].entries;
			exits += prober->hits[i].exits;
			stepped +=
				prober->probes.items[i].plan->entry.cost == PLAN_STEPPED ? prober->hits[i].entries : 0;
		}
		if (!err)
			printf("{\"round\":%u,\"probes\":%zu,\"attach_ns\":%lu,\"detach_ns\":%lu,\"entries\":%lu,"
			       "\"stepped\":%lu,\"exits\":%lu,\"records\":%lu}\n",
			       round + 1, prober->probes.cnt, attach_ns, detach_ns, entries, stepped, exits,
			       prober->record_cnt);
		fflush(stdout);
	}
	return err;
}

/* Only what was called remains; so many at a time as there is room for. */
static int keep_called(struct prober *prober)
{
	uint64_t attach_ns, detach_ns;
	size_t kept = 0;
	int err = 0;

	for (size_t first = 0; !err && first < prober->functions.cnt; first += PROBES_AT_A_TIME) {
		err = make_probes(prober, first, PROBES_AT_A_TIME, true, false);
		if (!err)
			err = one_round(prober, prober->options.wait_ms, false, &attach_ns, &detach_ns);
		for (size_t i = first; !err && i < prober->functions.cnt && i < first + PROBES_AT_A_TIME; i++) {
			struct target_function *target = &prober->functions.items[i];

			target->hits = prober->hits[i - first].entries;
			/* Where the kernel refuses the entry itself there is nothing to compare with. */
			if (target->hits && target->plain.possible)
				prober->functions.items[kept++] = *target;
			else
				plan_free(&target->plan);
		}
	}
	if (!err)
		prober->functions.cnt = kept;
	return err;
}

static int compare(struct prober *prober)
{
	uint64_t attach_ns, detach_ns, planned_sum = 0, plain_sum = 0, off_sum = 0, off_most = 0;
	size_t equal_cnt = 0, hit_cnt = 0, moved_hit_cnt = 0;
	int err = keep_called(prober);

	thin_out(prober, prober->options.max);
	if (!err)
		err = make_probes(prober, 0, SIZE_MAX, true, true);
	if (!err)
		err = one_round(prober, prober->options.wait_ms, true, &attach_ns, &detach_ns);
	if (err)
		return err;
	for (size_t i = 0; i < prober->functions.cnt; i++) {
		const struct target_function *target = &prober->functions.items[i];
		uint64_t planned = prober->hits[2 * i].entries, plain = prober->hits[2 * i + 1].entries;
		uint64_t off = planned > plain ? planned - plain : plain - planned;

		planned_sum += planned;
		plain_sum += plain;
		off_sum += off;
		off_most = off > off_most ? off : off_most;
		equal_cnt += !off;
		hit_cnt += plain > 0;
		moved_hit_cnt += plain > 0 && target->plan.entry.file_off != target->function.file_off;
		if (off)
			log_warn("%s: %lu hits at +0x%lx, %lu at the entry", target->function.name, planned,
				 target->plan.entry.file_off - target->function.file_off, plain);
	}
	printf("{\"compared\":%zu,\"hit\":%zu,\"moved\":%zu,\"equal\":%zu,\"planned_hits\":%lu,\"plain_hits\":%lu,"
	       "\"off_sum\":%lu,\"off_most\":%lu}\n",
	       prober->functions.cnt, hit_cnt, moved_hit_cnt, equal_cnt, planned_sum, plain_sum, off_sum, off_most);
	return 0;
}

static int list(struct prober *prober)
{
	size_t max = prober->options.max ? prober->options.max : SIZE_MAX, cnt = 0;
	int err = keep_called(prober);

	for (size_t i = 0; !err && i < prober->functions.cnt && cnt < max; i++) {
		const struct program_function *function = &prober->functions.items[i].function;

		if (prober->functions.items[i].plain.possible && !function->ambiguous &&
		    function->source != FUNCTION_EH_FRAME) {
			printf("%s %lu\n", function->name, prober->functions.items[i].hits);
			cnt++;
		}
	}
	return err;
}

static bool never(void)
{
	return false;
}

static int count(struct prober *prober)
{
	size_t cnt = prober->functions.cnt;
	uint64_t *addrs = calloc(cnt + 1, sizeof(*addrs));
	struct call_rate *rates = calloc(cnt + 1, sizeof(*rates)), *sums = calloc(cnt + 1, sizeof(*sums));
	struct call_rates_opts opts = {
		.processes = &prober->processes,
		.mappings = &prober->mappings,
		.seconds_max = prober->options.rounds,
		.is_stopped = never,
	};
	int err = addrs && rates && sums ? target_mappings_read(prober->options.pid, &prober->mappings) : -ENOMEM;

	for (size_t i = 0; !err && i < cnt; i++)
		addrs[i] = plan_runtime_addr(prober->program, &prober->functions.items[i].plan);
	for (uint32_t round = 0; !err && round < COUNT_ROUNDS; round++) {
		err = call_rates__count(&opts, addrs, cnt, rates);
		for (size_t i = 0; !err && i < cnt; i++) {
			sums[i].calls += rates[i].calls;
			sums[i].seen_ns += rates[i].seen_ns;
			sums[i].at_least |= rates[i].at_least;
		}
	}
	for (size_t i = 0; !err && i < cnt; i++)
		printf("%s %lu %lu%s\n", prober->functions.items[i].function.name, sums[i].calls, sums[i].seen_ns,
		       sums[i].at_least ? " at least" : "");
	free(sums);
	free(addrs);
	free(rates);
	return err;
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static int options_parse(struct options *options, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "p:m:r:g:n:t:w:i:exlk")) != -1) {
		if (opt == 'p')
			options->pid = atoi(optarg);
		else if (opt == 'm' && options->module_cnt < MODULES_MAX)
			options->modules[options->module_cnt++] = optarg;
		else if (opt == 'g')
			options->glob = optarg;
		else if (opt == 'n')
			options->max = strtoul(optarg, NULL, 10);
		else if (opt == 't')
			options->rounds = (uint32_t)strtoul(optarg, NULL, 10);
		else if (opt == 'w')
			options->wait_ms = (uint32_t)strtoul(optarg, NULL, 10);
		else if (opt == 'i')
			options->interval = optarg;
		else if (opt == 'r')
			options->root = optarg;
		else if (opt == 'l')
			options->list = true;
		else if (opt == 'k')
			options->counted = true;
		else if (opt == 'e')
			options->entry_only = true;
		else if (opt == 'x')
			options->compare = options->entry_only = true;
		else
			return -EINVAL;
	}
	return options->pid > 0 && optind == argc ? 0 : -EINVAL;
}

static int open_capture(struct prober *prober)
{
	struct capture_opts opts = {
		.processes = &prober->processes,
		.listeners = &prober->listeners,
		.sockets = !prober->options.interval,
		.probes = true,
		.children = true,
		.rate = CAPTURE_RATE_ALL,
		.ring_sz = RING_SZ,
	};

	int err;

	prober->capture = capture__new(&opts);
	err = prober->capture ? capture__start(prober->capture) : -errno;
	if (!err)
		capture__select(prober->capture);
	return err;
}

static void prober_free(struct prober *prober)
{
	if (prober->capture)
		capture__stop(prober->capture);
	capture__free(prober->capture);
	for (size_t i = 0; i < prober->functions.cnt; i++)
		plan_free(&prober->functions.items[i].plan);
	vec_free(&prober->functions);
	vec_free(&prober->probes);
	vec_free(&prober->processes);
	vec_free(&prober->listeners);
	target_mappings_free(&prober->mappings);
	free(prober->hits);
	program__free(prober->program);
}

int main(int argc, char **argv)
{
	struct prober prober = {.options = {.rounds = 1, .wait_ms = 100}};
	int err = options_parse(&prober.options, argc, argv);

	if (err) {
		fprintf(stderr,
			"usage: %s -p PID [-m MODULE]… [-g GLOB] [-n MAX] [-t ROUNDS] [-w MS] [-e] [-i FUNCTION] "
			"[-x | -l | -k]\n",
			argv[0]);
		return 2;
	}
	err = target_check(prober.options.pid);
	if (!err)
		err = target_tree(prober.options.pid, &prober.processes);
	if (!err)
		err = target_listeners_read(&prober.processes, &prober.listeners);
	if (!err)
		err = choose_functions(&prober);
	if (!err && !prober.options.compare && !prober.options.list)
		thin_out(&prober, prober.options.max);
	if (!err && !prober.options.list && !prober.options.counted)
		print_plans(&prober);
	if (!err && !prober.options.counted)
		err = open_capture(&prober);
	if (!err)
		err = prober.options.list      ? list(&prober)
		      : prober.options.counted ? count(&prober)
		      : prober.options.compare ? compare(&prober)
					       : attach_and_detach(&prober);
	prober_free(&prober);
	if (err)
		log_error("%s", strerror(-err));
	return err ? 1 : 0;
}
