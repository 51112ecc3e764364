// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/streaming.h"

#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define SECOND_NS 1000000000ULL
/* Two polls: for what comes late to being asked. */
#define SPARE_NS 200000000ULL

int recording_stream_open(struct recording *recording)
{
	const struct stream_options *options = &recording->options->stream;
	char host[SHARD_HOST_MAX + 1];
	struct stream_opts opts = {
		.upload =
			{
				.url = recording_uploads(recording) ? options->url : NULL,
				.host = recording_host(recording, host),
				.cert_path = options->cert,
				.key_path = options->key,
				.ca_path = options->ca,
				.token_path = options->token,
			},
		.spool_dir = options->spool,
		.spool_max_bytes = options->spool_max_bytes,
		.spool_max_age_ns = options->spool_age_ns,
	};

	if (!options->url)
		return 0;
	recording->output.stream = stream__new(&opts);
	if (recording->output.stream)
		return 0;
	if (!recording->options->dir)
		return -errno;
	log_warn("the recording goes on in '%s' alone", recording->options->dir);
	return 0;
}

bool recording_uploads(const struct recording *recording)
{
	const char *url = recording->options->stream.url;

	return url && strcmp(url, STREAM_SPOOL);
}

const char *recording_stream_name(const struct recording *recording)
{
	const struct stream_options *options = &recording->options->stream;

	return recording_uploads(recording) ? options->url : options->spool;
}

bool recording_keeps_files(const struct recording *recording)
{
	return recording->options->dir || !recording->output.stream;
}

int recording_stream_begin(struct recording *recording, struct shard_writer_opts *opts)
{
	int err;

	if (!recording->output.stream)
		return 0;
	opts->split_baseline = true;
	opts->sink = stream__put;
	opts->sink_owner = recording->output.stream;
	err = stream__begin(recording->output.stream, opts->host, opts->session_id);
	if (!err || !opts->dir)
		return err;
	log_warn("the recording goes on in '%s' alone", opts->dir);
	opts->sink = NULL;
	return 0;
}

void recording_stream_start(struct recording *recording)
{
	if (recording->output.stream)
		stream__publish(recording->output.stream);
}

void recording_stream_discard(struct recording *recording)
{
	if (recording->output.stream)
		stream__abandon(recording->output.stream);
}

void recording_stream_tick(struct recording *recording)
{
	if (recording->output.stream)
		stream__tick(recording->output.stream);
}

/* Asked with every poll; a row is at most `delay` old when it leaves. */
bool recording_flush_is_due(struct recording *recording)
{
	uint64_t now_ts = monotonic_ns();
	uint64_t period_ns = recording->output.stream ? recording->options->stream.delay_ns - SPARE_NS : SECOND_NS;

	if (now_ts - recording->clock.flushed_ts < period_ns)
		return false;
	recording->clock.flushed_ts = now_ts;
	return true;
}

bool recording_stream_over_limits(const struct recording *recording)
{
	struct stream_stats stats;

	if (!recording->output.stream)
		return false;
	stream__stats(recording->output.stream, &stats);
	return stats.lost_rows > recording->options->max_loss * stats.emitted_rows;
}

void recording_stream_close(struct recording *recording)
{
	const struct record_options *options = recording->options;
	double seconds = (recording->clock.end_ts - recording->clock.begin_ts) / 1e9;
	struct stream_stats stats;

	if (!recording->output.stream)
		return;
	stream__finish(recording->output.stream, options->stream.linger_ns);
	stream__stats(recording->output.stream, &stats);
	if (stats.waiting_bytes)
		log_warn("%" PRIu64 " KiB are not sent: they wait in '%s' for the next recording with --stream",
			 stats.waiting_bytes / 1024, options->stream.spool);
	if (options->quiet)
		return;
	log_info("streamed: %" PRIu64 " blocks, %" PRIu64 " bytes %s %s; of %" PRIu64 " kept intervals %" PRIu64
		 " were dropped; uploader %.2f %% of a CPU",
		 stats.sent_blocks, stats.sent_bytes, recording_uploads(recording) ? "to" : "from",
		 recording_stream_name(recording), stats.emitted_rows, stats.lost_rows, stats.cpu_ns / 1e7 / seconds);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t hangups;

static void on_hangup(int signal_no)
{
	(void)signal_no;
	hangups = 1;
}

int recording_limits_open(struct recording *recording)
{
	struct sigaction action = {.sa_handler = on_hangup};
	int err;

	/* A copy of our own, which may change. */
	recording->own_options = *recording->options;
	recording->options = &recording->own_options;
	if (!recording->options->limits)
		return 0;
	err = recording->options->read_limits(recording->options->limits, &recording->own_options);
	if (!err)
		sigaction(SIGHUP, &action, NULL);
	return err;
}

int recording_limits_poll(struct recording *recording)
{
	struct record_options *options = &recording->own_options;
	const struct stream_options *stream = &options->stream;

	if (!hangups)
		return 0;
	hangups = 0;
	if (options->read_limits(options->limits, options)) {
		log_warn("the limits stay as they were");
		return 0;
	}
	recording_set_rate(recording, options->rate);
	retention__set(recording->retention, options->tail, options->baseline_per_s);
	recording_govern_anew(recording);
	if (recording->output.stream)
		stream__set_limits(recording->output.stream, stream->spool_max_bytes, stream->spool_age_ns);
	log_info("limits read again from '%s': rate %g %%, tail %g, baseline %g/s, budget %g %%", options->limits,
		 100 * options->rate, options->tail, options->baseline_per_s, 100 * options->budget);
	return recording_write_limits(recording);
}
