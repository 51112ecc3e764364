/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page of text for a terminal: columns by display width, no blanks at the end of a line, words wrapped.  Blanks are
 * owed until something follows them.  Errors are remembered and told by page__close(); nothing here owns `out`.
 */
#ifndef WHYLATE_VIEW_PAGE_H
#define WHYLATE_VIEW_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PAGE_COLUMNS 100

enum page_style { PAGE_PLAIN, PAGE_BOLD, PAGE_BAD, PAGE_FAINT, PAGE_CHOSEN };

struct page {
	FILE *out;
	bool utf8, colour;
	size_t columns; /* at which words wrap; PAGE_COLUMNS unless changed after page__open() */
	size_t column;  /* where the next thing goes, owed blanks included */
	size_t owed;
	int err;
};

void page__open(struct page *page, FILE *out, bool colour);
/* 0, -ENOMEM or -EIO. */
int page__close(struct page *page);

/* Text in which every name and number is already printable; without newlines. */
void page__put(struct page *page, const char *printable);
void page__printf(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Likewise, and the line ends there. */
void page__line(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Anything from outside, made printable; longer than `columns`, its middle is left out. */
void page__name(struct page *page, const char *name, size_t columns);
/* Printable text that stays in one piece, on a new line at `indent` if this one has no room for it. */
void page__chunk(struct page *page, const char *printable, size_t indent);
/* The words of anything from outside, wrapped; lines after the first begin at `indent`, and none with a unit. */
void page__words(struct page *page, const char *text, size_t indent);
/* Words from a column on, to the end of the line. */
void page__paragraph(struct page *page, size_t column, const char *text, size_t indent);
void page__style(struct page *page, enum page_style style);
/* Moves right to a column; at least one blank if something is there already. */
void page__to(struct page *page, size_t column);
/* Printable text that ends right before `column`. */
void page__right(struct page *page, const char *printable, size_t column);
void page__end_line(struct page *page);

struct page_head {
	const char *printable;
	int column; /* where it begins; negative: right before which it ends */
};

/* The heads of columns as a line: page__heads(page, PAGE_BOLD, {"Types", 0}, {"requests", -14}); */
#define page__heads(page, style, ...) page__put_heads(page, style, (const struct page_head[]){__VA_ARGS__, {NULL, 0}})
void page__put_heads(struct page *page, enum page_style style, const struct page_head heads[]);

#endif
