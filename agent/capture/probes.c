// SPDX-License-Identifier: GPL-2.0-only
#include "capture/probes.h"

#include "base/clock.h"
#include "base/log.h"
#include "bpf/knobs.h"
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After a uretprobe x86 has popped the return address; arm64 keeps it in a register. */
#if defined(__x86_64__)
#define RETURN_BIAS (-8)
#else
#define RETURN_BIAS 0
#endif

/* Coroutines have at least 16 KiB each; few functions need as much for themselves. */
#define STACK_REACH 16384

/* In the order in which they are attached: no entry goes without its exit. */
enum site_kind { SITE_RETURN, SITE_EXIT, SITE_ENTRY, SITE_KINDS };

struct site {
	enum site_kind kind;
	uint32_t file; /* index into the set's files */
	uint32_t member;
	uint64_t file_off, semaphore_off, cookie;
};

/* One probe of a set. */
struct member {
	uint32_t spec; /* the one that it is counted by, which may be another member's */
	bool owns_spec;
	uint32_t func;
	enum plan_cost entry_cost, exit_cost;
	bool exit_is_return;
	struct probe_hit_count hits; /* once it is detached */
};

struct set_link {
	pid_t pid;
	struct bpf_link *link;
};

struct probe_set {
	VEC(struct site) sites; /* by kind, then file */
	VEC(struct member) members;
	VEC(char *) files;
	VEC(int) file_fds; /* held open: the process that they were found by may go */
	VEC(struct set_link) links;
	uint64_t attach_ns, detach_ts;
	bool attached;
};

struct probes {
	struct capture *capture;
	int specs_fd, hits_fd;
	VEC(struct probe_set *) sets;
	VEC(pid_t) pids;
	VEC(uint32_t) free_specs;
	uint32_t next_spec;
};

struct probes *probes__new(struct capture *capture, int specs_fd, int hits_fd)
{
	struct probes *probes = calloc(1, sizeof(*probes));
	const target_processes *processes = capture->opts.processes;

	if (!probes)
		return NULL;
	probes->capture = capture;
	probes->specs_fd = specs_fd;
	probes->hits_fd = hits_fd;
	for (size_t i = 0; i < processes->cnt && (!i || capture->opts.children); i++) {
		if (vec_push(&probes->pids, processes->items[i].pid)) {
			probes__free(probes);
			errno = ENOMEM;
			return NULL;
		}
	}
	return probes;
}

static void set__free(struct probe_set *set)
{
	for (size_t i = 0; i < set->files.cnt; i++)
		free(set->files.items[i]);
	for (size_t i = 0; i < set->file_fds.cnt; i++)
		close(set->file_fds.items[i]);
	vec_free(&set->sites);
	vec_free(&set->members);
	vec_free(&set->files);
	vec_free(&set->file_fds);
	vec_free(&set->links);
	free(set);
}

void probes__free(struct probes *probes)
{
	if (!probes)
		return;
	probes__detach_all(probes->capture);
	for (size_t i = 0; i < probes->sets.cnt; i++)
		set__free(probes->sets.items[i]);
	vec_free(&probes->sets);
	vec_free(&probes->pids);
	vec_free(&probes->free_specs);
	free(probes);
}

/* --- hits --------------------------------------------------------------------------------------------------------- */

static struct probe_hit_count read_hits(const struct probes *probes, uint32_t spec)
{
	uint32_t cpu_cnt = probes->capture->cpu_cnt;
	struct probe_hit_count *cpus = calloc(cpu_cnt, sizeof(*cpus)), sum = {0};

	if (cpus && !bpf_map_lookup_elem(probes->hits_fd, &spec, cpus)) {
		for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++) {
			sum.entries += cpus[cpu].entries;
			sum.exits += cpus[cpu].exits;
		}
	}
	free(cpus);
	return sum;
}

static int zero_hits(const struct probes *probes, uint32_t spec)
{
	struct probe_hit_count *cpus = calloc(probes->capture->cpu_cnt, sizeof(*cpus));
	int err = cpus ? 0 : -ENOMEM;

	if (!err && bpf_map_update_elem(probes->hits_fd, &spec, cpus, BPF_ANY))
		err = -errno;
	free(cpus);
	return err;
}

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
		struct probe_hit_count count = set->attached ? read_hits(capture->probes, member->spec) : member->hits;

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

/* --- what a set consists of --------------------------------------------------------------------------------------- */

/* -ENOSPC when the table is full. */
static int take_spec(struct probes *probes, uint32_t *spec)
{
	if (probes->free_specs.cnt)
		*spec = probes->free_specs.items[--probes->free_specs.cnt];
	else if (probes->next_spec < CAPTURE_PROBES_MAX)
		*spec = probes->next_spec++;
	else
		return -ENOSPC;
	return zero_hits(probes, *spec);
}

static int file_index(struct probe_set *set, const char *file, uint32_t *idx)
{
	char *copy;
	int fd;

	for (size_t i = 0; i < set->files.cnt; i++) {
		if (!strcmp(set->files.items[i], file)) {
			*idx = i;
			return 0;
		}
	}
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	copy = strdup(file);
	if (!copy || vec_reserve(&set->files, 1) || vec_reserve(&set->file_fds, 1)) {
		free(copy);
		close(fd);
		return -ENOMEM;
	}
	*idx = set->files.cnt;
	set->files.items[set->files.cnt++] = copy;
	set->file_fds.items[set->file_fds.cnt++] = fd;
	return 0;
}

static int add_site(struct probe_set *set, const struct site *like, enum site_kind kind, uint64_t file_off,
		    int32_t bias)
{
	struct site site = *like;

	site.kind = kind;
	site.file_off = file_off;
	site.cookie = PROBE_COOKIE(set->members.items[like->member].spec, bias);
	return vec_push(&set->sites, site);
}

static int add_exits(struct probe_set *set, const struct site *like, const struct plan *plan, struct member *member)
{
	int err = 0;

	if (plan->exit == PLAN_EXIT_URETPROBE) {
		member->exit_is_return = true;
		/* An entry at the same place has taken the trap already. */
		member->exit_cost = plan->entry.cost;
		return add_site(set, like, SITE_RETURN, plan->uretprobe_off, RETURN_BIAS);
	}
	for (size_t i = 0; !err && i < plan->exits.cnt; i++) {
		if (plan->exits.items[i].cost > member->exit_cost)
			member->exit_cost = plan->exits.items[i].cost;
		err = add_site(set, like, SITE_EXIT, plan->exits.items[i].file_off,
			       (int32_t)plan->exits.items[i].sp_bias);
	}
	return err;
}

static int add_sites(struct probe_set *set, uint32_t idx, const struct probe *probe, bool wants_exit)
{
	struct member *member = &set->members.items[idx];
	struct site site = {.member = idx};
	int err = file_index(set, probe->file, &site.file);

	if (err)
		return err;
	if (probe->usdt) {
		member->entry_cost = probe->usdt_cost;
		site.semaphore_off = probe->usdt->semaphore_off;
		return add_site(set, &site, SITE_ENTRY, probe->usdt->file_off, 0);
	}
	member->entry_cost = probe->plan->entry.cost;
	if (wants_exit)
		err = add_exits(set, &site, probe->plan, member);
	return err ? err
		   : add_site(set, &site, SITE_ENTRY, probe->plan->entry.file_off, (int32_t)probe->plan->entry.sp_bias);
}

/* Another probe of the set by whose hits this one, which only times the function, is served as well. */
static const struct probe *partner_of(const struct probe *probes, size_t cnt, const struct probe *probe)
{
	if (probe->role != PROBE_FUNCTION || !probe->plan)
		return NULL;
	for (size_t i = 0; i < cnt; i++)
		if (probes[i].func == probe->func && probes[i].role != PROBE_FUNCTION && probes[i].plan &&
		    probes[i].plan->exit != PLAN_EXIT_NONE && !strcmp(probes[i].file, probe->file))
			return &probes[i];
	return NULL;
}

/* Is there a probe whose work is only to time the function that `probe` has another role for? */
static const struct probe *timer_of(const struct probe *probes, size_t cnt, const struct probe *probe)
{
	for (size_t i = 0; i < cnt; i++)
		if (partner_of(probes, cnt, &probes[i]) == probe)
			return &probes[i];
	return NULL;
}

static void say_refused(const struct probe *probe, const char *why)
{
	log_error("function %u of %s cannot be probed as '%s': %s", probe->func, probe->file,
		  probe_role_name(probe->role), why);
}

static int add_member(struct probes *all, struct probe_set *set, const struct probe *probes, size_t cnt, size_t idx)
{
	const struct probe *probe = &probes[idx], *partner = partner_of(probes, cnt, probe);
	const struct probe *timer = probe->role == PROBE_FUNCTION ? NULL : timer_of(probes, cnt, probe);
	struct member member = {.func = probe->func, .owns_spec = !partner};
	struct probe_spec spec;
	const char *why;
	bool wants_exit;
	int err;

	if (partner)
		return vec_push(&set->members, member);
	err = probe_spec_make(probe, &spec, &why);
	if (err) {
		say_refused(probe, why);
		return err;
	}
	if (timer)
		probe_spec_time(probe, &spec, timer->want_call_addr);
	wants_exit = probe_wants_exit(probe) || spec.flags & SPEC_TIMED;
	err = take_spec(all, &member.spec);
	if (err == -ENOSPC)
		log_error("more than %u probes at a time cannot be attached", CAPTURE_PROBES_MAX);
	if (err)
		return err;
	err = vec_push(&set->members, member);
	if (!err && bpf_map_update_elem(all->specs_fd, &member.spec, &spec, BPF_ANY))
		err = -errno;
	if (!err)
		err = add_sites(set, idx, probe, wants_exit);
	if (err)
		say_refused(probe, strerror(-err));
	return err;
}

static int site_cmp(const void *left, const void *right)
{
	const struct site *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->file_off < b->file_off ? -1 : a->file_off > b->file_off;
}

static int fill_set(struct probes *all, struct probe_set *set, const struct probe *probes, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; !err && i < cnt; i++)
		err = add_member(all, set, probes, cnt, i);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		const struct probe *partner = partner_of(probes, cnt, &probes[i]);

		if (partner)
			set->members.items[i].spec = set->members.items[partner - probes].spec;
	}
	if (set->sites.cnt)
		qsort(set->sites.items, set->sites.cnt, sizeof(*set->sites.items), site_cmp);
	return 0;
}

/* --- attaching ---------------------------------------------------------------------------------------------------- */

static int keep(struct probe_set *set, struct bpf_link *link, pid_t pid)
{
	struct set_link set_link = {pid, link};

	if (!link)
		return -errno;
	if (!vec_push(&set->links, set_link))
		return 0;
	bpf_link__destroy(link);
	return -ENOMEM;
}

static struct bpf_program *program_of(const struct capture *capture, enum site_kind kind)
{
	bool multi = capture->survey.tier[HOOK_FEATURE_PROBE] == 1;
	const char *name = kind == SITE_ENTRY ? (multi ? "on_probe_entry_multi" : "on_probe_entry")
					      : (multi ? "on_probe_exit_multi" : "on_probe_exit");

	return bpf_object__find_program_by_name(capture->object, name);
}

/* Sites first…first+cnt-1, all of one kind and one file, of one process. */
static struct bpf_link *link_multi(const struct capture *capture, const struct probe_set *set, size_t first, size_t cnt,
				   pid_t pid)
{
	const struct site *sites = &set->sites.items[first];
	unsigned long *offsets = calloc(cnt, 3 * sizeof(*offsets)), *semaphores;
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .retprobe = sites->kind == SITE_RETURN, .offsets = offsets,
		    .cnt = cnt);
	__u64 *cookies;
	struct bpf_link *link;
	char path[64];
	int err;

	_Static_assert(sizeof(unsigned long) == sizeof(__u64), "64-bit machines only");
	if (!offsets)
		return NULL;
	semaphores = offsets + cnt;
	cookies = (__u64 *)(offsets + 2 * cnt);
	opts.cookies = cookies;
	for (size_t i = 0; i < cnt; i++) {
		offsets[i] = sites[i].file_off;
		semaphores[i] = sites[i].semaphore_off;
		cookies[i] = sites[i].cookie;
		if (sites[i].semaphore_off)
			opts.ref_ctr_offsets = semaphores;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", set->file_fds.items[sites->file]);
	link = bpf_program__attach_uprobe_multi(program_of(capture, sites->kind), pid, path, NULL, &opts);
	err = errno;
	free(offsets);
	errno = err;
	return link;
}

static struct bpf_link *link_single(const struct capture *capture, const struct probe_set *set, size_t idx, pid_t pid)
{
	const struct site *site = &set->sites.items[idx];
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = site->kind == SITE_RETURN, .bpf_cookie = site->cookie,
		    .ref_ctr_offset = site->semaphore_off);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", set->file_fds.items[site->file]);
	return bpf_program__attach_uprobe_opts(program_of(capture, site->kind), pid, path, site->file_off, &opts);
}

/* Which of the sites is it that the kernel does not take? */
static void say_failure(const struct capture *capture, const struct probe_set *set, size_t first, size_t cnt, pid_t pid,
			int err)
{
	const struct site *site = &set->sites.items[first];

	for (size_t i = first; cnt > 1 && i < first + cnt; i++) {
		struct bpf_link *link = link_multi(capture, set, i, 1, pid);

		if (!link) {
			site = &set->sites.items[i];
			err = -errno;
			break;
		}
		bpf_link__destroy(link);
	}
	log_error("cannot probe function %u at offset 0x%llx of %s in process %d: %s",
		  set->members.items[site->member].func, (unsigned long long)site->file_off,
		  set->files.items[site->file], pid, strerror(-err));
}

static int attach_run(struct capture *capture, struct probe_set *set, size_t first, size_t cnt, pid_t pid, bool say)
{
	bool multi = capture->survey.tier[HOOK_FEATURE_PROBE] == 1;
	int err = 0;

	if (multi) {
		err = keep(set, link_multi(capture, set, first, cnt, pid), pid);
		if (err && err != -ESRCH && say)
			say_failure(capture, set, first, cnt, pid, err);
		return err;
	}
	for (size_t i = first; !err && i < first + cnt; i++) {
		err = keep(set, link_single(capture, set, i, pid), pid);
		if (err && err != -ESRCH && say)
			say_failure(capture, set, i, 1, pid, err);
	}
	return err;
}

static int attach_process(struct capture *capture, struct probe_set *set, pid_t pid, bool say)
{
	size_t first = 0;
	int err = 0;

	while (!err && first < set->sites.cnt) {
		const struct site *site = &set->sites.items[first];
		size_t cnt = 1;

		while (first + cnt < set->sites.cnt && set->sites.items[first + cnt].kind == site->kind &&
		       set->sites.items[first + cnt].file == site->file)
			cnt++;
		err = attach_run(capture, set, first, cnt, pid, say);
		first += cnt;
	}
	return err;
}

static void detach_process(struct probe_set *set, pid_t pid)
{
	size_t left = 0;

	/* Entries first. */
	for (size_t i = set->links.cnt; i-- > 0;)
		if (set->links.items[i].pid == pid)
			bpf_link__destroy(set->links.items[i].link);
	for (size_t i = 0; i < set->links.cnt; i++)
		if (set->links.items[i].pid != pid)
			set->links.items[left++] = set->links.items[i];
	set->links.cnt = left;
}

static void detach(struct probes *probes, struct probe_set *set)
{
	if (!set->detach_ts)
		set->detach_ts = monotonic_ns();
	while (set->links.cnt)
		bpf_link__destroy(set->links.items[--set->links.cnt].link);
	if (!set->attached)
		return;
	for (size_t i = 0; i < set->members.cnt; i++)
		set->members.items[i].hits = read_hits(probes, set->members.items[i].spec);
	set->attached = false;
}

/* Many single probes would slow down every switch of the target's threads. */
static int check_single(struct capture *capture, const struct probe_set *set)
{
	size_t cnt = set->sites.cnt;

	for (size_t i = 0; i < capture->probes->sets.cnt; i++)
		cnt += capture->probes->sets.items[i]->attached ? capture->probes->sets.items[i]->sites.cnt : 0;
	if (capture->survey.tier[HOOK_FEATURE_PROBE] == 1 || cnt <= CAPTURE_SINGLE_PROBES_MAX)
		return 0;
	log_error("%zu sites are too many to probe on this kernel, which has no uprobe_multi: at most %d of them, "
		  "because "
		  "each would slow down every switch of the target's threads: probe fewer functions",
		  cnt, CAPTURE_SINGLE_PROBES_MAX);
	return -ENOTSUP;
}

int capture__attach_probes(struct capture *capture, const struct probe *probes, size_t cnt, struct probe_set **set)
{
	struct probes *all = capture->probes;
	uint64_t begin_ts = monotonic_ns();
	struct probe_set *made;
	size_t attached = 0;
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
	err = fill_set(all, made, probes, cnt);
	if (!err)
		err = check_single(capture, made);
	for (size_t i = 0; !err && i < all->pids.cnt; i++) {
		err = attach_process(capture, made, all->pids.items[i], true);
		/* Gone by now; of the target itself its children may be left. */
		if (err == -ESRCH) {
			detach_process(made, all->pids.items[i]);
			err = i || all->pids.cnt > 1 ? 0 : err;
			continue;
		}
		attached += !err;
	}
	if (err) {
		capture__detach_probes(capture, made);
		return err;
	}
	made->attached = true;
	made->attach_ns = monotonic_ns() - begin_ts;
	log_debug("%zu sites of %zu probes attached to %zu processes in %.1f ms", made->sites.cnt, made->members.cnt,
		  attached, made->attach_ns / 1e6);
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
	/* Without room to remember it the place is not used again. */
	for (size_t i = 0; i < set->members.cnt; i++)
		if (set->members.items[i].owns_spec && vec_push(&all->free_specs, set->members.items[i].spec))
			break;
	set__free(set);
}

void probes__detach_all(struct capture *capture)
{
	for (size_t i = 0; capture->probes && i < capture->probes->sets.cnt; i++)
		detach(capture->probes, capture->probes->sets.items[i]);
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
			detach_process(probes->sets.items[i], pid);
		return err;
	}
	return vec_push(&probes->pids, pid);
}
