/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side sends to the agent: the contract of bpf/ with agent/capture and agent/model.
 *
 * Fixed widths, no implicit padding, sizes asserted on both sides.  All times are CLOCK_MONOTONIC nanoseconds, all
 * tids and pids are those of the initial pid namespace; "pid" is what the kernel calls tgid.
 */
#ifndef WHYLATE_RECORD_H
#define WHYLATE_RECORD_H

#ifndef __VMLINUX_H__
#include <stdint.h>
typedef uint8_t __wl_u8;
typedef uint16_t __wl_u16;
typedef uint32_t __wl_u32;
typedef uint64_t __wl_u64;
#else
typedef __u8 __wl_u8;
typedef __u16 __wl_u16;
typedef __u32 __wl_u32;
typedef __u64 __wl_u64;
#endif

enum wl_category {
#define CATEGORY(id, name, label) WL_CATEGORY_##id,
#include "category.def"
	WL_CATEGORY_CNT
};

enum wl_state {
#define STATE(id, name, category) WL_STATE_##id,
#include "state.def"
	WL_STATE_CNT
};

enum wl_tally {
#define TALLY(id, name) WL_TALLY_##id,
#include "tally.def"
	WL_TALLY_CNT
};

enum wl_loss {
#define LOSS(id, name, meaning) WL_LOSS_##id,
#include "losstype.def"
	WL_LOSS_CNT
};

enum wl_interval_flag {
#define INTERVAL_FLAG(bit, id, name, meaning) WL_INTERVAL_##id = 1 << (bit),
#include "interval_flag.def"
};

enum wl_invocation_flag {
#define INVOCATION_FLAG(bit, id, name, meaning) WL_INVOCATION_##id = 1 << (bit),
#include "invocation_flag.def"
};

enum wl_context {
#define CONTEXT(id, name, has_waker) WL_CONTEXT_##id,
#include "context.def"
	WL_CONTEXT_CNT
};

enum wl_certainty {
#define CERTAINTY(id, name, meaning) WL_CERTAINTY_##id,
#include "certainty.def"
	WL_CERTAINTY_CNT
};

enum wl_handoff {
#define HANDOFF(id, name, what) WL_HANDOFF_##id,
#include "handoff.def"
	WL_HANDOFF_CNT
};

enum wl_go_wait {
#define GO_WAIT(id, text, state) WL_GO_WAIT_##id,
#include "go_wait.def"
	WL_GO_WAIT_CNT
};

#define WL_HW_SLOTS 4
#define WL_COMM_LEN 16

/*
 * A goroutine has a tid with this bit, whatever thread it runs on; the rest is the number of its `struct g`, which the
 * Go runtime uses again for later goroutines, as the kernel does tids.  The kernel's own have at most 22 bits.
 */
#define WL_GOROUTINE_BITS 22
#define WL_GOROUTINE_TID  (1U << WL_GOROUTINE_BITS)

/* Where an interval comes from: the upper half of wl_interval_record.type; the lower half is the port or the list's
 * index. */
enum wl_interval_source {
	WL_SOURCE_TCP = 1,      /* lower half: the listening port */
	WL_SOURCE_UDP = 2,      /* lower half: the bound port */
	WL_SOURCE_UNIX = 3,     /* lower half: index of the listening address */
	WL_SOURCE_FUNCTION = 4, /* lower half: index of the probe in the symbol list */
};

/* The agent adds the number of the request's name (model/request_types.h) to a record's type; the kernel side sends 0.
 */
#define WL_TYPE_NAME_SHIFT        20
#define WL_TYPE_NAMES_MAX         4096
#define WL_TYPE_SOURCE(type)      ((type) >> 16 & 0xf)
#define WL_TYPE_NAME(type)        ((type) >> WL_TYPE_NAME_SHIFT)
#define WL_TYPE_NAMED(type, name) (((type) & ((1U << WL_TYPE_NAME_SHIFT) - 1)) | (__wl_u32)(name) << WL_TYPE_NAME_SHIFT)

enum wl_record_kind {
	WL_RECORD_INTERVAL = 1,
	WL_RECORD_TASK = 2,
	/* trace mode only */
	WL_RECORD_SEGMENT = 3,
	WL_RECORD_WAKEUP = 4,
	WL_RECORD_SOCKET = 5,
	WL_RECORD_BLOCK = 6,
	WL_RECORD_TIMER = 7,
	/* where functions are probed */
	WL_RECORD_INVOCATION = 8,
	WL_RECORD_QUEUE = 9,
	/* in place of WL_RECORD_INTERVAL, of those that are not kept */
	WL_RECORD_BRIEF = 10,
	/* while user stacks are sampled */
	WL_RECORD_STACK = 16,
	WL_RECORD_STACK_WAIT = 17,
	WL_RECORD_PYTHON = 18,
	WL_RECORD_VALUES = 19, /* right before the stack of the same tick */
	WL_RECORD_PROGRAM = 20,
	WL_RECORD_KIND_CNT
};

struct wl_record_header {
	__wl_u16 kind; /* enum wl_record_kind */
	__wl_u16 sz;   /* of the whole record */
	__wl_u32 cpu;
};

/*
 * A lock on a file: 8 bits each of the device's major and minor number, and 47 of the inode's.  No address in user
 * space has the highest bit.
 */
#define WL_FILE_LOCK     (1ULL << 63)
#define WL_MMAP_LOCK     (1ULL << 62) /* the object of a wait for the lock of the process's own address space */
#define WL_GO_WAIT       (1ULL << 61) /* the object of a goroutine's wait; lowest byte: enum wl_go_wait */
#define WL_FILE_LOCK_DEV 47           /* the shift of the device */
#define WL_FILE_LOCK_INO ((1ULL << WL_FILE_LOCK_DEV) - 1)
#define wl_file_lock(major, minor, ino)                                                            \
	(WL_FILE_LOCK | (__wl_u64)(((major) & 0xff) << 8 | ((minor) & 0xff)) << WL_FILE_LOCK_DEV | \
	 ((__wl_u64)(ino) & WL_FILE_LOCK_INO))

/* The longest wait of one kind that an interval met. */
struct wl_wait {
	__wl_u64 length_ns; /* 0: none */
	/* futex: its address; fault: the faulting address; WL_FILE_LOCK; otherwise the first argument of the call */
	__wl_u64 object;
	__wl_u32 state;     /* enum wl_state */
	__wl_u32 sysno;     /* the system call it waited in, ~0 outside of one */
	__wl_u32 owner_tid; /* a glibc mutex's owner when the wait began, 0 when not known */
	__wl_u32 zero;
};

/* Who had the CPU during the interval's longest wait for one. */
struct wl_culprit {
	__wl_u64 length_ns; /* the part of that wait during which it ran; 0: nobody known */
	__wl_u32 pid;       /* 0, and tid: no task, the CPU was idle */
	__wl_u32 tid;
	char comm[WL_COMM_LEN];
};

/* Bytes of a request that leave the kernel side, at most: from them the agent tells its type. */
#define WL_FIRST_MAX 256
/*
 * A MySQL statement that was prepared while it was recorded: the server's number for it, four bytes, stands in place of
 * the packet's length and sequence, and this in place of the command, which no client sends.
 */
#define WL_FIRST_PREPARED 0xff
/* More bytes that are read of a request are appended while there are at most that many. */
#define WL_FIRST_ENOUGH 63

/* What first[] is of an interval that a symbol list tells. */
enum wl_first {
	WL_FIRST_NOTHING,
	WL_FIRST_NUMBER, /* eight bytes */
	WL_FIRST_STRING,
};

/* Where the trace context of an interval was found. */
enum wl_trace_kind {
	WL_TRACE_NONE,
	WL_TRACE_HEADER, /* `traceparent` of an HTTP/1 request; bytes[]: WL_TRACE_HEADER_LEN from its name on */
	WL_TRACE_THREAD, /* OpenTelemetry's thread context when the interval ended; bytes[]: trace id and span id */
};

#define WL_TRACE_ID_LEN     16
#define WL_SPAN_ID_LEN      8
#define WL_TRACE_HEADER_LEN 68

/* The trace and the span, of the application's own tracing, that an interval belongs to. */
struct wl_trace_context {
	__wl_u32 kind; /* enum wl_trace_kind */
	__wl_u32 zero;
	__wl_u8 bytes[72];
};

/* A finished interval that is not kept: neither late nor part of the baseline. */
struct wl_brief_record {
	struct wl_record_header header;
	__wl_u64 sid;
	__wl_u64 begin_ts;
	__wl_u64 pickup_ts; /* when a thread began to work on it */
	__wl_u64 end_ts;
	__wl_u32 pid;
	__wl_u32 tid; /* the thread that picked it up */
	__wl_u32 end_tid;
	__wl_u32 type;      /* enum wl_interval_source << 16 | number */
	__wl_u32 rate;      /* selection: the interval stood for 2^32 / rate of its like; 0 means every one was taken */
	__wl_u32 flags;     /* enum wl_interval_flag, as far as they are known without its numbers */
	__wl_u64 conn;      /* of first[]: number of the connection, 0: datagrams; of functions: enum wl_first */
	__wl_u32 first_len; /* of first[]; 0: no byte of it is sent */
	__wl_u32 first_total; /* bytes that were read while first[] was filled */
	__wl_u8 first[];
};

/*
 * One finished interval with everything it met: states partition end_ts - begin_ts.  It begins with the fields of a
 * brief one.
 */
struct wl_interval_record {
	struct wl_record_header header;
	__wl_u64 sid;
	__wl_u64 begin_ts;
	__wl_u64 pickup_ts;
	__wl_u64 end_ts;
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 end_tid;
	__wl_u32 type;
	__wl_u32 rate;
	__wl_u32 flags; /* enum wl_interval_flag */
	__wl_u64 conn;
	__wl_u32 first_len;
	__wl_u32 first_total;
	__wl_u32 hw_epoch;  /* which rotation hw[] belongs to; meaningful with WL_INTERVAL_HW */
	__wl_u32 chance;    /* retention: it was kept with that chance of 2^32, for the baseline; 0: for certain */
	__wl_u64 queue_sid; /* the longest interval that its thread served while this one waited, 0: none known */
	__wl_u64 queue_sid_ns;
	__wl_u64 context; /* in which it ended: id of the table `context` */
	struct wl_culprit culprit;
	struct wl_wait lock;    /* longest futex wait */
	struct wl_wait blocked; /* longest other wait */
	struct wl_wait fault;   /* longest fault */
	struct wl_trace_context trace;
	__wl_u64 hw[WL_HW_SLOTS];
	__wl_u64 length_ns[WL_STATE_CNT];
	__wl_u32 count[WL_STATE_CNT];
	__wl_u32 tally[WL_TALLY_CNT];
	__wl_u32 zero;
	__wl_u8 first[]; /* as in a brief record */
};

enum wl_task_event {
	WL_TASK_SEEN = 1, /* followed from now on: found at the start, or created by a followed thread */
	WL_TASK_EXEC = 2,
	WL_TASK_EXIT = 3,
	WL_TASK_NAMED = 4, /* not followed: it had a CPU or a disk that others wanted */
	WL_TASK_RENAMED = 5,
};

struct wl_task_record {
	struct wl_record_header header;
	__wl_u64 ts;
	__wl_u32 event; /* enum wl_task_event */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 parent_pid;
	char comm[WL_COMM_LEN]; /* SEEN, of a goroutine: see struct wl_goroutine_start */
	__wl_u32 creator_tid;   /* SEEN: the thread that created it just now, 0: it existed */
	__wl_u32 outside;       /* SEEN: followed because it woke or fed a followed thread, not one of the target's */
};

/* What a task record of a goroutine has in place of a name: the agent knows the function. */
struct wl_goroutine_start {
	__wl_u64 goid;
	__wl_u64 start_pc; /* address of the function that it began with; 0: not known */
};

/* A fault that is under way: whether it is minor or major is known at its end, from a later segment of the thread. */
#define WL_STATE_FAULT_PENDING WL_STATE_CNT

enum wl_segment_flag {
	WL_SEGMENT_SUSPECT = 1, /* the kernel did not report every change: its bounds or its state may be wrong */
	WL_SEGMENT_OFF_CPU = 2, /* of a fault: a part in which the thread had no CPU */
	WL_SEGMENT_IDLE = 2,    /* of a runnable one: its CPU had no task all that time, and had to wake up */
	WL_SEGMENT_OUTSIDE = 4, /* none of the target's threads */
};

/* A stretch of one followed thread in one state, sent when it ends. */
struct wl_segment_record {
	struct wl_record_header header;
	__wl_u64 begin_ts;
	__wl_u64 end_ts;
	__wl_u64 sid;      /* the interval that the thread worked for, 0: none */
	__wl_u64 object;   /* blocked: the futex's address or the call's first argument; a fault: its address */
	__wl_u64 other_ns; /* runnable: how long `other` had the CPU meanwhile */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 state; /* enum wl_state, or WL_STATE_FAULT_PENDING */
	__wl_u32 flags; /* enum wl_segment_flag */
	__wl_u32 sysno; /* blocked: the system call, ~0 outside of one */
	__wl_u32 other_pid;
	__wl_u32 other_tid; /* runnable: who had the CPU longest; blocked on a mutex: its owner; 0: nobody known */
	__wl_u32 type;      /* of the interval `sid`, as in its record; 0: not known */
};

/* What the waker's write() went to. */
enum wl_file {
	WL_FILE_NONE, /* it was not in a write */
	WL_FILE_PIPE,
	WL_FILE_EVENTFD,
	WL_FILE_SOCKET,
	WL_FILE_OTHER,
	WL_FILE_DATAGRAM, /* a datagram socket, whose data a softirq on the sender's CPU has delivered */
	WL_FILE_MESSAGE,  /* none: it was at a message queue */
};

/* A blocked followed thread was made runnable. */
struct wl_wakeup_record {
	struct wl_record_header header;
	__wl_u64 ts;
	__wl_u64 arrived_sid; /* it was told of this request's arrival at a socket, 0: of none */
	__wl_u64 io_ts;       /* complete_ts of the block I/O in whose completion it happened, 0: none */
	__wl_u32 pid;         /* who was woken */
	__wl_u32 tid;
	__wl_u32 waker_pid; /* who ran on that CPU: the culprit in context TASK, and of a datagram, only */
	__wl_u32 waker_tid;
	__wl_u32 context;     /* enum wl_context */
	__wl_u32 waker_sysno; /* ~0 outside of a system call */
	__wl_u32 waker_file;  /* enum wl_file */
	__wl_u32 state;       /* enum wl_state of the wait that it ended */
};

enum wl_direction {
	WL_SENT = 1,
	WL_RECEIVED = 2,
	/* On a connection that the target accepted from another address: to and from a client, perhaps of another host.
	 */
	WL_REPLIED = 3,
	WL_REQUESTED = 4,
	/* A Unix socket's: bytes were on their way when counting began, so that the position may be a little off. */
	WL_RECEIVED_UNSURE = 5,
};

/* Bytes that one thread put into a connection or took out of it, by position: TCP's sequence numbers, or a count. */
struct wl_socket_record {
	struct wl_record_header header;
	__wl_u64 ts;
	__wl_u64 sid;
	__wl_u64 conn; /* Unix sockets: number of what comes to one of them, never used again; 0: TCP, told by its
			  addresses */
	__wl_u64 pos;  /* of the first byte */
	__wl_u32 len;
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u16 family;
	__wl_u16 direction; /* enum wl_direction */
	__wl_u16 local_port;
	__wl_u16 remote_port;
	__wl_u32 lag_ns;        /* TCP, sent: it left the host at most that long before ts; 0: not known */
	__wl_u8 local_addr[16]; /* IPv4: in the first four bytes */
	__wl_u8 remote_addr[16];
};

/* A block I/O that has completed. */
struct wl_block_record {
	struct wl_record_header header;
	__wl_u64 queue_ts; /* it was handed to the block layer; 0: before the recording */
	__wl_u64 issue_ts; /* the device got it; 0: not known */
	__wl_u64 complete_ts;
	__wl_u64 sector;
	__wl_u32 bytes;
	__wl_u32 dev; /* major << 20 | minor */
	__wl_u32 pid; /* who handed it to the block layer */
	__wl_u32 tid;
	__wl_u32 is_write;
	__wl_u32 zero;
};

/* A timer expired and made a blocked followed thread runnable. */
struct wl_timer_record {
	struct wl_record_header header;
	__wl_u64 ts; /* of the wake-up */
	__wl_u64 expire_ts;
	__wl_u64 timer;    /* which one: its address */
	__wl_u64 armed_ts; /* by a call that arms timers for whoever waits; 0: none was seen */
	__wl_u32 pid;      /* who was woken */
	__wl_u32 tid;
	__wl_u32 armed_pid;
	__wl_u32 armed_tid;
	__wl_u32 own; /* the wait was a call of its own, which arms a timer of its own where it has a timeout */
	__wl_u32 zero;
};

/* What a thread was at: into these an invocation's time is split. */
enum wl_split {
	WL_SPLIT_RUNNING, /* its own code and the kernel's for it, minor faults */
	WL_SPLIT_RUNNABLE,
	WL_SPLIT_INTERRUPTED,
	/* blocked, by the category of the wait */
	WL_SPLIT_LOCK,
	WL_SPLIT_DISK,
	WL_SPLIT_NET,
	WL_SPLIT_SLEEP,
	WL_SPLIT_FAULT, /* major ones */
	WL_SPLIT_OTHER,
	WL_SPLIT_CNT
};
#define WL_SPLIT_BLOCKED WL_SPLIT_LOCK /* the first of those */

#define WL_FUNC_NONE  (~0U)
#define WL_SEQ_NONE   (~0ULL)
#define WL_FUNC_DEPTH 64 /* so many calls of a thread may be open and recorded at a time */

/*
 * A finished call of a probed function, within a selected interval that its thread worked for when it was called.  Sent
 * when it ends, so children come before their parents; length_ns partitions end_ts - begin_ts.
 */
struct wl_invocation_record {
	struct wl_record_header header;
	__wl_u64 sid;
	__wl_u64 begin_ts;
	__wl_u64 end_ts;
	__wl_u64 call_addr;  /* the return address, absolute; 0: not read */
	__wl_u64 object;     /* acquire: the lock; otherwise 0 */
	__wl_u64 seq;        /* number of the call in its thread, from 1; other intervals' calls are in between */
	__wl_u64 parent_seq; /* WL_SEQ_NONE: none of this interval on this thread */
	__wl_u64 length_ns[WL_SPLIT_CNT];
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 func;        /* struct probe.func */
	__wl_u32 parent_func; /* WL_FUNC_NONE: none */
	__wl_u32 depth;       /* recorded calls of the same interval that enclose it */
	__wl_u32 flags;       /* enum wl_invocation_flag */
};

/* A task that went through a queue of the program: enqueued by one thread, dequeued by another. */
struct wl_queue_record {
	struct wl_record_header header;
	__wl_u64 from_ts;
	__wl_u64 to_ts;
	__wl_u64 sid;   /* the interval whose work it is, 0: none */
	__wl_u64 queue; /* addresses in the target */
	__wl_u64 task;
	__wl_u32 from_pid;
	__wl_u32 from_tid;
	__wl_u32 to_pid;
	__wl_u32 to_tid;
};

/* Memory that was read at a tick for the values of variables. */
struct wl_value_word {
	__wl_u64 addr;
	__wl_u64 bytes; /* zero-extended */
	__wl_u32 sz;
	__wl_u32 zero;
};

#define WL_VALUE_WORDS_MAX 56

/* What a tick read beside registers and stack, if anything; `sz` of its header ends after `cnt` words. */
struct wl_values_record {
	struct wl_record_header header;
	__wl_u64 ts; /* of the tick */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 cnt;
	__wl_u32 faulted; /* reads of memory that was not there */
	struct wl_value_word words[WL_VALUE_WORDS_MAX];
};

#define WL_STACK_SZ_MAX 16384
#define WL_STACK_REGS   33

/* Where wl_stack_record.regs has the stack pointer and the program counter, by DWARF's numbers. */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define WL_STACK_REG_SP 7
#define WL_STACK_REG_PC 16 /* the return address column */
#else
#define WL_STACK_REG_SP 31
#define WL_STACK_REG_PC 32
#endif

enum wl_stack_flag {
	WL_STACK_IN_KERNEL = 1,    /* the user's registers are those of its entry into the kernel */
	WL_STACK_CUT = 2,          /* the bytes end because a page was not there */
	WL_STACK_WAITS = 4,        /* it gave up the CPU: the stack of waits with that key */
	WL_STACK_NO_USER = 8,      /* a thread of the kernel: only kernel[] is there */
	WL_STACK_KERNEL_TICK = 16, /* a tick of the kernel's own clock, not of ours */
	WL_STACK_PYTHON = 32,      /* the record before it, of the same CPU, has the frames of its Python code */
	WL_STACK_HANDOFF = 64      /* no sample: a request was handed on, and goes on in the new context `key` */
};

/* Contexts that are none: a request as it came in; one that found no room in the table. */
#define WL_CONTEXT_ID_NONE  0
#define WL_CONTEXT_ID_OTHER 1

/* Return addresses in the kernel that are sent with a stack, the innermost ones. */
#define WL_STACK_KERNEL_MAX 32

/*
 * The user registers and the innermost bytes of a user stack, and the part of the stack in the kernel: of a followed
 * thread that works for a selected interval, or of any task that delays one.
 */
struct wl_stack_record {
	struct wl_record_header header;
	__wl_u64 ts;
	__wl_u64 sid;       /* the selected interval that it works for, 0: none */
	__wl_u64 period_ns; /* thread time between two ticks, of both clocks together; WAITS: 0 */
	__wl_u64 key;       /* WAITS: of its inferred call path; HANDOFF: the new context */
	__wl_u64 context;   /* in which its interval is then; HANDOFF: the context before */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 rate;       /* of its interval, as in wl_interval_record; without one: as it is now */
	__wl_u32 delays;     /* other selected intervals that it delays, at most; 0, without a sid: none */
	__wl_u32 state;      /* enum wl_state; HANDOFF: enum wl_handoff */
	__wl_u32 flags;      /* enum wl_stack_flag */
	__wl_u32 kernel_cnt; /* of kernel[] */
	__wl_u32 stack_sz;   /* bytes that follow, from the stack pointer upwards */
	__wl_u64 exe_ino;    /* of the file that the process runs; HANDOFF and of a goroutine: 0, likewise these */
	__wl_u64 exe_start;  /* where its code begins */
	__wl_u64 mmap_base;  /* below which libraries are mapped */
	__wl_u64 kernel[WL_STACK_KERNEL_MAX]; /* innermost first, the sampler's own frames included */
	__wl_u64 regs[WL_STACK_REGS];         /* by DWARF's numbers */
	__wl_u8 stack[];
};

#define WL_PROGRAM_PATH 192

/* A process runs another program from now on, which may end before its mappings can be read. */
struct wl_program_record {
	struct wl_record_header header;
	__wl_u64 ts;
	__wl_u64 ino; /* as exe_ino of its stacks */
	__wl_u32 pid;
	__wl_u32 parent_pid;
	char path[WL_PROGRAM_PATH]; /* as execve() was given it, or of a script's interpreter; NUL at the end */
};

/* Frames of Python code that are sent with a stack, the innermost ones. */
#define WL_PYTHON_FRAMES_MAX 64

/* In place of a frame's code object, or added to its address: beyond it lies another call of the interpreter's. */
#define WL_PYTHON_CALL_ENDS 1

struct wl_python_record {
	struct wl_record_header header;
	__wl_u64 ts; /* as of the stack, likewise pid and tid */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 cnt;
	__wl_u32 cut;                        /* there are more frames */
	__wl_u64 code[WL_PYTHON_FRAMES_MAX]; /* addresses of code objects, innermost first */
};

/* The thread runs again after a wait whose stack is that of `key`, or has just been sent with the same tid and ts. */
struct wl_stack_wait_record {
	struct wl_record_header header;
	__wl_u64 ts;  /* when it gave up the CPU */
	__wl_u64 sid; /* the selected interval that it worked for, 0: none */
	__wl_u64 key;
	__wl_u64 context;    /* as in wl_stack_record */
	__wl_u64 object;     /* as in struct wl_wait, likewise state and sysno */
	__wl_u64 blocked_ns; /* until it was woken */
	__wl_u64 runq_ns;    /* from then on, until it got a CPU */
	__wl_u32 pid;
	__wl_u32 tid;
	__wl_u32 rate;   /* as in wl_stack_record, likewise delays */
	__wl_u32 chance; /* it was recorded with that chance of 2^32; 0: for certain */
	__wl_u32 delays;
	__wl_u32 state;
	__wl_u32 sysno;
	__wl_u32 begin_cpu;
};

/* One per CPU and class, summed by the agent. */
struct wl_loss_count {
	__wl_u64 emitted; /* attempts */
	__wl_u64 lost;
};

_Static_assert(sizeof(struct wl_record_header) == 8, "record header");
_Static_assert(sizeof(struct wl_goroutine_start) == WL_COMM_LEN, "start of a goroutine");
_Static_assert(sizeof(struct wl_wait) == 32, "wait");
_Static_assert(sizeof(struct wl_culprit) == 32, "culprit");
_Static_assert(sizeof(struct wl_task_record) == 56, "task record");
_Static_assert(sizeof(struct wl_segment_record) == 80, "segment record");
_Static_assert(sizeof(struct wl_wakeup_record) == 64, "wakeup record");
_Static_assert(sizeof(struct wl_socket_record) == 96, "socket record");
_Static_assert(sizeof(struct wl_block_record) == 64, "block record");
_Static_assert(sizeof(struct wl_timer_record) == 64, "timer record");
_Static_assert(sizeof(struct wl_invocation_record) == 88 + 8 * WL_SPLIT_CNT, "invocation record");
_Static_assert(sizeof(struct wl_queue_record) == 64, "queue record");
_Static_assert(sizeof(struct wl_program_record) == 32 + WL_PROGRAM_PATH, "program record");
_Static_assert(sizeof(struct wl_stack_record) == 104 + 8 * (WL_STACK_KERNEL_MAX + WL_STACK_REGS), "stack record");
_Static_assert(sizeof(struct wl_python_record) == 32 + 8 * WL_PYTHON_FRAMES_MAX, "python record");
_Static_assert(sizeof(struct wl_value_word) == 24, "value word");
_Static_assert(sizeof(struct wl_values_record) == 32 + 24 * WL_VALUE_WORDS_MAX, "values record");
_Static_assert(sizeof(struct wl_stack_wait_record) == 96, "stack wait record");
_Static_assert(sizeof(struct wl_brief_record) == 80, "brief record");
_Static_assert(__builtin_offsetof(struct wl_interval_record, first_total) ==
			       __builtin_offsetof(struct wl_brief_record, first_total) &&
		       __builtin_offsetof(struct wl_interval_record, end_ts) ==
			       __builtin_offsetof(struct wl_brief_record, end_ts),
	       "an interval record begins as a brief one");
_Static_assert(sizeof(struct wl_trace_context) == 80, "trace context");
_Static_assert(sizeof(struct wl_interval_record) == 112 + sizeof(struct wl_culprit) + 3 * sizeof(struct wl_wait) +
							    sizeof(struct wl_trace_context) + 8 * WL_HW_SLOTS +
							    12 * WL_STATE_CNT + 4 * WL_TALLY_CNT + 4,
	       "interval record: no padding");

#endif
