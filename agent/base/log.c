// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool verbose_on;
static bool progress_open;

static void say(const char *prefix, const char *fmt, va_list args)
{
	/* A line of one thread stays a line. */
	flockfile(stderr);
	log_progress_end();
	fprintf(stderr, "whylate: %s", prefix);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

#define SAY(prefix)                     \
	do {                            \
		va_list args;           \
		va_start(args, fmt);    \
		say(prefix, fmt, args); \
		va_end(args);           \
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

void log_debug_text(const char *fmt, va_list args)
{
	if (!verbose_on)
		return;
	log_progress_end();
	fputs("whylate: debug: ", stderr);
	vfprintf(stderr, fmt, args);
}

void log_set_verbose(int verbose)
{
	verbose_on = verbose;
}

void log_progress(const char *fmt, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
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
