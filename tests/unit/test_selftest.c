// SPDX-License-Identifier: GPL-2.0-or-later
/* The judgement of the self-test: what it lets pass and what it does not; and the kernel's tables it judges by. */
#include "unit.h"

#include "selftest/check.h"
#include "selftest/proc_table.h"
#include "target/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An interval of 10 ms that ran, and nothing else. */
static struct wl_interval_record record_of_10ms(void)
{
	struct wl_interval_record record = {.begin_ts = 1000000000, .end_ts = 1010000000};

	record.length_ns[WL_STATE_RUNNING] = 10000000;
	return record;
}

static struct deed_report report_of_10ms(void)
{
	return (struct deed_report){.before_ts = 999990000, .after_ts = 1010010000};
}

static void move_ns(struct wl_interval_record *record, enum wl_state to, uint64_t ns)
{
	record->length_ns[WL_STATE_RUNNING] -= ns;
	record->length_ns[to] += ns;
}

static bool holds(const struct check_round *round)
{
	return !round->wrong && round->seen >= round->low && round->seen <= round->high;
}

static bool deed_holds(enum deed_kind kind, const struct wl_interval_record *record, const struct deed_report *report)
{
	struct check_round round;

	deed_judge(kind, record, report, &round);
	return holds(&round);
}

static void test_record_wrong(void)
{
	struct wl_interval_record record = record_of_10ms();

	CU_ASSERT_PTR_NULL(record_wrong(&record, 1000000000, 1010000000));
	/* Two clocks may differ a little, and no more. */
	CU_ASSERT_PTR_NULL(record_wrong(&record, 1000000000 + CHECK_CLOCK_NS, 1010000000 - CHECK_CLOCK_NS));
	CU_ASSERT_PTR_NOT_NULL(record_wrong(&record, 1000000001 + CHECK_CLOCK_NS, 1010000000));
	CU_ASSERT_PTR_NOT_NULL(record_wrong(&record, 1000000000, 1009999999 - CHECK_CLOCK_NS));
	record.length_ns[WL_STATE_UNKNOWN]++;
	CU_ASSERT_PTR_NOT_NULL(record_wrong(&record, 1000000000, 1010000000));
	record = record_of_10ms();
	record.end_ts = record.begin_ts - 1;
	CU_ASSERT_PTR_NOT_NULL(record_wrong(&record, 0, UINT64_MAX - CHECK_CLOCK_NS));
	CU_ASSERT_FALSE(record_flagged(&record));
	record.flags = WL_INTERVAL_HW | WL_INTERVAL_BASELINE | WL_INTERVAL_NO_ARRIVAL;
	CU_ASSERT_FALSE(record_flagged(&record));
	record.flags = WL_INTERVAL_LOSSY;
	CU_ASSERT_TRUE(record_flagged(&record));
}

static void test_counts(void)
{
	struct wl_interval_record record = record_of_10ms();
	struct deed_report report = report_of_10ms();

	report.inner = 256;
	report.outer = 258;
	move_ns(&record, WL_STATE_FAULT_MINOR, 400000);
	for (uint32_t seen = 254; seen <= 260; seen++) {
		record.count[WL_STATE_FAULT_MINOR] = seen;
		CU_ASSERT_EQUAL(deed_holds(DEED_MINOR, &record, &report), seen >= 256 && seen <= 258);
	}
	/* Faults of the other kind are none of these. */
	record.count[WL_STATE_FAULT_MINOR] = 0;
	record.count[WL_STATE_FAULT_MAJOR] = 256;
	CU_ASSERT_FALSE(deed_holds(DEED_MINOR, &record, &report));
	/* A count without a length. */
	record = record_of_10ms();
	record.count[WL_STATE_FAULT_MINOR] = 256;
	CU_ASSERT_FALSE(deed_holds(DEED_MINOR, &record, &report));
}

static void test_counts_of_a_cpu(void)
{
	struct wl_interval_record record = record_of_10ms();
	struct deed_report report = report_of_10ms();

	report.inner = report.outer = 20;
	move_ns(&record, WL_STATE_IRQ_TIMER, 30000);
	record.count[WL_STATE_IRQ_TIMER] = 12;
	CU_ASSERT_FALSE(deed_holds(DEED_TIMER, &record, &report));
	/* The others hit the task that had the CPU in between. */
	record.tally[WL_TALLY_SWITCH_INVOLUNTARY] = 1;
	CU_ASSERT_TRUE(deed_holds(DEED_TIMER, &record, &report));
	record.count[WL_STATE_IRQ_TIMER] = 21;
	CU_ASSERT_FALSE(deed_holds(DEED_TIMER, &record, &report));
	record.count[WL_STATE_IRQ_TIMER] = 0;
	CU_ASSERT_FALSE(deed_holds(DEED_TIMER, &record, &report));
}

static void test_waits(void)
{
	struct wl_interval_record record = record_of_10ms();
	struct deed_report report = report_of_10ms();

	report.begin_ts = 1000100000;
	report.wake_ts = 1009100000;
	report.end_ts = 1009200000;
	report.object = 0x1234;
	report.other_tid = 77;
	record.lock = (struct wl_wait){.length_ns = 9000000, .object = 0x1234, .owner_tid = 77};
	/* In its own state, in another one, and nowhere. */
	move_ns(&record, WL_STATE_BLOCKED_FUTEX, 9000000);
	CU_ASSERT_TRUE(deed_holds(DEED_LOCK, &record, &report));
	CU_ASSERT_FALSE(deed_holds(DEED_SLEEP, &record, &report));
	record.lock.owner_tid = 78;
	CU_ASSERT_FALSE(deed_holds(DEED_LOCK, &record, &report));
	record.lock.owner_tid = 77;
	record.lock.object = 0x1238;
	CU_ASSERT_FALSE(deed_holds(DEED_LOCK, &record, &report));
	record = record_of_10ms();
	CU_ASSERT_FALSE(deed_holds(DEED_SLEEP, &record, &report));
	/* A wait that the thread came late to, because it had no CPU, is shorter by that. */
	move_ns(&record, WL_STATE_RUNQ_PREEMPT, 3000000);
	move_ns(&record, WL_STATE_BLOCKED_SLEEP, 5900000);
	CU_ASSERT_TRUE(deed_holds(DEED_SLEEP, &record, &report));
}

static void test_preemption(void)
{
	struct wl_interval_record record = record_of_10ms();
	struct deed_report report = report_of_10ms();

	report.begin_ts = 1001000000;
	report.wake_ts = 1009000000;
	report.other_tid = 5;
	move_ns(&record, WL_STATE_RUNQ_PREEMPT, 8100000);
	record.culprit.tid = 5;
	CU_ASSERT_TRUE(deed_holds(DEED_PREEMPT, &record, &report));
	record.culprit.tid = 6;
	CU_ASSERT_FALSE(deed_holds(DEED_PREEMPT, &record, &report));
}

static void test_throttled(void)
{
	struct wl_interval_record record = record_of_10ms();
	struct deed_report report = report_of_10ms();

	report.inner = report.outer = 5000000;
	CU_ASSERT_FALSE(deed_holds(DEED_THROTTLED, &record, &report));
	move_ns(&record, WL_STATE_RUNQ_PREEMPT, 5000000);
	CU_ASSERT_FALSE(deed_holds(DEED_THROTTLED, &record, &report));
	record = record_of_10ms();
	move_ns(&record, WL_STATE_THROTTLED, 4000000);
	CU_ASSERT_TRUE(deed_holds(DEED_THROTTLED, &record, &report));
	move_ns(&record, WL_STATE_THROTTLED, 4000000);
	CU_ASSERT_TRUE(deed_holds(DEED_THROTTLED, &record, &report));
}

static void add_rounds(struct check_rounds *rounds, uint32_t good, uint32_t bad, uint32_t flagged)
{
	struct check_round held = {.witness = 7, .seen = 7, .low = 7, .high = 7}, missed = held;

	missed.seen = 6;
	for (uint32_t i = 0; i < good; i++)
		check_rounds_add(rounds, &held, false);
	for (uint32_t i = 0; i < bad; i++)
		check_rounds_add(rounds, &missed, false);
	for (uint32_t i = 0; i < flagged; i++)
		check_rounds_add(rounds, &missed, true);
}

static struct check concluded(uint32_t good, uint32_t bad, uint32_t flagged, uint32_t unseen)
{
	struct check check = {.name = "a check", .feature = "", .unit = "things"};
	struct check_rounds rounds = {};

	add_rounds(&rounds, good, bad, flagged);
	rounds.unseen += unseen;
	rounds.tried += unseen;
	check_conclude(&check, &rounds);
	CU_ASSERT_FALSE(check.skipped);
	return check;
}

static void test_conclude(void)
{
	struct check check = concluded(5, 0, 0, 0);

	CU_ASSERT_TRUE(check.ok);
	CU_ASSERT_EQUAL(check.seen, 7);
	CU_ASSERT_STRING_EQUAL(check.why, "");
	/* What is flagged is left out, and said to be. */
	check = concluded(5, 0, 9, 0);
	CU_ASSERT_TRUE(check.ok);
	CU_ASSERT_PTR_NOT_NULL(strstr(check.why, "9 of 14"));
	/* One in five may miss. */
	check = concluded(12, 3, 0, 0);
	CU_ASSERT_TRUE(check.ok);
	CU_ASSERT_PTR_NOT_NULL(strstr(check.why, "6 things seen, expected 7 to 7 (3 of 15 rounds"));
	CU_ASSERT_FALSE(concluded(11, 4, 0, 0).ok);
	CU_ASSERT_FALSE(concluded(11, 2, 0, 2).ok);
	CU_ASSERT_EQUAL(concluded(11, 4, 0, 0).seen, 6);
	CU_ASSERT_FALSE(concluded(0, 0, 18, 0).ok);
	CU_ASSERT_FALSE(concluded(0, 0, 0, 5).ok);
	CU_ASSERT_FALSE(concluded(0, 0, 0, 0).ok);
}

/* A round that the machine held up stands for nothing, wherever it comes. */
static void test_middle_round(void)
{
	static const uint64_t seen[] = {95, 99, 52, 98, 97};
	struct check check = {.name = "a check", .feature = "", .unit = "ns"};
	struct check_rounds rounds = {};
	uint32_t cnt = sizeof(seen) / sizeof(seen[0]);

	for (uint32_t first = 0; first < cnt; first++) {
		rounds.cnt = rounds.tried = 0;
		for (uint32_t i = 0; i < cnt; i++) {
			struct check_round round = {.witness = 100, .seen = seen[(first + i) % cnt], .high = 100};

			check_rounds_add(&rounds, &round, false);
		}
		check_conclude(&check, &rounds);
		CU_ASSERT_TRUE(check.ok);
		CU_ASSERT_EQUAL(check.seen, 97);
	}
}

static void test_enough(void)
{
	struct check_rounds rounds = {};

	add_rounds(&rounds, CHECK_ROUNDS - 1, 0, 3);
	CU_ASSERT_FALSE(check_rounds_enough(&rounds));
	add_rounds(&rounds, 1, 0, 0);
	CU_ASSERT_TRUE(check_rounds_enough(&rounds));
	/* A miss asks for more, up to a limit. */
	add_rounds(&rounds, 0, 1, 0);
	CU_ASSERT_FALSE(check_rounds_enough(&rounds));
	add_rounds(&rounds, CHECK_ROUNDS_MAX, 0, 0);
	CU_ASSERT_TRUE(check_rounds_enough(&rounds));
	CU_ASSERT_EQUAL(rounds.cnt, CHECK_ROUNDS_MAX);
}

static void test_passed(void)
{
	struct check good = {.ok = true}, bad = {.ok = false}, skipped = {.skipped = true};
	checks list = {};

	CU_ASSERT_FALSE(checks_passed(&list));
	CU_ASSERT_EQUAL(vec_push(&list, good), 0);
	CU_ASSERT_EQUAL(vec_push(&list, skipped), 0);
	CU_ASSERT_TRUE(checks_passed(&list));
	CU_ASSERT_EQUAL(vec_push(&list, bad), 0);
	CU_ASSERT_FALSE(checks_passed(&list));
	vec_free(&list);
}

static const char interrupts[] = "           CPU0       CPU2       \n"
				 " 24:          1          5  IO-APIC   5-edge      ACPI:Ged\n"
				 " 25:          2          7  IO-APIC   6-edge      one, other\n"
				 "LOC:    3399418    4177613   Local timer interrupts\n"
				 "ERR:          9\n"
				 "MIS:          0\n";

static uint32_t weigh_devices(const char *label, const char *text)
{
	return *label >= '0' && *label <= '9' ? 1 + (strchr(text, ',') != NULL) : 0;
}

static uint32_t weigh_all(const char *label, const char *text)
{
	(void)label;
	(void)text;
	return 1;
}

static int sum_of(const char *text, uint32_t cpu, proc_row_weight weight, uint64_t *sum)
{
	FILE *file = fmemopen((void *)text, strlen(text) + !*text, "r");
	int err = proc_table_sum(file, cpu, weight, sum);

	fclose(file);
	return err;
}

static void test_proc_table(void)
{
	char cut[sizeof(interrupts)];
	uint64_t sum;

	CU_ASSERT_EQUAL(sum_of(interrupts, 0, weigh_devices, &sum), 0);
	CU_ASSERT_EQUAL(sum, 1 + 2 * 2);
	/* CPU 1 is offline: the second column is that of CPU 2. */
	CU_ASSERT_EQUAL(sum_of(interrupts, 2, weigh_devices, &sum), 0);
	CU_ASSERT_EQUAL(sum, 5 + 7 * 2);
	CU_ASSERT_EQUAL(sum_of(interrupts, 1, weigh_all, &sum), -ENOENT);
	/* Rows that belong to no CPU do not count. */
	CU_ASSERT_EQUAL(sum_of(interrupts, 0, weigh_all, &sum), 0);
	CU_ASSERT_EQUAL(sum, 1 + 2 + 3399418);
	CU_ASSERT_EQUAL(sum_of("no table at all\n", 0, weigh_all, &sum), -EBADMSG);
	CU_ASSERT_EQUAL(sum_of("\n", 0, weigh_all, &sum), -EBADMSG);
	for (size_t len = 0; len < sizeof(interrupts); len++) {
		memcpy(cut, interrupts, len);
		cut[len] = '\0';
		sum_of(cut, 0, weigh_all, &sum);
		CU_ASSERT(sum <= 1 + 2 + 3399418);
	}
}

static void test_kernel_floor(void)
{
	static const char rt[] = "#1 SMP PREEMPT_RT Debian 5.10.0-1", plain[] = "#1 SMP PREEMPT_DYNAMIC Debian";
	char why[256];

	CU_ASSERT_EQUAL(kernel_below_floor("6.1.0-56-cloud-amd64", plain, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(kernel_below_floor("6.1", rt, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(kernel_below_floor("7.0.0-rc1", plain, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(kernel_below_floor("10.0", plain, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(kernel_below_floor("6.0.19", plain, why, sizeof(why)), -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "6.0.19"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "6.1 or later"));
	CU_ASSERT_EQUAL(kernel_below_floor("5.10.0-30-rt-amd64", rt, why, sizeof(why)), -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "real-time"));
	CU_ASSERT_EQUAL(kernel_below_floor("kernel", plain, why, sizeof(why)), -ENOTSUP);
	CU_ASSERT_NOT_EQUAL(kernel_unfit("/nonexistent", why, sizeof(why)), 0);
	CU_ASSERT_NOT_EQUAL(kernel_unfit("/etc/passwd", why, sizeof(why)), 0);
	CU_ASSERT_NOT_EQUAL(kernel_unfit("/", why, sizeof(why)), 0);
	CU_ASSERT_NOT_EQUAL(kernel_unfit("/dev/null", why, sizeof(why)), 0);
}

static const struct unit_test tests[] = {
	{"record_wrong", test_record_wrong},
	{"counts", test_counts},
	{"counts_of_a_cpu", test_counts_of_a_cpu},
	{"waits", test_waits},
	{"preemption", test_preemption},
	{"throttled", test_throttled},
	{"conclude", test_conclude},
	{"the middle round is shown", test_middle_round},
	{"enough", test_enough},
	{"passed", test_passed},
	{"proc_table", test_proc_table},
	{"kernel_floor", test_kernel_floor},
};

int suite_selftest(void)
{
	return unit_suite("selftest", tests, sizeof(tests) / sizeof(tests[0]));
}
