// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The time of late and of typical requests by call path, as pprof reads it (github.com/google/pprof, profile.proto).
 * A way of a root (roots.h) is divided among the samples that were taken in it, so that late_ns sums to the mean late
 * request, typical_ns to the mean typical one, and difference_ns to what makes requests late.
 */
#include "view/export.h"

#include "analysis/path_rows.h"
#include "analysis/stats.h"
#include "base/names.h"
#include "base/protobuf.h"
#include "view/handed_on.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <zlib.h>

/* Field numbers of profile.proto. */
enum {
	FIELD_PROFILE_SAMPLE_TYPE = 1,
	FIELD_PROFILE_SAMPLE = 2,
	FIELD_PROFILE_LOCATION = 4,
	FIELD_PROFILE_FUNCTION = 5,
	FIELD_PROFILE_STRING = 6,
	FIELD_PROFILE_TIME_NANOS = 9,
	FIELD_PROFILE_DURATION_NANOS = 10,
	FIELD_PROFILE_COMMENT = 13,
	FIELD_PROFILE_DEFAULT_TYPE = 14,

	FIELD_TYPE_TYPE = 1,
	FIELD_TYPE_UNIT = 2,

	FIELD_SAMPLE_LOCATION = 1,
	FIELD_SAMPLE_VALUE = 2,
	FIELD_SAMPLE_LABEL = 3,

	FIELD_LABEL_KEY = 1,
	FIELD_LABEL_STRING = 2,

	FIELD_LOCATION_ID = 1,
	FIELD_LOCATION_LINE = 4,
	FIELD_LINE_FUNCTION = 1,

	FIELD_FUNCTION_ID = 1,
	FIELD_FUNCTION_NAME = 2,
	FIELD_FUNCTION_SYSTEM_NAME = 3,
};

#define FRAMES_MAX 512
#define CONTEXT_SZ 1024

/* One line of the profile: what is the same for all that adds up in it. */
struct pprof_line {
	uint32_t node; /* of the samples' tree; SAMPLE_ROOT: no sample was taken */
	uint32_t type; /* string of the dataset */
	uint32_t role; /* string of the roots: of the thread at work, 0: not known */
	uint32_t way;  /* the first of those with its context and hand-offs; tells the role, too */
	uint8_t category, group;
	double ns;
};

struct pprof {
	const struct roots *roots;
	const struct dataset *dataset;
	const struct path_rows *ranked;
	VEC(struct pprof_line) lines;
	struct idmap line_ids;
	/* By way: by which threads the time comes, and how the request that its root worked for was handed on (strings
	 * of the profile, the latter 0: as it came in); the first way with that pair. */
	uint32_t *contexts, *handed_on, *first_ways;
	struct idmap pair_ids;
	VEC(uint32_t) pairs; /* the first way of each */
	double *scale;       /* [way][group]: ns that a sample's amount stands for; 0: none was taken */
	struct arena *arena;
	struct intern strings;
	struct idmap location_ids;    /* (string, 0) → location and function, less 1 */
	VEC(uint32_t) function_names; /* strings, by function less 1 */
	struct proto profile, part, within, line;
};

static enum path_group group_of(const struct path_rows *ranked, uint32_t at)
{
	double ns = (double)ranked->latency_ns[at];

	return ns >= ranked->rows.late_ns ? PATH_LATE : ns <= ranked->rows.median_ns ? PATH_TYPICAL : PATH_BETWEEN;
}

/* --- the sums ------------------------------------------------------------------------------------------------------
 */

static int find_scales(struct pprof *pprof)
{
	size_t cnt = pprof->roots->ways.cnt * PATH_GROUP_CNT + 1;
	double *amounts = calloc(cnt, sizeof(*amounts));

	pprof->scale = calloc(cnt, sizeof(*pprof->scale));
	if (!amounts || !pprof->scale) {
		free(amounts);
		return -ENOMEM;
	}
	for (size_t e = 0; e < pprof->roots->entries.cnt; e++) {
		const struct root_entry *entry = &pprof->roots->entries.items[e];
		uint32_t at = pprof->ranked->at[entry->row];
		size_t stratum = entry->way * PATH_GROUP_CNT + group_of(pprof->ranked, at);

		pprof->scale[stratum] += pprof->ranked->weights[at] * (double)entry->ns;
		for (uint32_t t = 0; t < entry->tick_cnt; t++)
			amounts[stratum] +=
				pprof->ranked->weights[at] * pprof->roots->ticks.items[entry->tick + t].amount;
	}
	for (size_t i = 0; i < cnt; i++)
		pprof->scale[i] = amounts[i] > 0 ? pprof->scale[i] / amounts[i] : 0;
	free(amounts);
	return 0;
}

/* "worker-* > flusher POST /x": by which threads the time comes from the request to the root, which worked for that. */
static int make_context(struct pprof *pprof, const struct root_way *way, uint32_t *id)
{
	const struct root_key *key = &pprof->roots->keys.items[way->key];
	char text[CONTEXT_SZ] = "";
	size_t len = 0;

	for (int h = 0; h < PATH_HOPS_MAX && way->hops[h] && len < sizeof(text); h++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s > ",
					roots_string(pprof->roots, way->hops[h]));
	if (len < sizeof(text))
		snprintf(text + len, sizeof(text) - len, "%s%s%s",
			 key->role ? roots_string(pprof->roots, key->role) : "?", !way->own && key->type ? " " : "",
			 !way->own && key->type ? roots_string(pprof->roots, key->type) : "");
	return intern__id(&pprof->strings, text, id);
}

static int make_handed_on(struct pprof *pprof, const struct root_way *way, uint32_t *id)
{
	char text[CONTEXT_SZ] = "";

	if (way->context != CONTEXT_CHAIN_NONE)
		view_handed_on(text, sizeof(text), &pprof->roots->traces->chains, way->context);
	return intern__id(&pprof->strings, text, id);
}

static int make_way(struct pprof *pprof, uint32_t way)
{
	uint32_t pair;

	if (make_context(pprof, &pprof->roots->ways.items[way], &pprof->contexts[way]) ||
	    make_handed_on(pprof, &pprof->roots->ways.items[way], &pprof->handed_on[way]) ||
	    idmap__id(&pprof->pair_ids, pprof->contexts[way], pprof->handed_on[way], &pair) ||
	    (pair == pprof->pairs.cnt && vec_push(&pprof->pairs, way)))
		return -ENOMEM;
	pprof->first_ways[way] = pprof->pairs.items[pair];
	return 0;
}

static int make_contexts(struct pprof *pprof)
{
	size_t cnt = pprof->roots->ways.cnt;
	uint32_t empty;
	int err;

	pprof->contexts = calloc(cnt + 1, sizeof(*pprof->contexts));
	pprof->handed_on = calloc(cnt + 1, sizeof(*pprof->handed_on));
	pprof->first_ways = calloc(cnt + 1, sizeof(*pprof->first_ways));
	err = pprof->contexts && pprof->handed_on && pprof->first_ways ? 0 : -ENOMEM;
	/* The first string of a profile is "". */
	if (!err)
		err = intern__id(&pprof->strings, "", &empty);
	for (uint32_t w = 0; w < cnt && !err; w++)
		err = make_way(pprof, w);
	return err;
}

static int add(struct pprof *pprof, struct pprof_line line)
{
	uint64_t how = (uint64_t)line.way << 16 | (uint64_t)line.category << 8 | line.group;
	uint32_t id;

	if (idmap__id(&pprof->line_ids, (uint64_t)line.node << 32 | line.type, how, &id))
		return -ENOMEM;
	if (id == pprof->lines.cnt)
		return vec_push(&pprof->lines, line);
	pprof->lines.items[id].ns += line.ns;
	return 0;
}

static int add_entry(struct pprof *pprof, const struct root_entry *entry)
{
	const struct path_rows *ranked = pprof->ranked;
	const struct root_way *way = &pprof->roots->ways.items[entry->way];
	uint32_t at = ranked->at[entry->row];
	struct pprof_line line = {
		.node = SAMPLE_ROOT,
		.type = pprof->dataset->type[entry->row],
		.role = pprof->roots->keys.items[way->key].role,
		.way = pprof->first_ways[entry->way],
		.category = way->category,
		.group = (uint8_t)group_of(ranked, at),
	};
	double scale = pprof->scale[entry->way * PATH_GROUP_CNT + line.group], weight;
	int err = 0;

	if (line.group == PATH_BETWEEN)
		return 0;
	weight = ranked->weights[at] / (line.group == PATH_LATE ? ranked->late_weight : ranked->typical_weight);
	if (!(scale > 0)) {
		line.ns = weight * (double)entry->ns;
		return add(pprof, line);
	}
	for (uint32_t t = 0; t < entry->tick_cnt && !err; t++) {
		const struct root_tick *tick = &pprof->roots->ticks.items[entry->tick + t];

		line.node = tick->node;
		line.ns = weight * scale * tick->amount;
		err = add(pprof, line);
	}
	return err;
}

/* --- the profile ---------------------------------------------------------------------------------------------------
 */

static uint32_t string_of(struct pprof *pprof, const char *text)
{
	uint32_t id = 0;

	if (intern__id(&pprof->strings, text, &id))
		pprof->profile.err = -ENOMEM;
	return id;
}

static uint64_t location_of(struct pprof *pprof, const char *name)
{
	uint32_t id = 0, string = string_of(pprof, name);

	if (idmap__id(&pprof->location_ids, string, 0, &id) ||
	    (id == pprof->function_names.cnt && vec_push(&pprof->function_names, string)))
		pprof->profile.err = -ENOMEM;
	return (uint64_t)id + 1;
}

static void put_label(struct pprof *pprof, const char *key, const char *value)
{
	if (!*value)
		return;
	proto__reset(&pprof->within);
	proto__uint(&pprof->within, FIELD_LABEL_KEY, string_of(pprof, key));
	proto__uint(&pprof->within, FIELD_LABEL_STRING, string_of(pprof, value));
	proto__message(&pprof->part, FIELD_SAMPLE_LABEL, &pprof->within);
}

/* Innermost frame first; the outermost one is the category. */
static void put_sample(struct pprof *pprof, const struct pprof_line *line)
{
	const struct samples *samples = pprof->roots->samples;
	const char *category = category_name(line->category);
	bool is_late = line->group == PATH_LATE;
	int64_t ns = llround(line->ns);
	const uint64_t values[] = {is_late ? (uint64_t)ns : 0, is_late ? 0 : (uint64_t)ns,
				   is_late ? (uint64_t)ns : (uint64_t)-ns};
	uint64_t locations[FRAMES_MAX + 1];
	char frame[64];
	size_t cnt = 0;

	if (!ns)
		return;
	for (uint32_t node = line->node; node != SAMPLE_ROOT && cnt < FRAMES_MAX;
	     node = samples->nodes.items[node].parent)
		locations[cnt++] = location_of(pprof, samples_name(samples, node));
	snprintf(frame, sizeof(frame), "[%s]", category);
	locations[cnt++] = location_of(pprof, frame);
	proto__reset(&pprof->part);
	proto__packed(&pprof->part, FIELD_SAMPLE_LOCATION, locations, cnt);
	proto__packed(&pprof->part, FIELD_SAMPLE_VALUE, values, 3);
	put_label(pprof, "request", is_late ? "late" : "typical");
	put_label(pprof, "type", pprof->dataset->strings[line->type]);
	put_label(pprof, "category", category);
	put_label(pprof, "context", pprof->strings.strings[pprof->contexts[line->way]]);
	put_label(pprof, "handed_on", pprof->strings.strings[pprof->handed_on[line->way]]);
	put_label(pprof, "thread", line->role ? roots_string(pprof->roots, line->role) : "");
	proto__message(&pprof->profile, FIELD_PROFILE_SAMPLE, &pprof->part);
}

static void put_types(struct pprof *pprof)
{
	static const char *const types[] = {"late_ns", "typical_ns", "difference_ns"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		proto__reset(&pprof->part);
		proto__uint(&pprof->part, FIELD_TYPE_TYPE, string_of(pprof, types[i]));
		proto__uint(&pprof->part, FIELD_TYPE_UNIT, string_of(pprof, "nanoseconds"));
		proto__message(&pprof->profile, FIELD_PROFILE_SAMPLE_TYPE, &pprof->part);
	}
	proto__uint(&pprof->profile, FIELD_PROFILE_DEFAULT_TYPE, string_of(pprof, "difference_ns"));
}

static void put_functions(struct pprof *pprof)
{
	for (uint64_t id = 1; id <= pprof->function_names.cnt; id++) {
		uint32_t name = pprof->function_names.items[id - 1];

		proto__reset(&pprof->line);
		proto__uint(&pprof->line, FIELD_LINE_FUNCTION, id);
		proto__reset(&pprof->part);
		proto__uint(&pprof->part, FIELD_LOCATION_ID, id);
		proto__message(&pprof->part, FIELD_LOCATION_LINE, &pprof->line);
		proto__message(&pprof->profile, FIELD_PROFILE_LOCATION, &pprof->part);
		proto__reset(&pprof->part);
		proto__uint(&pprof->part, FIELD_FUNCTION_ID, id);
		proto__uint(&pprof->part, FIELD_FUNCTION_NAME, name);
		proto__uint(&pprof->part, FIELD_FUNCTION_SYSTEM_NAME, name);
		proto__message(&pprof->profile, FIELD_PROFILE_FUNCTION, &pprof->part);
	}
}

static int make_profile(struct pprof *pprof)
{
	const struct dataset *dataset = pprof->dataset;
	char comment[160];

	put_types(pprof);
	for (size_t i = 0; i < pprof->lines.cnt; i++)
		put_sample(pprof, &pprof->lines.items[i]);
	put_functions(pprof);
	snprintf(comment, sizeof(comment), "whylate: time per request; late: %.0f ns or more, typical: %.0f ns or less",
		 pprof->ranked->rows.late_ns, pprof->ranked->rows.median_ns);
	proto__uint(&pprof->profile, FIELD_PROFILE_COMMENT, string_of(pprof, comment));
	if (dataset->host_cnt && dataset->hosts[0].begin_wall_ns)
		proto__uint(&pprof->profile, FIELD_PROFILE_TIME_NANOS, dataset->hosts[0].begin_wall_ns);
	if (dataset->duration_s > 0)
		proto__uint(&pprof->profile, FIELD_PROFILE_DURATION_NANOS,
			    (uint64_t)fmin(dataset->duration_s * 1e9, 0x1p62));
	for (uint32_t s = 0; s < pprof->strings.cnt; s++)
		proto__string(&pprof->profile, FIELD_PROFILE_STRING, pprof->strings.strings[s]);
	return pprof->profile.err ? pprof->profile.err : pprof->part.err;
}

static int write_gzip(FILE *out, const struct proto *profile)
{
	z_stream stream = {.next_in = profile->items, .avail_in = (uInt)profile->cnt};
	uint8_t buffer[16384];
	int state = Z_OK;

	if (profile->cnt > UINT32_MAX)
		return -EFBIG;
	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	while (state == Z_OK) {
		stream.next_out = buffer;
		stream.avail_out = sizeof(buffer);
		state = deflate(&stream, Z_FINISH);
		if (fwrite(buffer, 1, sizeof(buffer) - stream.avail_out, out) != sizeof(buffer) - stream.avail_out)
			break;
	}
	deflateEnd(&stream);
	return state == Z_STREAM_END && !fflush(out) && !ferror(out) ? 0 : -EIO;
}

static int find_thresholds(struct report *report, const struct dataset *dataset, double tail)
{
	struct stats_order order;
	int err = stats_order__init(&order, dataset->latency_ns, dataset->weight, dataset->row_cnt);

	if (err)
		return err;
	report->tail_threshold_ns = stats_quantile(&order, tail, NULL, NULL, order.total_weight);
	report->typical_ns =
		fmin(stats_quantile(&order, 0.5, NULL, NULL, order.total_weight), report->tail_threshold_ns);
	stats_order__free(&order);
	return 0;
}

int export_pprof(FILE *out, const struct dataset *dataset, const struct paths *paths, const struct roots *roots,
		 double tail)
{
	struct report report = {.dataset = dataset};
	struct path_rows ranked = {0};
	struct pprof pprof = {.roots = roots, .dataset = dataset, .ranked = &ranked, .arena = arena__new()};
	int err = pprof.arena ? find_thresholds(&report, dataset, tail) : -ENOMEM;

	pprof.strings.arena = pprof.arena;
	if (!err)
		err = path_rows__init(&ranked, &report, paths);
	if (!err)
		err = make_contexts(&pprof) ?: find_scales(&pprof);
	for (size_t e = 0; e < roots->entries.cnt && !err; e++)
		err = add_entry(&pprof, &roots->entries.items[e]);
	if (!err)
		err = make_profile(&pprof);
	if (!err)
		err = write_gzip(out, &pprof.profile);
	path_rows__free(&ranked);
	vec_free(&pprof.lines);
	vec_free(&pprof.function_names);
	idmap__free(&pprof.line_ids);
	idmap__free(&pprof.location_ids);
	intern__free(&pprof.strings);
	arena__free(pprof.arena);
	vec_free(&pprof.pairs);
	idmap__free(&pprof.pair_ids);
	free(pprof.contexts);
	free(pprof.handed_on);
	free(pprof.first_ways);
	free(pprof.scale);
	proto__free(&pprof.profile);
	proto__free(&pprof.part);
	proto__free(&pprof.within);
	proto__free(&pprof.line);
	return err;
}
