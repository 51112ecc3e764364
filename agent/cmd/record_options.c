// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/record_options.h"

#include "base/units.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/limits.h"
#include "net/send/collectors.h"
#include "net/send/spool.h"
#include "net/send/upload_client.h"
#include "net/wire/protocol.h"
#include "session/values.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS 1000000000ULL

static const char help[] =
	"  -s, --symbols FILE|preset:NAME   what a request is, and what to time in it (man page: THE SYMBOL LIST)\n"
	"      --debuginfo DIR    debug files that name its functions are looked for there first\n"
	"      --type-by auto|none|http|redis|memcached|postgres|mysql|fastcgi|uwsgi|nats\n"
	"                         types of requests by their first bytes (default auto: whichever protocol it is)\n"
	"  -o, --output DIR       where the shards go\n"
	"  -d, --duration TIME    30s, 5m, 250ms … (record: default until Ctrl-C)\n"
	"      --mode counters|trace   sums per interval, or who made it wait, through how many hops, too\n"
	"      --memory BYTES     trace: mostly for what waits for the end of its interval (default 64M, diagnose: "
	"20M)\n"
	"      --scope N          trace: follow at most so many threads outside the target (default 1000)\n"
	"      --stacks[=HZ]      sample stacks of threads at work for selected intervals, and of whatever delays "
	"them\n"
	"                         (default: as often as the budget allows, up to 997 a second)\n"
	"      --stacks-all       … and of the target's other threads\n"
	"      --values[=GLOB]    read variables at the stacks' frames: of source files or functions that the glob "
	"fits\n"
	"      --values-depth N   … and in so many callers (default 3)\n"
	"      --rate SHARE       intervals selected in the kernel (default 100%)\n"
	"      --duty SHARE|auto  of the time in which hooks are attached (default auto: that of a --rate up to 5%, or "
	"100%)\n"
	"      --tail PCT|none    keep all intervals above this running percentile (default p99)\n"
	"      --baseline N       … and at most N others per second, weighted (default 2000, diagnose: 500)\n"
	"      --budget SHARE     of the target's CPU time that tracing may cost (default 3%)\n"
	"      --max-loss SHARE   exit with 3 beyond it (default 1%)\n"
	"      --max-missing N    exit with 3 if more hooks are missing\n"
	"      --ring-size BYTES  per CPU (default 4M; trace and diagnose: 2M)\n"
	"      --rotate-size BYTES, --rotate-age TIME   begin a new shard (default 256M, 1h)\n"
	"      --no-children      do not follow the target's children\n"
	"      --no-cmdline       do not store the target's arguments\n"
	"      --no-goroutines    requests of Go programs by thread, not by goroutine\n"
	"      --no-hw            no hardware counters\n"
	"      --hw-events SET    hardware or software\n"
	"      --btf FILE         types of the kernel, in place of its own BTF\n"
	"      --stream URL       send it to a collector, https://HOST:PORT, while it is recorded (man page: "
	"STREAMING); spool: `whylate upload` sends it\n"
	"      --stream-cert FILE, --stream-key FILE, --stream-ca FILE, --stream-token FILE   who we are, whom we "
	"trust\n"
	"      --stream-delay TIME, --stream-linger TIME   until it is sent (2s); wait for the network at the end "
	"(10s)\n"
	"      --stream-insecure  allow http:// to other machines\n"
	"      --spool DIR        where it waits until the collector has it (default /var/spool/whylate)\n"
	"      --spool-max BYTES, --spool-age TIME   how much of it, how long (default 256M, 7d)\n"
	"      --host NAME        the name this recording goes by (default: the node's)\n"
	"      --label KEY=VALUE  what to say of this host, such as zone=eu-1, for `whylate fleet by label.KEY`\n"
	"      --metrics ADDR     GET /metrics there, for Prometheus, while it runs (man page: METRICS)\n"
	"      --metrics-insecure   … also on another address than loopback\n"
	"      --limits FILE      rate, tail, baseline, budget …: read now, and again on SIGHUP\n"
	"  -q, --quiet            no progress, no summary\n"
	"  -v, --verbose          what libbpf and the kernel say\n";

void record_options_init(struct record_options *options)
{
	*options = (struct record_options){
		.rate = 1,
		.tail = 0.99,
		.baseline_per_s = 2000,
		.budget = 0.03,
		.max_loss = 0.01,
		.max_missing = UINT64_MAX,
		.memory = 64 << 20,
		.scope_max = 1000,
		.values_depth = VALUES_DEPTH_DEFAULT,
		.children = true,
		.hw = true,
		.goroutines = true,
		.types = true,
		.read_limits = limits_read,
		.stream =
			{
				.spool = "/var/spool/whylate",
				.spool_max_bytes = 256 << 20,
				.spool_age_ns = 7 * 86400 * SECOND_NS,
				.delay_ns = 2 * SECOND_NS,
				.linger_ns = 10 * SECOND_NS,
			},
	};
}

static int take_mode(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	if (strcmp(arg, "counters") && strcmp(arg, "trace"))
		return usage_error(command, "unknown mode '%s': there are counters and trace", arg);
	options->trace = !strcmp(arg, "trace");
	options->mode_given = true;
	return 0;
}

static int take_duty(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	options->duty = 0;
	return strcmp(arg, "auto") ? usage_share(command, "--duty", arg, "10%, or auto", &options->duty) : 0;
}

static int take_tail(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	if (!strcmp(arg, "none"))
		options->tail = 0;
	else if (units_percentile(arg, &options->tail))
		return usage_value(command, "--tail", arg, "p99, or none");
	return 0;
}

static int take_baseline(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;
	uint64_t number;

	if (units_number(arg, 100000000, &number))
		return usage_value(command, "--baseline", arg, "2000");
	options->baseline_per_s = (double)number;
	return 0;
}

static int take_stacks(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;
	uint64_t number = STACKS_HZ_BY_BUDGET;

	if (arg && units_number(arg, CAPTURE_STACKS_HZ_MAX, &number))
		return usage_value(command, "--stacks", arg, "199, at most 10000");
	options->stacks_hz = (uint32_t)number;
	return 0;
}

static int take_values(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	(void)command;
	options->values = true;
	options->values_glob = arg;
	if (!options->stacks_hz)
		options->stacks_hz = STACKS_HZ_BY_BUDGET;
	return 0;
}

static int take_hw(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	if (strcmp(arg, "hardware") && strcmp(arg, "software"))
		return usage_value(command, "--hw-events", arg, "hardware or software");
	options->hw_software = !strcmp(arg, "software");
	return 0;
}

static int take_host(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	if (!protocol_host_is_valid(arg))
		return usage_value(command, "--host", arg, "web-1.example.org, of letters, digits, '.', '_' and '-'");
	options->host = arg;
	return 0;
}

/* A key of at most 32 lower-case letters, digits, '.', '_' and '-', and a value of at most 128 bytes, all printable. */
static bool label_is_valid(const char *label)
{
	size_t key_sz = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789._-");
	const unsigned char *at = (const unsigned char *)label + key_sz + 1;

	if (!key_sz || key_sz > 32 || label[key_sz] != '=' || !*at || strlen(label) > key_sz + 1 + 128)
		return false;
	while (*at >= ' ' && *at != 0x7f)
		at++;
	return !*at;
}

static int take_label(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	if (!label_is_valid(arg))
		return usage_value(command, "--label", arg,
				   "zone=eu-1: a key of letters, digits, '.', '_' and '-', then its value");
	if (options->label_cnt == RECORD_LABELS_MAX)
		return usage_error(command, "more than %d times --label", RECORD_LABELS_MAX);
	options->labels[options->label_cnt++] = arg;
	return 0;
}

static int take_type_by(void *ctx, const char *command, const char *arg)
{
	struct record_options *options = ctx;

	options->types = strcmp(arg, "none") != 0;
	options->type_by = request_protocol_by_name(arg);
	if (!options->types || options->type_by || !strcmp(arg, "auto"))
		return 0;
	return usage_value(command, "--type-by", arg,
			   "auto, none, http, redis, memcached, postgres, mysql, fastcgi, uwsgi or nats");
}

static const char upload_help[] =
	"Usage: whylate upload --stream URL [--spool DIR]\n"
	"Sends what recordings with `--stream spool` put into the spool.  Needs no privilege: root becomes its owner.\n"
	"      --stream URL       a collector, https://HOST:PORT, or several behind commas\n"
	"      --stream-cert FILE, --stream-key FILE, --stream-ca FILE, --stream-token FILE   who we are, whom we "
	"trust\n"
	"      --stream-insecure  allow http:// to other machines\n"
	"      --spool DIR        (default /var/spool/whylate)\n"
	"      --host NAME        by which it chooses among collectors (default: the node's)\n"
	"  -v, --verbose\n";

#define O struct record_options
#define UPLOAD_ROWS                                                                                            \
	OPTION_CALL("host", take_host, .has_arg = required_argument), OPTION_TEXT("stream", 0, O, stream.url), \
		OPTION_TEXT("stream-cert", 0, O, stream.cert), OPTION_TEXT("stream-key", 0, O, stream.key),    \
		OPTION_TEXT("stream-ca", 0, O, stream.ca), OPTION_TEXT("stream-token", 0, O, stream.token),    \
		OPTION_FLAG("stream-insecure", 0, O, stream.insecure), OPTION_TEXT("spool", 0, O, stream.spool)

static const struct option_row upload_rows[] = {UPLOAD_ROWS, OPTION_VERBOSE};
static const struct option_row rows[] = {
	UPLOAD_ROWS,
	OPTION_CALL("label", take_label, .has_arg = required_argument),
	OPTION_TEXT("symbols", 's', O, symbols),
	OPTION_TEXT("output", 'o', O, dir),
	OPTION_DURATION("duration", 'd', O, duration_ns, .example = "30s, more than 0"),
	OPTION_FLAG("quiet", 'q', O, quiet),
	OPTION_FLAG("verbose", 'v', O, verbose),
	OPTION_CALL("mode", take_mode, .has_arg = required_argument),
	OPTION_BYTES("memory", 0, O, memory, .example = "64M, at least 1M", .min = 1 << 20),
	OPTION_NUMBER("scope", 0, O, scope_max, .example = "1000", .max = 1000000, .zero = true),
	OPTION_SHARE("rate", 0, O, rate, .example = "1%"),
	OPTION_CALL("duty", take_duty, .has_arg = required_argument),
	OPTION_CALL("tail", take_tail, .has_arg = required_argument),
	OPTION_CALL("baseline", take_baseline, .has_arg = required_argument),
	OPTION_SHARE("budget", 0, O, budget, .example = "3%"),
	OPTION_SHARE("max-loss", 0, O, max_loss, .example = "1%", .zero = true),
	OPTION_NUMBER("max-missing", 0, O, max_missing, .example = "2", .max = 1000, .zero = true),
	OPTION_BYTES("ring-size", 0, O, ring_sz, .example = "4M", .max = 1 << 30),
	OPTION_BYTES("rotate-size", 0, O, rotate_bytes, .example = "256M"),
	OPTION_DURATION("rotate-age", 0, O, rotate_age_ns, .example = "1h"),
	OPTION_CLEAR("no-children", 0, O, children),
	OPTION_FLAG("no-cmdline", 0, O, no_cmdline),
	OPTION_CLEAR("no-goroutines", 0, O, goroutines),
	OPTION_CLEAR("no-hw", 0, O, hw),
	OPTION_CALL("hw-events", take_hw, .has_arg = required_argument),
	OPTION_TEXT("btf", 0, O, btf_path),
	OPTION_TEXT("metrics", 0, O, metrics),
	OPTION_FLAG("metrics-insecure", 0, O, metrics_insecure),
	OPTION_TEXT("limits", 0, O, limits),
	OPTION_CALL("stacks", take_stacks, .has_arg = optional_argument),
	OPTION_FLAG("stacks-all", 0, O, stacks_all),
	OPTION_CALL("values", take_values, .has_arg = optional_argument),
	OPTION_NUMBER("values-depth", 0, O, values_depth, .example = "3, at most 16", .max = VALUES_DEPTH_MAX,
		      .zero = true),
	OPTION_TEXT("debuginfo", 0, O, debuginfo_dir),
	OPTION_CALL("type-by", take_type_by, .has_arg = required_argument),
	OPTION_DURATION("stream-delay", 0, O, stream.delay_ns, .example = "2s, at least 1s", .min = SECOND_NS),
	OPTION_DURATION("stream-linger", 0, O, stream.linger_ns, .example = "10s"),
	OPTION_BYTES("spool-max", 0, O, stream.spool_max_bytes, .example = "256M, at least 1M", .min = SPOOL_BYTES_MIN),
	OPTION_DURATION("spool-age", 0, O, stream.spool_age_ns, .example = "7d, at least 1s", .min = SECOND_NS),
};
#undef O

struct option_group record_options_group(struct record_options *options)
{
	return (struct option_group)OPTION_GROUP(rows, options, help);
}

struct option_group upload_options_group(struct record_options *options)
{
	return (struct option_group)OPTION_GROUP(upload_rows, options, upload_help);
}

static int check_stream(const struct stream_options *options, const char *command)
{
	struct collectors collectors;
	const char *wrong = NULL;
	int code = EXIT_DONE, err;

	if (!options->url || !strcmp(options->url, STREAM_SPOOL))
		return options->cert || options->key || options->ca || options->token
			       ? usage_error(command, "a certificate or token is of use with --stream URL only")
			       : EXIT_DONE;
	err = collectors__parse(&collectors, options->url, "");
	if (err)
		return usage_error(command, "cannot stream to '%s': %s", options->url,
				   err == -E2BIG ? "too many collectors" : "a URL is missing between the commas");
	for (size_t i = 0; !code && i < collectors.cnt; i++) {
		wrong = upload_url_check(collectors.urls[i], options->insecure);
		if (wrong)
			code = usage_error(command, "cannot stream to '%s': %s", collectors.urls[i], wrong);
	}
	collectors__free(&collectors);
	if (code)
		return code;
	if (options->key && !options->cert)
		return usage_error(command, "--stream-key '%s' goes with a certificate: --stream-cert FILE",
				   options->key);
	return EXIT_DONE;
}

int record_options_check(const struct record_options *options, const char *command)
{
	if (options->stacks_all && !options->stacks_hz)
		return usage_error(command, "--stacks-all goes with --stacks");
	if (options->metrics_insecure && !options->metrics)
		return usage_error(command, "--metrics-insecure goes with --metrics");
	return check_stream(&options->stream, command);
}

int upload_options_check(const struct record_options *options)
{
	if (!options->stream.url || !strcmp(options->stream.url, STREAM_SPOOL))
		return usage_error("upload", "where to? --stream wants a collector, https://HOST:PORT");
	return check_stream(&options->stream, "upload");
}
