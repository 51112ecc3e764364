// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare.h"

#include "analysis/compare_load.h"
#include "analysis/findings.h"
#include "analysis/values.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/report_options.h"
#include "cmd/values.h"
#include "shard/open.h"
#include "view/page_file.h"
#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate compare A B [--limit 5%] [--json] [--html FILE] [--type NAME] [--tail p99] [--top 10]\n"
	"       whylate compare --normal DIR… --slow DIR… [--top 10] [--json]      by values alone\n"
	"Says whether B is slower than A, by how much, and by what.  Needs no privilege.\n"
	"A and B are recordings, or parts of them: PATH[@host=GLOB][@FROM-TO], with times of day in UTC "
	"(14:00-14:10),\n"
	"dates (2026-11-21T14:00-2026-11-21T14:10) or times since the recording began (0s-30s); either may be left "
	"out.\n"
	"      --limit SHARE    how much longer mean and p99 may be in B (default 0); or of single figures:\n"
	"                       p99=10%,mean=2% (mean, p50, p90, p99, p99.9)\n"
	"      --json           one JSON object, schema whylate.compare/1\n"
	"      --html FILE      write a page for a browser there as well (-: to stdout, instead of the text)\n"
	"      --type NAME      only requests of this type\n"
	"      --tail PCT       which requests of each side count as late (default p99)\n"
	"      --top N          lines per list (default 10; all)\n"
	"      --max-loss SHARE exit with 3 if more records were lost on either side (default 1%)\n"
	"Exit codes: 0 B is no worse; 4 it is worse beyond the limit, with 95 % confidence; 3 too much was lost; 1, 2 "
	"errors\n";

struct compare_options {
	struct compare_opts opts;
	struct analyse_options common; /* type, top, json, max_loss */
	struct side sides[COMPARE_SIDE_CNT];
};

static int say_unreadable(const struct side *side, int err)
{
	if (err == -ENOENT)
		log_error("'%s' cannot be compared: there is no table of intervals in it", side->path);
	else if (err == -ESRCH && side->host)
		log_error("'%s': there is no recording of a host '%s'%s", side->label, side->host,
			  side->has_span ? " of that time" : "");
	else if (err == -ESRCH)
		log_error("'%s': there is no recording of that time", side->label);
	else
		log_error("'%s' cannot be compared: %s", side->label, strerror(-err));
	return EXIT_FAILED;
}

static int load_side(struct compare_loaded *loaded, const struct side *side, const char *type)
{
	const char *path = side->path;
	struct shard_reader *reader = shards_open(&path, 1);
	int err;

	if (!reader)
		return EXIT_FAILED;
	err = compare_side__load(loaded, side, type, reader);
	loaded->is_loaded = !err;
	if (err == -ENODATA)
		log_error("'%s': the recording does not tell its time of day", side->label);
	else if (err)
		say_unreadable(side, err);
	if (!err && !loaded->dataset.row_cnt) {
		log_error("'%s' has no request%s%s%s", side->label, type ? " of type '" : "", type ? type : "",
			  type ? "'" : "");
		err = -ENODATA;
	}
	if (!err)
		compare_side__facts(&loaded->facts, side, &loaded->dataset);
	shard_reader__free(reader);
	return err ? EXIT_FAILED : EXIT_DONE;
}

struct page_of {
	const struct comparison *comparison;
	const struct compare_facts *facts;
	const struct view_opts *view;
};

static int write_page(FILE *out, const void *ctx)
{
	const struct page_of *page = ctx;

	return view_compare_html(out, page->comparison, page->facts, page->view);
}

static int print(const struct comparison *comparison, const struct compare_loaded *loaded,
		 const struct compare_options *options)
{
	const struct compare_facts facts[] = {loaded[COMPARE_A].facts, loaded[COMPARE_B].facts};
	const struct view_opts view = view_opts_stdout(options->common.top);
	const struct page_of page = {comparison, facts, &view};
	const char *html = options->common.html;
	int page_err, err;

	progress_end();
	page_err = html ? page_file_write(html, write_page, &page) : 0;
	if (html && page_file_is_stdout(html))
		return page_err;
	err = options->common.json ? view_compare_json(stdout, comparison, facts)
				   : view_compare_text(stdout, comparison, facts, &view);
	if (err)
		log_error("cannot write the comparison: %s", strerror(-err));
	return err ? err : page_err;
}

/* Two recordings whole; parts of one have the same sessions. */
static void compare_values(struct comparison *comparison, const struct compare_options *options)
{
	const struct side *a = &options->sides[COMPARE_A], *b = &options->sides[COMPARE_B];
	const char *paths[] = {a->path, b->path};
	int found;

	if (a->has_span || b->has_span || a->host || b->host || !strcmp(a->path, b->path))
		return;
	found = values_compare_paths(&comparison->values, paths, COMPARE_SIDE_CNT, COMPARE_B, comparison->arena);
	if (found < 0)
		log_error("the values cannot be compared: %s", strerror(-found));
}

static int compare_findings(struct findings *findings, struct shard_reader *reader, struct compare_options *options,
			    const struct compare_loaded *loaded)
{
	struct comparison comparison;
	uint8_t *sides = NULL;
	/* Two hosts that are compared have the same roots. */
	bool one_each = loaded[COMPARE_A].facts.host_cnt <= 1 && loaded[COMPARE_B].facts.host_cnt <= 1;
	int followed = findings_follow(findings, reader, one_each), err, code = EXIT_FAILED;

	err = followed < 0 ? followed : 0;
	if (!err)
		sides = compare_sides_of(&findings->dataset, options->sides, loaded);
	if (!sides)
		err = err ? err : -ENOMEM;
	options->opts.paths = followed > 0 ? &findings->paths : NULL;
	options->opts.roots = followed > 0 ? &findings->roots : NULL;
	if (!err)
		err = comparison_make(&comparison, &findings->dataset, sides, &options->opts);
	if (err)
		log_error("the comparison failed: %s", strerror(-err));
	if (!err)
		compare_values(&comparison, options);
	if (!err) {
		code = print(&comparison, loaded, options) ? EXIT_FAILED : comparison.exceeds ? EXIT_WORSE : EXIT_DONE;
		for (int s = 0; s < COMPARE_SIDE_CNT && code == EXIT_DONE; s++)
			if (loaded[s].facts.lost_share > options->common.max_loss)
				code = EXIT_LIMITS;
		comparison_free(&comparison);
	}
	if (followed >= 0)
		findings_unfollow(findings);
	free(sides);
	return code;
}

/* Both together, so that a root is the same on both. */
static int compare_loaded(struct compare_options *options, const struct compare_loaded *loaded)
{
	const char *paths[] = {options->sides[COMPARE_A].path, options->sides[COMPARE_B].path};
	struct dataset_filter filter = {.type = options->common.type};
	struct findings *findings = calloc(1, sizeof(*findings));
	struct shard_reader *reader = findings ? shards_open(paths, COMPARE_SIDE_CNT) : NULL;
	int code = EXIT_FAILED, err;

	if (!reader) {
		free(findings);
		return EXIT_FAILED;
	}
	if (options->sides[COMPARE_A].has_span && options->sides[COMPARE_B].has_span) {
		uint64_t a = loaded[COMPARE_A].until_wall_ns, b = loaded[COMPARE_B].until_wall_ns;

		filter.since_wall_ns = loaded[COMPARE_A].since_wall_ns < loaded[COMPARE_B].since_wall_ns
					       ? loaded[COMPARE_A].since_wall_ns
					       : loaded[COMPARE_B].since_wall_ns;
		filter.until_wall_ns = !a || !b ? 0 : a > b ? a : b;
	}
	err = dataset_load(&findings->dataset, reader, &filter);
	if (err) {
		log_error("the comparison failed: %s", strerror(-err));
	} else {
		code = compare_findings(findings, reader, options, loaded);
		dataset_free(&findings->dataset);
	}
	shard_reader__free(reader);
	free(findings);
	return code;
}

static int compare_run(struct compare_options *options)
{
	const char *paths[] = {options->sides[COMPARE_A].path, options->sides[COMPARE_B].path};
	const struct confine_reader needs = {
		.paths = paths, .path_cnt = COMPARE_SIDE_CNT, .out_path = options->common.html};
	struct compare_loaded loaded[COMPARE_SIDE_CNT] = {0};
	int code = EXIT_DONE;

	confine_reader(&needs);
	progress_begin("reading");
	for (int s = 0; s < COMPARE_SIDE_CNT && code == EXIT_DONE; s++)
		code = load_side(&loaded[s], &options->sides[s], options->common.type);
	if (code == EXIT_DONE)
		code = compare_loaded(options, loaded);
	progress_end();
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		if (loaded[s].is_loaded)
			dataset_free(&loaded[s].dataset);
	return code;
}

/* --- the command line ----------------------------------------------------------------------------------------------
 */

static const char *const metrics[COMPARE_METRIC_CNT] = {"mean", "p50", "p90", "p99", "p99.9"};

static int take_share(const char *text, double *share)
{
	*share = 0;
	return !strcmp(text, "0") || !strcmp(text, "0%") ? 0 : units_share(text, share);
}

/* "5%", of mean and p99; or "p99=10%,mean=2%", of those alone. */
static int read_limit(struct compare_opts *opts, const char *arg)
{
	char words[128], *rest = words, *word;
	double share;

	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		opts->limits[m] = NAN;
	if (!strchr(arg, '=')) {
		if (take_share(arg, &share))
			return -EINVAL;
		opts->limits[0] = opts->limits[3] = share;
		return 0;
	}
	if (strlen(arg) >= sizeof(words))
		return -EINVAL;
	strcpy(words, arg);
	while ((word = strsep(&rest, ","))) {
		char *value = strchr(word, '=');
		size_t m = 0;

		if (!value)
			return -EINVAL;
		*value++ = '\0';
		while (m < COMPARE_METRIC_CNT && strcmp(metrics[m], word))
			m++;
		if (m == COMPARE_METRIC_CNT || take_share(value, &opts->limits[m]))
			return -EINVAL;
	}
	return 0;
}

static int take_limit(void *ctx, const char *command, const char *arg)
{
	struct compare_options *options = ctx;

	return read_limit(&options->opts, arg)
		       ? usage_error(
				 command,
				 "--limit '%s' is not understood: it wants something like 5%%, or p99=10%%,mean=2%%",
				 arg)
		       : 0;
}

#define O struct compare_options
static const struct option_row rows[] = {
	OPTION_CALL("limit", take_limit, .has_arg = required_argument),
	OPTION_FLAG("json", 0, O, common.json),
	OPTION_TEXT("html", 0, O, common.html),
	OPTION_TEXT("type", 0, O, common.type),
	OPTION_PERCENTILE("tail", O, opts.tail),
	OPTION_TOP(O, common.top),
	OPTION_SHARE("max-loss", 0, O, common.max_loss, .example = "1%", .zero = true),
};
#undef O

static int take_sides(struct compare_options *options, char **args)
{
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		const char *bad = "";
		int err = side__parse(&options->sides[s], args[s], &bad);

		if (err == -ENOMEM) {
			log_error("out of memory");
			return EXIT_FAILED;
		}
		if (err)
			return usage_error("compare",
					   "'%s': '@%s' is not understood: it wants something like @14:00-14:10, "
					   "@0s-30s or @host=web1",
					   args[s], bad);
	}
	return 0;
}

int cmd_compare(int argc, char **argv)
{
	struct compare_options options = {.opts = {.tail = 0.99, .seed = 1}};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strncmp(argv[i], "--normal", 8) || !strncmp(argv[i], "--slow", 6))
			return values_report_run(argc, argv, "compare");
	report_options_init(&options.common);
	read_limit(&options.opts, "0");
	code = OPTIONS_TAKE("compare", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	if (report_options_check(&options.common, "compare"))
		return EXIT_USAGE;
	if (argc - optind != COMPARE_SIDE_CNT)
		return usage_error("compare", "which two recordings? Name A and B, and no more");
	code = take_sides(&options, argv + optind);
	if (!code)
		code = compare_run(&options);
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		side__free(&options.sides[s]);
	return code;
}
