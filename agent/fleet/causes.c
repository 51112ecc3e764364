// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/causes.h"

#include "analysis/findings.h"
#include "base/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CAUSES_MAX    20
#define BOOTSTRAP_CNT 200
#define CALL_PATH_SZ  2048

static const char *const kinds[ROOT_KIND_CNT] = {"code", "disk", "peer", "timer", "quota", "full_machine", "unknown"};

/* "outermost;…;innermost" */
static void join_path(const struct cause_root *root, char *text, size_t sz)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < root->call_path_cnt && used < sz; i++)
		used += (size_t)snprintf(text + used, sz - used, "%s%s", i ? ";" : "", root->call_path[i]);
}

static uint64_t slowest_sid(const struct dataset *dataset)
{
	size_t slowest = 0;

	for (size_t i = 1; i < dataset->row_cnt; i++)
		if (dataset->latency_ns[i] > dataset->latency_ns[slowest])
			slowest = i;
	return dataset->row_cnt ? dataset->sid[slowest] : 0;
}

static int put_causes(const struct report *report, project_put_cause *put, void *sink)
{
	double late = report->latency.count * (1 - report->tail);
	uint64_t sid = slowest_sid(report->dataset);
	char call_path[CALL_PATH_SZ];
	int err = 0;

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
			.slowest_sid = sid,
		};

		join_path(&from->root, call_path, sizeof(call_path));
		err = put(sink, &cause);
	}
	return err;
}

int project_causes(void *owner, const char *const *paths, size_t path_cnt, project_put_cause *put, void *sink)
{
	const struct findings_opts opts = {.tail = 0.99, .rule = FACTOR_RULE_DEFAULT, .bootstrap_cnt = BOOTSTRAP_CNT};
	struct findings *findings = calloc(1, sizeof(*findings));
	const char *bad_path;
	struct shard_reader *reader = findings ? shard_reader__open(paths, path_cnt, &bad_path) : NULL;
	int err = !findings ? -ENOMEM : reader ? findings_make(findings, reader, &opts) : -errno;

	(void)owner;
	if (!err) {
		err = put_causes(&findings->report, put, sink);
		findings_free(findings);
	}
	shard_reader__free(reader);
	free(findings);
	/* A session without an interval has no cause. */
	return err == -ENOENT || err == -ESRCH ? 0 : err;
}
