// SPDX-License-Identifier: GPL-2.0-or-later
/* One interval's critical path as a story: when, for how long, who did what. */
#include "view/text_story.h"

#include "base/names.h"
#include "view/format.h"
#include "view/text.h"

#include <stdio.h>
#include <string.h>

#define NAME_SZ      128
#define SHORT_SHARE  0.001 /* of the latency: steps shorter than that are told together */
#define TELLINGS_MAX 24    /* different ones in one go; further ones count as short */

struct story_thread {
	const char *comm, *host;
	uint32_t pid, tid;
};

/* "`backup` (pid 812)", "`flusher` (tid 7)" where the process is the interval's own. */
static const char *thread_words(char buf[NAME_SZ], const struct story *story, const struct story_thread *thread)
{
	char id[32] = "", host[48] = "";

	if (thread->pid && (thread->pid != story->pid || thread->host))
		snprintf(id, sizeof(id), "pid %u", thread->pid);
	else if (thread->tid)
		snprintf(id, sizeof(id), "tid %u", thread->tid);
	if (thread->host)
		snprintf(host, sizeof(host), " on %.40s", thread->host);
	if (thread->comm && *thread->comm)
		snprintf(buf, NAME_SZ, *id ? "`%.60s` (%s)%s" : "`%.60s`%s%s", thread->comm, id, host);
	else
		snprintf(buf, NAME_SZ, "%s%s", *id ? id : "somebody", host);
	return buf;
}

static const char *own_words(char buf[NAME_SZ], const struct story *story, const struct story_step *step)
{
	return thread_words(buf, story, &(struct story_thread){step->comm, step->host, step->pid, step->tid});
}

static const char *culprit_words(char buf[NAME_SZ], const struct story *story, const struct story_step *step)
{
	return thread_words(
		buf, story,
		&(struct story_thread){step->culprit_comm, step->culprit_host, step->culprit_pid, step->culprit_tid});
}

/* What a thread does in that state: completes "it …". */
static const char *state_words(char buf[NAME_SZ], const struct story_step *step)
{
	const char *verb;

	switch (state_category(step->state)) {
	case WL_CATEGORY_ONCPU:
		return "runs";
	case WL_CATEGORY_LOCK:
		verb = "waits for a lock";
		break;
	case WL_CATEGORY_IO_DISK:
		verb = "waits for a disk";
		break;
	case WL_CATEGORY_IO_NET:
		verb = "waits for the network or another process";
		break;
	case WL_CATEGORY_SLEEP:
		verb = "sleeps";
		break;
	case WL_CATEGORY_FAULT_MINOR:
	case WL_CATEGORY_FAULT_MAJOR:
		verb = "handles a page fault";
		break;
	case WL_CATEGORY_THROTTLED:
		verb = "is throttled by its cgroup's CPU limit";
		break;
	case WL_CATEGORY_RUNQ:
		verb = "waits for a CPU";
		break;
	case WL_CATEGORY_IRQ_HARD:
	case WL_CATEGORY_IRQ_SOFT:
	case WL_CATEGORY_IRQ_TIMER:
	case WL_CATEGORY_IRQ_IPI:
		verb = "is interrupted";
		break;
	default:
		verb = step->state == WL_STATE_BLOCKED_PIPE      ? "waits for a pipe"
		       : step->state == WL_STATE_BLOCKED_STOPPED ? "is stopped by a signal"
		       : step->state == WL_STATE_BLOCKED_OTHER   ? "waits"
								 : "does something that was not seen";
	}
	if (!step->syscall)
		return verb;
	snprintf(buf, NAME_SZ, "%s in %.40s", verb, step->syscall);
	return buf;
}

static void queue_words(char *words, size_t sz, const struct story *story, const struct story_step *step)
{
	char thread[NAME_SZ], does[NAME_SZ], other[NAME_SZ] = "";

	if (step->other_sid)
		snprintf(other, sizeof(other), " for another request (%s%ssid %llu)",
			 step->other_type ? step->other_type : "", step->other_type ? ", " : "",
			 (unsigned long long)step->other_sid);
	if (step->state == WL_STATE_UNKNOWN)
		snprintf(words, sz, "is queued");
	else
		snprintf(words, sz, "is queued while %s %s%s", own_words(thread, story, step), state_words(does, step),
			 other);
}

static void lock_words(char *words, size_t sz, const struct story *story, const struct story_step *step)
{
	char culprit[NAME_SZ], does[NAME_SZ];
	const char *object = step->object ? step->object : "a lock";

	if (!step->culprit_tid)
		snprintf(words, sz, "waits for %s", object);
	else if (!step->depth)
		snprintf(words, sz, "waits for %s, held by %s", object, culprit_words(culprit, story, step));
	else
		snprintf(words, sz, "waits for %s: %s has it and %s%s", object, culprit_words(culprit, story, step),
			 state_words(does, step), step->other_sid ? " for another request" : "");
}

/* On its own thread, "it" is the interval; behind a wait, it is the thread that is waited for. */
static void subject_words(char *words, size_t sz, const struct story *story, const struct story_step *step)
{
	char thread[NAME_SZ];

	*words = '\0';
	if (step->depth)
		snprintf(words, sz, "%s, for which it waits, ", own_words(thread, story, step));
}

void text_story_step_words(char *words, size_t sz, const struct story *story, const struct story_step *step)
{
	char culprit[NAME_SZ] = "", does[NAME_SZ], subject[NAME_SZ + 32];

	subject_words(subject, sizeof(subject), story, step);
	if (step->culprit_tid)
		culprit_words(culprit, story, step);
	if (step->transit)
		snprintf(words, sz, "waits for %s, which are under way", handoff_what(step->kind));
	else if (step->category == WL_CATEGORY_QUEUE)
		queue_words(words, sz, story, step);
	else if (step->category == WL_CATEGORY_LOCK)
		lock_words(words, sz, story, step);
	else if (step->category == WL_CATEGORY_RUNQ)
		snprintf(words, sz, "%swaits for a CPU%s%s", subject,
			 *culprit                               ? ", which goes to "
			 : name_is_idle_cpu(step->culprit_comm) ? " that was idle"
								: "",
			 culprit);
	else if (step->category == WL_CATEGORY_IO_DISK && *culprit && step->culprit_tid != step->tid)
		snprintf(words, sz, "%s%s, which %s keeps busy", subject, state_words(does, step), culprit);
	else if ((step->category == WL_CATEGORY_FAULT_MINOR || step->category == WL_CATEGORY_FAULT_MAJOR) &&
		 step->object)
		snprintf(words, sz, "%shandles a page fault in %s", subject, step->object);
	else if (step->kind == WL_HANDOFF_TIMER && *culprit && step->culprit_tid != step->tid)
		snprintf(words, sz, "%s%s, for a timer that %s armed", subject, state_words(does, step), culprit);
	else if (!step->depth && *culprit)
		snprintf(words, sz, "%s, until %s ends it", state_words(does, step), culprit);
	else
		snprintf(words, sz, "%s%s", subject, state_words(does, step));
}

/* Steps that are told in one line. */
struct telling {
	const struct story_step *step; /* the first of them */
	const char *call_path;         /* of the longest one that has one */
	uint64_t path_ns;
	uint64_t ns;
	size_t cnt;
};

static void print_telling(struct page *page, const struct story *story, const struct telling *telling)
{
	const struct story_step *step = telling->step;
	char words[STORY_WORDS_SZ], text[FORMAT_SZ], at[FORMAT_SZ + 1];
	size_t len;

	text_story_step_words(words, sizeof(words), story, step);
	len = strlen(words);
	if (step->certainty != WL_CERTAINTY_OBSERVED)
		snprintf(words + len, sizeof(words) - len, " (%s)", certainty_name(step->certainty));
	len = strlen(words);
	if (telling->cnt > 1)
		snprintf(words + len, sizeof(words) - len, " (%zu times)", telling->cnt);
	view_duration(text, sizeof(text), (double)(step->begin_ts - story->begin_ts));
	snprintf(at, sizeof(at), "+%s", text);
	page__right(page, at, 11);
	page__right(page, view_duration(text, sizeof(text), (double)telling->ns), 21);
	page__to(page, 23);
	page__put(page, category_name(step->category));
	page__paragraph(page, 35, words, 37);
	if (!telling->call_path)
		return;
	page__to(page, 35);
	page__put(page, "in ");
	page__words(page, telling->call_path, 37);
	page__end_line(page);
}

static bool same_doing(const struct story_step *a, const struct story_step *b)
{
	return a->category == b->category && a->state == b->state && a->culprit_tid == b->culprit_tid &&
	       a->culprit_host == b->culprit_host && a->culprit_pid == b->culprit_pid && a->transit == b->transit &&
	       a->certainty == b->certainty && !strcmp(a->object ? a->object : "", b->object ? b->object : "") &&
	       !strcmp(a->syscall ? a->syscall : "", b->syscall ? b->syscall : "");
}

/* Those of one go, and those that are not worth a line. */
struct tellings {
	struct telling items[TELLINGS_MAX];
	size_t cnt;
	uint64_t short_ns;
	size_t short_cnt;
};

static void tell(struct tellings *tellings, const struct story_step *step)
{
	uint64_t ns = step->end_ts - step->begin_ts;
	size_t i = 0;

	while (i < tellings->cnt && !same_doing(tellings->items[i].step, step))
		i++;
	if (i == TELLINGS_MAX) {
		tellings->short_ns += ns;
		tellings->short_cnt++;
		return;
	}
	if (i == tellings->cnt)
		tellings->items[tellings->cnt++] = (struct telling){.step = step};
	if (step->call_path && ns > tellings->items[i].path_ns) {
		tellings->items[i].call_path = step->call_path;
		tellings->items[i].path_ns = ns;
	}
	tellings->items[i].ns += ns;
	tellings->items[i].cnt++;
}

/* One go: the path stays on one thread.  What happened again and again in it is told once, with its sum. */
static void print_go(struct page *page, const struct story *story, const struct story_step *steps, size_t step_cnt)
{
	double limit_ns = SHORT_SHARE * (double)(story->end_ts - story->begin_ts);
	struct tellings tellings = {.cnt = 0};
	char text[FORMAT_SZ];

	for (size_t i = 0; i < step_cnt; i++)
		tell(&tellings, &steps[i]);
	for (size_t i = 0; i < tellings.cnt; i++) {
		if ((double)tellings.items[i].ns >= limit_ns) {
			print_telling(page, story, &tellings.items[i]);
			continue;
		}
		tellings.short_ns += tellings.items[i].ns;
		tellings.short_cnt += tellings.items[i].cnt;
	}
	if (!tellings.short_cnt)
		return;
	page__style(page, PAGE_FAINT);
	page__right(page, view_duration(text, sizeof(text), (double)tellings.short_ns), 21);
	page__to(page, 23);
	page__printf(page, "%zu short step%s", tellings.short_cnt, tellings.short_cnt == 1 ? "" : "s");
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

void text_story_steps(struct page *page, const struct story *story, bool all)
{
	size_t first = 0;

	for (size_t i = 0; i < story->step_cnt; i++) {
		const struct story_step *step = &story->steps[i], *next = step + 1;

		if (all) {
			print_telling(page, story,
				      &(struct telling){step, step->call_path, 0, step->end_ts - step->begin_ts, 1});
			continue;
		}
		if (i + 1 < story->step_cnt && next->tid == step->tid && next->host == step->host &&
		    next->depth == step->depth)
			continue;
		print_go(page, story, &story->steps[first], i + 1 - first);
		first = i + 1;
	}
}

void text_story_title(struct page *page, const struct story *story)
{
	char text[FORMAT_SZ];

	page__style(page, PAGE_BOLD);
	page__printf(page, "sid %llu", (unsigned long long)story->sid);
	page__style(page, PAGE_PLAIN);
	if (story->host_is_told) {
		page__put(page, " on ");
		page__name(page, story->host, 32);
	}
	if (*story->type) {
		page__put(page, " (");
		page__name(page, story->type, 32);
		page__put(page, ")");
	}
	page__printf(page, ": %s", view_duration(text, sizeof(text), (double)(story->end_ts - story->begin_ts)));
	if (story->pickup_ts > story->begin_ts)
		page__printf(page, ", picked up after %s",
			     view_duration(text, sizeof(text), (double)(story->pickup_ts - story->begin_ts)));
	page__printf(page, " by tid %u", story->tid);
	if (story->end_tid != story->tid)
		page__printf(page, ", ended by tid %u", story->end_tid);
	if (*story->trace_id) {
		page__put(page, ", trace ");
		page__name(page, story->trace_id, 32);
		page__put(page, " span ");
		page__name(page, story->span_id, 32);
	}
	page__end_line(page);
}

static void print_sums(struct page *page, const struct story *story)
{
	uint64_t sums[WL_CATEGORY_CNT] = {0}, latency_ns = story->end_ts - story->begin_ts;
	char text[FORMAT_SZ];

	for (size_t i = 0; i < story->step_cnt; i++)
		sums[story->steps[i].category] += story->steps[i].end_ts - story->steps[i].begin_ts;
	for (;;) {
		int most = 0;

		for (int c = 1; c < WL_CATEGORY_CNT; c++)
			most = sums[c] > sums[most] ? c : most;
		if (!sums[most])
			return;
		page__to(page, 2);
		page__put(page, category_name((enum wl_category)most));
		page__right(page, view_duration(text, sizeof(text), (double)sums[most]), 24);
		page__right(page, format_share(text, (double)sums[most] / (double)latency_ns), 32);
		page__paragraph(page, 35, category_label((enum wl_category)most), 35);
		sums[most] = 0;
	}
}

static void print_doubts(struct page *page, const struct story *story)
{
	static const struct {
		enum path_flag flag;
		const char *words;
	} doubts[] = {
		{PATH_LOSSY,
		 "Records were lost while it was open: parts of this may be wrong, and no ranking uses it."},
		{PATH_GAP, "Of part of this time, what the thread did was not recorded."},
		{PATH_NO_EDGE, "Who ended one of its waits was not seen."},
		{PATH_LOOP, "Threads seem to wait for each other at one and the same time: that part is `other`."},
		{PATH_TOO_LONG, "It goes on through more threads or steps than are followed: the rest is `other`."},
		{PATH_AMBIGUOUS, "What is marked as ambiguous may have been somebody else's doing."},
	};

	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++) {
		if (!(story->path_flags & doubts[i].flag))
			continue;
		page__words(page, doubts[i].words, 2);
		page__end_line(page);
	}
}

int view_story(FILE *out, const struct story *story, const struct view_opts *opts)
{
	struct page page;

	page__open(&page, out, opts->colour);
	text_story_title(&page, story);
	page__end_line(&page);
	text_heading(&page, "         at       for  what");
	text_story_steps(&page, story, !opts->top);
	page__end_line(&page);
	text_heading(&page, "In all");
	print_sums(&page, story);
	if (story->path_flags)
		page__end_line(&page);
	print_doubts(&page, story);
	return page__close(&page);
}
