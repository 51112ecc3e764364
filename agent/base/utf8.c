// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/utf8.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

/* Longest result per input byte: an invalid byte as \xHH, or as U+FFFD. */
#define ESCAPED_BYTE_SZ 4

bool utf8_next(const char **str, uint32_t *codepoint)
{
	const unsigned char *at = (const unsigned char *)*str;
	unsigned char lead = *at++;
	unsigned char lo = 0x80, hi = 0xbf; /* of the second byte: narrower where overlongs and surrogates lie */
	unsigned more;
	uint32_t value;

	if (lead < 0x80) {
		more = 0;
		value = lead;
	} else if (lead >= 0xc2 && lead <= 0xdf) {
		more = 1;
		value = lead & 0x1f;
	} else if (lead >= 0xe0 && lead <= 0xef) {
		more = 2;
		value = lead & 0x0f;
		lo = lead == 0xe0 ? 0xa0 : lo;
		hi = lead == 0xed ? 0x9f : hi;
	} else if (lead >= 0xf0 && lead <= 0xf4) {
		more = 3;
		value = lead & 0x07;
		lo = lead == 0xf0 ? 0x90 : lo;
		hi = lead == 0xf4 ? 0x8f : hi;
	} else {
		*str = (const char *)at;
		return false;
	}
	for (; more; more--, lo = 0x80, hi = 0xbf) {
		if (*at < lo || *at > hi) {
			*str = (const char *)at;
			return false;
		}
		value = value << 6 | (*at++ & 0x3f);
	}
	*str = (const char *)at;
	*codepoint = value;
	return true;
}

bool utf8_locale(void)
{
	const char *codeset = nl_langinfo(CODESET);

	return !strcasecmp(codeset, "UTF-8") || !strcasecmp(codeset, "utf8");
}

bool utf8_acts(uint32_t codepoint)
{
	return codepoint < 0x20 || (codepoint >= 0x7f && codepoint < 0xa0) || codepoint == 0x61c ||
	       (codepoint >= 0x200b && codepoint <= 0x200f) || (codepoint >= 0x2028 && codepoint <= 0x202e) ||
	       (codepoint >= 0x2060 && codepoint <= 0x206f) || codepoint == 0xfeff;
}

char *utf8_valid(const char *str)
{
	char *copy = malloc(strlen(str) * ESCAPED_BYTE_SZ + 1);
	char *end = copy;
	uint32_t codepoint;

	if (!copy)
		return NULL;
	while (*str) {
		const char *from = str;

		if (utf8_next(&str, &codepoint))
			end = mempcpy(end, from, (size_t)(str - from));
		else
			end = stpcpy(end, UTF8_REPLACEMENT);
	}
	*end = '\0';
	return copy;
}

static const char *spelled_in_ascii(uint32_t codepoint)
{
	switch (codepoint) {
	case 0xa0:
		return " ";
	case 0xb5:
	case 0x3bc:
		return "u";
	case 0xb1:
		return "+-";
	case 0xd7:
		return "x";
	case 0x2010:
	case 0x2011:
	case 0x2012:
	case 0x2013:
	case 0x2014:
	case 0x2212:
		return "-";
	case 0x2018:
	case 0x2019:
		return "'";
	case 0x201c:
	case 0x201d:
		return "\"";
	case 0x2026:
		return "...";
	case 0x2192:
		return "->";
	case 0x2264:
		return "<=";
	case 0x2265:
		return ">=";
	default:
		return NULL;
	}
}

static bool takes_a_column(uint32_t codepoint, bool utf8)
{
	if (codepoint < 0x80)
		return codepoint >= 0x20 && codepoint != 0x7f;
	return utf8 && !utf8_acts(codepoint) && wcwidth((wchar_t)codepoint) > 0;
}

char *utf8_printable(const char *str, bool utf8)
{
	char *copy = malloc(strlen(str) * ESCAPED_BYTE_SZ + 1);
	char *end = copy;
	uint32_t codepoint;

	if (!copy)
		return NULL;
	while (*str) {
		const char *from = str;
		const char *spelled;

		if (!utf8_next(&str, &codepoint)) {
			for (; from < str; from++)
				end += sprintf(end, "\\x%02x", (unsigned char)*from);
		} else if (takes_a_column(codepoint, utf8)) {
			end = mempcpy(end, from, (size_t)(str - from));
		} else if (!utf8 && (spelled = spelled_in_ascii(codepoint))) {
			end = stpcpy(end, spelled);
		} else {
			end += sprintf(end,
				       codepoint < 0x80      ? "\\x%02x"
				       : codepoint < 0x10000 ? "\\u%04x"
							     : "\\U%06x",
				       codepoint);
		}
	}
	*end = '\0';
	return copy;
}

static size_t codepoint_width(uint32_t codepoint)
{
	int width = codepoint < 0x80 ? 1 : wcwidth((wchar_t)codepoint);

	return width > 0 ? (size_t)width : 1;
}

size_t utf8_width(const char *printable)
{
	size_t width = 0;
	uint32_t codepoint;

	while (*printable)
		width += utf8_next(&printable, &codepoint) ? codepoint_width(codepoint) : 1;
	return width;
}

size_t utf8_fit(const char *printable, size_t columns)
{
	const char *at = printable;
	uint32_t codepoint;

	while (*at) {
		const char *next = at;
		size_t width = utf8_next(&next, &codepoint) ? codepoint_width(codepoint) : 1;

		if (width > columns)
			break;
		columns -= width;
		at = next;
	}
	return (size_t)(at - printable);
}
