// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack_samples.h"

#include "base/order.h"
#include "base/random.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All powers of two. */
#define HELD_MAX   65536
#define KEYS_MAX   8192
#define COPIES_MAX 4096

#define NONE UINT32_MAX

/* Values that may wait for the end of their intervals, in all samples together. */
#define VALUES_MAX (1 << 20)

/* What came out of the rings since the last call of advance(). */
struct fresh {
	uint64_t sent_ts;
	uint64_t key;     /* of a wait, or of a wait's stack */
	uint64_t wait_ts; /* when the wait began */
	enum { FRESH_STACK, FRESH_TICK, FRESH_WAIT } kind;
	struct stack_sample sample; /* weight_ns: without its interval's weight */
};

struct ended {
	uint64_t sid, begin_ts, end_ts;
	double weight; /* 0: it is not kept */
};

/* A sample until its interval has ended, and beyond, for what it delayed. */
struct held {
	struct stack_sample sample; /* user NULL: the place is free; sid 0: none, or it has ended and is not kept */
	uint64_t sent_ts;
	uint32_t next; /* of the same bucket, with a sid */
	bool covered;  /* an interval that is kept was under way meanwhile */
};

struct key {
	uint64_t key;
	struct stack_text *user, *kernel; /* user NULL: the place is free */
	uint32_t next;
	bool wrong;
};

/* The stack of the wait that the thread began last. */
struct copy {
	uint64_t ts;
	uint32_t tid;
	struct stack_text *user, *kernel;
};

struct stack_samples {
	struct stack_texts *texts;
	struct stack_sinks sinks;
	struct stack_text *unknown;
	struct stack_sample_counts counts;
	size_t value_cnt; /* in all samples that are held or fresh */
	VEC(struct fresh) fresh;
	VEC(struct ended) ended;
	VEC(struct ended) covers;
	uint64_t held_pos, key_pos; /* the next place in turn */
	uint32_t held_buckets[HELD_MAX], key_buckets[KEYS_MAX];
	struct held held[HELD_MAX];
	struct key keys[KEYS_MAX];
	struct copy copies[COPIES_MAX];
};

struct stack_samples *stack_samples__new(struct stack_texts *texts, const struct stack_sinks *sinks)
{
	struct stack_samples *samples = calloc(1, sizeof(*samples));

	if (!samples)
		return NULL;
	samples->unknown = stack_texts__get(texts, STACK_UNKNOWN, false, 0, NULL, 0);
	if (!samples->unknown) {
		free(samples);
		return NULL;
	}
	samples->texts = texts;
	samples->sinks = *sinks;
	memset(samples->held_buckets, 0xff, sizeof(samples->held_buckets));
	memset(samples->key_buckets, 0xff, sizeof(samples->key_buckets));
	return samples;
}

static void drop_texts(struct stack_samples *samples, struct stack_text **user, struct stack_text **kernel)
{
	stack_texts__drop(samples->texts, *user);
	stack_texts__drop(samples->texts, *kernel);
	*user = *kernel = NULL;
}

static void drop_sample(struct stack_samples *samples, struct stack_sample *sample)
{
	drop_texts(samples, &sample->user, &sample->kernel);
	if (sample->values)
		samples->value_cnt -= sample->values->cnt;
	free(sample->values);
	sample->values = NULL;
}

void stack_samples__free(struct stack_samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->fresh.cnt; i++)
		drop_sample(samples, &samples->fresh.items[i].sample);
	for (size_t i = 0; i < HELD_MAX; i++)
		drop_sample(samples, &samples->held[i].sample);
	for (size_t i = 0; i < KEYS_MAX; i++)
		drop_texts(samples, &samples->keys[i].user, &samples->keys[i].kernel);
	for (size_t i = 0; i < COPIES_MAX; i++)
		drop_texts(samples, &samples->copies[i].user, &samples->copies[i].kernel);
	stack_texts__drop(samples->texts, samples->unknown);
	vec_free(&samples->fresh);
	vec_free(&samples->ended);
	vec_free(&samples->covers);
	free(samples);
}

/* --- what comes --------------------------------------------------------------------------------------------------- */

static double stands_for(uint32_t chance)
{
	return chance ? 4294967296.0 / chance : 1;
}

int stack_samples__take(struct stack_samples *samples, const struct wl_stack_record *record, struct stack_text *user,
			struct stack_text *kernel, struct stack_values *values)
{
	struct fresh fresh = {
		.sent_ts = record->ts,
		.key = record->key,
		.kind = record->flags & WL_STACK_WAITS ? FRESH_STACK : FRESH_TICK,
		.sample = {.ts = record->ts,
			   .sid = record->sid,
			   .context = record->context,
			   .pid = record->pid,
			   .tid = record->tid,
			   .cpu = record->header.cpu,
			   .delays = record->delays,
			   .rate = record->rate,
			   .state = (enum wl_state)record->state,
			   .period_ns = (double)record->period_ns,
			   .weight_ns = (double)record->period_ns,
			   .kernel_tick = record->flags & WL_STACK_KERNEL_TICK,
			   .user = user,
			   .kernel = kernel,
			   .values = values},
	};

	samples->value_cnt += values ? values->cnt : 0;
	samples->counts.stacks++;
	if (record->state >= WL_STATE_CNT || !record->tid) {
		samples->counts.impossible++;
		drop_sample(samples, &fresh.sample);
		return 0;
	}
	if (samples->value_cnt > VALUES_MAX) {
		samples->counts.values_crowded++;
		samples->value_cnt -= values ? values->cnt : 0;
		free(values);
		fresh.sample.values = NULL;
	}
	samples->counts.complete += user->complete;
	samples->counts.guessed += user->guessed > 0;
	if (!vec_push(&samples->fresh, fresh))
		return 0;
	drop_sample(samples, &fresh.sample);
	return -ENOMEM;
}

int stack_samples__take_wait(struct stack_samples *samples, const struct wl_stack_wait_record *record)
{
	uint64_t length_ns = record->blocked_ns + record->runq_ns;
	struct fresh fresh = {
		.key = record->key,
		.wait_ts = record->ts,
		.kind = FRESH_WAIT,
		.sample = {.ts = record->ts,
			   .sid = record->sid,
			   .context = record->context,
			   .object = record->object,
			   .pid = record->pid,
			   .tid = record->tid,
			   .cpu = record->begin_cpu,
			   .delays = record->delays,
			   .rate = record->rate,
			   .state = (enum wl_state)record->state,
			   .weight_ns = stands_for(record->chance)},
	};

	samples->counts.waits++;
	if (record->state >= WL_STATE_CNT || !record->tid || length_ns < record->runq_ns ||
	    record->ts + length_ns < record->ts) {
		samples->counts.impossible++;
		return 0;
	}
	fresh.sent_ts = record->ts + length_ns;
	fresh.sample.end_ts = record->ts + record->blocked_ns;
	if (vec_reserve(&samples->fresh, 2))
		return -ENOMEM;
	/* A thread that was woken at once has only waited for a CPU. */
	if (record->blocked_ns) {
		samples->fresh.items[samples->fresh.cnt] = fresh;
		samples->fresh.items[samples->fresh.cnt++].sample.weight_ns *= (double)record->blocked_ns;
	}
	if (!record->runq_ns)
		return 0;
	/* With the same stack it then waits for a CPU. */
	fresh.sample.object = 0;
	fresh.sample.state = WL_STATE_RUNQ_WAKEUP;
	fresh.sample.ts = fresh.sample.end_ts;
	fresh.sample.end_ts = fresh.sent_ts;
	fresh.sample.weight_ns *= (double)record->runq_ns;
	samples->fresh.items[samples->fresh.cnt++] = fresh;
	return 0;
}

int stack_samples__interval(struct stack_samples *samples, uint64_t sid, uint64_t begin_ts, uint64_t end_ts,
			    double weight)
{
	struct ended ended = {.sid = sid, .begin_ts = begin_ts, .end_ts = end_ts, .weight = weight};

	return vec_push(&samples->ended, ended);
}

/* --- the stacks of waits ------------------------------------------------------------------------------------------ */

static uint32_t *key_bucket(struct stack_samples *samples, uint64_t key)
{
	return &samples->key_buckets[random_mix(key) & (KEYS_MAX - 1)];
}

static struct key *find_key(struct stack_samples *samples, uint64_t key)
{
	for (uint32_t i = *key_bucket(samples, key); i != NONE; i = samples->keys[i].next)
		if (samples->keys[i].key == key)
			return &samples->keys[i];
	return NULL;
}

/* A place for another key: the oldest one goes. */
static struct key *add_key(struct stack_samples *samples, uint64_t key)
{
	uint32_t place = samples->key_pos++ & (KEYS_MAX - 1), *link;
	struct key *added = &samples->keys[place];

	if (added->user) {
		for (link = key_bucket(samples, added->key); *link != place; link = &samples->keys[*link].next)
			;
		*link = added->next;
		drop_texts(samples, &added->user, &added->kernel);
	}
	link = key_bucket(samples, key);
	*added = (struct key){.key = key, .next = *link};
	*link = place;
	samples->counts.keys++;
	return added;
}

/* A wait's stack has been copied: because its key was new, or to compare it with the one that is known. */
static void note_stack(struct stack_samples *samples, struct fresh *fresh)
{
	struct stack_sample *sample = &fresh->sample;
	struct copy *copy = &samples->copies[sample->tid & (COPIES_MAX - 1)];
	struct key *key = find_key(samples, fresh->key);

	if (key) {
		bool wrong = key->user != sample->user;

		samples->counts.checks++;
		samples->counts.wrong += wrong;
		if (wrong && !key->wrong) {
			key->wrong = true;
			samples->counts.wrong_keys++;
			samples->sinks.doubt(samples->sinks.owner, fresh->key, true);
		}
		drop_texts(samples, &key->user, &key->kernel);
	} else {
		key = add_key(samples, fresh->key);
	}
	key->user = stack_text__hold(sample->user);
	key->kernel = stack_text__hold(sample->kernel);
	drop_texts(samples, &copy->user, &copy->kernel);
	*copy = (struct copy){.ts = sample->ts, .tid = sample->tid, .user = sample->user, .kernel = sample->kernel};
	sample->user = sample->kernel = NULL;
	/* Of a wait there are none, unless a record says so. */
	drop_sample(samples, sample);
}

static void find_stack(struct stack_samples *samples, uint64_t key, uint64_t wait_ts, struct stack_sample *sample)
{
	const struct copy *copy = &samples->copies[sample->tid & (COPIES_MAX - 1)];
	const struct key *known;

	if (copy->user && copy->tid == sample->tid && copy->ts == wait_ts) {
		sample->user = stack_text__hold(copy->user);
		sample->kernel = stack_text__hold(copy->kernel);
		return;
	}
	known = find_key(samples, key);
	/* Where a key has several stacks, only a copy tells. */
	if (known && !known->wrong) {
		sample->user = stack_text__hold(known->user);
		sample->kernel = stack_text__hold(known->kernel);
		return;
	}
	if (!known)
		samples->sinks.doubt(samples->sinks.owner, key, false);
	sample->user = stack_text__hold(samples->unknown);
	samples->counts.unknown++;
}

/* --- until the interval has ended --------------------------------------------------------------------------------- */

static uint32_t *held_bucket(struct stack_samples *samples, uint64_t sid)
{
	return &samples->held_buckets[random_mix(sid) & (HELD_MAX - 1)];
}

static void unlink_held(struct stack_samples *samples, uint32_t place)
{
	uint32_t *link = held_bucket(samples, samples->held[place].sample.sid);

	while (*link != place)
		link = &samples->held[*link].next;
	*link = samples->held[place].next;
}

static void release(struct stack_samples *samples, struct held *held)
{
	drop_sample(samples, &held->sample);
	samples->counts.open--;
}

static void forget(struct stack_samples *samples, struct held *held)
{
	samples->counts.forgotten++;
	release(samples, held);
}

static int give(struct stack_samples *samples, struct held *held, double weight)
{
	int err;

	held->sample.weight_ns *= weight;
	err = samples->sinks.give(samples->sinks.owner, &held->sample);
	samples->counts.given++;
	release(samples, held);
	return err;
}

/* Of its own interval nothing is kept, so that it stands for those that it delayed. */
static int give_delaying(struct stack_samples *samples, struct held *held)
{
	held->sample.sid = 0;
	return give(samples, held, stands_for(held->sample.rate));
}

static int hold(struct stack_samples *samples, const struct fresh *fresh)
{
	uint32_t place = samples->held_pos++ & (HELD_MAX - 1);
	struct held *held = &samples->held[place];

	if (held->sample.user) {
		if (held->sample.sid) {
			unlink_held(samples, place);
			samples->counts.crowded++;
		}
		forget(samples, held);
	}
	*held = (struct held){.sample = fresh->sample, .sent_ts = fresh->sent_ts};
	samples->counts.open++;
	if (fresh->sample.sid) {
		uint32_t *bucket = held_bucket(samples, fresh->sample.sid);

		held->next = *bucket;
		*bucket = place;
		return 0;
	}
	return fresh->sample.delays ? 0 : give_delaying(samples, held);
}

static int decide(struct stack_samples *samples, const struct ended *ended)
{
	uint32_t *link = held_bucket(samples, ended->sid);
	int err = 0;

	while (*link != NONE && !err) {
		struct held *held = &samples->held[*link];

		if (held->sample.sid != ended->sid) {
			link = &held->next;
			continue;
		}
		*link = held->next;
		if (ended->weight > 0) {
			err = give(samples, held, ended->weight);
		} else if (!held->sample.delays) {
			forget(samples, held);
		} else if (held->covered) {
			err = give_delaying(samples, held);
		} else {
			held->sample.sid = 0;
		}
	}
	return err;
}

/* --- in the order in which they were sent ------------------------------------------------------------------------- */

ORDER(compare_fresh, struct fresh, BY(a->sent_ts, b->sent_ts), BY(a->kind, b->kind));

/* The sample's texts become those of the place that it is held in. */
static int place(struct stack_samples *samples, struct fresh *fresh)
{
	struct stack_sample *sample = &fresh->sample;
	int err = 0;

	if (fresh->kind == FRESH_STACK) {
		note_stack(samples, fresh);
		return 0;
	}
	if (fresh->kind == FRESH_WAIT)
		find_stack(samples, fresh->key, fresh->wait_ts, sample);
	samples->counts.taken++;
	if (samples->sinks.see) {
		struct stack_sample seen = *sample;

		seen.weight_ns *= stands_for(sample->rate);
		err = samples->sinks.see(samples->sinks.owner, &seen);
	}
	return err ? err : hold(samples, fresh);
}

static int place_fresh(struct stack_samples *samples, uint64_t until_ts)
{
	size_t done = 0;
	int err = 0;

	vec_sort(&samples->fresh, compare_fresh);
	while (!err && done < samples->fresh.cnt && samples->fresh.items[done].sent_ts <= until_ts)
		err = place(samples, &samples->fresh.items[done++]);
	samples->fresh.cnt -= done;
	if (samples->fresh.cnt)
		memmove(samples->fresh.items, samples->fresh.items + done,
			samples->fresh.cnt * sizeof(*samples->fresh.items));
	return err;
}

ORDER(compare_begin, struct ended, BY(a->begin_ts, b->begin_ts));

/* Kept intervals become stretches of time that do not overlap. */
static void merge_covers(struct stack_samples *samples)
{
	struct ended *covers = samples->covers.items;
	size_t cnt = 0;

	qsort(covers, samples->covers.cnt, sizeof(*covers), compare_begin);
	for (size_t i = 0; i < samples->covers.cnt; i++) {
		if (cnt && covers[i].begin_ts <= covers[cnt - 1].end_ts) {
			if (covers[i].end_ts > covers[cnt - 1].end_ts)
				covers[cnt - 1].end_ts = covers[i].end_ts;
		} else {
			covers[cnt++] = covers[i];
		}
	}
	samples->covers.cnt = cnt;
}

static bool is_covered(const struct stack_samples *samples, uint64_t begin_ts, uint64_t end_ts)
{
	size_t low;

	/* The last stretch that begins before the end. */
	low = search_first(0, samples->covers.cnt, mid, samples->covers.items[mid].begin_ts > end_ts);
	return low && samples->covers.items[low - 1].end_ts >= begin_ts;
}

/* What delayed intervals while one that is kept was under way. */
static int give_covered(struct stack_samples *samples)
{
	uint64_t first_ts, pos = samples->held_pos;
	int err = 0;

	if (!samples->covers.cnt)
		return 0;
	merge_covers(samples);
	first_ts = samples->covers.items[0].begin_ts;
	for (size_t i = 0; i < HELD_MAX && i < samples->held_pos && !err; i++) {
		struct held *held = &samples->held[--pos & (HELD_MAX - 1)];
		const struct stack_sample *sample = &held->sample;

		if (held->sent_ts < first_ts)
			break;
		if (!sample->user || !sample->delays || held->covered ||
		    !is_covered(samples, sample->ts, sample->end_ts ? sample->end_ts : sample->ts))
			continue;
		held->covered = true;
		if (!sample->sid)
			err = give_delaying(samples, held);
	}
	samples->covers.cnt = 0;
	return err;
}

int stack_samples__advance(struct stack_samples *samples, uint64_t polled_ts)
{
	int err = place_fresh(samples, polled_ts);
	size_t left = 0;

	for (size_t i = 0; i < samples->ended.cnt; i++) {
		const struct ended *ended = &samples->ended.items[i];

		if (err || ended->end_ts > polled_ts) {
			samples->ended.items[left++] = *ended;
			continue;
		}
		err = decide(samples, ended);
		if (!err && ended->weight > 0)
			err = vec_push(&samples->covers, *ended);
	}
	samples->ended.cnt = left;
	return err ? err : give_covered(samples);
}

int stack_samples__finish(struct stack_samples *samples)
{
	int err = stack_samples__advance(samples, UINT64_MAX);

	for (size_t i = 0; i < HELD_MAX; i++)
		if (samples->held[i].sample.user)
			forget(samples, &samples->held[i]);
	memset(samples->held_buckets, 0xff, sizeof(samples->held_buckets));
	return err;
}

void stack_samples__counts(const struct stack_samples *samples, struct stack_sample_counts *counts)
{
	*counts = samples->counts;
}
