// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings of the host, limits of the target's cgroup and the operator's labels, as facts: what hosts whose requests
 * are late may have in common (whylate-fleet(1)).  What cannot be read is not said.
 */
#include "session/recording.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VALUE_SZ 256

static const struct {
	const char *key, *path;
} settings[] = {
	{"setting.transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"},
	{"setting.transparent_hugepage.defrag", "/sys/kernel/mm/transparent_hugepage/defrag"},
	{"setting.numa_balancing", "/proc/sys/kernel/numa_balancing"},
	{"setting.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"},
	{"setting.sched_autogroup", "/proc/sys/kernel/sched_autogroup_enabled"},
	{"setting.swappiness", "/proc/sys/vm/swappiness"},
	{"setting.dirty_ratio", "/proc/sys/vm/dirty_ratio"},
	{"setting.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"},
	{"setting.zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode"},
	{"setting.overcommit_memory", "/proc/sys/vm/overcommit_memory"},
	{"setting.somaxconn", "/proc/sys/net/core/somaxconn"},
	{"setting.tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"},
	{"setting.tcp_slow_start_after_idle", "/proc/sys/net/ipv4/tcp_slow_start_after_idle"},
	{"setting.clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"setting.cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
	{"setting.smt", "/sys/devices/system/cpu/smt/control"},
};

/* A file's first line without blanks at its ends; of "always [madvise] never" what is in brackets. */
static bool read_setting(const char *path, char value[VALUE_SZ])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t sz = fd < 0 ? -1 : read(fd, value, VALUE_SZ - 1);
	char *chosen, *end;

	if (fd >= 0)
		close(fd);
	if (sz <= 0)
		return false;
	value[sz] = '\0';
	value[strcspn(value, "\n")] = '\0';
	chosen = strchr(value, '[');
	end = chosen ? strchr(chosen, ']') : NULL;
	if (end) {
		*end = '\0';
		memmove(value, chosen + 1, (size_t)(end - chosen));
	}
	for (end = value + strlen(value); end > value && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return *value;
}

/* "model name	: …" of the first CPU; not every architecture has it. */
static bool read_cpu_model(char value[VALUE_SZ])
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	bool found = false;
	char line[512];

	while (in && !found && fgets(line, sizeof(line), in)) {
		const char *colon = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');

		if (!colon)
			continue;
		snprintf(value, VALUE_SZ, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		found = true;
	}
	if (in)
		fclose(in);
	return found;
}

/* The first of the files DIR/PATH/FILE that can be read. */
static bool read_limit(const char *const *dirs, const char *path, const char *file, char value[VALUE_SZ])
{
	char name[PATH_MAX + 256];

	for (; *dirs; dirs++) {
		snprintf(name, sizeof(name), "%s%s/%s", *dirs, path, file);
		if (read_setting(name, value))
			return true;
	}
	return false;
}

static int write_v2_limits(struct recording *recording, const char *path)
{
	static const char *const dirs[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};
	static const char *const files[] = {"cpu.max", "cpu.weight", "memory.max", "memory.high"};
	char value[VALUE_SZ], key[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(key, sizeof(key), "cgroup.%s", files[i]);
		if (read_limit(dirs, path, files[i], value))
			journal__say(&recording->journal, key, "%s", value);
	}
	return recording->journal.err;
}

/* In the words of version 2: "10000 100000", "max 100000". */
static int write_v1_limits(struct recording *recording, const char *controllers, const char *path)
{
	static const char *const cpu_dirs[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", NULL};
	static const char *const memory_dirs[] = {"/sys/fs/cgroup/memory", NULL};
	char quota[VALUE_SZ], period[VALUE_SZ];

	if ((!strcmp(controllers, "cpu") || !strncmp(controllers, "cpu,", 4)) &&
	    read_limit(cpu_dirs, path, "cpu.cfs_quota_us", quota) &&
	    read_limit(cpu_dirs, path, "cpu.cfs_period_us", period))
		return journal__say(&recording->journal, "cgroup.cpu.max", "%s %s", quota[0] == '-' ? "max" : quota,
				    period);
	if (!strcmp(controllers, "memory") && read_limit(memory_dirs, path, "memory.limit_in_bytes", quota))
		return journal__say(&recording->journal, "cgroup.memory.max", "%s", quota);
	return 0;
}

/* The target's own limits; those above it hold as well, and are not told. */
static int write_cgroup(struct recording *recording)
{
	char name[64], line[PATH_MAX + 256];
	FILE *in;
	int err = 0;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", recording->options->pid);
	in = fopen(name, "re");
	while (in && !err && fgets(line, sizeof(line), in)) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		*path++ = '\0';
		err = controllers[1] ? write_v1_limits(recording, controllers + 1, path)
				     : write_v2_limits(recording, path);
	}
	if (in)
		fclose(in);
	return err;
}

static void write_labels(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->options->label_cnt; i++) {
		const char *label = recording->options->labels[i];
		int key_sz = (int)strcspn(label, "=");
		char key[64];

		snprintf(key, sizeof(key), "label.%.*s", key_sz, label);
		journal__say(&recording->journal, key, "%s", label + key_sz + 1);
	}
}

int recording_write_settings(struct recording *recording)
{
	char value[VALUE_SZ];

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (read_setting(settings[i].path, value))
			journal__say(&recording->journal, settings[i].key, "%s", value);
	if (read_cpu_model(value))
		journal__say(&recording->journal, "cpu_model", "%s", value);
	write_labels(recording);
	return write_cgroup(recording);
}
