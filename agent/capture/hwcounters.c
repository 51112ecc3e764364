// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/hwcounters.h"

#include "shard/table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <whylate/record.h>

static const struct {
	uint32_t type;
	uint64_t config;
	uint32_t rotation;
} defined[SHARD_HW_CNT] = {
#define HWCOUNTER(id, name, type, config, group, rotation) {type, config, rotation},
#include <whylate/hwcounter.def>
#undef HWCOUNTER
};

#define ROTATIONS_MAX 8

struct rotation {
	int counter[WL_HW_SLOTS]; /* enum shard_hwcounter, -1: the slot is empty */
	int *fds;                 /* cpu_cnt * WL_HW_SLOTS */
};

struct hwcounters {
	uint32_t cpu_cnt;
	uint32_t rotation_cnt;
	struct rotation rotations[ROTATIONS_MAX];
};

static int open_event(uint32_t counter, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = defined[counter].type,
		.size = sizeof(attr),
		.config = defined[counter].config,
		.exclude_hv = 1,
		.disabled = 1,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void rotation_close(struct rotation *rotation, uint32_t cpu_cnt)
{
	for (uint32_t i = 0; rotation->fds && i < cpu_cnt * WL_HW_SLOTS; i++)
		if (rotation->fds[i] >= 0)
			close(rotation->fds[i]);
	free(rotation->fds);
	rotation->fds = NULL;
}

/* All CPUs or none: a counter that one CPU lacks would make intervals depend on where they ran. */
static int open_slot(struct rotation *rotation, uint32_t slot, uint32_t counter, uint32_t cpu_cnt)
{
	for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++) {
		int fd = open_event(counter, cpu), err = -errno;

		if (fd < 0) {
			while (cpu-- > 0) {
				close(rotation->fds[cpu * WL_HW_SLOTS + slot]);
				rotation->fds[cpu * WL_HW_SLOTS + slot] = -1;
			}
			return err;
		}
		rotation->fds[cpu * WL_HW_SLOTS + slot] = fd;
	}
	rotation->counter[slot] = counter;
	return 0;
}

static int rotation_open(struct rotation *rotation, uint32_t number, uint32_t cpu_cnt)
{
	uint32_t slot = 0;
	int err, first_err = 0;

	rotation->fds = malloc(cpu_cnt * WL_HW_SLOTS * sizeof(*rotation->fds));
	if (!rotation->fds)
		return -ENOMEM;
	memset(rotation->fds, 0xff, cpu_cnt * WL_HW_SLOTS * sizeof(*rotation->fds));
	for (int i = 0; i < WL_HW_SLOTS; i++)
		rotation->counter[i] = -1;
	for (uint32_t counter = 0; counter < SHARD_HW_CNT && slot < WL_HW_SLOTS; counter++) {
		if (defined[counter].rotation != number)
			continue;
		err = open_slot(rotation, slot, counter, cpu_cnt);
		if (!err)
			slot++;
		else if (!first_err)
			first_err = err;
	}
	if (slot)
		return 0;
	rotation_close(rotation, cpu_cnt);
	return first_err ? first_err : -ENOENT;
}

struct hwcounters *hwcounters__new(bool software, uint32_t cpu_cnt)
{
	struct hwcounters *counters = calloc(1, sizeof(*counters));
	int err = -ENOENT, first_err = 0;

	if (!counters)
		return NULL;
	counters->cpu_cnt = cpu_cnt;
	for (uint32_t number = 0; number < ROTATIONS_MAX; number++) {
		bool used = false, is_software = false;

		for (uint32_t counter = 0; counter < SHARD_HW_CNT; counter++) {
			if (defined[counter].rotation == number) {
				used = true;
				is_software = defined[counter].type == PERF_TYPE_SOFTWARE;
			}
		}
		if (!used || is_software != software)
			continue;
		err = rotation_open(&counters->rotations[counters->rotation_cnt], number, cpu_cnt);
		if (!err)
			counters->rotation_cnt++;
		else if (!first_err)
			first_err = err;
	}
	if (counters->rotation_cnt)
		return counters;
	free(counters);
	errno = first_err ? -first_err : ENOENT;
	return NULL;
}

void hwcounters__free(struct hwcounters *counters)
{
	if (!counters)
		return;
	for (uint32_t i = 0; i < counters->rotation_cnt; i++)
		rotation_close(&counters->rotations[i], counters->cpu_cnt);
	free(counters);
}

uint32_t hwcounters__rotation_cnt(const struct hwcounters *counters)
{
	return counters->rotation_cnt;
}

static const struct rotation *rotation_of(const struct hwcounters *counters, uint32_t epoch)
{
	return &counters->rotations[epoch / 2 % counters->rotation_cnt];
}

uint32_t hwcounters__slot_cnt(const struct hwcounters *counters, uint32_t epoch)
{
	uint32_t cnt = 0;

	while (cnt < WL_HW_SLOTS && rotation_of(counters, epoch)->counter[cnt] >= 0)
		cnt++;
	return cnt;
}

int hwcounters__slot(const struct hwcounters *counters, uint32_t epoch, uint32_t slot)
{
	return slot < WL_HW_SLOTS ? rotation_of(counters, epoch)->counter[slot] : -1;
}

int hwcounters__install(struct hwcounters *counters, int map_fd, uint32_t epoch)
{
	const struct rotation *next = rotation_of(counters, epoch);

	for (uint32_t i = 0; i < counters->rotation_cnt; i++) {
		const struct rotation *rotation = &counters->rotations[i];

		for (uint32_t key = 0; rotation != next && key < counters->cpu_cnt * WL_HW_SLOTS; key++)
			if (rotation->fds[key] >= 0)
				ioctl(rotation->fds[key], PERF_EVENT_IOC_DISABLE, 0);
	}
	for (uint32_t key = 0; key < counters->cpu_cnt * WL_HW_SLOTS; key++) {
		int fd = next->fds[key];

		if (fd < 0) {
			bpf_map_delete_elem(map_fd, &key);
			continue;
		}
		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) || bpf_map_update_elem(map_fd, &key, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}
