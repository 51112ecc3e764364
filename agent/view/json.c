// SPDX-License-Identifier: GPL-2.0-or-later
/* The schema whylate.report/1 (DESIGN §7): its keys never change, others may be added.  null is "not measured". */
#include "base/text.h"
#include "view/json_put.h"
#include "view/view.h"

#include "base/names.h"

/* null: hooks were attached all the time. */
static void put_windows(struct json_doc *doc, struct json_object *session, const struct dataset *dataset)
{
	struct json_object *windows;
	bool timed = dataset->duration_s > 0;

	windows = put_known_object(doc, session, "windows", dataset->window_cnt);
	if (!windows)
		return;
	put_count(doc, windows, "count", dataset->window_cnt);
	put_number(doc, windows, "selecting_share", timed ? dataset->window_selecting_s / dataset->duration_s : NAN);
	put_number(doc, windows, "attached_share", timed ? dataset->window_attached_s / dataset->duration_s : NAN);
}

static void put_session(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	const struct ci none = {NAN, NAN};
	struct json_object *session = put_object(doc, root, "session");

	put_known_string(doc, session, "host", dataset->host);
	put_known_string(doc, session, "kernel", dataset->kernel);
	put_id(doc, session, "pid", dataset->pid);
	put_known_string(doc, session, "comm", dataset->comm);
	put_number(doc, session, "duration_s", dataset->duration_s > 0 ? dataset->duration_s : NAN);
	put_count(doc, session, "intervals_seen", dataset->intervals_seen);
	put_ci(doc, session, "intervals_seen_ci", dataset->row_cnt ? report->levels.seen_ci : none);
	put_number(doc, session, "intervals_censored", dataset->censored_known ? (double)dataset->censored_cnt : NAN);
	put_count(doc, session, "intervals_kept", dataset->row_cnt);
	put_count(doc, session, "records_lost", dataset->records_lost);
	put_windows(doc, session, dataset);
	put_strings(doc, session, "hooks_missing", dataset->hooks_missing, dataset->hooks_missing_cnt);
}

static void put_latency(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	const struct latency_summary *from = &report->latency;
	struct json_object *latency = put_object(doc, root, "latency"), *over;
	const struct ci none = {NAN, NAN};

	put_rounded(doc, latency, "count", report->dataset->row_cnt ? from->count : 0);
	put_rounded(doc, latency, "mean_ns", from->mean_ns);
	put_number(doc, latency, "variance_ns2", from->variance_ns2);
	put_number(doc, latency, "cov", from->cov);
	put_rounded(doc, latency, "p50_ns", from->p50_ns);
	put_rounded(doc, latency, "p90_ns", from->p90_ns);
	put_rounded(doc, latency, "p99_ns", from->p99_ns);
	put_rounded(doc, latency, "p999_ns", from->p999_ns);
	put_rounded(doc, latency, "max_ns", from->max_ns);
	put_ci(doc, latency, "mean_ci", report->dataset->row_cnt ? report->levels.mean_ci : none);
	put_ci(doc, latency, "p50_ci", report->dataset->row_cnt ? report->levels.p50_ci : none);
	put_ci(doc, latency, "p90_ci", report->dataset->row_cnt ? report->levels.p90_ci : none);
	put_ci(doc, latency, "p99_ci", report->dataset->row_cnt ? report->levels.p99_ci : none);
	put_ci(doc, latency, "p999_ci", report->dataset->row_cnt ? report->levels.p999_ci : none);
	over = put_array(doc, latency, "over");
	for (size_t i = 0; i < LEVELS_OVER && report->dataset->row_cnt; i++) {
		struct json_object *line = append_object(doc, over);

		put_count(doc, line, "ns", report->levels.over[i].ns);
		put_number(doc, line, "share", report->levels.over[i].share);
		put_ci(doc, line, "share_ci", report->levels.over[i].ci);
	}
}

static void append_breakdown(struct json_doc *doc, struct json_object *array, const struct breakdown_line *from)
{
	const struct ci none = {NAN, NAN};
	struct json_object *line = append_object(doc, array);
	bool measured = from->measured;

	put_string(doc, line, "category", category_name(from->category));
	put_rounded(doc, line, "mean_ns", measured ? from->mean_ns : NAN);
	put_number(doc, line, "variance_share", measured ? from->variance_share : NAN);
	put_ci(doc, line, "variance_share_ci", measured ? from->variance_share_ci : none);
	put_number(doc, line, "tail_share", measured ? from->tail_share : NAN);
	put_ci(doc, line, "tail_share_ci", measured ? from->tail_share_ci : none);
	put_rounded(doc, line, "typical_ns", measured ? from->typical_ns : NAN);
	put_rounded(doc, line, "late_ns", measured ? from->late_ns : NAN);
	put_bool(doc, line, "measured", measured);
	put_string(doc, line, "label", category_label(from->category));
}

/* Every category is there once, even where a report without rows left its lines unfilled. */
static void put_breakdown(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *array = put_array(doc, root, "breakdown");
	bool there[WL_CATEGORY_CNT] = {false};

	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		const struct breakdown_line *line = &report->breakdown[i];

		if (line->category >= WL_CATEGORY_CNT || there[line->category])
			continue;
		there[line->category] = true;
		append_breakdown(doc, array, line);
	}
	for (size_t i = 0; i < WL_CATEGORY_CNT; i++)
		if (!there[i])
			append_breakdown(doc, array, &(struct breakdown_line){.category = (enum wl_category)i});
}

/* null: the recording does not name the recorder's processes. */
static void put_own(struct json_doc *doc, struct json_object *root, const struct own_line *from)
{
	struct json_object *own = put_known_object(doc, root, "our_own", from->known);

	if (!own)
		return;
	put_number(doc, own, "share", from->share);
	put_ci(doc, own, "share_ci", from->share_ci);
	put_number(doc, own, "variance_share", from->variance_share);
	put_rounded(doc, own, "mean_ns", from->mean_ns);
	put_rounded(doc, own, "typical_ns", from->typical_ns);
	put_rounded(doc, own, "late_ns", from->late_ns);
}

static void append_event(struct json_doc *doc, struct json_object *array, const struct event_line *from)
{
	struct json_object *line = append_object(doc, array);

	put_string(doc, line, "event", from->event);
	put_number(doc, line, "gain", from->gain);
	put_ci(doc, line, "gain_ci", from->gain_ci);
	put_number(doc, line, "impact", from->impact);
	put_ci(doc, line, "impact_ci", from->impact_ci);
	put_number(doc, line, "impact_adjusted", from->impact_adjusted);
	if (text_ends(from->event, EVENT_LENGTH)) {
		put_rounded(doc, line, "threshold", from->threshold);
		put_rounded(doc, line, "mean", from->mean);
	} else {
		put_number(doc, line, "threshold", from->threshold);
		put_number(doc, line, "mean", from->mean);
	}
	put_number(doc, line, "threshold_percentile", from->threshold_percentile);
	put_string(doc, line, "explained_by", from->explained_by);
	put_number(doc, line, "explained_overlap", from->explained_by ? from->explained_overlap : NAN);
	put_string(doc, line, "correlated_with", from->correlated_with);
	put_number(doc, line, "correlation", from->correlated_with ? from->correlation : NAN);
	if (from->dropped_for)
		put_string(doc, line, "dropped_for", from->dropped_for);
}

static void put_events(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *events = put_array(doc, root, "events");
	struct json_object *dropped = put_array(doc, root, "events_dropped");

	for (size_t i = 0; i < report->event_cnt; i++)
		append_event(doc, report->events[i].dropped_for ? dropped : events, &report->events[i]);
}

static void put_length(struct json_doc *doc, struct json_object *root, const struct length_line *from)
{
	struct json_object *length = put_object(doc, root, "recording_length");

	put_count(doc, length, "late_kept", from->late_rows);
	put_number(doc, length, "error", from->error);
	put_number(doc, length, "stated_error", from->stated_error);
	put_number(doc, length, "needed_s", from->needed_s);
	put_number(doc, length, "hardware_share", from->recorded_share);
	put_number(doc, length, "hardware_needed_s", from->recorded_needed_s);
}

static void append_cause(struct json_doc *doc, struct json_object *array, const struct cause *from)
{
	struct json_object *line = append_object(doc, array);
	struct json_object *culprit;

	put_count(doc, line, "rank", from->rank);
	put_string(doc, line, "category", category_name(from->category));
	put_number(doc, line, "share", from->share);
	put_ci(doc, line, "share_ci", from->share_ci);
	put_number(doc, line, "variance_share", from->variance_share);
	put_string(doc, line, "what", from->what);
	put_string(doc, line, "function", from->function);
	put_known_string(doc, line, "object", from->object);
	culprit = put_object(doc, line, "culprit");
	put_id(doc, culprit, "pid", from->culprit_pid);
	put_id(doc, culprit, "tid", from->culprit_tid);
	put_known_string(doc, culprit, "comm", from->culprit_comm);
	put_string(doc, culprit, "host", from->culprit_host);
	put_string(doc, culprit, "function", from->culprit_function);
	put_strings(doc, line, "evidence", from->evidence, from->evidence_cnt);
	json_put_root(doc, line, from);
	json_put_value(doc, put_known_object(doc, line, "value", from->value), from->value);
}

static void put_causes(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *array = put_array(doc, root, "causes");

	for (size_t i = 0; i < report->cause_cnt; i++)
		append_cause(doc, array, &report->causes[i]);
}

static void put_loss(struct json_doc *doc, struct json_object *root, const struct dataset *dataset)
{
	struct json_object *loss = put_object(doc, root, "loss");
	struct json_object *by_class = put_object(doc, loss, "by_class");
	struct json_object *detail = put_object(doc, loss, "detail");

	for (int i = 0; i < WL_LOSS_CNT; i++) {
		struct json_object *line = put_object(doc, detail, loss_name(i));

		put_count(doc, by_class, loss_name(i), dataset->loss[i].lost);
		/* Of some classes only what is missing is counted. */
		if (dataset->loss[i].lost && !dataset->loss[i].emitted)
			put(doc, line, "emitted", NULL, true);
		else
			put_count(doc, line, "emitted", dataset->loss[i].emitted);
		put_count(doc, line, "lost", dataset->loss[i].lost);
	}
	put_count(doc, loss, "intervals_flagged", dataset->intervals_flagged);
	put_bool(doc, loss, "known", dataset->loss[WL_LOSS_INTERVAL].emitted || !dataset->row_cnt);
}

static void put_types(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *array = put_array(doc, root, "types");

	for (size_t i = 0; i < report->type_cnt; i++) {
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "type", report->types[i].type);
		put_rounded(doc, line, "count", report->types[i].count);
		put_rounded(doc, line, "mean_ns", report->types[i].mean_ns);
		put_rounded(doc, line, "p99_ns", report->types[i].p99_ns);
		put_number(doc, line, "late_share", report->types[i].late_share);
	}
}

static void put_damage(struct json_doc *doc, struct json_object *root, const struct dataset *dataset)
{
	struct json_object *array = put_array(doc, root, "damage");

	for (size_t i = 0; i < dataset->damage_cnt; i++) {
		struct json_object *line = append_object(doc, array);

		put_string(doc, line, "path", dataset->damage[i].path);
		put_count(doc, line, "off", dataset->damage[i].off);
		put_count(doc, line, "sz", dataset->damage[i].sz);
		put_string(doc, line, "what", dataset->damage[i].what);
	}
}

static void append_host(struct json_doc *doc, struct json_object *array, const struct report *report,
			const struct dataset_host *host, const struct host_line *from)
{
	struct json_object *line = append_object(doc, array), *latency, *difference, *breakdown;

	put_known_string(doc, line, "host", host->name);
	put_known_string(doc, line, "kernel", host->kernel);
	put_count(doc, line, "sessions", host->session_cnt);
	put_count(doc, line, "intervals_seen", host->intervals_seen);
	put_count(doc, line, "intervals_kept", host->row_cnt);
	put_count(doc, line, "records_lost", host->records_lost);
	put_count(doc, line, "spool_lost", host->spool_lost);
	put_count(doc, line, "frames_missing", host->frames_missing);
	put_id(doc, line, "begin_wall_ns", host->begin_wall_ns ? (int64_t)host->begin_wall_ns : -1);
	put_id(doc, line, "end_wall_ns", host->end_wall_ns ? (int64_t)host->end_wall_ns : -1);
	if (!from)
		return;
	latency = put_object(doc, line, "latency");
	put_rounded(doc, latency, "count", from->latency.count);
	put_rounded(doc, latency, "mean_ns", from->latency.mean_ns);
	put_rounded(doc, latency, "p50_ns", from->latency.p50_ns);
	put_rounded(doc, latency, "p99_ns", from->latency.p99_ns);
	put_rounded(doc, latency, "p999_ns", from->latency.p999_ns);
	put_rounded(doc, latency, "max_ns", from->latency.max_ns);
	put_rounded(doc, line, "tail_ns", from->tail_ns);
	put_ci(doc, line, "tail_ci_ns", from->tail_ci);
	put_rounded(doc, line, "peers_tail_ns", from->peers_tail_ns);
	put_number(doc, line, "tail_of_peers", from->tail_ns / from->peers_tail_ns);
	put_bool(doc, line, "stands_out", from->stands_out);
	difference = put_object(doc, line, "difference");
	put_string(doc, difference, "category", from->differs_ns > 0 ? category_name(from->differs) : NULL);
	put_rounded(doc, difference, "late_ns", from->differs_ns > 0 ? from->differs_ns : NAN);
	put_number(doc, difference, "share", from->differs_ns > 0 ? from->differs_share : NAN);
	breakdown = put_array(doc, line, "breakdown");
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		struct json_object *part = append_object(doc, breakdown);
		bool measured = !report->dataset->category_unmeasured[c];

		put_string(doc, part, "category", category_name((enum wl_category)c));
		put_rounded(doc, part, "mean_ns", measured ? from->mean_ns[c] : NAN);
		put_rounded(doc, part, "late_ns", measured ? from->late_ns[c] : NAN);
	}
}

static void put_hosts(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *array = put_array(doc, root, "hosts");

	for (size_t i = 0; i < report->host_cnt; i++)
		append_host(doc, array, report, report->hosts[i].host, &report->hosts[i]);
	for (size_t i = 0; !report->host_cnt && i < report->dataset->host_cnt; i++)
		append_host(doc, array, report, &report->dataset->hosts[i], NULL);
}

static void put_differences(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	struct json_object *array = put_array(doc, root, "host_differences");

	for (size_t i = 0; i < report->difference_cnt; i++) {
		const struct host_difference *from = &report->differences[i];
		struct json_object *line = append_object(doc, array), *values;

		put_string(doc, line, "subject", from->subject);
		values = put_array(doc, line, "values");
		for (size_t v = 0; v < from->value_cnt; v++) {
			struct json_object *value = append_object(doc, values);

			put_string(doc, value, "value", from->values[v].value);
			put_strings(doc, value, "hosts", from->values[v].hosts, from->values[v].host_cnt);
		}
	}
}

/*
 * json-c leaves DEL, C1 controls and direction overrides as they are, which JSON allows and a terminal obeys.  In the
 * finished text they can only stand inside of strings, so that an escape is right wherever they are met.
 */
static void write_harmless(FILE *out, const char *json)
{
	const char *written = json;
	uint32_t codepoint;

	while (*json) {
		const char *from = json;

		if (!utf8_next(&json, &codepoint) || codepoint < 0x7f || !utf8_acts(codepoint))
			continue;
		fwrite(written, 1, (size_t)(from - written), out);
		fprintf(out, "\\u%04x", codepoint);
		written = json;
	}
	fwrite(written, 1, (size_t)(json - written), out);
	fputc('\n', out);
}

int json_finish(FILE *out, const struct json_doc *doc, struct json_object *root, int flags)
{
	const char *text = doc->err ? NULL : json_object_to_json_string_ext(root, flags);

	if (text)
		write_harmless(out, text);
	json_object_put(root);
	return doc->err ? doc->err : !text ? -ENOMEM : fflush(out) || ferror(out) ? -EIO : 0;
}

int view_json(FILE *out, const struct report *report)
{
	struct json_object *root = json_object_new_object();
	struct json_doc doc = {.err = root ? 0 : -ENOMEM};

	put_string(&doc, root, "schema", "whylate.report/1");
	put_session(&doc, root, report);
	put_number(&doc, root, "tail", report->tail);
	put_rounded(&doc, root, "tail_threshold_ns", report->tail_threshold_ns);
	put_latency(&doc, root, report);
	put_breakdown(&doc, root, report);
	put_events(&doc, root, report);
	put_length(&doc, root, &report->length);
	json_put_factors(&doc, root, report);
	put_causes(&doc, root, report);
	put_own(&doc, root, &report->our_own);
	json_put_account(&doc, root, report);
	json_put_delivery(&doc, root, &report->delivery);
	json_put_path(&doc, root, report);
	json_put_values(&doc, root, report);
	put_types(&doc, root, report);
	put_hosts(&doc, root, report);
	put_differences(&doc, root, report);
	put_loss(&doc, root, report->dataset);
	put_strings(&doc, root, "notes", report->dataset->notes, report->dataset->note_cnt);
	put_damage(&doc, root, report->dataset);

	return json_finish(out, &doc, root, JSON_FLAGS);
}
