/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording under way: what it knows, by subject, and what the files of this room do to it.  Each of its structs is
 * changed by the file that the functions below name; the others read it.
 */
#ifndef WHYLATE_SESSION_RECORDING_H
#define WHYLATE_SESSION_RECORDING_H

#include "base/clock.h"
#include "base/log.h"
#include "base/privilege.h"
#include "capture/capture.h"
#include "model/interval_row.h"
#include "model/request_types.h"
#include "model/retention.h"
#include "model/summaries.h"
#include "model/thread_names.h"
#include "model/trace.h"
#include "model/window_plan.h"
#include "net/send/stream.h"
#include "probe/resolve.h"
#include "session/govern.h"
#include "session/journal.h"
#include "session/options.h"
#include "session/pace.h"
#include "session/pauses.h"
#include "session/stacks.h"
#include "shard/writer.h"
#include "target/data_names.h"
#include "target/go_runtime.h"
#include "target/resolve.h"

/* What keeps the hooks' cost under the budget, see governor.c. */
struct governor {
	bool of_windows;  /* their share of the time; otherwise the rate */
	uint64_t next_ts; /* when to look again */
	uint64_t cpu_ns;  /* as of the last look */
	struct govern govern;
	uint64_t load; /* of which spent_ns accounts for */
	double spent_ns;
	double over_share; /* of the target's CPU time: what they cost when windows began; 0: none did */
	double over_s;     /* and when, after the beginning */

	uint64_t rate_cost_ns;
	double rate_share;
	bool ungovernable;
	uint32_t rate_changes;
	double clock_share; /* of a CPU's time, what the ticks of our own clock take, 0: there is none */
};

/* Who is recorded. */
struct recorded_target {
	target_processes processes; /* the main process first, while it lives */
	VEC(int) pidfds;            /* of the processes that were named: the recording ends when all have exited */
	bool exited;
	int64_t cpu_offset_ns; /* CPU time of processes that are not of the target any more, or were not before */
	uint64_t cpu_seen_ns;
	uint64_t cpu_begin_ns, cpu_ns;
	char comm[16];
	target_listeners listeners;
	target_mappings mappings; /* of the main process */
	uint64_t mappings_ts;
	struct data_names *data_names;
};

/* A Go program among the target's processes. */
struct recorded_go {
	pid_t pid;
	struct go_runtime *go;
};

struct recorded_goroutines {
	VEC(struct recorded_go) processes;
	/* Why the requests of a Go program are those of threads; "": there is no such program. */
	char why[GO_WHY_SZ];
	pid_t why_pid;
};

/* The symbol list, and what it names in the program. */
struct recorded_symbols {
	probe_lines lines;
	struct probe_targets targets;
	bool marked; /* intervals are those of the program's own markers */
	bool silent_said;
	bool unsafe; /* what says what a request is can no longer be probed */
};

struct recorded_intervals {
	uint64_t received; /* records that came out of the rings */
	uint64_t kept;
	uint64_t passed_over; /* by retention */
	uint64_t impossible;  /* records that cannot be true */
	double represented;   /* intervals that the received ones stand for */
};

struct recorded_clock {
	uint64_t begin_ts, end_ts;
	uint64_t until_ts; /* the duration is over then */
	struct pauses pauses;
	uint64_t paused_rate; /* to go on with */
	uint64_t flushed_ts;
	uint64_t own_cpu_begin_ns; /* loading and attaching come before */
};

/* Hooks are attached in windows, by this plan; or may be, if they cost too much all the time. */
struct recorded_windows {
	bool on;
	struct window_plan plan;
	uint64_t read_ts; /* the rings were read, to the end */
};

/* Executions of statements whose preparation was not read so far, until all rings have been read. */
struct recorded_early {
	VEC(uint64_t) records; /* one after the other, each from a whole word on */
	bool is_handed;        /* they are final */
};

struct recorded_output {
	char *dir; /* where the shards go; of RECORDED_DIR_SZ bytes, the result's */
	bool made_dir;
	struct stream *stream;            /* NULL: not streamed */
	struct recorded_metrics *metrics; /* NULL: not exposed */
};

struct recording {
	const struct record_options *options;
	struct record_options own_options; /* those, once limits may change */
	struct recorded_target target;
	struct recorded_symbols symbols;
	struct recorded_goroutines go;
	struct program *program; /* NULL: nothing asks for its code */
	struct recorded_clock clock;
	struct recorded_output output;
	struct journal journal;

	struct capture *capture;
	struct capture_counts counts; /* as they were read last */
	struct recorded_windows windows;
	struct governor governor;
	struct pace *pace; /* NULL: the agent is no idle task */

	/* What records go into, see sinks.h. */
	struct recorded_intervals intervals;
	struct recorded_early early;
	struct retention *retention;
	struct summaries *summaries;
	struct thread_names *threads;
	struct request_types *types;    /* NULL: the first bytes of requests are not looked at */
	struct trace *trace;            /* NULL: counters mode */
	struct stacks *stacks;          /* NULL: user stacks are not sampled */
	uint32_t symbols_starts;        /* of whylate-symbols, whose pids are written */
	struct sampled_values *values;  /* NULL: variables are not read */
	struct recorded_probes *probes; /* NULL: nothing is probed */
	bool probes_lost;               /* the process that held them was killed */

	struct recorded_list *list;      /* the symbol list's probes; NULL: there is none */
	struct recording_budget *budget; /* of those; NULL: not looked at yet */
	struct recording_loads *loads;   /* what the target loads meanwhile; NULL: not looked at yet */
	struct trace_slots *trace_slots; /* NULL: not looked for */
	void *client;                    /* options->client's own; NULL: none */
	struct hot_paths *hot;           /* what stacks say of the program, the client's; NULL: it does not ask */
};

/*
 * windows.c: attaches and detaches as planned; no-ops where the hooks are attached all the time.  Init comes
 * before the capture is made, begin when it has started.  0 or -errno after one line.
 */
int recording_windows_init(struct recording *recording);
/* How the options keep hooks attached all the time, as an end of a sentence on what that costs; "": they do not. */
const char *recording_windows_hint(const struct recording *recording);
/* Has there been a time when no hooks were attached? */
bool recording_windows_rested(const struct recording *recording);
void recording_windows_begin(struct recording *recording);
int recording_windows_step(struct recording *recording);
/* In a pass of the main loop, which opens no window. */
int recording_windows_look(struct recording *recording);
/*
 * PACE_TIMED: a window is open, or about to be.  Its next step is to be made in time, and no record is read meanwhile,
 * as that would take a CPU from the requests that it observes, unless the rings cannot wait.
 */
enum pace_class recording_windows_pace(const struct recording *recording);
/* Milliseconds until the next step, at most timeout_ms. */
int recording_windows_timeout(const struct recording *recording, int timeout_ms);
/* Another rate from now on, or from the next window on. */
void recording_set_rate(struct recording *recording, double rate);
/*
 * governor.c: where the hooks cost more than what the budget leaves them, they are attached for a part of the
 * time; where that is not possible, fewer intervals are selected, as far as it helps.  Every now and then.
 */
void recording_govern_begin(struct recording *recording);
void recording_govern(struct recording *recording);
/* What was learnt about the cost under some limits says little of others. */
void recording_govern_anew(struct recording *recording);
/* May hooks stay attached for what is still open? */
bool recording_may_hold(const struct recording *recording);
int recording_govern_write_notes(struct recording *recording);

/* A budget of 100 % disables the governor. */
bool recording_has_budget(const struct recording *recording);

/* How many intervals the target finished: counted, or estimated from those in the windows. */
uint64_t recording_intervals_seen(const struct recording *recording);

/* Are requests on sockets its intervals? If not, the symbol list says what is. */
bool recording_of_sockets(const struct recording *recording);

/* How often stacks are sampled, for whoever wants it; 0: not at all. */
uint32_t recording_stacks_hz(const struct recording *recording);

/* summaries.c: each minute by type, of all intervals that ended.  0, -ENOMEM or the writer's error. */
int recording_summaries_begin(struct recording *recording);
/* Of one that is kept; row: of the table interval. */
int recording_summaries_kept(struct recording *recording, uint32_t type, const struct shard_row *row);
int recording_summaries_write(struct recording *recording, bool all);

/* The longest wait of each kind that a row of the table interval tells, by what it was for. */
struct recorded_wait {
	enum wl_category category;
	const char *what, *by; /* "": not known, nobody */
	double ns;
};

#define RECORDED_WAITS_MAX 4
size_t recording_waits_of(const struct shard_row *row, struct recorded_wait waits[RECORDED_WAITS_MAX]);

/* output.c: the directory's name, which no other recording may be in; the writer.  0 or -errno after one line. */
int recording_output_name(struct recording *recording);
int recording_output_open(struct recording *recording);
/* Nothing was recorded: leaves the directory as it was. */
void recording_output_discard(struct recording *recording);
/* Closes the writer, if it is open, and says what became of it all: err, or the writer's error. */
int recording_output_close(struct recording *recording, int err);

/* The name that the recording goes by. */
const char *recording_host(const struct recording *recording, char buf[SHARD_HOST_MAX + 1]);

/* own.c: the agent is a batch task, off the CPUs that the target is bound to, and an idle one while it records. */
void recording_step_back(void);
/* probes: there are, or may be, functions or markers to probe. */
struct privilege_uses recording_privilege_uses(const struct recording *recording, bool probes);
/* Where the options say so: what only attaching took is given up. */
void recording_confine(const struct recording *recording);
void recording_stay_off(const struct recording *recording);
void recording_pace_begin(struct recording *recording);
void recording_pace_end(struct recording *recording);
/* By which the report knows what requests waited for because of the agent; 0 or the writer's error. */
int recording_write_own_pids(struct recording *recording);
/* Writes them again where another process has begun since. */
int recording_own_pids_changed(struct recording *recording);

/* Has it been asked to stop? */
bool recording_is_stopped(void);

/* CPU time of this process so far. */
uint64_t own_cpu_ns(void);

/* A row of any table, of the recording that is `owner`: 0 or the writer's error. */
int recording_append(void *owner, enum shard_table_id table, const struct shard_row *row);
/* What the session, loss and module tables say; each 0 or the writer's error. */
int recording_write_session(struct recording *recording);
int recording_write_listeners(struct recording *recording);
int recording_write_loss(struct recording *recording);
int recording_write_counts(struct recording *recording);
int recording_write_limits(struct recording *recording);
/* settings.c */
int recording_write_settings(struct recording *recording);
/* What tracing cost so far, where that is known, and the target's CPU time. */
int recording_write_cost(struct recording *recording);
int recording_write_final(struct recording *recording);

/* names.c: a data_namer, whose owner is the recording. */
const char *recording_data_name(void *owner, uint32_t pid, uint64_t addr, char *buf, size_t sz);
/* records.c: takes one record; `owner` is the recording. */
int recording_on_record(void *owner, const struct wl_record_header *header);
/* All rings have been read: what waited for that is taken as it is now. */
int recording_hand_early(struct recording *recording);
/* capture__poll() with both. */
int recording_poll(struct recording *recording, int timeout_ms);
/* Tells the kernel side what to keep from now on. */
void recording_retain(struct recording *recording);

/* Which debug files the options name, for the target's code. */
struct program_opts recording_program_opts(const struct recording *recording);
/* Opens recording->program. 0 or -errno after a line that says why. */
int recording_open_program(struct recording *recording);

/* markers.c: takes the markers of whylate/annotate.h for intervals, where the program has them. 0 or -errno.
 */
int recording_find_markers(struct recording *recording);

/* trace.c: all of them do nothing in counters mode. */
int recording_trace_open(struct recording *recording);
/* Everything that was in the rings when they were read last has been handed over. */
int recording_trace_advance(struct recording *recording);
int recording_trace_finish(struct recording *recording);
void recording_trace_write_loss(struct recording *recording, uint64_t ts);
int recording_trace_write_counts(struct recording *recording);
void recording_trace_say(const struct recording *recording);

/*
 * silent.c: once, some seconds after the beginning or at the end, which functions of the symbol list were
 * never called.  0 or -ENOMEM.
 */
int recording_silent_say(struct recording *recording, bool at_end);

/*
 * loads.c: when the target, or a child that runs its program, has loaded what makes return probes unsafe,
 * they are let go, and functions are probed at their returns instead.  Every now and then; 0 or -errno.
 */
int recording_loads_watch(struct recording *recording);
int recording_loads_write_note(struct recording *recording);
void recording_loads_free(struct recording *recording);

/* sampling.c: reads which variables the target has, with --values. 0 or -errno after one line. */
int recording_values_open(struct recording *recording);
/* sampling.c: all of them do nothing without --stacks. */
int recording_stacks_start(struct recording *recording);
/* Everything that was in the rings when they were read last has been handed over. */
int recording_stacks_advance(struct recording *recording);
int recording_stacks_finish(struct recording *recording);
int recording_stacks_write_counts(struct recording *recording);
/* How code gets names that has none. */
int recording_stacks_write_note(struct recording *recording);
void recording_stacks_say(const struct recording *recording);

/* goroutines.c: which of the processes are Go programs, whose goroutines are followed. 0 or -ENOMEM after one line. */
int recording_goroutines_open(struct recording *recording);
/* Tells the capture of them, before it starts. 0 or -errno after one line. */
int recording_goroutines_begin(struct recording *recording);
bool recording_has_goroutines(const struct recording *recording);
/* What to call a goroutine that was seen; comm: WL_COMM_LEN bytes. */
void recording_goroutine_name(const struct recording *recording, const struct wl_task_record *record, char *comm);
int recording_goroutines_write_note(struct recording *recording);
void recording_goroutines_free(struct recording *recording);

/*
 * trace_slots.c: the thread contexts of the target's processes.  Find: of one that runs another program; watch: those
 * without one are looked at again, every now and then, once they have loaded something.  Each 0 or -ENOMEM.
 */
int recording_trace_slots_begin(struct recording *recording);
int recording_trace_slots_find(struct recording *recording, pid_t pid);
int recording_trace_slots_fork(struct recording *recording, pid_t parent, pid_t child);
int recording_trace_slots_watch(struct recording *recording);
void recording_trace_slots_exit(struct recording *recording, pid_t pid);
void recording_trace_slots_free(struct recording *recording);
/* CPU time of the target's processes while they were of the target: never less than before. */
uint64_t recording_cpu_ns(struct recording *recording);
/* Where the target listens by now.  0 or -errno. */
int recording_refresh_listeners(struct recording *recording);
/* With a cgroup: who has joined and who has left since.  0 or -errno. */
int recording_follow_moved(struct recording *recording);
/* The cgroup that the target is, NULL: it is none. */
const struct target_cgroup *recording_cgroup(const struct recording *recording);
/* Have all exited that were named, or is their cgroup gone? */
bool recording_target_gone(struct recording *recording);
/* Finds the target's processes. 0 or -errno after one line. */
int recording_members_open(struct recording *recording);
void recording_members_free(struct recording *recording);

/* Before the target may be gone: how much CPU time it used. */
void recording_target_cpu(struct recording *recording);
bool recording_over_limits(const struct recording *recording);
/* On stderr, at the end: counts, loss, cost. */
void recording_say_summary(struct recording *recording, const char *dir, const struct shard_writer_stats *stats);

/* client.c: 0 or -errno after one line; no client: nothing. */
int recording_client_open(struct recording *recording);
/* Does it attach probes, and does it keep the budget at the moment? */
bool recording_client_probes(const struct recording *recording);
bool recording_client_probing(const struct recording *recording);
/* A few times a second; no client: nothing.  0 or -errno after one line. */
int recording_client_step(struct recording *recording);

#endif
