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
#define DISTURBED_MAX 64
#define TOLD_NS       (5 * NS_PER_SEC) /* a test that takes as long says how long */
#define WHY_LEN       64

struct disturbed {
	const char *test;
	char why[WHY_LEN];
};

static struct {
	struct stall_watch *watch;
	uint64_t begin_ts, stolen, total; /* when the test began; ticks of all CPUs */
	struct disturbed tests[DISTURBED_MAX];
	unsigned int cnt;
} disturbed;

static void read_ticks(uint64_t *stolen, uint64_t *total)
{
	unsigned long long field[8] = {0};
	FILE *file = fopen("/proc/stat", "re");

	*stolen = *total = 0;
	if (!file)
		return;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1], &field[2], &field[3],
		   &field[4], &field[5], &field[6], &field[7]) == 8) {
		for (int i = 0; i < 8; i++)
			*total += field[i];
		*stolen = field[7];
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
}

void disturbed_begin(void)
{
	disturbed.begin_ts = now_ns();
	read_ticks(&disturbed.stolen, &disturbed.total);
}

void disturbed_end(void)
{
	struct disturbed *entry = &disturbed.tests[disturbed.cnt];
	uint64_t stolen, total;
	double share = 0;

	if (now_ns() - disturbed.begin_ts >= TOLD_NS)
		printf("(%.0f s) ", (double)(now_ns() - disturbed.begin_ts) / NS_PER_SEC);
	if (disturbed.cnt == DISTURBED_MAX)
		return;
	read_ticks(&stolen, &total);
	if (total > disturbed.total)
		share = (double)(stolen - disturbed.stolen) / (double)(total - disturbed.total);
	if (stall_watch__touched(disturbed.watch, disturbed.begin_ts, now_ns()))
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
