// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A list for a process that nobody has one for: candidates by their names, all of them probed at their entries for some
 * seconds, and what came of it.  What is printed is a symbol list; what is uncertain in it is commented out.
 */
#include "cmd/probes_suggest.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/privilege.h"
#include "capture/probes.h"
#include "cmd/cmd.h"
#include "probe/suggest.h"
#include "view/format.h"
#include "view/json_put.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PER_ROLE_MAX 100
#define POLL_MS      100
#define RING_SZ      (1 << 20)
/* More than this share of one CPU and a line is commented out. */
#define COST_MAX      0.01
#define NEVER_MAX     40
#define SECOND_NS     1e9
#define SAME_RATE_LOW 0.8 /* of the rate of requests: then it is one of theirs */
#define SAME_RATE_TOP 1.25

struct study {
	const struct probes_options *options;
	struct program *program;
	suggestions found;
	struct plan *plans;        /* one for each */
	struct plan *entries;      /* … of which only the entry is attached; nothing in them is owned */
	struct probe_hits *before; /* hits of those that were attached, when counting began */
	struct probe_hits *hits;   /* of those that were attached */
	size_t *attached;          /* index into found */
	size_t attached_cnt;
	target_processes processes;
	target_listeners listeners;
	struct capture *capture;
	double seconds, requests_per_s;
};

static const struct program_function *function_of(const struct study *study, const struct suggestion *suggestion)
{
	return program__function(study->program, suggestion->func);
}

/* Nothing of the records is of interest. */
static int ignore_record(void *owner, const struct wl_record_header *record)
{
	(void)owner;
	(void)record;
	return 0;
}

static int open_capture(struct study *study)
{
	struct capture_opts opts = {
		.processes = &study->processes,
		.listeners = &study->listeners,
		.sockets = true,
		.probes = true,
		.children = study->options->children,
		.rate = 1, /* of 2^32: all are counted, next to none is recorded */
		.ring_sz = RING_SZ,
		.btf_path = study->options->btf_path,
	};
	const struct privilege_uses uses = {.more_processes = true};
	int err = privilege_check();

	if (err)
		return err;
	privilege_narrow(&uses);
	err = target_set_processes(&study->options->target, study->options->children, &study->processes);
	if (!err)
		err = target_listeners_read(&study->processes, &study->listeners);
	if (err) {
		log_error("process %d cannot be looked at: %s", study->options->pid, strerror(-err));
		return err;
	}
	study->capture = capture__new(&opts);
	if (!study->capture)
		return -errno;
	return capture__start(study->capture);
}

/* Only the entries, and only where they are cheap: what is hit a million times must not be found out by harm. */
static int plan_all(struct study *study, struct probe *probes)
{
	const struct plan_needs needs = {.exit = true};
	int err = 0;

	for (size_t i = 0; i < study->found.cnt && !err; i++) {
		const struct suggestion *suggestion = &study->found.items[i];
		const char *file = program__module(study->program, function_of(study, suggestion)->module)->file;
		struct plan *plan = &study->plans[i];

		err = plan_make(study->program, suggestion->func, &needs, plan);
		if (err || !plan->possible || plan->entry.cost != PLAN_EMULATED || !file)
			continue;
		study->entries[i] = *plan;
		study->entries[i].exit = PLAN_EXIT_NONE;
		probes[study->attached_cnt] = (struct probe){
			.func = suggestion->func,
			.role = PROBE_FUNCTION,
			.file = file,
			.plan = &study->entries[i],
		};
		study->attached[study->attached_cnt++] = i;
	}
	return err;
}

static int count(struct study *study)
{
	struct probe *probes = calloc(study->found.cnt, sizeof(*probes));
	struct capture_counts before, after;
	struct probe_set *set = NULL;
	uint64_t begin_ts = 0, end_ts = 0;
	int err = probes ? plan_all(study, probes) : -ENOMEM;

	if (!err)
		err = open_capture(study);
	if (!err)
		err = capture__attach_probes(study->capture, probes, study->attached_cnt, &set);
	if (!err) {
		/* Attaching takes its time, and what came first has been counted meanwhile. */
		capture__probe_hits(study->capture, set, study->before);
		capture__counts(study->capture, &before);
		begin_ts = monotonic_ns();
	}
	while (!err && (end_ts = monotonic_ns()) - begin_ts < study->options->duration_ns) {
		log_progress("counting %zu functions: %.1f s", study->attached_cnt, (end_ts - begin_ts) / SECOND_NS);
		err = capture__poll(study->capture, POLL_MS, ignore_record, study);
		if (err == -EINTR || err > 0)
			err = 0;
	}
	log_progress_end();
	if (!err) {
		capture__probe_hits(study->capture, set, study->hits);
		capture__counts(study->capture, &after);
		study->seconds = (end_ts - begin_ts) / SECOND_NS;
		study->requests_per_s = (after.seen - before.seen) / study->seconds;
	}
	for (size_t i = 0; i < study->attached_cnt && !err; i++)
		study->found.items[study->attached[i]].per_s =
			(study->hits[i].entries - study->before[i].entries) / study->seconds;
	capture__free(study->capture);
	study->capture = NULL;
	free(probes);
	return err;
}

/* --- what is made of it ------------------------------------------------------------------------------------------ */

static bool is_attached(const struct study *study, size_t idx)
{
	for (size_t i = 0; i < study->attached_cnt; i++)
		if (study->attached[i] == idx)
			return true;
	return false;
}

/* What a call costs, in ns, if its end is probed, too. */
static uint32_t call_cost_ns(const struct plan *plan)
{
	enum plan_cost dearest = PLAN_EMULATED;
	uint32_t entry_ns = capture__hit_cost_ns(plan->entry.cost, false);

	for (size_t i = 0; i < plan->exits.cnt; i++)
		if (plan->exits.items[i].cost > dearest)
			dearest = plan->exits.items[i].cost;
	if (plan->exit == PLAN_EXIT_NONE)
		return entry_ns;
	return entry_ns + capture__hit_cost_ns(dearest, plan->exit == PLAN_EXIT_URETPROBE);
}

/* A share of one CPU. */
static double cost_of(const struct study *study, const struct suggestion *suggestion)
{
	return suggestion->per_s * call_cost_ns(&study->plans[suggestion - study->found.items]) / SECOND_NS;
}

/* As a list names it: with its module where that is a library. */
static void put_function(const struct study *study, const struct suggestion *suggestion, char *text, size_t sz)
{
	const struct program_function *function = function_of(study, suggestion);

	snprintf(text, sz, "%.80s%s%.800s",
		 function->module ? probes_module_name(study->program, function->module) : "",
		 function->module ? ":" : "", function->shown);
}

static bool is_as_often_as_requests(const struct study *study, const struct suggestion *suggestion)
{
	return study->requests_per_s > 0 && suggestion->per_s >= SAME_RATE_LOW * study->requests_per_s &&
	       suggestion->per_s <= SAME_RATE_TOP * study->requests_per_s;
}

/* The function that is called once for each request, as far as names and rates tell; NULL: none. */
static const struct suggestion *best_interval(const struct study *study)
{
	const struct suggestion *best = NULL;

	for (size_t i = 0; i < study->found.cnt; i++) {
		const struct suggestion *each = &study->found.items[i];

		if (each->role != PROBE_INTERVAL || each->per_s <= 0)
			continue;
		if (study->requests_per_s > 0 && !is_as_often_as_requests(study, each))
			continue;
		if (!best || each->score > best->score)
			best = each;
	}
	return best;
}

struct proposal {
	char line[1024];
	char remark[256];
	bool certain; /* not commented out */
	double cost;
};

static const char *rate_text(char buf[FORMAT_SZ], double per_s)
{
	if (per_s >= 10)
		return format_count(buf, per_s + 0.5);
	snprintf(buf, FORMAT_SZ, "%.2g", per_s);
	return buf;
}

static void propose(const struct study *study, const struct suggestion *suggestion, const struct suggestion *best,
		    struct proposal *proposal)
{
	const struct suggestion *partner = NULL;
	char rate[FORMAT_SZ], share[FORMAT_SZ], name[900];
	const char *options = "";

	memset(proposal, 0, sizeof(*proposal));
	proposal->cost = cost_of(study, suggestion);
	proposal->certain = proposal->cost <= COST_MAX;
	switch (suggestion->role) {
	case PROBE_INTERVAL:
		proposal->certain = suggestion == best;
		break;
	case PROBE_ACQUIRE:
	case PROBE_RELEASE:
		partner = suggestion_partner(&study->found, study->program, suggestion,
					     suggestion->role == PROBE_ACQUIRE ? PROBE_RELEASE : PROBE_ACQUIRE);
		proposal->certain &= partner && partner->per_s > 0 && cost_of(study, partner) <= COST_MAX;
		break;
	case PROBE_ENQUEUE:
		options = "  task=arg1";
		proposal->certain = false;
		break;
	default:
		options = "  task=retval";
		proposal->certain = false;
	}
	put_function(study, suggestion, name, sizeof(name));
	snprintf(proposal->line, sizeof(proposal->line), "%-9s %s%s", probe_role_name(suggestion->role), name, options);
	snprintf(proposal->remark, sizeof(proposal->remark), "%s a second%s; %s of a CPU",
		 rate_text(rate, suggestion->per_s),
		 suggestion->role == PROBE_INTERVAL && is_as_often_as_requests(study, suggestion)
			 ? ", as often as requests arrive"
			 : "",
		 format_share(share, proposal->cost));
}

static const char *heading_of(enum probe_role role)
{
	switch (role) {
	case PROBE_INTERVAL:
		return "Where a request may begin and end";
	case PROBE_ACQUIRE:
		return "Locks taken";
	case PROBE_RELEASE:
		return "Locks given back";
	case PROBE_ENQUEUE:
		return "Into queues; which argument is the task is a guess";
	default:
		return "Out of queues; what says which task it is, is a guess";
	}
}

static int rate_cmp(const void *left, const void *right)
{
	const struct suggestion *a = *(const struct suggestion *const *)left;
	const struct suggestion *b = *(const struct suggestion *const *)right;

	if (a->role != b->role)
		return a->role < b->role ? -1 : 1;
	if (a->per_s != b->per_s)
		return a->per_s > b->per_s ? -1 : 1;
	return a->func < b->func ? -1 : a->func > b->func;
}

static void print_line(struct page *page, const struct proposal *proposal)
{
	page__put(page, proposal->certain ? "" : "# ");
	page__name(page, proposal->line, 4096);
	page__to(page, 60);
	page__put(page, "# ");
	page__put(page, proposal->remark);
	page__end_line(page);
}

/* Those that did not fire, on lines of comment. */
static void print_never(const struct study *study, struct page *page)
{
	char name[900];
	size_t cnt = 0;

	for (size_t i = 0; i < study->found.cnt; i++)
		cnt += is_attached(study, i) && study->found.items[i].per_s <= 0;
	if (!cnt)
		return;
	page__end_line(page);
	page__printf(page, "# %zu that look alike never fired: inlined away, or not reached by this load", cnt);
	page__end_line(page);
	for (size_t i = 0, shown = 0; i < study->found.cnt && shown < NEVER_MAX; i++) {
		if (!is_attached(study, i) || study->found.items[i].per_s > 0)
			continue;
		page__put(page, "#   ");
		page__put(page, probe_role_name(study->found.items[i].role));
		page__to(page, 13);
		put_function(study, &study->found.items[i], name, sizeof(name));
		page__name(page, name, 4096);
		page__end_line(page);
		shown++;
	}
	if (cnt > NEVER_MAX) {
		page__printf(page, "#   and %zu more", cnt - NEVER_MAX);
		page__end_line(page);
	}
}

static void print_text(const struct study *study, const struct suggestion **fired, size_t fired_cnt, struct page *page)
{
	const struct suggestion *best = best_interval(study);
	enum probe_role role = PROBE_ROLE_CNT;
	char rate[FORMAT_SZ];

	page__put(page, "# whylate probes suggest: ");
	page__name(page, probes_module_name(study->program, 0), 60);
	page__printf(page, " (pid %d), %zu functions counted for %.1f s", study->options->pid, study->attached_cnt,
		     study->seconds);
	page__end_line(page);
	page__printf(page, "# %s socket requests a second%s", rate_text(rate, study->requests_per_s),
		     best ? "" : ": no function is called that often, so they are the requests");
	page__end_line(page);
	for (size_t i = 0; i < fired_cnt; i++) {
		struct proposal proposal;

		if (fired[i]->role != role) {
			role = fired[i]->role;
			page__end_line(page);
			page__put(page, "# ");
			page__put(page, heading_of(role));
			page__end_line(page);
		}
		propose(study, fired[i], best, &proposal);
		print_line(page, &proposal);
	}
	print_never(study, page);
}

static void put_json(const struct study *study, const struct suggestion **fired, size_t fired_cnt, struct json_doc *doc,
		     struct json_object *root)
{
	const struct suggestion *best = best_interval(study);
	struct json_object *lines, *never;

	put_string(doc, root, "schema", "whylate.probes.suggest/1");
	put_number(doc, root, "counted_s", study->seconds);
	put_number(doc, root, "requests_per_s", study->requests_per_s);
	put_count(doc, root, "counted_functions", study->attached_cnt);
	lines = put_array(doc, root, "suggestions");
	for (size_t i = 0; i < fired_cnt; i++) {
		struct json_object *object = append_object(doc, lines);
		struct proposal proposal;

		propose(study, fired[i], best, &proposal);
		put_string(doc, object, "role", probe_role_name(fired[i]->role));
		put_string(doc, object, "module",
			   probes_module_name(study->program, function_of(study, fired[i])->module));
		put_string(doc, object, "name", function_of(study, fired[i])->shown);
		put_string(doc, object, "line", proposal.line);
		put_number(doc, object, "per_s", fired[i]->per_s);
		put_number(doc, object, "cost_of_a_cpu", proposal.cost);
		put_bool(doc, object, "as_often_as_requests", is_as_often_as_requests(study, fired[i]));
		put_bool(doc, object, "certain", proposal.certain);
	}
	never = put_array(doc, root, "never_fired");
	for (size_t i = 0; i < study->found.cnt; i++)
		if (is_attached(study, i) && study->found.items[i].per_s <= 0)
			append(doc, never, new_string(function_of(study, &study->found.items[i])->shown), false);
}

static int print(const struct study *study)
{
	const struct suggestion **fired = calloc(study->found.cnt, sizeof(*fired));
	struct json_object *root;
	struct json_doc doc = {0};
	struct page page;
	size_t cnt = 0;
	int code;

	if (!fired) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < study->found.cnt; i++)
		if (study->found.items[i].per_s > 0)
			fired[cnt++] = &study->found.items[i];
	if (cnt)
		qsort(fired, cnt, sizeof(*fired), rate_cmp);
	if (study->options->json) {
		root = json_object_new_object();
		put_json(study, fired, cnt, &doc, root);
		code = probes_json_close(root, doc.err, EXIT_DONE);
	} else {
		page__open(&page, stdout, false);
		print_text(study, fired, cnt, &page);
		code = probes_page_close(&page, EXIT_DONE);
	}
	free(fired);
	return code;
}

int probes_suggest(const struct probes_options *options, struct program *program)
{
	struct study study = {.options = options, .program = program};
	int err = suggestions_make(program, PER_ROLE_MAX, &study.found), code = EXIT_FAILED;

	if (!err && !study.found.cnt) {
		log_error("no function of %s has a name that says what it is for: record without a symbol list",
			  probes_module_name(program, 0));
		return EXIT_FAILED;
	}
	if (!err) {
		study.plans = calloc(study.found.cnt, sizeof(*study.plans));
		study.entries = calloc(study.found.cnt, sizeof(*study.entries));
		study.before = calloc(study.found.cnt, sizeof(*study.before));
		study.hits = calloc(study.found.cnt, sizeof(*study.hits));
		study.attached = calloc(study.found.cnt, sizeof(*study.attached));
		err = study.plans && study.entries && study.before && study.hits && study.attached ? 0 : -ENOMEM;
	}
	if (err)
		log_error("out of memory");
	else if (!count(&study))
		code = print(&study);
	for (size_t i = 0; i < study.found.cnt && study.plans; i++)
		plan_free(&study.plans[i]);
	free(study.plans);
	free(study.entries);
	free(study.before);
	free(study.hits);
	free(study.attached);
	vec_free(&study.found);
	vec_free(&study.processes);
	vec_free(&study.listeners);
	return code;
}
