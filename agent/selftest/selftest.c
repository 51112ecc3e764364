// SPDX-License-Identifier: GPL-2.0-or-later
#include "selftest/selftest.h"

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/privilege.h"
#include "capture/probes.h"
#include "selftest/selftest_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Small, so that the loss check fills it; what the other checks make at a time fits in. */
#define RING_SZ       65536
#define RING_SZ_LARGE (1 << 20)
#define AWAIT_NS      5000000000ULL
#define POLL_MS       5
#define LIST_TEXT     "interval " WITNESS_DEED " name=deed\ninterval " WITNESS_QUICK " name=quick\n"

/* --- records ------------------------------------------------------------------------------------------------------ */

static bool leads_to_deed(const struct stage *stage, const struct wl_stack_record *record)
{
	uint64_t pc = record->regs[WL_STACK_REG_PC];

	for (uint32_t off = 0; pc <= stage->deed_addr || pc > stage->deed_end; off += sizeof(pc)) {
		if (off + sizeof(pc) > record->stack_sz)
			return false;
		memcpy(&pc, record->stack + off, sizeof(pc));
	}
	return true;
}

static int take_stack(struct stage *stage, const struct wl_stack_record *record)
{
	struct stage_stack stack = {
		.ts = record->ts,
		.sid = record->sid,
		.tid = record->tid,
		.state = record->state,
		.flags = record->flags,
		.leads_to_deed = leads_to_deed(stage, record),
	};

	/* Later waits with that key have that stack, which is not sent again with each. */
	if (stack.leads_to_deed && record->flags & WL_STACK_WAITS && vec_push(&stage->deed_keys, record->key))
		return -ENOMEM;
	return vec_push(&stage->stacks, stack);
}

static int on_record(void *owner, const struct wl_record_header *header)
{
	const struct wl_task_record *task = (const struct wl_task_record *)header;
	struct stage *stage = owner;

	if (header->kind == WL_RECORD_INTERVAL) {
		stage->interval_cnt++;
		return vec_push(&stage->intervals, *(const struct wl_interval_record *)header);
	}
	switch (header->kind) {
	case WL_RECORD_SEGMENT:
		return vec_push(&stage->segments, *(const struct wl_segment_record *)header);
	case WL_RECORD_WAKEUP:
		return vec_push(&stage->wakeups, *(const struct wl_wakeup_record *)header);
	case WL_RECORD_SOCKET:
		return vec_push(&stage->sockets, *(const struct wl_socket_record *)header);
	case WL_RECORD_BLOCK:
		return vec_push(&stage->blocks, *(const struct wl_block_record *)header);
	case WL_RECORD_TIMER:
		return vec_push(&stage->timers, *(const struct wl_timer_record *)header);
	case WL_RECORD_STACK:
		return take_stack(stage, (const struct wl_stack_record *)header);
	case WL_RECORD_STACK_WAIT:
		return vec_push(&stage->stack_waits, *(const struct wl_stack_wait_record *)header);
	case WL_RECORD_TASK:
		break;
	default:
		return 0;
	}
	if (task->event == WL_TASK_SEEN && task->pid == task->tid && !stage->adopt_err)
		stage->adopt_err = capture__adopt_process(stage->capture, task->pid, task->ts);
	return vec_push(&stage->tasks, *task);
}

void stage_forget(struct stage *stage)
{
	capture__poll(stage->capture, 0, on_record, stage);
	stage->intervals.cnt = stage->tasks.cnt = stage->segments.cnt = stage->wakeups.cnt = 0;
	stage->sockets.cnt = stage->blocks.cnt = stage->timers.cnt = 0;
	stage->stacks.cnt = stage->stack_waits.cnt = 0;
}

bool stage_await(struct stage *stage, stage_condition enough, const void *want)
{
	uint64_t limit_ts = monotonic_ns() + AWAIT_NS;

	for (;;) {
		int err = capture__poll(stage->capture, POLL_MS, on_record, stage);

		if (enough(stage, want))
			return true;
		if ((err < 0 && err != -EINTR) || monotonic_ns() > limit_ts)
			return false;
	}
}

bool stage_accounted(const struct stage *stage, const void *want)
{
	struct capture_counts counts;

	(void)want;
	capture__counts(stage->capture, &counts);
	return stage->interval_cnt + counts.loss[WL_LOSS_INTERVAL].lost >= counts.loss[WL_LOSS_INTERVAL].emitted;
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

struct check *stage_line(struct stage *stage, const char *name, const char *feature, const char *unit)
{
	struct check check = {.name = name, .feature = feature, .unit = unit};

	if (vec_push(stage->list, check)) {
		log_error("out of memory");
		return NULL;
	}
	return &stage->list->items[stage->list->cnt - 1];
}

struct check *stage_check(struct stage *stage, const char *name, enum hook_feature feature, const char *unit)
{
	const struct hook_survey *survey = capture__survey(stage->capture);
	struct check *check = stage_line(stage, name, features[feature].name, unit);

	if (!check)
		return NULL;
	check->tier = survey->tier[feature];
	if (!check->tier) {
		check_skip(check, "%s is not measured on this kernel: %s", features[feature].name,
			   survey->missing[feature] ? survey->missing[feature] : "no hook for it");
		return NULL;
	}
	hook_tier_name(feature, check->tier, check->hook, sizeof(check->hook));
	return check;
}

bool stage_ask(struct stage *stage, struct check *check, enum witness_task task, uint32_t arg,
	       struct witness_answer *answer)
{
	int err = witness_order(&stage->witness, task, arg);

	if (!err)
		err = witness_answer(&stage->witness, answer);
	if (err)
		check_fail(check, "the witness process does not answer: %s", strerror(-err));
	return !err;
}

/* The symbol list needs a file, and there may be nowhere to write one. */
static int resolve_sites(struct stage *stage)
{
	int fd = memfd_create("selftest.symbols", MFD_CLOEXEC), err;
	char path[64];

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = write(fd, LIST_TEXT, strlen(LIST_TEXT)) == (ssize_t)strlen(LIST_TEXT) ? 0 : -EIO;
	if (!err)
		err = symbol_list_read(path, &stage->lines);
	if (!err)
		err = program__open(stage->witness.pid, NULL, &stage->program);
	if (!err)
		err = symbol_list_resolve(&stage->lines, path, stage->program, &stage->targets);
	close(fd);
	return err;
}

/* The first line of the list. */
static void find_deed(struct stage *stage)
{
	const struct probe_target *target = &stage->targets.targets.items[0];
	const struct program_function *deed = program__function(stage->program, target->func);

	if (!deed)
		return;
	stage->deed_addr = deed->addr + program__module(stage->program, target->module)->bias;
	stage->deed_end = stage->deed_addr + deed->size;
}

static int attach_sites(struct stage *stage)
{
	size_t cnt = stage->targets.targets.cnt;
	struct probe probes[STAGE_PROBE_CNT];

	if (cnt != STAGE_PROBE_CNT)
		return -ENOTUNIQ;
	for (size_t i = 0; i < cnt; i++) {
		const struct probe_target *target = &stage->targets.targets.items[i];

		probe_of_target(target, &stage->lines.items[target->line_idx], stage->program, &probes[i]);
	}
	return capture__attach_probes(stage->capture, probes, cnt, &stage->probes);
}

#define SELFTEST_VALUE_FRAMES 4

static bool is_any_forced(const struct selftest_options *options)
{
	for (int f = 0; f < HOOK_FEATURE_CNT; f++)
		if (options->force_tier[f])
			return true;
	return false;
}

bool stage_open(struct stage *stage, const char *name, enum stage_kind kind)
{
	bool windows = kind == STAGE_WINDOWS, sockets = kind == STAGE_SOCKETS || windows, trace = kind == STAGE_TRACE;
	struct capture_opts opts = {
		.processes = &stage->processes,
		.children = true,
		.rate = CAPTURE_RATE_ALL,
		.windows = windows,
		.watch_first = windows,
		.ring_sz = trace || kind == STAGE_NEWCOMERS ? RING_SZ_LARGE : RING_SZ,
		.trace = trace,
		.stacks = trace,
		/* No value is read, but the program that reads them is to load as well; it has no tiers. */
		.values = trace && !is_any_forced(stage->options) ? SELFTEST_VALUE_FRAMES : 0,
		.outside_max = trace ? 1000 : 0,
		.btf_path = stage->options->btf_path,
	};
	const char *what = "the witness process cannot be looked at";
	struct check *check;
	int err;

	log_progress("testing %s", name);
	memcpy(opts.force_tier, stage->options->force_tier, sizeof(opts.force_tier));
	err = target_tree(stage->witness.pid, &stage->processes);
	if (!err && sockets)
		err = target_listeners_read(&stage->processes, &stage->listeners);
	if (!err && !sockets) {
		what = "its own functions were not found in this program (was it stripped?)";
		err = resolve_sites(stage);
	}
	if (sockets)
		opts.listeners = &stage->listeners;
	opts.sockets = sockets;
	/* In windows, nothing is probed, but the programs of probes are to load as well. */
	opts.probes = !sockets || windows;
	if (!err) {
		what = "the capture could not be made";
		stage->interval_cnt = 0;
		stage->capture = capture__new(&opts);
		err = stage->capture ? capture__start(stage->capture) : -errno;
	}
	if (!err)
		stage->probe_tier = capture__survey(stage->capture)->tier[HOOK_FEATURE_PROBE];
	if (!err && !sockets)
		err = attach_sites(stage);
	if (!err && !sockets)
		find_deed(stage);
	if (!err) {
		capture__select(stage->capture);
		return true;
	}
	check = stage_line(stage, name, "", "");
	if (check)
		check_fail(check, "%s: %s", what, strerror(-err));
	return false;
}

void stage_close(struct stage *stage)
{
	capture__free(stage->capture);
	stage->capture = NULL;
	vec_free(&stage->processes);
	vec_free(&stage->listeners);
	symbol_list_free(&stage->lines);
	probe_targets_free(&stage->targets);
	program__free(stage->program);
	stage->program = NULL;
	vec_free(&stage->intervals);
	vec_free(&stage->tasks);
	vec_free(&stage->segments);
	vec_free(&stage->wakeups);
	vec_free(&stage->sockets);
	vec_free(&stage->blocks);
	vec_free(&stage->timers);
	vec_free(&stage->stacks);
	vec_free(&stage->stack_waits);
	vec_free(&stage->deed_keys);
}

/* A tier that this kernel does not have cannot be tested: that is no failed check. */
static int check_forced(const struct selftest_options *options)
{
	struct hook_survey survey;
	char why[256];
	int err = hook_survey_make(&survey, options->btf_path, why, sizeof(why));

	if (err) {
		log_error("%s", why);
		return err;
	}
	for (size_t i = 0; i < hook_cnt; i++) {
		if (hooks[i].tier != options->force_tier[hooks[i].feature] || survey.works[i] || hooks[i].if_there)
			continue;
		log_error("tier %u of %s cannot be forced here: %s", hooks[i].tier, features[hooks[i].feature].name,
			  survey.why[i]);
		return -ENOTSUP;
	}
	return 0;
}

int selftest_run(const struct selftest_options *options)
{
	struct stage stage = {.options = options};
	checks list = {};
	struct utsname uts;
	int err;

	stage.list = &list;
	if (privilege_check() || check_forced(options))
		return EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	err = witness_start(&stage.witness, -1);
	if (err) {
		log_error("the self-test's witness process could not be started: %s", strerror(-err));
		return EXIT_FAILED;
	}
	if (stage_open(&stage, "functions", STAGE_FUNCTIONS))
		selftest_functions(&stage);
	stage_close(&stage);
	selftest_newcomers(options, &list, stage.probe_tier);
	if (stage_open(&stage, "sockets", STAGE_SOCKETS))
		selftest_sockets(&stage);
	stage_close(&stage);
	if (stage_open(&stage, "windows", STAGE_WINDOWS))
		selftest_windows(&stage);
	stage_close(&stage);
	if (stage_open(&stage, "trace", STAGE_TRACE))
		selftest_trace(&stage);
	stage_close(&stage);
	witness_stop(&stage.witness);
	log_progress_end();
	uname(&uts);
	err = options->json ? checks_print_json(&list, uts.release, uts.machine)
			    : checks_print_text(&list, uts.release, uts.machine);
	if (!err && !checks_passed(&list))
		err = -EBADMSG;
	vec_free(&list);
	return err ? EXIT_FAILED : EXIT_DONE;
}
