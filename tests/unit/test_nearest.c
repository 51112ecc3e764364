// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/nearest.h"
#include "unit.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* The whole table, without a band: what nearest.c must agree with. In half edits. */
static unsigned distance_in_full(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	unsigned table[32][32];

	for (size_t i = 0; i <= a_len; i++)
		for (size_t j = 0; j <= b_len; j++) {
			unsigned best = !i ? 2 * j : !j ? 2 * i : UINT32_MAX, cost;

			if (i && j) {
				cost = a[i - 1] == b[j - 1] ? 0 : tolower(a[i - 1]) == tolower(b[j - 1]) ? 1 : 2;
				best = table[i - 1][j - 1] + cost;
				if (table[i - 1][j] + 2 < best)
					best = table[i - 1][j] + 2;
				if (table[i][j - 1] + 2 < best)
					best = table[i][j - 1] + 2;
				if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				    table[i - 2][j - 2] + 2 < best)
					best = table[i - 2][j - 2] + 2;
			}
			table[i][j] = best;
		}
	return table[a_len][b_len];
}

static void random_word(uint64_t *random, char *word)
{
	size_t len = 1 + random_next(random) % 20;

	for (size_t i = 0; i < len; i++)
		word[i] = "abAB"[random_next(random) % 4];
	word[len] = '\0';
}

static void distances_agree_with_the_whole_table(void)
{
	uint64_t random = 7;
	unsigned near_cnt = 0;

	for (int i = 0; i < 20000; i++) {
		char wanted[24], name[24];
		struct nearest nearest;
		unsigned distance, bound;

		random_word(&random, wanted);
		random_word(&random, name);
		distance = distance_in_full(wanted, name);
		bound = 2 * (1 + strlen(wanted) / 4);
		nearest_init(&nearest, wanted, 1);
		nearest_offer(&nearest, name);
		if (nearest.cnt && nearest.scores[0] <= bound) {
			near_cnt++;
			CU_ASSERT_EQUAL(nearest.scores[0], distance);
		} else {
			size_t longer = strlen(wanted) > strlen(name) ? strlen(wanted) : strlen(name);

			CU_ASSERT(distance > bound || distance >= 2 * longer);
		}
	}
	CU_ASSERT(near_cnt > 100);
}

static void edits_come_before_prefixes_and_parts(void)
{
	static const char *const names[] = {"_Z11processCallv", "processCallback", "processcall", "procesCall",
					    "unrelated"};
	static const char *const expected[] = {"processcall", "procesCall", "processCallback", "_Z11processCallv"};
	char endless[NEAREST_NAME_MAX + 100];
	struct nearest nearest;

	nearest_init(&nearest, "processCall", 100);
	for (size_t i = 0; i < ARRAY_CNT(names); i++)
		nearest_offer(&nearest, names[i]);
	CU_ASSERT_EQUAL_FATAL(nearest.cnt, ARRAY_CNT(expected));
	for (size_t i = 0; i < ARRAY_CNT(expected); i++)
		CU_ASSERT_STRING_EQUAL(nearest.names[i], expected[i]);
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	nearest_init(&nearest, "xxxx", 1);
	nearest_offer(&nearest, endless);
	CU_ASSERT_EQUAL(nearest.cnt, 0);
	endless[NEAREST_NAME_MAX - 4] = '\0';
	nearest_init(&nearest, endless, 0);
	nearest_offer(&nearest, endless);
	CU_ASSERT_EQUAL(nearest.cnt, 0);
	nearest_init(&nearest, endless, 1);
	nearest_offer(&nearest, endless + 8);
	CU_ASSERT_EQUAL(nearest.cnt, 1);
	nearest_init(&nearest, "", 1);
	nearest_offer(&nearest, "x");
	CU_ASSERT_EQUAL(nearest.cnt, 0);
}

int suite_nearest(void)
{
	static const struct unit_test tests[] = {
		{"distances agree with the whole table", distances_agree_with_the_whole_table},
		{"edits come before prefixes and parts", edits_come_before_prefixes_and_parts},
	};

	return unit_suite("nearest", tests, sizeof(tests) / sizeof(tests[0]));
}
