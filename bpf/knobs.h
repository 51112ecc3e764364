/* SPDX-License-Identifier: GPL-2.0-or-later */
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
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

#include <whylate/record.h>

#define KNOB_SYSCALLS   512
#define KNOB_NETNS_MAX  8
#define KNOB_PORT_WORDS (65536 / 64)

/* What a thread that blocks in a system call waits for. */
enum wait_class {
	WAIT_OTHER,
	WAIT_FUTEX,
	WAIT_LOCK,  /* a lock that is no futex: semop */
	WAIT_FLOCK, /* one on a file, by flock() */
	WAIT_FCNTL, /* … by fcntl() */
	WAIT_DISK,
	WAIT_NET,
	WAIT_POLL,
	WAIT_SELECT, /* as WAIT_POLL; the descriptors are in bit sets */
	WAIT_LOOP,   /* as WAIT_POLL: what event loops wait in */
	WAIT_SLEEP,
	WAIT_FILE,    /* by what kind of file the first argument is */
	WAIT_SPLICE,  /* as WAIT_FILE; the third argument is what it writes to */
	WAIT_TEE,     /* likewise, the second */
	WAIT_MESSAGE, /* a message queue of the kernel's, POSIX or System V */
	WAIT_RING,    /* whatever was submitted to an io_uring */
	WAIT_ARM,     /* it does not wait, it arms a timer for whoever does */
};

/* Where a call that reads from a socket puts the bytes, or one that writes to it has them. */
enum read_class {
	READ_NOWHERE,
	READ_BUFFER,  /* second argument, as many as the third says */
	READ_VECTOR,  /* second argument: struct iovec[] */
	READ_MESSAGE, /* second argument: struct msghdr */
};

struct knobs {
	u32 children;                 /* children of followed processes are followed */
	u32 ring_wake_bytes;          /* wake the reader beyond this backlog */
	u32 hw;                       /* hardware counters are read */
	u32 rt;                       /* PREEMPT_RT: a thread may be switched out in the middle of a softirq */
	u32 windows;                  /* hooks may be detached for a time, and attached again in windows */
	u32 trace;                    /* segments, wake-ups and hand-offs leave as records too */
	u32 sockets;                  /* intervals are socket requests: what the target accepted is known */
	u32 probes;                   /* functions are probed */
	u32 cgroup_hierarchy;         /* with cgroup_id: of which hierarchy of version 1; 0: version 2 */
	u32 stacks;                   /* stacks may be sampled: whom a task delays is known */
	u32 outside_max;              /* trace mode: so many threads outside the target may be followed */
	u32 values;                   /* memory of variables of so many frames is read at ticks */
	u32 goroutines;               /* requests of Go programs belong to goroutines, not threads */
	u32 first_bytes;              /* the first bytes of requests are sent, which tell their types */
	u64 cgroup_id;                /* who is in this cgroup or below is the target; 0: the map `targets` says who */
	u64 words_mask;               /* words in each CPU's ring of words, less one; 0: there are none */
	u8 wait_class[KNOB_SYSCALLS]; /* enum wait_class by number of the system call */
	u8 read_class[KNOB_SYSCALLS]; /* enum read_class, likewise */
};

/* What an interval that was selected at that rate, of 2^32, stands for; 0: every one is selected. */
#define WEIGHT_ONE      (1ULL << 16)
#define WEIGHT_OF(rate) ((rate) ? (1ULL << 48) / (rate) : WEIGHT_ONE)

/* What the agent reads of an entry of `opens`. */
struct open_head {
	u64 begin_ts;
	u32 rate; /* as in the record */
	u32 flags;
};

#define CACHE_LINE 64

/* A sid is a number and, in its low bits, the CPU that made it. */
#define SID_CPU_BITS 12

/* Where the open intervals are: bpf/opens.h. */
#define OPEN_WAYS        8
#define OPEN_NEAR_CPUS   16
#define OPEN_NEAR_OF_CPU 8
#define OPEN_NEAR_SETS   (OPEN_NEAR_CPUS * OPEN_NEAR_OF_CPU)
#define OPEN_FAR_SETS    1024
#define OPEN_SETS        (OPEN_NEAR_SETS + OPEN_FAR_SETS)

struct open_set {
	u64 sids[OPEN_WAYS]; /* 0: free */
};

/*
 * Which intervals are recorded, in one word so that it changes at once: those whose sid has a 32-bit hash of at most
 * the upper half.  The lower half is what their records say of it, of 2^32, the share of time in windows included; 0:
 * every one is taken.
 */
#define SELECTION(highest_hash, stated_rate) ((u64)(highest_hash) << 32 | (u32)(stated_rate))
#define SELECTION_NONE                       0

struct controls {
	u64 selection; /* SELECTION() or SELECTION_NONE */
	/* Nothing is selected before and after, however late the agent is to say so.  select_end_ts 0: no end. */
	u64 select_begin_ts, select_end_ts;
	u64 late_ns;     /* an interval that took that long is kept, see retention.h; 0: every one is */
	u64 keep_chance; /* so is one that took less, with that chance of 2^32 */
	u32 window;      /* changes with every window: what was noted down in an earlier one holds no longer */
	u32 watching;    /* with windows: one is open, its hooks are attached */
	u32 rested;      /* with windows: there was time in none */
	u32 hw_epoch;    /* which rotation of hardware counters is on; changes with every rotation */
	u32 hw_slots;    /* counters in that rotation */
	u32 netns[KNOB_NETNS_MAX]; /* inodes of the target's network namespaces; first 0: any */
	u32 stack_reach; /* probes: frames that lie farther apart are on two stacks; 0: one mapping is one stack */
	u64 tcp_ports[KNOB_PORT_WORDS]; /* bitmap: where the target listens */
	u64 udp_ports[KNOB_PORT_WORDS];
	/* What the programs write lies apart from what all of them read. */
	u64 waited_ts __attribute__((aligned(CACHE_LINE))); /* stacks: when one of the waiting was woken last */
	u64 disk_ts;      /* trace mode: when one with a selected interval was last woken of its wait for a disk */
	u32 taken_cnt;    /* probes: changes when a thread takes another one's interval over */
	u32 outside_cnt;  /* trace mode: threads outside the target that are followed */
	u32 cgroup_moves; /* tasks that moved to another cgroup: some may have joined the target, or left it */
	u32 waiting;      /* stacks: selected intervals whose threads are blocked */
	u32 owed_cnt;     /* stacks: of them, those that wait for a thread that is known */
	u32 strangers;    /* probes: somebody who is not of the target came by a link that names no process */
	/* Written by every request. */
	u64 expected_weight __attribute__((aligned(CACHE_LINE))); /* what the expected ones stand for: WEIGHT_OF() */
	u32 expected; /* selected intervals that have arrived and were not picked up */
	u32 held_cnt; /* replies of this window whose last bytes are in the socket and not sent */
} __attribute__((aligned(CACHE_LINE)));

/* Of the samples of stacks; may change while they are taken. */
struct stack_controls {
	u64 own_ns;     /* period of our own clock */
	u64 kernel_ns;  /* period of the kernel's own tick; 0: it is not sampled */
	u64 gap_ns;     /* between two stacks of waits that are copied on a CPU, on average; 0: no wait is recorded */
	u64 floor_ns;   /* of shorter waits so many are recorded that each stands for this length */
	u32 max_sz;     /* bytes of a stack */
	u32 always;     /* whatever the target's threads are at, not only for selected intervals */
	u64 backlog_sz; /* no stack is added to a ring that holds more: intervals go first */
	u32 value_global_cnt; /* of the plan */
	u32 spins; /* threads of the target have been seen to spin: one that waits may own what they spin for */
};

#define VALUE_RANGES_MAX      65536
#define VALUE_READS_MAX       131072
#define VALUE_GLOBALS_MAX     16384
#define VALUE_MODULES_MAX     32 /* with variables that are read, of a process */
#define VALUE_READS_AT_ONCE   16 /* at the innermost frame */
#define VALUE_GLOBALS_AT_ONCE 16

/* Memory at what register `reg` holds + off, or at what lies there + off2. */
struct value_read {
	s32 off, off2;
	u8 reg; /* DWARF's number */
	u8 sz;  /* bytes, at most 8 */
	u8 deref;
	u8 zero;
};

/* What is read while the program counter is in [begin, end), addresses as linked. */
struct value_range {
	u64 begin, end;
	u32 first, cnt; /* of the reads */
};

struct value_global {
	u64 addr; /* as linked */
	u32 module;
	u32 sz;
};

#define VALUE_STEPS_MAX       8192
#define VALUE_SAVED_MAX       12 /* registers that calls preserve, and the return address */
#define VALUE_FRAME_READS_MAX 16
#define VALUE_CALLER_READS    24 /* at a tick, of all callers */
/* So many reads of one caller are made at a tick. */
#define VALUE_FRAME_READS_AT_ONCE(depth) \
	((depth) < 4 ? 8 : (depth) >= VALUE_CALLER_READS ? 1 : VALUE_CALLER_READS / (depth))

/* In memory at the canonical frame address + off. */
struct value_saved {
	s32 off;
	u8 reg; /* DWARF's number */
	u8 zero[3];
};

/* A program counter of a frame; of callers the return address. */
struct value_step_key {
	u64 addr;
	u32 program; /* as the image says */
	u32 is_caller;
};

/* How one gets from the registers there to those of the caller, and what is read there if it is a caller. */
struct value_step {
	s32 cfa_off; /* the canonical frame address: what cfa_reg holds + cfa_off */
	u8 cfa_reg;
	u8 ra; /* the register whose value in the caller is where it goes on */
	u8 saved_cnt;
	u8 read_cnt;
	struct value_saved saved[VALUE_SAVED_MAX];
	struct value_read reads[VALUE_FRAME_READS_MAX];
};

/* Where a module of the plan is in a process. */
struct value_module {
	u64 begin, end; /* of its mappings; 0: it is not there */
	u64 bias;       /* runtime address - address as linked */
	u32 first_range, range_cnt;
};

struct value_image {
	struct value_module modules[VALUE_MODULES_MAX];
	u32 program; /* the same number, the same code at the same addresses */
	u32 zero;
};

/* A wait's stack that the agent knows, by its key. */
struct known_stack {
	u32 hits;
	u32 check_at;  /* the stack of this hit is copied and compared */
	u32 ambiguous; /* a check has found another stack: each is copied */
	u32 zero;
};

#define RUNNERS_MAX 64

/* A task that got the CPU, until the next one of the list did. */
struct runner {
	u64 since_ts;
	u32 pid, tid;
	u32 as_tid; /* the goroutine that the thread ran last, or its own tid */
	u32 zero;
	char comm[WL_COMM_LEN];
};

/* How long the last bytes of a reply stayed in the socket after send(): classes of a quarter of an octave. */
#define HELD_BUCKETS 64
#define HELD_OCTAVE  16 /* shorter than 2^16 ns is not held */

struct cpu_context {
	u64 sid_seq;
	u64 seen;        /* intervals finished */
	u64 switch_cnt;  /* context switches, while that hook is attached */
	u64 selected;    /* of them, those whose record was to be sent */
	u64 keyed;       /* probes: begun by a key and not ended by it, a difference: of all CPUs together */
	u64 unreadable;  /* probes: hits whose expression could not be read */
	u64 asks;        /* by requests on connections that the target opened */
	u64 asks_unsure; /* of them, those of which it was not certain which request asked */
	u64 abandoned;   /* begun and never finished: connection closed, thread gone, stack unwound */
	struct runner runners[RUNNERS_MAX]; /* who ran on the CPU, in turn */
	u32 runner_pos;                     /* 0: nothing is known of the CPU yet */
	u32 window;                         /* in which all that was noted down */
	u32 followed;                       /* the running task is followed */
	u32 nested;                         /* interrupts under way that were taken note of */
	u64 reader_woken_ts;                /* last time the reader was woken for this CPU's ring */
	struct wl_loss_count loss[WL_LOSS_CNT];
	u64 replies;    /* over TCP, of selected intervals */
	u64 window_cnt; /* of those that were held: the client's window was closed */
	u64 resent_cnt; /* of those: a segment was lost and sent again */
	u64 held_ns;    /* in all */
	u32 held[HELD_BUCKETS];
};

/* Key of unix_listeners: a path without its length, padded with NULs, or an abstract name with its length. */
struct unix_name {
	u8 path[108];
	u32 len;
};

#endif
