// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/syscalls.h"
#include "base/units.h"
#include "bpf/knobs.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

static void durations(void)
{
	static const struct {
		const char *text;
		uint64_t ns; /* 0: refused */
	} cases[] = {
		{"30s", 30000000000ULL},
		{"1.5h", 5400000000000ULL},
		{"250ms", 250000000},
		{"3us", 3000},
		{"1ns", 1},
		{"2 m", 120000000000ULL},
		{"1d", 86400000000000ULL},
		{"0s", 0},
		{"-1s", 0},
		{"", 0},
		{"s", 0},
		{"1x", 0},
		{"1ss", 0},
		{"0x10", 0},
		{"inf", 0},
		{"nan", 0},
		{"1e300s", 0},
		{"0.1ns", 0},
		{" 1s", 0},
		{"1s ", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;

		CU_ASSERT_EQUAL(units_duration_ns(cases[i].text, &ns), cases[i].ns ? 0 : -EINVAL);
		CU_ASSERT_EQUAL(ns, cases[i].ns);
	}
	/* A bare number has no unit, and none is assumed. */
	CU_ASSERT_EQUAL(units_duration_ns("30", &(uint64_t){0}), -EDOM);
	CU_ASSERT_EQUAL(units_duration_ns("0", &(uint64_t){0}), -EDOM);
}

static void shares_and_percentiles(void)
{
	double value = 0;

	CU_ASSERT(!units_share("1%", &value) && value == 0.01);
	CU_ASSERT(!units_share("100 %", &value) && value == 1);
	CU_ASSERT(!units_share("0.25%", &value) && value == 0.0025);
	CU_ASSERT_EQUAL(units_share("0.25", &value), -EDOM);
	CU_ASSERT_EQUAL(units_share("1", &value), -EDOM);
	CU_ASSERT_EQUAL(units_share("0%", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_share("101%", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_share("5", &value), -EDOM);
	CU_ASSERT_EQUAL(units_share("1%%", &value), -EINVAL);
	CU_ASSERT(!units_percentile("p99", &value) && value == 0.99);
	CU_ASSERT(!units_percentile("p99.9", &value) && value > 0.9989 && value < 0.9991);
	CU_ASSERT(!units_percentile("95", &value) && value == 0.95);
	CU_ASSERT(!units_percentile("0.9", &value) && value == 0.9);
	CU_ASSERT_EQUAL(units_percentile("p100", &value), -EINVAL);
	CU_ASSERT(!units_percentile("p25", &value) && value == 0.25);
	CU_ASSERT_EQUAL(units_percentile("p0", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_percentile("p-5", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_percentile("pp99", &value), -EINVAL);
}

static void sizes_and_numbers(void)
{
	uint64_t value = 0;

	CU_ASSERT(!units_bytes("4M", &value) && value == 4 << 20);
	CU_ASSERT(!units_bytes("64KiB", &value) && value == 64 << 10);
	CU_ASSERT(!units_bytes("1g", &value) && value == 1 << 30);
	CU_ASSERT(!units_bytes("4096", &value) && value == 4096);
	CU_ASSERT_EQUAL(units_bytes("0", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_bytes("4Mx", &value), -EINVAL);
	CU_ASSERT_EQUAL(units_bytes("999999999T", &value), -EINVAL);
	CU_ASSERT(!units_number("12", 12, &value) && value == 12);
	CU_ASSERT_EQUAL(units_number("13", 12, &value), -EINVAL);
	CU_ASSERT_EQUAL(units_number("0", 12, &value), -EINVAL);
	CU_ASSERT_EQUAL(units_number("+1", 12, &value), -EINVAL);
	CU_ASSERT_EQUAL(units_number("99999999999999999999999", UINT64_MAX, &value), -EINVAL);
}

static void system_calls_have_names_and_classes(void)
{
	uint8_t classes[KNOB_SYSCALLS];

	CU_ASSERT_STRING_EQUAL(syscall_name(SYS_futex), "futex");
	CU_ASSERT_STRING_EQUAL(syscall_name(SYS_fsync), "fsync");
	CU_ASSERT_PTR_NULL(syscall_name(100000));
	syscall_wait_classes(classes, KNOB_SYSCALLS);
	CU_ASSERT_EQUAL(classes[SYS_futex], WAIT_FUTEX);
	CU_ASSERT_EQUAL(classes[SYS_fdatasync], WAIT_DISK);
	CU_ASSERT_EQUAL(classes[SYS_clock_nanosleep], WAIT_SLEEP);
	CU_ASSERT_EQUAL(classes[SYS_epoll_pwait], WAIT_LOOP);
	CU_ASSERT_EQUAL(classes[SYS_ppoll], WAIT_POLL);
	CU_ASSERT_EQUAL(classes[SYS_pselect6], WAIT_SELECT);
	CU_ASSERT_EQUAL(classes[SYS_read], WAIT_FILE);
	CU_ASSERT_EQUAL(classes[SYS_splice], WAIT_SPLICE);
	CU_ASSERT_EQUAL(classes[SYS_mq_timedsend], WAIT_MESSAGE);
	CU_ASSERT_EQUAL(classes[SYS_io_uring_enter], WAIT_RING);
	CU_ASSERT_EQUAL(classes[SYS_getpid], WAIT_OTHER);
}

static void times(void)
{
	static const struct {
		const char *text;
		uint64_t wall_s; /* 0: refused */
	} cases[] = {
		{"1h", 1000000 - 3600},
		{"30s", 1000000 - 30},
		{"2026-11-21", 1795219200},
		{"2026-11-21T12:00", 1795262400},
		{"2026-11-21 12:00:30", 1795262430},
		{"1960-01-01", 0},
		{"2026-11-21T12", 0},
		{"2026-13-01", 0},
		{"yesterday", 0},
		{"9999-01-01", 0},
		{"", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t wall_ns = 0;

		CU_ASSERT_EQUAL(units_time_ns(cases[i].text, 1000000 * 1000000000ULL, &wall_ns),
				cases[i].wall_s ? 0 : -EINVAL);
		CU_ASSERT_EQUAL(wall_ns, cases[i].wall_s * 1000000000ULL);
	}
	CU_ASSERT(!units_time_ns("1d", 5, &(uint64_t){0}));
}

int suite_units(void)
{
	static const struct unit_test tests[] = {
		{"durations", durations},
		{"shares and percentiles", shares_and_percentiles},
		{"sizes and numbers", sizes_and_numbers},
		{"system calls have names and classes", system_calls_have_names_and_classes},
		{"times", times},
	};

	return unit_suite("units", tests, sizeof(tests) / sizeof(tests[0]));
}
