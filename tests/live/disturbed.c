// SPDX-License-Identifier: GPL-2.0-or-later
#include "disturbed.h"
#include "harness.h"
#include "stall.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <stdio.h>
#include <string.h>

/* Of the CPU time of all CPUs. Tests plant enough to be judged below it. */
#define STOLEN_MAX    0.15
#define SUITES_MAX    64
#define DISTURBED_MAX 64
#define TOLD_NS       (5 * NS_PER_SEC) /* a test that takes as long says how long */
#define WHY_LEN       64

struct disturbed {
	const char *test;
	char why[WHY_LEN];
};

struct suite_time {
	const char *name;
	uint64_t ns;
};

static struct {
	struct stall_watch *watch;
	struct machine_time begin, end; /* of the test under way; end.ts 0: it runs in this process */
	struct disturbed tests[DISTURBED_MAX];
	unsigned int cnt;
	struct suite_time suites[SUITES_MAX];
	unsigned int suite_cnt;
} disturbed;

static void add_time(const char *suite, uint64_t ns)
{
	unsigned int i = 0;

	while (i < disturbed.suite_cnt && strcmp(disturbed.suites[i].name, suite) != 0)
		i++;
	if (i == SUITES_MAX)
		return;
	if (i == disturbed.suite_cnt)
		disturbed.suites[disturbed.suite_cnt++].name = suite;
	disturbed.suites[i].ns += ns;
}

static void print_times(void)
{
	printf("seconds by suite:");
	for (unsigned int i = 0; i < disturbed.suite_cnt; i++)
		printf(" %s %.0f", disturbed.suites[i].name, (double)disturbed.suites[i].ns / NS_PER_SEC);
	printf("\n");
}

void machine_time_now(struct machine_time *now)
{
	unsigned long long field[8] = {0};
	FILE *file = fopen("/proc/stat", "re");

	*now = (struct machine_time){.ts = now_ns()};
	if (!file)
		return;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1], &field[2], &field[3],
		   &field[4], &field[5], &field[6], &field[7]) == 8) {
		for (int i = 0; i < 8; i++)
			now->total += field[i];
		now->stolen = field[7];
	}
	fclose(file);
}

void disturbed_open(void)
{
	disturbed.watch = stall_watch__new();
}

void disturbed_close(void)
{
	stall_watch__free(disturbed.watch);
	disturbed.watch = NULL;
	print_times();
}

void disturbed_begin(void)
{
	machine_time_now(&disturbed.begin);
	disturbed.end.ts = 0;
}

void disturbed_ran(const struct machine_time *begin, const struct machine_time *end)
{
	disturbed.begin = *begin;
	disturbed.end = *end;
}

void disturbed_end(void)
{
	struct disturbed *entry = &disturbed.tests[disturbed.cnt];
	const struct machine_time *begin = &disturbed.begin, *end = &disturbed.end;
	double share = 0;

	if (!end->ts)
		machine_time_now(&disturbed.end);
	add_time(CU_get_current_suite()->pName, end->ts - begin->ts);
	if (end->ts - begin->ts >= TOLD_NS)
		printf("(%.0f s) ", (double)(end->ts - begin->ts) / NS_PER_SEC);
	if (disturbed.cnt == DISTURBED_MAX)
		return;
	if (end->total > begin->total)
		share = (double)(end->stolen - begin->stolen) / (double)(end->total - begin->total);
	if (stall_watch__touched(disturbed.watch, begin->ts, end->ts))
		snprintf(entry->why, sizeof(entry->why), "the machine stood still for 25 ms or more");
	else if (share > STOLEN_MAX)
		snprintf(entry->why, sizeof(entry->why), "%.0f %% of the CPU time was stolen", share * 100);
	else
		return;
	entry->test = CU_get_current_test()->pName;
	disturbed.cnt++;
}

const char *disturbed_by(const char *test)
{
	for (unsigned int i = 0; i < disturbed.cnt; i++)
		if (!strcmp(disturbed.tests[i].test, test))
			return disturbed.tests[i].why;
	return NULL;
}
