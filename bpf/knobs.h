/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the agent and the programs share in memory: read-only knobs set before loading, controls set at any time, the
 * counts of each CPU.
 */
#ifndef WHYLATE_BPF_KNOBS_H
#define WHYLATE_BPF_KNOBS_H

#ifndef __VMLINUX_H__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#include <whylate/record.h>

#define KNOB_SYSCALLS   512
#define KNOB_PORT_WORDS (65536 / 64)

/* What a thread that blocks in a system call waits for. */
enum wait_class {
	WAIT_OTHER,
	WAIT_FUTEX,
	WAIT_LOCK, /* a lock that is no futex: flock, semop */
	WAIT_DISK,
	WAIT_NET,
	WAIT_POLL,
	WAIT_SLEEP,
	WAIT_FILE, /* by what kind of file the first argument is */
};

struct knobs {
	u32 netns;           /* inode of the target's network namespace, 0: any */
	u32 children;        /* children of followed processes are followed */
	u32 ring_wake_bytes; /* wake the reader beyond this backlog */
	u32 hw;              /* hardware counters are read */
	u32 rt;              /* PREEMPT_RT: a thread may be switched out in the middle of a softirq */
	u32 zero;
	u8 wait_class[KNOB_SYSCALLS]; /* enum wait_class by number of the system call */
};

struct controls {
	u64 rate;      /* an interval is selected if the 32-bit hash of its sid is below */
	u64 lost_mark; /* changes with every loss */
	u32 hw_epoch;  /* which rotation of hardware counters is on; changes with every rotation */
	u32 hw_slots;  /* counters in that rotation */
	u32 zero;
	u32 expected;                   /* selected intervals that have arrived and were not picked up */
	u64 tcp_ports[KNOB_PORT_WORDS]; /* bitmap: where the target listens */
	u64 udp_ports[KNOB_PORT_WORDS];
};

#define RUNNERS_MAX 16

/* A task that got the CPU, until the next one of the list did. */
struct runner {
	u64 since_ts;
	u32 pid, tid;
	char comm[WL_COMM_LEN];
};

struct cpu_context {
	u64 sid_seq;
	u64 seen;      /* intervals finished */
	u64 selected;  /* of them, those whose record was to be sent */
	u64 abandoned; /* begun and never finished: connection closed, thread gone, stack unwound */
	struct runner runners[RUNNERS_MAX]; /* who ran on the CPU, in turn */
	u32 runner_pos;
	u32 zero;
	u32 followed; /* the running task is followed */
	u32 nested;   /* interrupts under way that were taken note of */
	struct wl_loss_count loss[WL_LOSS_CNT];
};

/* Key of unix_listeners: a path without its length, padded with NULs, or an abstract name with its length. */
struct unix_name {
	u8 path[108];
	u32 len;
};

#endif
