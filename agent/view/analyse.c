// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/analyse.h"

#include "analysis/segments_difference.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/progress.h"
#include "shard/open.h"
#include "view/html.h"
#include "view/page_file.h"
#include "view/view.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct page_of {
	const struct findings *findings;
	struct shard_reader *reader;
	const struct analyse_options *options;
};

static int write_page(FILE *out, const void *ctx)
{
	const struct page_of *page = ctx;
	const struct findings *findings = page->findings;
	const struct view_opts view = {.top = page->options->top};
	struct contexts contexts;
	int err = contexts_make(&contexts, &findings->dataset, findings->paths.traces ? &findings->paths : NULL,
				page->reader, page->options->tail);

	if (err)
		return err;
	err = view_html(out, findings, &contexts, &view);
	contexts_free(&contexts);
	return err;
}

static int print(const struct findings *findings, struct shard_reader *reader, const struct analyse_options *options)
{
	const struct report *report = &findings->report;
	const struct view_opts view = view_opts_stdout(options->top);
	const struct page_of page = {findings, reader, options};
	int page_err, err;

	progress_at("writing the page");
	page_err = options->html ? page_file_write(options->html, write_page, &page) : 0;
	progress_end();
	if (options->html && page_file_is_stdout(options->html))
		return page_err;
	/* Also after a page that could not be written: what was recorded may be gone. */
	err = options->json ? view_json(stdout, report) : view_text(stdout, report, &view);
	if (err)
		log_error("cannot write the report: %s", strerror(-err));
	return err ? err : page_err;
}

static bool type_is_known(const struct analyse_options *options, struct shard_reader *reader)
{
	struct dataset_filter none = {};
	struct dataset dataset;
	size_t rows;

	if (dataset_load(&dataset, reader, &none))
		return true;
	rows = dataset.row_cnt;
	if (rows) {
		char list[512];

		dataset_list_types(&dataset, list, sizeof(list));
		log_error("no interval of type '%s': there are %s", options->type, list);
	}
	dataset_free(&dataset);
	return rows == 0;
}

/* Names the first file that is at fault. */
static void say_unreadable(struct shard_reader *reader, int err)
{
	const struct shard_damage *damage;
	size_t cnt = shard_reader__damage(reader, &damage);

	if (err == -ENOENT && cnt)
		log_error("'%s' cannot be analysed: %s at byte %llu, and no interval before it", damage[0].path,
			  damage[0].what, (unsigned long long)damage[0].off);
	else
		log_error("these shards cannot be analysed: %s",
			  err == -ENOENT ? "there is no table of intervals in them" : strerror(-err));
}

/* Names the hosts that there are: what the user may have meant. */
static void say_no_such(struct shard_reader *reader, const struct analyse_options *options)
{
	struct dataset_filter none = {};
	struct dataset dataset;
	char list[512] = "";

	if (dataset_load(&dataset, reader, &none))
		return;
	for (size_t i = 0; i < dataset.host_cnt && strlen(list) < 400; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%.64s", i ? ", " : "",
			 dataset.hosts[i].name);
	if (options->since_wall_ns || options->until_wall_ns)
		log_error("no recording of %s%s%s from that time: there are recordings of %s",
			  options->host ? "'" : "any host", options->host ? options->host : "",
			  options->host ? "'" : "", list);
	else
		log_error("no recording of a host '%s': there are %s", options->host, list);
	dataset_free(&dataset);
}

static int report_on(struct shard_reader *reader, const struct analyse_options *options)
{
	const struct findings_opts opts = {
		.filter =
			{
				.type = options->type,
				.host = options->host,
				.since_wall_ns = options->since_wall_ns,
				.until_wall_ns = options->until_wall_ns,
			},
		.tail = options->tail,
		.rule = options->rule,
		.keep_rows = options->html != NULL,
	};
	struct findings *findings = calloc(1, sizeof(*findings));
	int err = findings ? dataset_load(&findings->dataset, reader, &opts.filter) : -ENOMEM, code = EXIT_FAILED;

	if (err == -ESRCH)
		say_no_such(reader, options);
	else if (err)
		say_unreadable(reader, err);
	if (err)
		goto cleanup;
	if (!findings->dataset.row_cnt && options->type && !type_is_known(options, reader)) {
		dataset_free(&findings->dataset);
		goto cleanup;
	}
	err = findings_complete(findings, reader, &opts);
	if (err) {
		log_error("the analysis failed: %s", strerror(-err));
		dataset_free(&findings->dataset);
		goto cleanup;
	}
	if (!print(findings, reader, options))
		code = findings->report.records_lost_share > options->max_loss ? EXIT_LIMITS : EXIT_DONE;
	findings_free(findings);
cleanup:
	free(findings);
	return code;
}

static void say_no_segments(int err)
{
	if (err == -E2BIG)
		log_error("more than %d segments: choose longer ones", SEGMENTS_MAX);
	else if (err == -ENODATA)
		log_error("the recording does not tell its time of day, which segments begin by");
	else if (err == -ENOENT || err == -ESRCH)
		log_error("there is no request of that type, host and time");
	else
		log_error("the analysis failed: %s", strerror(-err));
}

/* "whylate compare DIR@A-B DIR@C-D"; "" of several paths. */
static void compare_command(char *command, size_t sz, const struct segments *segments, const char *const *paths,
			    size_t path_cnt)
{
	const size_t numbers[] = {segments->median, segments->worst};
	size_t len;

	*command = '\0';
	if (path_cnt != 1 || segments->median == segments->worst)
		return;
	len = (size_t)snprintf(command, sz, "whylate compare");
	for (int s = 0; s < 2 && len < sz; s++) {
		char from[32], to[32];
		time_t begin = (time_t)(segments->items[numbers[s]].begin_wall_ns / 1000000000);
		time_t end = begin + (time_t)(segments->length_ns / 1000000000);
		struct tm tm;

		strftime(from, sizeof(from), "%FT%T", gmtime_r(&begin, &tm));
		strftime(to, sizeof(to), "%FT%T", gmtime_r(&end, &tm));
		len += (size_t)snprintf(command + len, sz - len, " '%s@%s-%s'", paths[0], from, to);
	}
	if (len >= sz)
		*command = '\0';
}

/* Summaries of weeks are read in seconds; the requests of weeks are not. */
#define DIFFERENCE_BYTES (64ULL << 20)

static int print_segments(const struct segments *segments, struct shard_reader *reader,
			  const struct dataset_filter *filter, const struct analyse_options *options,
			  const char *const *paths, size_t path_cnt)
{
	struct segments_difference *difference = calloc(1, sizeof(*difference));
	const struct view_opts view = view_opts_stdout(options->top);
	struct segments_view more = {NULL};
	char command[2 * PATH_MAX] = "";
	int made = difference ? 0 : -ENOMEM, err;

	if (difference && shard_reader__bytes(reader) <= DIFFERENCE_BYTES)
		made = segments_difference__make(difference, reader, segments, filter);
	else
		compare_command(command, sizeof(command), segments, paths, path_cnt);
	if (made < 0)
		log_warn("the worst segment is not compared with the median one: %s", strerror(-made));
	if (made > 0)
		more.difference = difference;
	else if (!made && *command)
		more.command = command;
	progress_end();
	err = options->json ? view_segments_json(stdout, segments, &more)
			    : view_segments_text(stdout, segments, &more, &view);
	if (err)
		log_error("cannot write the report: %s", strerror(-err));
	if (made > 0)
		segments_difference__free(difference);
	free(difference);
	return err;
}

static int segments_on(struct shard_reader *reader, const struct analyse_options *options, const char *const *paths,
		       size_t path_cnt)
{
	const struct dataset_filter filter = {
		.type = options->type,
		.host = options->host,
		.since_wall_ns = options->since_wall_ns,
		.until_wall_ns = options->until_wall_ns,
	};
	struct segments segments;
	double lost;
	int err = segments_make(&segments, reader, &filter, options->segments_ns, options->tail);

	if (err) {
		say_no_segments(err);
		return EXIT_FAILED;
	}
	err = print_segments(&segments, reader, &filter, options, paths, path_cnt);
	lost = segments.records_emitted ? (double)segments.records_lost / (double)segments.records_emitted : 0;
	segments_free(&segments);
	return err ? EXIT_FAILED : lost > options->max_loss ? EXIT_LIMITS : EXIT_DONE;
}

int analyse_run(const struct analyse_options *options, const char *const *paths, size_t path_cnt)
{
	struct shard_reader *reader = shards_open(paths, path_cnt);
	int code;

	if (!reader)
		return EXIT_FAILED;
	progress_begin("reading");
	code = options->segments_ns ? segments_on(reader, options, paths, path_cnt) : report_on(reader, options);
	progress_end();
	shard_reader__free(reader);
	return code;
}
