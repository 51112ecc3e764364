/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names from a target (comm, file names, symbols) are arbitrary bytes: here they become text that a terminal or a JSON
 * parser can be given.  No state; everything returned by pointer is the caller's to free().
 */
#ifndef WHYLATE_BASE_UTF8_H
#define WHYLATE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/*
 * Reads one code point at *str (not its end) and steps over it.  False where the bytes are not valid UTF-8 (overlong,
 * surrogate, cut, beyond U+10FFFF): then *str is past the ill-formed part, at least one byte, and never past a NUL.
 */
bool utf8_next(const char **str, uint32_t *codepoint);

/* Does the terminal's locale (LC_CTYPE, as main() set it) speak UTF-8? */
bool utf8_locale(void);

/* A copy in which U+FFFD stands for what is not UTF-8, or NULL (ENOMEM). */
char *utf8_valid(const char *str);

/*
 * A copy that is safe on a terminal, or NULL (ENOMEM): control characters, invalid bytes and everything that takes no
 * column of its own (direction overrides, zero-width and combining characters) become \xHH or \uHHHH.  Without `utf8`
 * the result is ASCII: the few signs that the report itself uses are spelled out, the rest is escaped.
 */
char *utf8_printable(const char *str, bool utf8);

/* Columns that a printable string takes. */
size_t utf8_width(const char *printable);

/* How many bytes of a printable string fit into `columns`. */
size_t utf8_fit(const char *printable, size_t columns);

/* Would this code point, written raw, act on a terminal or on the direction of the text? */
bool utf8_acts(uint32_t codepoint);

#endif
