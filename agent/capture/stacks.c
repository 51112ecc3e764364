// SPDX-License-Identifier: GPL-2.0-or-later
/* Sampling of user stacks: attached and detached at run time. */
#include "bpf/knobs.h"
#include "capture/internal.h"

#include <errno.h>
#include <linux/perf_event.h>

static int keep_link(struct capture *capture, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (!vec_push(&capture->stack_links, link))
		return 0;
	bpf_link__destroy(link);
	return -ENOMEM;
}

static int keep_event(struct capture *capture, struct bpf_link *link, int fd)
{
	(void)fd;
	return keep_link(capture, link);
}

/* A clock's ticks on every CPU. */
static int attach_clock(struct capture *capture, struct bpf_program *program, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.exclude_idle = 1,
	};

	return capture__attach_event(capture, program, &attr, keep_event);
}

static int attach(struct capture *capture, const struct capture_stacks *stacks)
{
	for (size_t i = 0; i < hook_cnt; i++) {
		struct bpf_program *program;
		int err;

		if (hooks[i].feature != HOOK_FEATURE_STACK || (hooks[i].kind != HOOK_PERF_CLOCK && !stacks->waits))
			continue;
		program = bpf_object__find_program_by_name(capture->object, hooks[i].program);
		if (!program)
			return -ENOENT;
		err = hooks[i].kind == HOOK_PERF_CLOCK ? attach_clock(capture, program, stacks->hz)
						       : keep_link(capture, bpf_program__attach(program));
		if (err)
			return err;
	}
	return 0;
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
	controls->tick_ns = 1000000000ULL / stacks->hz;
	controls->gap_ns = stacks->waits ? controls->tick_ns : 0;
	controls->max_sz = stacks->max_sz && stacks->max_sz < WL_STACK_SZ_MAX ? stacks->max_sz : WL_STACK_SZ_MAX;
	controls->always = stacks->always;
	controls->backlog_sz = capture->opts.ring_sz / 2;
	err = attach(capture, stacks);
	if (err)
		capture__stop_stacks(capture);
	return err;
}

void capture__stop_stacks(struct capture *capture)
{
	while (capture->stack_links.cnt)
		bpf_link__destroy(capture->stack_links.items[--capture->stack_links.cnt]);
}
