// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/log.h"
#include "bpf/knobs.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Until there were so many, about so many are expected a second. */
#define WINDOWS_MIN      8
#define WINDOWS_EXPECTED 3.0
/* Attaching and detaching. */
#define SWITCH_PARTS 2

static int keep_link(struct capture_links *to, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (vec_push(&to->links, link)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	return 0;
}

static int attach_event(const struct capture *capture, struct bpf_program *program, struct perf_event_attr *attr,
			struct capture_links *to)
{
	for (uint32_t cpu = 0; cpu < capture->cpu_cnt; cpu++) {
		int fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;
		struct bpf_link *link;

		if (fd < 0 && (errno == ENODEV || errno == ENXIO)) /* the CPU is offline */
			continue;
		if (fd < 0)
			return -errno;
		link = bpf_program__attach_perf_event(program, fd);
		err = keep_link(to, link);
		/* A link owns its event. */
		if (!link)
			close(fd);
		if (err)
			return err;
		if (vec_push(&to->event_fds, fd))
			return -ENOMEM;
	}
	return 0;
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

int capture__attach_hook(struct capture *capture, const struct hook *hook, struct capture_links *to)
{
	struct bpf_program *program = bpf_object__find_program_by_name(capture->object, hook->program);
	/* With a period of 1 the program runs at every occurrence. */
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .sample_period = 1};

	if (!program)
		return -ENOENT;
	switch (hook->kind) {
	case HOOK_PERF_MINOR:
		attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
		break;
	case HOOK_PERF_MAJOR:
		attr.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
		break;
	case HOOK_PERF_CLOCK:
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = capture->stack_controls->own_ns;
		attr.exclude_idle = 1;
		break;
	case HOOK_RAW_TP:
		return keep_link(to, bpf_program__attach_raw_tracepoint(program, hook->hook));
	default:
		return keep_link(to, bpf_program__attach(program));
	}
	return attach_event(capture, program, &attr, to);
}

void capture_links__drop(struct capture_links *links)
{
	links->event_fds.cnt = 0;
	while (links->links.cnt)
		bpf_link__destroy(links->links.items[--links->links.cnt]);
}

void capture_links__switch(const struct capture_links *links, bool on)
{
	for (size_t i = 0; i < links->event_fds.cnt; i++)
		if (ioctl(links->event_fds.items[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
			log_debug("cannot switch a software event: %s", strerror(errno));
}

void capture_links__free(struct capture_links *links)
{
	vec_free(&links->links);
	vec_free(&links->event_fds);
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

/* Is it attached and detached by its own rules, not with the others? */
static bool attaches_apart(enum hook_feature feature)
{
	return feature == HOOK_FEATURE_PROBE || feature == HOOK_FEATURE_STACK || feature == HOOK_FEATURE_GOROUTINE;
}

/*
 * Hooks of tracepoints stay between windows where that costs less than to attach them anew for each: their programs
 * find that no window is open, and that is all.  To attach one and to detach it patches the kernel's code at each place
 * of the tracepoint, with three interrupts of each other CPU a patch: 18 in all for most, 260 for contention_begin and
 * contention_end.  Software events stay open, disabled: opening them on every CPU takes too long.
 */
static struct capture_links *links_of(struct capture *capture, const struct hook *hook)
{
	enum hook_often often = features[hook->feature].often;

	if (!capture->opts.windows || often == HOOK_RARE || hook->kind == HOOK_PERF_MINOR ||
	    hook->kind == HOOK_PERF_MAJOR)
		return &capture->always;
	return often == HOOK_VARIES && (hook->kind == HOOK_TP_BTF || hook->kind == HOOK_RAW_TP)
		       ? &capture->stays[hook->feature].links
		       : &capture->in_windows;
}

bool capture__leaves(const struct capture *capture, enum hook_feature feature)
{
	double seconds = (double)(monotonic_ns() - capture->started_ns) / 1e9, windows_per_s = WINDOWS_EXPECTED;
	double runs_per_s = capture__runs_per_s(capture, feature);
	const struct hook_stay *stay = &capture->stays[feature];
	bool leaves;

	if (capture->window_cnt >= WINDOWS_MIN && seconds > 0)
		windows_per_s = (double)capture->window_cnt / seconds;
	leaves = runs_per_s * capture->rest_ns > windows_per_s * SWITCH_PARTS * (double)stay->attach_ns;
	log_debug("hooks of %s: %.0f runs a second, %.0f us to attach, %.2f windows a second: %s",
		  features[feature].name, runs_per_s, (double)stay->attach_ns / 1e3, windows_per_s,
		  leaves ? "attached anew" : "stay");
	return leaves;
}

int capture__attach_scheduler(struct capture *capture)
{
	int err = 0;

	for (size_t i = 0; !err && i < hook_cnt; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(capture->object, hooks[i].program);

		if (hooks[i].feature == HOOK_FEATURE_SCHED && program &&
		    hook_taken(&capture->survey, i, capture_purpose(capture)))
			err = keep_link(&capture->in_windows, bpf_program__attach(program));
	}
	return err;
}

/* Those of windows, or those that are always there; and of those that stay, the ones that are not there. */
static int attach_hooks(struct capture *capture, bool of_window)
{
	const struct capture_links *others = of_window ? &capture->always : &capture->in_windows;
	bool stayed[HOOK_FEATURE_CNT];

	for (int f = 0; f < HOOK_FEATURE_CNT; f++) {
		stayed[f] = capture->stays[f].links.links.cnt > 0;
		if (!stayed[f])
			capture->stays[f].attach_ns = 0;
	}
	/* The scheduler's hooks come first, then those by which intervals begin. */
	for (size_t i = 0; i < hook_cnt; i++) {
		const struct hook *hook = &hooks[i];
		struct hook_stay *stay = &capture->stays[hook->feature];
		struct capture_links *to = links_of(capture, hook);
		uint64_t begin_ns = thread_cpu_ns();
		int err;

		if (hook->kind == HOOK_ITER || attaches_apart(hook->feature) || to == others ||
		    (to == &stay->links && stayed[hook->feature]) ||
		    !hook_taken(&capture->survey, i, capture_purpose(capture)))
			continue;
		err = capture__attach_hook(capture, hook, to);
		if (err) {
			log_error("cannot attach to %s: %s", hook->hook, strerror(-err));
			return err;
		}
		stay->attach_ns += to == &stay->links ? thread_cpu_ns() - begin_ns : 0;
	}
	return 0;
}

int capture__attach_window(struct capture *capture)
{
	uint64_t begin_ns = thread_cpu_ns();
	/* First: what a thread runs is known when its requests are looked at. */
	int err = goroutines__attach(capture);

	if (!err)
		err = attach_hooks(capture, true);
	if (!err)
		capture_links__switch(&capture->always, true);
	if (!err)
		err = capture__stacks_window(capture, true);
	capture->switching_ns += thread_cpu_ns() - begin_ns;
	return err;
}

void capture__detach_window(struct capture *capture)
{
	uint64_t begin_ns = thread_cpu_ns();

	capture__cost_window_end(capture);
	capture__stacks_window(capture, false);
	capture_links__drop(&capture->in_windows);
	for (int f = 0; f < HOOK_FEATURE_CNT; f++)
		if (!attaches_apart((enum hook_feature)f) && capture->stays[f].links.links.cnt &&
		    capture__leaves(capture, (enum hook_feature)f))
			capture_links__drop(&capture->stays[f].links);
	capture_links__switch(&capture->always, false);
	goroutines__detach(capture);
	capture->switching_ns += thread_cpu_ns() - begin_ns;
}

uint64_t capture__switching_ns(const struct capture *capture)
{
	return capture->cpu_cnt > 1 ? capture->switching_ns : 0;
}

int capture__attach(struct capture *capture)
{
	int err = capture->opts.windows ? 0 : goroutines__attach(capture);

	if (!err)
		err = attach_hooks(capture, false);
	if (!err && capture->opts.windows)
		capture_links__switch(&capture->always, false);
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
	probes__detach_all(capture);
	for (int f = 0; f < HOOK_FEATURE_CNT; f++)
		capture_links__drop(&capture->stays[f].links);
	capture_links__drop(&capture->always);
}
