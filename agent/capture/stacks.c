// SPDX-License-Identifier: GPL-2.0-or-later
/* Sampling of stacks: attached and detached at run time, and with the windows. */
#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"
#include "base/random.h"
#include "bpf/knobs.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* The period of our clock is drawn from so much around its mean: no work keeps in step with it. */
#define JITTER 0.2
/* Of shorter waits a part is recorded, in proportion to their length. */
#define WAIT_FLOOR_NS 10000

/* What the options want of the feature's hooks. */
static bool is_wanted(const struct capture *capture, size_t idx)
{
	const struct hook *hook = &hooks[idx];

	if (hook->feature != HOOK_FEATURE_STACK || !hook_taken(&capture->survey, idx, capture_purpose(capture)))
		return false;
	return capture->stacks.waits || hook->kind == HOOK_PERF_CLOCK || !strstr(hook->program, "switch");
}

static struct capture_links *stack_links(struct capture *capture)
{
	return &capture->stays[HOOK_FEATURE_STACK].links;
}

static int attach(struct capture *capture)
{
	uint64_t begin_ns = thread_cpu_ns();
	int err = 0;

	for (size_t i = 0; i < hook_cnt && !err; i++)
		if (is_wanted(capture, i))
			err = capture__attach_hook(capture, &hooks[i], stack_links(capture));
	capture->stays[HOOK_FEATURE_STACK].attach_ns = thread_cpu_ns() - begin_ns;
	return err;
}

/* The period of the kernel's tick; 0: there is none that can be told from other timers. */
static uint64_t kernel_tick_ns(const struct capture *capture)
{
	struct timespec resolution;

	for (size_t i = 0; i < hook_cnt; i++)
		if (hooks[i].feature == HOOK_FEATURE_STACK && strstr(hooks[i].program, "kernel_tick") &&
		    capture->survey.works[i])
			return clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) || resolution.tv_sec
				       ? 0
				       : (uint64_t)resolution.tv_nsec;
	return 0;
}

/* Each tick of a clock on this thread alone leaves a gap between two readings of the time. */
#define COST_PERIOD_NS 50000
#define COST_TICKS     64
#define COST_LEAST_NS  300    /* a reading takes less */
#define COST_MOST_NS   100000 /* another task has had the CPU */

ORDER(compare_ns, uint64_t, BY(*a, *b));

static uint64_t median_gap_ns(void)
{
	uint64_t gaps[COST_TICKS], last_ts = monotonic_ns(), end_ts = last_ts + 4 * COST_TICKS * COST_PERIOD_NS;
	size_t cnt = 0;

	while (cnt < COST_TICKS && last_ts < end_ts) {
		uint64_t now = monotonic_ns();

		if (now - last_ts >= COST_LEAST_NS && now - last_ts <= COST_MOST_NS)
			gaps[cnt++] = now - last_ts;
		last_ts = now;
	}
	if (cnt < COST_TICKS / 2)
		return 0;
	qsort(gaps, cnt, sizeof(gaps[0]), compare_ns);
	return gaps[cnt / 2];
}

uint64_t capture__stack_tick_cost_ns(struct capture *capture)
{
	struct bpf_program *program = bpf_object__find_program_by_name(capture->object, "on_stack_tick");
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = COST_PERIOD_NS,
	};
	struct bpf_link *link;
	uint64_t cost_ns;
	int fd;

	if (!program || bpf_program__fd(program) < 0)
		return 0;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	link = bpf_program__attach_perf_event(program, fd);
	if (!link) {
		close(fd);
		return 0;
	}
	cost_ns = median_gap_ns();
	bpf_link__destroy(link);
	return cost_ns;
}

int capture__sample_stacks(struct capture *capture, const struct capture_stacks *stacks)
{
	struct stack_controls *controls = capture->stack_controls;
	int err;

	capture__stop_stacks(capture);
	if (!capture->opts.stacks || !capture->survey.tier[HOOK_FEATURE_STACK])
		return -ENOTSUP;
	if (!stacks->hz || stacks->hz > CAPTURE_STACKS_HZ_MAX)
		return -EINVAL;
	capture->stacks = *stacks;
	controls->own_ns = SECOND_NS / stacks->hz;
	controls->kernel_ns = stacks->kernel_tick ? kernel_tick_ns(capture) : 0;
	controls->gap_ns = stacks->waits ? SECOND_NS / stacks->hz : 0;
	controls->floor_ns = WAIT_FLOOR_NS;
	controls->max_sz = stacks->max_sz && stacks->max_sz < WL_STACK_SZ_MAX ? stacks->max_sz : WL_STACK_SZ_MAX;
	controls->always = stacks->always;
	controls->backlog_sz = capture->opts.ring_sz / 2;
	capture->jitter_seed = monotonic_ns();
	err = attach(capture);
	if (err)
		capture__stop_stacks(capture);
	else
		capture_links__switch(stack_links(capture), !capture->opts.windows || capture->window_open_ns);
	return err;
}

void capture__stop_stacks(struct capture *capture)
{
	capture_links__drop(stack_links(capture));
	capture->stacks.hz = 0;
}

uint64_t capture__stacks_kernel_tick_ns(const struct capture *capture)
{
	return capture->stacks.hz ? capture->stack_controls->kernel_ns : 0;
}

void capture__stacks_spin(struct capture *capture)
{
	__atomic_store_n(&capture->stack_controls->spins, 1, __ATOMIC_RELAXED);
}

void capture__stacks_drop_kernel_tick(struct capture *capture)
{
	__atomic_store_n(&capture->stack_controls->kernel_ns, 0, __ATOMIC_RELAXED);
}

void capture__stacks_jitter(struct capture *capture)
{
	double mean_ns, spread;
	uint64_t period_ns;

	if (!capture->stacks.hz)
		return;
	mean_ns = (double)SECOND_NS / capture->stacks.hz;
	spread = (double)(random_next(&capture->jitter_seed) >> 11) * 0x1p-53 * 2 - 1;
	period_ns = (uint64_t)(mean_ns * (1 + JITTER * spread));
	__atomic_store_n(&capture->stack_controls->own_ns, period_ns, __ATOMIC_RELAXED);
	for (size_t i = 0; i < stack_links(capture)->event_fds.cnt; i++)
		if (ioctl(stack_links(capture)->event_fds.items[i], PERF_EVENT_IOC_PERIOD, &period_ns))
			log_debug("the period of the sampling clock stays: %s", strerror(errno));
}

/* Between windows nothing is selected: no clock ticks for it. */
int capture__stacks_window(struct capture *capture, bool open)
{
	if (!capture->stacks.hz || !capture->opts.windows)
		return 0;
	if (open && !stack_links(capture)->links.cnt)
		return attach(capture);
	capture_links__switch(stack_links(capture), open);
	if (!open && capture__leaves(capture, HOOK_FEATURE_STACK))
		capture_links__drop(stack_links(capture));
	return 0;
}

void capture__stack_doubt(struct capture *capture, uint64_t key, bool is_ambiguous)
{
	struct known_stack known;
	int fd = capture->known_stacks_fd;

	/* What the table has forgotten meanwhile is copied anyway. */
	if (!is_ambiguous) {
		bpf_map_delete_elem(fd, &key);
	} else if (!bpf_map_lookup_elem(fd, &key, &known)) {
		known.ambiguous = 1;
		bpf_map_update_elem(fd, &key, &known, BPF_EXIST);
	}
}

void capture__set_python(struct capture *capture, pid_t pid, const struct python_layout *layout)
{
	uint32_t key = (uint32_t)pid;

	if (!capture->opts.stacks || capture->pythons_fd < 0)
		return;
	if (!layout)
		bpf_map_delete_elem(capture->pythons_fd, &key);
	else if (bpf_map_update_elem(capture->pythons_fd, &key, layout, BPF_ANY))
		log_debug("no Python frames of process %d: %s", pid, strerror(errno));
}

void capture__set_trace_slot(struct capture *capture, pid_t pid, const int64_t *slot)
{
	int fd = capture->trace_slots_fd;
	uint32_t key = (uint32_t)pid;

	if (!slot)
		bpf_map_delete_elem(fd, &key);
	else if (bpf_map_update_elem(fd, &key, slot, BPF_ANY))
		log_debug("no trace ids of the threads of process %d: %s", pid, strerror(errno));
}

void capture__inherit_trace_slot(struct capture *capture, pid_t parent, pid_t child)
{
	uint32_t key = (uint32_t)parent;
	int64_t slot;

	if (!bpf_map_lookup_elem(capture->trace_slots_fd, &key, &slot))
		capture__set_trace_slot(capture, child, &slot);
}

/* --- values of variables ------------------------------------------------------------------------------------------ */

/* At once where the kernel can (5.6). */
static int fill_map(struct capture *capture, const char *name, const void *items, size_t item_sz, size_t cnt)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(capture->object, name)), err = 0;
	uint32_t batch = (uint32_t)cnt, *keys = malloc(cnt * sizeof(*keys) + 1);

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++)
		keys[i] = i;
	if (cnt && bpf_map_update_batch(fd, keys, items, &batch, NULL))
		for (uint32_t i = 0; i < cnt && !err; i++)
			err = bpf_map_update_elem(fd, &i, (const char *)items + i * item_sz, BPF_ANY);
	free(keys);
	return err;
}

static int fill_ranges(struct capture *capture, const struct value_range *ranges, size_t cnt, uint32_t first_read)
{
	struct value_range *own = malloc(cnt * sizeof(*own) + 1);
	int err;

	if (!own)
		return -ENOMEM;
	for (size_t r = 0; r < cnt; r++) {
		own[r] = ranges[r];
		own[r].first -= first_read;
	}
	err = fill_map(capture, "value_ranges", own, sizeof(*own), cnt);
	free(own);
	return err;
}

int capture__plan_values(struct capture *capture, const struct value_range *ranges, size_t range_cnt,
			 const struct value_read *reads, size_t read_cnt, const struct value_global *globals,
			 size_t global_cnt, uint32_t first_read)
{
	int err = capture->opts.values ? 0 : -ENOTSUP;

	if (range_cnt > VALUE_RANGES_MAX || read_cnt > VALUE_READS_MAX || global_cnt > VALUE_GLOBALS_MAX)
		return -E2BIG;
	if (!err)
		err = fill_ranges(capture, ranges, range_cnt, first_read);
	if (!err)
		err = fill_map(capture, "value_reads", reads, sizeof(*reads), read_cnt);
	if (!err)
		err = fill_map(capture, "value_globals", globals, sizeof(*globals), global_cnt);
	if (!err)
		capture->stack_controls->value_global_cnt = (uint32_t)global_cnt;
	return err;
}

int capture__place_values(struct capture *capture, pid_t pid, const struct value_image *image)
{
	uint32_t key = (uint32_t)pid;
	int fd = bpf_map__fd(bpf_object__find_map_by_name(capture->object, "value_images"));

	if (!capture->opts.values)
		return -ENOTSUP;
	return image ? bpf_map_update_elem(fd, &key, image, BPF_ANY) : bpf_map_delete_elem(fd, &key);
}

int capture__step_values(struct capture *capture, const struct value_step_key *key, const struct value_step *step)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(capture->object, "value_steps"));

	return capture->opts.values ? bpf_map_update_elem(fd, key, step, BPF_ANY) : -ENOTSUP;
}
