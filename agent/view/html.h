/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One HTML file: it loads nothing, and its Content-Security-Policy admits only its own script and style, by hash.
 * Everything from a recording is text: html__text() makes it printable and escapes it.  The data block is base64.
 * Errors are remembered and returned by html__close(); nothing here owns `out`.
 */
#ifndef WHYLATE_VIEW_HTML_H
#define WHYLATE_VIEW_HTML_H

#include "analysis/contexts.h"
#include "analysis/findings.h"
#include "view/page.h"
#include "view/view.h"

#include <locale.h>
#include <stdio.h>

struct html {
	FILE *out;
	locale_t utf8, before; /* numbers and signs are written in UTF-8 whatever the user's locale */
	bool explores;         /* there is a data block, and so a script */
	int err;
};

/* Everything up to and with <main>.  The title is from outside. */
void html__open(struct html *html, FILE *out, const char *title);
/* Markup of our own, never of a recording. */
void html__put(struct html *html, const char *markup);
/* Anything from outside. */
void html__text(struct html *html, const char *text);
void html__printf(struct html *html, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* as text */
/* <tag class="class">text</tag>; class NULL: without. */
void html__element(struct html *html, const char *tag, const char *class, const char *text);
/* <td class="number">text</td> */
void html__number(struct html *html, const char *text);
/* A bar for a share of 1, with its interval; NAN: none. */
void html__bar(struct html *html, double share, struct ci ci);
/* What fill() writes for a terminal, as preformatted text. */
typedef void (*html_fill)(struct page *page, const void *ctx);
void html__preformatted(struct html *html, html_fill fill, const void *ctx);
/* The same behind a heading that opens it; nothing where fill() writes nothing. */
void html__details(struct html *html, const char *heading, html_fill fill, const void *ctx);
/* Up to the end, with the script: 0, -ENOMEM or -EIO.  fill() and everything else have returned. */
int html__close(struct html *html);

/* The parts of a report: what it is about, causes, breakdown.  html_verdict.c */
void html__header(struct html *html, const struct report *report);
void html__causes(struct html *html, const struct report *report, uint32_t top);
void html__breakdown(struct html *html, const struct report *report);
/* Bars of values, hosts and events, where the recording has them.  html_charts.c */
void html__charts(struct html *html, const struct report *report, uint32_t top);

/*
 * The requests themselves, compressed, for the page's script: html_data.c.  contexts NULL: not made.  0 or -errno, also
 * in html->err.
 */
int html__data(struct html *html, const struct findings *findings, const struct contexts *contexts);

/* The whole page of a report; likewise.  0, -ENOMEM or -EIO. */
int view_html(FILE *out, const struct findings *findings, const struct contexts *contexts,
	      const struct view_opts *opts);

#endif
