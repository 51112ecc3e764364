/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical paths of a recording, walked over its rows. (Apart from the harness, which has paths of its own.) */
#ifndef WHYLATE_TESTS_WALK_H
#define WHYLATE_TESTS_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include <whylate/record.h>

struct paths_seen {
	uint64_t cnt;
	uint64_t failed_cnt; /* could not be walked */
	uint64_t uneven_cnt; /* steps do not sum to the latency */
	uint64_t late_cnt, late_gap_cnt;
	uint64_t wait_ns[WL_CATEGORY_CNT];   /* steps by the wait that they belong to … */
	uint64_t behind_ns[WL_CATEGORY_CNT]; /* … those of them on another thread of that name, "" any */
};

/* Every interval of the recording; late are those that take late_ns.  False: there is no detail in it. */
bool walk_all(const char *dir, uint64_t late_ns, const char *comm, struct paths_seen *seen);

#endif
