// SPDX-License-Identifier: GPL-2.0-or-later
/* Loss, damage and what was not measured: printed every time, so that silence never has to be interpreted. */
#include "view/text.h"

#include "base/names.h"
#include "view/format.h"
#include "view/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_loss(struct page *page, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	const enum wl_loss rings[] = {WL_LOSS_INTERVAL, WL_LOSS_TASK};
	char text[FORMAT_SZ], more[FORMAT_SZ], total[FORMAT_SZ];
	uint64_t emitted = 0, lost = 0, any = dataset->records_lost;

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		emitted += dataset->loss[rings[i]].emitted;
		lost += dataset->loss[rings[i]].lost;
	}
	for (int i = 0; i < WL_LOSS_CNT; i++)
		any |= dataset->loss[i].lost;
	page__put(page, "Loss: ");
	if (!any && !emitted && dataset->row_cnt) {
		page__line(page, "not known, the recording ends before its first account of it");
		return;
	}
	page__style(page, any ? PAGE_BAD : PAGE_PLAIN);
	if (!any)
		page__put(page, "none");
	else if (!lost && !dataset->records_lost)
		page__put(page, "no record, but see below");
	else
		page__printf(page, "%s record%s, %s of the requests",
			     format_count(text, dataset->records_lost ? dataset->records_lost : lost),
			     dataset->records_lost == 1 ? "" : "s", format_share(more, report->records_lost_share));
	page__style(page, PAGE_PLAIN);
	page__line(page, "  (emitted %s = written %s + lost %s)", format_count(text, emitted),
		   format_count(more, emitted > lost ? emitted - lost : 0), format_count(total, lost));
	for (int i = 0; i < WL_LOSS_CNT; i++) {
		if (!dataset->loss[i].lost)
			continue;
		page__to(page, 2);
		page__put(page, loss_name(i));
		page__right(page, format_count(text, dataset->loss[i].lost), 26);
		/* Of some classes only what is missing is counted. */
		if (dataset->loss[i].emitted)
			page__printf(page, " of %s", format_count(text, dataset->loss[i].emitted));
		page__paragraph(page, 42, loss_meaning(i), 42);
	}
}

/* Fewer clusters than this, and their spread is not known well. */
#define WINDOWS_FEW 10

/* How many independent events it takes until one of them is seen with 95 %: (1 - share)^n = 5 %. */
static double events_seen(double share)
{
	return ceil(log(0.05) / log1p(-share));
}

static void print_observed(struct page *page, const struct dataset *dataset)
{
	double share = dataset->window_selecting_s / dataset->duration_s;
	char part[FORMAT_SZ], of[FORMAT_SZ], windows[FORMAT_SZ], times[FORMAT_SZ], text[5 * FORMAT_SZ];

	if (!(share > 0 && share < 0.95))
		return;
	page__put(page, "Observed: ");
	snprintf(text, sizeof(text),
		 "%s of %s, in %s window%s; a short stall that happened once was seen with that chance, one that "
		 "happened %s times with 95 %%",
		 format_part(part, share), view_duration(of, sizeof(of), dataset->duration_s * 1e9),
		 format_count(windows, dataset->window_cnt), dataset->window_cnt == 1 ? "" : "s",
		 format_count(times, (uint64_t)events_seen(share)));
	page__words(page, text, 2);
	page__end_line(page);
}

static void print_windows(struct page *page, const struct dataset *dataset)
{
	if (dataset->window_cnt && dataset->duration_s > 0)
		print_observed(page, dataset);
	if (!dataset->window_cnt || dataset->window_cnt >= WINDOWS_FEW)
		return;
	page__put(page, "Few windows: ");
	page__words(page, "the intervals of confidence are rough with less than ten; record for longer", 2);
	page__end_line(page);
}

static void print_censored(struct page *page, const struct dataset *dataset)
{
	char count[FORMAT_SZ], age[FORMAT_SZ];

	if (!dataset->censored_cnt)
		return;
	page__put(page, "Open at the end: ");
	page__printf(page, "%s request%s", format_count(count, dataset->censored_cnt),
		     dataset->censored_cnt == 1 ? "" : "s");
	if (dataset->censored_longest_ns)
		page__printf(page, ", the oldest for %s",
			     view_duration(age, sizeof(age), (double)dataset->censored_longest_ns));
	page__end_line(page);
}

/* VarMRI §5.3 */
static void print_length(struct page *page, const struct length_line *length)
{
	char late[FORMAT_SZ], error[FORMAT_SZ], stated[FORMAT_SZ], needed[FORMAT_SZ], text[6 * FORMAT_SZ];
	const char *about = page->utf8 ? "±" : "+-";

	if (!isfinite(length->error) || !isfinite(length->needed_s))
		return;
	page__put(page, "Length: ");
	snprintf(text, sizeof(text),
		 "%s late requests kept, their share of all is known to %s%s (95 %%); %s%s takes %s",
		 format_count(late, length->late_rows), about, format_share(error, length->error), about,
		 format_share(stated, length->stated_error),
		 view_duration(needed, sizeof(needed), length->needed_s * 1e9));
	page__words(page, text, 2);
	if (isfinite(length->recorded_needed_s)) {
		snprintf(text, sizeof(text), "(hardware counters: %s)",
			 view_duration(needed, sizeof(needed), length->recorded_needed_s * 1e9));
		page__put(page, " ");
		page__words(page, text, 2);
	}
	page__end_line(page);
}

static void print_flagged(struct page *page, const struct dataset *dataset)
{
	char flagged[FORMAT_SZ], rows[FORMAT_SZ];

	page__put(page, "Uncertain requests: ");
	if (!dataset->intervals_flagged) {
		page__put(page, "none");
	} else {
		page__printf(page, "%s of %s kept", format_count(flagged, dataset->intervals_flagged),
			     format_count(rows, dataset->row_cnt));
		page__put(page, " ");
		page__words(page, "(records lost meanwhile, counters torn, or more changes of state than fit)", 2);
	}
	page__end_line(page);
}

static void print_unmeasured(struct page *page, const struct dataset *dataset)
{
	bool any = false;

	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		if (!dataset->category_unmeasured[i])
			continue;
		page__put(page, any ? ", " : "Not measured on this kernel: ");
		page__chunk(page, category_name((enum wl_category)i), 2);
		any = true;
	}
	if (any) {
		page__put(page, " ");
		page__words(page, "(that time is in the category around it)", 2);
		page__end_line(page);
	}
	for (size_t i = 0; i < dataset->hooks_missing_cnt; i++) {
		page__put(page, i ? ", " : "Missing hooks: ");
		page__words(page, dataset->hooks_missing[i], 2);
	}
	if (dataset->hooks_missing_cnt)
		page__end_line(page);
}

static bool has_value(const struct dataset_event *event, size_t row_cnt)
{
	if (!event->values || !event->missing)
		return event->values;
	for (size_t i = 0; i < row_cnt; i++)
		if (!(event->missing[i / 64] >> (i % 64) & 1))
			return true;
	return false;
}

static void print_hardware(struct page *page, const struct dataset *dataset)
{
	if (!dataset->row_cnt)
		return;
	for (size_t i = 0; i < dataset->event_cnt; i++)
		if (!strncmp(dataset->events[i].name, "hw.", 3) && has_value(&dataset->events[i], dataset->row_cnt))
			return;
	page__line(page, "Hardware counters: absent (no PMU on that machine, or recorded with --no-hw)");
}

static void print_damage(struct page *page, const struct dataset *dataset, uint32_t top)
{
	char text[FORMAT_SZ], chunk[2 * FORMAT_SZ];

	if (!dataset->damage_cnt)
		return;
	page__style(page, PAGE_BAD);
	page__put(page, "Damaged files");
	page__style(page, PAGE_PLAIN);
	page__line(page, ": everything else in them was read");
	for (size_t i = 0; i < text_limit(dataset->damage_cnt, top); i++) {
		const struct shard_damage *damage = &dataset->damage[i];

		page__to(page, 2);
		page__name(page, damage->path, 46);
		page__put(page, ": ");
		page__name(page, damage->what, 20);
		snprintf(chunk, sizeof(chunk), "at byte %s,", format_count(text, damage->off));
		page__put(page, " ");
		page__chunk(page, chunk, 4);
		snprintf(chunk, sizeof(chunk), "%s bytes not read", format_count(text, damage->sz));
		page__put(page, " ");
		page__chunk(page, chunk, 4);
		page__end_line(page);
	}
	text_more(page, dataset->damage_cnt, top);
}

void text_trust(struct page *page, const struct report *report, uint32_t top)
{
	const struct dataset *dataset = report->dataset;

	page__end_line(page);
	print_loss(page, report);
	print_flagged(page, dataset);
	print_windows(page, dataset);
	print_censored(page, dataset);
	print_length(page, &report->length);
	print_unmeasured(page, dataset);
	print_hardware(page, dataset);
	for (size_t i = 0; i < dataset->note_cnt; i++) {
		page__put(page, "Note: ");
		page__words(page, dataset->notes[i], 6);
		page__end_line(page);
	}
	print_damage(page, dataset, top);
}
