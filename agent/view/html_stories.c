// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Single requests for the waterfall: the slowest, those in which each cause took most, and some of every part of the
 * heatmap, so that a selection has one.
 */
#include "view/html_data.h"

#include "analysis/story.h"
#include "base/names.h"
#include "base/order.h"
#include "base/random.h"
#include "view/format.h"
#include "view/text_story.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOWEST_CNT  10
#define OF_CAUSE_CNT 2
#define SLOT_CNT     12 /* of time … */
#define BAND_CNT     4  /* … and of latency: typical, twice between, late */
#define STORIES_MAX  (SLOWEST_CNT + 40 * OF_CAUSE_CNT)
#define STEPS_MAX    400   /* of one request */
#define STEPS_ALL    9000  /* of all requests */
#define SHORT_SHARE  0.004 /* of the latency: a shorter step joins the one before it on its thread */
#define NO_CAUSE     UINT32_MAX
#define THREAD_SZ    128

struct chosen {
	uint32_t row, cause; /* cause: for which it was chosen, NO_CAUSE: it is one of the slowest */
	uint64_t ns;
};

struct choice {
	struct chosen items[STORIES_MAX + SLOT_CNT * BAND_CNT];
	size_t cnt;
};

/* Keeps the `most` rows with the largest ns among those from items[first]. */
static void consider(struct choice *choice, size_t first, size_t most, struct chosen row)
{
	size_t at = choice->cnt;

	while (at > first && choice->items[at - 1].ns < row.ns)
		at--;
	if (at - first >= most)
		return;
	if (choice->cnt - first < most)
		choice->cnt++;
	memmove(&choice->items[at + 1], &choice->items[at], (choice->cnt - at - 1) * sizeof(*choice->items));
	choice->items[at] = row;
}

static void choose(struct choice *choice, const struct findings *findings)
{
	const struct dataset *dataset = &findings->dataset;
	const struct report *report = &findings->report;

	for (uint32_t row = 0; row < dataset->row_cnt; row++)
		if (findings->paths.ranked[row])
			consider(choice, 0, SLOWEST_CNT, (struct chosen){row, NO_CAUSE, dataset->latency_ns[row]});
	for (uint32_t c = 0; c < report->cause_cnt && choice->cnt + OF_CAUSE_CNT <= STORIES_MAX; c++) {
		const uint64_t *ns = report->causes[c].row_ns;
		size_t first = choice->cnt;

		for (uint32_t row = 0; ns && row < dataset->row_cnt; row++)
			if (ns[row] && findings->paths.ranked[row])
				consider(choice, first, OF_CAUSE_CNT, (struct chosen){row, c, ns[row]});
	}
}

static size_t band_of(const struct report *report, double latency_ns)
{
	if (latency_ns >= report->tail_threshold_ns)
		return 3;
	if (latency_ns <= report->typical_ns)
		return 0;
	return latency_ns <= sqrt(report->typical_ns * report->tail_threshold_ns) ? 1 : 2;
}

static bool is_chosen(const struct choice *choice, uint32_t row)
{
	for (size_t i = 0; i < choice->cnt; i++)
		if (choice->items[i].row == row)
			return true;
	return false;
}

/* One request of each part of the heatmap, by chance. */
static void spread(struct choice *choice, const struct findings *findings)
{
	const struct dataset *dataset = &findings->dataset;
	struct chosen best[SLOT_CNT * BAND_CNT] = {0};
	uint64_t first_ts = UINT64_MAX, last_ts = 0;

	for (uint32_t row = 0; row < dataset->row_cnt; row++) {
		first_ts = dataset->begin_ts[row] < first_ts ? dataset->begin_ts[row] : first_ts;
		last_ts = dataset->begin_ts[row] > last_ts ? dataset->begin_ts[row] : last_ts;
	}
	for (uint32_t row = 0; row < dataset->row_cnt; row++) {
		double at = (double)(dataset->begin_ts[row] - first_ts) / ((double)(last_ts - first_ts) + 1);
		size_t band = band_of(&findings->report, (double)dataset->latency_ns[row]);
		struct chosen *of = &best[(size_t)(at * SLOT_CNT) * BAND_CNT + band];
		uint64_t chance = random_mix(row + 1) | 1;

		if (findings->paths.ranked[row] && chance > of->ns)
			*of = (struct chosen){row, NO_CAUSE, chance};
	}
	for (size_t i = 0; i < SLOT_CNT * BAND_CNT; i++)
		if (best[i].ns && !is_chosen(choice, best[i].row))
			choice->items[choice->cnt++] = best[i];
}

/* --- steps ---------------------------------------------------------------------------------------------------------
 */

struct teller {
	struct html_pack *pack;
	const struct findings *findings;
	const struct html_rows *rows;
	size_t steps_max, steps_left; /* of one request, of those that follow */
	struct path path;             /* memory */
	struct arena *arena;
};

/* How many of the steps from `first` are told as one, on one thread: of one kind, or short. */
static size_t together(const struct story *story, size_t first)
{
	uint64_t short_ns = (uint64_t)(SHORT_SHARE * (double)(story->end_ts - story->begin_ts));
	const struct story_step *from = &story->steps[first];
	size_t cnt = 1;

	while (first + cnt < story->step_cnt) {
		const struct story_step *next = &story->steps[first + cnt];
		bool same = next->category == from->category && next->state == from->state &&
			    next->culprit_tid == from->culprit_tid;

		if (next->tid != from->tid || next->depth != from->depth || next->host != from->host ||
		    (!same && next->end_ts - next->begin_ts >= short_ns))
			break;
		cnt++;
	}
	return cnt;
}

static const struct story_step *longest(const struct story *story, size_t first, size_t cnt)
{
	const struct story_step *most = &story->steps[first];

	for (size_t i = first + 1; i < first + cnt; i++)
		if (story->steps[i].end_ts - story->steps[i].begin_ts > most->end_ts - most->begin_ts)
			most = &story->steps[i];
	return most;
}

static void put_step(struct teller *teller, struct json_object *steps, const struct story *story, size_t first,
		     size_t cnt, uint64_t end_ts)
{
	uint64_t begin_ts = story->steps[first].begin_ts;
	const struct story_step *step = longest(story, first, cnt);
	struct json_object *object = append_object(&teller->pack->doc, steps);
	char thread[THREAD_SZ], words[STORY_WORDS_SZ];
	const char *call_path = NULL;
	size_t len;

	snprintf(thread, sizeof(thread), "%.60s (tid %u)%s%.40s", step->comm ? step->comm : "thread", step->tid,
		 step->host ? " on " : "", step->host ? step->host : "");
	text_story_step_words(words, sizeof(words), story, step);
	len = strlen(words);
	if (cnt > 1)
		snprintf(words + len, sizeof(words) - len, " (%zu steps together)", cnt);
	for (size_t i = first; i < first + cnt && !call_path; i++)
		call_path = story->steps[i].call_path;
	put_count(&teller->pack->doc, object, "at_ns", begin_ts - story->begin_ts);
	put_count(&teller->pack->doc, object, "ns", end_ts - begin_ts);
	put_string(&teller->pack->doc, object, "category", category_name(step->category));
	put_count(&teller->pack->doc, object, "depth", step->depth);
	html_pack__put_string(teller->pack, object, "thread", thread);
	html_pack__put_string(teller->pack, object, "about", words);
	html_pack__put_string(teller->pack, object, "call_path", call_path);
}

static void put_steps(struct teller *teller, struct json_object *steps, const struct story *story)
{
	size_t at = 0;

	for (size_t told = 0; at < story->step_cnt; told++) {
		size_t cnt = told + 1 == teller->steps_max ? story->step_cnt - at : together(story, at);

		put_step(teller, steps, story, at, cnt, story->steps[at + cnt - 1].end_ts);
		at += cnt;
		teller->steps_left -= teller->steps_left > 0;
	}
}

/* The row's number in the page, -1: it is not there. */
static int64_t page_row(const struct html_rows *rows, uint32_t row)
{
	size_t at = search_first(0, rows->cnt, mid, rows->rows[mid] >= row);

	return at < rows->cnt && rows->rows[at] == row ? (int64_t)at : -1;
}

static int put_story(struct teller *teller, struct json_object *stories, const struct chosen *chosen)
{
	const struct findings *findings = teller->findings;
	const struct trace_interval *interval =
		&findings->traces.intervals.items[findings->paths.interval_of[chosen->row]];
	struct json_object *object;
	char title[256], text[FORMAT_SZ], why[64] = "";
	struct story story;
	int err = story_make(&story, &findings->traces, &findings->samples, interval, &teller->path, teller->arena);

	if (err)
		return err;
	object = append_object(&teller->pack->doc, stories);
	if (chosen->cause != NO_CAUSE)
		snprintf(why, sizeof(why), ", much of cause %u", findings->report.causes[chosen->cause].rank);
	snprintf(title, sizeof(title), "%s %.80s, sid %llu%s%.40s%s",
		 view_duration(text, sizeof(text), (double)(story.end_ts - story.begin_ts)), story.type,
		 (unsigned long long)story.sid, *story.trace_id ? ", trace " : "", story.trace_id, why);
	html_pack__put_string(teller->pack, object, "title", title);
	put_count(&teller->pack->doc, object, "latency_ns", story.end_ts - story.begin_ts);
	put_id(&teller->pack->doc, object, "cause", chosen->cause == NO_CAUSE ? -1 : (int64_t)chosen->cause);
	put_id(&teller->pack->doc, object, "row", page_row(teller->rows, chosen->row));
	put_steps(teller, put_array(&teller->pack->doc, object, "steps"), &story);
	return 0;
}

void html_stories(struct html_pack *pack, const struct findings *findings, const struct html_rows *rows)
{
	struct teller teller = {
		.pack = pack, .findings = findings, .rows = rows, .steps_left = STEPS_ALL, .arena = arena__new()};
	struct json_object *stories = put_array(&pack->doc, pack->header, "stories");
	struct choice *choice = calloc(1, sizeof(*choice));
	int err = choice && teller.arena ? 0 : -ENOMEM;

	if (!err && findings->paths.traces) {
		choose(choice, findings);
		spread(choice, findings);
	}
	for (size_t i = 0; !err && i < choice->cnt; i++) {
		/* What shorter ones leave is the longer ones' that follow. */
		size_t room = teller.steps_left / (choice->cnt - i);

		teller.steps_max = room < 1 ? 1 : room < STEPS_MAX ? room : STEPS_MAX;
		err = put_story(&teller, stories, &choice->items[i]);
	}
	if (err)
		pack->doc.err = err;
	path__clear(&teller.path);
	arena__free(teller.arena);
	free(choice);
}
