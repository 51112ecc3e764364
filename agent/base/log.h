/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the program says to its user, always on stderr, one line each: `whylate: …`.
 * Leaves are silent and return -errno; whoever knows the user's object (path, pid, symbol) says it once.
 */
#ifndef WHYLATE_BASE_LOG_H
#define WHYLATE_BASE_LOG_H

#include <stdarg.h>

#define WL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* An error that ends what the user asked for: what, which one, why, what to do. */
void log_error(const char *fmt, ...) WL_PRINTF(1, 2);
void log_warn(const char *fmt, ...) WL_PRINTF(1, 2);
void log_info(const char *fmt, ...) WL_PRINTF(1, 2);
/* One of them with the whole of its prefix, and what acts on a terminal escaped as in all of them. */
void log_text(const char *prefix, const char *fmt, va_list args) WL_PRINTF(2, 0);
/* Only with log_set_verbose(1). */
void log_debug(const char *fmt, ...) WL_PRINTF(1, 2);
/* The same for a text of any length that ends its own lines. */
void log_debug_text(const char *fmt, va_list args) WL_PRINTF(1, 0);
void log_set_verbose(int verbose);
/* A line that overwrites itself, only where stderr is a terminal; any other message ends it first. */
void log_progress(const char *fmt, ...) WL_PRINTF(1, 2);
void log_progress_end(void);

#endif
