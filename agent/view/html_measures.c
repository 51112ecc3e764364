// SPDX-License-Identifier: GPL-2.0-or-later
/* Of each request: the time of events, and the means of variables. */
#include "view/html_data.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 12
#define GAIN_MIN   0.001
#define VALUES_MAX 20

static const struct dataset_event *event_of(const struct dataset *dataset, const char *name)
{
	for (size_t e = 0; e < dataset->event_cnt; e++)
		if (!strcmp(dataset->events[e].name, name))
			return &dataset->events[e];
	return NULL;
}

/* Counts have no time, and what some requests did not measure would be 0 for them: neither is compared. */
void html_events(struct html_pack *pack, const struct report *report, const struct html_rows *rows)
{
	struct json_object *array = put_array(&pack->doc, pack->header, "events");
	size_t cnt = 0;

	for (size_t e = 0; e < report->event_cnt && cnt < EVENTS_MAX; e++) {
		const struct event_line *line = &report->events[e];
		const struct dataset_event *event = event_of(report->dataset, line->event);
		char name[32];

		if (line->dropped_for || !(line->gain >= GAIN_MIN) || !event || !event->is_length || event->missing)
			continue;
		append(&pack->doc, array, html_pack__string(pack, line->event), false);
		snprintf(name, sizeof(name), "event.%zu", cnt++);
		html_put_sparse(pack, name, event->values, rows);
	}
}

/* --- values --------------------------------------------------------------------------------------------------------
 */

/* by_row: of those that have a sample the index of their mean, and one. */
static void put_means(struct html_pack *pack, const struct value_mean *means, const uint32_t *by_row,
		      const struct html_rows *rows)
{
	uint64_t met = 0, before = 0;

	for (size_t i = 0; i < rows->cnt; i++)
		met += by_row[rows->rows[i]] != 0;
	html_pack__number(pack, met);
	for (size_t i = 0; met && i < rows->cnt; i++) {
		uint32_t at = by_row[rows->rows[i]];

		if (!at)
			continue;
		html_pack__number(pack, i - before);
		html_pack__float(pack, means[at - 1].mean);
		before = i + 1;
	}
}

static void put_variable(struct html_pack *pack, struct json_object *array, const struct value_line *line)
{
	struct json_object *object = append_object(&pack->doc, array);

	html_pack__put_string(pack, object, "variable", line->variable);
	html_pack__put_string(pack, object, "in", line->function ? line->function : line->module ? line->module : "");
}

void html_values(struct html_pack *pack, const struct report *report, const struct html_rows *rows)
{
	struct json_object *array = put_array(&pack->doc, pack->header, "values");
	const struct value_report *values = report->values;
	size_t cnt = 0, first = 0, end;
	uint32_t *by_row;

	if (!values || !values->mean_cnt)
		return;
	by_row = calloc(report->dataset->row_cnt + 1, sizeof(*by_row));
	if (!by_row)
		pack->doc.err = -ENOMEM;
	for (uint32_t line = 0; by_row && line < values->variable_cnt && cnt < VALUES_MAX; line++) {
		char name[32];

		/* Means are sorted by variable, not by line. */
		for (first = 0; first < values->mean_cnt && values->means[first].line != line; first++)
			;
		if (first == values->mean_cnt)
			continue;
		for (end = first; end < values->mean_cnt && values->means[end].line == line; end++)
			by_row[values->means[end].row] = (uint32_t)end + 1;
		put_variable(pack, array, &values->variables[line]);
		snprintf(name, sizeof(name), "value.%zu", cnt++);
		html_pack__column(pack, name);
		put_means(pack, values->means, by_row, rows);
		memset(by_row, 0, report->dataset->row_cnt * sizeof(*by_row));
	}
	free(by_row);
}
