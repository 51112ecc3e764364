// SPDX-License-Identifier: GPL-2.0-or-later
/* Weights of classes → text → weights; older texts; texts that nobody wrote. */
#include "base/random.h"
#include "model/sketch.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sketch sketch;
static float weights[LOGHIST_CLASS_CNT];
static char text[SKETCH_TEXT_SZ];

/* The weight of a class in the sketch that was read. */
static double read_weight(uint32_t class_no)
{
	const double *of_run = sketch.weights;
	double sum = 0;

	for (uint32_t r = 0; r < sketch.run_cnt; of_run += sketch.runs[r++].cnt)
		if (class_no >= sketch.runs[r].first && class_no - sketch.runs[r].first < sketch.runs[r].cnt)
			sum += of_run[class_no - sketch.runs[r].first];
	return sum;
}

/* Off by so much of itself at most; what has no weight has none afterwards. */
static void goes_round(double error)
{
	uint32_t first = LOGHIST_CLASS_CNT, last = 0, off = 0;

	sketch_text(text, weights);
	CU_ASSERT(strlen(text) < sizeof(text));
	CU_ASSERT_EQUAL(sketch_read(&sketch, text), 0);
	for (uint32_t c = 0; c < LOGHIST_CLASS_CNT; c++) {
		off += fabs(read_weight(c) - (double)weights[c]) > error * (double)weights[c];
		first = weights[c] > 0 && c < first ? c : first;
		last = weights[c] > 0 ? c : last;
	}
	CU_ASSERT_EQUAL(off, 0);
	CU_ASSERT_EQUAL(sketch.first, first);
	CU_ASSERT_EQUAL(sketch.last, last);
}

static void weights_go_round(void)
{
	uint64_t state = 3;

	memset(weights, 0, sizeof(weights));
	goes_round(0);
	CU_ASSERT_STRING_EQUAL(text, "");
	for (int round = 0; round < 400; round++) {
		uint32_t sparse = 1 + (uint32_t)(random_next(&state) % 6), bits = random_next(&state) % 50;
		bool whole = round % 2;

		memset(weights, 0, sizeof(weights));
		for (uint32_t c = random_next(&state) % LOGHIST_CLASS_CNT; c < LOGHIST_CLASS_CNT; c++) {
			double weight = 1 + (double)(random_next(&state) & ((1ULL << bits) - 1));

			if (random_next(&state) % sparse == 0)
				weights[c] = (float)(whole ? floor(weight) : weight * 1.2345);
		}
		/* In a run a small weight has as many bits behind the point as 53 bits of the largest one leave it. */
		goes_round(whole ? 0 : bits < 30 ? 0x1p-16 : 1);
	}
}

/* The longest text, the largest numbers, and those that a reader refuses. */
static void extremes_go_round(void)
{
	memset(weights, 0, sizeof(weights));
	for (uint32_t c = 0; c < LOGHIST_CLASS_CNT; c += 4)
		weights[c] = c % 8 ? 9e14f : 1.2345678f;
	goes_round(0x1p-16);
	for (uint32_t c = 0; c < LOGHIST_CLASS_CNT; c++)
		weights[c] = 9e14f;
	goes_round(0);
	CU_ASSERT_EQUAL(sketch.run_cnt, 1);
	weights[5] = 1e15f * 1.01f;
	sketch_text(text, weights);
	CU_ASSERT_EQUAL(sketch_read(&sketch, text), -EBADMSG);
	weights[5] = INFINITY;
	sketch_text(text, weights);
	CU_ASSERT_EQUAL(sketch_read(&sketch, text), -EBADMSG);
}

static void texts_are_as_documented(void)
{
	memset(weights, 0, sizeof(weights));
	weights[410] = 3;
	weights[411] = 64;
	weights[414] = 1;
	weights[419] = 0.75f;
	sketch_text(text, weights);
	CU_ASSERT_STRING_EQUAL(text, "410=200310000001 419=123");
	goes_round(0);
}

static void older_texts_are_read(void)
{
	CU_ASSERT_EQUAL(sketch_read(&sketch, "12:3 13:1.5 20:1.25e+03 419=123 9:2"), 0);
	CU_ASSERT_EQUAL(sketch.first, 9);
	CU_ASSERT_EQUAL(sketch.last, 419);
	CU_ASSERT_EQUAL(sketch.run_cnt, 4);
	CU_ASSERT_EQUAL(read_weight(12), 3);
	CU_ASSERT_EQUAL(read_weight(13), 1.5);
	CU_ASSERT_EQUAL(read_weight(20), 1250);
	CU_ASSERT_EQUAL(read_weight(419), 0.75);
	CU_ASSERT_EQUAL(read_weight(9), 2);
	CU_ASSERT_EQUAL(read_weight(10), 0);
}

static void what_is_no_sketch_is_refused(void)
{
	static const char *const texts[] = {
		"12:1 9999999:1",
		"x",
		"1:nan",
		"5:-1",
		"5:1e300",
		"7",
		"7:",
		"7:1x",
		"7=",
		"7=1",
		"7=10",
		"7=20",
		"7=00",
		"7=:0",
		"7=1p1",
		"7=1/1",
		"7=203",
		"7=2033 8",
		"7=30\x7f"
		"00",
		"7=30p00",
		"7=30/00",
		"1920=101",
		"1919=1011",
		"=101",
		"7=10 1",
		"7=90oooooooooo",
		"7:1=10",
		" 7=101",
		"7=10\x80",
		"7=90ooooooooo",
	};
	static char many[2 * LOGHIST_CLASS_CNT + 16];
	char *copy;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		/* On the heap: the sanitizer sees what is read behind its end. */
		copy = strdup(texts[i]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		if (sketch_read(&sketch, copy) != -EBADMSG)
			printf("taken: %s\n", texts[i]);
		CU_ASSERT_EQUAL(sketch_read(&sketch, copy), -EBADMSG);
		free(copy);
	}
	/* All classes, then one more; once more than all of them. */
	memset(many, '1', sizeof(many));
	memcpy(many, "0=10", 4);
	many[4 + LOGHIST_CLASS_CNT] = '\0';
	CU_ASSERT_EQUAL(sketch_read(&sketch, many), 0);
	CU_ASSERT_EQUAL(sketch.weight_cnt, LOGHIST_CLASS_CNT);
	strcat(many, " 5:1");
	CU_ASSERT_EQUAL(sketch_read(&sketch, many), -EBADMSG);
	memset(many, '1', sizeof(many));
	memcpy(many, "0=10", 4);
	many[5 + LOGHIST_CLASS_CNT] = '\0';
	CU_ASSERT_EQUAL(sketch_read(&sketch, many), -EBADMSG);
}

/* Whatever the bytes are: an answer, and what was read is within the classes. */
static void any_bytes_are_survived(void)
{
	static const char alphabet[] = "0123456789=:= .e+o/p\x7f\x80";
	uint64_t state = 9;
	size_t taken = 0;

	for (int round = 0; round < 200000; round++) {
		size_t len = random_next(&state) % 24, sum = 0;
		char *copy = malloc(len + 1);

		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		for (size_t i = 0; i < len; i++)
			copy[i] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		copy[len] = '\0';
		if (!sketch_read(&sketch, copy)) {
			taken++;
			for (uint32_t r = 0; r < sketch.run_cnt; r++) {
				sum += sketch.runs[r].cnt;
				CU_ASSERT(sketch.runs[r].first >= sketch.first);
				CU_ASSERT(sketch.runs[r].first + sketch.runs[r].cnt - 1 <= sketch.last);
			}
			CU_ASSERT_EQUAL(sum, sketch.weight_cnt);
			CU_ASSERT(!sum || sketch.last < LOGHIST_CLASS_CNT);
		}
		free(copy);
	}
	CU_ASSERT(taken > 100);
}

int suite_sketch(void)
{
	static const struct unit_test tests[] = {
		{"weights go round", weights_go_round},
		{"extremes go round", extremes_go_round},
		{"texts are as documented", texts_are_as_documented},
		{"older texts are read", older_texts_are_read},
		{"what is no sketch is refused", what_is_no_sketch_is_refused},
		{"any bytes are survived", any_bytes_are_survived},
	};

	return unit_suite("sketch", tests, sizeof(tests) / sizeof(tests[0]));
}
