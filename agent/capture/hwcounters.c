// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/hwcounters.h"

#include "base/vec.h"
#include "model/hw_rotation.h"
#include "shard/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <whylate/record.h>

static const struct {
	uint32_t type;
	uint64_t config;
	bool software;
} defined[SHARD_HW_CNT] = {
#define HWCOUNTER(id, name, type, config, group, set) {type, config, (set) == 1},
#include <whylate/hwcounter.def>
};

#define SOFTWARE_SLOTS 2 /* so that there are rotations */
#define FDS_LEFT       256

struct rotation {
	struct hw_rotation of;
	int *fds; /* cpu_cnt * WL_HW_SLOTS */
};

struct hwcounters {
	uint32_t cpu_cnt;
	VEC(struct rotation) rotations;
};

/*
 * Of a group either all events have a counter or none has.  Pinned, it has them always; where it cannot, the kernel
 * puts it into an error state, and what reads it is told so.
 */
static int open_event(uint32_t counter, uint32_t cpu, int leader_fd)
{
	struct perf_event_attr attr = {
		.type = defined[counter].type,
		.size = sizeof(attr),
		.config = defined[counter].config,
		.exclude_hv = 1,
		.pinned = leader_fd < 0,
		.disabled = leader_fd < 0,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, leader_fd, PERF_FLAG_FD_CLOEXEC);
}

static void rotation_close(struct rotation *rotation, uint32_t cpu_cnt)
{
	for (uint32_t i = 0; rotation->fds && i < cpu_cnt * WL_HW_SLOTS; i++)
		if (rotation->fds[i] >= 0)
			close(rotation->fds[i]);
	free(rotation->fds);
	rotation->fds = NULL;
}

/* Do all CPUs have it?  One that lacks it would make intervals depend on where they ran. */
static bool is_there(uint32_t counter, uint32_t cpu_cnt, int *err)
{
	for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++) {
		int fd = open_event(counter, cpu, -1);

		if (fd < 0) {
			*err = *err ? *err : -errno;
			return false;
		}
		close(fd);
	}
	return true;
}

/* Whether the group gets its counters on this CPU: an event in the error state reads as the end of a file. */
static bool is_scheduled(const struct rotation *rotation, uint32_t cpu)
{
	int fd = rotation->fds[cpu * WL_HW_SLOTS];
	uint64_t value;
	bool is;

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return false;
	is = read(fd, &value, sizeof(value)) == sizeof(value);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return is;
}

static int rotation_open(struct rotation *rotation, uint32_t cpu_cnt)
{
	rotation->fds = malloc(cpu_cnt * WL_HW_SLOTS * sizeof(*rotation->fds));
	if (!rotation->fds)
		return -ENOMEM;
	memset(rotation->fds, 0xff, cpu_cnt * WL_HW_SLOTS * sizeof(*rotation->fds));
	for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++) {
		int *fds = rotation->fds + cpu * WL_HW_SLOTS;

		for (uint32_t slot = 0; slot < rotation->of.cnt; slot++) {
			fds[slot] = open_event(rotation->of.counters[slot], cpu, slot ? fds[0] : -1);
			if (fds[slot] < 0)
				return -errno;
		}
		if (!is_scheduled(rotation, cpu))
			return -ENOSPC;
	}
	return 0;
}

static void close_all(struct hwcounters *counters)
{
	for (size_t i = 0; i < counters->rotations.cnt; i++)
		rotation_close(&counters->rotations.items[i], counters->cpu_cnt);
	counters->rotations.cnt = 0;
}

/* As many files as may be open: beyond that rotations are left out, and the pairs in them never recorded together. */
static size_t rotations_max(uint32_t cpu_cnt)
{
	struct rlimit limit;
	size_t max;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	max = limit.rlim_cur > FDS_LEFT ? (limit.rlim_cur - FDS_LEFT) / (cpu_cnt * WL_HW_SLOTS) : 1;
	return max < 1 ? 1 : max < HW_ROTATIONS_MAX ? max : HW_ROTATIONS_MAX;
}

/* All rotations of so many slots: 0 or -errno, and then none is open. */
static int open_all(struct hwcounters *counters, const uint32_t *list, size_t cnt, uint32_t slots)
{
	size_t max = rotations_max(counters->cpu_cnt);
	hw_rotations made = {0};
	int err = hw_rotations_cover(&made, list, cnt, slots);

	for (size_t i = 0; i < made.cnt && i < max && !err; i++) {
		struct rotation rotation = {.of = made.items[i]};

		err = vec_reserve(&counters->rotations, 1);
		err = err ? err : rotation_open(&rotation, counters->cpu_cnt);
		if (err)
			rotation_close(&rotation, counters->cpu_cnt);
		else
			counters->rotations.items[counters->rotations.cnt++] = rotation;
	}
	vec_free(&made);
	if (err)
		close_all(counters);
	return err;
}

struct hwcounters *hwcounters__new(bool software, uint32_t cpu_cnt)
{
	struct hwcounters *counters = calloc(1, sizeof(*counters));
	uint32_t list[SHARD_HW_CNT], cnt = 0;
	int err = 0;

	if (!counters)
		return NULL;
	counters->cpu_cnt = cpu_cnt;
	for (uint32_t counter = 0; counter < SHARD_HW_CNT; counter++)
		if (defined[counter].software == software && is_there(counter, cpu_cnt, &err))
			list[cnt++] = counter;
	/* A watchdog, or a hypervisor, may have taken some of the PMU's counters. */
	for (uint32_t slots = software ? SOFTWARE_SLOTS : WL_HW_SLOTS; cnt && slots >= 1; slots--) {
		err = open_all(counters, list, cnt, slots);
		if (!err)
			return counters;
	}
	hwcounters__free(counters);
	errno = err ? -err : ENOENT;
	return NULL;
}

void hwcounters__free(struct hwcounters *counters)
{
	if (!counters)
		return;
	close_all(counters);
	vec_free(&counters->rotations);
	free(counters);
}

uint32_t hwcounters__rotation_cnt(const struct hwcounters *counters)
{
	return counters->rotations.cnt;
}

static const struct rotation *rotation_of(const struct hwcounters *counters, uint32_t epoch)
{
	return &counters->rotations.items[hw_rotation_turn(epoch / 2, counters->rotations.cnt)];
}

uint32_t hwcounters__slot_cnt(const struct hwcounters *counters, uint32_t epoch)
{
	return rotation_of(counters, epoch)->of.cnt;
}

int hwcounters__slot(const struct hwcounters *counters, uint32_t epoch, uint32_t slot)
{
	const struct rotation *rotation = rotation_of(counters, epoch);

	return slot < rotation->of.cnt ? (int)rotation->of.counters[slot] : -1;
}

int hwcounters__install(struct hwcounters *counters, int map_fd, uint32_t epoch)
{
	const struct rotation *next = rotation_of(counters, epoch);

	for (size_t i = 0; i < counters->rotations.cnt; i++)
		for (uint32_t cpu = 0; cpu < counters->cpu_cnt && &counters->rotations.items[i] != next; cpu++)
			ioctl(counters->rotations.items[i].fds[cpu * WL_HW_SLOTS], PERF_EVENT_IOC_DISABLE, 0);
	for (uint32_t key = 0; key < counters->cpu_cnt * WL_HW_SLOTS; key++) {
		int fd = next->fds[key];

		if (fd < 0) {
			bpf_map_delete_elem(map_fd, &key);
			continue;
		}
		if (key % WL_HW_SLOTS == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
		if (bpf_map_update_elem(map_fd, &key, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}
