/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the Go runtime keeps what is read of a goroutine: offsets in bytes in its `struct g`, for one process. */
#ifndef WHYLATE_BPF_GO_LAYOUT_H
#define WHYLATE_BPF_GO_LAYOUT_H

#include "knobs.h"

#define GO_NO_OFF (~0U)
/* Wait reasons of a version of Go: a power of two. */
#define GO_REASONS_MAX 64

struct go_layout {
	s32 slot;        /* of the pointer to the running g, from the thread pointer */
	u32 goid;        /* 8 bytes */
	u32 status;      /* 4 bytes */
	u32 wait_reason; /* 1 byte */
	u32 start_pc;    /* 8 bytes; GO_NO_OFF: not known */
	u32 sched;       /* the registers of one that waits: sp, pc, …, bp */
	u32 sched_sz;    /* bytes of them; 0: not known */
	u32 stopping_sz; /* bytes that are not 0 while the world is stopped: 1 or 4 */
	u32 zero;
	u64 stopping;             /* their address; 0: not known */
	u8 waits[GO_REASONS_MAX]; /* enum wl_go_wait by the runtime's wait reason */
};

/* What the probe is at, as its attach cookie says. */
enum go_site {
	GO_SITE_EXECUTE = 1, /* a thread begins to run a goroutine: runtime.execute(gp, …) */
	GO_SITE_PARK,        /* a goroutine has begun to wait: runtime.park_m(gp) */
	GO_SITE_READY,       /* a goroutine is put into a run queue: runtime.runqput(pp, gp, …) */
	GO_SITE_CNT
};

#endif
