// SPDX-License-Identifier: GPL-2.0-or-later
/* What a symbol list means in a program: the exact sites, and what of it is missing. */
#include "base/exit_code.h"
#include "base/log.h"
#include "view/json_put.h"
#include "view/probes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 4096

struct survey {
	const struct probes_options *options;
	struct program *program;
	const char *list;
	probe_lines lines;
	struct probe_targets targets;
	size_t missing; /* lines that cannot be probed at all */
};

/* The list of -s, or one line for each SYMBOL. */
static int read_lines(struct survey *survey)
{
	const struct probes_options *options = survey->options;

	if (options->symbols)
		return symbol_list_read(options->symbols, &survey->lines);
	for (size_t i = 0; i < options->arg_cnt; i++) {
		bool marker = strstr(options->args[i], "usdt:");
		char *line;
		int err;

		if (asprintf(&line, "%s %s", marker ? "acquire" : "function", options->args[i]) < 0)
			return -ENOMEM;
		err = symbol_list_add(survey->list, line, &survey->lines);
		free(line);
		if (err)
			return err;
		/* A marker's arguments are shown, and none asked for. */
		survey->lines.items[i].object.kind = PROBE_EXPR_NONE;
	}
	return 0;
}

static int survey_make(struct survey *survey)
{
	int err = read_lines(survey);

	if (err)
		return err;
	err = probe_targets_find(&survey->lines, survey->program, &survey->targets);
	if (err) {
		log_error("%s: the symbols cannot be looked up: %s", survey->list, strerror(-err));
		return err;
	}
	for (size_t i = 0; i < survey->lines.cnt; i++)
		survey->missing += survey->targets.verdicts.items[i].err != 0;
	return 0;
}

static void survey_free(struct survey *survey)
{
	probe_targets_free(&survey->targets);
	symbol_list_free(&survey->lines);
}

static const struct probe_line *line_of(const struct survey *survey, const struct probe_target *target)
{
	return &survey->lines.items[target->line_idx];
}

/* --- plan -------------------------------------------------------------------------------------------------------- */

static void print_arg(struct page *page, unsigned idx, const struct usdt_arg *arg)
{
	static const char *const where[] = {
		[USDT_ARG_UNREADABLE] = "cannot be read",
		[USDT_ARG_CONST] = "a constant",
		[USDT_ARG_REG] = "in a register",
		[USDT_ARG_MEMORY] = "in memory",
	};

	page__printf(page, "%s arg%u %s", idx ? "," : "", idx, where[arg->kind]);
	if (arg->kind != USDT_ARG_UNREADABLE)
		page__printf(page, " (%u bytes%s)", arg->sz, arg->is_signed ? ", signed" : "");
}

static void print_marker(struct survey *survey, struct page *page, const struct probe_target *target)
{
	const struct usdt_site *site = target->usdt;
	char code[80];

	plan_instruction(survey->program, target->module, site->file_off, code, sizeof(code));
	page__printf(page, "  marker 0x%" PRIx64 "  ", site->file_off);
	page__name(page, code, 40);
	page__line(page, "  %s", plan_cost_name(target->usdt_cost));
	if (site->semaphore_off)
		page__line(page, "  turned on by a counter at file offset 0x%" PRIx64, site->semaphore_off);
	page__put(page, site->arg_cnt ? " " : "  no arguments");
	for (unsigned i = 0; i < site->arg_cnt; i++)
		print_arg(page, i, &site->args[i]);
	page__end_line(page);
}

static int print_plan(struct survey *survey, struct page *page, const struct probe_target *target)
{
	plan_lines lines = {0};
	int err;

	page__style(page, PAGE_BOLD);
	page__name(page, target->name, NAME_COLUMNS);
	page__style(page, PAGE_PLAIN);
	page__put(page, "  (");
	page__name(page, probes_module_name(survey->program, target->module), 60);
	page__line(page, ", %s)", probe_role_name(line_of(survey, target)->role));
	if (target->usdt) {
		print_marker(survey, page, target);
		return 0;
	}
	err = plan_describe(survey->program, target->plan, &lines);
	/* The first of them names the function. */
	for (size_t i = 1; i < lines.cnt && !err; i++) {
		page__name(page, lines.items[i], NAME_COLUMNS);
		page__end_line(page);
	}
	plan_lines_free(&lines);
	return err;
}

static struct json_object *put_site(struct json_doc *doc, struct json_object *object, const struct plan_site *site)
{
	put_count(doc, object, "file_offset", site->file_off);
	put_count(doc, object, "sp_bias", site->sp_bias);
	put_string(doc, object, "cost", plan_cost_name(site->cost));
	return object;
}

static void put_plan(struct json_doc *doc, struct json_object *object, const struct plan *plan)
{
	struct json_object *exits;

	put_bool(doc, object, "possible", plan->possible);
	put_string(doc, object, "why", plan->why);
	if (!plan->possible)
		return;
	put_site(doc, put_object(doc, object, "entry"), &plan->entry);
	put_string(doc, object, "exit", plan_exit_name(plan->exit));
	put_string(doc, object, "exit_why", plan->exit_why);
	if (plan->exit == PLAN_EXIT_URETPROBE)
		put_count(doc, object, "uretprobe_offset", plan->uretprobe_off);
	exits = put_array(doc, object, "exits");
	for (size_t i = 0; i < plan->exits.cnt; i++)
		put_site(doc, append_object(doc, exits), &plan->exits.items[i]);
}

static void put_target(struct survey *survey, struct json_doc *doc, struct json_object *object,
		       const struct probe_target *target)
{
	const struct probe_line *line = line_of(survey, target);

	put_string(doc, object, "name", target->name);
	put_string(doc, object, "module", probes_module_name(survey->program, target->module));
	put_string(doc, object, "role", probe_role_name(line->role));
	put_count(doc, object, "line", line->line_no);
	put_string(doc, object, "kind", target->usdt ? "usdt" : "function");
	put_count(doc, object, "file_offset", target->file_off);
	if (!target->usdt) {
		put_plan(doc, object, target->plan);
		return;
	}
	put_string(doc, object, "cost", plan_cost_name(target->usdt_cost));
	put_count(doc, object, "arguments", target->usdt->arg_cnt);
}

/* The lines that mean nothing here, each once, on stderr. */
static void say_missing(const struct survey *survey)
{
	for (size_t i = 0; i < survey->lines.cnt; i++) {
		const struct probe_verdict *verdict = &survey->targets.verdicts.items[i];

		if (verdict->err)
			log_error("%s:%u: %s", survey->list, survey->lines.items[i].line_no, verdict->why);
		else if (verdict->why)
			log_warn("%s:%u: %s", survey->list, survey->lines.items[i].line_no, verdict->why);
	}
}

int probes_plan(const struct probes_options *options, struct program *program)
{
	struct survey survey = {
		.options = options,
		.program = program,
		.list = options->symbols ? options->symbols : "argument",
	};
	struct json_object *root = NULL, *probes;
	struct json_doc doc = {0};
	int code = EXIT_FAILED, err = survey_make(&survey);
	struct page page;

	if (err)
		goto cleanup;
	code = survey.missing ? EXIT_FAILED : EXIT_DONE;
	say_missing(&survey);
	if (options->json) {
		root = json_object_new_object();
		put_string(&doc, root, "schema", "whylate.probes.plan/1");
		probes = put_array(&doc, root, "probes");
		for (size_t i = 0; i < survey.targets.targets.cnt; i++)
			put_target(&survey, &doc, append_object(&doc, probes), &survey.targets.targets.items[i]);
		code = probes_json_close(&doc, root, code);
		goto cleanup;
	}
	probes_page_open(&page);
	for (size_t i = 0; i < survey.targets.targets.cnt && !err; i++)
		err = print_plan(&survey, &page, &survey.targets.targets.items[i]);
	if (err)
		log_error("the plan cannot be told: %s", strerror(-err));
	code = probes_page_close(&page, err ? EXIT_FAILED : code);
cleanup:
	survey_free(&survey);
	return code;
}

/* --- check ------------------------------------------------------------------------------------------------------- */

/* The dearest of what a line's probes cost, and how the ends of its calls are seen. */
struct kinds {
	bool emulated, stepped, exits[3], marker;
};

static struct kinds kinds_of(const struct survey *survey, uint32_t line_idx, size_t *next)
{
	const struct probe_targets *targets = &survey->targets;
	struct kinds kinds = {0};

	for (; *next < targets->targets.cnt && targets->targets.items[*next].line_idx == line_idx; (*next)++) {
		const struct probe_target *target = &targets->targets.items[*next];
		enum plan_cost cost = target->usdt ? target->usdt_cost : target->plan->entry.cost;

		kinds.marker |= target->usdt != NULL;
		kinds.emulated |= cost == PLAN_EMULATED;
		kinds.stepped |= cost == PLAN_STEPPED;
		if (!target->usdt)
			kinds.exits[target->plan->exit] = true;
	}
	return kinds;
}

static const char *entry_name(const struct kinds *kinds)
{
	if (kinds->emulated && kinds->stepped)
		return "both";
	return plan_cost_name(kinds->stepped ? PLAN_STEPPED : PLAN_EMULATED);
}

static const char *exit_name(const struct kinds *kinds, const struct probe_line *line)
{
	int cnt = kinds->exits[0] + kinds->exits[1] + kinds->exits[2];

	if (kinds->marker || !probe_line_needs_exit(line))
		return "-";
	if (cnt > 1)
		return "several";
	return plan_exit_name(kinds->exits[PLAN_EXIT_SITES]       ? PLAN_EXIT_SITES
			      : kinds->exits[PLAN_EXIT_URETPROBE] ? PLAN_EXIT_URETPROBE
								  : PLAN_EXIT_NONE);
}

static void print_verdict(struct page *page, const struct probe_line *line, const struct probe_verdict *verdict,
			  const struct kinds *kinds)
{
	char number[24];

	snprintf(number, sizeof(number), "%u", line->line_no);
	page__right(page, number, 5);
	page__to(page, 6);
	if (verdict->err)
		page__style(page, PAGE_BAD);
	page__put(page, verdict->err ? "NO" : "yes");
	page__style(page, PAGE_PLAIN);
	page__to(page, 10);
	page__put(page, probe_role_name(line->role));
	if (!verdict->err) {
		snprintf(number, sizeof(number), "%zu", verdict->cnt);
		page__right(page, number, 25);
		page__to(page, 26);
		page__put(page, entry_name(kinds));
		page__to(page, 36);
		page__put(page, exit_name(kinds, line));
	}
	page__to(page, 47);
	if (line->module) {
		page__name(page, line->module, NAME_COLUMNS);
		page__put(page, ":");
	}
	page__name(page, line->symbol, NAME_COLUMNS);
	page__end_line(page);
	if (!verdict->why)
		return;
	page__paragraph(page, 10, verdict->why, 10);
}

static void print_check(struct survey *survey, struct page *page)
{
	size_t next = 0;

	page__heads(page, PAGE_BOLD, {"line", -5}, {"role", 10}, {"probes", -25}, {"entry", 26}, {"exit", 36},
		    {"symbol", 47});
	for (uint32_t i = 0; i < survey->lines.cnt; i++) {
		const struct kinds kinds = kinds_of(survey, i, &next);

		print_verdict(page, &survey->lines.items[i], &survey->targets.verdicts.items[i], &kinds);
	}
	page__printf(page, "%zu of %zu lines mean something in ", survey->lines.cnt - survey->missing,
		     survey->lines.cnt);
	page__name(page, probes_module_name(survey->program, 0), 60);
	page__line(page, ": %zu probes; %s", survey->targets.targets.cnt,
		   probe_lines_have_intervals(&survey->lines) ? "intervals are what the list says"
							      : "intervals are socket requests");
}

static void put_check(struct survey *survey, struct json_doc *doc, struct json_object *root)
{
	struct json_object *lines = put_array(doc, root, "lines");
	size_t next = 0;

	for (uint32_t i = 0; i < survey->lines.cnt; i++) {
		const struct probe_verdict *verdict = &survey->targets.verdicts.items[i];
		const struct probe_line *line = &survey->lines.items[i];
		struct json_object *object = append_object(doc, lines);
		const struct kinds kinds = kinds_of(survey, i, &next);

		put_count(doc, object, "line", line->line_no);
		put_string(doc, object, "role", probe_role_name(line->role));
		put_string(doc, object, "module", line->module);
		put_string(doc, object, "symbol", line->symbol);
		put_string(doc, object, "name", line->name);
		put_bool(doc, object, "found", !verdict->err);
		put_count(doc, object, "functions", verdict->found);
		put_count(doc, object, "probes", verdict->cnt);
		put_string(doc, object, "entry", verdict->err ? NULL : entry_name(&kinds));
		put_string(doc, object, "exit",
			   verdict->err || kinds.marker || !probe_line_needs_exit(line) ? NULL
											: exit_name(&kinds, line));
		put_string(doc, object, "why", verdict->why);
	}
	put_count(doc, root, "missing", survey->missing);
	put_string(doc, root, "intervals", probe_lines_have_intervals(&survey->lines) ? "list" : "sockets");
}

int probes_check(const struct probes_options *options, struct program *program)
{
	struct survey survey = {.options = options, .program = program, .list = options->symbols};
	struct json_object *root = NULL;
	struct json_doc doc = {0};
	int code = EXIT_FAILED;
	struct page page;

	if (survey_make(&survey))
		goto cleanup;
	code = survey.missing ? EXIT_FAILED : EXIT_DONE;
	if (options->json) {
		root = json_object_new_object();
		put_string(&doc, root, "schema", "whylate.probes.check/1");
		put_check(&survey, &doc, root);
		code = probes_json_close(&doc, root, code);
	} else {
		probes_page_open(&page);
		print_check(&survey, &page);
		code = probes_page_close(&page, code);
	}
cleanup:
	survey_free(&survey);
	return code;
}
