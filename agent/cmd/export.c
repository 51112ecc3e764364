// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export.h"

#include "analysis/findings.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/export_otlp.h"
#include "cmd/options.h"
#include "shard/open.h"
#include "view/metrics_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Tables of strings make a few bytes of a shard stand for thousands of an export.  What a recording has measured grows
 * less than that.
 */
#define OUTPUT_MIN    (64ull << 20)
#define OUTPUT_GAIN   200
#define OUTPUT_BUFFER (64u << 10)
#define PPROF_TAIL    0.99

#define OTLP_PATIENCE_NS 60000000000ULL

/* Passes on what is written to it, up to a limit; to a terminal, line by line and without what acts on one. */
struct limited {
	FILE *to;
	uint64_t left;
	bool exceeded;
	bool terminal;
	VEC(char) line;
};

struct export_options {
	const struct export_format *format;
	const char *out_path; /* NULL: stdout */
	const char *table;    /* NULL: all */
	const char *const *paths;
	size_t path_cnt;
	uint64_t max_bytes;            /* 0: by the size of the shards */
	const struct limited *limited; /* what it is written through */
	struct otlp_send_opts send;    /* url NULL: to a file */
};

static const char help[] =
	"Usage: whylate export DIR|SHARD… --format perfetto|pprof|otlp|folded|csv|jsonl [-o FILE|URL]\n"
	"Turns recorded shards into what other tools read.  Needs no privilege.\n"
	"      --format NAME   perfetto: a trace for ui.perfetto.dev, of recordings with --mode trace\n"
	"                      pprof: late and typical requests by call path, of recordings with --mode trace "
	"--stacks\n"
	"                      folded: time off the CPU by reason and culprit, for flame graphs; with user stacks, if\n"
	"                      they were recorded (--stacks)\n"
	"                      csv, jsonl: every row of every table\n"
	"                      otlp: requests as OpenTelemetry's spans, into a file or to a collector's URL\n"
	"                      prometheus, openmetrics: latencies, late time by category and root, loss and cost as "
	"metrics\n"
	"  -o, --output FILE   where to (default -, stdout); otlp also http://localhost:4318/v1/traces\n"
	"      --headers FILE  otlp to a URL: lines NAME: VALUE, such as a token; others may not read it\n"
	"      --insecure, --ca FILE   otlp to a URL: without TLS to another machine; the authority of its "
	"certificate\n"
	"      --table NAME    with csv and jsonl: only that table\n"
	"      --max-output BYTES   end with an error beyond it (default 64M and 200 times the shards' size)\n";

/* Each says what went wrong: an exit code. */
static int said(int err, const struct export_options *options)
{
	if (err == -ENOENT && options->table)
		log_error("there is no table '%s' in '%s'", options->table, options->paths[0]);
	else if (err == -ENOENT)
		log_error("'%s' holds no row that can be read", options->paths[0]);
	else if (err && options->limited && options->limited->exceeded)
		log_error("the export would be larger than these shards can have measured: it ends here "
			  "(--max-output)");
	else if (err)
		log_error("the export to '%s' failed: %s", options->out_path ? options->out_path : "-", strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_jsonl(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	return said(export_jsonl(out, reader, options->table), options);
}

static int run_csv(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	return said(export_csv(out, reader, options->table), options);
}

static int run_folded(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	const struct dataset_filter filter = {};
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	int found, err = dataset_load(&dataset, reader, &filter);

	if (err)
		return said(err, options);
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
	return said(err, options);
}

static int run_perfetto(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	struct samples samples;
	struct traces traces;
	int err = traces_load(&traces, reader);

	if (!err) {
		log_error("'%s' has no threads to draw: record with --mode trace", options->paths[0]);
		return EXIT_FAILED;
	}
	if (err < 0)
		return said(err, options);
	err = samples_load(&samples, &traces, reader);
	if (!err) {
		err = export_perfetto(out, &traces, &samples);
		samples_free(&samples);
	}
	traces_free(&traces);
	return said(err, options);
}

static int run_otlp(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	return said(export_otlp_file(out, reader), options);
}

static int run_prometheus(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	return said(export_metrics_of(out, reader, false), options);
}

static int run_openmetrics(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	return said(export_metrics_of(out, reader, true), options);
}

static int run_pprof(FILE *out, struct shard_reader *reader, const struct export_options *options)
{
	const struct dataset_filter filter = {.without_events = true};
	struct findings *findings = calloc(1, sizeof(*findings));
	int err = findings ? dataset_load(&findings->dataset, reader, &filter) : -ENOMEM, found = 0;

	if (!err) {
		found = findings_follow(findings, reader);
		err = found < 0 ? found : 0;
		if (found > 0)
			err = export_pprof(out, &findings->dataset, &findings->paths, &findings->roots, PPROF_TAIL);
		if (found >= 0)
			findings_unfollow(findings);
		dataset_free(&findings->dataset);
	}
	free(findings);
	if (!err && !found) {
		log_error("'%s' has no chains of who waited for whom: record with --mode trace --stacks",
			  options->paths[0]);
		return EXIT_FAILED;
	}
	return said(err, options);
}

static const struct export_format {
	const char *name;
	int (*run)(FILE *out, struct shard_reader *reader, const struct export_options *options);
	bool by_table, binary;
} formats[] = {
	{"perfetto", run_perfetto, false, true},
	{"pprof", run_pprof, false, true},
	{"otlp", run_otlp, false, true},
	{"prometheus", run_prometheus, false, false},
	{"openmetrics", run_openmetrics, false, false},
	{"folded", run_folded, false, false},
	{"csv", run_csv, true, false},
	{"jsonl", run_jsonl, true, false},
};

static const struct export_format *format_of(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* What is half-written is no export: a file of it is removed, anything else is the reader's to judge. */
static void discard(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

static int put_line(struct limited *limited)
{
	char *printable;
	int err;

	if (limited->line.cnt && limited->line.items[limited->line.cnt - 1] == '\r')
		limited->line.cnt--;
	if (vec_push(&limited->line, 0))
		return -ENOMEM;
	printable = utf8_printable(limited->line.items, utf8_locale());
	limited->line.cnt = 0;
	err = printable && fprintf(limited->to, "%s\n", printable) >= 0 ? 0 : -EIO;
	free(printable);
	return err;
}

static ssize_t put_lines(struct limited *limited, const char *bytes, size_t sz)
{
	for (size_t i = 0; i < sz; i++)
		if (bytes[i] == '\n' ? put_line(limited) : vec_push(&limited->line, bytes[i]))
			return 0;
	return (ssize_t)sz;
}

static ssize_t limited_write(void *ctx, const char *bytes, size_t sz)
{
	struct limited *limited = ctx;

	if (sz > limited->left) {
		limited->exceeded = true;
		errno = EFBIG;
		return 0;
	}
	limited->left -= sz;
	if (limited->terminal)
		return put_lines(limited, bytes, sz);
	return fwrite(bytes, 1, sz, limited->to) == sz ? (ssize_t)sz : 0;
}

/* Through the limit: an exit code. */
static int export_limited(FILE *to, struct shard_reader *reader, const struct export_options *options)
{
	struct limited limited = {
		.to = to, .left = options->max_bytes, .terminal = to == stdout && isatty(STDOUT_FILENO)};
	FILE *out = fopencookie(&limited, "w", (cookie_io_functions_t){.write = limited_write});
	struct export_options own = *options;
	int code, err;

	if (!out)
		return said(-ENOMEM, options);
	setvbuf(out, NULL, _IOFBF, OUTPUT_BUFFER);
	own.limited = &limited;
	if (!limited.left)
		limited.left = OUTPUT_MIN + OUTPUT_GAIN * shard_reader__bytes(reader);
	code = options->format->run(out, reader, &own);
	err = fclose(out) || fflush(to) ? -EIO : 0;
	vec_free(&limited.line);
	return code == EXIT_DONE ? said(err, &own) : code;
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
		code = said(-errno, options);
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
	reader = shards_open(options->paths, options->path_cnt);
	if (!reader)
		return EXIT_FAILED;
	code = options->send.url ? export_otlp_url(reader, &options->send) : export_to(reader, options);
	say_damage(reader);
	shard_reader__free(reader);
	return code;
}

static bool is_shard_name(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && !strcmp(path + len - 4, ".wls");
}

static int take_format(void *options, const char *command, const char *arg)
{
	const struct export_format *format = format_of(arg);

	((struct export_options *)options)->format = format;
	return format ? 0
		      : usage_error(command,
				    "unknown format '%s' (perfetto, pprof, otlp, prometheus, openmetrics, folded, csv, "
				    "jsonl)",
				    arg);
}

#define O struct export_options
static const struct option_row rows[] = {
	OPTION_CALL("format", take_format, .has_arg = required_argument),
	OPTION_TEXT("output", 'o', O, out_path),
	OPTION_TEXT("table", 0, O, table),
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
	if (options.out_path && is_shard_name(options.out_path))
		return usage_error("export", "'%s' has the name of a shard, which would be overwritten",
				   options.out_path);
	if (!options.format)
		return usage_error("export", "which format? --format wants perfetto, pprof, otlp, prometheus, "
					     "openmetrics, folded, csv or jsonl");
	if (options.table && !options.format->by_table)
		return usage_error("export", "--table goes with csv and jsonl, not with %s", options.format->name);
	if (options.format->run == run_otlp && options.out_path && strstr(options.out_path, "://")) {
		options.send.url = options.out_path;
		wrong = otlp_url_check(options.send.url, options.send.insecure);
		if (wrong)
			return usage_error("export", "'%s': %s", options.send.url, wrong);
	} else if (options.send.headers_path || options.send.ca_path || options.send.insecure) {
		return usage_error("export", "--headers, --ca and --insecure go with --format otlp -o URL");
	}
	if (options.format->binary && !options.out_path && isatty(STDOUT_FILENO))
		return usage_error("export", "%s is binary: -o FILE, or a pipe", options.format->name);
	if (usage_recording("export", argc))
		return EXIT_USAGE;
	options.paths = (const char *const *)argv + optind;
	options.path_cnt = (size_t)(argc - optind);
	return export_run(&options);
}
