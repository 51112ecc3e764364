// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/stream_options.h"

#include "base/units.h"
#include "cmd/cmd.h"
#include "net/send/spool.h"
#include "net/send/upload_client.h"

#include <errno.h>

void stream_options_init(struct stream_options *options)
{
	*options = (struct stream_options){
		.spool = "/var/spool/whylate",
		.spool_max_bytes = 256 << 20,
		.spool_age_ns = 7 * 86400 * 1000000000ULL,
		.delay_ns = 2000000000ULL,
		.linger_ns = 10000000000ULL,
	};
}

static int take_sizes(struct stream_options *options, const char *command, int option, const char *arg)
{
	switch (option) {
	case OPT_STREAM_DELAY:
		if (usage_duration(command, "--stream-delay", arg, "2s, at least 1s", &options->delay_ns))
			return -EINVAL;
		return options->delay_ns < 1000000000ULL
			       ? usage_value(command, "--stream-delay", arg, "2s, at least 1s")
			       : 0;
	case OPT_STREAM_LINGER:
		return usage_duration(command, "--stream-linger", arg, "10s", &options->linger_ns);
	case OPT_SPOOL_MAX:
		if (units_bytes(arg, &options->spool_max_bytes) || options->spool_max_bytes < SPOOL_BYTES_MIN)
			return usage_value(command, "--spool-max", arg, "256M, at least 1M");
		return 0;
	case OPT_SPOOL_AGE:
		if (usage_duration(command, "--spool-age", arg, "7d, at least 1s", &options->spool_age_ns))
			return -EINVAL;
		return options->spool_age_ns < 1000000000ULL
			       ? usage_value(command, "--spool-age", arg, "7d, at least 1s")
			       : 0;
	}
	return -ENOENT;
}

int stream_options_take(struct stream_options *options, const char *command, int option, const char *arg)
{
	switch (option) {
	case OPT_STREAM:
		options->url = arg;
		return 0;
	case OPT_STREAM_CERT:
		options->cert = arg;
		return 0;
	case OPT_STREAM_KEY:
		options->key = arg;
		return 0;
	case OPT_STREAM_CA:
		options->ca = arg;
		return 0;
	case OPT_STREAM_TOKEN:
		options->token = arg;
		return 0;
	case OPT_STREAM_INSECURE:
		options->insecure = true;
		return 0;
	case OPT_SPOOL:
		options->spool = arg;
		return 0;
	}
	return take_sizes(options, command, option, arg);
}

int stream_options_check(const struct stream_options *options, const char *command)
{
	const char *wrong = options->url ? upload_url_check(options->url, options->insecure) : NULL;

	if (wrong)
		usage_error(command, "cannot stream to '%s': %s", options->url, wrong);
	else if (!options->url && (options->cert || options->key || options->ca || options->token))
		usage_error(command, "a certificate or token is of use with --stream URL only");
	else if (options->key && !options->cert)
		usage_error(command, "--stream-key '%s' goes with a certificate: --stream-cert FILE", options->key);
	else
		return 0;
	return -EINVAL;
}
