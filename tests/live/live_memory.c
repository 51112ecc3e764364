// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the agent takes of memory at its highest, on the server of which there is the most to read: MariaDB and its
 * libraries have some 57,000 functions.
 */
#include "harness.h"
#include "mariadb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of two CPUs; a further one has its ring, of at most 4 MiB and a little. */
#define PEAK_KIB          (64UL << 10)
#define PEAK_KIB_DIAGNOSE (96UL << 10) /* the analysis of its rounds included */
#define RING_KIB          ((4UL << 10) + 64)

/* 0-3: rings are made for all CPUs that there may ever be. */
static unsigned long possible_cpus(void)
{
	char *text = file_read("/sys/devices/system/cpu/possible", NULL);
	const char *last = text ? strrchr(text, '-') : NULL;
	unsigned long cnt = last ? strtoul(last + 1, NULL, 10) + 1 : 1;

	free(text);
	return cnt;
}

static void check_peak(const char *command, const struct mariadb *mariadb, unsigned long most_kib, const char *args)
{
	unsigned long cpu_cnt = possible_cpus(), peak_kib = 0;
	uint64_t end_ts = now_ns() + 60 * NS_PER_SEC;
	struct process process = {0};

	if (cpu_cnt > 2)
		most_kib += (cpu_cnt - 2) * RING_KIB;
	if (process_start(&process, "%s %s -p %d %s", whylate_path(), command, (int)mariadb->process.pid, args))
		return;
	while (process_runs(&process) && now_ns() < end_ts) {
		unsigned long kib = process_peak_kib(&process);

		peak_kib = kib ? kib : peak_kib;
		sleep_ms(20);
	}
	CHECKF(process_wait(&process, 1) == 0, "%s: %s", command, process_err(&process));
	CHECKF(peak_kib > 0 && peak_kib <= most_kib, "%s: %lu KiB resident at most, of %lu", command, peak_kib,
	       most_kib);
	printf("(%s: %.1f MiB) ", command, peak_kib / 1024.0);
	process_end(&process);
}

static void memory_case(const char *name, const char *command, unsigned long most_kib, const char *args)
{
	struct mariadb mariadb = {0};
	struct process load = {0};

	/* A sanitizer's shadow is not the agent's. */
	if (getenv("WHYLATE_SANITIZED")) {
		skip(name, "a sanitizer takes several times as much");
		return;
	}
	if (!mariadb_find(name))
		return;
	if (mariadb_start(&mariadb, name) && mariadb_load(&mariadb, &load, "--time=90")) {
		check_peak(command, &mariadb, most_kib, args);
		CHECKF(process_runs(&load), "the load ended before: %s", process_out(&load));
	}
	process_end(&load);
	mariadb_end(&mariadb);
}

static void test_record(void)
{
	struct path symbols = built_path("presets/mariadb.symbols"), dir = temp_path("memory");
	char args[3 * sizeof(struct path)];

	snprintf(args, sizeof(args), "-d 3s -q -s %s -o %s", symbols.s, dir.s);
	memory_case("memory_record", "record", PEAK_KIB, args);
}

static void test_diagnose(void)
{
	memory_case("memory_diagnose", "diagnose", PEAK_KIB_DIAGNOSE, "-d 6s --json -q");
}

static const struct live_test tests[] = {
	{"memory_record", test_record, SHORT},
	{"memory_diagnose", test_diagnose, REST},
};

int suite_memory(void)
{
	return live_suite("memory", tests, sizeof(tests) / sizeof(tests[0]));
}
