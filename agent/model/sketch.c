// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/sketch.h"

#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ZERO       '0'
#define BASE_BITS  6
#define BASE       (1u << BASE_BITS)
#define WIDTH_MAX  9 /* digits: 54 bits */
#define SHIFT_MAX  (BASE - 1)
#define NUMBER_MAX 0x1p53
#define ERROR_MAX  0x1p-16
#define GAP_MAX    2 /* classes without weight, which take less room within a run than the begin of another one */

/* --- writing ---------------------------------------------------------------------------------------------------- */

static bool is_off(const float *weights, uint32_t cnt, unsigned shift)
{
	for (uint32_t i = 0; i < cnt; i++) {
		double number = ldexp((double)weights[i], (int)shift);

		if (fabs(nearbyint(number) - number) > number * ERROR_MAX)
			return true;
	}
	return false;
}

static size_t put_run(char *buf, size_t sz, const float *weights, uint32_t first, uint32_t cnt)
{
	unsigned shift = 0, width = 1;
	double most = 0;
	size_t len;

	for (uint32_t i = 0; i < cnt; i++)
		most = fmax(most, (double)weights[i]);
	while (shift < SHIFT_MAX && ldexp(most, (int)shift + 1) < NUMBER_MAX && is_off(weights, cnt, shift))
		shift++;
	most = fmin(nearbyint(ldexp(most, (int)shift)), NUMBER_MAX);
	while (width < WIDTH_MAX && most >= ldexp(1, (int)(BASE_BITS * width)))
		width++;
	len = (size_t)snprintf(buf, sz, "%u=%c%c", first, ZERO + width, ZERO + shift);
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t number = (uint64_t)fmin(nearbyint(ldexp((double)weights[i], (int)shift)), NUMBER_MAX);

		for (unsigned digit = width; digit--;)
			buf[len++] = (char)(ZERO + (number >> BASE_BITS * digit) % BASE);
	}
	return len;
}

void sketch_text(char buf[SKETCH_TEXT_SZ], const float weights[LOGHIST_CLASS_CNT])
{
	uint32_t first = 0, end;
	size_t len = 0;

	for (; first < LOGHIST_CLASS_CNT; first = end + 1) {
		end = first;
		if (!(weights[first] > 0))
			continue;
		for (uint32_t c = first; c < LOGHIST_CLASS_CNT && c <= end + 1 + GAP_MAX; c++)
			end = weights[c] > 0 ? c : end;
		if (len)
			buf[len++] = ' ';
		len += put_run(buf + len, SKETCH_TEXT_SZ - len, weights + first, first, end + 1 - first);
	}
	buf[len] = '\0';
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/*
 * Appends cnt classes from `first` on; returns where their weights are to be written.  NULL: there is no class of such
 * a number, or the text has more classes than there are.
 */
static double *extend(struct sketch *sketch, uint64_t first, size_t cnt)
{
	double *weights = sketch->weights + sketch->weight_cnt;
	struct sketch_run *run = sketch->runs + sketch->run_cnt - (sketch->run_cnt > 0);

	if (!cnt || first >= LOGHIST_CLASS_CNT || cnt > LOGHIST_CLASS_CNT - first ||
	    cnt > LOGHIST_CLASS_CNT - sketch->weight_cnt)
		return NULL;
	if (sketch->run_cnt && run->first + run->cnt == first)
		run->cnt += (uint32_t)cnt;
	else
		sketch->runs[sketch->run_cnt++] = (struct sketch_run){(uint32_t)first, (uint32_t)cnt};
	sketch->weight_cnt += (uint32_t)cnt;
	sketch->first = first < sketch->first ? (uint32_t)first : sketch->first;
	sketch->last = first + cnt - 1 > sketch->last ? (uint32_t)(first + cnt - 1) : sketch->last;
	return weights;
}

/* Inline: a constant width makes a loop without branches.  Returns the OR of all digits: from BASE on one is invalid.
 */
static inline unsigned take_numbers(double *weights, const char *digits, size_t cnt, unsigned width, double scale)
{
	unsigned all = 0;

	for (size_t i = 0; i < cnt; i++, digits += width) {
		uint64_t number = 0;

#pragma GCC unroll 9
		for (unsigned d = 0; d < width; d++) {
			unsigned digit = (unsigned char)digits[d] - (unsigned)ZERO;

			all |= digit;
			number = number << BASE_BITS | digit;
		}
		weights[i] = (double)(int64_t)number * scale;
	}
	return all;
}

/* Behind the '=': 0 or -EBADMSG. */
static int read_run(struct sketch *sketch, uint64_t class_no, struct number_text *text)
{
	const char *digits, *end = strchrnul(text->at, ' ');
	unsigned width, shift, all;
	double *weights, scale;
	size_t cnt;

	if (end - text->at < 2)
		return -EBADMSG;
	digits = text->at + 2;
	width = (unsigned char)text->at[0] - (unsigned)ZERO;
	shift = (unsigned char)text->at[1] - (unsigned)ZERO;
	if (!width || width > WIDTH_MAX || shift > SHIFT_MAX || (size_t)(end - digits) % width)
		return -EBADMSG;
	cnt = (size_t)(end - digits) / width;
	weights = extend(sketch, class_no, cnt);
	if (!weights)
		return -EBADMSG;
	scale = ldexp(1, -(int)shift);
	all = width == 1   ? take_numbers(weights, digits, cnt, 1, scale)
	      : width == 2 ? take_numbers(weights, digits, cnt, 2, scale)
	      : width == 3 ? take_numbers(weights, digits, cnt, 3, scale)
	      : width == 4 ? take_numbers(weights, digits, cnt, 4, scale)
			   : take_numbers(weights, digits, cnt, width, scale);
	if (all >= BASE)
		return -EBADMSG;
	for (size_t i = 0; width > 8 && i < cnt; i++)
		if (!(weights[i] < SKETCH_WEIGHT_MAX))
			return -EBADMSG;
	text->at = end;
	return 0;
}

/* Behind the ':': 0 or -EBADMSG. */
static int read_weight(struct sketch *sketch, uint64_t class_no, struct number_text *text)
{
	double weight = number_take(text), *weights;

	if (!number_ends(*text->at) || !(weight > 0) || !(weight < SKETCH_WEIGHT_MAX))
		return -EBADMSG;
	weights = extend(sketch, class_no, 1);
	if (!weights)
		return -EBADMSG;
	*weights = weight;
	return 0;
}

int sketch_read(struct sketch *sketch, const char *characters)
{
	struct number_text text = number_text(characters);

	sketch->first = LOGHIST_CLASS_CNT;
	sketch->last = sketch->run_cnt = sketch->weight_cnt = 0;
	while (*text.at) {
		const char *from = text.at;
		uint64_t class_no = number_take_digits(&text);
		char kind = *text.at;
		int err;

		if (text.at == from || (kind != ':' && kind != '='))
			return -EBADMSG;
		text.at++;
		err = kind == ':' ? read_weight(sketch, class_no, &text) : read_run(sketch, class_no, &text);
		if (err)
			return err;
		text.at += *text.at == ' ';
	}
	return 0;
}
