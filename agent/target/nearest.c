// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/nearest.h"

#include <ctype.h>
#include <string.h>

#define EDIT_COST    2 /* in half edits, so that a difference in case can cost one */
#define EDITS_MAX    8
#define PART_LEN_MIN 4 /* shorter ones are part of everything */

#define SCORE_PREFIX 0x10000
#define SCORE_PART   0x20000
#define SCORE_NONE   UINT32_MAX

#define ROW_LEN (NEAREST_NAME_MAX + EDITS_MAX + 2)

static unsigned min2(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned substitution_cost(char a, char b)
{
	if (a == b)
		return 0;
	return tolower((unsigned char)a) == tolower((unsigned char)b) ? 1 : EDIT_COST;
}

/*
 * Optimal string alignment (insertion, deletion, substitution, swap of neighbours) in half edits, computed only within
 * `edits` of the diagonal: nothing outside can come back under the bound.  More than EDIT_COST * edits when it is over.
 */
static unsigned edit_distance(const char *a, size_t a_len, const char *b, size_t b_len, size_t edits)
{
	static const unsigned over = EDIT_COST * (EDITS_MAX + 1);
	uint8_t rows[3][ROW_LEN];
	uint8_t *row = rows[0], *prev = rows[1], *prev2 = rows[2];

	for (size_t j = 0; j <= b_len && j <= edits + 1; j++)
		prev[j] = j <= edits ? EDIT_COST * j : over;
	for (size_t i = 1; i <= a_len; i++) {
		size_t low = i > edits ? i - edits : 1, high = i + edits < b_len ? i + edits : b_len;
		unsigned least = over;
		uint8_t *oldest = prev2;

		row[low - 1] = low == 1 && i <= edits ? EDIT_COST * i : over;
		for (size_t j = low; j <= high; j++) {
			unsigned cost = prev[j - 1] + substitution_cost(a[i - 1], b[j - 1]);

			cost = min2(cost, min2(prev[j], row[j - 1]) + EDIT_COST);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost = min2(cost, prev2[j - 2] + EDIT_COST);
			row[j] = min2(cost, over);
			if (row[j] < least)
				least = row[j];
		}
		if (high < b_len)
			row[high + 1] = over;
		if (least > EDIT_COST * edits && row[low - 1] > EDIT_COST * edits)
			return over;
		prev2 = prev;
		prev = row;
		row = oldest;
	}
	return prev[b_len];
}

static uint32_t score(const struct nearest *nearest, const char *name)
{
	size_t edits = 1 + nearest->wanted_len / 4, name_len = strnlen(name, NEAREST_NAME_MAX + 1);
	size_t wanted_len = nearest->wanted_len, longer, shorter;
	unsigned distance;

	if (!name_len || name_len > NEAREST_NAME_MAX || !wanted_len || wanted_len > NEAREST_NAME_MAX)
		return SCORE_NONE;
	if (edits > EDITS_MAX)
		edits = EDITS_MAX;
	longer = name_len > wanted_len ? name_len : wanted_len;
	shorter = name_len > wanted_len ? wanted_len : name_len;
	if (longer - shorter <= edits) {
		distance = edit_distance(nearest->wanted, wanted_len, name, name_len, edits);
		/* Names of which nothing is left after the edits are not near. */
		if (distance <= EDIT_COST * edits && distance < EDIT_COST * longer)
			return distance;
	}
	if (name_len > wanted_len && !strncmp(name, nearest->wanted, wanted_len))
		return SCORE_PREFIX + name_len - wanted_len;
	if (wanted_len >= PART_LEN_MIN && strstr(name, nearest->wanted))
		return SCORE_PART + name_len - wanted_len;
	return SCORE_NONE;
}

void nearest_init(struct nearest *nearest, const char *wanted, size_t max)
{
	memset(nearest, 0, sizeof(*nearest));
	nearest->wanted = wanted;
	nearest->wanted_len = strnlen(wanted, NEAREST_NAME_MAX + 1);
	nearest->max = max < NEAREST_MAX ? max : NEAREST_MAX;
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	uint32_t name_score = score(nearest, name);
	size_t at = nearest->cnt;

	if (name_score == SCORE_NONE)
		return;
	while (at && nearest->scores[at - 1] > name_score)
		at--;
	if (at >= nearest->max)
		return;
	if (nearest->cnt < nearest->max)
		nearest->cnt++;
	for (size_t i = nearest->cnt - 1; i > at; i--) {
		nearest->names[i] = nearest->names[i - 1];
		nearest->scores[i] = nearest->scores[i - 1];
	}
	nearest->names[at] = name;
	nearest->scores[at] = name_score;
}
