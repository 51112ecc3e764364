// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Hooks that vary are detached between windows where they fire more often: in all they take a thousandth of a CPU. */
#define NOISY_PER_S 5000.0

static int keep_link(struct capture *capture, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (vec_push(&capture->links[capture->attaching], link)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	return 0;
}

int capture__attach_event(struct capture *capture, struct bpf_program *program, struct perf_event_attr *attr,
			  int (*keep)(struct capture *capture, struct bpf_link *link, int fd))
{
	for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++) {
		int fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;
		struct bpf_link *link;

		if (fd < 0 && (errno == ENODEV || errno == ENXIO)) /* the CPU is offline */
			continue;
		if (fd < 0)
			return -errno;
		link = bpf_program__attach_perf_event(program, fd);
		err = link ? keep(capture, link, fd) : -errno;
		/* A link owns its event. */
		if (!link)
			close(fd);
		if (err)
			return err;
	}
	return 0;
}

static int keep_event(struct capture *capture, struct bpf_link *link, int fd)
{
	int err = keep_link(capture, link);

	return !err && vec_push(&capture->event_fds, fd) ? -ENOMEM : err;
}

/* A software event with a period of 1 on every CPU runs the program at every occurrence. */
static int attach_software_event(struct capture *capture, struct bpf_program *program, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = config, .sample_period = 1};

	return capture__attach_event(capture, program, &attr, keep_event);
}

int capture__adopt_process(struct capture *capture, pid_t pid, uint64_t born_ts)
{
	return capture->probes ? probes__add_process(capture, pid, born_ts) : 0;
}

void capture__drop_process(struct capture *capture, pid_t pid, bool exited)
{
	if (capture->probes)
		probes__drop_process(capture, pid, exited);
}

static int attach_hook(struct capture *capture, const struct hook *hook)
{
	struct bpf_program *program = bpf_object__find_program_by_name(capture->object, hook->program);

	if (!program)
		return -ENOENT;
	switch (hook->kind) {
	case HOOK_PERF_MINOR:
		return attach_software_event(capture, program, PERF_COUNT_SW_PAGE_FAULTS_MIN);
	case HOOK_PERF_MAJOR:
		return attach_software_event(capture, program, PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	default:
		return keep_link(capture, bpf_program__attach(program));
	}
}

/* The iterator runs when its file is read, to the end. */
static int run_iterator(struct capture *capture, const struct hook *hook)
{
	struct bpf_program *program = bpf_object__find_program_by_name(capture->object, hook->program);
	struct bpf_link *link = program ? bpf_program__attach_iter(program, NULL) : NULL;
	char buf[64];
	ssize_t sz;
	int fd, err = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		err = -errno;
	while (!err && (sz = read(fd, buf, sizeof(buf))) != 0)
		if (sz < 0 && errno != EINTR && errno != EAGAIN)
			err = -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

bool capture__attaches_apart(enum hook_feature feature)
{
	return feature == HOOK_FEATURE_PROBE || feature == HOOK_FEATURE_STACK || feature == HOOK_FEATURE_GOROUTINE;
}

/*
 * What fires so rarely that it costs less than to be attached anew each time stays: to attach a hook and to detach it
 * takes some 0.4 ms of a CPU, and a dozen interrupts of each other CPU.  Software events stay open between windows,
 * disabled: opening them on every CPU takes too long.
 */
static enum when_attached when_attached(const struct capture *capture, const struct hook *hook)
{
	enum hook_often often = features[hook->feature].often;

	if (!capture->opts.windows || often == HOOK_RARE || hook->kind == HOOK_PERF_MINOR ||
	    hook->kind == HOOK_PERF_MAJOR)
		return ATTACHED_ALWAYS;
	return often == HOOK_VARIES ? ATTACHED_WHILE_QUIET : ATTACHED_IN_WINDOWS;
}

int capture__attach_scheduler(struct capture *capture)
{
	int err = 0;

	for (size_t i = 0; !err && i < hook_cnt; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(capture->object, hooks[i].program);
		struct bpf_link *link;

		if (hooks[i].feature != HOOK_FEATURE_SCHED || !program ||
		    !hook_taken(&capture->survey, i, capture_purpose(capture)))
			continue;
		link = bpf_program__attach(program);
		capture->attaching = ATTACHED_IN_WINDOWS;
		err = keep_link(capture, link);
	}
	return err;
}

/* Scheduler first, then whoever begins intervals. */
static int attach_hooks(struct capture *capture, enum when_attached when)
{
	capture->attaching = when;
	for (size_t i = 0; i < hook_cnt; i++) {
		const struct hook *hook = &hooks[i];
		int err;

		if (hook->kind == HOOK_ITER || capture__attaches_apart(hook->feature) ||
		    !hook_taken(&capture->survey, i, capture_purpose(capture)) || when_attached(capture, hook) != when)
			continue;
		err = attach_hook(capture, hook);
		if (err) {
			log_error("cannot attach to %s: %s", hook->hook, strerror(-err));
			return err;
		}
	}
	return 0;
}

static void switch_events(struct capture *capture, bool on)
{
	for (size_t i = 0; i < capture->event_fds.cnt; i++)
		if (ioctl(capture->event_fds.items[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
			log_debug("cannot switch a software event: %s", strerror(errno));
}

int capture__attach_window(struct capture *capture)
{
	/* First: what a thread runs is known when its requests are looked at. */
	int err = goroutines__attach(capture);

	if (!err)
		err = attach_hooks(capture, ATTACHED_IN_WINDOWS);
	if (!err && !capture->links[ATTACHED_WHILE_QUIET].cnt)
		err = attach_hooks(capture, ATTACHED_WHILE_QUIET);
	if (!err)
		switch_events(capture, true);
	return err ? err : capture__stacks_window(capture, true);
}

static void detach_hooks(struct capture *capture, enum when_attached when)
{
	while (capture->links[when].cnt)
		bpf_link__destroy(capture->links[when].items[--capture->links[when].cnt]);
}

void capture__detach_window(struct capture *capture)
{
	capture->noisy |= capture__varying_per_s(capture) > NOISY_PER_S;
	capture__stacks_window(capture, false);
	detach_hooks(capture, ATTACHED_IN_WINDOWS);
	if (capture->noisy)
		detach_hooks(capture, ATTACHED_WHILE_QUIET);
	switch_events(capture, false);
	goroutines__detach(capture);
}

int capture__attach(struct capture *capture)
{
	int err = capture->opts.windows ? 0 : goroutines__attach(capture);

	if (!err)
		err = attach_hooks(capture, ATTACHED_ALWAYS);
	if (!err)
		err = attach_hooks(capture, ATTACHED_WHILE_QUIET);
	if (!err && capture->opts.windows)
		switch_events(capture, false);
	return err;
}

int capture__adopt_threads(struct capture *capture)
{
	for (size_t i = 0; i < hook_cnt; i++) {
		int err;

		if (hooks[i].kind != HOOK_ITER)
			continue;
		err = run_iterator(capture, &hooks[i]);
		if (err) {
			log_error("cannot look for the target's threads: %s", strerror(-err));
			return err;
		}
	}
	return 0;
}

void capture__detach(struct capture *capture)
{
	capture__stop_stacks(capture);
	capture__detach_window(capture);
	capture->event_fds.cnt = 0;
	probes__detach_all(capture);
	detach_hooks(capture, ATTACHED_WHILE_QUIET);
	detach_hooks(capture, ATTACHED_ALWAYS);
}
