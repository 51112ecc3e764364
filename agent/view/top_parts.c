// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/top_parts.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

#define TREND_GROWS 1.5

const char *top_trend(const struct page *page, double trend)
{
	if (isnan(trend))
		return " ";
	if (trend > TREND_GROWS)
		return page->utf8 ? "↑" : "^";
	if (trend < 1 / TREND_GROWS)
		return page->utf8 ? "↓" : "v";
	return page->utf8 ? "→" : "=";
}

void top_curve(struct page *page, const double *values, size_t cnt, size_t columns)
{
	static const char *const signs[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
	enum { LEVELS = sizeof(signs) / sizeof(signs[0]) };
	double lo = INFINITY, hi = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (isnan(values[i]))
			continue;
		lo = fmin(lo, values[i]);
		hi = fmax(hi, values[i]);
	}
	for (size_t column = 0; column < columns; column++) {
		size_t first = column * cnt / columns, end = (column + 1) * cnt / columns;
		double value = NAN;
		int level;

		/* Of several values in a column the largest: a peak is what one looks for. */
		for (size_t i = first; i < end || i == first; i++)
			if (i < cnt && !isnan(values[i]))
				value = isnan(value) ? values[i] : fmax(value, values[i]);
		if (isnan(value)) {
			page__to(page, page->column + 1);
			continue;
		}
		level = hi > lo ? (int)((value - lo) / (hi - lo) * (LEVELS - 1) + 0.5) : 0;
		page__put(page, (page->utf8 ? signs : ascii)[level]);
	}
}

void top_rest(struct page *page, const char *text)
{
	char *printable = utf8_printable(text, page->utf8);
	size_t room = page->columns > page->column ? page->columns - page->column : 0;
	const char *gap = page->utf8 ? "…" : ">";

	if (!printable) {
		page->err = -ENOMEM;
		return;
	}
	if (utf8_width(printable) > room) {
		printable[room ? utf8_fit(printable, room - 1) : 0] = '\0';
		page__put(page, printable);
		page__put(page, room ? gap : "");
	} else {
		page__put(page, printable);
	}
	free(printable);
}

const struct timeline_cause *top_cause_line(const struct top_view *view, size_t cause)
{
	return view->timeline && cause < view->timeline->cause_cnt ? &view->timeline->causes[cause] : NULL;
}
