// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/probe_set.h"

#include "base/log.h"
#include "base/order.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* After a uretprobe x86 has popped the return address; arm64 keeps it in a register. */
#if defined(__x86_64__)
#define RETURN_BIAS (-8)
#else
#define RETURN_BIAS 0
#endif

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
	site.place.file_off = file_off;
	site.place.cookie = PROBE_COOKIE(set->members.items[like->member].spec, bias);
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
		site.place.semaphore_off = probe->usdt->semaphore_off;
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

static int add_member(struct probe_set *set, struct probe_specs *specs, const struct probe *probes, size_t cnt,
		      size_t idx)
{
	const struct probe *probe = &probes[idx], *partner = partner_of(probes, cnt, probe);
	const struct probe *timer = probe->role == PROBE_FUNCTION ? NULL : timer_of(probes, cnt, probe);
	struct member member = {.func = probe->func, .role = probe->role, .owns_spec = !partner};
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
	err = probe_specs__take(specs, &member.spec);
	if (err == -ENOSPC)
		log_error("more than %u probes at a time cannot be attached: name fewer functions", PROBE_SPECS_MAX);
	if (err)
		return err;
	err = vec_push(&set->members, member);
	if (!err)
		err = probe_specs__set(specs, member.spec, &spec);
	if (!err)
		err = add_sites(set, idx, probe, wants_exit);
	if (err)
		say_refused(probe, strerror(-err));
	return err;
}

ORDER(site_cmp, struct site, BY(a->kind, b->kind), BY(a->file, b->file), BY(a->place.file_off, b->place.file_off));

/* The sites are in order: what goes together lies together. */
static int make_runs(struct probe_set *set)
{
	for (size_t i = 0; i < set->sites.cnt; i++) {
		const struct site *site = &set->sites.items[i];
		struct site_run *last = set->runs.cnt ? &set->runs.items[set->runs.cnt - 1] : NULL;
		struct site_run run = {.kind = site->kind, .file = site->file, .first = i};

		if (vec_push(&set->places, site->place))
			return -ENOMEM;
		if (!last || last->kind != site->kind || last->file != site->file) {
			if (vec_push(&set->runs, run))
				return -ENOMEM;
			last = &set->runs.items[set->runs.cnt - 1];
		}
		last->cnt++;
	}
	return 0;
}

int probe_set__fill(struct probe_set *set, struct probe_specs *specs, const struct probe *probes, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; !err && i < cnt; i++)
		err = add_member(set, specs, probes, cnt, i);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		const struct probe *partner = partner_of(probes, cnt, &probes[i]);

		if (partner)
			set->members.items[i].spec = set->members.items[partner - probes].spec;
	}
	vec_sort(&set->sites, site_cmp);
	return make_runs(set);
}

void probe_set__free(struct probe_set *set, struct probe_specs *specs)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->members.cnt; i++)
		if (set->members.items[i].owns_spec)
			probe_specs__retire(specs, set->members.items[i].spec, set->ticket);
	for (size_t i = 0; i < set->files.cnt; i++)
		free(set->files.items[i]);
	for (size_t i = 0; i < set->file_fds.cnt; i++)
		close(set->file_fds.items[i]);
	vec_free(&set->sites);
	vec_free(&set->places);
	vec_free(&set->runs);
	vec_free(&set->members);
	vec_free(&set->files);
	vec_free(&set->file_fds);
	free(set);
}
