// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/priority.h"
#include "session/pace.h"
#include "unit.h"

#include <stdlib.h>

#define MS 1000000ULL

/* Late is a pass that is overdue by its patience, or one that leaves the rings more than a quarter full. */
static void a_pass_is_late_by_time_or_by_backlog(void)
{
	CU_ASSERT_FALSE(pace_is_late(100 * MS, 100 * MS, 10 * MS, 0));
	CU_ASSERT_FALSE(pace_is_late(110 * MS - 1, 100 * MS, 10 * MS, 0.25));
	CU_ASSERT(pace_is_late(110 * MS, 100 * MS, 10 * MS, 0));
	CU_ASSERT(pace_is_late(0, 100 * MS, 10 * MS, 0.26));
	CU_ASSERT_FALSE(pace_is_late(UINT64_MAX, UINT64_MAX, 10 * MS, 0));
}

/* However the passes fall, nobody is late for longer than one look, and looks are never less than a step apart. */
static void no_pass_is_late_for_long(void)
{
	srand(7);
	for (int i = 0; i < 100000; i++) {
		uint64_t now = (uint64_t)rand() * MS, due_ts = (uint64_t)rand() * MS;
		uint64_t patience_ns = (uint64_t)(rand() % 200) * MS, next = pace_next_look(now, due_ts, patience_ns);

		CU_ASSERT_FATAL(next > now && next - now <= 25 * MS);
		if (pace_is_late(next, due_ts, patience_ns, 0) && !pace_is_late(now, due_ts, patience_ns, 0))
			CU_ASSERT_EQUAL_FATAL(next, due_ts + patience_ns);
	}
	CU_ASSERT_EQUAL(pace_next_look(5, UINT64_MAX, 10 * MS), 5 + 25 * MS);
}

static cpu_set_t cpus_of(unsigned int mask)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (int cpu = 0; cpu < 8; cpu++)
		if (mask >> cpu & 1)
			CPU_SET(cpu, &cpus);
	return cpus;
}

/* By the definition, over all pairs of sets of eight CPUs. */
static void the_agent_moves_where_the_target_is_not(void)
{
	for (unsigned int ours = 0; ours < 256; ours++) {
		for (unsigned int theirs = 0; theirs < 256; theirs++) {
			cpu_set_t our_set = cpus_of(ours), their_set = cpus_of(theirs), apart,
				  want = cpus_of(ours & ~theirs);
			bool moves = priority_cpus(&our_set, &their_set, &apart);

			CU_ASSERT_EQUAL_FATAL(moves, (ours & ~theirs) && (ours & theirs));
			CU_ASSERT_FATAL(!moves || CPU_EQUAL(&apart, &want));
		}
	}
}

int suite_pace(void)
{
	static const struct unit_test tests[] = {
		{"a pass is late by time or by backlog", a_pass_is_late_by_time_or_by_backlog},
		{"no pass is late for long", no_pass_is_late_for_long},
		{"the agent moves where the target is not", the_agent_moves_where_the_target_is_not},
	};

	return unit_suite("pace", tests, sizeof(tests) / sizeof(tests[0]));
}
