// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the programs cost, by the kernel's own BPF_STATS.  Measuring costs two clock reads per run of every BPF program
 * on the machine, so it is on for a tenth of the time, or in one window of sixteen, and the rest is extrapolated by
 * time.
 */
#include "base/clock.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEASURE_NS 100000000ULL
#define PAUSE_NS   900000000ULL

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

int capture__cost_init(struct capture *capture)
{
	struct bpf_program *program;

	capture->stats_fd = -1;
	bpf_object__for_each_program(program, capture->object)
	{
		struct program_cost cost = {.program = program};

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
	capture->measure_begin_ns = monotonic_ns();
	capture->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		struct program_cost *cost = &capture->costs.items[i];
		uint64_t missed;

		read_stats(cost->program, &cost->start_ns, &cost->start_cnt, &missed);
	}
}

static void measure_end(struct capture *capture, uint64_t now)
{
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		struct program_cost *cost = &capture->costs.items[i];
		uint64_t run_ns, run_cnt, missed;

		if (read_stats(cost->program, &run_ns, &run_cnt, &missed))
			continue;
		cost->run_ns += run_ns - cost->start_ns;
		cost->run_cnt += run_cnt - cost->start_cnt;
	}
	if (capture->stats_fd >= 0)
		capture->measured_ns += now - capture->measure_begin_ns;
	close(capture->stats_fd);
	capture->stats_fd = -1;
}

void capture__measure_cost(struct capture *capture)
{
	uint64_t now = monotonic_ns(), age_ns = now - capture->measure_begin_ns;

	if (capture->opts.windows)
		return;
	if (capture->stats_fd >= 0) {
		if (age_ns < MEASURE_NS)
			return;
		measure_end(capture, now);
		capture->measure_begin_ns = now;
	} else if (!capture->measured_ns || age_ns >= PAUSE_NS) {
		/* The first one begins at once, so that a short recording has a figure too. */
		measure_begin(capture);
	}
}

void capture__cost_window(struct capture *capture, bool measured)
{
	if (measured)
		measure_begin(capture);
}

void capture__cost_window_end(struct capture *capture)
{
	if (capture->stats_fd >= 0)
		measure_end(capture, monotonic_ns());
}

uint64_t capture__missed_runs(struct capture *capture)
{
	uint64_t run_ns, run_cnt, missed, sum = 0;

	for (size_t i = 0; i < capture->costs.cnt; i++)
		if (!read_stats(capture->costs.items[i].program, &run_ns, &run_cnt, &missed))
			sum += missed;
	return sum;
}

const struct capture_cost *capture__cost(struct capture *capture, size_t *cnt, uint64_t *total_ns)
{
	uint64_t now = monotonic_ns();
	double scale;

	if (capture->stats_fd >= 0) {
		measure_end(capture, now);
		capture->measure_begin_ns = now;
	}
	if (!capture->stopped)
		capture->elapsed_ns = now - capture->started_ns;
	if (capture->opts.windows)
		capture->elapsed_ns =
			capture->windows_ns + (capture->window_open_ns ? now - capture->window_open_ns : 0);
	scale = capture->measured_ns ? (double)capture->elapsed_ns / capture->measured_ns : 0;
	capture->cost_report.cnt = 0;
	*total_ns = 0;
	for (size_t i = 0; i < capture->costs.cnt; i++) {
		const struct program_cost *cost = &capture->costs.items[i];
		struct capture_cost line = {
			.program = bpf_program__name(cost->program),
			.run_cnt = cost->run_cnt * scale,
			.run_ns = cost->run_ns * scale,
		};

		*total_ns += line.run_ns;
		if (cost->run_cnt && vec_push(&capture->cost_report, line))
			break;
	}
	*cnt = capture->cost_report.cnt;
	return capture->cost_report.items;
}

bool capture__cost_known(const struct capture *capture)
{
	return capture->measured_ns > 0;
}
