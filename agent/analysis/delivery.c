// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/delivery.h"

#include "analysis/causes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SHARE_MIN 0.05

/* The mean of the longest ones, of which there are `limit`; the shortest of them is the quantile. */
static double longest_mean(const struct dataset *dataset, double limit, double *quantile_ns)
{
	double left = limit, sum = 0;

	*quantile_ns = 0;
	for (size_t i = dataset->held_cnt; i-- > 0 && left > 0;) {
		double cnt = fmin(left, (double)dataset->held[i].cnt);

		sum += cnt * (double)dataset->held[i].ns;
		left -= cnt;
		*quantile_ns = left > 0 ? 0 : (double)dataset->held[i].ns;
	}
	return limit > 0 ? sum / limit : 0;
}

static void summarize(struct report_delivery *delivery, const struct dataset *dataset, double tail)
{
	double sum = 0, unused;

	*delivery = (struct report_delivery){.known = true, .replies = dataset->replies};
	for (size_t i = 0; i < dataset->held_cnt; i++) {
		delivery->held += dataset->held[i].cnt;
		sum += (double)dataset->held[i].cnt * (double)dataset->held[i].ns;
	}
	/* A reply of several windows, or of an unselected interval, may be held and not counted as a reply. */
	if (delivery->replies < delivery->held)
		delivery->replies = delivery->held;
	delivery->by_window = dataset->held_by_window < delivery->held ? dataset->held_by_window : delivery->held;
	delivery->resent = dataset->resent < delivery->held ? dataset->resent : delivery->held;
	delivery->resent_known = dataset->resent_known;
	delivery->mean_ns = sum / (double)delivery->replies;
	delivery->held_mean_ns = delivery->held ? sum / (double)delivery->held : NAN;
	longest_mean(dataset, 0.01 * (double)delivery->replies, &delivery->p99_ns);
	delivery->late_ns = longest_mean(dataset, (1 - tail) * (double)delivery->replies, &unused);
}

enum reason { BY_NAGLE, BY_WINDOW, BY_LOSS, REASON_CNT };

static const struct {
	const char *what; /* of replies in per cent, and milliseconds */
	const char *look_at;
} reasons[REASON_CNT] = {
	[BY_NAGLE] = {"after send(), the last bytes of %.2g %% of the replies stay in the socket for %.3g ms: "
		      "they wait for the client's delayed acknowledgement (Nagle's algorithm)",
		      "TCP_NODELAY, or one write for the whole reply, ends it"},
	[BY_WINDOW] = {"after send(), the last bytes of %.2g %% of the replies stay in the socket for %.3g ms: "
		       "the client's window is closed, it does not read",
		       NULL},
	[BY_LOSS] = {"after send(), a segment of %.2g %% of the replies is lost on its way to the client, and sent "
		     "again %.3g ms later",
		     "errors and drops of the links and queues in between tell more (ip -s link, nstat)"},
};

/* What keeps most of the replies that were held from the client. */
static enum reason reason_of(const struct report_delivery *delivery)
{
	uint64_t nagle = delivery->held - delivery->by_window;

	nagle = nagle > delivery->resent ? nagle - delivery->resent : 0;
	if (delivery->resent > delivery->by_window && delivery->resent > nagle)
		return BY_LOSS;
	return delivery->by_window > nagle ? BY_WINDOW : BY_NAGLE;
}

static int describe(struct cause *cause, const struct report_delivery *delivery, struct arena *arena)
{
	enum reason reason = reason_of(delivery);
	const char *look_at = reasons[reason].look_at;

	cause->what =
		arena__printf(arena, reasons[reason].what, 100 * (double)delivery->held / (double)delivery->replies,
			      delivery->held_mean_ns / 1e6);
	cause->evidence = arena__alloc(arena, CAUSE_EVIDENCE_MAX, sizeof(*cause->evidence));
	if (!cause->what || !cause->evidence)
		return -ENOMEM;
	return cause__add_line(
		cause, arena__printf(arena, "beside the latency, which ends with the first send() of the reply%s%s",
				     look_at ? "; " : "", look_at ? look_at : ""));
}

/* The causes are the arena's: they move to where there is one place more. */
static int insert(struct report *report, struct cause *cause)
{
	struct cause *causes = arena__alloc(report->arena, report->cause_cnt + 1, sizeof(*causes));
	size_t at = 0;

	if (!causes)
		return -ENOMEM;
	while (at < report->cause_cnt && report->causes[at].share * (1 - cause->share) >= cause->share)
		at++;
	if (at)
		memcpy(causes, report->causes, at * sizeof(*causes));
	causes[at] = *cause;
	if (at < report->cause_cnt)
		memcpy(causes + at + 1, report->causes + at, (report->cause_cnt - at) * sizeof(*causes));
	report->causes = causes;
	report->cause_cnt++;
	for (size_t i = 0; i < report->cause_cnt; i++)
		causes[i].rank = (uint32_t)i + 1;
	return 0;
}

int delivery_report(struct report *report, const struct report_opts *opts)
{
	const struct dataset *dataset = report->dataset;
	struct cause_way way = {.category = WL_CATEGORY_IO_NET, .wait = WL_CATEGORY_IO_NET};
	struct cause cause = {
		.category = WL_CATEGORY_IO_NET,
		.variance_share = NAN,
		.culprit_pid = -1,
		.culprit_tid = -1,
		.has_root = true,
		.root = {.kind = ROOT_PEER, .object = ROOT_CLIENT},
		.way_cnt = 1,
		.gain = GAIN_UNKNOWN,
	};
	double error, tail_ns;

	if (!dataset->replies)
		return 0;
	summarize(&report->delivery, dataset, opts->tail);
	if (!report->roots || opts->keep_rows || !report->delivery.held)
		return 0;
	tail_ns = fmax(report->roots->tail_ns, 0);
	cause.share = report->delivery.late_ns / (report->delivery.late_ns + tail_ns);
	if (!(cause.share >= SHARE_MIN))
		return 0;
	error = 1.96 * cause.share * (1 - cause.share) / sqrt((double)report->delivery.held);
	cause.share_ci = (struct ci){fmax(cause.share - error, 0), fmin(cause.share + error, 1)};
	/* Of the latency it is nothing: late_ns and typical_ns stay 0, and those of all causes still sum to the tail.
	 */
	way.share = cause.share;
	cause.ways = arena__alloc(report->arena, 1, sizeof(*cause.ways));
	if (!cause.ways || describe(&cause, &report->delivery, report->arena))
		return -ENOMEM;
	cause.ways[0] = way;
	return insert(report, &cause);
}
