// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/causes.h"

#include "analysis/findings.h"
#include "base/names.h"
#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CAUSES_MAX    20
#define BOOTSTRAP_CNT 200
#define CALL_PATH_SZ  2048
#define LATE_MAX      10000 /* the slowest of an hour */
/* Requests of an hour may end behind it, and wait for what was there before it. */
#define AROUND_NS (120 * UINT64_C(1000000000))

static const char *const kinds[ROOT_KIND_CNT] = {"code", "disk", "peer", "timer", "quota", "full_machine", "unknown"};

/* "outermost;…;innermost" */
static void join_path(const struct cause_root *root, char *text, size_t sz)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < root->call_path_cnt && used < sz; i++)
		used += (size_t)snprintf(text + used, sz - used, "%s%s", i ? ";" : "", root->call_path[i]);
}

static bool is_late(const struct report *report, size_t row)
{
	return (double)report->dataset->latency_ns[row] >= report->tail_threshold_ns;
}

/* Of the request, how much is that cause's; 0 also where it is not known: of one whose chain was not recorded. */
static uint64_t part_ns(const struct report *report, const struct cause *cause, size_t row)
{
	return cause->row_ns && (!report->ranked || report->ranked[row]) ? cause->row_ns[row] : 0;
}

/* The late request that it held up most; where that is not known of any, the slowest. */
static uint64_t late_sid(const struct report *report, const struct cause *cause)
{
	const struct dataset *dataset = report->dataset;
	size_t most = 0;

	for (size_t row = 1; row < dataset->row_cnt; row++) {
		uint64_t ns = is_late(report, row) ? part_ns(report, cause, row) : 0;
		uint64_t most_ns = is_late(report, most) ? part_ns(report, cause, most) : 0;

		if (ns > most_ns || (ns == most_ns && dataset->latency_ns[row] > dataset->latency_ns[most]))
			most = row;
	}
	return dataset->row_cnt ? dataset->sid[most] : 0;
}

static int put_causes(const struct report *report, const struct project_sink *sink)
{
	double late = report->latency.count * (1 - report->tail);
	char call_path[CALL_PATH_SZ];
	int err = sink->cause(sink->owner, &(struct project_cause){.tail_weight = late});

	for (size_t i = 0; !err && i < report->cause_cnt && i < CAUSES_MAX; i++) {
		const struct cause *from = &report->causes[i];
		const char *innermost = from->has_root && from->root.call_path_cnt
						? from->root.call_path[from->root.call_path_cnt - 1]
						: NULL;
		struct project_cause cause = {
			.rank = from->rank,
			.category = category_name(from->category),
			.what = from->what,
			.kind = from->has_root && from->root.kind < ROOT_KIND_CNT ? kinds[from->root.kind] : NULL,
			.role = from->has_root ? from->root.role : NULL,
			.type = from->has_root ? from->root.type : NULL,
			.function = from->function ?: innermost,
			.call_path = call_path,
			.object = from->object ?: (from->has_root ? from->root.object : NULL),
			.culprit = from->culprit_comm,
			.culprit_host = from->culprit_host,
			.share = from->share,
			.share_lo = from->share_ci.lo,
			.share_hi = from->share_ci.hi,
			.late_ns = from->late_ns,
			.typical_ns = from->typical_ns,
			.tail_weight = late,
			.late_sid = late_sid(report, from),
		};

		join_path(&from->root, call_path, sizeof(call_path));
		err = sink->cause(sink->owner, &cause);
	}
	return err;
}

/* Rows by latency, the slowest first. */
struct late_row {
	uint64_t latency_ns;
	size_t row;
};

ORDER(compare_late, struct late_row, BY(b->latency_ns, a->latency_ns), BY(a->row, b->row));

static int put_late(const struct report *report, const struct late_row *late, const struct project_sink *sink)
{
	struct project_late to = {.sid = report->dataset->sid[late->row],
				  .latency_ns = late->latency_ns,
				  .weight = report->dataset->weight[late->row]};

	for (size_t i = 0; i < report->cause_cnt && i < CAUSES_MAX; i++) {
		uint64_t ns = part_ns(report, &report->causes[i], late->row);

		if (ns > to.ns) {
			to.ns = ns;
			to.rank = report->causes[i].rank;
		}
	}
	return to.rank ? sink->late(sink->owner, &to) : 0;
}

static int put_late_rows(const struct report *report, const struct project_sink *sink)
{
	VEC(struct late_row) late = {0};
	int err = 0;

	for (size_t row = 0; !err && row < report->dataset->row_cnt; row++)
		if (is_late(report, row))
			err = vec_push(&late, ((struct late_row){report->dataset->latency_ns[row], row}));
	if (!err && late.cnt)
		qsort(late.items, late.cnt, sizeof(*late.items), compare_late);
	for (size_t i = 0; !err && i < late.cnt && i < LATE_MAX; i++)
		err = put_late(report, &late.items[i], sink);
	vec_free(&late);
	return err;
}

int project_causes(void *owner, const struct project_segment *segment, const struct project_sink *sink)
{
	const struct findings_opts opts = {
		.filter = {.since_ts = segment->from_ts, .until_ts = segment->until_ts},
		.tail = 0.99,
		.rule = FACTOR_RULE_DEFAULT,
		.bootstrap_cnt = BOOTSTRAP_CNT,
		.keep_rows = true,
	};
	struct findings *findings = calloc(1, sizeof(*findings));
	const char *bad_path;
	struct shard_reader *reader =
		findings ? shard_reader__open(segment->paths, segment->path_cnt, &bad_path) : NULL;
	int err = !findings ? -ENOMEM : reader ? 0 : -errno;

	(void)owner;
	if (!err) {
		shard_reader__window(reader, segment->from_ts - (segment->from_ts > AROUND_NS ? AROUND_NS : 0),
				     segment->until_ts + AROUND_NS);
		err = findings_make(findings, reader, &opts);
	}
	if (!err) {
		err = put_causes(&findings->report, sink) ?: put_late_rows(&findings->report, sink);
		findings_free(findings);
	}
	shard_reader__free(reader);
	free(findings);
	/* Without an interval there is no cause. */
	return err == -ENOENT || err == -ESRCH ? sink->cause(sink->owner, &(struct project_cause){.rank = 0}) : err;
}
