// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What queued up behind a root and would not have without it.  A request that arrives while a backlog is worked off
 * waits for other requests, whose work is the root of that wait; but they are in front of it only because something had
 * held them up.  How long requests wait for each other when nothing holds them up is known from those that the root and
 * its backlogs left alone.  A wait that is longer than most of those counts as one drawn from them.
 *
 * In a queue it becomes shorter by no more than the time that the root took since nothing was held up (the recursion of
 * a queue's waits, Lindley 1952): that is what goes at least.  Where those who were held up are in each other's way
 * afterwards, as in a convoy before a lock or a crowd that is woken at once, it is more.
 *
 * Of requests that are not late a recording keeps some.  Where it left others out, one of them may have been the
 * root's, and who began behind it looks as if nothing had held it up: there nobody counts as left alone, if enough
 * requests began where all were kept.
 *
 * What the root takes in the median request is its work as usual, and stays.
 */
#include "analysis/roots_report.h"
#include "analysis/stats.h"
#include "base/order.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX   16
#define USUAL_SHARE  0.9 /* of the requests that were left alone wait no longer for others */
#define HELD_FACTOR  4   /* times as long as in the median request: there the line does what it always does */
#define MODELS_MIN   50  /* requests to draw from, and their share of all; a root that is there always leaves none */
#define ALONE_SHARE  0.05
#define SPARED_SHARE 0.2
/* Late requests wait that many times as long as the root's own take: several of those are in front of one. */
#define SATURATED_FACTOR 2.5
#define WAITING_SHARE    0.15 /* of those near a root that makes others wait do so longer than usual */
#define NEIGHBOURS       8    /* kept requests before and after one that tell whether others were left out */
#define THIN_WEIGHT      1.5  /* which is so if they stand for that many each */

enum place {
	PLACE_ALONE, /* began when nothing was held up */
	PLACE_NEAR,  /* met others that were, and waited no longer than usual */
	PLACE_BEHIND,
	PLACE_ROOT, /* the root itself held it up, for longer than it always does */
};

struct begun {
	uint64_t begin_ts, end_ts;
	uint32_t session, at; /* ranked row */
};

/* A wait of one to draw from, and the weight of all that waited no longer. */
struct model {
	uint64_t ns;
	double weight;
};

struct root_backlog {
	const struct root_lines *lines;
	const struct path_rows *ranked;
	struct begun *begun; /* one session after the other, by time */
	uint64_t *others_ns; /* by ranked row: what it waited for other threads and other requests */
	uint64_t *rest_ns;   /* others_ns without the line's own time */
	uint64_t *own_ns;    /* by ranked row: of the line's time, what was its own work */
	uint64_t *held_ns;   /* by ranked row: the root's time since nothing was held up, at least */
	uint64_t usual_ns;   /* of the line in the median request */
	uint64_t always_ns;  /* of the line in any request, at most */
	uint64_t length_ns;  /* of the line where it is own work, half of its time is in longer ones; 0: nowhere */
	uint8_t *place;      /* enum place */
	bool *thin;          /* by ranked row: others that began about then were not kept */
	bool minds_thin;
	struct model *models; /* the shortest wait first */
	size_t row_cnt, model_cnt;
	enum place models_from; /* the last of the places that models are of */
	struct root_saved saved;
};

ORDER(compare_begun, struct begun, BY(a->session, b->session), BY(a->begin_ts, b->begin_ts));

/*
 * Time in a queue or for a CPU, also where the recording does not show who was in front; or for other requests, or for
 * a lock whose holder it does not show.
 */
static bool is_for_others(const struct root_way *way, const struct root_key *key)
{
	if (key->kind == ROOT_OUR_OWN)
		return false;
	if (way->category == WL_CATEGORY_QUEUE || way->category == WL_CATEGORY_RUNQ)
		return true;
	if (key->kind == ROOT_UNKNOWN)
		return way->category == WL_CATEGORY_LOCK;
	return way->other && key->kind == ROOT_CODE && (key->type || way->for_it);
}

static void take_rows(struct root_backlog *of)
{
	const struct roots *roots = of->lines->roots;
	const struct dataset *dataset = roots->dataset;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		const struct root_way *way = &roots->ways.items[entry->way];
		uint32_t at = of->ranked->at[entry->row];

		of->begun[at] = (struct begun){
			.begin_ts = dataset->begin_ts[entry->row],
			.end_ts = dataset->begin_ts[entry->row] + dataset->latency_ns[entry->row],
			.session = dataset->session ? dataset->session[entry->row] : 0,
			.at = at,
		};
		if (is_for_others(way, &roots->keys.items[way->key]))
			of->others_ns[at] += entry->ns;
	}
	qsort(of->begun, of->row_cnt, sizeof(*of->begun), compare_begun);
}

/* Late requests are all kept, and tell nothing. */
static void find_thin(struct root_backlog *of)
{
	const double *weights = of->ranked->weights;

	for (size_t i = 0; i < of->row_cnt; i++) {
		size_t first = i > NEIGHBOURS ? i - NEIGHBOURS : 0, end = i + NEIGHBOURS + 1;
		double weight = 0, cnt = 0;

		for (size_t j = first; j < end && j < of->row_cnt; j++) {
			uint32_t at = of->begun[j].at;

			if (of->begun[j].session != of->begun[i].session ||
			    (double)of->ranked->latency_ns[at] >= of->ranked->rows.late_ns)
				continue;
			weight += weights[at];
			cnt++;
		}
		of->thin[of->begun[i].at] = weight > THIN_WEIGHT * cnt;
	}
}

struct root_backlog *root_backlog__new(const struct root_lines *lines)
{
	size_t cnt = lines->ranked->rows.row_cnt;
	struct root_backlog *of = calloc(1, sizeof(*of));

	if (!of)
		return NULL;
	*of = (struct root_backlog){
		.lines = lines,
		.ranked = lines->ranked,
		.row_cnt = cnt,
		.begun = calloc(cnt + 1, sizeof(*of->begun)),
		.others_ns = calloc(cnt + 1, sizeof(*of->others_ns)),
		.rest_ns = calloc(cnt + 1, sizeof(*of->rest_ns)),
		.own_ns = calloc(cnt + 1, sizeof(*of->own_ns)),
		.held_ns = calloc(cnt + 1, sizeof(*of->held_ns)),
		.place = calloc(cnt + 1, sizeof(*of->place)),
		.thin = calloc(cnt + 1, sizeof(*of->thin)),
		.models = calloc(cnt + 1, sizeof(*of->models)),
	};
	if (root_saved__init(&of->saved, cnt) || !of->begun || !of->others_ns || !of->rest_ns || !of->own_ns ||
	    !of->held_ns || !of->place || !of->thin || !of->models) {
		root_backlog__free(of);
		return NULL;
	}
	take_rows(of);
	find_thin(of);
	return of;
}

void root_backlog__free(struct root_backlog *of)
{
	if (!of)
		return;
	free(of->begun);
	free(of->others_ns);
	free(of->rest_ns);
	free(of->own_ns);
	free(of->held_ns);
	free(of->place);
	free(of->thin);
	free(of->models);
	root_saved__free(&of->saved);
	free(of);
}

static uint64_t longer(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/* Who overlaps a request that the root held up is behind it if it waits longer than usual, and holds up others. */
static void find_places(struct root_backlog *of, const struct root_line *line, uint64_t usual_ns)
{
	uint64_t until_ts = 0, passed_ns = 0, longest_ns = 0, longest_end_ts = 0, own_ns = 0;

	for (size_t i = 0; i < of->row_cnt; i++) {
		const struct begun *begun = &of->begun[i];
		enum place place;

		if (i && begun->session != begun[-1].session)
			until_ts = 0;
		place = begun->begin_ts >= until_ts && !(of->minds_thin && of->thin[begun->at]) ? PLACE_ALONE
												: PLACE_NEAR;
		if (begun->begin_ts >= until_ts)
			passed_ns = longest_ns = own_ns = 0;
		own_ns += of->own_ns[begun->at];
		if (begun->begin_ts >= longest_end_ts) {
			passed_ns += longest_ns;
			longest_ns = 0;
		}
		if (line->ns[begun->at] > longest_ns) {
			longest_ns = line->ns[begun->at];
			longest_end_ts = begun->end_ts;
		}
		of->held_ns[begun->at] = longer(longer(passed_ns + longest_ns, own_ns), of->length_ns);
		if (line->ns[begun->at] > of->always_ns)
			place = PLACE_ROOT;
		else if (place == PLACE_NEAR && of->rest_ns[begun->at] > usual_ns)
			place = PLACE_BEHIND;
		if (place >= PLACE_BEHIND && begun->end_ts > until_ts)
			until_ts = begun->end_ts;
		of->place[begun->at] = (uint8_t)place;
	}
}

/* The waits of all requests up to that place; false: too few. */
static bool take_models(struct root_backlog *of, const struct stats_order *by_rest, enum place up_to, double share_min)
{
	double weight = 0;

	of->model_cnt = 0;
	of->models_from = up_to;
	for (size_t i = 0; i < of->row_cnt; i++) {
		uint32_t at = by_rest->rows[i];

		if (of->place[at] > up_to)
			continue;
		weight += of->ranked->weights[at];
		of->models[of->model_cnt++] = (struct model){of->rest_ns[at], weight};
	}
	return of->model_cnt >= MODELS_MIN && weight >= share_min * by_rest->total_weight;
}

/* The wait that this share of the models, by weight, does not exceed. */
static uint64_t model_at(const struct root_backlog *of, double share)
{
	size_t last = of->model_cnt - 1;
	double weight = share * of->models[last].weight;

	return of->models[search_first((size_t)0, last, place, of->models[place].weight >= weight)].ns;
}

/*
 * A wait without the line, for one that is longer than usual: so many stay longer that of all near the line's backlogs
 * as many do as of those that were left alone.
 */
static uint64_t draw(const struct root_backlog *of, double stay, uint32_t at)
{
	double random = (double)(random_mix(at + 1) >> 11) * 0x1p-53;

	return model_at(of, random < stay ? 1 - (1 - USUAL_SHARE) * random / stay
					  : USUAL_SHARE * (1 - random) / (1 - stay));
}

/* What waits longer than usual for others. */
struct waiting {
	double near, near_longer, all, longer; /* weights */
};

static struct waiting find_waiting(const struct root_backlog *of, uint64_t usual_ns, bool thin)
{
	struct waiting waiting = {0};

	for (size_t at = 0; at < of->row_cnt; at++) {
		double weight = of->ranked->weights[at], longer = of->rest_ns[at] > usual_ns ? weight : 0;

		if ((of->minds_thin && of->thin[at]) != thin)
			continue;
		waiting.all += weight;
		waiting.longer += longer;
		if (of->place[at] != PLACE_ALONE) {
			waiting.near += weight;
			waiting.near_longer += longer;
		}
	}
	return waiting;
}

/*
 * Of those near the line's backlogs that wait longer than usual: how many would without it.  Where others were not
 * kept, as many fewer than do as the line makes wait where all were.
 */
static double find_stay(const struct root_backlog *of, uint64_t usual_ns, bool thin)
{
	struct waiting kept = find_waiting(of, usual_ns, false), few;
	double usually = 1 - USUAL_SHARE, stay;

	if (!thin)
		return kept.near_longer > 0 ? fmin(usually * kept.near / kept.near_longer, 1) : 1;
	few = find_waiting(of, usual_ns, true);
	if (few.longer <= 0 || kept.all <= 0)
		return 1;
	stay = few.longer / few.all - fmax(kept.longer / kept.all - usually, 0);
	return fmin(fmax(stay, usually) * few.all / few.longer, 1);
}

/* What is usual without the line and its backlogs, and everybody's place; false: nothing to tell it from. */
static bool settle_places(struct root_backlog *of, const struct stats_order *by_rest, const struct root_line *line,
			  uint64_t *usual_ns)
{
	*usual_ns = UINT64_MAX;
	/* The second generation of a backlog overlaps none that the root held up: it is known once the first is. */
	for (int round = 0; round < ROUNDS_MAX; round++) {
		uint64_t last_ns = *usual_ns;

		find_places(of, line, *usual_ns);
		if (!take_models(of, by_rest, PLACE_ALONE, ALONE_SHARE) &&
		    (of->minds_thin || !take_models(of, by_rest, PLACE_BEHIND, SPARED_SHARE)))
			return false;
		*usual_ns = model_at(of, USUAL_SHARE);
		if (*usual_ns >= last_ns)
			break;
	}
	return true;
}

/* Where all were kept: does who is near the line's backlogs wait longer for others, more often than who is not? */
static bool makes_wait(const struct root_backlog *of, uint64_t usual_ns)
{
	struct waiting kept = find_waiting(of, usual_ns, false);

	return kept.near_longer > WAITING_SHARE * kept.near;
}

static bool find_usual(struct root_backlog *of, const struct stats_order *by_rest, const struct root_line *line,
		       uint64_t *usual_ns)
{
	of->minds_thin = true;
	if (settle_places(of, by_rest, line, usual_ns) && makes_wait(of, *usual_ns))
		return true;
	of->minds_thin = false;
	return settle_places(of, by_rest, line, usual_ns);
}

/*
 * Whose own work it is began before the others that it held up, often before the window, too: then how long it had
 * worked is not seen of them.
 */
static int find_length(struct root_backlog *of, const struct root_line *line)
{
	const double *weights = of->ranked->weights;
	double weight = 0, of_own = 0, all = 0, met = 0;
	struct stats_order order;
	int err;

	of->usual_ns = of->always_ns = of->length_ns = 0;
	for (size_t i = 0; i < of->row_cnt; i++) {
		all += weights[i];
		met += line->ns[i] ? weights[i] : 0;
	}
	/* Most lines are in few requests, and there is nothing to sort. */
	if (met > all / 2) {
		err = stats_order__init(&order, line->ns, weights, of->row_cnt);
		if (err)
			return err;
		of->usual_ns = stats_quantile(&order, 0.5, NULL, NULL, order.total_weight);
		of->always_ns = HELD_FACTOR * of->usual_ns;
		stats_order__free(&order);
	}
	for (size_t i = 0; i < of->row_cnt; i++)
		of_own += of->own_ns[i] > of->always_ns ? weights[i] * (double)of->own_ns[i] : 0;
	if (of_own <= 0)
		return 0;
	err = stats_order__init(&order, of->own_ns, weights, of->row_cnt);
	for (size_t i = of->row_cnt; i-- > 0 && !err && weight < of_own / 2;) {
		of->length_ns = of->own_ns[order.rows[i]];
		weight += weights[order.rows[i]] * (double)of->length_ns;
	}
	stats_order__free(&order);
	return err;
}

/* A line's time may be waits for others only in part. */
static void find_rests(struct root_backlog *of, const struct root_line *line)
{
	const struct roots *roots = of->lines->roots;

	memcpy(of->rest_ns, of->others_ns, of->row_cnt * sizeof(*of->rest_ns));
	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		const struct root_way *way = &roots->ways.items[entry->way];

		if ((way->key == line->key || way->key == line->untold) &&
		    !is_for_others(way, &roots->keys.items[way->key]))
			of->rest_ns[of->ranked->at[entry->row]] += entry->ns;
	}
	for (size_t at = 0; at < of->row_cnt; at++)
		of->rest_ns[at] = of->rest_ns[at] > line->ns[at] ? of->rest_ns[at] - line->ns[at] : 0;
}

/* Its own time and what goes with it, but what it takes in the median request. */
static void save_own(struct root_backlog *of, const struct root_line *line)
{
	for (size_t at = 0; at < of->row_cnt; at++) {
		uint64_t usual_ns = line->ns[at] < of->usual_ns ? line->ns[at] : of->usual_ns;

		of->saved.ns[at] = line->ns[at] > of->always_ns ? line->saved_ns[at] : 0;
		if (usual_ns && of->saved.ns[at])
			of->saved.ns[at] = (uint64_t)((double)line->saved_ns[at] * (double)(line->ns[at] - usual_ns) /
						      (double)line->ns[at]);
		of->saved.least_ns[at] = of->saved.ns[at];
	}
}

static void save_waits(struct root_backlog *of, const struct root_line *line, uint64_t usual_ns)
{
	const double stay[] = {find_stay(of, usual_ns, false), find_stay(of, usual_ns, true)};

	for (size_t at = 0; at < of->row_cnt; at++) {
		uint64_t drawn_ns, less_ns, held_ns = of->held_ns[at] - line->ns[at];

		if (of->place[at] < PLACE_BEHIND || of->rest_ns[at] <= usual_ns)
			continue;
		drawn_ns = draw(of, stay[of->minds_thin && of->thin[at]], (uint32_t)at);
		less_ns = drawn_ns < of->rest_ns[at] ? of->rest_ns[at] - drawn_ns : 0;
		of->saved.ns[at] += less_ns;
		of->saved.least_ns[at] += less_ns < held_ns ? less_ns : held_ns;
	}
}

/*
 * Late requests wait for the root as long as several of its own take: one comes before the backlog of those before it
 * is worked off.  Then who looks left alone is behind an older backlog, and what they wait is not what is usual without
 * the root.
 */
static bool feeds_on_itself(const struct root_backlog *of, const struct root_line *line)
{
	return of->length_ns && line->share.late_ns > SATURATED_FACTOR * (double)of->length_ns;
}

int root_backlog__save(struct root_backlog *of, uint32_t of_line, struct root_saved *saved)
{
	const struct root_lines *lines = of->lines;
	const struct root_line *line = &lines->lines[of_line];
	struct stats_order by_rest;
	uint64_t usual_ns;
	bool known;
	int err;

	memset(of->own_ns, 0, of->row_cnt * sizeof(*of->own_ns));
	for (size_t o = 0; o < lines->owns.cnt; o++)
		if (lines->owns.items[o].line == of_line)
			of->own_ns[lines->owns.items[o].at] += lines->owns.items[o].ns;
	find_rests(of, line);
	err = find_length(of, line);
	if (!err)
		err = stats_order__init(&by_rest, of->rest_ns, of->ranked->weights, of->row_cnt);
	if (err)
		return err;
	save_own(of, line);
	known = find_usual(of, &by_rest, line, &usual_ns);
	if (known)
		save_waits(of, line, usual_ns);
	of->saved.at_least = !known || of->models_from > PLACE_ALONE || feeds_on_itself(of, line);
	for (size_t at = 0; at < of->row_cnt; at++) {
		of->saved.alone[at] = known && of->place[at] <= of->models_from;
		if (of->saved.ns[at] > of->ranked->latency_ns[at])
			of->saved.ns[at] = of->ranked->latency_ns[at];
		if (of->saved.least_ns[at] > of->saved.ns[at])
			of->saved.least_ns[at] = of->saved.ns[at];
	}
	stats_order__free(&by_rest);
	*saved = of->saved;
	return 0;
}
