// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/analyse.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/shards.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOWEST_CNT 10 /* paths in full */

static int print(const struct report *report, const struct analyse_options *options)
{
	struct view_opts view = {
		.top = options->top,
		.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
	};
	int err = options->json ? view_json(stdout, report) : view_text(stdout, report, &view);

	if (err)
		log_error("cannot write the report: %s", strerror(-err));
	return err;
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
		/* The types there are, each once: what the user may have meant. */
		char list[512] = "";

		for (size_t i = 0; i < rows; i++) {
			const char *type = dataset.strings[dataset.type[i]];
			size_t len = strlen(list);
			bool listed = false;

			for (size_t j = 0; j < i && j < 1000 && !listed; j++)
				listed = dataset.type[j] == dataset.type[i];
			if (!listed && len < 400 && !strstr(list, type))
				strncat(list, len ? ", " : "", 3), strncat(list, type, 80);
		}
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

/* The chains of who waited for whom, where they were recorded. */
static int follow_paths(struct findings *findings, struct shard_reader *reader)
{
	int found = traces_load(&findings->traces, reader), err;

	if (found <= 0)
		return found;
	err = paths_make(&findings->paths, &findings->traces, &findings->dataset);
	if (err)
		traces_free(&findings->traces);
	return err;
}

/* The calls of probed functions, likewise. */
static int find_factors(struct findings *findings, struct shard_reader *reader, const struct factor_rule *rule)
{
	const struct paths *paths = findings->paths.traces ? &findings->paths : NULL;
	int found = invocations_load(&findings->invocations, reader, &findings->dataset, paths != NULL);

	if (found <= 0)
		return found;
	findings->probed = true;
	return factor_analysis_make(&findings->factors, &findings->invocations, &findings->dataset, paths,
				    WALK_LAST_ROUND, rule);
}

static void findings_release(struct findings *findings)
{
	if (findings->probed) {
		factor_analysis_free(&findings->factors);
		invocations_free(&findings->invocations);
	}
	if (findings->paths.traces) {
		paths_free(&findings->paths);
		traces_free(&findings->traces);
	}
}

int findings_complete(struct findings *findings, struct shard_reader *reader, const struct analyse_options *options,
		      uint32_t bootstrap_cnt)
{
	struct report_opts opts = {
		.tail = options->tail,
		.bootstrap_cnt = bootstrap_cnt,
		.seed = 1,
		.slowest = SLOWEST_CNT,
	};
	int err;

	findings->probed = false;
	findings->paths = (struct paths){0};
	err = follow_paths(findings, reader);
	if (!err)
		err = find_factors(findings, reader, &options->rule);
	opts.paths = findings->paths.traces ? &findings->paths : NULL;
	opts.factors = findings->probed ? &findings->factors : NULL;
	if (!err)
		err = report_make(&findings->report, &findings->dataset, &opts);
	if (err)
		findings_release(findings);
	return err;
}

int findings_make(struct findings *findings, struct shard_reader *reader, const struct analyse_options *options,
		  uint32_t bootstrap_cnt)
{
	const struct dataset_filter filter = {
		.type = options->type,
		.host = options->host,
		.since_ts = options->round_ts,
		.without_events = options->round_ts != 0,
	};
	int err = dataset_load(&findings->dataset, reader, &filter);

	if (err)
		return err;
	err = findings_complete(findings, reader, options, bootstrap_cnt);
	if (err)
		dataset_free(&findings->dataset);
	return err;
}

void findings_free(struct findings *findings)
{
	report_free(&findings->report);
	findings_release(findings);
	dataset_free(&findings->dataset);
}

static int report_on(struct shard_reader *reader, const struct analyse_options *options)
{
	struct dataset_filter filter = {
		.type = options->type,
		.host = options->host,
		.since_wall_ns = options->since_wall_ns,
		.until_wall_ns = options->until_wall_ns,
	};
	struct findings *findings = calloc(1, sizeof(*findings));
	int err = findings ? dataset_load(&findings->dataset, reader, &filter) : -ENOMEM, code = EXIT_FAILED;

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
	err = findings_complete(findings, reader, options, 0);
	if (err) {
		log_error("the analysis failed: %s", strerror(-err));
		dataset_free(&findings->dataset);
		goto cleanup;
	}
	if (!print(&findings->report, options))
		code = findings->report.records_lost_share > options->max_loss ? EXIT_LIMITS : EXIT_DONE;
	findings_free(findings);
cleanup:
	free(findings);
	return code;
}

int analyse_run(const struct analyse_options *options, const char *const *paths, size_t path_cnt)
{
	struct shard_reader *reader = shards_open(paths, path_cnt);
	int code;

	if (!reader)
		return EXIT_FAILED;
	code = report_on(reader, options);
	shard_reader__free(reader);
	return code;
}
