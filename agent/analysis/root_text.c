// SPDX-License-Identifier: GPL-2.0-or-later
/* Roots in words: the first line of a cause, and its evidence. */
#include "analysis/roots_report.h"
#include "base/names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SZ 320

/* "thread `flusher` (pid 812, tid 813)", as much of it as is known. */
static void thread_text(char *buf, size_t sz, const struct cause *cause, const struct report *report)
{
	bool own = cause->culprit_pid >= 0 && cause->culprit_pid == report->dataset->pid && !cause->culprit_host;
	char id[64] = "", host[96] = "";

	if (cause->culprit_host)
		snprintf(host, sizeof(host), " on %.80s", cause->culprit_host);
	if (own && cause->culprit_tid >= 0)
		snprintf(id, sizeof(id), " (tid %lld)", (long long)cause->culprit_tid);
	else if (cause->culprit_pid >= 0 && !own)
		snprintf(id, sizeof(id), " (pid %lld)", (long long)cause->culprit_pid);
	else if (cause->culprit_tid >= 0 && !own)
		snprintf(id, sizeof(id), " (tid %lld)", (long long)cause->culprit_tid);
	snprintf(buf, sz, "`%.80s`%s%s", cause->root.role ? cause->root.role : "?", id, host);
}

/* ", in requests of type tcp:80" */
static void work_text(char *buf, size_t sz, const struct cause *cause)
{
	if (cause->root.type)
		snprintf(buf, sz, ", in requests of type %.80s", cause->root.type);
	else
		snprintf(buf, sz,
			 cause->root.for_requests ? ", for requests that waited for it"
						  : ", outside of any recorded request");
}

static char *stopped_text(const struct cause *cause, const char *thread, struct arena *arena)
{
	if (cause->root.kind == ROOT_CODE)
		return arena__printf(arena, "stopped by a signal or a debugger, until thread %s continued it", thread);
	return arena__printf(arena, "stopped by a signal or a debugger; the recording does not show who continued it");
}

static char *code_text(const struct cause *cause, const char *thread, struct arena *arena)
{
	char work[TEXT_SZ];

	work_text(work, sizeof(work), cause);
	if (cause->function)
		return arena__printf(arena, "`%s`: code of thread %s%s", cause->function, thread, work);
	return arena__printf(arena, "code of thread %s%s%s", thread, work,
			     cause->root.call_path_cnt ? "; its functions are not known" : "");
}

#define CROWD_SHOWN 4

/* Who has the CPUs of a full machine: the last one of each way, the largest first. */
static char *full_machine_text(const struct cause *cause, struct arena *arena)
{
	const char *names[CROWD_SHOWN];
	char who[TEXT_SZ] = "";
	size_t cnt = 0;

	for (size_t w = 0; w < cause->way_cnt && cnt < CROWD_SHOWN; w++) {
		const struct cause_way *way = &cause->ways[w];
		size_t n = 0, len = strlen(who);

		if (!way->hop_cnt || !(way->share > 0))
			continue;
		while (n < cnt && strcmp(names[n], way->hops[way->hop_cnt - 1]) != 0)
			n++;
		if (n < cnt)
			continue;
		names[cnt++] = way->hops[way->hop_cnt - 1];
		snprintf(who + len, sizeof(who) - len, "%s`%.60s`", len ? ", " : " (most of it ", names[n]);
	}
	return arena__printf(arena,
			     "the machine is full: more runnable threads than CPUs%s%s, and no single one stands out",
			     who, *who ? ")" : "");
}

static char *what_text(const struct cause *cause, const struct report *report, struct arena *arena)
{
	const struct cause_root *root = &cause->root;
	const char *in = cause->function ? ", in " : "", *function = cause->function ? cause->function : "";
	char thread[TEXT_SZ];

	thread_text(thread, sizeof(thread), cause, report);
	if (cause_root_is(root, ROOT_STOPPED))
		return stopped_text(cause, thread, arena);
	switch (root->kind) {
	case ROOT_CODE:
		return code_text(cause, thread, arena);
	case ROOT_DISK:
		if (cause_root_is(root, ROOT_DIRTY_PAGES))
			return arena__printf(arena, "dirty-page throttling: thread %s writes faster than the disk%s%s",
					     thread, in, function);
		if (cause_root_is(root, ROOT_RECLAIM))
			return arena__printf(arena, "memory reclaim: thread %s waits for memory to be freed%s%s",
					     thread, in, function);
		return arena__printf(arena, "disk%s%s: I/O of thread %s%s%s", root->object ? " " : "",
				     root->object ? root->object : "", thread, in, function);
	case ROOT_PEER:
		if (cause_root_is(root, ROOT_NETWORK))
			return arena__strdup(arena,
					     "the network: what was sent arrives late; TCP sent it again or held it "
					     "back, or the way is long");
		return arena__printf(arena, "the other end of a connection: %s%s%s%s", root->role ? thread : "",
				     root->role && root->object ? " at " : "", root->object ? root->object : "",
				     root->role || root->object ? "" : "not known");
	case ROOT_TIMER:
		return arena__printf(arena, "a timer: thread %s sleeps%s%s", thread, in, function);
	case ROOT_QUOTA:
		if (root->object)
			return arena__printf(arena, "%s of the cgroup, which throttles thread %s%s%s", root->object,
					     thread, in, function);
		return arena__printf(arena, "the CPU quota of the cgroup, which throttles thread %s", thread);
	case ROOT_FULL_MACHINE:
		return full_machine_text(cause, arena);
	default:
		if (root->object && name_is_idle_cpu(root->object))
			return arena__printf(arena, "%s that was idle and had to wake up",
					     category_label(cause->category));
		return arena__printf(arena, "%s%s%s%s; the recording does not show who ended the wait",
				     category_label(cause->category),
				     cause->object  ? " ("
				     : root->object ? " in "
						    : "",
				     cause->object  ? cause->object
				     : root->object ? root->object
						    : "",
				     cause->object ? ")" : "");
	}
}

int root_describe(struct cause *cause, const struct report *report, const struct share_line *share,
		  const struct blame_ids *pids, struct arena *arena)
{
	int err;

	cause->evidence = arena__alloc(arena, CAUSE_EVIDENCE_MAX, sizeof(*cause->evidence));
	cause->what = what_text(cause, report, arena);
	if (!cause->evidence || !cause->what)
		return -ENOMEM;
	err = cause__add_line(cause, cause_numbers_text(arena, share));
	if (!err && !isnan(cause->variance_share))
		err = cause__add_line(cause, cause_variance_text(arena, share));
	if (!err && cause->culprit_comm && pids->cnt > 1)
		err = cause__add_line(cause, cause_several_text(arena, "pids", pids));
	return err ? err : cause_describe_doubts(cause, report, arena);
}
