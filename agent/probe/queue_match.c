// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/queue_match.h"

#include "base/order.h"

#include <errno.h>
#include <string.h>

#define CROSSED_MIN    8
#define SAME_SHARE_MAX 0.02
#define MATCHED_MIN    0.9 /* of the values that are taken out */
#define LEFT_MAX       0.5 /* of what goes in and never comes out here */
#define DEEP_MIN       10  /* takings while several were in */
#define NEWEST_MIN     0.9
#define ONCE_MIN       0.98 /* of the values that cross, are others than before */
#define ONCE_CNT_MIN   200
#define BACK_SHARE     0.5
#define THREADS_MAX    256
#define STAGES_MAX     64 /* threads of stages, each with a queue of its own */
#define NEIGHBOURS     16
#define NUMBER_MAX     0x10000 /* no pointer: may be a descriptor */

/* A value of a pair: in the queue, or taken out of it. */
struct entry {
	struct queue_value last;
	bool is_in;
};

/* A value's time in the queue. */
struct stay {
	uint64_t in_ts, out_ts, lock;
};

struct threads {
	uint32_t tids[THREADS_MAX];
	uint32_t cnt;
};

/* Which thread's values which other one took. */
struct flow {
	uint32_t tids[STAGES_MAX];
	uint64_t to[STAGES_MAX]; /* bits of tids */
	uint32_t cnt;
	bool full;
};

struct matcher {
	struct queue_pair *pair;
	bool awaited; /* a thread waits for values, or polls for them */
	VEC(struct entry) entries;
	uint32_t *table; /* index of an entry, + 1 */
	size_t table_sz;
	struct threads in_threads, out_threads;
	struct flow flow;
	VEC(uint64_t) waits_ns;
	VEC(struct stay) stays; /* of those that crossed */
	VEC(uint64_t) values;   /* that crossed */
};

struct pair_values {
	VEC(uint64_t) values;
	struct threads in_threads, out_threads;
};

ORDER(ts_cmp, struct queue_value, BY(a->ts, b->ts), BY(a->place, b->place));

ORDER(u64_cmp, uint64_t, BY(*a, *b));

/* --- values ------------------------------------------------------------------------------------------------------- */

/* No error code, no NULL. */
static bool is_value(const struct queue_value *value)
{
	return value->value && value->value < (uint64_t)-4096 && value->value != UINT32_MAX;
}

static uint32_t *bucket_of(struct matcher *matcher, uint64_t value)
{
	uint64_t hash = value * 0x9e3779b97f4a7c15ULL;
	size_t at = (hash >> 20) & (matcher->table_sz - 1);

	while (matcher->table[at] && matcher->entries.items[matcher->table[at] - 1].last.value != value)
		at = (at + 1) & (matcher->table_sz - 1);
	return &matcher->table[at];
}

static void thread_add(struct threads *threads, uint32_t tid)
{
	for (uint32_t i = 0; i < threads->cnt; i++)
		if (threads->tids[i] == tid)
			return;
	if (threads->cnt < THREADS_MAX)
		threads->tids[threads->cnt++] = tid;
}

static uint64_t threads_set(const struct threads *threads)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < threads->cnt; i++)
		set |= 1ULL << threads->tids[i] % 64;
	return set;
}

static uint32_t flow__thread(struct flow *flow, uint32_t tid)
{
	uint32_t idx = 0;

	while (idx < flow->cnt && flow->tids[idx] != tid)
		idx++;
	if (idx == STAGES_MAX) {
		flow->full = true;
		return 0;
	}
	if (idx == flow->cnt)
		flow->tids[flow->cnt++] = tid;
	return idx;
}

static void flow__add(struct flow *flow, uint32_t in_tid, uint32_t out_tid)
{
	uint32_t from = flow__thread(flow, in_tid), to = flow__thread(flow, out_tid);

	flow->to[from] |= 1ULL << to;
}

/* Nothing comes back to a thread that it was handed on from, by whatever way. */
static bool flow__is_one_way(const struct flow *flow)
{
	uint64_t left = flow->cnt == STAGES_MAX ? UINT64_MAX : (1ULL << flow->cnt) - 1, before = 0;

	while (left != before && !flow->full) {
		before = left;
		for (uint32_t i = 0; i < flow->cnt; i++)
			if (!(flow->to[i] & left))
				left &= ~(1ULL << i);
	}
	return !left && !flow->full;
}

static bool threads_meet(const struct threads *a, const struct threads *b)
{
	for (uint32_t i = 0; i < a->cnt; i++)
		for (uint32_t j = 0; j < b->cnt; j++)
			if (a->tids[i] == b->tids[j])
				return true;
	return false;
}

/* --- one pair ----------------------------------------------------------------------------------------------------- */

static int value_in(struct matcher *matcher, const struct queue_value *value)
{
	uint32_t *bucket = bucket_of(matcher, value->value);

	matcher->pair->in_cnt++;
	thread_add(&matcher->in_threads, value->tid);
	if (!*bucket) {
		if (vec_push(&matcher->entries, (struct entry){0}))
			return -ENOMEM;
		*bucket = matcher->entries.cnt;
	}
	matcher->entries.items[*bucket - 1] = (struct entry){.last = *value, .is_in = true};
	return 0;
}

static int value_out(struct matcher *matcher, const struct queue_value *value)
{
	uint32_t *bucket = bucket_of(matcher, value->value);
	struct queue_pair *pair = matcher->pair;
	struct entry *entry = *bucket ? &matcher->entries.items[*bucket - 1] : NULL;
	bool locks = entry && entry->last.lock && value->lock;

	pair->out_cnt++;
	thread_add(&matcher->out_threads, value->tid);
	if (!entry || entry->last.pid != value->pid || (locks && entry->last.lock != value->lock) ||
	    (!locks && value->value < NUMBER_MAX)) {
		pair->unseen++;
		return 0;
	}
	if (!entry->is_in) {
		pair->again++;
		return 0;
	}
	entry->is_in = false;
	if (entry->last.tid == value->tid) {
		pair->same_thread++;
		return 0;
	}
	pair->crossed++;
	flow__add(&matcher->flow, entry->last.tid, value->tid);
	pair->lock_known |= locks;
	pair->pid = value->pid;
	pair->in_tid = entry->last.tid;
	pair->out_tid = value->tid;
	return vec_push(&matcher->waits_ns, value->ts - entry->last.ts) || vec_push(&matcher->values, value->value) ||
			       vec_push(&matcher->stays,
					((struct stay){entry->last.ts, value->ts, locks ? value->lock : 0}))
		       ? -ENOMEM
		       : 0;
}

ORDER(stay_cmp, struct stay, BY(a->in_ts, b->in_ts));

/*
 * Do the newest come out first while older ones, which come out later, stay?  In a queue they do not; a free list most
 * often has several.
 */
static bool is_newest_first(struct matcher *matcher)
{
	size_t deep = 0, newest = 0;

	vec_sort(&matcher->stays, stay_cmp);
	for (size_t i = 0; i < matcher->stays.cnt; i++) {
		const struct stay *stay = &matcher->stays.items[i];
		bool older = false, newer = false;

		for (size_t j = i > NEIGHBOURS ? i - NEIGHBOURS : 0; j < matcher->stays.cnt && j <= i + NEIGHBOURS;
		     j++) {
			const struct stay *other = &matcher->stays.items[j];
			bool together = j != i && other->lock == stay->lock && other->out_ts > stay->out_ts &&
					other->in_ts < stay->out_ts;

			older |= together && j < i;
			newer |= together && j > i;
		}
		deep += older || newer;
		newest += older && !newer;
	}
	return deep >= DEEP_MIN && newest >= NEWEST_MIN * deep;
}

/* values: ascending.  What a free list has comes again, where a list of work has other jobs each time. */
static bool is_once(const struct matcher *matcher)
{
	size_t cnt = matcher->values.cnt, different = 0;

	for (size_t i = 0; i < cnt; i++)
		different += !i || matcher->values.items[i] != matcher->values.items[i - 1];
	return cnt >= ONCE_CNT_MIN && different >= ONCE_MIN * cnt;
}

/*
 * Threads put in and take out: of one list or table, unless the same code serves the queues of several stages, of which
 * each thread takes from the one before.
 */
static bool is_shared(const struct matcher *matcher)
{
	return threads_meet(&matcher->in_threads, &matcher->out_threads) &&
	       !(matcher->awaited && flow__is_one_way(&matcher->flow));
}

static enum queue_verdict judge(struct matcher *matcher)
{
	const struct queue_pair *pair = matcher->pair;

	if (pair->crossed < CROSSED_MIN)
		return QUEUE_FEW;
	if (pair->same_thread > SAME_SHARE_MAX * (pair->crossed + pair->same_thread) || is_shared(matcher))
		return QUEUE_BOTH;
	if (pair->crossed < MATCHED_MIN * pair->out_cnt || pair->crossed < LEFT_MAX * pair->in_cnt)
		return QUEUE_UNMATCHED;
	if (is_newest_first(matcher) && !(matcher->awaited && is_once(matcher)))
		return QUEUE_NEWEST;
	return QUEUE_CONFIRMED;
}

static bool is_in_rounds(const struct queue_value *value, uint32_t rounds)
{
	return value->round < 32 && rounds >> value->round & 1;
}

/* in, out: values of each place, by time; only those of rounds in which both were watched count. */
static int pair_match(struct matcher *matcher, const queue_values *in, const queue_values *out, uint32_t rounds)
{
	size_t i = 0, j = 0;
	int err = 0;

	for (matcher->table_sz = 64; matcher->table_sz < 2 * in->cnt + 2;)
		matcher->table_sz *= 2;
	matcher->table = calloc(matcher->table_sz, sizeof(*matcher->table));
	if (!matcher->table)
		return -ENOMEM;
	while (!err && (i < in->cnt || j < out->cnt)) {
		bool goes_in = j == out->cnt || (i < in->cnt && in->items[i].ts <= out->items[j].ts);
		const struct queue_value *value = goes_in ? &in->items[i++] : &out->items[j++];

		if (is_in_rounds(value, rounds))
			err = goes_in ? value_in(matcher, value) : value_out(matcher, value);
	}
	if (err)
		return err;
	vec_sort(&matcher->waits_ns, u64_cmp);
	vec_sort(&matcher->values, u64_cmp);
	if (matcher->waits_ns.cnt)
		matcher->pair->median_ns = matcher->waits_ns.items[matcher->waits_ns.cnt / 2];
	matcher->pair->in_threads = matcher->in_threads.cnt;
	matcher->pair->out_threads = matcher->out_threads.cnt;
	matcher->pair->in_set = threads_set(&matcher->in_threads);
	matcher->pair->out_set = threads_set(&matcher->out_threads);
	matcher->pair->verdict = judge(matcher);
	return 0;
}

static void matcher_free(struct matcher *matcher)
{
	free(matcher->table);
	vec_free(&matcher->entries);
	vec_free(&matcher->waits_ns);
	vec_free(&matcher->stays);
	vec_free(&matcher->values);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

struct pairs_search {
	const struct queue_end *ends;
	queue_values *of_place;
	queue_pairs *pairs;
	VEC(struct pair_values) crossed; /* of each pair, ascending */
};

static bool values_meet(const queue_values *in, const queue_values *out)
{
	/* A look at a few of them is enough for most pairs, which have nothing in common. */
	for (size_t i = 0; i < out->cnt && i < 64; i++)
		for (size_t j = 0; j < in->cnt; j++)
			if (in->items[j].value == out->items[i].value)
				return true;
	return false;
}

static int pair_try(struct pairs_search *search, uint32_t in, uint32_t out)
{
	struct queue_pair pair = {.in = in, .out = out};
	struct matcher matcher = {
		.pair = &pair,
		.awaited = search->ends[in].known || search->ends[out].known || search->ends[out].polled,
	};
	int err;

	if (!values_meet(&search->of_place[in], &search->of_place[out]))
		return 0;
	err = pair_match(&matcher, &search->of_place[in], &search->of_place[out],
			 search->ends[in].rounds & search->ends[out].rounds);
	if (!err && (pair.crossed || pair.same_thread)) {
		struct pair_values crossed = {{matcher.values.items, matcher.values.cnt, matcher.values.room},
					      matcher.in_threads,
					      matcher.out_threads};

		err = vec_push(search->pairs, pair);
		if (!err)
			err = vec_push(&search->crossed, crossed);
		if (!err)
			memset(&matcher.values, 0, sizeof(matcher.values));
	}
	matcher_free(&matcher);
	return err;
}

/* What share of the values of one pair are among the other's? */
static double share_of(const struct pair_values *of, const struct pair_values *in)
{
	size_t common = 0, at = 0;

	for (size_t i = 0; i < of->values.cnt; i++) {
		while (at < in->values.cnt && in->values.items[at] < of->values.items[i])
			at++;
		common += at < in->values.cnt && in->values.items[at] == of->values.items[i];
	}
	return of->values.cnt ? (double)common / of->values.cnt : 0;
}

static bool is_known(const struct pairs_search *search, const struct queue_pair *pair)
{
	return search->ends[pair->in].known || search->ends[pair->out].known;
}

/* Where what one queue hands on is handed back by another, the one that nobody waits at is where it is kept. */
static void returns_mark(struct pairs_search *search)
{
	for (size_t i = 0; i < search->pairs->cnt; i++)
		for (size_t j = 0; j < search->pairs->cnt; j++) {
			struct queue_pair *back = &search->pairs->items[i];
			const struct queue_pair *there = &search->pairs->items[j];

			if (back->verdict != QUEUE_CONFIRMED || there->verdict != QUEUE_CONFIRMED ||
			    is_known(search, back) || !is_known(search, there))
				continue;
			if (threads_meet(&search->crossed.items[i].in_threads, &search->crossed.items[j].out_threads) &&
			    threads_meet(&search->crossed.items[i].out_threads, &search->crossed.items[j].in_threads) &&
			    share_of(&search->crossed.items[i], &search->crossed.items[j]) >= BACK_SHARE)
				back->verdict = QUEUE_RETURN;
		}
}

ORDER(pair_cmp, struct queue_pair, BY(a->verdict, b->verdict), BY(b->crossed, a->crossed), BY(a->in, b->in),
      BY(a->out, b->out));

int queue_pairs_find(const struct queue_end *ends, size_t end_cnt, queue_values *values, queue_pairs *pairs)
{
	struct pairs_search search = {.ends = ends, .pairs = pairs};
	int err = 0;

	search.of_place = calloc(end_cnt + 1, sizeof(*search.of_place));
	if (!search.of_place)
		return -ENOMEM;
	vec_sort(values, ts_cmp);
	for (size_t i = 0; i < values->cnt && !err; i++)
		if (values->items[i].place < end_cnt && is_value(&values->items[i]))
			err = vec_push(&search.of_place[values->items[i].place], values->items[i]);
	for (uint32_t in = 0; in < end_cnt && !err; in++)
		for (uint32_t out = 0; out < end_cnt && !err; out++)
			if (!ends[in].out && ends[out].out && search.of_place[in].cnt && search.of_place[out].cnt)
				err = pair_try(&search, in, out);
	if (!err)
		returns_mark(&search);
	vec_sort(pairs, pair_cmp);
	for (size_t i = 0; i < end_cnt; i++)
		vec_free(&search.of_place[i]);
	for (size_t i = 0; i < search.crossed.cnt; i++)
		vec_free(&search.crossed.items[i].values);
	vec_free(&search.crossed);
	free(search.of_place);
	return err;
}

const char *queue_verdict_text(enum queue_verdict verdict)
{
	switch (verdict) {
	case QUEUE_CONFIRMED:
		return "a queue";
	case QUEUE_FEW:
		return "too few values crossed to tell";
	case QUEUE_BOTH:
		return "threads put in and take out: a free list or a table";
	case QUEUE_UNMATCHED:
		return "most of what comes out did not go in there, or most stays in";
	case QUEUE_NEWEST:
		return "the newest comes out first: a free list";
	case QUEUE_RETURN:
		return "what another queue handed on comes back, and no thread waits for it: a free list";
	}
	return "?";
}
