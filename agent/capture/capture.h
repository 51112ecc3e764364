/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only room that includes libbpf: loads the programs, attaches them to one target, delivers its records in order of
 * arrival per CPU, knows what was lost and what it all cost.  One thread only.
 */
#ifndef WHYLATE_CAPTURE_CAPTURE_H
#define WHYLATE_CAPTURE_CAPTURE_H

#include <whylate/record.h>

#include "bpf/python_layout.h"
#include "capture/hooks.h"
#include "target/cgroup.h"
#include "target/target.h"

#define CAPTURE_RATE_ALL (1ULL << 32)

struct capture_opts {
	const target_processes *processes;  /* the target, itself first; of all are the network namespaces */
	const struct target_cgroup *cgroup; /* whoever is in it is the target; NULL: the processes and their children */
	const target_listeners *listeners;  /* for socket requests */
	bool sockets;                       /* requests on sockets are intervals */
	bool first_bytes;                   /* … and records of them have the bytes that tell their types */
	bool probes;                        /* functions are probed, see probes.h */
	bool goroutines;                    /* of Go programs, see goroutines.h */
	bool children;                      /* follow them */
	bool trace;                         /* segments, wake-ups, hand-offs too */
	uint32_t outside_max;               /* trace: so many threads outside the target may be followed */
	uint64_t rate;                      /* selection: of 2^32; not in windows */
	bool stacks;                        /* capture__sample_stacks() may be called */
	uint32_t values;                    /* capture__plan_values() may be: of so many frames, the innermost first */
	bool windows;                       /* attach only in windows: see capture__window_open() */
	bool watch_first;                   /* … of which the first is open from the start, without end */
	uint32_t ring_sz;                   /* bytes per CPU; rounded up to a power of two of whole pages */
	bool hw;                            /* hardware counters, if there are any */
	bool hw_software;                   /* software events in their place */
	const char *btf_path;               /* types of the kernel, in place of its own BTF; NULL: its own */
	uint32_t force_tier[HOOK_FEATURE_CNT]; /* for tests: 0: the best */
};

#define CAPTURE_HELD_CLASSES 64

struct capture_counts {
	uint64_t seen; /* intervals finished in the target */
	uint64_t selected;
	uint64_t abandoned;
	uint64_t asks, asks_unsure;
	uint64_t unreadable; /* hits of probes whose expression could not be read */
	/* Of the replies of selected intervals over TCP: bytes that stayed in the socket after send(), or were lost. */
	uint64_t replies, held_by_window, resent;
	struct capture_held {
		uint64_t ns; /* about that long */
		uint64_t cnt;
	} held[CAPTURE_HELD_CLASSES];
	struct wl_loss_count loss[WL_LOSS_CNT];
};

/* What one hook has cost so far, scaled up from the time in which it was measured. */
struct capture_cost {
	const char *program;
	uint64_t run_cnt;
	uint64_t run_ns;
};

struct capture;

/* NULL and errno, after one line that says what is wrong. */
struct capture *capture__new(const struct capture_opts *opts);
void capture__free(struct capture *capture);

/* Attaches, follows the target's threads, selects nothing yet. 0 or -errno after one line. */
int capture__start(struct capture *capture);
/* With a cgroup: follows threads that have joined it, and notes those that have left.  1: there were any; 0; -errno. */
int capture__follow_moved(struct capture *capture);
/*
 * Everything sits that was to be attached: intervals that arrive from now on are selected at the rate of the options.
 * What arrived before would lack what was attached after it.  With opts.windows, nothing: capture__window_select() does
 * it.
 */
void capture__select(struct capture *capture);
/* Detaches; what is in the rings is still to be had by capture__poll(). */
void capture__stop(struct capture *capture);

/*
 * Waits until a ring has a backlog or the time is over, then hands over everything there is.  `handle` returns 0 or
 * -errno, which ends the call.  Number of records, or -errno (-EINTR on a signal).
 */
typedef int (*capture_handler)(void *owner, const struct wl_record_header *record);
int capture__poll(struct capture *capture, int timeout_ms, capture_handler handle, void *owner);
/* Everything that was sent until this moment has been handed over by the last poll. */
uint64_t capture__polled_ts(const struct capture *capture);
/* The fullest ring, 0…1; any thread. */
double capture__backlog(const struct capture *capture);
/* What the rings take of the agent's memory. */
size_t capture__ring_bytes(const struct capture *capture);

/* A process of the target that appeared at that time: what is probed is probed there too. 0 or -errno. */
int capture__adopt_process(struct capture *capture, pid_t pid, uint64_t born_ts);
/* Its first thread has ended: if it was the last one, the process's probes are let go. */
void capture__drop_process(struct capture *capture, pid_t pid, bool exited);

void capture__set_rate(struct capture *capture, uint64_t rate);
uint64_t capture__rate(const struct capture *capture);
/*
 * Intervals of at least late_ns are kept from now on, others with that chance, of 2^32.  Whoever is not kept leaves a
 * WL_RECORD_BRIEF.  At first every one is kept.
 */
void capture__retain(struct capture *capture, uint64_t late_ns, uint64_t chance);

/*
 * With opts.windows only threads and processes are followed all the time.  Every other hook is attached by
 * capture__window_open(), selects nothing until capture__window_select(), nothing more after capture__window_drain(),
 * and is detached by capture__window_close(), at best once capture__window_is_drained(): selected intervals that are
 * still open then are counted as loss of class `cut`.  Attaching and detaching take some milliseconds.  What an endless
 * one costs is measured now and then, as without windows.
 */
int capture__window_open(struct capture *capture, bool endless);
/* rate: of the intervals that arrive until end_ts (0: no end); stated: what their records say, both of 2^32. */
void capture__window_select(struct capture *capture, uint64_t rate, uint64_t stated, uint64_t begin_ts,
			    uint64_t end_ts);
void capture__window_drain(struct capture *capture);
bool capture__window_is_drained(struct capture *capture);
void capture__window_close(struct capture *capture);

/*
 * Selected intervals that were still open when their hooks were detached, between windows or at the end of the
 * recording: how many, what they stand for, and the age of the oldest one that had been picked up.
 */
struct capture_censored {
	uint64_t cnt;
	double weight;
	uint64_t longest_ns;
};
void capture__censored(const struct capture *capture, struct capture_censored *censored);

/*
 * Samples of stacks, WL_RECORD_STACK and WL_RECORD_STACK_WAIT, while this is on: at the ticks of two clocks on every
 * CPU, and when a followed thread gives up the CPU to wait.  Takes opts.stacks; what is on goes on with the new
 * options. 0 or -errno.
 */
#define CAPTURE_STACKS_HZ_MAX 10000
struct capture_stacks {
	uint32_t hz;      /* of our clock, per CPU; on average at most as many stacks of waits are copied */
	uint32_t max_sz;  /* bytes of a stack, 0: WL_STACK_SZ_MAX */
	bool kernel_tick; /* the kernel's own tick is sampled, too, where it can be told from other timers */
	bool waits;       /* when it gives up the CPU, too */
	bool always;      /* of the target's threads whatever they are at, not only what selected intervals need */
};
int capture__sample_stacks(struct capture *capture, const struct capture_stacks *stacks);
void capture__stop_stacks(struct capture *capture);
/* What a tick of our clock takes of the CPU that it comes on, before any stack is copied; 0: it cannot be measured. */
uint64_t capture__stack_tick_cost_ns(struct capture *capture);
/* The period of the kernel's tick, if it is sampled; 0: it is not.  It beats with the work: no more of it. */
uint64_t capture__stacks_kernel_tick_ns(const struct capture *capture);
void capture__stacks_drop_kernel_tick(struct capture *capture);
/* A thread of the target spins: waits of its other threads are recorded from now on. */
void capture__stacks_spin(struct capture *capture);
/* Now and then: another period of our clock, around the same mean. */
void capture__stacks_jitter(struct capture *capture);
/* Waits with that key have more than one stack: from now on each is copied.  Or it is not known: it is copied again. */
void capture__stack_doubt(struct capture *capture, uint64_t key, bool is_ambiguous);
/*
 * Stacks of the process have the frames of its Python code from now on, WL_RECORD_PYTHON; NULL: no longer.  When a
 * process runs another program or ends, it must be said.
 */
void capture__set_python(struct capture *capture, pid_t pid, const struct python_layout *layout);
/* Where the process's threads publish their trace (target/thread_context.h); NULL: nowhere, as after it has ended. */
void capture__set_trace_slot(struct capture *capture, pid_t pid, const int64_t *slot);
/* A process has forked: it has the slot of its parent, if that has one. */
void capture__inherit_trace_slot(struct capture *capture, pid_t parent, pid_t child);

/*
 * Memory that is read at ticks, WL_RECORD_VALUES: what is read where, and where the plan's modules are in a process
 * (NULL: it is gone, or has another program).  The arrays may be empty; the ranges count reads from `first_read` on.
 * 0 or -errno.
 */
struct value_range;
struct value_read;
struct value_global;
struct value_image;
struct value_step_key;
struct value_step;
int capture__plan_values(struct capture *capture, const struct value_range *ranges, size_t range_cnt,
			 const struct value_read *reads, size_t read_cnt, const struct value_global *globals,
			 size_t global_cnt, uint32_t first_read);
int capture__place_values(struct capture *capture, pid_t pid, const struct value_image *image);
/* How ticks get from that frame to its caller.  0 or -errno. */
int capture__step_values(struct capture *capture, const struct value_step_key *key, const struct value_step *step);

/* Where the target listens by now: the listeners of the options, in their places, and further ones. 0 or -errno. */
int capture__set_listeners(struct capture *capture, const target_processes *processes,
			   const target_listeners *listeners);
void capture__counts(struct capture *capture, struct capture_counts *counts);
/* Loss per CPU: cpu_cnt * WL_LOSS_CNT of them; freed by the capture. */
const struct wl_loss_count *capture__loss_per_cpu(struct capture *capture, uint32_t *cpu_cnt);

/* The process that attaches probes, 0: there is none. */
pid_t capture__attacher_pid(const struct capture *capture);

const struct hook_survey *capture__survey(const struct capture *capture);
/* Are hardware counters being read? */
bool capture__has_hw(const struct capture *capture);
/* enum shard_hwcounter index for a slot of the epoch, -1 for none. */
/* Sets of hardware counters that take turns, 0: none; *epoch_cnt: turns so far, the one under way too. */
uint32_t capture__hw_rotations(const struct capture *capture, uint32_t *epoch_cnt);
int capture__hw_counter(const struct capture *capture, uint32_t epoch, uint32_t slot);
/* Moves on to the next rotation of hardware counters; a no-op when there is but one. */
int capture__rotate_hw(struct capture *capture);

/* Cost accounting by BPF_STATS, on for a tenth of the time: call it now and then. */
void capture__measure_cost(struct capture *capture);
/* Per program, freed by the capture; total in *total_ns. */
const struct capture_cost *capture__cost(struct capture *capture, size_t *cnt, uint64_t *total_ns);
/*
 * What all programs but those of probes took, in the time in which that was measured: with the hooks of a window
 * attached (without opts.windows, always), and between windows.  Both only grow.
 */
struct capture_hooks_cost {
	uint64_t open_ns, open_measured_ns;
	uint64_t closed_ns, closed_measured_ns;
	uint64_t open_runs; /* of programs, in that time */
	uint64_t open_load; /* capture__load() in that time */
};
void capture__hooks_cost(struct capture *capture, struct capture_hooks_cost *cost);
/*
 * How much the hooks have had to do so far: requests and context switches, counted while they are attached.  It costs
 * nothing to count, so it tells at any moment what BPF_STATS tell for a part of the time.
 */
uint64_t capture__load(struct capture *capture);
/*
 * CPU time that attaching hooks for windows and detaching them took so far.  The kernel's code is patched meanwhile,
 * for which the other CPUs are interrupted and waited for: it is about what it takes of each of them.
 */
uint64_t capture__switching_ns(const struct capture *capture);
/* What a run of a program costs beyond its account: the way from the tracepoint to it; measured at start, ns. */
double capture__way_ns(const struct capture *capture);
/* Is it the program of a probe? */
bool capture__is_of_probe(const char *program);
/* After capture__cost(): was anything measured? It takes CAP_SYS_ADMIN. */
bool capture__cost_known(const struct capture *capture);

#endif
