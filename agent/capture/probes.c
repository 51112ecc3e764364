// SPDX-License-Identifier: GPL-2.0-or-later
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
	bool forks;         /* it has children, or had some */
	bool refuses_wide;  /* others run the target's program as well, or nobody can tell */
	uint64_t narrow_ts; /* when that turned out, 0: before anything was attached, or not */
	struct capture_unprobed unprobed;
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
	for (size_t i = 0; i < processes->cnt; i++) {
		if (vec_push(&probes->pids, processes->items[i].pid)) {
			probes__free(probes);
			errno = ENOMEM;
			return NULL;
		}
	}
	probes->forks = probes->pids.cnt > 1;
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

/* What a hit costs the target by itself, the program's own run time excluded, in ns. */
static uint32_t hit_cost_ns(enum plan_cost cost, bool is_return)
{
	/* DESIGN §3, "Facts measured on a real 6.18 guest". */
	if (is_return)
		return 280;
	return cost == PLAN_STEPPED ? 10000 : 500;
}

uint32_t capture__call_cost_ns(const struct plan *plan)
{
	uint32_t exit_ns = plan->exit == PLAN_EXIT_URETPROBE ? hit_cost_ns(plan->entry.cost, true) : 0;

	for (size_t i = 0; plan->exit == PLAN_EXIT_SITES && i < plan->exits.cnt; i++) {
		uint32_t site_ns = hit_cost_ns(plan->exits.items[i].cost, false);

		exit_ns = site_ns > exit_ns ? site_ns : exit_ns;
	}
	return hit_cost_ns(plan->entry.cost, false) + exit_ns;
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
		hits[i].cost_ns = !member->owns_spec ? 0
						     : count.entries * hit_cost_ns(member->entry_cost, false) +
							       count.exits * hit_cost_ns(member->exit_cost,
											 member->exit_is_return);
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

/* sites: the run's, with their cookies. */
static int attach_run(struct capture *capture, struct probe_set *set, const struct site_run *run, pid_t pid,
		      enum attach_part part, const struct attach_site *sites, size_t *refused)
{
	const struct attach_sites asked = {
		.group = set->group,
		.part = part,
		.pid = pid,
		.program_fd = program_fd_of(capture, run->kind),
		.file_fd = set->file_fds.items[run->file],
		.is_return = run->kind == SITE_RETURN,
		.multi = multi_of(capture),
		.sites = sites,
		.cnt = run->cnt,
	};

	return attacher__attach(capture->probes->attacher, &asked, refused);
}

static enum attach_part part_of(const struct site_run *run)
{
	return run->of_program ? ATTACH_PROGRAM : ATTACH_LIBRARY;
}

/* The links of one process. */
static int attach_process(struct capture *capture, struct probe_set *set, enum attach_part part, pid_t pid, bool say)
{
	for (size_t i = 0; i < set->runs.cnt; i++) {
		const struct site_run *run = &set->runs.items[i];
		size_t refused;
		int err;

		if (part && part != part_of(run))
			continue;
		err = attach_run(capture, set, run, pid, part_of(run), &set->places.items[run->first], &refused);
		if (err && err != -ESRCH && say)
			say_failure(set, run, refused, pid, err);
		if (err)
			return err;
	}
	return 0;
}

/* --- links that name no process ----------------------------------------------------------------------------------- */

/*
 * A child runs on with its parent's breakpoints, but a link that names a process does not know it: until the child is
 * probed itself, its calls trap for nothing.  A link that names no process has them from the first instruction, and
 * those of everybody else who maps the file.  So only the target's own program has such links, where it has children
 * and nobody else runs that program; when somebody else turns up all the same, each process has its own links again.
 */
static int attach_wide(struct capture *capture, struct probe_set *set)
{
	struct attach_site *sites = calloc(set->sites.cnt + 1, sizeof(*sites));
	int err = sites ? 0 : -ENOMEM;
	size_t refused;

	for (size_t i = 0; !err && i < set->runs.cnt; i++) {
		const struct site_run *run = &set->runs.items[i];

		if (!run->of_program)
			continue;
		for (size_t j = 0; j < run->cnt; j++) {
			sites[j] = set->places.items[run->first + j];
			sites[j].cookie |= PROBE_COOKIE_WIDE;
		}
		err = attach_run(capture, set, run, 0, ATTACH_WIDE, sites, &refused);
	}
	free(sites);
	if (err)
		attacher__close(capture->probes->attacher, set->group, ATTACH_WIDE, 0);
	return err;
}

/*
 * From now on those links count.  The kernel asks both at each hit, one after the other: a thread that it preempts
 * between the two at this very moment has a hit that neither counts, or both do; no other goes without or is taken for
 * two.
 */
static void exchange(struct probes *probes, struct probe_set *set, bool wide)
{
	set->wide = wide;
	for (size_t i = 0; i < set->runs.cnt; i++) {
		const struct site_run *run = &set->runs.items[i];

		for (size_t j = run->first; run->of_program && j < run->first + run->cnt; j++) {
			const struct member *member = &set->members.items[set->sites.items[j].member];
			int err = probe_specs__set_wide(&probes->specs, member->spec, wide);

			if (err)
				log_debug("cannot exchange the links of place %u of the table of probes: %s",
					  member->spec, strerror(-err));
		}
	}
	attacher__close(probes->attacher, set->group, wide ? ATTACH_PROGRAM : ATTACH_WIDE, 0);
}

static const struct site_run *run_of_program(const struct probe_set *set)
{
	for (size_t i = 0; i < set->runs.cnt; i++)
		if (set->runs.items[i].of_program)
			return &set->runs.items[i];
	return NULL;
}

static bool may_go_wide(struct capture *capture, const struct probe_set *set)
{
	const struct site_run *run = run_of_program(set);
	struct probes *probes = capture->probes;

	if (!run || probes->refuses_wide || !probes->forks || !capture->opts.children || !multi_of(capture))
		return false;
	probes->refuses_wide = !target_runs_alone(probes->pids.items, probes->pids.cnt, set->file_fds.items[run->file]);
	return !probes->refuses_wide;
}

void probes__watch(struct capture *capture)
{
	struct probes *probes = capture->probes;

	if (!probes || probes->over || probes->refuses_wide ||
	    !__atomic_load_n(&capture->controls->strangers, __ATOMIC_RELAXED))
		return;
	probes->refuses_wide = true;
	for (size_t i = 0; i < probes->sets.cnt; i++) {
		struct probe_set *set = probes->sets.items[i];

		if (!set->attached || !set->wide)
			continue;
		/* Whoever cannot have them has gone meanwhile. */
		for (size_t j = 0; j < probes->pids.cnt; j++)
			attach_process(capture, set, ATTACH_PROGRAM, probes->pids.items[j], false);
		exchange(probes, set, false);
	}
	probes->narrow_ts = monotonic_ns();
	log_info("probes: somebody else runs the target's program now: from here on each of its processes is probed "
		 "by itself, new ones a moment after they have begun; a call that was at its first or last instruction "
		 "just now may have been missed, or taken for two");
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
	set->ticket = attacher__close(probes->attacher, set->group, ATTACH_ALL, 0);
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
static int attach_processes(struct capture *capture, struct probe_set *set, enum attach_part part)
{
	struct probes *probes = capture->probes;
	size_t attached = 0;

	for (size_t i = 0; i < probes->pids.cnt; i++) {
		pid_t pid = probes->pids.items[i];
		int err = attach_process(capture, set, part, pid, true);

		if (err == -ESRCH)
			attacher__close(probes->attacher, set->group, ATTACH_ALL, pid);
		if (err && (err != -ESRCH || probes->pids.cnt == 1))
			return err;
		attached += !err;
	}
	log_debug("%zu sites of %zu probes attached to %zu processes", set->sites.cnt, set->members.cnt, attached);
	return 0;
}

static int attach_all(struct capture *capture, struct probe_set *set)
{
	const struct probes *probes = capture->probes;
	int err;

	for (size_t i = 0; probes->pids.cnt && i < set->runs.cnt; i++) {
		struct site_run *run = &set->runs.items[i];

		run->of_program = target_runs(probes->pids.items[0], set->file_fds.items[run->file]);
	}
	if (!may_go_wide(capture, set))
		return attach_processes(capture, set, ATTACH_ALL);
	err = attach_processes(capture, set, ATTACH_LIBRARY);
	if (err || !attach_wide(capture, set)) {
		if (!err)
			exchange(capture->probes, set, true);
		return err;
	}
	return attach_processes(capture, set, ATTACH_PROGRAM);
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
		err = attach_all(capture, made);
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
	vec_take_out(&all->sets, set);
	probe_set__free(set, &all->specs);
}

pid_t capture__attacher_pid(const struct capture *capture)
{
	return capture->probes ? attacher__pid(capture->probes->attacher) : 0;
}

size_t capture__detaching(struct capture *capture, uint64_t patience_ns)
{
	return capture->probes ? attacher__closing(capture->probes->attacher, patience_ns) : 0;
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
	closing = capture__detaching(capture, PATIENCE_NS);
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

/* *probed_ts: when the last of the set's probes came to the process, if that is later. */
static int add_to_set(struct capture *capture, struct probe_set *set, pid_t pid, uint64_t *probed_ts)
{
	int err = attach_process(capture, set, set->wide ? ATTACH_LIBRARY : ATTACH_ALL, pid, false);
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < set->runs.cnt; i++) {
		uint64_t ts = set->wide && set->runs.items[i].of_program ? set->wide_ts : now;

		*probed_ts = ts > *probed_ts ? ts : *probed_ts;
	}
	return err;
}

/* The first child: there may be more to come. */
static void begin_to_fork(struct capture *capture)
{
	struct probes *probes = capture->probes;

	probes->forks = true;
	for (size_t i = 0; i < probes->sets.cnt; i++) {
		struct probe_set *set = probes->sets.items[i];

		if (!set->attached || set->wide || !may_go_wide(capture, set) || attach_wide(capture, set))
			continue;
		exchange(probes, set, true);
		set->wide_ts = monotonic_ns();
	}
}

int probes__add_process(struct capture *capture, pid_t pid, uint64_t born_ts)
{
	struct probes *probes = capture->probes;
	uint64_t probed_ts = 0, since_ts;
	int err = 0;

	for (size_t i = 0; i < probes->pids.cnt; i++)
		if (probes->pids.items[i] == pid)
			return 0;
	if (capture->stopped)
		return 0;
	if (!probes->forks)
		begin_to_fork(capture);
	for (size_t i = 0; !err && i < probes->sets.cnt; i++)
		if (probes->sets.items[i]->attached)
			err = add_to_set(capture, probes->sets.items[i], pid, &probed_ts);
	since_ts = born_ts > probes->narrow_ts ? born_ts : probes->narrow_ts;
	if (probed_ts > since_ts) {
		probes->unprobed.cnt++;
		probes->unprobed.gone_cnt += err == -ESRCH;
		probes->unprobed.ns += probed_ts - since_ts;
	}
	if (err) {
		for (size_t i = 0; i < probes->sets.cnt; i++)
			attacher__close(probes->attacher, probes->sets.items[i]->group, ATTACH_ALL, pid);
		return err;
	}
	return vec_push(&probes->pids, pid);
}

struct capture_unprobed capture__unprobed(const struct capture *capture)
{
	return capture->probes ? capture->probes->unprobed : (struct capture_unprobed){0};
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

void probes__drop_process(struct capture *capture, pid_t pid, bool exited)
{
	struct probes *probes = capture->probes;

	for (size_t i = 0; i < probes->pids.cnt; i++) {
		if (probes->pids.items[i] != pid)
			continue;
		if (capture->stopped || (exited && has_other_threads(pid)))
			return;
		for (size_t j = 0; j < probes->sets.cnt; j++)
			attacher__close(probes->attacher, probes->sets.items[j]->group, ATTACH_ALL, pid);
		probes->pids.items[i] = probes->pids.items[--probes->pids.cnt];
		return;
	}
}
