// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own accounts of what happens to a thread or on its CPU. */
#include "selftest/proc_table.h"
#include "selftest/scene.h"

#include <ctype.h>
#include <string.h>
#include <sys/resource.h>

uint64_t count_minor(struct scene *scene)
{
	struct rusage usage;

	(void)scene;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

uint64_t count_major(struct scene *scene)
{
	struct rusage usage;

	(void)scene;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_majflt;
}

uint64_t count_switches(struct scene *scene)
{
	struct rusage usage;

	(void)scene;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static uint64_t count_table(FILE *table, int cpu, proc_row_weight weight)
{
	uint64_t sum;

	if (!table)
		return 0;
	rewind(table);
	return proc_table_sum(table, cpu, weight, &sum) ? 0 : sum;
}

/* A handler's line is a number; handlers that share it are each called, and their names are separated by commas. */
static uint32_t weigh_handler(const char *label, const char *text)
{
	uint32_t weight = 1;

	if (!isdigit((unsigned char)*label))
		return 0;
	for (; *text; text++)
		weight += *text == ',';
	return weight;
}

/* arm64's timer is a handler among others. */
static uint32_t weigh_device(const char *label, const char *text)
{
	return strstr(text, "arch_timer") ? 0 : weigh_handler(label, text);
}

static uint32_t weigh_timer(const char *label, const char *text)
{
	return !strcmp(label, "LOC") || strstr(text, "arch_timer");
}

static uint32_t weigh_ipi(const char *label, const char *text)
{
	(void)text;
	return !strcmp(label, "RES") || !strcmp(label, "CAL") ||
	       (!strncmp(label, "IPI", 3) && isdigit((unsigned char)label[3]));
}

static uint32_t weigh_all(const char *label, const char *text)
{
	(void)label;
	(void)text;
	return 1;
}

static uint32_t weigh_net_rx(const char *label, const char *text)
{
	(void)text;
	return !strcmp(label, "NET_RX");
}

uint64_t count_timer(struct scene *scene)
{
	return count_table(scene->interrupts, scene->own_cpu, weigh_timer);
}

uint64_t count_ipi(struct scene *scene)
{
	return count_table(scene->interrupts, scene->own_cpu, weigh_ipi);
}

uint64_t count_device_on(struct scene *scene, int cpu)
{
	return count_table(scene->interrupts, cpu, weigh_device);
}

uint64_t count_device(struct scene *scene)
{
	return count_table(scene->interrupts, scene->own_cpu, weigh_handler);
}

uint64_t count_softirqs(struct scene *scene)
{
	return count_table(scene->softirqs, scene->own_cpu, weigh_all);
}

uint64_t count_net_rx(struct scene *scene)
{
	return count_table(scene->softirqs, scene->own_cpu, weigh_net_rx);
}
