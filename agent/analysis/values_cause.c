// SPDX-License-Identifier: GPL-2.0-or-later
/* The value that the first cause ends with. */
#include "analysis/value_judge.h"
#include "analysis/value_stats.h"
#include "analysis/values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INLINED_BY " (inlined by "
/* Fewer samples of typical requests do not say what it should be. */
#define TYPICAL_KNOWN_MIN 3

/* The frames of a path are functions, and "INLINED (inlined by FUNCTION)". */
static bool is_frame_of(const char *frame, const char *function, const char *inlined)
{
	const char *by = frame ? strstr(frame, INLINED_BY) : NULL;
	size_t len = by ? strlen(by + strlen(INLINED_BY)) : 0;

	if (!by)
		return frame && !strcmp(frame, function);
	by += strlen(INLINED_BY);
	if (len && strlen(function) == len - 1 && !strncmp(by, function, len - 1))
		return true;
	len = (size_t)(by - strlen(INLINED_BY) - frame);
	return inlined && strlen(inlined) == len && !strncmp(frame, inlined, len);
}

static bool is_on_path(const struct cause *cause, const struct value_line *line)
{
	if (is_frame_of(cause->function, line->where_function, line->inlined))
		return true;
	for (size_t i = 0; i < cause->root.call_path_cnt; i++)
		if (is_frame_of(cause->root.call_path[i], line->where_function, line->inlined))
			return true;
	return false;
}

/* What a loop tests tells more than what a condition tests, and that more than any other value. */
static int use_of(const struct value_line *line)
{
	return line->tags & VALUE_TAG_LOOP ? 2 : line->tags & VALUE_TAG_COND ? 1 : 0;
}

static bool is_suspect(const struct value_line *line)
{
	const struct value_variable_facts facts = {.kind = line->kind, .tags = line->tags};

	return value_is_suspect(&facts, line->typical_cnt, line->late_cnt, line->beyond_share);
}

/*
 * That it explains the latency says that it is the reason; then that it is in the cause's own function, how that uses
 * it, and that typical requests have it, which says what it should be.
 */
static int worth(const struct value_line *line, const struct cause *cause)
{
	bool is_own;

	if (!line || line->kind == VALUE_POINTER || line->dimension != VALUE_DIM_VALUE)
		return 0;
	if (!(line->ratio < VALUE_DEFAULT_DISCOUNT) && !is_suspect(line))
		return 0;
	/* What is the same for all requests grows with time at most. */
	if (line->tags & VALUE_TAG_GLOBAL && isnan(line->exponent))
		return 0;
	is_own = line->where_function && is_frame_of(cause->function, line->where_function, line->inlined);
	return 1 + 32 * !isnan(line->exponent) + 16 * is_own + 4 * use_of(line) +
	       2 * (line->typical_cnt >= TYPICAL_KNOWN_MIN || is_suspect(line));
}

static void number_text(char *buf, size_t sz, double number)
{
	char digits[32];
	size_t len, at = 0;

	if (fabs(number) >= 1e15 || number != floor(number)) {
		snprintf(buf, sz, "%.4g", number);
		return;
	}
	snprintf(digits, sizeof(digits), "%.0f", fabs(number));
	len = strlen(digits);
	if (number < 0)
		buf[at++] = '-';
	for (size_t i = 0; i < len && at + 2 < sz; i++) {
		buf[at++] = digits[i];
		if ((len - i - 1) % 3 == 0 && i + 1 < len)
			buf[at++] = ',';
	}
	buf[at] = '\0';
}

/* The whole exponent that the interval has; of two, or none, neither is the one. */
static const char *growth_name(struct ci exponent)
{
	static const char *const names[] = {"", "linearly, ", "quadratically, ", "cubically, "};
	const double slack = 0.05; /* of the grid of exponents */
	int found = 0;

	for (int power = 1; power <= 3; power++) {
		if (exponent.lo - slack > power || exponent.hi + slack < power)
			continue;
		if (found)
			return "";
		found = power;
	}
	return names[found];
}

/* "`items` in `normalize_basket` is 1,400 (typical 8–14)"; NULL: out of memory. */
static char *value_line_text(const struct value_line *line, bool by_recording, struct arena *arena)
{
	char median[48], lo[48], hi[48] = "", typical[128], grows[96] = "";

	number_text(median, sizeof(median), line->late_median);
	number_text(lo, sizeof(lo), line->typical_lo);
	if (line->typical_hi > line->typical_lo)
		number_text(hi, sizeof(hi), line->typical_hi);
	if (isnan(line->typical_lo))
		snprintf(typical, sizeof(typical), "%s never sampled", by_recording ? "normal:" : "typical:");
	else
		snprintf(typical, sizeof(typical), "%s %s%s%s", by_recording ? "normal" : "typical", lo,
			 *hi ? line->typical_lo < 0 ? " to " : "–" : "", hi);
	if (!isnan(line->exponent))
		snprintf(grows, sizeof(grows), "; latency grows %s as its power %.2f [%.2f–%.2f]",
			 growth_name(line->exponent_ci), line->exponent, line->exponent_ci.lo, line->exponent_ci.hi);
	return arena__printf(arena, "`%s`%s%s%s is %s (%s)%s", line->variable, line->where_function ? " in `" : "",
			     line->where_function ? line->where_function : "", line->where_function ? "`" : "", median,
			     typical, grows);
}

/* The first cause, where it is code, ends with the value that differs in it. 0 or -ENOMEM. */
int values_name_cause(struct report *report)
{
	struct cause *cause = report->cause_cnt ? &report->causes[0] : NULL;
	const struct value_line *best[2] = {NULL, NULL};
	const char *text, *whole;

	if (!cause || (cause->has_root ? cause->root.kind != ROOT_CODE : cause->category != WL_CATEGORY_ONCPU))
		return 0;
	for (size_t v = 0; v < report->values->variable_cnt; v++) {
		const struct value_line *line = &report->values->variables[v];
		int on_path = line->where_function && is_on_path(cause, line);

		if (worth(line, cause) > worth(best[on_path], cause))
			best[on_path] = line;
	}
	/* Of a root without a call path nothing tells that the target's variables have to do with it. */
	cause->value = best[1] ? best[1] : cause->has_root ? NULL : best[0];
	/* What a caller hands on under the same name is known of more requests. */
	if (best[1] && best[0] && isnan(best[1]->exponent) && !isnan(best[0]->exponent) &&
	    !strcmp(best[0]->variable, best[1]->variable))
		cause->value = best[0];
	if (!cause->value || !cause->what)
		return 0;
	text = value_line_text(cause->value, false, report->arena);
	whole = text ? arena__printf(report->arena, "%s; %s", cause->what, text) : NULL;
	cause->what = whole ? whole : cause->what;
	return whole ? 0 : -ENOMEM;
}
