// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/analyse.h"

#include "analysis/segments.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/page_file.h"
#include "shard/open.h"
#include "view/html.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	int page_err = options->html ? page_file_write(options->html, write_page, &page) : 0, err;

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

	shard_reader__rewind(reader);
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

	shard_reader__rewind(reader);
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

static int segments_on(struct shard_reader *reader, const struct analyse_options *options)
{
	const struct dataset_filter filter = {
		.type = options->type,
		.host = options->host,
		.since_wall_ns = options->since_wall_ns,
		.until_wall_ns = options->until_wall_ns,
	};
	const struct view_opts view = view_opts_stdout(options->top);
	struct segments segments;
	double lost;
	int err = segments_make(&segments, reader, &filter, options->segments_ns, options->tail);

	if (err == -E2BIG)
		log_error("more than %d segments: choose longer ones", SEGMENTS_MAX);
	else if (err == -ENODATA)
		log_error("the recording does not tell its time of day, which segments begin by");
	else if (err == -ENOENT || err == -ESRCH)
		log_error("there is no request of that type, host and time");
	else if (err)
		log_error("the analysis failed: %s", strerror(-err));
	if (err)
		return EXIT_FAILED;
	err = options->json ? view_segments_json(stdout, &segments) : view_segments_text(stdout, &segments, &view);
	if (err)
		log_error("cannot write the report: %s", strerror(-err));
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
	code = options->segments_ns ? segments_on(reader, options) : report_on(reader, options);
	shard_reader__free(reader);
	return code;
}
