// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/findings.h"
#include "base/log.h"
#include "view/export.h"
#include "view/export_otlp.h"
#include "view/metrics_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PPROF_TAIL 0.99

static int run_jsonl(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	return export_jsonl(out, reader, from->table);
}

static int run_csv(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	return export_csv(out, reader, from->table);
}

static int run_folded(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	const struct dataset_filter filter = {};
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	int found, err = dataset_load(&dataset, reader, &filter);

	(void)from;
	if (err)
		return err;
	found = traces_load(&traces, reader);
	err = found < 0 ? found : 0;
	if (found > 0) {
		err = paths_make(&paths, &traces, &dataset, NULL);
		if (!err) {
			err = export_folded(out, &dataset, &paths);
			paths_free(&paths);
		}
		traces_free(&traces);
	} else if (!err) {
		err = export_folded(out, &dataset, NULL);
	}
	dataset_free(&dataset);
	if (!err)
		err = export_folded_stacks(out, reader);
	return err;
}

static int run_perfetto(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	struct samples samples;
	struct traces traces;
	int err = traces_load(&traces, reader);

	if (!err) {
		log_error("'%s' has no threads to draw: record with --mode trace", from->path);
		return EXPORT_SAID;
	}
	if (err < 0)
		return err;
	err = samples_load(&samples, &traces, reader);
	if (!err) {
		err = export_perfetto(out, &traces, &samples);
		samples_free(&samples);
	}
	traces_free(&traces);
	return err;
}

static int put_file(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	(void)span_cnt;
	return fwrite(bytes, 1, sz, owner) == sz ? 0 : -EIO;
}

static int run_otlp(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	(void)from;
	return export_otlp_all(reader, false, put_file, out);
}

static int run_otlp_metrics(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	(void)from;
	return export_otlp_all(reader, true, put_file, out);
}

static int run_prometheus(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	(void)from;
	return export_metrics_of(out, reader, false);
}

static int run_openmetrics(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	(void)from;
	return export_metrics_of(out, reader, true);
}

static int run_pprof(FILE *out, struct shard_reader *reader, const struct export_source *from)
{
	const struct dataset_filter filter = {.without_events = true};
	struct findings *findings = calloc(1, sizeof(*findings));
	int err = findings ? dataset_load(&findings->dataset, reader, &filter) : -ENOMEM, found = 0;

	if (!err) {
		found = findings_follow(findings, reader, false);
		err = found < 0 ? found : 0;
		if (found > 0)
			err = export_pprof(out, &findings->dataset, &findings->paths, &findings->roots, PPROF_TAIL);
		if (found >= 0)
			findings_unfollow(findings);
		dataset_free(&findings->dataset);
	}
	free(findings);
	if (!err && !found) {
		log_error("'%s' has no chains of who waited for whom: record with --mode trace --stacks", from->path);
		return EXPORT_SAID;
	}
	return err;
}

static const struct export_format formats[] = {
	{"perfetto", run_perfetto, false, true},
	{"pprof", run_pprof, false, true},
	{"otlp", run_otlp, false, true},
	{"otlp-metrics", run_otlp_metrics, false, true},
	{"prometheus", run_prometheus, false, false},
	{"openmetrics", run_openmetrics, false, false},
	{"folded", run_folded, false, false},
	{"csv", run_csv, true, false},
	{"jsonl", run_jsonl, true, false},
};

const struct export_format *export_format_of(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
