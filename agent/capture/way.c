// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The way from a tracepoint to its program and back is in no account of the kernel's.  Two threads of our own hand a
 * byte to and fro on one CPU, without hooks and with those of the scheduler, by turns; what their CPU time grows by,
 * less what the programs account for, is the way.  The shortest of a few turns counts, because everything else that
 * happens on the machine only adds.  No window is open meanwhile, so that the time without the account is also what a
 * run between windows takes in all: there, most of what BPF_STATS tell are their own readings of the clock.
 */
#include "base/clock.h"
#include "base/log.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define TURNS  6
#define PASSES 400
/* Where it cannot be measured, and what is possible; ns. */
#define WAY_NS     60
#define WAY_MIN_NS 20
#define WAY_MAX_NS 400
#define REST_NS    90

struct echo {
	int in[2], out[2];
};

static void *echo_body(void *arg)
{
	struct echo *echo = arg;
	char byte;

	while (read(echo->in[0], &byte, 1) == 1)
		if (write(echo->out[1], &byte, 1) != 1)
			break;
	return NULL;
}

static double turn(struct echo *echo)
{
	uint64_t begin_ns = process_cpu_ns();
	char byte = 0;

	for (int i = 0; i < PASSES; i++)
		if (write(echo->in[1], &byte, 1) != 1 || read(echo->out[0], &byte, 1) != 1)
			return NAN;
	return (double)(process_cpu_ns() - begin_ns) / PASSES;
}

static double measure(struct capture *capture, struct echo *echo)
{
	double bare_ns = INFINITY, hooked_ns = INFINITY, program_ns = 0, runs = 0;
	uint64_t ns[2], cnt[2];
	int stats_fd;

	turn(echo);
	for (int i = 0; i < TURNS; i++) {
		bare_ns = fmin(bare_ns, turn(echo));
		if (capture__attach_scheduler(capture))
			return NAN;
		turn(echo);
		hooked_ns = fmin(hooked_ns, turn(echo));
		if (!i) {
			stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
			capture__runs(capture, &ns[0], &cnt[0]);
			turn(echo);
			capture__runs(capture, &ns[1], &cnt[1]);
			if (stats_fd >= 0)
				close(stats_fd);
			runs = (double)(cnt[1] - cnt[0]) / PASSES;
			program_ns = (double)(ns[1] - ns[0]) / PASSES;
		}
		capture__detach_window(capture);
	}
	log_debug("way to a program: %.0f ns a pass without hooks, %.0f with; %.1f runs of %.0f ns in all", bare_ns,
		  hooked_ns, runs, program_ns);
	if (runs < 1)
		return NAN;
	capture->rest_ns = fmin(fmax((hooked_ns - bare_ns) / runs, WAY_MIN_NS), WAY_MAX_NS);
	return (hooked_ns - bare_ns - program_ns) / runs;
}

void capture__measure_way(struct capture *capture)
{
	struct echo echo = {{-1, -1}, {-1, -1}};
	cpu_set_t before, one;
	double way_ns = NAN;
	pthread_t thread;

	capture->way_ns = WAY_NS;
	capture->rest_ns = REST_NS;
	if (pipe(echo.in) || pipe(echo.out) || sched_getaffinity(0, sizeof(before), &before))
		goto cleanup;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		goto cleanup;
	if (!pthread_create(&thread, NULL, echo_body, &echo)) {
		way_ns = measure(capture, &echo);
		close(echo.in[1]);
		echo.in[1] = -1;
		pthread_join(thread, NULL);
	}
	sched_setaffinity(0, sizeof(before), &before);
	if (!isnan(way_ns))
		capture->way_ns = fmin(fmax(way_ns, WAY_MIN_NS), WAY_MAX_NS);
cleanup:
	for (int i = 0; i < 2; i++) {
		if (echo.in[i] >= 0)
			close(echo.in[i]);
		if (echo.out[i] >= 0)
			close(echo.out[i]);
	}
}
