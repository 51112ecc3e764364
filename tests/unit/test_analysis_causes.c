// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void make(struct report *report, struct analysis_fixture *fixture)
{
	const struct report_opts opts = {.tail = 0.9, .bootstrap_cnt = 100, .seed = 1};

	CU_ASSERT_EQUAL_FATAL(report_make(report, &fixture->dataset, &opts), 0);
}

static bool has_evidence(const struct cause *cause, const char *part)
{
	for (size_t i = 0; i < cause->evidence_cnt; i++)
		if (strstr(cause->evidence[i], part))
			return true;
	return false;
}

/* A hundred rows of 1000 ns on a CPU; the ten late ones wait as the callback says. */
static void late_rows(struct analysis_fixture *fixture, void (*wait)(struct analysis_fixture *, size_t row))
{
	analysis_fixture_init(fixture, 100);
	for (size_t i = 0; i < 100; i++) {
		fixture_add(fixture, i, WL_CATEGORY_ONCPU, 1000);
		if (i % 10 == 9)
			wait(fixture, i);
	}
}

/* Rows 9 … 79 wait 8000 for backup, 89 and 99 wait 6000 for cron and 2000 for a lock: 64 + 12 + 4 of 80. */
static void wait_for_two(struct analysis_fixture *fixture, size_t row)
{
	struct dataset_blame backup = {fixture_string(fixture, "backup"), 0, 812, 813, 0, false};
	struct dataset_blame cron = {fixture_string(fixture, "cron"), 0, 900 + (uint32_t)row, 0, 0, false};
	struct dataset_blame lock = {
		fixture_string(fixture, "compactor"), fixture_string(fixture, "server+0x4060"), 0, 815, 0, false};

	fixture_add(fixture, row, WL_CATEGORY_RUNQ, row < 80 ? 8000 : 6000);
	fixture_blame(fixture, row, WL_CATEGORY_RUNQ, row < 80 ? backup : cron);
	if (row >= 80) {
		fixture_add(fixture, row, WL_CATEGORY_LOCK, 2000);
		fixture_blame(fixture, row, WL_CATEGORY_LOCK, lock);
	}
}

static void causes_are_split_by_who_is_to_blame(void)
{
	struct analysis_fixture fixture;
	struct report report;
	uint64_t *preempted;

	late_rows(&fixture, wait_for_two);
	preempted = fixture_event(&fixture, "runq.preempt.ns", NULL);
	for (size_t i = 0; i < 100; i++)
		preempted[i] = fixture.dataset.category_ns[WL_CATEGORY_RUNQ][i];
	/* p90 of the latency is 1000 and everything is late then: one more interval moves it to 9000. */
	fixture.dataset.weight[9] = 2;
	make(&report, &fixture);
	CU_ASSERT_EQUAL(report.tail_threshold_ns, 9000);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 3);
	CU_ASSERT_STRING_EQUAL(report.causes[0].what, "waiting for a CPU; `backup` (pid 812) ran instead");
	ASSERT_NEAR(report.causes[0].share, 72.0 / 88);
	CU_ASSERT_EQUAL(report.causes[0].culprit_pid, 812);
	CU_ASSERT_EQUAL(report.causes[0].culprit_tid, 813);
	CU_ASSERT_EQUAL(report.causes[0].rank, 1);
	CU_ASSERT(has_evidence(&report.causes[0], "82 % of the late ones met it"));
	CU_ASSERT(has_evidence(&report.causes[0], "runq.preempt.ns: without this time, p90 would be "));
	CU_ASSERT_STRING_EQUAL(report.causes[1].what, "waiting for a CPU; `cron` ran instead");
	ASSERT_NEAR(report.causes[1].share, 12.0 / 88);
	CU_ASSERT_EQUAL(report.causes[1].culprit_pid, -1);
	CU_ASSERT(has_evidence(&report.causes[1], "several pids: 989, 999"));
	CU_ASSERT_STRING_EQUAL(report.causes[2].what,
			       "waiting for a lock (server+0x4060) held by `compactor` (tid 815)");
	ASSERT_NEAR(report.causes[2].share, 4.0 / 88);
	CU_ASSERT_STRING_EQUAL(report.causes[2].object, "server+0x4060");
	CU_ASSERT_STRING_EQUAL(report.causes[2].culprit_comm, "compactor");
	CU_ASSERT_EQUAL(report.causes[2].culprit_tid, 815);
	report_free(&report);
	analysis_fixture_free(&fixture);
}

/* Objects without a culprit, and waits that name nobody. */
static void wait_for_things(struct analysis_fixture *fixture, size_t row)
{
	fixture_add(fixture, row, WL_CATEGORY_FAULT_MAJOR, 9000);
	fixture_blame(fixture, row, WL_CATEGORY_FAULT_MAJOR,
		      (struct dataset_blame){.object = fixture_string(fixture, "data.bin")});
	fixture_add(fixture, row, WL_CATEGORY_IO_DISK, 5000);
	fixture_blame(fixture, row, WL_CATEGORY_IO_DISK,
		      (struct dataset_blame){.object = fixture_string(fixture, "fsync")});
	fixture_add(fixture, row, WL_CATEGORY_OTHER, 3000);
	fixture_blame(fixture, row, WL_CATEGORY_OTHER,
		      (struct dataset_blame){.object = fixture_string(fixture, "flock")});
	fixture_add(fixture, row, WL_CATEGORY_QUEUE, 2000);
	fixture_add(fixture, row, WL_CATEGORY_SLEEP, 1);
	fixture_add(fixture, row, WL_CATEGORY_RUNQ, 1500);
	fixture_blame(fixture, row, WL_CATEGORY_RUNQ,
		      (struct dataset_blame){.who = fixture_string(fixture, NAME_IDLE_CPU)});
}

static void objects_are_named_and_trifles_left_out(void)
{
	struct analysis_fixture fixture;
	struct report report;

	late_rows(&fixture, wait_for_things);
	fixture.dataset.weight[9] = 2;
	fixture.dataset.loss[WL_LOSS_INTERVAL] = (struct dataset_loss){1000, 10};
	make(&report, &fixture);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 5);
	CU_ASSERT_STRING_EQUAL(report.causes[0].what, "major page faults in data.bin");
	CU_ASSERT_STRING_EQUAL(report.causes[1].what, "waiting for a disk in fsync");
	CU_ASSERT_STRING_EQUAL(report.causes[2].what, "waiting in flock");
	CU_ASSERT_STRING_EQUAL(report.causes[3].what, "queued while the server was busy with something else");
	CU_ASSERT_PTR_NULL(report.causes[3].object);
	CU_ASSERT_EQUAL(report.causes[3].culprit_pid, -1);
	CU_ASSERT_STRING_EQUAL(report.causes[4].what, "waiting for a CPU that was idle and had to wake up");
	CU_ASSERT(report.causes[4].culprit_pid == -1 && report.causes[4].culprit_tid == -1);
	CU_ASSERT(has_evidence(&report.causes[0], "1 % of the records were lost"));
	CU_ASSERT(report.causes[0].share_ci.lo < report.causes[0].share - 0.01);
	ASSERT_NEAR(report.records_lost_share, 0.01);
	report_free(&report);
	analysis_fixture_free(&fixture);
}

/* Two processes of the recorder: 8000 ns in rows 9 … 79 and 6000 in the others. */
static void wait_for_the_recorder(struct analysis_fixture *fixture, size_t row)
{
	struct dataset_blame main_thread = {fixture_string(fixture, "whylate"), 0, 700, 700, 0, true};
	struct dataset_blame attacher = {fixture_string(fixture, "whylate-attach"), 0, 701, 701, 0, true};

	fixture_add(fixture, row, WL_CATEGORY_RUNQ, row < 80 ? 8000 : 6000);
	fixture_blame(fixture, row, WL_CATEGORY_RUNQ, row < 50 ? main_thread : attacher);
	fixture_add(fixture, row, WL_CATEGORY_LOCK, 1000);
}

static void the_recorder_is_never_ranked(void)
{
	struct dataset_own own = {0, 700};
	struct analysis_fixture fixture;
	struct report report;
	double sum;

	late_rows(&fixture, wait_for_the_recorder);
	fixture.dataset.weight[9] = 2;
	make(&report, &fixture);
	CU_ASSERT_FALSE(dataset_is_own(&fixture.dataset, 0, 700));
	fixture.dataset.own = &own;
	fixture.dataset.own_cnt = 1;
	CU_ASSERT(dataset_is_own(&fixture.dataset, 0, 700));
	CU_ASSERT_FALSE(dataset_is_own(&fixture.dataset, 1, 700) || dataset_is_own(&fixture.dataset, 0, 0));
	report_free(&report);
	make(&report, &fixture);
	CU_ASSERT(report.our_own.known);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 1);
	CU_ASSERT_EQUAL(report.causes[0].category, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(report.causes[0].rank, 1);
	ASSERT_NEAR(report.our_own.share, report.breakdown[0].tail_share);
	CU_ASSERT_EQUAL(report.breakdown[0].category, WL_CATEGORY_RUNQ);
	ASSERT_NEAR(report.our_own.late_ns, report.breakdown[0].late_ns);
	sum = report.our_own.share + report.causes[0].share;
	ASSERT_NEAR(sum, 1);
	report_free(&report);
	analysis_fixture_free(&fixture);
}

static void the_recorder_is_told_however_little_it_is(void)
{
	struct dataset_own own = {0, 700};
	struct analysis_fixture fixture;
	struct report report;
	char names[12][8];

	analysis_fixture_init(&fixture, 260);
	for (size_t i = 0; i < 260; i++) {
		size_t k = i / 2 % 13;
		struct dataset_blame blame = {0, 0, 700, 700, 0, true};

		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000);
		/* Every other time: twelve others have more. */
		if (i % 2 || (k == 12 && i % 52 < 26))
			continue;
		if (k < 12) {
			snprintf(names[k], sizeof(names[k]), "n%zu", k);
			blame = (struct dataset_blame){fixture_string(&fixture, names[k]), 0, 1, 1, 0, false};
		}
		fixture_add(&fixture, i, WL_CATEGORY_RUNQ, 20000);
		fixture_blame(&fixture, i, WL_CATEGORY_RUNQ, blame);
	}
	fixture.dataset.own = &own;
	fixture.dataset.own_cnt = 1;
	make(&report, &fixture);
	CU_ASSERT(report.our_own.share > 0.02 && report.our_own.share < 0.06);
	for (size_t i = 0; i < report.cause_cnt; i++)
		CU_ASSERT(!report.causes[i].culprit_comm || report.causes[i].culprit_pid == 1);
	report_free(&report);
	analysis_fixture_free(&fixture);
}

static void wait_unseen(struct analysis_fixture *fixture, size_t row)
{
	fixture_add(fixture, row, WL_CATEGORY_OTHER, 1000);
	/* Rows 19 … 99 have 9 of 10 parts of it. */
	if (row > 9)
		fixture->dataset.flags[row] = WL_INTERVAL_MOVED;
}

static void requests_between_threads_are_told(void)
{
	struct analysis_fixture fixture;
	struct report report;

	late_rows(&fixture, wait_unseen);
	make(&report, &fixture);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 1);
	CU_ASSERT_STRING_EQUAL(report.causes[0].what, "waiting for something that was not measured");
	CU_ASSERT(has_evidence(&report.causes[0], "90 % of it in requests that one thread read and another answered"));
	report_free(&report);
	memset(fixture.dataset.flags, 0, 60 * sizeof(*fixture.dataset.flags));
	make(&report, &fixture);
	CU_ASSERT_FALSE(has_evidence(&report.causes[0], "another answered"));
	report_free(&report);
	analysis_fixture_free(&fixture);
}

/* Twelve culprits, the k-th with k·100 ns: eight get a line, four share one. */
static void many_culprits_share_a_line(void)
{
	struct analysis_fixture fixture;
	struct report report;
	char names[12][8];
	double sum = 0;

	analysis_fixture_init(&fixture, 240);
	for (size_t i = 0; i < 240; i++) {
		size_t k = i / 2 % 12;

		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000);
		if (i % 2)
			continue;
		snprintf(names[k], sizeof(names[k]), "n%zu", k);
		fixture_add(&fixture, i, WL_CATEGORY_RUNQ, 10000 + (k + 1) * 1000);
		fixture_blame(&fixture, i, WL_CATEGORY_RUNQ,
			      (struct dataset_blame){fixture_string(&fixture, names[k]), 0, 1, 1, 0, false});
	}
	/* Everything that waits is late: 120 of 240 rows, at the 60th percentile the lowest of them. */
	CU_ASSERT_EQUAL_FATAL(report_make(&report, &fixture.dataset, &(struct report_opts){.tail = 0.501, .seed = 1}),
			      0);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 9);
	for (size_t i = 0; i < 9; i++)
		sum += report.causes[i].share;
	ASSERT_NEAR(sum, 1);
	CU_ASSERT_STRING_EQUAL(report.causes[1].culprit_comm, "n11");
	CU_ASSERT_PTR_NULL(report.causes[0].culprit_comm); /* 11 + 12 + 13 + 14 of 198 is the largest */
	ASSERT_NEAR(report.causes[0].share, 50.0 / 198);
	CU_ASSERT_PTR_NOT_NULL(strstr(report.causes[0].what, "waiting for a CPU (the rest"));
	report_free(&report);
	analysis_fixture_free(&fixture);
}

static void the_only_cause_is_told(void)
{
	struct analysis_fixture fixture;
	struct report report;

	analysis_fixture_init(&fixture, 10);
	for (size_t i = 0; i < 10; i++)
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, i == 9 ? 2000 : 1000);
	make(&report, &fixture);
	CU_ASSERT_EQUAL(report.cause_cnt, 1);
	CU_ASSERT_EQUAL(report.causes[0].category, WL_CATEGORY_ONCPU);
	CU_ASSERT_EQUAL(report.type_cnt, 1);
	CU_ASSERT_EQUAL(report.types[0].count, 10);
	report_free(&report);
	analysis_fixture_free(&fixture);
}

int suite_causes(void)
{
	static const struct unit_test tests[] = {
		{"causes are split by who is to blame", causes_are_split_by_who_is_to_blame},
		{"objects are named and trifles left out", objects_are_named_and_trifles_left_out},
		{"the recorder is never ranked", the_recorder_is_never_ranked},
		{"the recorder is told however little it is", the_recorder_is_told_however_little_it_is},
		{"requests between threads are told", requests_between_threads_are_told},
		{"many culprits share a line", many_culprits_share_a_line},
		{"the only cause is told", the_only_cause_is_told},
	};

	return unit_suite("analysis: causes", tests, sizeof(tests) / sizeof(tests[0]));
}
