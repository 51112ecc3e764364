// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export.h"
#include "shard/inputs.h"

#include "base/confine.h"
#include "base/limited.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/export_otlp.h"
#include "cmd/options.h"
#include "shard/open.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTLP_PATIENCE_NS 60000000000ULL
/* What was not taken then is tried again in the next turn. */
#define LIVE_PATIENCE_NS 5000000000ULL

/*
 * Tables of strings make a few bytes of a shard stand for thousands of an export.  What a recording has measured grows
 * less than that.
 */
#define OUTPUT_MIN  (64ull << 20)
#define OUTPUT_GAIN 200

struct export_options {
	const struct export_format *format;
	const char *out_path; /* NULL: stdout */
	const char *table;    /* NULL: all */
	const char *const *paths;
	size_t path_cnt;
	uint64_t max_bytes;         /* 0: by the size of the shards */
	struct otlp_send_opts send; /* url NULL: to a file */
	bool metrics;               /* otlp-metrics */
	const char *live_url;       /* NULL: what is there, once */
};

static const char help[] =
	"Usage: whylate export DIR|SHARD… --format perfetto|pprof|otlp|otlp-metrics|folded|csv|jsonl [-o FILE|URL]\n"
	"       whylate export DIR|SHARD… --otlp URL\n"
	"Turns recorded shards into what other tools read.  Needs no privilege.\n"
	"      --format NAME   perfetto: a trace for ui.perfetto.dev, of recordings with --mode trace\n"
	"                      pprof: late and typical requests by call path, of recordings with --mode trace "
	"--stacks\n"
	"                      folded: time off the CPU by reason and culprit, for flame graphs; with user stacks, if\n"
	"                      they were recorded (--stacks)\n"
	"                      csv, jsonl: every row of every table\n"
	"                      otlp: requests as OpenTelemetry's spans, into a file or to a collector's URL\n"
	"                      otlp-metrics: their latencies as exponential histograms, likewise\n"
	"                      prometheus, openmetrics: latencies, late time by category and root, loss and cost as "
	"metrics\n"
	"  -o, --output FILE   where to (default -, stdout); otlp also http://localhost:4318/v1/traces\n"
	"      --otlp URL      requests as spans to that URL while they are recorded, until the recordings have ended\n"
	"      --headers FILE  otlp to a URL: lines NAME: VALUE, such as a token; others may not read it\n"
	"      --insecure, --ca FILE   otlp to a URL: without TLS to another machine; the authority of its "
	"certificate\n"
	"      --table NAME    with csv and jsonl: only that table\n"
	"      --max-output BYTES   end with an error beyond it (default 64M and 200 times the shards' size)\n";

/* Each says what went wrong: an exit code. */
static int said(int err, const struct export_options *options, bool exceeded)
{
	if (err == -ENOENT && options->table)
		log_error("there is no table '%s' in '%s'", options->table, options->paths[0]);
	else if (err == -ENOENT)
		log_error("'%s' holds no row that can be read", options->paths[0]);
	else if (err && exceeded)
		log_error("the export would be larger than these shards can have measured: it ends here "
			  "(--max-output)");
	else if (err)
		log_error("the export to '%s' failed: %s", options->out_path ? options->out_path : "-", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* What is half-written is no export: a file of it is removed, anything else is the reader's to judge. */
static void discard(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

/* Through the limit: an exit code. */
static int export_limited(FILE *to, struct shard_reader *reader, const struct export_options *options)
{
	const struct export_source source = {.path = options->paths[0], .table = options->table};
	struct limited limited = {
		.to = to,
		.left = options->max_bytes ?: OUTPUT_MIN + OUTPUT_GAIN * shard_reader__bytes(reader),
		.terminal = to == stdout && isatty(STDOUT_FILENO),
	};
	FILE *out = limited__open(&limited);
	int err, close_err;

	if (!out)
		return said(-ENOMEM, options, false);
	err = options->format->run(out, reader, &source);
	close_err = fclose(out) || fflush(to) ? (limited.err ?: -errno) : 0;
	/* A format knows only that it could not write; a full disk is not a broken one. */
	if (err == -EIO && (limited.err || close_err))
		err = limited.err ?: close_err;
	limited__free(&limited);
	return err == EXPORT_SAID ? EXIT_FAILED : said(err ?: close_err, options, limited.exceeded);
}

static int export_to(struct shard_reader *reader, const struct export_options *options)
{
	FILE *out = options->out_path ? fopen(options->out_path, "we") : stdout;
	int code;

	if (!out) {
		log_error("cannot write '%s': %s", options->out_path, strerror(errno));
		return EXIT_FAILED;
	}
	code = export_limited(out, reader, options);
	if (options->out_path && fclose(out) && code == EXIT_DONE)
		code = said(-errno, options, false);
	if (options->out_path && code == EXIT_FAILED)
		discard(options->out_path);
	return code;
}

static void say_damage(const struct shard_reader *reader)
{
	const struct shard_damage *damage;
	size_t cnt = shard_reader__damage(reader, &damage), shown = 0;

	for (size_t i = 0; i < cnt; i++)
		if (damage[i].sz && shown++ < 5)
			log_warn("'%s': %s at byte %llu, %llu bytes are not in the export", damage[i].path,
				 damage[i].what, (unsigned long long)damage[i].off, (unsigned long long)damage[i].sz);
}

static int export_run(const struct export_options *options)
{
	const struct confine_reader needs = {
		.paths = options->paths,
		.path_cnt = options->path_cnt,
		.out_path = options->send.url ? NULL : options->out_path,
		.files = {options->send.ca_path, options->send.headers_path},
		.network = options->send.url,
	};
	struct shard_reader *reader;
	int code;

	confine_reader(&needs);
	if (options->live_url)
		return export_otlp_live(options->paths, options->path_cnt, &options->send);
	reader = shards_open(options->paths, options->path_cnt);
	if (!reader)
		return EXIT_FAILED;
	if (options->out_path || !isatty(STDOUT_FILENO))
		progress_begin("exporting");
	code = options->send.url ? export_otlp_url(reader, options->metrics, &options->send)
				 : export_to(reader, options);
	progress_end();
	say_damage(reader);
	shard_reader__free(reader);
	return code;
}

static int take_format(void *options, const char *command, const char *arg)
{
	const struct export_format *format = export_format_of(arg);

	((struct export_options *)options)->format = format;
	return format ? 0
		      : usage_error(command,
				    "unknown format '%s' (perfetto, pprof, otlp, otlp-metrics, prometheus, "
				    "openmetrics, folded, csv, "
				    "jsonl)",
				    arg);
}

#define O struct export_options
static const struct option_row rows[] = {
	OPTION_CALL("format", take_format, .has_arg = required_argument),
	OPTION_TEXT("output", 'o', O, out_path),
	OPTION_TEXT("table", 0, O, table),
	OPTION_TEXT("otlp", 0, O, live_url),
	OPTION_BYTES("max-output", 0, O, max_bytes, .example = "1G"),
	OPTION_TEXT("headers", 0, O, send.headers_path),
	OPTION_TEXT("ca", 0, O, send.ca_path),
	OPTION_FLAG("insecure", 0, O, send.insecure),
};
#undef O

int cmd_export(int argc, char **argv)
{
	struct export_options options = {.send = {.patience_ns = OTLP_PATIENCE_NS}};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	const char *wrong;
	int code = OPTIONS_TAKE("export", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	if (options.out_path && !strcmp(options.out_path, "-"))
		options.out_path = NULL;
	if (options.out_path && shard_name_is(options.out_path))
		return usage_error("export", "'%s' has the name of a shard, which would be overwritten",
				   options.out_path);
	if (options.live_url && (options.format || options.out_path || options.table || options.max_bytes))
		return usage_error("export", "--otlp goes without --format, --output, --table and --max-output");
	if (options.live_url) {
		options.format = export_format_of("otlp");
		options.out_path = options.live_url;
		options.send.patience_ns = LIVE_PATIENCE_NS;
	}
	if (!options.format)
		return usage_error("export",
				   "which format? --format wants perfetto, pprof, otlp, otlp-metrics, prometheus, "
				   "openmetrics, folded, csv or jsonl");
	if (options.table && !options.format->by_table)
		return usage_error("export", "--table goes with csv and jsonl, not with %s", options.format->name);
	options.metrics = !strcmp(options.format->name, "otlp-metrics");
	if ((options.metrics || !strcmp(options.format->name, "otlp")) && options.out_path &&
	    (options.live_url || strstr(options.out_path, "://"))) {
		options.send.url = options.out_path;
		wrong = otlp_url_check(options.send.url, options.send.insecure);
		if (wrong)
			return usage_error("export", "'%s': %s", options.send.url, wrong);
	} else if (options.send.headers_path || options.send.ca_path || options.send.insecure) {
		return usage_error("export",
				   "--headers, --ca and --insecure go with --otlp URL, or with --format otlp or "
				   "otlp-metrics and -o URL");
	}
	if (options.format->binary && !options.out_path && isatty(STDOUT_FILENO))
		return usage_error("export", "%s is binary: -o FILE, or a pipe", options.format->name);
	if (usage_recording("export", argc))
		return EXIT_USAGE;
	options.paths = (const char *const *)argv + optind;
	options.path_cnt = (size_t)(argc - optind);
	return export_run(&options);
}
