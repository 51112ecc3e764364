// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch_when.h"

#include "base/order.h"
#include "base/units.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOR_NS     10000000000ULL
#define FOR_NS_MAX 600000000000ULL
#define ROWS_MAX   2000000 /* beyond it the oldest go: a bound of memory, not of time */
#define WORD_SZ    64

/* --- the condition -------------------------------------------------------------------------------------------------
 */

static const char *skip_blanks(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* A word of the condition, up to one of `ends`: false if it is empty or too long. */
static bool next_word(const char **text, const char *ends, char word[WORD_SZ])
{
	const char *from = skip_blanks(*text);
	size_t len = strcspn(from, ends);

	*text = from + len;
	while (len && isspace((unsigned char)from[len - 1]))
		len--;
	if (!len || len >= WORD_SZ)
		return false;
	memcpy(word, from, len);
	word[len] = '\0';
	return true;
}

static int take_figure(struct watch_when *when, const char *word)
{
	char within[WORD_SZ];
	size_t len = strlen(word);

	if (!strcmp(word, "mean")) {
		when->figure = WATCH_MEAN;
	} else if (!strcmp(word, "rate")) {
		when->figure = WATCH_RATE;
	} else if (!strncmp(word, "share(", 6) && word[len - 1] == ')') {
		when->figure = WATCH_SHARE;
		memcpy(within, word + 6, len - 7);
		within[len - 7] = '\0';
		return units_duration_ns(within, &when->share_ns) ? -EINVAL : 0;
	} else if (word[0] == 'p' && isdigit((unsigned char)word[1])) {
		when->figure = WATCH_PERCENTILE;
		return units_percentile(word, &when->quantile);
	} else {
		return -EINVAL;
	}
	return 0;
}

static int take_value(struct watch_when *when, const char *word)
{
	uint64_t number;

	switch (when->figure) {
	case WATCH_RATE:
		if (units_number(word, 1000000000, &number))
			return -EINVAL;
		when->value = (double)number;
		return 0;
	case WATCH_SHARE:
		return units_share(word, &when->value) ? -EINVAL : 0;
	default:
		if (units_duration_ns(word, &number))
			return -EINVAL;
		when->value = (double)number;
		return 0;
	}
}

/* The words after the value, each with its own value. */
static int take_rest(struct watch_when *when, const char *text)
{
	char word[WORD_SZ], value[WORD_SZ];

	for (text = skip_blanks(text); *text; text = skip_blanks(text)) {
		if (!next_word(&text, " \t", word))
			return -EINVAL;
		if (!strcmp(word, "for")) {
			if (!next_word(&text, " \t", value) || units_duration_ns(value, &when->for_ns) ||
			    when->for_ns > FOR_NS_MAX || when->for_ns < 1000000000)
				return -EINVAL;
		} else if (!strcmp(word, "of")) {
			/* A type may have blanks: it is the last. */
			text = skip_blanks(text);
			if (!*text || strlen(text) >= sizeof(when->type))
				return -EINVAL;
			strcpy(when->type, text);
			return 0;
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

int watch_when_parse(struct watch_when *when, const char *text)
{
	char word[WORD_SZ];

	*when = (struct watch_when){.for_ns = FOR_NS};
	if (!next_word(&text, "<>", word) || take_figure(when, word) || !*text)
		return -EINVAL;
	when->below = *text++ == '<';
	if (!next_word(&text, " \t", word) || take_value(when, word))
		return -EINVAL;
	return take_rest(when, text);
}

/* --- the requests --------------------------------------------------------------------------------------------------
 */

struct watched {
	uint64_t end_ts, latency_ns;
	double weight;
};

struct watch_state {
	struct watch_when when;
	VEC(struct watched) rows;   /* in the order in which they came, which is about that of their ends */
	VEC(struct watched) looked; /* those that the condition is about */
};

struct watch_state *watch_state__new(const struct watch_when *when)
{
	struct watch_state *state = calloc(1, sizeof(*state));

	if (state)
		state->when = *when;
	return state;
}

void watch_state__free(struct watch_state *state)
{
	if (!state)
		return;
	vec_free(&state->rows);
	vec_free(&state->looked);
	free(state);
}

int watch_state__add(struct watch_state *state, uint64_t end_ts, uint64_t latency_ns, double weight)
{
	if (state->rows.cnt == ROWS_MAX) {
		state->rows.cnt -= ROWS_MAX / 2;
		memmove(state->rows.items, state->rows.items + ROWS_MAX / 2,
			state->rows.cnt * sizeof(*state->rows.items));
	}
	return vec_push(&state->rows, ((struct watched){end_ts, latency_ns, weight}));
}

ORDER(compare_latencies, struct watched, BY(b->latency_ns, a->latency_ns));

/* Drops what ended before from_ts; what ended from then to before now_ts goes into `looked`.  0 or -ENOMEM. */
static int look(struct watch_state *state, uint64_t from_ts, uint64_t now_ts)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->rows.cnt; i++)
		if (state->rows.items[i].end_ts >= from_ts)
			state->rows.items[kept++] = state->rows.items[i];
	state->rows.cnt = kept;
	state->looked.cnt = 0;
	if (vec_reserve(&state->looked, kept))
		return -ENOMEM;
	for (size_t i = 0; i < kept; i++)
		if (state->rows.items[i].end_ts < now_ts)
			state->looked.items[state->looked.cnt++] = state->rows.items[i];
	return 0;
}

/* Requests that took longer than that: their weight, and how many were kept. */
static double weight_over(const struct watch_state *state, double ns, size_t *cnt)
{
	double weight = 0;

	*cnt = 0;
	for (size_t i = 0; i < state->looked.cnt; i++)
		if ((double)state->looked.items[i].latency_ns > ns) {
			weight += state->looked.items[i].weight;
			(*cnt)++;
		}
	return weight;
}

static double percentile_of(struct watch_state *state, double total)
{
	double above = 0, limit = (1 - state->when.quantile) * total;

	vec_sort(&state->looked, compare_latencies);
	for (size_t i = 0; i < state->looked.cnt; i++) {
		above += state->looked.items[i].weight;
		if (above > limit)
			return (double)state->looked.items[i].latency_ns;
	}
	return NAN;
}

bool watch_state__met(struct watch_state *state, uint64_t begin_ts, uint64_t now_ts, double *value)
{
	const struct watch_when *when = &state->when;
	double total = 0, sum = 0, limit_ns = when->figure == WATCH_SHARE ? (double)when->share_ns : when->value;
	size_t over;

	*value = NAN;
	if (now_ts < begin_ts + when->for_ns || look(state, now_ts - when->for_ns, now_ts))
		return false;
	for (size_t i = 0; i < state->looked.cnt; i++) {
		total += state->looked.items[i].weight;
		sum += state->looked.items[i].weight * (double)state->looked.items[i].latency_ns;
	}
	if (when->figure == WATCH_RATE) {
		*value = total / ((double)when->for_ns / 1e9);
		return when->below ? *value < when->value : *value > when->value;
	}
	if (!state->looked.cnt)
		return false;
	*value = weight_over(state, limit_ns, &over) / total;
	if (when->figure == WATCH_MEAN)
		*value = sum / total;
	else if (when->figure == WATCH_PERCENTILE)
		*value = percentile_of(state, total);
	/* A few slow requests are no tail. */
	if (!when->below && over < WATCH_REQUESTS_MIN)
		return false;
	return when->below ? *value < when->value : *value > when->value;
}
