// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_rank.h"
#include "analysis/value_stats.h"
#include "base/random.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETS      5
#define POINTS    400
#define TOLERANCE 1e-9

struct sets {
	struct value_point points[SETS][POINTS];
	struct value_set sets[SETS];
	size_t cnt;
};

static void fill(struct sets *sets, size_t set, const double *values, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		sets->points[set][i] = (struct value_point){values[i], 1};
	sets->sets[set] = (struct value_set){.points = sets->points[set], .cnt = cnt};
}

static bool is_close(double ours, double theirs)
{
	return fabs(ours - theirs) <= TOLERANCE * fmax(1, fabs(theirs));
}

struct vector {
	size_t set_cnt;
	double values[SETS * 60];
	size_t sizes[SETS];
	bool midrank;
	double statistic;
	bool differs;
};

static const struct vector vectors[] = {
#include "anderson_vectors.def"
};

static void statistics_are_those_of_scipy(void)
{
	static struct sets sets;

	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		const double *values = vectors[v].values;
		double ours;

		for (size_t s = 0; s < vectors[v].set_cnt; s++) {
			fill(&sets, s, values, vectors[v].sizes[s]);
			values += vectors[v].sizes[s];
		}
		ours = value_anderson_darling(sets.sets, vectors[v].set_cnt, vectors[v].midrank);
		CU_ASSERT(is_close(ours, vectors[v].statistic));
		CU_ASSERT_EQUAL(ours > value_anderson_darling_critical(vectors[v].set_cnt), vectors[v].differs);
	}
}

#define CASES 200

/* Its answers to the sets in the file; none where it is not installed. */
static FILE *ask_scipy(const char *what, const char *path)
{
	char command[200];

	snprintf(command, sizeof(command),
		 "for p in python3 /usr/bin/python3; do $p -c 'import scipy' 2>/dev/null && exec $p "
		 "tests/unit/anderson_vectors.py %s <%s; done",
		 what, path);
	return popen(command, "r");
}

/* Random sets with ties, against SciPy itself where it is installed. */
static void random_statistics_are_those_of_scipy(void)
{
	static double ours[CASES];
	static struct sets sets;
	static const int spreads[] = {1, 3, 30, 100000};
	uint64_t seed = (uint64_t)getpid();
	char path[] = "/tmp/whylate-anderson-XXXXXX";
	int fd = mkstemp(path), differs;
	FILE *cases = fd < 0 ? NULL : fdopen(fd, "w"), *answers;
	double theirs;

	CU_ASSERT_PTR_NOT_NULL_FATAL(cases);
	for (int c = 0; c < CASES; c++) {
		uint64_t spread = (uint64_t)spreads[random_next(&seed) % 4] + 1;
		size_t set_cnt = 2 + random_next(&seed) % (SETS - 1);
		bool midrank = random_next(&seed) & 1;

		fprintf(cases, "%d %zu", midrank, set_cnt);
		for (size_t s = 0; s < set_cnt; s++) {
			double values[POINTS];
			size_t cnt = 2 + random_next(&seed) % 60;

			fprintf(cases, " %zu", cnt);
			for (size_t i = 0; i < cnt; i++) {
				/* At least two distinct ones. */
				values[i] = s + i ? (double)(random_next(&seed) % spread) : -1;
				fprintf(cases, " %d", (int)values[i]);
			}
			fill(&sets, s, values, cnt);
		}
		fprintf(cases, "\n");
		ours[c] = value_anderson_darling(sets.sets, set_cnt, midrank);
	}
	fclose(cases);
	answers = ask_scipy("answer", path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answers);
	for (int c = 0; c < CASES; c++) {
		if (fscanf(answers, "%lf %d", &theirs, &differs) != 2) {
			CU_ASSERT_EQUAL(c, 0);
			printf("(skipped: no SciPy for python3) ");
			break;
		}
		CU_ASSERT(is_close(ours[c], theirs));
	}
	pclose(answers);
	unlink(path);
}

static void uniform_distances_are_those_of_scipy(void)
{
	static double ours[CASES];
	static struct sets sets;
	uint64_t seed = (uint64_t)getpid();
	char path[] = "/tmp/whylate-uniform-XXXXXX";
	int fd = mkstemp(path);
	FILE *cases = fd < 0 ? NULL : fdopen(fd, "w"), *answers;
	double theirs;

	CU_ASSERT_PTR_NOT_NULL_FATAL(cases);
	for (int c = 0; c < CASES; c++) {
		size_t cnt = 1 + random_next(&seed) % 60;
		double scale = c % 3 ? 1 : 1.3, ties = c % 2 ? 10 : 1e6, values[POINTS];

		for (size_t i = 0; i < cnt; i++) {
			values[i] = floor(ties * scale * (double)(random_next(&seed) >> 11) / 0x1p53) / ties -
				    (scale - 1) / 2;
			fprintf(cases, "%.17g ", values[i]);
		}
		fprintf(cases, "\n");
		fill(&sets, 0, values, cnt);
		ours[c] = value_uniform_distance(&sets.sets[0]);
	}
	fclose(cases);
	answers = ask_scipy("uniform", path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(answers);
	for (int c = 0; c < CASES; c++) {
		if (fscanf(answers, "%lf", &theirs) != 1) {
			CU_ASSERT_EQUAL(c, 0);
			printf("(skipped: no SciPy for python3) ");
			break;
		}
		CU_ASSERT(is_close(ours[c], theirs));
	}
	pclose(answers);
	unlink(path);
	fill(&sets, 0, NULL, 0);
	CU_ASSERT(isnan(value_uniform_distance(&sets.sets[0])));
}

static void weights_are_numbers_of_samples(void)
{
	static struct sets sets;
	static const double few[] = {1, 2, 3, 3, 8}, many[] = {4, 5, 9, 9, 9, 10};
	double once, weighted;

	fill(&sets, 0, few, 5);
	fill(&sets, 1, many, 6);
	once = value_anderson_darling(sets.sets, 2, true);
	/* Equal weights change nothing, whatever they are. */
	for (int i = 0; i < 6; i++)
		sets.points[0][i].weight = sets.points[1][i].weight = 7.5;
	CU_ASSERT(is_close(value_anderson_darling(sets.sets, 2, true), once));
	/* Fewer independent samples say less. */
	sets.sets[0].effective = sets.sets[1].effective = 3;
	weighted = value_anderson_darling(sets.sets, 2, true);
	CU_ASSERT(weighted < once);
	CU_ASSERT(isnan(value_anderson_darling(sets.sets, 1, true)));
	fill(&sets, 1, few, 0);
	CU_ASSERT(isnan(value_anderson_darling(sets.sets, 2, true)));
}

static void hellinger_is_the_distance_of_distributions(void)
{
	static struct sets sets;
	static const double a[] = {1, 1, 2, 2}, b[] = {2, 1}, c[] = {5, 6, 7}, d[] = {1, 1, 1, 2};
	double values[POINTS], shifted[POINTS];

	fill(&sets, 0, a, 4);
	fill(&sets, 1, b, 2);
	CU_ASSERT_DOUBLE_EQUAL(value_hellinger(&sets.sets[0], &sets.sets[1]), 0, 1e-7);
	fill(&sets, 1, c, 3);
	CU_ASSERT_DOUBLE_EQUAL(value_hellinger(&sets.sets[0], &sets.sets[1]), 1, 1e-12);
	fill(&sets, 1, d, 4);
	CU_ASSERT_DOUBLE_EQUAL(value_hellinger(&sets.sets[0], &sets.sets[1]),
			       sqrt(1 - sqrt(0.5 * 0.75) - sqrt(0.5 * 0.25)), 1e-12);
	/* All values differ, the distribution does not. */
	for (int i = 0; i < POINTS; i++) {
		values[i] = i;
		shifted[i] = i + 0.5;
	}
	fill(&sets, 0, values, POINTS);
	fill(&sets, 1, shifted, POINTS);
	CU_ASSERT(value_hellinger(&sets.sets[0], &sets.sets[1]) < 0.2);
}

static void discounts_are_those_of_the_paper(void)
{
	static struct sets sets;
	static const double low[] = {1, 2, 3, 4, 5, 6, 7, 8}, high[] = {50, 51, 52, 53, 54, 55, 56, 57};

	fill(&sets, 0, low, 8);
	fill(&sets, 1, low, 8);
	CU_ASSERT_EQUAL(value_discount(&sets.sets[0], &sets.sets[1]), VALUE_DEFAULT_DISCOUNT);
	fill(&sets, 1, high, 8);
	CU_ASSERT_EQUAL(value_discount(&sets.sets[0], &sets.sets[1]), 0);
	/* What normal requests have no value of is an anomaly where there is enough of it. */
	fill(&sets, 0, low, 0);
	CU_ASSERT_EQUAL(value_discount(&sets.sets[0], &sets.sets[1]), 0);
	fill(&sets, 1, high, 2);
	CU_ASSERT_EQUAL(value_discount(&sets.sets[0], &sets.sets[1]), VALUE_DEFAULT_DISCOUNT);
	fill(&sets, 1, high, 0);
	CU_ASSERT(isnan(value_discount(&sets.sets[0], &sets.sets[1])));
}

int suite_value_stats(void)
{
	static const struct unit_test tests[] = {
		{"statistics are those of SciPy", statistics_are_those_of_scipy},
		{"random statistics are those of SciPy", random_statistics_are_those_of_scipy},
		{"uniform distances are those of SciPy", uniform_distances_are_those_of_scipy},
		{"weights are numbers of samples", weights_are_numbers_of_samples},
		{"Hellinger is the distance of distributions", hellinger_is_the_distance_of_distributions},
		{"discounts are those of the paper", discounts_are_those_of_the_paper},
	};

	return unit_suite("value_stats", tests, sizeof(tests) / sizeof(tests[0]));
}
