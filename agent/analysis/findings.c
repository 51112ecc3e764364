// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/findings.h"
#include "base/progress.h"

#define SLOWEST_CNT 10 /* paths in full */

int findings_follow(struct findings *findings, struct shard_reader *reader, bool as_one_host)
{
	int found = traces_load(&findings->traces, reader), err;

	findings->paths = (struct paths){0};
	if (found < 0)
		return found;
	err = samples_load(&findings->samples, found ? &findings->traces : NULL, reader);
	if (!found)
		return err;
	if (err) {
		traces_free(&findings->traces);
		return err;
	}
	err = roots_init(&findings->roots, &findings->traces, &findings->samples, &findings->dataset);
	findings->roots.many_hosts = findings->roots.many_hosts && !as_one_host;
	if (!err)
		err = paths_make(&findings->paths, &findings->traces, &findings->dataset, &findings->roots);
	if (err) {
		roots_free(&findings->roots);
		samples_free(&findings->samples);
		traces_free(&findings->traces);
	}
	return err ? err : 1;
}

void findings_unfollow(struct findings *findings)
{
	if (findings->paths.traces) {
		roots_free(&findings->roots);
		paths_free(&findings->paths);
		traces_free(&findings->traces);
	}
	samples_free(&findings->samples);
}

/* The calls of probed functions, likewise. */
static int find_factors(struct findings *findings, struct shard_reader *reader, const struct factor_rule *rule)
{
	const struct paths *paths = findings->paths.traces ? &findings->paths : NULL;
	int found = invocations_load(&findings->invocations, reader, &findings->dataset, paths != NULL);

	if (found <= 0)
		return found;
	findings->probed = true;
	if (!rule->understood || !rule->understood->cnt)
		return factor_analysis_make(&findings->factors, &findings->invocations, &findings->dataset, paths,
					    WALK_LAST_ROUND, rule, NULL);
	found = factor_analysis_make(&findings->whole, &findings->invocations, &findings->dataset, paths,
				     WALK_LAST_ROUND, rule, NULL);
	return found ? found
		     : factor_analysis_make(&findings->factors, &findings->invocations, &findings->dataset, paths,
					    WALK_LAST_ROUND, rule, &findings->whole);
}

/* The functions that samples met. */
static int sample_factors(struct findings *findings, const struct factor_rule *rule)
{
	const struct paths *paths = findings->paths.traces ? &findings->paths : NULL;
	bool whole = rule->understood && rule->understood->cnt;
	int err = sample_functions(&findings->functions, &findings->samples);

	findings->has_samples = true;
	if (!err && whole)
		err = factor_analysis_sample(&findings->sampled_whole, &findings->functions, &findings->samples,
					     &findings->dataset, paths, rule, NULL);
	if (!err)
		err = factor_analysis_sample(&findings->sampled, &findings->functions, &findings->samples,
					     &findings->dataset, paths, rule, whole ? &findings->sampled_whole : NULL);
	return err;
}

static void findings_release(struct findings *findings)
{
	values_free(&findings->values);
	if (findings->has_samples) {
		factor_analysis_free(&findings->sampled);
		factor_analysis_free(&findings->sampled_whole);
		invocations_free(&findings->functions);
	}
	if (findings->probed) {
		factor_analysis_free(&findings->factors);
		factor_analysis_free(&findings->whole);
		invocations_free(&findings->invocations);
	}
	findings_unfollow(findings);
}

int findings_complete(struct findings *findings, struct shard_reader *reader, const struct findings_opts *opts)
{
	struct report_opts report = {
		.tail = opts->tail,
		.bootstrap_cnt = opts->bootstrap_cnt,
		.seed = 1,
		.slowest = SLOWEST_CNT,
		.keep_rows = opts->keep_rows,
	};
	int err;

	findings->probed = findings->has_samples = false;
	findings->factors = findings->whole = (struct factor_analysis){0};
	findings->sampled = findings->sampled_whole = (struct factor_analysis){0};
	findings->paths = (struct paths){0};
	findings->samples = (struct samples){0};
	findings->values = (struct values){0};
	err = findings_follow(findings, reader, false);
	progress_at("weighing functions");
	if (err >= 0)
		err = find_factors(findings, reader, &opts->rule);
	if (!err && findings->samples.rows.cnt && !opts->without_samples)
		err = sample_factors(findings, &opts->rule);
	if (!err)
		err = values_load(&findings->values, reader);
	report.values = findings->values.rows.cnt ? &findings->values : NULL;
	report.paths = findings->paths.traces ? &findings->paths : NULL;
	report.roots = report.paths ? &findings->roots : NULL;
	report.factors = findings->probed ? &findings->factors : NULL;
	report.sampled = findings->has_samples ? &findings->sampled : NULL;
	if (!err)
		err = report_make(&findings->report, &findings->dataset, &report);
	if (err)
		findings_release(findings);
	return err;
}

int findings_make(struct findings *findings, struct shard_reader *reader, const struct findings_opts *opts)
{
	int err = dataset_load(&findings->dataset, reader, &opts->filter);

	if (err)
		return err;
	err = findings_complete(findings, reader, opts);
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
