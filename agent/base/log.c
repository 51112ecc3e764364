// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool verbose_on;
static bool progress_open;

/* What is said holds names that a target, a file or the network chose: nothing of it may act on a terminal. */
static void put_printable(const char *text)
{
	char *printable = utf8_printable(text, utf8_locale());

	fputs(printable ? printable : "(no memory to say it)", stderr);
	free(printable);
}

void log_text(const char *prefix, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	/* A line of one thread stays a line. */
	flockfile(stderr);
	log_progress_end();
	fputs(prefix, stderr);
	put_printable(text ? text : "(no memory to say it)");
	fputc('\n', stderr);
	funlockfile(stderr);
	free(text);
}

#define SAY(prefix)                                      \
	do {                                             \
		va_list args;                            \
		va_start(args, fmt);                     \
		log_text("whylate: " prefix, fmt, args); \
		va_end(args);                            \
	} while (0)

void log_error(const char *fmt, ...)
{
	SAY("");
}

void log_warn(const char *fmt, ...)
{
	SAY("warning: ");
}

void log_info(const char *fmt, ...)
{
	SAY("");
}

void log_debug(const char *fmt, ...)
{
	if (verbose_on)
		SAY("debug: ");
}

/* Of several lines, with tabs. */
void log_debug_text(const char *fmt, va_list args)
{
	char *text, *line;

	if (!verbose_on || vasprintf(&text, fmt, args) < 0)
		return;
	log_progress_end();
	fputs("whylate: debug: ", stderr);
	line = text;
	while (*line) {
		size_t sz = strcspn(line, "\n\t");
		char end = line[sz];

		line[sz] = 0;
		put_printable(line);
		if (!end)
			break;
		fputc(end, stderr);
		line += sz + 1;
	}
	free(text);
}

void log_set_verbose(int verbose)
{
	verbose_on = verbose;
}

void log_progress(const char *fmt, ...)
{
	va_list args;
	char *text;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	if (!text)
		return;
	fputs("\r\033[K", stderr);
	put_printable(text);
	free(text);
	fflush(stderr);
	progress_open = true;
}

void log_progress_end(void)
{
	if (!progress_open)
		return;
	fputs("\r\033[K", stderr);
	progress_open = false;
}
