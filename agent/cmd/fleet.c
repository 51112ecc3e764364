// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/fleet.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/user_file.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "fleet/ask.h"
#include "view/page_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate fleet QUESTION clickhouse://HOST:PORT/DATABASE [--type NAME] [--quantile p99] [--json]\n"
	"Asks a database that `whylate project` filled.  Needs no privilege.\n"
	"  hosts        which hosts are worst, what their requests wait for, what those hosts have in common\n"
	"  common       only what the late hosts have in common that others have not, chance accounted for\n"
	"  kernels, builds, by KEY   hosts with the same kernel, program, or any other fact, against the others\n"
	"  roots        what made requests late, over all hosts\n"
	"  since        when the share of late requests changed\n"
	"      --type NAME       only requests of this type\n"
	"      --host GLOB       only hosts that the pattern fits\n"
	"      --since TIME, --until TIME   only requests that began then: so long ago (1h), or in UTC\n"
	"      --quantile PCT    by which hosts are compared, and beyond which requests are late (default p99)\n"
	"      --top N           lines per list (default 10; all)\n"
	"      --from-rows       from single requests, not from the sums of whole days: slower, the same answer\n"
	"      --json            one JSON object, schema whylate.fleet/1\n"
	"      --html FILE       hosts: a page with a heatmap of hosts and time (-: to stdout, instead of the text)\n"
	"      --credentials FILE, --db-ca FILE, --insecure   as of whylate project\n";

struct fleet_options {
	struct fleet_answer answer;
	struct question_filter filter;
	struct clickhouse_opts database;
	const char *word, *html;
	bool json, from_rows;
	uint32_t top;
};

struct fleet_page {
	const struct fleet_answer *answer;
	const struct view_opts *view;
};

static int failed(const struct clickhouse *server, const struct fleet_options *options, int err)
{
	const char *text = clickhouse__text(server);
	int code = clickhouse__code(server);

	if (err == -ENOENT)
		log_error("no recording says '%s'", options->answer.fact);
	else if (code == CLICKHOUSE_NO_SUCH_TABLE || code == CLICKHOUSE_NO_SUCH_DATABASE)
		log_error("'%s' has no tables of whylate: whylate project STORE %s makes them", options->database.url,
			  options->database.url);
	else if (err == -EPROTO)
		log_error("the database refuses: %s", text);
	else
		log_error("'%s': %s%s%s", options->database.url, strerror(-err), *text ? ": " : "", text);
	return EXIT_FAILED;
}

/* `builds`: the program's own file, by its build id. */
static int find_build(struct fleet_ask *ask, struct fleet_answer *answer)
{
	struct clickhouse_rows rows = {0};
	int err = question_builds(ask->server, &rows);

	if (!err && !rows.row_cnt)
		err = -ENOENT;
	if (!err && !(answer->fact = arena__strdup(ask->arena, rows.cells[0])))
		err = -ENOMEM;
	clickhouse_rows__free(&rows);
	return err;
}

static int write_page(FILE *out, const void *ctx)
{
	const struct fleet_page *page = ctx;

	return view_fleet_html(out, page->answer, page->view);
}

static int write_it(const struct fleet_options *options, const struct view_opts *view)
{
	const struct fleet_page page = {&options->answer, view};
	int page_err = options->html ? page_file_write(options->html, write_page, &page) : 0, err = 0;

	if (!options->html || !page_file_is_stdout(options->html))
		err = options->json ? view_fleet_json(stdout, &options->answer)
				    : view_fleet_text(stdout, &options->answer, view);
	if (err)
		log_error("cannot write the answer: %s", strerror(-err));
	return err || page_err ? EXIT_FAILED : EXIT_DONE;
}

static int answer_it(struct fleet_options *options, struct clickhouse *server)
{
	struct fleet_ask ask = {
		.server = server,
		.filter = options->filter,
		.from_rows = options->from_rows,
		.heat = options->html,
		.arena = arena__new(),
	};
	struct fleet_answer *answer = &options->answer;
	const struct view_opts view = view_opts_stdout(options->top);
	int err = ask.arena ? 0 : -ENOMEM, code;

	answer->database = clickhouse__database(server);
	answer->type = options->filter.type;
	answer->host = options->filter.host;
	progress_begin("asking the database");
	if (!err && !strcmp(options->word, "builds"))
		err = find_build(&ask, answer);
	if (!err)
		err = fleet_ask(&ask, answer);
	progress_end();
	code = err ? failed(server, options, err) : write_it(options, &view);
	fleet_answer_free(answer);
	arena__free(ask.arena);
	return code;
}

/* How many of the words the question takes; 0 after a line that says what is wrong. */
static int take_question(struct fleet_options *options, int cnt, char **words)
{
	static const struct {
		const char *word;
		enum fleet_question question;
		const char *fact;
	} questions[] = {
		{"hosts", FLEET_HOSTS, NULL}, {"common", FLEET_COMMON, NULL},  {"roots", FLEET_ROOTS, NULL},
		{"since", FLEET_SINCE, NULL}, {"kernels", FLEET_BY, "kernel"}, {"builds", FLEET_BY, "build"},
		{"by", FLEET_BY, NULL},
	};

	for (size_t i = 0; cnt && i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (strcmp(words[0], questions[i].word))
			continue;
		options->word = words[0];
		options->answer.question = questions[i].question;
		options->answer.fact = questions[i].fact;
		if (strcmp(words[0], "by"))
			return 1;
		options->answer.fact = cnt > 1 ? words[1] : NULL;
		if (cnt > 2)
			return 2;
		usage_error("fleet", "by which fact? Say by KEY, such as by kernel");
		return 0;
	}
	usage_error("fleet", "%s%s%s: hosts, common, kernels, builds, by KEY, roots or since",
		    cnt ? "unknown question '" : "no question", cnt ? words[0] : "", cnt ? "'" : "");
	return 0;
}

#define O struct fleet_options
static const struct option_row rows[] = {
	OPTION_TEXT("type", 0, O, filter.type),
	OPTION_TEXT("host", 0, O, filter.host),
	OPTION_TIME("since", O, filter.since_ns),
	OPTION_TIME("until", O, filter.until_ns),
	OPTION_PERCENTILE("quantile", O, answer.tail),
	OPTION_TOP(O, top),
	OPTION_FLAG("from-rows", 0, O, from_rows),
	OPTION_FLAG("json", 0, O, json),
	OPTION_TEXT("html", 0, O, html),
	OPTION_TEXT("credentials", 0, O, database.credentials_path),
	OPTION_TEXT("db-ca", 0, O, database.ca_path),
	OPTION_FLAG("insecure", 0, O, database.insecure),
};
#undef O

int cmd_fleet(int argc, char **argv)
{
	struct fleet_options options = {.answer = {.tail = 0.99}, .top = 10};
	struct clickhouse *server;
	const char *wrong, *what;
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int used, code = OPTIONS_TAKE("fleet", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	used = take_question(&options, argc - optind, argv + optind);
	if (!used)
		return EXIT_USAGE;
	if (options.html && options.answer.question != FLEET_HOSTS)
		return usage_error("fleet", "--html goes with hosts");
	if (argc - optind - used != 1)
		return usage_error("fleet", "which database? Name one: clickhouse://HOST:PORT/DATABASE");
	options.database.url = argv[optind + used];
	wrong = clickhouse_url_check(options.database.url, options.database.insecure);
	if (wrong)
		return usage_error("fleet", "'%s': %s", options.database.url, wrong);
	server = clickhouse__new(&options.database, &what);
	if (!server) {
		log_error("cannot use '%s': %s", what,
			  errno == EBADMSG ? "it wants one line, USER:PASSWORD" : user_file_why(-errno));
		return EXIT_FAILED;
	}
	code = answer_it(&options, server);
	clickhouse__free(server);
	return code;
}
