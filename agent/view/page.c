// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/page.h"

#include "base/utf8.h"
#include "view/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct view_opts view_opts_stdout(uint32_t top)
{
	return (struct view_opts){.top = top, .colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
}

void page__open(struct page *page, FILE *out, bool colour)
{
	*page = (struct page){.out = out, .colour = colour, .utf8 = utf8_locale(), .columns = PAGE_COLUMNS};
}

int page__close(struct page *page)
{
	if (fflush(page->out) || ferror(page->out))
		return -EIO;
	return page->err;
}

static void pay_blanks(struct page *page)
{
	fprintf(page->out, "%*s", (int)page->owed, "");
	page->owed = 0;
}

static void put_bytes(struct page *page, const char *printable, size_t sz, size_t width)
{
	if (!sz)
		return;
	pay_blanks(page);
	fwrite(printable, 1, sz, page->out);
	page->column += width;
}

void page__put(struct page *page, const char *printable)
{
	size_t len = strlen(printable);
	size_t used = len;

	while (used && printable[used - 1] == ' ')
		used--;
	if (used)
		put_bytes(page, printable, used, utf8_width(printable) - (len - used));
	page->owed += len - used;
	page->column += len - used;
}

static void put_formatted(struct page *page, const char *fmt, va_list args)
{
	char line[4 * PAGE_COLUMNS];

	vsnprintf(line, sizeof(line), fmt, args);
	page__put(page, line);
}

void page__printf(struct page *page, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_formatted(page, fmt, args);
	va_end(args);
}

void page__line(struct page *page, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_formatted(page, fmt, args);
	va_end(args);
	page__end_line(page);
}

/* The middle of a long name says least: a path ends in its file, a symbol begins with its subject. */
static void put_shortened(struct page *page, const char *printable, size_t columns)
{
	const char *gap = page->utf8 ? "…" : "...";
	size_t gap_width = page->utf8 ? 1 : 3;
	size_t width = utf8_width(printable);
	const char *tail = printable;
	size_t head_sz, tail_room;

	if (width <= columns || columns <= gap_width) {
		put_bytes(page, printable, strlen(printable), width);
		return;
	}
	head_sz = utf8_fit(printable, (columns - gap_width) / 2);
	tail_room = columns - gap_width - (columns - gap_width) / 2;
	tail += utf8_fit(tail, width - tail_room);
	if (utf8_width(tail) > tail_room) /* a wide character lies across the cut */
		tail += utf8_fit(tail, 2);
	put_bytes(page, printable, head_sz, width - utf8_width(printable + head_sz));
	put_bytes(page, gap, strlen(gap), gap_width);
	put_bytes(page, tail, strlen(tail), utf8_width(tail));
}

void page__name(struct page *page, const char *name, size_t columns)
{
	char *printable = utf8_printable(name, page->utf8);

	if (!printable) {
		page->err = -ENOMEM;
		return;
	}
	put_shortened(page, printable, columns);
	free(printable);
}

void page__chunk(struct page *page, const char *printable, size_t indent)
{
	if (page->column > indent && page->column + utf8_width(printable) > page->columns) {
		page__end_line(page);
		page__to(page, indent);
	}
	page__put(page, printable);
}

static bool is_unit(const char *word)
{
	static const char *const units[] = {"ns", "µs", "us", "ms", "s", "min", "h", "%", "B", "KiB", "MiB", "GiB"};
	size_t sz = strcspn(word, ",;:.)]");

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (sz == strlen(units[i]) && !memcmp(word, units[i], sz))
			return true;
	return false;
}

/* The columns that must be free for `word`: a number's unit, first of the words in `rest`, stays on its line. */
static size_t columns_of(const char *word, char *rest)
{
	size_t width = utf8_width(word);
	char *end = rest ? rest + strcspn(rest, " ") : NULL, was;

	if (!width || !rest || !isdigit((unsigned char)word[strlen(word) - 1]))
		return width;
	was = *end;
	*end = '\0';
	if (is_unit(rest))
		width += 1 + utf8_width(rest);
	*end = was;
	return width;
}

void page__words(struct page *page, const char *text, size_t indent)
{
	char *printable = utf8_printable(text, page->utf8);
	char *rest = printable, *word;
	bool first = true;

	if (!printable) {
		page->err = -ENOMEM;
		return;
	}
	while ((word = strsep(&rest, " "))) {
		size_t width = columns_of(word, rest);

		if (!width)
			continue;
		if (!first)
			page__put(page, " ");
		if (page->column > indent && page->column + width > page->columns) {
			page__end_line(page);
			page__to(page, indent);
		}
		put_shortened(page, word, page->columns - indent);
		first = false;
	}
	free(printable);
}

void page__style(struct page *page, enum page_style style)
{
	static const char *const codes[] = {"\033[0m", "\033[1m", "\033[1;31m", "\033[2m", "\033[7m"};

	if (!page->colour)
		return;
	/* Blanks before a styled word are plain; those after it follow the end of its style. */
	if (style != PAGE_PLAIN)
		pay_blanks(page);
	fputs(codes[style], page->out);
}

void page__to(struct page *page, size_t column)
{
	size_t blanks = page->column < column ? column - page->column : 0;

	if (!blanks && page->column && !page->owed)
		blanks = 1;
	page->owed += blanks;
	page->column += blanks;
}

void page__right(struct page *page, const char *printable, size_t column)
{
	size_t width = utf8_width(printable);

	page__to(page, column > width ? column - width : 0);
	page__put(page, printable);
}

void page__end_line(struct page *page)
{
	page->owed = 0;
	page->column = 0;
	fputc('\n', page->out);
}

void page__paragraph(struct page *page, size_t column, const char *text, size_t indent)
{
	page__to(page, column);
	page__words(page, text, indent);
	page__end_line(page);
}

void page__put_heads(struct page *page, enum page_style style, const struct page_head heads[])
{
	page__style(page, style);
	for (; heads->printable; heads++)
		if (heads->column < 0) {
			page__right(page, heads->printable, (size_t)-heads->column);
		} else {
			page__to(page, (size_t)heads->column);
			page__put(page, heads->printable);
		}
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}
