// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/html.h"

#include "base/utf8.h"
#include "view/contexts.h"
#include "view/text.h"

#include <html_assets.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void html__put(struct html *html, const char *markup)
{
	if (fputs(markup, html->out) < 0 && !html->err)
		html->err = -EIO;
}

static void escape(struct html *html, const char *printable)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	while (*printable) {
		size_t plain = strcspn(printable, special);

		fwrite(printable, 1, plain, html->out);
		printable += plain;
		if (*printable)
			html__put(html, entities[strchr(special, *printable++) - special]);
	}
}

void html__text(struct html *html, const char *text)
{
	char *printable = utf8_printable(text, true);

	if (!printable) {
		html->err = -ENOMEM;
		return;
	}
	escape(html, printable);
	free(printable);
}

void html__printf(struct html *html, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0) {
		html->err = -ENOMEM;
		return;
	}
	html__text(html, text);
	free(text);
}

void html__element(struct html *html, const char *tag, const char *class, const char *text)
{
	html__put(html, "<");
	html__put(html, tag);
	if (class) {
		html__put(html, " class=\"");
		html__put(html, class);
		html__put(html, "\"");
	}
	html__put(html, ">");
	html__text(html, text);
	html__put(html, "</");
	html__put(html, tag);
	html__put(html, ">");
}

void html__number(struct html *html, const char *text)
{
	html__element(html, "td", "number", text);
}

static double percent(double share)
{
	return 100 * fmin(fmax(share, 0), 1);
}

/* Attributes of SVG are no inline style, which the policy would refuse. */
void html__bar(struct html *html, double share, struct ci ci)
{
	html__put(html, "<svg class=\"bar\" role=\"presentation\" width=\"100%\" height=\"10\">");
	if (isfinite(share))
		fprintf(html->out, "<rect class=\"share\" width=\"%.2f%%\" height=\"10\"/>", percent(share));
	if (isfinite(ci.lo) && isfinite(ci.hi))
		fprintf(html->out, "<rect class=\"ci\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"4\" height=\"2\"/>",
			percent(ci.lo), percent(ci.hi) - percent(ci.lo));
	html__put(html, "</svg>\n");
}

static char *filled(struct html *html, html_fill fill, const void *ctx)
{
	char *text = NULL;
	struct page page;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);
	int err;

	if (!out) {
		html->err = -ENOMEM;
		return NULL;
	}
	page__open(&page, out, false);
	fill(&page, ctx);
	err = page__close(&page);
	if (fclose(out) || err)
		html->err = err ? err : -ENOMEM;
	return text;
}

/* Line by line, because a line's end is no printable character. */
static void put_lines(struct html *html, char *text)
{
	char *line;

	html__put(html, "<pre>");
	text += strspn(text, "\n");
	while ((line = strsep(&text, "\n"))) {
		if (!text && !*line)
			break;
		html__text(html, line);
		html__put(html, "\n");
	}
	html__put(html, "</pre>\n");
}

void html__preformatted(struct html *html, html_fill fill, const void *ctx)
{
	char *text = filled(html, fill, ctx);

	if (text)
		put_lines(html, text);
	free(text);
}

void html__details(struct html *html, const char *heading, html_fill fill, const void *ctx)
{
	char *text = filled(html, fill, ctx);

	if (text && text[strspn(text, "\n ")]) {
		html__put(html, "<details>");
		html__element(html, "summary", NULL, heading);
		put_lines(html, text);
		html__put(html, "</details>\n");
	}
	free(text);
}

void html__open(struct html *html, FILE *out, const char *title)
{
	*html = (struct html){.out = out, .utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", 0)};
	if (html->utf8)
		html->before = uselocale(html->utf8);
	html__put(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '");
	html__put(html, html_script_hash);
	html__put(html, "'; style-src '");
	html__put(html, html_style_hash);
	html__put(html, "'; worker-src blob:; base-uri 'none'; form-action 'none'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n");
	html__element(html, "title", NULL, title);
	html__put(html, "\n<style>");
	html__put(html, html_style);
	html__put(html, "</style>\n</head>\n<body>\n<main>\n");
}

int html__close(struct html *html)
{
	html__put(html, "</main>\n<footer><p>");
	html__printf(html, "Made by whylate %s. This file loads nothing from the network.", WHYLATE_VERSION);
	html__put(html, "</p></footer>\n");
	if (html->explores) {
		html__put(html, "<script>");
		html__put(html, html_script);
		html__put(html, "</script>\n");
	}
	html__put(html, "</body>\n</html>\n");
	if (html->utf8) {
		uselocale(html->before);
		freelocale(html->utf8);
	}
	if (fflush(html->out) || ferror(html->out))
		return -EIO;
	return html->err;
}

/* --- the page of a report ------------------------------------------------------------------------------------------
 */

typedef void (*text_part)(struct page *page, const struct report *report, uint32_t top);

struct part {
	const struct report *report;
	const struct contexts *contexts;
	uint32_t top;
	text_part text;
};

static void fill_part(struct page *page, const void *ctx)
{
	const struct part *part = ctx;

	part->text(page, part->report, part->top);
}

static void fill_contexts(struct page *page, const void *ctx)
{
	const struct part *part = ctx;
	const struct view_opts opts = {.top = part->top};

	view_contexts_text(page->out, part->contexts, &opts);
}

static void put_title(char *title, size_t sz, const struct dataset *dataset)
{
	bool named = dataset->comm && *dataset->comm;

	snprintf(title, sz, "whylate: %s%s%s", named ? dataset->comm : "a recording",
		 dataset->host && *dataset->host ? " on " : "", dataset->host ? dataset->host : "");
}

int view_html(FILE *out, const struct findings *findings, const struct contexts *contexts, const struct view_opts *opts)
{
	static const struct {
		const char *heading;
		text_part text;
	} parts[] = {
		{"Factors: which functions vary", text_factors},
		{"Values: late requests against typical ones", text_values},
		{"Critical paths, the slowest requests, crosstalk", text_path},
		{"Hosts", text_hosts},
		{"Events", text_events},
		{"Types of requests", text_types},
	};
	struct part part = {.report = &findings->report, .contexts = contexts, .top = opts->top};
	struct html html;
	char title[256];

	put_title(title, sizeof(title), &findings->dataset);
	html__open(&html, out, title);
	html__header(&html, part.report);
	if (findings->dataset.row_cnt) {
		html__causes(&html, part.report, opts->top);
		html__put(&html, html_explore);
		html__put(&html,
			  "<section><h2>Where the time went</h2>\n"
			  "<p class=\"faint\">Late requests against typical ones, whatever is selected above.</p>\n");
		html__breakdown(&html, part.report);
		html__charts(&html, part.report, opts->top);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			part.text = parts[i].text;
			html__details(&html, parts[i].heading, fill_part, &part);
		}
		if (contexts)
			html__details(&html, "Contexts: stages and call paths by type", fill_contexts, &part);
		html__put(&html, "</section>\n");
	}
	html__put(&html, "<section><h2>How far this can be trusted</h2>\n");
	part.text = text_trust;
	html__preformatted(&html, fill_part, &part);
	html__put(&html, "</section>\n");
	if (findings->dataset.row_cnt)
		html__data(&html, findings, contexts);
	return html__close(&html);
}
