// SPDX-License-Identifier: GPL-2.0-or-later
/* Two recordings of two hosts, made up, with a request that crosses them and a cause on the far one. */
#include "row_writer.h"
#include "test_shard_util.h"
#include "unit.h"

#include "analysis/fronts.h"
#include "analysis/paths.h"
#include "analysis/story.h"
#include "view/export.h"
#include "view/text_story.h"
#include "view/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ULL
#define MS 1000000ULL
#define S  1000000000ULL

#define CNT     3000
#define PERIOD  (10 * MS)
#define STARTED (5000 * S)
#define LOCK_NS (5 * MS)
#define SERVER  101 /* on both hosts, and of process 100 on both, as it happens */
#define VACUUM  203

#define FRONT_SESSION 0xa1ULL
#define BACK_SESSION  0xb2ULL

/* How the two hosts are, and what is wrong with what they recorded. */
struct story_of_two {
	int64_t back_ahead_ns;
	double drift_ppm;
	uint64_t forth_ns, back_ns; /* under way */
	uint32_t first_seq;
	bool translated;          /* the back end sees the front's address as another one */
	bool lose_some;           /* every third request was not kept by the back end's host */
	bool one_way;             /* the front's sends are missing */
	bool sent_twice;          /* some sequence numbers come again much later: the connection wrapped round */
	bool retransmitted;       /* now and then a message is 200 ms under way */
	const char *front, *back; /* hosts, NULL: front and back */
};

struct two {
	struct test_dir dir;
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct report report;
};

static bool is_late(uint64_t k)
{
	return k % 10 == 5;
}

/* Under way both ways together are 2 ms at most, but for what is sent again: the next request then is much later. */
static uint64_t forth_ns(const struct story_of_two *how, uint64_t k)
{
	return how->retransmitted && k % 100 == 51 ? 3 * MS : how->forth_ns + k % 7 * US;
}

static void put_front(struct row_writer *to, const struct story_of_two *how, uint64_t k)
{
	uint64_t begin_ts = STARTED + k * PERIOD, sent_ts = begin_ts + 50 * US, sid = k + 1;
	uint64_t replied_ts = sent_ts + forth_ns(how, k) + 100 * US + (is_late(k) ? LOCK_NS : 0);
	uint64_t woken_ts = replied_ts + how->back_ns + k % 5 * US;
	const struct row_message request = {"10.0.0.1:40000", "10.0.0.2:7000", how->first_seq + (uint32_t)k * 100, 100,
					    sid};
	const struct row_message reply = {"10.0.0.2:7000", "10.0.0.1:40000", how->first_seq + (uint32_t)k * 50, 50,
					  sid};

	row_put_segment(to, SERVER, begin_ts, sent_ts, "running", sid);
	if (!how->one_way)
		row_put_sent(to, SERVER, sent_ts, &request);
	row_begin_segment(to, SERVER, sent_ts, woken_ts, "blocked.net", sid);
	row_set_str(to, SEGMENT_SYSCALL, "recvfrom");
	row_end(to, SHARD_TABLE_SEGMENT);
	row_put_wakeup(to, SERVER, woken_ts, 0, NULL);
	row_put_segment(to, SERVER, woken_ts, woken_ts + 20 * US, "running", sid);
	row_put_received(to, SERVER, woken_ts + 5 * US, &reply);
	row_put_interval(to, sid, SERVER, "tcp:80", begin_ts, woken_ts + 20 * US, 0, 0);
}

static void put_back(struct row_writer *to, const struct story_of_two *how, uint64_t k)
{
	uint64_t begin_ts = STARTED + k * PERIOD + 50 * US + forth_ns(how, k), sid = k + 1;
	uint64_t locked_ns = is_late(k) ? LOCK_NS : 0, end_ts = begin_ts + 100 * US + locked_ns;
	const char *front = how->translated ? "192.168.7.7:1024" : "10.0.0.1:40000";
	const struct row_message request = {front, "10.0.0.2:7000", how->first_seq + (uint32_t)k * 100, 100, sid};
	const struct row_message reply = {"10.0.0.2:7000", front, how->first_seq + (uint32_t)k * 50, 50, sid};

	row_put_segment(to, SERVER, begin_ts, begin_ts + 50 * US, "running", sid);
	row_put_received(to, SERVER, begin_ts + 3 * US, &request);
	if (locked_ns) {
		row_begin_segment(to, SERVER, begin_ts + 50 * US, begin_ts + 50 * US + locked_ns, "blocked.futex", sid);
		row_set_str(to, SEGMENT_OBJECT_NAME, "db+0x88");
		row_set_u64(to, SEGMENT_OWNER_TID, VACUUM);
		row_end(to, SHARD_TABLE_SEGMENT);
		row_put_wakeup(to, SERVER, begin_ts + 50 * US + locked_ns, VACUUM, "vacuum");
		row_put_segment(to, VACUUM, begin_ts, begin_ts + 50 * US + locked_ns, "blocked.disk", 0);
	}
	row_put_segment(to, SERVER, end_ts - 50 * US, end_ts, "running", sid);
	row_put_sent(to, SERVER, end_ts, &reply);
	row_put_interval(to, sid, SERVER, "tcp:7000", begin_ts, end_ts, locked_ns, 0);
}

static void write_two(const char *dir, const struct story_of_two *how)
{
	struct row_writer front, back;

	row_writer_open(&front, dir, how->front ? how->front : "front", FRONT_SESSION, 100);
	row_writer_open(&back, dir, how->back ? how->back : "back", BACK_SESSION, 100);
	back.ahead_ns = how->back_ahead_ns;
	back.drift_ppm = how->drift_ppm;
	row_put_session(&front, "comm", "web");
	row_put_session(&back, "comm", "db");
	row_put_thread(&front, 100, 100, "web");
	row_put_thread(&front, 100, SERVER, "web");
	row_put_thread(&back, 100, 100, "db");
	row_put_thread(&back, 100, SERVER, "db");
	row_put_thread(&back, 100, VACUUM, "vacuum");
	for (uint64_t k = 0; k < CNT; k++) {
		put_front(&front, how, k);
		if (!how->lose_some || k % 3)
			put_back(&back, how, k);
	}
	if (how->sent_twice)
		for (uint64_t k = 0; k < CNT; k += 50) {
			const struct row_message reply = {"10.0.0.2:7000", "10.0.0.1:40000",
							  how->first_seq + (uint32_t)k * 50 - 10, 60, 0};

			/* Within reach of what is plausible, or 20 s later. */
			row_put_sent(&back, VACUUM, STARTED + k * PERIOD + (k % 100 ? 20 * S : 30 * US), &reply);
		}
	row_writer_close(&front);
	row_writer_close(&back);
}

static void two_make(struct two *two, const struct story_of_two *how)
{
	const struct dataset_filter filter = {0};
	struct report_opts opts = {.tail = 0.95, .seed = 1, .paths = &two->paths, .slowest = 5};

	test_dir__make(&two->dir);
	write_two(two->dir.path, how);
	two->reader = test_reader__open(two->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&two->dataset, two->reader, &filter), 0);
	CU_ASSERT_EQUAL_FATAL(traces_load(&two->traces, two->reader), 1);
	CU_ASSERT_EQUAL_FATAL(paths_make(&two->paths, &two->traces, &two->dataset, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(report_make(&two->report, &two->dataset, &opts), 0);
}

static void two_free(struct two *two)
{
	report_free(&two->report);
	paths_free(&two->paths);
	traces_free(&two->traces);
	dataset_free(&two->dataset);
	shard_reader__free(two->reader);
	test_dir__remove(&two->dir);
}

/* The parts of every interval sum to its latency, by the clock of its own host. */
static size_t wrong_sums(const struct two *two)
{
	size_t wrong = 0;

	for (size_t row = 0; row < two->dataset.row_cnt; row++) {
		uint64_t sum = 0;

		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			sum += two->dataset.category_ns[c] ? two->dataset.category_ns[c][row] : 0;
		wrong += sum != two->dataset.latency_ns[row];
	}
	return wrong;
}

static void story_of(struct story *story, struct two *two, uint64_t session_id, uint64_t sid, struct arena *arena)
{
	const struct trace_interval *interval =
		traces_interval(&two->traces, traces_session(&two->traces, session_id), sid);
	struct path path = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(interval);
	CU_ASSERT_EQUAL_FATAL(story_make(story, &two->traces, NULL, interval, &path, arena), 0);
	path__clear(&path);
}

/* How much of it is behind that thread of another host, in that category. */
static uint64_t far_ns(const struct story *story, const char *host, const char *culprit, enum wl_category category)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < story->step_cnt; i++) {
		const struct story_step *step = &story->steps[i];

		if (step->culprit_host && !strcmp(step->culprit_host, host) && step->culprit_comm &&
		    !strcmp(step->culprit_comm, culprit) && step->category == category)
			ns += step->end_ts - step->begin_ts;
	}
	return ns;
}

static const struct join_line *only_link(const struct two *two)
{
	const struct join_report *join = &two->report.path->join;

	CU_ASSERT_EQUAL_FATAL(join->line_cnt, 1);
	CU_ASSERT(join->lines[0].in_use);
	return join->lines;
}

/* Of b's clock ahead of a's, whichever is which. */
static void assert_offset(const struct two *two, int64_t back_ahead_ns)
{
	const struct join_line *line = only_link(two);
	int64_t ahead_ns = strcmp(line->a, "front") ? -line->offset_ns : line->offset_ns;

	CU_ASSERT(llabs(ahead_ns - back_ahead_ns) <= (int64_t)line->uncertainty_ns);
}

static void a_request_that_crosses_is_one_chain(void)
{
	static const int64_t offsets[] = {0, 7200 * (int64_t)S, -4000 * (int64_t)S};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		const struct story_of_two how = {
			.back_ahead_ns = offsets[i], .forth_ns = 60 * US, .back_ns = 60 * US, .first_seq = 1000};
		struct arena *arena = arena__new();
		const struct cause *cause;
		struct story story;
		struct two two;

		two_make(&two, &how);
		CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT);
		CU_ASSERT_EQUAL(two.report.path->join.ambiguous, 0);
		CU_ASSERT_EQUAL(two.report.path->join.unknown_peer, 0);
		assert_offset(&two, offsets[i]);
		CU_ASSERT(only_link(&two)->uncertainty_ns < 100 * US);
		CU_ASSERT_EQUAL(wrong_sums(&two), 0);
		/* A late one, and its far half is no more uncertain than the clocks. */
		story_of(&story, &two, FRONT_SESSION, 6, arena);
		CU_ASSERT_EQUAL(story.end_ts - story.begin_ts,
				0 + 20 * US + 50 * US + 100 * US + LOCK_NS + 60 * US + 5 * US + 60 * US + 0 * US);
		CU_ASSERT_EQUAL(far_ns(&story, "back", "vacuum", WL_CATEGORY_LOCK), LOCK_NS);
		CU_ASSERT_FALSE(story.path_flags & (PATH_AMBIGUOUS | PATH_LOOP | PATH_NO_EDGE));
		/* The same numbers for threads on both hosts are no loop. */
		CU_ASSERT_STRING_EQUAL(story.host, "front");
		/* First in the ranking, for both types at once. */
		CU_ASSERT_FATAL(two.report.cause_cnt > 0);
		cause = &two.report.causes[0];
		CU_ASSERT_EQUAL(cause->category, WL_CATEGORY_LOCK);
		CU_ASSERT_STRING_EQUAL(cause->culprit_comm, "vacuum");
		CU_ASSERT_STRING_EQUAL(cause->culprit_host, "back");
		CU_ASSERT(cause->share > 0.95);
		arena__free(arena);
		two_free(&two);
	}
}

/* Requests of both hosts have the same numbers, and so have their threads. */
static void a_request_of_one_host_asks_for_one_of_the_other(void)
{
	const struct story_of_two how = {
		.back_ahead_ns = 7200 * (int64_t)S, .forth_ns = 60 * US, .back_ns = 60 * US, .first_seq = 1000};
	struct fronts fronts;
	size_t right = 0;
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL_FATAL(fronts__make(&fronts, &two.traces), 0);
	CU_ASSERT_EQUAL(fronts.links[FRONT_ASKED], CNT);
	CU_ASSERT_EQUAL(fronts.links[FRONT_OUTSIDE], CNT);
	for (size_t i = 0; i < two.traces.intervals.cnt; i++) {
		const struct trace_interval *interval = &two.traces.intervals.items[i], *front;

		if (strcmp(traces_string(&two.traces, interval->base.type), "tcp:7000") != 0)
			continue;
		front = &two.traces.intervals.items[fronts.of[i].front];
		right += !strcmp(traces_string(&two.traces, front->base.type), "tcp:80") &&
			 front->base.sid == interval->base.sid &&
			 !strcmp(fronts_string(&fronts, fronts.programs[i]), "db on back");
	}
	CU_ASSERT_EQUAL(right, CNT);
	fronts__free(&fronts);
	two_free(&two);
}

static void asymmetric_delays_and_drift_are_within_what_is_said(void)
{
	const struct story_of_two how = {.back_ahead_ns = 300 * (int64_t)S,
					 .drift_ppm = 25,
					 .forth_ns = 20 * US,
					 .back_ns = 900 * US,
					 .first_seq = 1};
	struct arena *arena = arena__new();
	const struct join_line *link;
	struct story story;
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(wrong_sums(&two), 0);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT);
	link = only_link(&two);
	/* Half of what is under way is what nobody can tell from an offset. */
	CU_ASSERT(link->uncertainty_ns >= 460 * US && link->uncertainty_ns < 700 * US);
	CU_ASSERT_DOUBLE_EQUAL(fabs(link->drift_ppm), 25, 3);
	story_of(&story, &two, FRONT_SESSION, 1016, arena);
	CU_ASSERT(llabs((int64_t)far_ns(&story, "back", "vacuum", WL_CATEGORY_LOCK) - (int64_t)LOCK_NS) <= (int64_t)MS);
	/* Of the host whose clock is not the common one, too: its own latency, to the nanosecond. */
	story_of(&story, &two, BACK_SESSION, 1016, arena);
	CU_ASSERT_EQUAL(story.steps[0].begin_ts, story.begin_ts);
	CU_ASSERT_EQUAL(story.steps[story.step_cnt - 1].end_ts, story.end_ts);
	arena__free(arena);
	two_free(&two);
}

static void sequence_numbers_wrap_round(void)
{
	const struct story_of_two how = {.forth_ns = 60 * US, .back_ns = 60 * US, .first_seq = UINT32_MAX - 70070};
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT);
	two_free(&two);
}

static void translated_addresses_are_said_and_not_guessed(void)
{
	const struct story_of_two how = {.translated = true, .forth_ns = 60 * US, .back_ns = 60 * US};
	struct arena *arena = arena__new();
	struct story story;
	struct two two;
	FILE *out = tmpfile();
	char text[16384];
	size_t len;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 0);
	CU_ASSERT_EQUAL(two.report.path->join.line_cnt, 0);
	CU_ASSERT_EQUAL(two.report.path->join.unknown_peer, 2 * CNT);
	story_of(&story, &two, FRONT_SESSION, 6, arena);
	CU_ASSERT_EQUAL(far_ns(&story, "back", "vacuum", WL_CATEGORY_LOCK), 0);
	CU_ASSERT_FATAL(out != NULL);
	CU_ASSERT_EQUAL(view_text(out, &two.report, &(struct view_opts){.top = 10}), 0);
	rewind(out);
	len = fread(text, 1, sizeof(text) - 1, out);
	text[len] = '\0';
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "From host to host"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "6,000 of 6000 messages received came from peers that no recording here knows"));
	fclose(out);
	arena__free(arena);
	two_free(&two);
}

static void what_was_not_kept_stays_a_wait_for_the_network(void)
{
	const struct story_of_two how = {.lose_some = true, .forth_ns = 60 * US, .back_ns = 60 * US};
	struct arena *arena = arena__new();
	struct story story;
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT / 3 * 2);
	CU_ASSERT_EQUAL(two.report.path->join.not_kept, CNT / 3);
	CU_ASSERT_EQUAL(wrong_sums(&two), 0);
	story_of(&story, &two, FRONT_SESSION, 6, arena);
	CU_ASSERT_EQUAL(far_ns(&story, "back", "vacuum", WL_CATEGORY_LOCK), LOCK_NS);
	/* 15 is late and a third one. */
	story_of(&story, &two, FRONT_SESSION, 16, arena);
	CU_ASSERT_EQUAL(far_ns(&story, "back", "vacuum", WL_CATEGORY_LOCK), 0);
	arena__free(arena);
	two_free(&two);
}

static void one_direction_joins_nothing(void)
{
	const struct story_of_two how = {.one_way = true, .forth_ns = 60 * US, .back_ns = 60 * US};
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 0);
	CU_ASSERT_EQUAL(two.report.path->join.clockless, CNT);
	CU_ASSERT_EQUAL(two.report.path->join.unknown_peer, CNT);
	two_free(&two);
}

/* Among the sends that a message may be there is a second one: much later, then it is not that one; or near. */
static void what_may_have_been_sent_twice_is_ambiguous_and_blames_nobody(void)
{
	const struct story_of_two how = {.sent_twice = true, .forth_ns = 60 * US, .back_ns = 60 * US};
	struct arena *arena = arena__new();
	struct story story;
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.ambiguous, CNT / 100);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT - CNT / 100);
	CU_ASSERT_EQUAL(wrong_sums(&two), 0);
	story_of(&story, &two, FRONT_SESSION, 101, arena);
	CU_ASSERT(story.path_flags & PATH_AMBIGUOUS);
	for (size_t i = 0; i < two.report.path->line_cnt; i++)
		CU_ASSERT(!two.report.path->lines[i].culprit_comm ||
			  strcmp(two.report.path->lines[i].culprit_comm, "vacuum") ||
			  two.report.path->lines[i].category == WL_CATEGORY_LOCK);
	CU_ASSERT(two.report.path->ambiguous_share > 0);
	arena__free(arena);
	two_free(&two);
}

static void retransmissions_do_not_move_the_clocks(void)
{
	const struct story_of_two how = {
		.retransmitted = true, .back_ahead_ns = -(int64_t)S, .forth_ns = 60 * US, .back_ns = 60 * US};
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT);
	CU_ASSERT(only_link(&two)->uncertainty_ns < 100 * US);
	assert_offset(&two, -(int64_t)S);
	two_free(&two);
}

/* Loopback addresses are other ones on every host. */
static void two_recordings_of_one_host_are_joined_as_well(void)
{
	const struct story_of_two how = {.forth_ns = 10 * US, .back_ns = 10 * US, .front = "one", .back = "one"};
	struct arena *arena = arena__new();
	struct story story;
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(two.report.path->join.joined, 2 * CNT);
	story_of(&story, &two, FRONT_SESSION, 6, arena);
	for (size_t i = 0; i < story.step_cnt; i++)
		CU_ASSERT_PTR_NULL(story.steps[i].culprit_host);
	arena__free(arena);
	two_free(&two);
}

static void exports_have_both_hosts_on_one_axis(void)
{
	const struct story_of_two how = {.back_ahead_ns = 9000 * (int64_t)S, .forth_ns = 60 * US, .back_ns = 60 * US};
	FILE *out = tmpfile();
	struct two two;
	char *bytes;
	long len;

	two_make(&two, &how);
	CU_ASSERT_FATAL(out != NULL);
	CU_ASSERT_EQUAL(export_perfetto(out, &two.traces, NULL), 0);
	len = ftell(out);
	CU_ASSERT_FATAL(len > 0);
	bytes = malloc((size_t)len);
	rewind(out);
	CU_ASSERT_EQUAL(fread(bytes, 1, (size_t)len, out), (size_t)len);
	CU_ASSERT_PTR_NOT_NULL(memmem(bytes, (size_t)len, "front: web 100", 14));
	CU_ASSERT_PTR_NOT_NULL(memmem(bytes, (size_t)len, "back: db 100", 12));
	/* One clock: every segment of both hosts lies in the 30 seconds that it all took. */
	for (size_t s = 0; s < two.traces.sessions.cnt; s++) {
		const struct trace_session *session = &two.traces.sessions.items[s];

		for (size_t t = 0; t < session->tids.cnt; t++) {
			struct graph_segment *segments;
			size_t cnt;

			segments = graph__segments(session->graph, session->tids.items[t], 0, UINT64_MAX, &cnt);
			CU_ASSERT_FATAL(cnt > 0);
			CU_ASSERT(segments[0].begin_ts >= STARTED + 9000 * S - MS);
			CU_ASSERT(segments[cnt - 1].end_ts <= STARTED + 9031 * S);
		}
	}
	free(bytes);
	fclose(out);
	two_free(&two);
}

/* How often each of two texts is in the lines. */
static void count_lines(FILE *out, const char *a, const char *b, size_t *a_cnt, size_t *b_cnt)
{
	char line[4096];

	*a_cnt = *b_cnt = 0;
	rewind(out);
	while (fgets(line, sizeof(line), out)) {
		*a_cnt += strstr(line, a) != NULL;
		*b_cnt += strstr(line, b) != NULL;
	}
	fclose(out);
}

/* Sessions, hosts and threads have the same numbers on both, and names that are the same are told apart by the host. */
static void exports_tell_the_hosts_apart(void)
{
	const struct story_of_two how = {.forth_ns = 60 * US, .back_ns = 60 * US};
	size_t front_cnt, back_cnt;
	FILE *out = tmpfile();
	struct two two;

	two_make(&two, &how);
	CU_ASSERT_EQUAL(export_folded(out, &two.dataset, &two.paths), 0);
	count_lines(out, "tcp:80;io.net;vacuum on back;lock;db+0x88 1500000000",
		    "tcp:7000;lock;vacuum on back;lock;db+0x88 1500000000", &front_cnt, &back_cnt);
	CU_ASSERT_EQUAL(front_cnt, 1);
	CU_ASSERT_EQUAL(back_cnt, 1);
	shard_reader__rewind(two.reader);
	out = tmpfile();
	CU_ASSERT_EQUAL(export_jsonl(out, two.reader, "interval"), 0);
	count_lines(out, "\"session\":\"00000000000000a1\"", "\"session\":\"00000000000000b2\"", &front_cnt, &back_cnt);
	CU_ASSERT_EQUAL(front_cnt, CNT);
	CU_ASSERT_EQUAL(back_cnt, CNT);
	shard_reader__rewind(two.reader);
	out = tmpfile();
	CU_ASSERT_EQUAL(export_csv(out, two.reader, "session"), 0);
	count_lines(out, "a1,0,comm,web", "b2,0,comm,db", &front_cnt, &back_cnt);
	CU_ASSERT_EQUAL(front_cnt, 1);
	CU_ASSERT_EQUAL(back_cnt, 1);
	two_free(&two);
}

static const struct unit_test tests[] = {
	{"a request that crosses is one chain", a_request_that_crosses_is_one_chain},
	{"a request of one host asks for one of the other", a_request_of_one_host_asks_for_one_of_the_other},
	{"asymmetric delays and drift are within what is said", asymmetric_delays_and_drift_are_within_what_is_said},
	{"sequence numbers wrap round", sequence_numbers_wrap_round},
	{"translated addresses are said and not guessed", translated_addresses_are_said_and_not_guessed},
	{"what was not kept stays a wait for the network", what_was_not_kept_stays_a_wait_for_the_network},
	{"one direction joins nothing", one_direction_joins_nothing},
	{"what may have been sent twice is ambiguous and blames nobody",
	 what_may_have_been_sent_twice_is_ambiguous_and_blames_nobody},
	{"retransmissions do not move the clocks", retransmissions_do_not_move_the_clocks},
	{"two recordings of one host are joined as well", two_recordings_of_one_host_are_joined_as_well},
	{"exports have both hosts on one axis", exports_have_both_hosts_on_one_axis},
	{"exports tell the hosts apart", exports_tell_the_hosts_apart},
};

int suite_stitch(void)
{
	return unit_suite("stitch", tests, sizeof(tests) / sizeof(tests[0]));
}
