/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hardware counters: events on every CPU, opened in rotations that take turns, one epoch each (VarMRI §4.4,
 * model/hw_rotation.h).  An odd epoch is one in which events are being swapped.
 */
#ifndef WHYLATE_CAPTURE_HWCOUNTERS_H
#define WHYLATE_CAPTURE_HWCOUNTERS_H

#include <stdbool.h>
#include <stdint.h>

struct hwcounters;

/*
 * Opens what this machine has; NULL with errno ENOENT when it has none of them (or -errno of the first refusal).
 * `software`: the software events of hwcounter.def instead.
 */
struct hwcounters *hwcounters__new(bool software, uint32_t cpu_cnt);
void hwcounters__free(struct hwcounters *counters);

/* Puts the rotation of `epoch` into the map (an fd of hw_events). 0 or -errno. */
int hwcounters__install(struct hwcounters *counters, int map_fd, uint32_t epoch);
uint32_t hwcounters__rotation_cnt(const struct hwcounters *counters);
/* How many slots the rotation of `epoch` fills, from the first on. */
uint32_t hwcounters__slot_cnt(const struct hwcounters *counters, uint32_t epoch);
/* enum shard_hwcounter of a slot in the rotation of `epoch`, -1: none. */
int hwcounters__slot(const struct hwcounters *counters, uint32_t epoch, uint32_t slot);

#endif
