// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/record_options.h"

#include "base/units.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/limits.h"
#include "cmd/target_options.h"
#include "net/wire/protocol.h"
#include "session/values.h"

#include <errno.h>
#include <string.h>

/* A prime, so that it keeps step with nothing. */

enum {
	OPT_MODE = 1000,
	OPT_MEMORY,
	OPT_SCOPE,
	OPT_RATE,
	OPT_DUTY,
	OPT_TAIL,
	OPT_BASELINE,
	OPT_BUDGET,
	OPT_MAX_LOSS,
	OPT_MAX_MISSING,
	OPT_RING_SIZE,
	OPT_ROTATE_SIZE,
	OPT_ROTATE_AGE,
	OPT_NO_CHILDREN,
	OPT_NO_CMDLINE,
	OPT_NO_HW,
	OPT_HW_EVENTS,
	OPT_BTF,
	OPT_HOST,
	OPT_LIMITS,
	OPT_STACKS,
	OPT_STACKS_ALL,
	OPT_VALUES,
	OPT_VALUES_DEPTH,
	OPT_DEBUGINFO,
	OPT_TYPE_BY,
};

const struct option record_long_options[] = {
	{"symbols", required_argument, NULL, 's'},
	{"output", required_argument, NULL, 'o'},
	{"duration", required_argument, NULL, 'd'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"mode", required_argument, NULL, OPT_MODE},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"scope", required_argument, NULL, OPT_SCOPE},
	{"rate", required_argument, NULL, OPT_RATE},
	{"duty", required_argument, NULL, OPT_DUTY},
	{"tail", required_argument, NULL, OPT_TAIL},
	{"baseline", required_argument, NULL, OPT_BASELINE},
	{"budget", required_argument, NULL, OPT_BUDGET},
	{"max-loss", required_argument, NULL, OPT_MAX_LOSS},
	{"max-missing", required_argument, NULL, OPT_MAX_MISSING},
	{"ring-size", required_argument, NULL, OPT_RING_SIZE},
	{"rotate-size", required_argument, NULL, OPT_ROTATE_SIZE},
	{"rotate-age", required_argument, NULL, OPT_ROTATE_AGE},
	{"no-children", no_argument, NULL, OPT_NO_CHILDREN},
	{"no-cmdline", no_argument, NULL, OPT_NO_CMDLINE},
	{"no-hw", no_argument, NULL, OPT_NO_HW},
	{"hw-events", required_argument, NULL, OPT_HW_EVENTS},
	{"btf", required_argument, NULL, OPT_BTF},
	{"host", required_argument, NULL, OPT_HOST},
	{"limits", required_argument, NULL, OPT_LIMITS},
	{"stacks", optional_argument, NULL, OPT_STACKS},
	{"stacks-all", no_argument, NULL, OPT_STACKS_ALL},
	{"values", optional_argument, NULL, OPT_VALUES},
	{"values-depth", required_argument, NULL, OPT_VALUES_DEPTH},
	{"debuginfo", required_argument, NULL, OPT_DEBUGINFO},
	{"type-by", required_argument, NULL, OPT_TYPE_BY},
	TARGET_LONG_OPTIONS,
	STREAM_LONG_OPTIONS,
};
const size_t record_long_option_cnt = sizeof(record_long_options) / sizeof(record_long_options[0]);

const char record_options_help[] =
	"  -s, --symbols FILE|preset:NAME   what a request is, and what to time in it (man page: THE SYMBOL LIST)\n"
	"      --debuginfo DIR    debug files that name its functions are looked for there first\n"
	"      --type-by auto|none|http|redis|memcached|postgres|mysql|fastcgi|uwsgi\n"
	"                         types of requests by their first bytes (default auto: whichever protocol it is)\n"
	"  -o, --output DIR       where the shards go\n"
	"  -d, --duration TIME    30s, 5m, 250ms … (record: default until Ctrl-C)\n"
	"      --mode counters|trace   sums per interval, or who made it wait, through how many hops, too\n"
	"      --memory BYTES     trace: mostly for what waits for the end of its interval (default 64M, diagnose: "
	"32M)\n"
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
	"      --no-hw            no hardware counters\n"
	"      --hw-events SET    hardware or software\n"
	"      --btf FILE         types of the kernel, in place of its own BTF\n"
	"      --stream URL       send it to a collector, https://HOST:PORT, while it is recorded (man page: "
	"STREAMING)\n"
	"      --stream-cert FILE, --stream-key FILE, --stream-ca FILE, --stream-token FILE   who we are, whom we "
	"trust\n"
	"      --stream-delay TIME, --stream-linger TIME   until it is sent (2s); wait for the network at the end "
	"(10s)\n"
	"      --stream-insecure  allow http:// to other machines\n"
	"      --spool DIR        where it waits until the collector has it (default /var/spool/whylate)\n"
	"      --spool-max BYTES, --spool-age TIME   how much of it, how long (default 256M, 7d)\n"
	"      --host NAME        the name this recording goes by (default: the node's)\n"
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
		.types = true,
		.read_limits = limits_read,
	};
	stream_options_init(&options->stream);
}

static int take_mode(struct record_options *options, const char *command, const char *arg)
{
	if (strcmp(arg, "counters") && strcmp(arg, "trace")) {
		usage_error(command, "unknown mode '%s': there are counters and trace", arg);
		return -EINVAL;
	}
	options->trace = !strcmp(arg, "trace");
	options->mode_given = true;
	return 0;
}

static int take_limits(struct record_options *options, const char *command, int option, const char *arg)
{
	uint64_t number;

	switch (option) {
	case OPT_BUDGET:
		return usage_share(command, "--budget", arg, "3%", &options->budget);
	case OPT_MAX_LOSS:
		if (!strcmp(arg, "0") || !strcmp(arg, "0%")) {
			options->max_loss = 0;
			return 0;
		}
		return usage_share(command, "--max-loss", arg, "1%", &options->max_loss);
	case OPT_MAX_MISSING:
		if (!strcmp(arg, "0")) {
			options->max_missing = 0;
			return 0;
		}
		return units_number(arg, 1000, &options->max_missing) ? usage_value(command, "--max-missing", arg, "2")
								      : 0;
	case OPT_RING_SIZE:
		if (units_bytes(arg, &options->ring_sz) || options->ring_sz > 1 << 30)
			return usage_value(command, "--ring-size", arg, "4M");
		return 0;
	case OPT_MEMORY:
		if (units_bytes(arg, &options->memory) || options->memory < 1 << 20)
			return usage_value(command, "--memory", arg, "64M, at least 1M");
		return 0;
	case OPT_STACKS:
		if (arg && units_number(arg, CAPTURE_STACKS_HZ_MAX, &number))
			return usage_value(command, "--stacks", arg, "199, at most 10000");
		options->stacks_hz = arg ? number : STACKS_HZ_BY_BUDGET;
		return 0;
	case OPT_VALUES_DEPTH:
		if (strcmp(arg, "0") && units_number(arg, VALUES_DEPTH_MAX, &number))
			return usage_value(command, "--values-depth", arg, "3, at most 16");
		options->values_depth = strcmp(arg, "0") ? number : 0;
		return 0;
	case OPT_SCOPE:
		if (!strcmp(arg, "0")) {
			options->scope_max = 0;
			return 0;
		}
		return units_number(arg, 1000000, &options->scope_max) ? usage_value(command, "--scope", arg, "1000")
								       : 0;
	case OPT_ROTATE_SIZE:
		return units_bytes(arg, &options->rotate_bytes) ? usage_value(command, "--rotate-size", arg, "256M")
								: 0;
	case OPT_ROTATE_AGE:
		return usage_duration(command, "--rotate-age", arg, "1h", &options->rotate_age_ns);
	case OPT_BASELINE:
		if (units_number(arg, 100000000, &number))
			return usage_value(command, "--baseline", arg, "2000");
		options->baseline_per_s = number;
		return 0;
	}
	return -ENOENT;
}

static int take_hw(struct record_options *options, const char *command, const char *arg)
{
	if (strcmp(arg, "hardware") && strcmp(arg, "software"))
		return usage_value(command, "--hw-events", arg, "hardware or software");
	options->hw_software = !strcmp(arg, "software");
	return 0;
}

static int take_type_by(struct record_options *options, const char *command, const char *arg)
{
	options->types = strcmp(arg, "none") != 0;
	options->type_by = request_protocol_by_name(arg);
	if (!options->types || options->type_by || !strcmp(arg, "auto"))
		return 0;
	return usage_value(command, "--type-by", arg,
			   "auto, none, http, redis, memcached, postgres, mysql, fastcgi or uwsgi");
}

int record_options_take(struct record_options *options, const char *command, int option, const char *arg)
{
	switch (option) {
	case 's':
		options->symbols = arg;
		return 0;
	case 'o':
		options->dir = arg;
		return 0;
	case 'd':
		return usage_duration(command, "-d", arg, "30s, more than 0", &options->duration_ns);
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case OPT_MODE:
		return take_mode(options, command, arg);
	case OPT_RATE:
		return usage_share(command, "--rate", arg, "1%", &options->rate);
	case OPT_DUTY:
		options->duty = 0;
		if (!strcmp(arg, "auto"))
			return 0;
		return usage_share(command, "--duty", arg, "10%, or auto", &options->duty);
	case OPT_TAIL:
		if (!strcmp(arg, "none")) {
			options->tail = 0;
			return 0;
		}
		return units_percentile(arg, &options->tail) ? usage_value(command, "--tail", arg, "p99, or none") : 0;
	case OPT_NO_CHILDREN:
		options->children = false;
		return 0;
	case OPT_NO_CMDLINE:
		options->no_cmdline = true;
		return 0;
	case OPT_NO_HW:
		options->hw = false;
		return 0;
	case OPT_STACKS_ALL:
		options->stacks_all = true;
		return 0;
	case OPT_VALUES:
		options->values = true;
		options->values_glob = arg;
		if (!options->stacks_hz)
			options->stacks_hz = STACKS_HZ_BY_BUDGET;
		return 0;
	case OPT_HW_EVENTS:
		return take_hw(options, command, arg);
	case OPT_BTF:
		options->btf_path = arg;
		return 0;
	case OPT_HOST:
		if (!protocol_host_is_valid(arg))
			return usage_value(command, "--host", arg,
					   "web-1.example.org, of letters, digits, '.', '_' and '-'");
		options->host = arg;
		return 0;
	case OPT_LIMITS:
		options->limits = arg;
		return 0;
	case OPT_TYPE_BY:
		return take_type_by(options, command, arg);
	case OPT_DEBUGINFO:
		options->debuginfo_dir = arg;
		return 0;
	}
	if (option >= OPT_STREAM)
		return stream_options_take(&options->stream, command, option, arg);
	return take_limits(options, command, option, arg);
}

int record_options_check(const struct record_options *options, const char *command)
{
	if (options->stacks_all && !options->stacks_hz) {
		usage_error(command, "--stacks-all goes with --stacks");
		return -EINVAL;
	}
	return stream_options_check(&options->stream, command);
}
