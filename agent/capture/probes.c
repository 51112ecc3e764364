// SPDX-License-Identifier: GPL-2.0-only
#include "capture/probes.h"

#include "base/clock.h"
#include "base/log.h"
#include "bpf/knobs.h"
#include "capture/attacher.h"
#include "capture/internal.h"
#include "capture/probe_set.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Coroutines have at least 16 KiB each; few functions need as much for themselves. */
#define STACK_REACH 16384

/* How long the end of a recording waits for breakpoints to be taken out, and the end of a capture after that. */
#define PATIENCE_NS     1000000000ULL
#define END_PATIENCE_NS 200000000ULL

struct probes {
	struct capture *capture;
	struct attacher *attacher;
	struct probe_specs specs;
	VEC(struct probe_set *) sets;
	VEC(pid_t) pids;
	uint32_t last_group;
	bool lost; /* the attaching process was killed */
	bool over;
};

static bool multi_of(const struct capture *capture)
{
	return capture->survey.tier[HOOK_FEATURE_PROBE] == 1;
}

struct probes *probes__new(struct capture *capture)
{
	struct probes *probes = calloc(1, sizeof(*probes));
	const target_processes *processes = capture->opts.processes;

	if (!probes)
		return NULL;
	probes->capture = capture;
	probes->attacher = attacher__new(multi_of(capture));
	probes->specs.attacher = probes->attacher;
	if (!probes->attacher) {
		free(probes);
		return NULL;
	}
	for (size_t i = 0; i < processes->cnt && (!i || capture->opts.children); i++) {
		if (vec_push(&probes->pids, processes->items[i].pid)) {
			probes__free(probes);
			errno = ENOMEM;
			return NULL;
		}
	}
	return probes;
}

void probes__set_tables(struct probes *probes, int specs_fd, int hits_fd)
{
	probes->specs.specs_fd = specs_fd;
	probes->specs.hits_fd = hits_fd;
	probes->specs.cpu_cnt = probes->capture->cpu_cnt;
}

void probes__free(struct probes *probes)
{
	if (!probes)
		return;
	for (size_t i = 0; i < probes->sets.cnt; i++)
		probe_set__free(probes->sets.items[i], &probes->specs);
	attacher__free(probes->attacher, END_PATIENCE_NS);
	probe_specs__free(&probes->specs);
	vec_free(&probes->sets);
	vec_free(&probes->pids);
	free(probes);
}

/* --- hits --------------------------------------------------------------------------------------------------------- */

uint32_t capture__hit_cost_ns(enum plan_cost cost, bool is_return)
{
	/* DESIGN §3, "Facts measured on a real 6.18 guest". */
	if (is_return)
		return 280;
	return cost == PLAN_STEPPED ? 10000 : 500;
}

void capture__probe_hits(struct capture *capture, const struct probe_set *set, struct probe_hits *hits)
{
	for (size_t i = 0; i < set->members.cnt; i++) {
		const struct member *member = &set->members.items[i];
		struct probe_hit_count count =
			set->attached ? probe_specs__hits(&capture->probes->specs, member->spec) : member->hits;

		hits[i].entries = count.entries;
		hits[i].exits = count.exits;
		/* Counted for the one that it is attached for. */
		hits[i].cost_ns =
			!member->owns_spec
				? 0
				: count.entries * capture__hit_cost_ns(member->entry_cost, false) +
					  count.exits * capture__hit_cost_ns(member->exit_cost, member->exit_is_return);
	}
}

void capture__set_stack_switching(struct capture *capture, bool switches)
{
	__atomic_store_n(&capture->controls->stack_reach, switches ? STACK_REACH : 0, __ATOMIC_RELAXED);
}

uint64_t capture__attach_ns(const struct probe_set *set)
{
	return set->attach_ns;
}

uint64_t capture__detach_ts(const struct probe_set *set)
{
	return set->detach_ts;
}

/* --- attaching ---------------------------------------------------------------------------------------------------- */

static int program_fd_of(const struct capture *capture, enum site_kind kind)
{
	bool multi = multi_of(capture);
	const char *name = kind == SITE_ENTRY ? (multi ? "on_probe_entry_multi" : "on_probe_entry")
					      : (multi ? "on_probe_exit_multi" : "on_probe_exit");

	return bpf_program__fd(bpf_object__find_program_by_name(capture->object, name));
}

static void say_failure(const struct probe_set *set, const struct site_run *run, size_t refused, pid_t pid, int err)
{
	const struct site *site = &set->sites.items[run->first + (refused < run->cnt ? refused : 0)];

	if (err == -EOWNERDEAD)
		log_error("cannot probe process %d: the process that attaches probes (whylate-attach) was killed", pid);
	else
		log_error("cannot probe function %u at offset 0x%llx of %s in process %d: %s",
			  set->members.items[site->member].func, (unsigned long long)site->place.file_off,
			  set->files.items[site->file], pid, strerror(-err));
}

static int attach_process(struct capture *capture, struct probe_set *set, pid_t pid, bool say)
{
	for (size_t i = 0; i < set->runs.cnt; i++) {
		const struct site_run *run = &set->runs.items[i];
		struct attach_sites sites = {
			.group = set->group,
			.pid = pid,
			.program_fd = program_fd_of(capture, run->kind),
			.file_fd = set->file_fds.items[run->file],
			.is_return = run->kind == SITE_RETURN,
			.multi = multi_of(capture),
			.sites = &set->places.items[run->first],
			.cnt = run->cnt,
		};
		size_t refused;
		int err = attacher__attach(capture->probes->attacher, &sites, &refused);

		if (err && err != -ESRCH && say)
			say_failure(set, run, refused, pid, err);
		if (err)
			return err;
	}
	return 0;
}

static void read_hits(struct probes *probes, struct probe_set *set)
{
	for (size_t i = 0; i < set->members.cnt; i++)
		set->members.items[i].hits = probe_specs__hits(&probes->specs, set->members.items[i].spec);
}

/* No interval ends, whole as it would seem, when the calls in it are no longer seen: functions are the last. */
static void switch_off(struct probes *probes, struct probe_set *set)
{
	for (int functions = 0; functions < 2; functions++) {
		for (size_t i = 0; i < set->members.cnt; i++) {
			const struct member *member = &set->members.items[i];

			if (member->owns_spec && (member->role == PROBE_FUNCTION) == functions)
				probe_specs__switch_off(&probes->specs, member->spec);
		}
	}
}

/* Its probes do nothing from now on; taking them out is under way. */
static void detach(struct probes *probes, struct probe_set *set)
{
	if (set->detach_ts)
		return;
	set->detach_ts = monotonic_ns();
	switch_off(probes, set);
	if (set->attached)
		read_hits(probes, set);
	set->ticket = attacher__close(probes->attacher, set->group, 0);
	set->attached = false;
}

/* Many single probes would slow down every switch of the target's threads. */
static int check_single(struct capture *capture, const struct probe_set *set)
{
	size_t cnt = set->sites.cnt;

	for (size_t i = 0; i < capture->probes->sets.cnt; i++)
		cnt += capture->probes->sets.items[i]->attached ? capture->probes->sets.items[i]->sites.cnt : 0;
	if (multi_of(capture) || cnt <= CAPTURE_SINGLE_PROBES_MAX)
		return 0;
	log_error("%zu sites are too many to probe on this kernel, which has no uprobe_multi: at most %d of them, "
		  "because each would slow down every switch of the target's threads: probe fewer functions",
		  cnt, CAPTURE_SINGLE_PROBES_MAX);
	return -ENOTSUP;
}

/* A process that is gone by now is left out; of the target itself its children may be left. */
static int attach_processes(struct capture *capture, struct probe_set *set)
{
	struct probes *probes = capture->probes;
	size_t attached = 0;

	for (size_t i = 0; i < probes->pids.cnt; i++) {
		pid_t pid = probes->pids.items[i];
		int err = attach_process(capture, set, pid, true);

		if (err == -ESRCH)
			attacher__close(probes->attacher, set->group, pid);
		if (err && (err != -ESRCH || probes->pids.cnt == 1))
			return err;
		attached += !err;
	}
	log_debug("%zu sites of %zu probes attached to %zu processes", set->sites.cnt, set->members.cnt, attached);
	return 0;
}

int capture__attach_probes(struct capture *capture, const struct probe *probes, size_t cnt, struct probe_set **set)
{
	struct probes *all = capture->probes;
	uint64_t begin_ts = monotonic_ns();
	struct probe_set *made;
	int err;

	*set = NULL;
	if (!all || capture->stopped)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	if (vec_push(&all->sets, made)) {
		free(made);
		return -ENOMEM;
	}
	made->group = ++all->last_group;
	err = probe_set__fill(made, &all->specs, probes, cnt);
	if (!err)
		err = check_single(capture, made);
	if (!err)
		err = attach_processes(capture, made);
	if (err) {
		capture__detach_probes(capture, made);
		return err;
	}
	made->attached = true;
	made->attach_ns = monotonic_ns() - begin_ts;
	*set = made;
	return 0;
}

void capture__detach_probes(struct capture *capture, struct probe_set *set)
{
	struct probes *all = capture->probes;

	if (!set)
		return;
	detach(all, set);
	for (size_t i = 0; i < all->sets.cnt; i++) {
		if (all->sets.items[i] != set)
			continue;
		all->sets.items[i] = all->sets.items[--all->sets.cnt];
		break;
	}
	probe_set__free(set, &all->specs);
}

void probes__detach_all(struct capture *capture)
{
	struct probes *probes = capture->probes;
	size_t closing;

	if (!probes || probes->over)
		return;
	probes->over = true;
	for (size_t i = 0; i < probes->sets.cnt; i++)
		detach(probes, probes->sets.items[i]);
	closing = attacher__closing(probes->attacher, PATIENCE_NS);
	if (closing)
		log_info("probes: the kernel has not taken back %zu of the sets that were attached yet: it waits for "
			 "calls that are under way, and whylate-attach waits for it",
			 closing);
}

bool capture__probes_lost(struct capture *capture)
{
	struct probes *probes = capture->probes;

	if (!probes || capture->stopped || probes->lost || !attacher__is_gone(probes->attacher))
		return probes && probes->lost;
	probes->lost = true;
	for (size_t i = 0; i < probes->sets.cnt; i++)
		detach(probes, probes->sets.items[i]);
	return true;
}

int probes__add_process(struct capture *capture, pid_t pid)
{
	struct probes *probes = capture->probes;
	int err = 0;

	for (size_t i = 0; i < probes->pids.cnt; i++)
		if (probes->pids.items[i] == pid)
			return 0;
	if (capture->stopped)
		return 0;
	for (size_t i = 0; !err && i < probes->sets.cnt; i++)
		if (probes->sets.items[i]->attached)
			err = attach_process(capture, probes->sets.items[i], pid, false);
	if (err) {
		for (size_t i = 0; i < probes->sets.cnt; i++)
			attacher__close(probes->attacher, probes->sets.items[i]->group, pid);
		return err;
	}
	return vec_push(&probes->pids, pid);
}

/* A process lives on without its first thread as long as it has others. */
static bool has_other_threads(pid_t pid)
{
	/* A link for each of them beside the two that every directory has. */
	enum { LINKS_ALONE = 3 };
	struct stat stat_buf;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return !stat(path, &stat_buf) && stat_buf.st_nlink > LINKS_ALONE;
}

void probes__drop_process(struct capture *capture, pid_t pid)
{
	struct probes *probes = capture->probes;

	for (size_t i = 0; i < probes->pids.cnt; i++) {
		if (probes->pids.items[i] != pid)
			continue;
		if (capture->stopped || has_other_threads(pid))
			return;
		for (size_t j = 0; j < probes->sets.cnt; j++)
			attacher__close(probes->attacher, probes->sets.items[j]->group, pid);
		probes->pids.items[i] = probes->pids.items[--probes->pids.cnt];
		return;
	}
}
