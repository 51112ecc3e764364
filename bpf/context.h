/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every program of the kernel side shares: the context of a followed thread, the maps, the knobs.
 *
 * A followed thread is in exactly one state at a time.  thread.word holds that state and since when; thread__enter()
 * moves it on and adds what has passed to the state that ends.  The lengths therefore partition the thread's wall time,
 * and the difference of two snapshots partitions the time between them: this is what an interval is made of.
 *
 * Who writes a thread's context: only the CPU on which the thread runs (its own system calls, the interrupts on top of
 * it, the scheduler), and, while it is blocked, whoever wakes it.  Interrupts nest inside the thread's own programs, so
 * the word changes by compare-and-swap and a reader that saw it change reads again.
 */
#ifndef WHYLATE_BPF_CONTEXT_H
#define WHYLATE_BPF_CONTEXT_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <whylate/record.h>

#include "compat.h"
#include "knobs.h"

/* A page fault that is still being handled: whether it was minor or major is known at its end. */
#define STATE_FAULT_PENDING WL_STATE_FAULT_PENDING
#define STATE_SLOTS         (WL_STATE_CNT + 1)
#define STATE_BITS          5
#define STATE_MASK          ((1 << STATE_BITS) - 1)
_Static_assert(STATE_SLOTS <= 1 << STATE_BITS, "a state fits into the low bits of a word");

#define HISTORY_LEN 256
#define NEST_MAX    8
#define ASKING_MAX  16
/* A thread that has asked so often without waiting for events is no event loop. */
#define ASKS_UNKNOWN 64
#define WAITS_MAX    8
#define COUNTERS_MAX (1 << STATE_BITS)

#define bit(state) (1U << (state))
#define SOFTIRQ_STATES                                                                                 \
	(bit(WL_STATE_SOFTIRQ_HI) | bit(WL_STATE_SOFTIRQ_TIMER) | bit(WL_STATE_SOFTIRQ_NET_TX) |       \
	 bit(WL_STATE_SOFTIRQ_NET_RX) | bit(WL_STATE_SOFTIRQ_BLOCK) | bit(WL_STATE_SOFTIRQ_IRQ_POLL) | \
	 bit(WL_STATE_SOFTIRQ_TASKLET) | bit(WL_STATE_SOFTIRQ_SCHED) | bit(WL_STATE_SOFTIRQ_HRTIMER) | \
	 bit(WL_STATE_SOFTIRQ_RCU))
/* What is done to a thread from outside: it delays whatever waits for the thread, no matter what the thread was at. */
#define EXTERNAL_STATES                                                                                        \
	(bit(WL_STATE_IRQ_HARD) | bit(WL_STATE_IRQ_VECTOR) | bit(WL_STATE_IRQ_TIMER) | bit(WL_STATE_IRQ_IPI) | \
	 SOFTIRQ_STATES | bit(WL_STATE_RUNQ_WAKEUP) | bit(WL_STATE_RUNQ_PREEMPT) | bit(WL_STATE_THROTTLED) |   \
	 bit(WL_STATE_BLOCKED_STOPPED))
#define RUNQ_STATES (bit(WL_STATE_RUNQ_WAKEUP) | bit(WL_STATE_RUNQ_PREEMPT))
#define BLOCKED_STATES                                                                           \
	(bit(WL_STATE_BLOCKED_FUTEX) | bit(WL_STATE_BLOCKED_DISK) | bit(WL_STATE_BLOCKED_NET) |  \
	 bit(WL_STATE_BLOCKED_POLL) | bit(WL_STATE_BLOCKED_PIPE) | bit(WL_STATE_BLOCKED_SLEEP) | \
	 bit(WL_STATE_BLOCKED_STOPPED) | bit(WL_STATE_BLOCKED_OTHER))
#define RUNNING_STATES (bit(WL_STATE_RUNNING) | bit(STATE_FAULT_PENDING))

struct snapshot {
	u64 length_ns[COUNTERS_MAX];
	u32 count[COUNTERS_MAX];
	u32 tally[WL_TALLY_CNT + 1];
	u64 hw[WL_HW_SLOTS];
};

/*
 * Waits of a thread, such that the longest since any moment is at hand: each is longer than all that came after it, so
 * the first one that ended after that moment is it.  A new wait removes the shorter ones at the end; when there is no
 * room, the oldest goes.
 */
struct past_wait {
	u64 end_ts;
	struct wl_wait wait;
};

struct wait_list {
	u32 head, cnt;
	struct past_wait waits[WAITS_MAX];
};

struct past_runq {
	u64 end_ts;
	u64 wait_ns;
	struct wl_culprit culprit;
};

struct runq_list {
	u32 head, cnt;
	struct past_runq waits[WAITS_MAX];
};

enum outside {
	OUTSIDE_NOT,
	OUTSIDE_FOLLOWED, /* it woke or fed a followed thread, or used a disk that one waited for */
	OUTSIDE_LEFT,     /* it was one of the target's until it left the target's cgroup */
};

/* A request that a thread has read, and that has neither asked for anything nor ended. */
struct asking {
	u64 sid;
	u64 since_ts; /* when the thread had got a CPU that read it */
};

struct thread {
	u64 word; /* since << STATE_BITS | state */
	u32 window;
	u32 in_fault;
	u64 length_ns[COUNTERS_MAX];
	u32 count[COUNTERS_MAX];
	u32 tally[WL_TALLY_CNT + 1];
	u32 history_pos;
	u64 history[HISTORY_LEN]; /* the last words, cuts left out: what was before an interval's pick-up */

	u32 run_state;  /* what it is when it has a CPU: running, in a fault, in an interrupt */
	u32 nest_level; /* the shadow stack, VarMRI Figure 4, see nest__push() */
	u32 nest[NEST_MAX];
	u32 blocked; /* off the CPU and not runnable */
	u32 last_cpu;
	u32 pid, tid; /* tid: the goroutine's that it runs, if that is known */
	u32 kernel_tid;
	u32 wait_cpu; /* in whose run queue it waits */

	/* Go only, see goroutine.h */
	u32 is_go;     /* its process's goroutines are known */
	u64 goroutine; /* the one that it runs: address of its `struct g`; 0: none, or not known */
	u64 entered_ts;
	u64 left_ts, left_since_ts; /* of the one that it ran before */
	u32 left_tid;
	u32 padding;

	u32 recording;        /* selected intervals open on this thread: only then waits are looked at closely */
	u32 current_recorded; /* current_sid is selected */
	u64 current_sid;      /* the interval it works for, 0: none */
	u64 current_since_ts;
	u64 switched_in_ts;                       /* last time it got a CPU after a wake-up */
	u64 activity_ts;                          /* last time it picked up or finished an interval */
	u64 suspect_ts;                           /* last time a switch of it was found to have gone unreported */
	u64 lost_ts;                              /* last time a record of it found no room */
	u64 served_sid, served_ns, served_end_ts; /* longest interval served lately, for those that queued behind it */

	u32 waits_for_mmap; /* for the lock of its address space */
	u32 mmap_owner_tid;
	u64 wait_since_ts; /* the wait under way, if it is looked at */
	struct wl_wait wait;
	struct snapshot fresh; /* room for a reading of its own counters */
	/* stacks only */
	u64 stack_ts; /* when the wait under way began, 0: it is not recorded */
	u64 stack_key, stack_sid, stack_context, stack_object;
	u64 python_thread; /* where CPython keeps it; 0: not known */
	u64 stack_next_ts; /* a wait that is for no selected interval is not looked at before … */
	u64 stack_long_ts; /* … nor is a long one that comes earlier */
	u32 stack_rate, stack_state, stack_sysno, stack_flags, stack_cpu;
	u32 queued_cpu, queued_cnt; /* see delay.h: CPU + 1, 0: in no run queue */
	u32 blocked_cnt, owed_tid;
	u64 fault_addr;
	struct runq_list runq;
	struct wait_list lock, other, fault;

	u64 function_sp; /* stack pointer at the entry of the outermost probed function, 0: in none */
	u64 function_sid;
	u32 function_recorded;
	u32 function_type;
	u64 datagram_sk; /* the socket whose datagram it works on, 0: none */
	u64 datagram_sid;
	u32 datagram_recorded;
	u32 hw_epoch; /* of hw[] and hw_start[] */
	u32 hw_generation;
	u64 hw_start[WL_HW_SLOTS];
	u64 hw_waited_ns[WL_HW_SLOTS]; /* of the events, at the start */
	u64 hw[WL_HW_SLOTS];

	/* probes only */
	u32 call_cnt;       /* calls of probed functions that are open */
	u32 taken_seen;     /* intervals that other threads have taken over so far, as of the last look */
	u64 acquire_frame;  /* of the outermost call under way that acquires a lock */
	u64 acquire_object; /* that lock, 0: none */

	u32 outside; /* enum outside: none of the target's */

	/* see handoff.h */
	u32 is_loop;      /* it waits for events while requests are open on it */
	u32 current_type; /* of current_sid, as in its record */
	u32 asks;         /* on connections that it opened */
	u32 polls;        /* its waits in poll() or select() that were looked at */
	u64 crowded_ts;   /* one of asking[] was overwritten since it got a CPU then */
	struct asking asking[ASKING_MAX];

	/* trace mode only */
	u32 other_pid; /* of the segment under way, see struct wl_segment_record */
	u32 other_tid;
	u32 segment_type; /* of segment_sid, as in the interval's record */
	u32 send_unsure;  /* of several requests, for which one it sends is not known */
	u64 other_ns;
	u64 segment_sid; /* the interval that it works for since the segment under way began */
};

/* A selected interval that has been picked up and not finished. */
struct open_interval {
	u64 begin_ts; /* struct open_head begins here */
	u32 rate, flags;
	u64 pickup_ts;
	u64 accounted_ts; /* sum covers begin_ts to here */
	u64 owned_ts;     /* since when its thread works for it: pickup_ts, unless it came from another one */
	u64 handed_ns;    /* what passed between the two, if that can be taken back */
	u32 paused;       /* its thread works for another one */
	u32 handed_tid;   /* probes: this thread has put it into a queue, and may work for it nevertheless; 0: none */
	u32 pid, tid, type, hw_epoch, hw_generation;
	u32 picker_tid;  /* the thread that picked it up: tid, unless it went on to another one */
	u32 counted_tid; /* the thread whose counters `base` has: where a goroutine ran last */
	u32 message;     /* MESSAGE_…, see nats.h */
	u64 queue_sid, queue_sid_ns;
	u64 context; /* as in the record, likewise the next three */
	u64 conn;
	u32 first_len, first_total;
	u8 first[WL_FIRST_ENOUGH + 1 + WL_FIRST_MAX]; /* of which WL_FIRST_MAX count: the verifier knows the bounds */
	struct wl_trace_context trace;
	/* Go: the longest waits of its goroutine, and those of threads that it has left */
	struct wl_wait go_lock, go_other, go_fault;
	struct wl_culprit go_culprit;
	u64 go_runq_ns;
	struct snapshot base; /* the thread's counters at accounted_ts */
	struct snapshot sum;  /* what is accounted for so far */
};

_Static_assert(offsetof(struct open_interval, rate) == offsetof(struct open_head, rate), "as the agent reads it");

/* One request on a connection: whether it is recorded is decided when it arrives. */
struct request {
	u64 sid;      /* 0: none */
	u64 begin_ts; /* of a selected one */
	u32 selected;
	u32 rate;   /* at that time, as in the record */
	u32 window; /* in which it was seen */
	u32 zero;
};

/* A connection that the target accepted; or, foreign, one that it opened, which is tied to the request it asks for. */
struct conn {
	/* The cache line that an arrival's CPU takes from the reader's: 56 bytes of it are for values. */
	/* Its first bytes have arrived and were not read yet; foreign: begin_ts and window alone. */
	struct request next;
	u64 held_ts; /* since when bytes of a reply are in the socket and not sent, 0: none are */
	u32 type;
	u32 foreign; /* looked at once and found to be none of the target's */
	/* The reader's */
	struct request request; /* read, and not answered yet, while in_request */
	u32 in_request;
	u32 recorded;    /* the request is selected, and there was room for it */
	u64 id;          /* the sid of its first request, 0: none was read yet */
	u32 wants_first; /* more bytes of the request would tell more of its type */
	u32 held_window; /* the window of held_ts */
	u32 awaits;      /* foreign: nothing was read since the request asked */
	u32 is_shared;   /* foreign: several requests were asked for at a time */
	u32 is_connecting;
	u32 nats;        /* see nats.h */
	u64 context;     /* foreign: in which the request goes on with the reply */
	u64 replied_ts;  /* when the last recorded reply was sent, or sent again; 0: it is delivered */
	u32 replied_seq; /* where it ends */
	u32 zero;
};

/* Arrival times of datagrams that wait in one socket. */
#define DATAGRAMS_MAX 64
struct datagrams {
	u64 arrival_ts[DATAGRAMS_MAX];
	u32 head, tail;
	u32 type;
	u32 window;
};

/* The maps are defined in every object and merged by the static linker. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct datagrams);
} datagram_queues SEC(".maps") __weak;

/* Two CPUs that make a socket's storage at a time get one and nothing; then it is there. */
#define sk_storage_make(map, sk)                                                             \
	({                                                                                   \
		void *made = bpf_sk_storage_get(map, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE); \
		made ? made : bpf_sk_storage_get(map, sk, 0, 0);                             \
	})

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_context);
} cpus SEC(".maps") __weak;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct unix_name);
	__type(value, u32);
} unix_listeners SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, u32);
	__type(value, u32);
} hw_events SEC(".maps") __weak;

extern const volatile struct knobs cfg_knobs;
extern struct controls controls;

/* Trace mode: moves on when another connection becomes followed; 0 is the generation of nothing. */
#define FLOW_GENERATION_FIRST 1
extern u32 flow_generation;

/*
 * A function that the verifier looks at once for any arguments, and not again with each call in each state of its
 * callers: that is most of what attaching takes.  Weak, because several objects that are linked into one have it.
 */
#define VERIFIED_ONCE __weak __noinline

/* Between windows nobody watched: who runs on the CPU is not known, and interrupts have come and gone. */
VERIFIED_ONCE int cpu__renew(struct cpu_context *cpu)
{
	if (!cpu)
		return 0;
	cpu->window = controls.window;
	cpu->runner_pos = 0;
	cpu->followed = 0;
	cpu->nested = 0;
	for (int i = 0; i < RUNNERS_MAX; i++)
		cpu->runners[i].tid = 0;
	return 0;
}

static __always_inline struct cpu_context *this_cpu(void)
{
	u32 key = 0;
	struct cpu_context *cpu = bpf_map_lookup_elem(&cpus, &key);

	if (cpu && cfg_knobs.windows && cpu->window != controls.window)
		cpu__renew(cpu);
	return cpu;
}

/*
 * Between windows most hooks are gone.  Those that stay know who is followed, and nothing of what anybody is at: who
 * runs on the CPU is then whoever did when the last window closed.
 */
static __always_inline bool at_rest(void)
{
	return cfg_knobs.windows && !controls.watching;
}

/* The task that runs on the CPU, as far as its switches were reported. */
static __always_inline struct runner *cpu__runner(struct cpu_context *cpu)
{
	return &cpu->runners[(cpu->runner_pos - 1) & (RUNNERS_MAX - 1)];
}

/* From now on. */
static __always_inline void cpu__runs(struct cpu_context *cpu, struct task_struct *task, u64 now)
{
	struct runner *runner = &cpu->runners[cpu->runner_pos++ & (RUNNERS_MAX - 1)];

	cpu->switch_cnt++;
	runner->since_ts = now;
	runner->pid = task->tgid;
	runner->tid = runner->as_tid = task->pid;
	__builtin_memcpy(runner->comm, task->comm, WL_COMM_LEN);
}

static __always_inline void count_loss(struct cpu_context *cpu, u32 class)
{
	__sync_fetch_and_add(&cpu->loss[class].lost, 1);
}

/*
 * First sight of a thread in a window.  Its lengths so far count on (only differences are ever looked at), but what it
 * was at is stale: the state is what the task says now, and its history begins here, after an entry that says that
 * nothing is known of the time before.
 */
static __noinline int thread__renew(struct thread *thread, struct task_struct *task)
{
	u32 state = WL_STATE_BLOCKED_OTHER, window;
	u64 now = bpf_ktime_get_ns();

	if (!thread || !task)
		return 0;
	/* Its own CPU and that of a waker may both be here. */
	window = thread->window;
	if (__sync_val_compare_and_swap(&thread->window, window, controls.window) != window)
		return 0;
	if (task_is_on_cpu(task))
		state = WL_STATE_RUNNING;
	else if (task_is_queued(task))
		state = WL_STATE_RUNQ_PREEMPT;
	thread->in_fault = 0;
	thread->run_state = WL_STATE_RUNNING;
	thread->nest_level = 0;
	thread->blocked = state == WL_STATE_BLOCKED_OTHER;
	thread->recording = 0;
	thread->current_recorded = 0;
	thread->current_sid = 0;
	thread->activity_ts = now;
	thread->wait_since_ts = 0;
	thread->wait.object = 0;
	thread->wait.owner_tid = 0;
	thread->wait.sysno = -1;
	thread->other_tid = 0;
	thread->segment_sid = 0;
	thread->datagram_sk = 0;
	thread->tid = thread->kernel_tid;
	thread->goroutine = 0;
	thread->left_ts = 0;
	thread->call_cnt = 0;
	thread->stack_ts = 0;
	thread->queued_cpu = 0;
	thread->blocked_cnt = 0;
	thread->hw_generation++;
	thread->history[thread->history_pos++ & (HISTORY_LEN - 1)] = WL_STATE_UNKNOWN;
	thread->history[thread->history_pos++ & (HISTORY_LEN - 1)] = now << STATE_BITS | state;
	thread->word = now << STATE_BITS | state;
	return 0;
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread && cfg_knobs.windows && thread->window != controls.window)
		thread__renew(thread, task);
	return thread;
}

#endif
