/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers from texts of millions of rows: without the locale's help, but as exact as strtod(). */
#ifndef WHYLATE_BASE_NUMBER_H
#define WHYLATE_BASE_NUMBER_H

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A text that ends with a NUL, at `end`. */
struct number_text {
	const char *at, *end;
};

static inline struct number_text number_text(const char *text)
{
	return (struct number_text){text, text + strlen(text)};
}

/*
 * Up to seven digits at once, where eight bytes are left: how many.  A byte that is no digit has its highest bit set
 * after the sum (a carry can only reach bytes behind such a one); then pairs, fours and eights of digits are joined by
 * multiplication.  0: none, or more than seven.
 */
static inline unsigned number_take_short(const struct number_text *text, uint64_t *whole)
{
	uint64_t eight, others;
	unsigned cnt;

	if (text->end - text->at < 8)
		return 0;
	memcpy(&eight, text->at, sizeof(eight));
	eight = le64toh(eight) ^ 0x3030303030303030;
	others = ((eight + 0x7676767676767676) | eight) & 0x8080808080808080;
	cnt = others ? (unsigned)__builtin_ctzll(others) / 8 : 0;
	if (!cnt)
		return 0;
	eight <<= 64 - 8 * cnt;
	eight = (eight & 0x0f0f0f0f0f0f0f0f) * (1 + (10 << 8)) >> 8;
	eight = (eight & 0x00ff00ff00ff00ff) * (1 + (100 << 16)) >> 16;
	*whole = (eight & 0x0000ffff0000ffff) * (1 + (10000ULL << 32)) >> 32;
	return cnt;
}

/* Digits, up to 15 of them; the cursor goes behind them. */
static inline uint64_t number_take_digits(struct number_text *text)
{
	const char *c = text->at, *end = c + 15;
	uint64_t whole = 0;
	unsigned cnt = number_take_short(text, &whole);

	if (cnt) {
		text->at += cnt;
		return whole;
	}
	while (c < end && (unsigned)(*c - '0') < 10)
		whole = whole * 10 + (uint64_t)(*c++ - '0');
	text->at = c;
	return whole;
}

/* At the end of a number in a text. */
static inline bool number_ends(char c)
{
	return c == ' ' || !c;
}

/*
 * A number without a sign.  Up to 15 digits and a power of ten up to 22 are exact, so that their product or quotient is
 * rounded once, as by strtod(), which takes the others.  NAN: none.
 */
static inline double number_take(struct number_text *text)
{
	static const double tens[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
				      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *from = text->at, *c;
	uint64_t whole = number_take_digits(text);
	int power = 0;
	char *end;
	double number;

	if (text->at > from && number_ends(*text->at))
		return (double)whole;
	c = text->at;
	if (c > from && *c == '.')
		for (c++; c - from <= 15 && (unsigned)(*c - '0') < 10; c++, power--)
			whole = whole * 10 + (uint64_t)(*c - '0');
	if (c > from && c[0] == 'e' && c[1] == '+' && (unsigned)(c[2] - '0') < 2 && (unsigned)(c[3] - '0') < 10) {
		power += 10 * (c[2] - '0') + c[3] - '0';
		c += 4;
	}
	if (c > from && number_ends(*c)) {
		text->at = c;
		return power < 0 ? (double)whole / tens[-power] : (double)whole * tens[power];
	}
	number = strtod(from, &end);
	text->at = end;
	return end == from ? NAN : number;
}

#endif
