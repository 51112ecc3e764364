// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the programs cost, by the kernel's own BPF_STATS.  Measuring costs two clock reads per run of every BPF program
 * on the machine, so it is on for a tenth of the time, or in one window of sixteen and a moment after it, and the rest
 * is extrapolated by time: that in windows and that between them each by its own.
 */
#include "base/clock.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MEASURE_NS 100000000ULL
#define PAUSE_NS   900000000ULL
/* How often a program runs is told by so much of a window or more. */
#define RATE_NS 20000000ULL
/* DESIGN §3: a uprobe on an instruction that the kernel emulates, without what its program takes. */
#define TRAP_NS 500

static int read_stats(struct bpf_program *program, uint64_t *run_ns, uint64_t *run_cnt, uint64_t *missed)
{
	struct bpf_prog_info info;
	uint32_t sz = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &sz))
		return -errno;
	*run_ns = info.run_time_ns;
	*run_cnt = info.run_cnt;
	*missed = info.recursion_misses;
	return 0;
}

void capture__runs(struct capture *capture, uint64_t *run_ns, uint64_t *run_cnt)
{
	*run_ns = *run_cnt = 0;
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		uint64_t ns, cnt, missed;

		if (read_stats(capture->costs.items[i].program, &ns, &cnt, &missed))
			continue;
		*run_ns += ns;
		*run_cnt += cnt;
	}
}

static enum hook_feature feature_of(const struct bpf_program *program)
{
	for (size_t i = 0; i < hook_cnt; i++)
		if (!strcmp(hooks[i].program, bpf_program__name(program)))
			return hooks[i].feature;
	return HOOK_FEATURE_CNT;
}

double capture__runs_per_s(const struct capture *capture, enum hook_feature feature)
{
	double per_s = 0;

	for (size_t i = 0; i < capture->costs.cnt; i++)
		per_s += capture->costs.items[i].feature == feature ? capture->costs.items[i].per_s : 0;
	return per_s;
}

int capture__cost_init(struct capture *capture)
{
	struct bpf_program *program;

	capture->stats_fd = -1;
	bpf_object__for_each_program(program, capture->object)
	{
		struct program_cost cost = {.program = program, .feature = feature_of(program)};

		if (bpf_program__autoload(program) && bpf_program__fd(program) >= 0 && vec_push(&capture->costs, cost))
			return -ENOMEM;
	}
	capture->started_ns = capture->measure_begin_ns = monotonic_ns();
	return 0;
}

void capture__cost_free(struct capture *capture)
{
	if (capture->stats_fd >= 0)
		close(capture->stats_fd);
	capture->stats_fd = -1;
	vec_free(&capture->costs);
	vec_free(&capture->cost_report);
}

static void measure_begin(struct capture *capture)
{
	capture->measure_load = capture__load(capture);
	capture->measure_begin_ns = monotonic_ns();
	capture->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		struct program_cost *cost = &capture->costs.items[i];
		uint64_t missed;

		read_stats(cost->program, &cost->start_ns, &cost->start_cnt, &missed);
	}
}

static enum cost_phase phase_now(const struct capture *capture)
{
	return capture->opts.windows && !capture->window_open_ns ? COST_CLOSED : COST_OPEN;
}

/* What has run since the measurement began, in this phase; it goes on. */
static void measure_take(struct capture *capture)
{
	enum cost_phase phase = phase_now(capture);
	uint64_t now = monotonic_ns(), load;

	if (capture->stats_fd < 0)
		return;
	load = capture__load(capture);
	if (phase == COST_OPEN)
		capture->measured_load += load - capture->measure_load;
	capture->measure_load = load;
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		struct program_cost *cost = &capture->costs.items[i];
		uint64_t run_ns, run_cnt, missed;

		if (read_stats(cost->program, &run_ns, &run_cnt, &missed))
			continue;
		if (phase == COST_OPEN && now - capture->measure_begin_ns >= RATE_NS)
			cost->per_s =
				(double)(run_cnt - cost->start_cnt) * 1e9 / (double)(now - capture->measure_begin_ns);
		cost->run_ns[phase] += run_ns - cost->start_ns;
		cost->run_cnt[phase] += run_cnt - cost->start_cnt;
		cost->start_ns = run_ns;
		cost->start_cnt = run_cnt;
	}
	capture->measured_ns[phase] += now - capture->measure_begin_ns;
	capture->measure_begin_ns = now;
}

static void measure_end(struct capture *capture)
{
	if (capture->stats_fd < 0)
		return;
	measure_take(capture);
	close(capture->stats_fd);
	capture->stats_fd = -1;
}

void capture__measure_cost(struct capture *capture)
{
	uint64_t age_ns = monotonic_ns() - capture->measure_begin_ns;
	bool windows = capture->opts.windows && !(capture->window_open_ns && capture->endless);

	if (windows && capture->window_open_ns)
		return;
	if (capture->stats_fd >= 0) {
		if (age_ns >= MEASURE_NS)
			measure_end(capture);
	} else if (!capture->measured_ns[phase_now(capture)] || (!windows && age_ns >= PAUSE_NS)) {
		/* The first one begins at once, so that a short recording has a figure too. */
		measure_begin(capture);
	}
}

void capture__cost_window(struct capture *capture, bool measured)
{
	measure_end(capture);
	if (measured)
		measure_begin(capture);
}

/* After a window that was measured, so is the beginning of the time without one. */
void capture__cost_window_end(struct capture *capture)
{
	measure_take(capture);
}

void capture__cost_stop(struct capture *capture)
{
	measure_end(capture);
	capture->elapsed_ns = monotonic_ns() - capture->started_ns;
}

uint64_t capture__missed_runs(struct capture *capture)
{
	uint64_t run_ns, run_cnt, missed, sum = 0;

	for (size_t i = 0; i < capture->costs.cnt; i++)
		if (!read_stats(capture->costs.items[i].program, &run_ns, &run_cnt, &missed))
			sum += missed;
	return sum;
}

static void elapsed_by_phase(const struct capture *capture, uint64_t *elapsed_ns)
{
	uint64_t now = monotonic_ns(), all_ns = capture->stopped ? capture->elapsed_ns : now - capture->started_ns;

	elapsed_ns[COST_OPEN] = all_ns;
	if (capture->opts.windows)
		elapsed_ns[COST_OPEN] =
			capture->windows_ns + (capture->window_open_ns ? now - capture->window_open_ns : 0);
	/* The last window may have ended a little after the rest. */
	if (elapsed_ns[COST_OPEN] > all_ns)
		elapsed_ns[COST_OPEN] = all_ns;
	elapsed_ns[COST_CLOSED] = all_ns - elapsed_ns[COST_OPEN];
}

/* At rest most of what BPF_STATS tell are their own readings of the clock. */
static double run_ns(const struct capture *capture, const struct program_cost *cost, enum cost_phase phase)
{
	if (phase == COST_CLOSED && cost->feature < HOOK_FEATURE_CNT && features[cost->feature].often == HOOK_VARIES)
		return capture->rest_ns * (double)cost->run_cnt[phase];
	return (double)cost->run_ns[phase];
}

const struct capture_cost *capture__cost(struct capture *capture, size_t *cnt, uint64_t *total_ns)
{
	uint64_t elapsed_ns[COST_PHASE_CNT];
	double scale[COST_PHASE_CNT];

	measure_take(capture);
	elapsed_by_phase(capture, elapsed_ns);
	for (int phase = 0; phase < COST_PHASE_CNT; phase++)
		scale[phase] =
			capture->measured_ns[phase] ? (double)elapsed_ns[phase] / capture->measured_ns[phase] : 0;
	capture->cost_report.cnt = 0;
	*total_ns = 0;
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		const struct program_cost *cost = &capture->costs.items[i];
		struct capture_cost line = {.program = bpf_program__name(cost->program)};

		for (enum cost_phase phase = 0; phase < COST_PHASE_CNT; phase++) {
			line.run_cnt += cost->run_cnt[phase] * scale[phase];
			line.run_ns += run_ns(capture, cost, phase) * scale[phase];
		}
		*total_ns += line.run_ns;
		if (line.run_cnt && vec_push(&capture->cost_report, line))
			break;
	}
	*cnt = capture->cost_report.cnt;
	return capture->cost_report.items;
}

bool capture__is_of_probe(const char *program)
{
	return !strncmp(program, "on_probe_", strlen("on_probe_"));
}

/* Places in the scheduler of Go programs, attached as hooks are. */
static bool is_of_goroutines(const char *program)
{
	return !strncmp(program, "on_goroutine", strlen("on_goroutine"));
}

void capture__hooks_cost(struct capture *capture, struct capture_hooks_cost *cost)
{
	measure_take(capture);
	memset(cost, 0, sizeof(*cost));
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		const struct program_cost *of = &capture->costs.items[i];

		if (capture__is_of_probe(bpf_program__name(of->program)))
			continue;
		if (is_of_goroutines(bpf_program__name(of->program))) {
			/* The way there is a trap. */
			cost->open_ns += of->run_ns[COST_OPEN] + of->run_cnt[COST_OPEN] * TRAP_NS;
			cost->closed_ns += of->run_ns[COST_CLOSED] + of->run_cnt[COST_CLOSED] * TRAP_NS;
			continue;
		}
		cost->open_ns += of->run_ns[COST_OPEN];
		cost->open_runs += of->run_cnt[COST_OPEN];
		cost->closed_ns += (uint64_t)run_ns(capture, of, COST_CLOSED);
	}
	cost->open_measured_ns = capture->measured_ns[COST_OPEN];
	cost->open_load = capture->measured_load;
	cost->closed_measured_ns = capture->measured_ns[COST_CLOSED];
}

bool capture__cost_known(const struct capture *capture)
{
	uint64_t elapsed_ns[COST_PHASE_CNT];

	elapsed_by_phase(capture, elapsed_ns);
	for (int phase = 0; phase < COST_PHASE_CNT; phase++)
		if (elapsed_ns[phase] && !capture->measured_ns[phase])
			return false;
	return true;
}
