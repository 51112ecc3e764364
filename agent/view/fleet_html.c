// SPDX-License-Identifier: GPL-2.0-or-later
/* Hosts of a fleet as a page: a heatmap of hosts and time, and a section for each host, to which its row leads. */
#include "base/names.h"
#include "view/fleet.h"
#include "view/format.h"
#include "view/html.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#define CELL_HEIGHT 14
#define MAP_WIDTH   700
#define NAME_WIDTH  180
#define NAME_SHOWN  24

static void put_time(struct html *html, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	char text[FORMAT_SZ] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm);
	html__text(html, text);
}

/* How much more often than in the whole fleet requests are late: 0: no more, 1: all of them are. */
static double heat_of(const struct fleet_answer *answer, const struct fleet_heat *cell)
{
	double usual = fmax(1 - answer->tail, 1e-9), share = cell->weight > 0 ? cell->late / cell->weight : 0;

	return share <= usual ? 0 : fmin(log(share / usual) / log(1 / usual), 1);
}

/* Attributes of SVG are no inline style, which the page's policy would refuse. */
static void put_cell(struct html *html, const struct fleet_answer *answer, const struct fleet_heat *cell)
{
	double span_ns = (double)(answer->heat_end_ns - answer->heat_begin_ns), heat = heat_of(answer, cell);
	char text[FORMAT_SZ];

	fprintf(html->out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"rgb(%d,%d,%d)\"><title>",
		NAME_WIDTH + MAP_WIDTH * (double)(cell->begin_ns - answer->heat_begin_ns) / span_ns,
		cell->group * CELL_HEIGHT, MAP_WIDTH * (double)answer->heat_step_ns / span_ns, CELL_HEIGHT - 1,
		(int)(232 - 52 * heat), (int)(236 - 216 * heat), (int)(240 - 210 * heat));
	html__text(html, answer->groups[cell->group].name);
	html__text(html, ", ");
	put_time(html, cell->begin_ns);
	html__text(html, ": ");
	html__text(html, format_weighted(text, cell->weight));
	html__text(html, " requests, late ");
	html__text(html, format_share(text, cell->weight > 0 ? cell->late / cell->weight : NAN));
	html__put(html, "</title></rect>\n");
}

static void put_map(struct html *html, const struct fleet_answer *answer)
{
	char name[NAME_SHOWN + 4], text[FORMAT_SZ];

	html__put(html, "<section id=\"heat\"><h2>Hosts and time</h2>\n<p>");
	put_time(html, answer->heat_begin_ns);
	html__text(html, " to ");
	put_time(html, answer->heat_end_ns);
	html__text(html, "; the redder, the more requests beyond ");
	html__text(html, view_duration(text, sizeof(text), answer->tail_ns));
	fprintf(html->out, "</p>\n<svg role=\"img\" width=\"%d\" height=\"%zu\">\n", NAME_WIDTH + MAP_WIDTH,
		answer->heat_group_cnt * CELL_HEIGHT + 1);
	for (size_t i = 0; i < answer->heat_group_cnt; i++) {
		snprintf(name, sizeof(name), "%.*s", NAME_SHOWN, answer->groups[i].name);
		fprintf(html->out,
			"<a href=\"#host-%zu\"><text x=\"0\" y=\"%zu\" font-size=\"12\" fill=\"currentColor\">", i,
			i * CELL_HEIGHT + CELL_HEIGHT - 3);
		html__text(html, name);
		html__put(html, "</text></a>\n");
	}
	for (size_t i = 0; i < answer->heat_cnt; i++)
		put_cell(html, answer, &answer->heat[i]);
	html__put(html, "</svg></section>\n");
}

static void put_categories(struct html *html, const struct fleet_group *group)
{
	char text[FORMAT_SZ];
	double sum = 0;

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		sum += isnan(group->late_ns[c]) ? 0 : group->late_ns[c];
	if (!(sum > 0))
		return;
	html__put(html, "<table><thead><tr><th>late requests spend</th><th></th><th></th></tr></thead><tbody>\n");
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		if (isnan(group->late_ns[c]) || group->late_ns[c] < 0.001 * sum)
			continue;
		html__put(html, "<tr>");
		html__element(html, "td", NULL, category_label((enum wl_category)c));
		html__number(html, view_duration(text, sizeof(text), group->late_ns[c]));
		html__put(html, "<td>");
		html__bar(html, group->late_ns[c] / sum, (struct ci){NAN, NAN});
		html__put(html, "</td></tr>\n");
	}
	html__put(html, "</tbody></table>\n");
}

static void put_host(struct html *html, const struct fleet_answer *answer, size_t i)
{
	const struct fleet_group *group = &answer->groups[i];
	char text[FORMAT_SZ], tail[FORMAT_SZ];

	fprintf(html->out, "<section id=\"host-%zu\"><h3>", i);
	html__text(html, group->name);
	html__put(html, "</h3>\n<p>");
	html__text(html, format_weighted(text, group->requests));
	html__text(html, " requests, p50 ");
	html__text(html, view_duration(text, sizeof(text), group->median_ns));
	html__printf(html, ", %s ", format_percentile(tail, answer->tail));
	html__text(html, view_duration(text, sizeof(text), group->tail_ns));
	html__text(html, ", the others ");
	html__text(html, view_duration(text, sizeof(text), group->peers_tail_ns));
	html__put(html, group->stands_out ? "; <b>it stands out</b></p>\n" : "</p>\n");
	put_categories(html, group);
	if (group->cause) {
		html__put(html, "<p>");
		html__printf(html, "%s ", format_share(text, group->cause_share));
		html__text(html, group->cause);
		html__put(html, "</p>\n");
	}
	for (size_t r = 0; r < group->recording_cnt; r++) {
		const struct fleet_recording *recording = &group->recordings[r];

		html__put(html, "<pre>whylate report --html report.html ");
		html__text(html, recording->path);
		if (recording->sid) {
			html__put(html, "\nwhylate explain ");
			html__text(html, recording->path);
			fprintf(html->out, " %" PRIu64, recording->sid);
		}
		html__put(html, "</pre>\n");
	}
	html__put(html, "<p><a href=\"#heat\">Hosts and time</a></p></section>\n");
}

struct whole {
	const struct fleet_answer *answer;
	const struct view_opts *opts;
};

static void fill_text(struct page *page, const void *ctx)
{
	const struct whole *whole = ctx;

	text_fleet(page, whole->answer, whole->opts->top);
}

int view_fleet_html(FILE *out, const struct fleet_answer *answer, const struct view_opts *opts)
{
	const struct whole whole = {answer, opts};
	struct html html;

	html__open(&html, out, "whylate: hosts");
	html__put(&html, "<header><h1>Hosts</h1></header>\n<section>");
	html__preformatted(&html, fill_text, &whole);
	html__put(&html, "</section>\n");
	if (answer->heat_cnt && answer->heat_end_ns > answer->heat_begin_ns)
		put_map(&html, answer);
	for (size_t i = 0; i < answer->heat_group_cnt; i++)
		put_host(&html, answer, i);
	return html__close(&html);
}
