// SPDX-License-Identifier: GPL-2.0-or-later
/* A symbol list for a process that nobody has one for; what is uncertain in it is commented out. */
#include "base/exit_code.h"
#include "base/log.h"
#include "base/order.h"
#include "view/format.h"
#include "view/json_put.h"
#include "view/probes.h"

#include <string.h>

/* More than this share of one CPU and a line is commented out. */
#define COST_MAX      0.01
#define NEVER_MAX     40
#define SAME_RATE_LOW 0.8 /* of the rate of requests: then it is one of theirs */
#define SAME_RATE_TOP 1.25

struct counted {
	const struct probes_options *options;
	const struct suggestion_study *study;
	struct program *program;
};

static const struct program_function *function_of(const struct counted *counted, const struct suggestion *suggestion)
{
	return program__function(counted->program, suggestion->func);
}

/* As a list names it: with its module where that is a library. */
static void put_function(const struct counted *counted, const struct suggestion *suggestion, char *text, size_t sz)
{
	const struct program_function *function = function_of(counted, suggestion);

	snprintf(text, sz, "%.80s%s%.800s",
		 function->module ? probes_module_name(counted->program, function->module) : "",
		 function->module ? ":" : "", function->shown);
}

static bool is_as_often_as_requests(const struct counted *counted, const struct suggestion *suggestion)
{
	return counted->study->requests_per_s > 0 &&
	       suggestion->per_s >= SAME_RATE_LOW * counted->study->requests_per_s &&
	       suggestion->per_s <= SAME_RATE_TOP * counted->study->requests_per_s;
}

/* The function that is called once for each request, as far as names and rates tell; NULL: none. */
static const struct suggestion *best_interval(const struct counted *counted)
{
	const struct suggestion *best = NULL;

	for (size_t i = 0; i < counted->study->found.cnt; i++) {
		const struct suggestion *each = &counted->study->found.items[i];

		if (each->role != PROBE_INTERVAL || each->per_s <= 0)
			continue;
		if (counted->study->requests_per_s > 0 && !is_as_often_as_requests(counted, each))
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

static void propose(const struct counted *counted, const struct suggestion *suggestion, const struct suggestion *best,
		    struct proposal *proposal)
{
	const struct suggestion *partner = NULL;
	char rate[FORMAT_SZ], share[FORMAT_SZ], name[900];
	const char *options = "";

	memset(proposal, 0, sizeof(*proposal));
	proposal->cost = suggestion->cost;
	proposal->certain = proposal->cost <= COST_MAX;
	switch (suggestion->role) {
	case PROBE_INTERVAL:
		proposal->certain = suggestion == best;
		break;
	case PROBE_ACQUIRE:
	case PROBE_RELEASE:
		partner = suggestion_partner(&counted->study->found, counted->program, suggestion,
					     suggestion->role == PROBE_ACQUIRE ? PROBE_RELEASE : PROBE_ACQUIRE);
		proposal->certain &= partner && partner->per_s > 0 && partner->cost <= COST_MAX;
		break;
	case PROBE_ENQUEUE:
		options = "  task=arg1";
		proposal->certain = false;
		break;
	default:
		options = "  task=retval";
		proposal->certain = false;
	}
	put_function(counted, suggestion, name, sizeof(name));
	snprintf(proposal->line, sizeof(proposal->line), "%-9s %s%s", probe_role_name(suggestion->role), name, options);
	snprintf(proposal->remark, sizeof(proposal->remark), "%s a second%s; %s of a CPU",
		 rate_text(rate, suggestion->per_s),
		 suggestion->role == PROBE_INTERVAL && is_as_often_as_requests(counted, suggestion)
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

ORDER(rate_cmp, struct suggestion *const, BY((*a)->role, (*b)->role), BY((*b)->per_s, (*a)->per_s),
      BY((*a)->func, (*b)->func));

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
static void print_never(const struct counted *counted, struct page *page)
{
	char name[900];
	size_t cnt = 0;

	for (size_t i = 0; i < counted->study->found.cnt; i++)
		cnt += counted->study->found.items[i].counted && counted->study->found.items[i].per_s <= 0;
	if (!cnt)
		return;
	page__end_line(page);
	page__line(page, "# %zu that look alike never fired: inlined away, or not reached by this load", cnt);
	for (size_t i = 0, shown = 0; i < counted->study->found.cnt && shown < NEVER_MAX; i++) {
		if (!counted->study->found.items[i].counted || counted->study->found.items[i].per_s > 0)
			continue;
		page__put(page, "#   ");
		page__put(page, probe_role_name(counted->study->found.items[i].role));
		page__to(page, 13);
		put_function(counted, &counted->study->found.items[i], name, sizeof(name));
		page__name(page, name, 4096);
		page__end_line(page);
		shown++;
	}
	if (cnt > NEVER_MAX)
		page__line(page, "#   and %zu more", cnt - NEVER_MAX);
}

static void print_text(const struct counted *counted, const struct suggestion **fired, size_t fired_cnt,
		       struct page *page)
{
	const struct suggestion *best = best_interval(counted);
	enum probe_role role = PROBE_ROLE_CNT;
	char rate[FORMAT_SZ];

	page__put(page, "# whylate probes suggest: ");
	page__name(page, probes_module_name(counted->program, 0), 60);
	page__line(page, " (pid %d), %zu functions counted for %.1f s", counted->options->pid,
		   counted->study->counted_cnt, counted->study->seconds);
	page__line(page, "# %s socket requests a second%s", rate_text(rate, counted->study->requests_per_s),
		   best ? "" : ": no function is called that often, so they are the requests");
	for (size_t i = 0; i < fired_cnt; i++) {
		struct proposal proposal;

		if (fired[i]->role != role) {
			role = fired[i]->role;
			page__end_line(page);
			page__put(page, "# ");
			page__put(page, heading_of(role));
			page__end_line(page);
		}
		propose(counted, fired[i], best, &proposal);
		print_line(page, &proposal);
	}
	print_never(counted, page);
}

static void put_json(const struct counted *counted, const struct suggestion **fired, size_t fired_cnt,
		     struct json_doc *doc, struct json_object *root)
{
	const struct suggestion *best = best_interval(counted);
	struct json_object *lines, *never;

	put_string(doc, root, "schema", "whylate.probes.suggest/1");
	put_number(doc, root, "counted_s", counted->study->seconds);
	put_number(doc, root, "requests_per_s", counted->study->requests_per_s);
	put_count(doc, root, "counted_functions", counted->study->counted_cnt);
	lines = put_array(doc, root, "suggestions");
	for (size_t i = 0; i < fired_cnt; i++) {
		struct json_object *object = append_object(doc, lines);
		struct proposal proposal;

		propose(counted, fired[i], best, &proposal);
		put_string(doc, object, "role", probe_role_name(fired[i]->role));
		put_string(doc, object, "module",
			   probes_module_name(counted->program, function_of(counted, fired[i])->module));
		put_string(doc, object, "name", function_of(counted, fired[i])->shown);
		put_string(doc, object, "line", proposal.line);
		put_number(doc, object, "per_s", fired[i]->per_s);
		put_number(doc, object, "cost_of_a_cpu", proposal.cost);
		put_bool(doc, object, "as_often_as_requests", is_as_often_as_requests(counted, fired[i]));
		put_bool(doc, object, "certain", proposal.certain);
	}
	never = put_array(doc, root, "never_fired");
	for (size_t i = 0; i < counted->study->found.cnt; i++)
		if (counted->study->found.items[i].counted && counted->study->found.items[i].per_s <= 0)
			append(doc, never, new_string(function_of(counted, &counted->study->found.items[i])->shown),
			       false);
}

int probes_suggest(const struct probes_options *options, struct program *program, const struct suggestion_study *study)
{
	const struct counted counted = {options, study, program};
	const struct suggestion **fired = calloc(study->found.cnt + 1, sizeof(*fired));
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
	if (options->json) {
		root = json_object_new_object();
		put_json(&counted, fired, cnt, &doc, root);
		code = probes_json_close(&doc, root, EXIT_DONE);
	} else {
		page__open(&page, stdout, false);
		print_text(&counted, fired, cnt, &page);
		code = probes_page_close(&page, EXIT_DONE);
	}
	free(fired);
	return code;
}
