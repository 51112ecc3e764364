// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/export_otlp.h"

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/user_file.h"
#include "view/export_otlp.h"
#include "view/otlp_follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define PERIOD_NS SECOND_NS
/* A recording writes each second. */
#define SETTLE_NS (3 * SECOND_NS)
#define BEHIND_NS (600 * SECOND_NS)

static volatile sig_atomic_t stop_signal;

static void on_signal(int signal_no)
{
	stop_signal = signal_no;
}

static int put_url(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	return otlp_send__post(owner, bytes, sz, span_cnt);
}

static struct otlp_send *open_send(const struct otlp_send_opts *opts)
{
	const char *what;
	struct otlp_send *send = otlp_send__new(opts, &what);

	if (!send)
		log_error("cannot use '%s': %s", what,
			  errno == EBADMSG ? "it wants lines NAME: VALUE" : user_file_why(-errno));
	return send;
}

int export_otlp_url(struct shard_reader *reader, bool metrics, const struct otlp_send_opts *opts)
{
	const char *items = metrics ? "data points" : "spans";
	const struct otlp_send_stats *stats;
	struct otlp_send *send = open_send(opts);
	int err, code;

	if (!send)
		return EXIT_FAILED;
	err = export_otlp_all(reader, metrics, put_url, send);
	stats = otlp_send__stats(send);
	if (err == -EHOSTDOWN)
		log_error("'%s' does not take %s: %s", opts->url, items, stats->why);
	else if (err == -ENOENT)
		log_error("there is no request to export");
	else if (err)
		log_error("the export to '%s' failed: %s", opts->url, strerror(-err));
	log_info("%" PRIu64 " %s in %" PRIu64 " requests sent to %s, after %" PRIu64 " retries", stats->spans, items,
		 stats->requests, opts->url, stats->retries);
	code = err ? EXIT_FAILED : EXIT_DONE;
	if (stats->dropped_spans + stats->untaken_spans) {
		log_warn("%" PRIu64 " %s were dropped: %s", stats->dropped_spans + stats->untaken_spans, items,
			 stats->why);
		code = err ? EXIT_FAILED : EXIT_LIMITS;
	}
	otlp_send__free(send);
	return code;
}

/* Says it when nobody takes spans, and when that is over; and what no time helps against. */
static bool goes_on(int err, bool *is_away, const struct otlp_send_opts *opts, const struct otlp_send_stats *stats)
{
	if (err && err != -EHOSTDOWN) {
		log_error("the export to '%s' failed: %s", opts->url, strerror(-err));
		return false;
	}
	if (err && !*is_away)
		log_warn("'%s' does not take spans: %s; they wait, those that wait for ten minutes are dropped",
			 opts->url, stats->why);
	else if (!err && *is_away)
		log_info("'%s' takes spans again", opts->url);
	*is_away = err;
	return true;
}

static int say_live(const struct otlp_follow *follow, const struct otlp_send *send, const struct otlp_send_opts *opts)
{
	const struct otlp_follow_stats *requests = otlp_follow__stats(follow);
	const struct otlp_send_stats *spans = otlp_send__stats(send);
	uint64_t dropped = requests->dropped_requests + requests->waiting_requests;

	log_info("%" PRIu64 " requests, %" PRIu64 " spans, in %" PRIu64 " messages sent to %s, after %" PRIu64
		 " retries",
		 requests->requests, spans->spans, spans->requests, opts->url, spans->retries);
	if (requests->without_clock)
		log_warn("%" PRIu64 " requests are not exported: nothing says what time it was in their recording",
			 requests->without_clock);
	if (dropped)
		log_warn("%" PRIu64 " requests were dropped: nobody took them for ten minutes, or until the end",
			 dropped);
	if (spans->dropped_spans)
		log_warn("%" PRIu64 " spans were dropped: %s", spans->dropped_spans, spans->why);
	return dropped || spans->dropped_spans ? EXIT_LIMITS : EXIT_DONE;
}

int export_otlp_live(const char *const *paths, size_t path_cnt, const struct otlp_send_opts *opts)
{
	const struct otlp_follow_opts follow_opts = {paths, path_cnt, SETTLE_NS, BEHIND_NS};
	struct otlp_follow *follow = otlp_follow__new(&follow_opts);
	struct otlp_send *send = follow ? open_send(opts) : NULL;
	bool is_away = false, is_last = false;
	int code = EXIT_FAILED, err = 0;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGPIPE, SIG_IGN);
	while (send && !is_last) {
		is_last = stop_signal || otlp_follow__has_ended(follow);
		err = otlp_follow__turn(follow, is_last, put_url, send);
		if (!goes_on(err, &is_away, opts, otlp_send__stats(send)))
			break;
		if (!is_last)
			sleep_ns(PERIOD_NS);
	}
	if (send && is_last)
		code = say_live(follow, send, opts);
	otlp_send__free(send);
	otlp_follow__free(follow);
	return code;
}
