// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/random.h"
#include "model/stack_samples.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MAX 64

struct seen {
	struct stack_sample samples[SEEN_MAX];
	char frames[SEEN_MAX][32];
	size_t cnt, seen_cnt, doubted_cnt;
	bool is_ambiguous;
	double seen_ns;
	int err;
};

static int give(void *owner, const struct stack_sample *sample)
{
	struct seen *seen = owner;

	CU_ASSERT_FATAL(seen->cnt < SEEN_MAX);
	snprintf(seen->frames[seen->cnt], sizeof(seen->frames[0]), "%s", sample->user->frames);
	seen->samples[seen->cnt++] = *sample;
	return seen->err;
}

static int see(void *owner, const struct stack_sample *sample)
{
	struct seen *seen = owner;

	seen->seen_cnt++;
	seen->seen_ns += sample->weight_ns;
	return 0;
}

static void doubt(void *owner, uint64_t key, bool is_ambiguous)
{
	struct seen *seen = owner;

	(void)key;
	seen->doubted_cnt++;
	seen->is_ambiguous = is_ambiguous;
}

struct bench {
	struct seen seen;
	struct stack_texts *texts;
	struct stack_samples *samples;
	struct stack_sample_counts counts;
};

static void begin(struct bench *bench)
{
	struct stack_sinks sinks = {.give = give, .see = see, .doubt = doubt, .owner = &bench->seen};

	memset(bench, 0, sizeof(*bench));
	bench->texts = stack_texts__new();
	CU_ASSERT_FATAL(bench->texts != NULL);
	bench->samples = stack_samples__new(bench->texts, &sinks);
	CU_ASSERT_FATAL(bench->samples != NULL);
}

/* Nothing is lost without being counted. */
static void end(struct bench *bench)
{
	CU_ASSERT_EQUAL(stack_samples__finish(bench->samples), 0);
	stack_samples__counts(bench->samples, &bench->counts);
	CU_ASSERT_EQUAL(bench->counts.open, 0);
	CU_ASSERT_EQUAL(bench->counts.taken, bench->counts.given + bench->counts.forgotten);
	CU_ASSERT_EQUAL(bench->counts.taken, bench->seen.seen_cnt);
	stack_samples__free(bench->samples);
	stack_texts__free(bench->texts);
}

static struct stack_text *text(struct bench *bench, const char *frames)
{
	struct stack_text *made = stack_texts__get(bench->texts, frames, true, 0, NULL, 0);

	CU_ASSERT_FATAL(made != NULL);
	return made;
}

static void tick(struct bench *bench, uint64_t ts, uint64_t sid, uint32_t delays, uint32_t rate, const char *frames)
{
	struct wl_stack_record record = {.ts = ts,
					 .sid = sid,
					 .period_ns = 5000,
					 .pid = 1,
					 .tid = 2,
					 .rate = rate,
					 .delays = delays,
					 .state = WL_STATE_RUNNING};

	CU_ASSERT_EQUAL(stack_samples__take(bench->samples, &record, text(bench, frames), NULL, NULL), 0);
}

static void copy(struct bench *bench, uint64_t ts, uint32_t tid, uint64_t key, const char *frames)
{
	struct wl_stack_record record = {
		.ts = ts, .key = key, .pid = 1, .tid = tid, .state = WL_STATE_BLOCKED_FUTEX, .flags = WL_STACK_WAITS};

	CU_ASSERT_EQUAL(
		stack_samples__take(bench->samples, &record, text(bench, frames), text(bench, "schedule"), NULL), 0);
}

static void wait(struct bench *bench, uint64_t ts, uint32_t tid, uint64_t sid, uint64_t key, uint64_t blocked_ns,
		 uint64_t runq_ns, uint32_t chance)
{
	struct wl_stack_wait_record record = {.ts = ts,
					      .sid = sid,
					      .key = key,
					      .object = 99,
					      .blocked_ns = blocked_ns,
					      .runq_ns = runq_ns,
					      .pid = 1,
					      .tid = tid,
					      .chance = chance,
					      .state = WL_STATE_BLOCKED_FUTEX};

	CU_ASSERT_EQUAL(stack_samples__take_wait(bench->samples, &record), 0);
}

static void ended(struct bench *bench, uint64_t sid, uint64_t begin_ts, uint64_t end_ts, double weight)
{
	CU_ASSERT_EQUAL(stack_samples__interval(bench->samples, sid, begin_ts, end_ts, weight), 0);
}

static void advance(struct bench *bench, uint64_t ts)
{
	CU_ASSERT_EQUAL(stack_samples__advance(bench->samples, ts), bench->seen.err);
}

static void samples_go_with_their_interval(void)
{
	struct bench bench;

	begin(&bench);
	tick(&bench, 10, 7, 0, 0, "kept");
	tick(&bench, 11, 8, 0, 1U << 30, "passed over");
	tick(&bench, 12, 9, 0, 0, "never ended");
	/* The interval's record comes out of another ring, before the sample. */
	ended(&bench, 7, 5, 20, 3);
	ended(&bench, 8, 5, 21, 0);
	advance(&bench, 15);
	CU_ASSERT_EQUAL(bench.seen.cnt, 0);
	tick(&bench, 18, 7, 0, 0, "kept, too");
	advance(&bench, 30);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(bench.seen.samples[i].sid, 7);
		CU_ASSERT_DOUBLE_EQUAL(bench.seen.samples[i].weight_ns, 15000, 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(bench.seen.samples[i].period_ns, 5000, 1e-9);
		CU_ASSERT_EQUAL(bench.seen.samples[i].end_ts, 0);
	}
	/* What is seen of all of them has the weight of the selection only. */
	CU_ASSERT_DOUBLE_EQUAL(bench.seen.seen_ns, 5000 + 20000 + 5000 + 5000, 1e-9);
	end(&bench);
	CU_ASSERT_EQUAL(bench.counts.forgotten, 2);
}

static void what_delays_is_kept_with_what_it_delayed(void)
{
	struct bench bench;

	begin(&bench);
	tick(&bench, 10, 0, 1, 1U << 31, "hog");
	tick(&bench, 20, 0, 2, 0, "hog, nobody kept");
	tick(&bench, 30, 5, 1, 0, "another request");
	tick(&bench, 31, 6, 1, 0, "a kept one, too");
	tick(&bench, 32, 5, 0, 0, "it delays nobody");
	advance(&bench, 40);
	ended(&bench, 1, 9, 12, 4);
	ended(&bench, 2, 19, 22, 0);
	/* The one that was delayed ends first, and then the one that delayed it, which is not kept. */
	ended(&bench, 3, 29, 45, 1);
	advance(&bench, 50);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 1);
	CU_ASSERT_STRING_EQUAL(bench.seen.frames[0], "hog");
	CU_ASSERT_EQUAL(bench.seen.samples[0].delays, 1);
	CU_ASSERT_DOUBLE_EQUAL(bench.seen.samples[0].weight_ns, 10000, 1e-9);
	ended(&bench, 5, 25, 55, 0);
	ended(&bench, 6, 25, 56, 2);
	advance(&bench, 60);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 3);
	CU_ASSERT_STRING_EQUAL(bench.seen.frames[1], "another request");
	CU_ASSERT_EQUAL(bench.seen.samples[1].sid, 0);
	CU_ASSERT_STRING_EQUAL(bench.seen.frames[2], "a kept one, too");
	CU_ASSERT_EQUAL(bench.seen.samples[2].sid, 6);
	CU_ASSERT_DOUBLE_EQUAL(bench.seen.samples[2].weight_ns, 10000, 1e-9);
	end(&bench);

	/* The other way round. */
	begin(&bench);
	tick(&bench, 30, 5, 1, 0, "another request");
	ended(&bench, 5, 25, 35, 0);
	advance(&bench, 40);
	CU_ASSERT_EQUAL(bench.seen.cnt, 0);
	ended(&bench, 3, 29, 45, 1);
	advance(&bench, 50);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 1);
	CU_ASSERT_EQUAL(bench.seen.samples[0].sid, 0);
	end(&bench);
}

static void what_belongs_to_nobody_is_given_at_once(void)
{
	struct bench bench;

	begin(&bench);
	tick(&bench, 10, 0, 0, 0, "idle work");
	advance(&bench, 20);
	CU_ASSERT_EQUAL(bench.seen.cnt, 1);
	end(&bench);
}

static void a_wait_has_the_stack_of_its_key(void)
{
	struct bench bench;

	begin(&bench);
	ended(&bench, 7, 1, 1000, 1);
	wait(&bench, 300, 3, 7, 42, 100, 11, 0); /* of another thread, and before the copy in its ring */
	copy(&bench, 10, 2, 42, "main;lock");
	wait(&bench, 10, 2, 7, 42, 50, 0, 0);
	wait(&bench, 500, 2, 7, 42, 4, 0, 1U << 30);
	wait(&bench, 600, 2, 7, 43, 20, 0, 0);
	advance(&bench, 2000);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 5);
	double sum = 0;
	for (size_t i = 0; i < 5; i++) {
		const struct stack_sample *sample = &bench.seen.samples[i];

		sum += sample->weight_ns;
		CU_ASSERT_STRING_EQUAL(bench.seen.frames[i], sample->ts == 600 ? "[unknown]" : "main;lock");
		CU_ASSERT(sample->end_ts > sample->ts);
		if (sample->ts == 400) {
			CU_ASSERT_EQUAL(sample->state, WL_STATE_RUNQ_WAKEUP);
			CU_ASSERT(sample->end_ts == 411 && sample->object == 0);
		} else {
			CU_ASSERT_EQUAL(sample->state, WL_STATE_BLOCKED_FUTEX);
			CU_ASSERT_EQUAL(sample->object, 99);
		}
	}
	/* The short one was recorded with a chance of 1/4. */
	CU_ASSERT_DOUBLE_EQUAL(sum, 100 + 11 + 50 + 4 * 4 + 20, 1e-9);
	CU_ASSERT(bench.seen.doubted_cnt == 1 && !bench.seen.is_ambiguous);
	end(&bench);
	CU_ASSERT(bench.counts.unknown == 1 && bench.counts.keys == 1 && bench.counts.checks == 0);
}

static void a_check_finds_another_stack(void)
{
	struct bench bench;

	begin(&bench);
	ended(&bench, 7, 1, 1000, 1);
	copy(&bench, 10, 2, 42, "main;once");
	copy(&bench, 20, 2, 42, "main;once");
	copy(&bench, 30, 2, 42, "main;twice");
	copy(&bench, 40, 3, 42, "main;once");
	wait(&bench, 30, 2, 7, 42, 5, 5, 0);
	wait(&bench, 40, 3, 7, 42, 5, 0, 0);
	wait(&bench, 50, 3, 7, 42, 5, 0, 0); /* without a copy nobody knows */
	advance(&bench, 2000);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 4);
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_STRING_EQUAL(bench.seen.frames[i], bench.seen.samples[i].ts < 40   ? "main;twice"
							     : bench.seen.samples[i].ts < 50 ? "main;once"
											     : "[unknown]");
	CU_ASSERT(bench.seen.doubted_cnt == 1 && bench.seen.is_ambiguous);
	end(&bench);
	CU_ASSERT(bench.counts.checks == 3 && bench.counts.wrong == 2 && bench.counts.wrong_keys == 1);
}

/* Against what is to be kept by definition, whatever the order in which rings are read. */
static void any_order_of_the_rings_gives_the_same(void)
{
	uint64_t state = 20261123;

	for (int round = 0; round < 200; round++) {
		enum { INTERVALS = 8, SAMPLES = 24 };
		uint64_t begin_ts[INTERVALS], end_ts[INTERVALS], ts[SAMPLES];
		uint32_t sid[SAMPLES], delays[SAMPLES];
		bool kept[INTERVALS], told[INTERVALS] = {0}, sent[SAMPLES] = {0};
		size_t want = 0;
		struct bench bench;

		begin(&bench);
		for (int i = 0; i < INTERVALS; i++) {
			begin_ts[i] = 1 + random_next(&state) % 400;
			end_ts[i] = begin_ts[i] + 1 + random_next(&state) % 100;
			kept[i] = random_next(&state) % 2;
		}
		for (int i = 0; i < SAMPLES; i++) {
			sid[i] = random_next(&state) % (INTERVALS + 1);
			delays[i] = random_next(&state) % 2 || !sid[i];
			ts[i] = 1 + random_next(&state) % 500;
			if (sid[i])
				ts[i] = begin_ts[sid[i] - 1] + ts[i] % (end_ts[sid[i] - 1] - begin_ts[sid[i] - 1] + 1);
			bool is_kept = sid[i] && kept[sid[i] - 1];
			for (int j = 0; j < INTERVALS; j++)
				is_kept |= delays[i] && kept[j] && begin_ts[j] <= ts[i] && ts[i] <= end_ts[j];
			want += is_kept;
		}
		for (uint64_t now = 50; now <= 650; now += 50) {
			/* What was sent until now comes, in any order, and some of what comes next. */
			for (int i = 0; i < INTERVALS; i++)
				if (!told[i] && end_ts[i] <= now + (random_next(&state) % 50)) {
					told[i] = true;
					ended(&bench, i + 1, begin_ts[i], end_ts[i], kept[i]);
				}
			for (int i = SAMPLES; i-- > 0;)
				if (!sent[i] && ts[i] <= now + (random_next(&state) % 50)) {
					sent[i] = true;
					tick(&bench, ts[i], sid[i], delays[i], 0, "any");
				}
			advance(&bench, now);
		}
		CU_ASSERT_EQUAL(bench.seen.cnt, want);
		end(&bench);
	}
}

static void memory_is_bounded_and_what_goes_is_counted(void)
{
	struct bench bench;

	begin(&bench);
	for (uint32_t i = 0; i < 200000; i++) {
		tick(&bench, 1000 + i, 1 + i % 50, 0, 0, "any");
		copy(&bench, 1000 + i, i % 10000 + 1, i, "any");
		if (i % 1000 == 999)
			advance(&bench, 1000 + i);
	}
	stack_samples__counts(bench.samples, &bench.counts);
	CU_ASSERT_EQUAL(bench.counts.taken, 200000);
	CU_ASSERT(bench.counts.open <= 65536);
	CU_ASSERT_EQUAL(bench.counts.crowded + bench.counts.open, 200000);
	CU_ASSERT_EQUAL(bench.counts.keys, 200000);
	end(&bench);
}

/* Woken at once, and then runnable for 200 ns: one sample, and none of a wait without length. */
static void a_wait_without_length_is_no_sample(void)
{
	struct bench bench;

	begin(&bench);
	copy(&bench, 500, 7, 3, "main;lock");
	wait(&bench, 500, 7, 1, 3, 0, 200, 0);
	ended(&bench, 1, 400, 900, 1);
	advance(&bench, 1000);
	CU_ASSERT_EQUAL_FATAL(bench.seen.cnt, 1);
	CU_ASSERT_EQUAL(bench.seen.samples[0].state, WL_STATE_RUNQ_WAKEUP);
	CU_ASSERT(bench.seen.samples[0].ts == 500 && bench.seen.samples[0].end_ts == 700);
	end(&bench);
}

static void what_cannot_be_true_is_counted(void)
{
	struct wl_stack_record record = {.ts = 1, .tid = 2, .state = WL_STATE_CNT};
	struct wl_stack_wait_record bad = {.ts = 1, .tid = 0, .blocked_ns = 1};
	struct bench bench;

	begin(&bench);
	CU_ASSERT_EQUAL(stack_samples__take(bench.samples, &record, text(&bench, "x"), NULL, NULL), 0);
	record.state = WL_STATE_RUNNING;
	record.tid = 0;
	CU_ASSERT_EQUAL(stack_samples__take(bench.samples, &record, text(&bench, "x"), NULL, NULL), 0);
	CU_ASSERT_EQUAL(stack_samples__take_wait(bench.samples, &bad), 0);
	bad.tid = 1;
	bad.blocked_ns = UINT64_MAX;
	CU_ASSERT_EQUAL(stack_samples__take_wait(bench.samples, &bad), 0);
	bad.runq_ns = 2;
	CU_ASSERT_EQUAL(stack_samples__take_wait(bench.samples, &bad), 0);
	CU_ASSERT_EQUAL(bench.seen.cnt, 0);
	end(&bench);
	CU_ASSERT_EQUAL(bench.counts.impossible, 5);
	stack_samples__free(NULL);
	stack_texts__free(NULL);
}

static void a_sink_that_fails_ends_the_call(void)
{
	struct bench bench;

	begin(&bench);
	tick(&bench, 10, 7, 0, 0, "kept");
	ended(&bench, 7, 5, 20, 3);
	bench.seen.err = -EIO;
	advance(&bench, 30);
	bench.seen.err = 0;
	end(&bench);
}

static void equal_texts_are_one(void)
{
	struct stack_texts *texts = stack_texts__new();
	struct hot_frame hot[2] = {{.function = 1}, {.function = 2}};
	struct stack_text *one = stack_texts__get(texts, "a;b", true, 0, hot, 2);
	struct stack_text *two = stack_texts__get(texts, "a;b", true, 0, hot, 2);
	struct stack_text *cut = stack_texts__get(texts, "a;b", false, 0, NULL, 0);
	struct stack_text *other = stack_texts__get(texts, "a;c", true, 1, NULL, 0);

	CU_ASSERT_PTR_EQUAL(one, two);
	CU_ASSERT(one != cut && one != other);
	CU_ASSERT(one->hot_cnt == 2 && one->hot[1].function == 2);
	stack_texts__drop(texts, one);
	CU_ASSERT_STRING_EQUAL(two->frames, "a;b");
	stack_texts__drop(texts, two);
	stack_texts__drop(texts, other);
	stack_texts__drop(texts, cut);
	stack_texts__drop(texts, NULL);
	stack_texts__free(texts);
}

/* Found by fuzzing: they were never freed. */
static void values_of_a_wait_are_dropped(void)
{
	struct wl_stack_record record = {
		.ts = 1, .key = 9, .pid = 1, .tid = 2, .state = WL_STATE_BLOCKED_FUTEX, .flags = WL_STACK_WAITS};
	struct stack_values *values = calloc(1, sizeof(*values) + sizeof(values->items[0]));
	struct bench bench;

	begin(&bench);
	CU_ASSERT_PTR_NOT_NULL_FATAL(values);
	values->cnt = 1;
	CU_ASSERT_EQUAL(stack_samples__take(bench.samples, &record, text(&bench, "a"), NULL, values), 0);
	end(&bench);
}

int suite_stack_samples(void)
{
	static const struct unit_test tests[] = {
		{"samples go with their interval", samples_go_with_their_interval},
		{"what delays is kept with what it delayed", what_delays_is_kept_with_what_it_delayed},
		{"what belongs to nobody is given at once", what_belongs_to_nobody_is_given_at_once},
		{"a wait has the stack of its key", a_wait_has_the_stack_of_its_key},
		{"a check finds another stack", a_check_finds_another_stack},
		{"any order of the rings gives the same", any_order_of_the_rings_gives_the_same},
		{"memory is bounded and what goes is counted", memory_is_bounded_and_what_goes_is_counted},
		{"a wait without length is no sample", a_wait_without_length_is_no_sample},
		{"what cannot be true is counted", what_cannot_be_true_is_counted},
		{"a sink that fails ends the call", a_sink_that_fails_ends_the_call},
		{"equal texts are one", equal_texts_are_one},
		{"values of a wait are dropped", values_of_a_wait_are_dropped},
	};

	return unit_suite("stack_samples", tests, sizeof(tests) / sizeof(tests[0]));
}
