// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose variables are read, and what does not fit takes turns: of this very program, without a kernel. */
#include "session/values.h"
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX  400
#define PARTS_MAX 100

struct seen {
	struct {
		uint64_t part, is_read;
	} turns[ROWS_MAX];
	size_t turn_cnt, placed_cnt, loaded_cnt;
	struct value_part slices; /* loaded last */
	struct value_image image;
};

static int append(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	struct seen *seen = owner;

	if (table != SHARD_TABLE_VALUE_PLAN || seen->turn_cnt == ROWS_MAX)
		return 0;
	seen->turns[seen->turn_cnt].part = row->values[VALUE_PLAN_PART].u64;
	seen->turns[seen->turn_cnt++].is_read = row->values[VALUE_PLAN_IS_READ].u64;
	return 0;
}

static void place(void *owner, pid_t pid, const struct value_image *image)
{
	struct seen *seen = owner;

	CU_ASSERT_EQUAL(pid, getpid());
	seen->placed_cnt++;
	if (image)
		seen->image = *image;
}

static int load(void *owner, const struct value_plan *plan, const struct value_part *slices)
{
	struct seen *seen = owner;

	/* No range counts a read that is not loaded with it. */
	for (uint32_t r = slices->ranges.first; r < slices->ranges.first + slices->ranges.cnt; r++) {
		const struct value_range *range = &plan->ranges.items[r];

		CU_ASSERT(range->first >= slices->reads.first &&
			  range->first + range->cnt <= slices->reads.first + slices->reads.cnt);
	}
	CU_ASSERT(slices->reads.cnt <= plan->limits.reads);
	seen->slices = *slices;
	seen->loaded_cnt++;
	return 0;
}

static bool is_on(const struct seen *seen, uint64_t part)
{
	bool on = false;

	for (size_t t = 0; t < seen->turn_cnt; t++)
		if (seen->turns[t].part == part)
			on = seen->turns[t].is_read;
	return on;
}

/* Each part has been read, never two that do not fit together, and a process's image follows. */
static void test_turns(void)
{
	const struct timespec pause = {1, 20000000};
	struct seen *seen = calloc(1, sizeof(*seen));
	struct sampled_values_opts opts = {.glob = "*value_subject.h",
					   .append = append,
					   .place = place,
					   .load = load,
					   .owner = seen,
					   .limits = {.reads = 24}};
	struct sampled_values *values = NULL;
	const struct value_plan *plan;
	bool was_on[PARTS_MAX] = {false};
	size_t part_cnt;

	CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &opts.program), 0);
	CU_ASSERT_EQUAL_FATAL(sampled_values__new(&opts, &values), 0);
	plan = sampled_values__plan(values);
	part_cnt = plan->parts.cnt;
	CU_ASSERT_FATAL(part_cnt >= 2 && part_cnt <= 4);
	CU_ASSERT(sampled_values__met(values, getpid(), opts.program) && seen->placed_cnt == 1);
	CU_ASSERT(!sampled_values__met(values, getpid(), NULL));
	for (size_t turn = 0; turn < part_cnt; turn++) {
		size_t on = 0;

		CU_ASSERT_EQUAL(sampled_values__advance(values), 0);
		for (size_t p = 0; p < part_cnt; p++) {
			on += is_on(seen, p) ? plan->parts.items[p].reads.cnt : 0;
			was_on[p] |= is_on(seen, p);
		}
		CU_ASSERT(on == seen->slices.reads.cnt && on > 0);
		CU_ASSERT(seen->image.modules[0].range_cnt == seen->slices.ranges.cnt &&
			  !seen->image.modules[0].first_range);
		CU_ASSERT_EQUAL(seen->loaded_cnt, turn + 1);
		CU_ASSERT_EQUAL(seen->placed_cnt, turn + 1);
		nanosleep(&pause, NULL);
	}
	for (size_t p = 0; p < part_cnt; p++)
		CU_ASSERT(was_on[p] || (!plan->parts.items[p].reads.cnt && !plan->parts.items[p].globals.cnt));
	sampled_values__free(values);
	program__free(opts.program);
	free(seen);
}

static bool is_none(void *owner, pid_t pid)
{
	(void)owner;
	(void)pid;
	return false;
}

/* What is loaded later: of the target, by a thread; of another process, not at all. */
static void test_later(void)
{
	const struct timespec pause = {0, 20000000};
	struct sampled_values_counts counts;

	for (int is_target = 0; is_target < 2; is_target++) {
		struct seen *seen = calloc(1, sizeof(*seen));
		struct sampled_values_opts opts = {.glob = "*value_subject.h",
						   .append = append,
						   .owner = seen,
						   .is_target = is_target ? NULL : is_none};
		struct program *program;
		struct sampled_values *values;
		bool has_values = false;

		CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
		/* At the start there was another program, without a variable. */
		CU_ASSERT_EQUAL_FATAL(program__open_file("/bin/true", NULL, &opts.program), 0);
		CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &program), 0);
		CU_ASSERT_EQUAL_FATAL(sampled_values__new(&opts, &values), 0);
		for (int look = 0; look < (is_target ? 2000 : 5) && !has_values; look++) {
			has_values = sampled_values__met(values, getpid(), program);
			CU_ASSERT_EQUAL(sampled_values__advance(values), 0);
			nanosleep(&pause, NULL);
		}
		sampled_values__counts(values, &counts);
		CU_ASSERT(has_values == is_target && counts.modules == (uint64_t)is_target);
		/* Its variables were not there before: a part that is on from now on says so. */
		CU_ASSERT(!is_target || (seen->turn_cnt >= 2 && is_on(seen, 0)));
		sampled_values__free(values);
		program__free(opts.program);
		program__free(program);
		free(seen);
	}
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	CU_ASSERT_FATAL(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}

/* The process through which a file was met is gone before its schema is made, and its program is another one's, too. */
static void test_early_ends(void)
{
	const struct timespec wait = {0, 20000000};
	struct seen *seen = calloc(1, sizeof(*seen));
	struct sampled_values_opts opts = {.glob = "*value_subject.h", .append = append, .owner = seen};
	struct sampled_values_counts counts = {0};
	struct program *program;
	struct sampled_values *values;
	pid_t first = start_child(), second = start_child();

	CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
	CU_ASSERT_EQUAL_FATAL(program__open_file("/bin/true", NULL, &opts.program), 0);
	CU_ASSERT_EQUAL_FATAL(program__open(first, NULL, &program), 0);
	CU_ASSERT_EQUAL_FATAL(sampled_values__new(&opts, &values), 0);
	CU_ASSERT(!sampled_values__met(values, first, program));
	end_child(first);
	sampled_values__changed(values, first);
	for (int look = 0; look < 2000 && !counts.modules; look++) {
		CU_ASSERT_EQUAL(sampled_values__advance(values), 0);
		sampled_values__counts(values, &counts);
		nanosleep(&wait, NULL);
	}
	CU_ASSERT_EQUAL(counts.modules, 1);
	CU_ASSERT(sampled_values__met(values, second, program));
	end_child(second);
	sampled_values__free(values);
	program__free(opts.program);
	program__free(program);
	free(seen);
}

int suite_sampled_values(void)
{
	static const struct unit_test tests[] = {
		{"what does not fit takes turns", test_turns},
		{"what is loaded later is read", test_later},
		{"processes that end early do not matter", test_early_ends},
	};

	return unit_suite("sampled_values", tests, sizeof(tests) / sizeof(tests[0]));
}
