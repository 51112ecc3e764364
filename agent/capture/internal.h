/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a capture, for the files of this room. */
#ifndef WHYLATE_CAPTURE_INTERNAL_H
#define WHYLATE_CAPTURE_INTERNAL_H

#include "base/vec.h"
#include "capture/capture.h"
#include "capture/hwcounters.h"
#include "model/ring.h"

#include <bpf/libbpf.h>

struct whylate_bpf;
struct controls;

/* A run of a program costs more while a window is open than between two; without windows, one is always open. */
enum cost_phase { COST_OPEN, COST_CLOSED, COST_PHASE_CNT };

struct program_cost {
	struct bpf_program *program;
	enum hook_feature feature;                                /* HOOK_FEATURE_CNT: of no hook */
	uint64_t run_ns[COST_PHASE_CNT], run_cnt[COST_PHASE_CNT]; /* measured */
	uint64_t start_ns, start_cnt;                             /* at the beginning of the measurement under way */
	double per_s;                                             /* runs while a window was open, the last time */
};

struct capture_links {
	VEC(struct bpf_link *) links;
	VEC(int) event_fds; /* software events, owned by their links */
};

/* Hooks of a feature that stay attached between windows, unless that costs more than to attach them anew. */
struct hook_stay {
	struct capture_links links;
	uint64_t attach_ns; /* CPU time that attaching them took, the last time */
};

struct capture {
	struct capture_opts opts;
	struct whylate_bpf *skel; /* load.c, windows.c and capture.c look inside */
	struct bpf_object *object;
	struct controls *controls; /* mapped */
	struct hook_survey survey;
	uint32_t cpu_cnt;

	struct record_rings *record_rings;
	struct word_rings *word_rings;
	struct open_set *open_table; /* mapped */
	capture_handler handle;      /* of the poll under way */
	void *owner;
	uint64_t handled;
	uint64_t polled_ts;
	struct wl_loss_count *loss_per_cpu;
	bool stopped;

	struct capture_links always, in_windows;
	struct hook_stay stays[HOOK_FEATURE_CNT];
	uint64_t switching_ns;                 /* CPU time of attaching for windows and detaching after them */
	struct capture_stacks stacks;          /* hz 0: none are sampled */
	struct stack_controls *stack_controls; /* mapped */
	uint64_t moves_ts;   /* with a cgroup: when to look who has joined it, where the kernel does not tell */
	uint32_t moves_seen; /* and as of the last look, where it does */
	int known_stacks_fd, pythons_fd, trace_slots_fd;
	uint64_t jitter_seed;
	uint64_t rate;
	uint64_t window_open_ns; /* when the window under way was opened, 0: none is */
	bool endless;            /* it has no end that is known yet */
	uint64_t windows_ns;     /* time in windows that are closed */
	uint64_t window_cnt;
	uint64_t cut_cnt;
	struct capture_censored censored;
	struct probes *probes;         /* NULL: opts.probes is not set */
	struct goroutines *goroutines; /* NULL: opts.goroutines is not set */

	struct hwcounters *hw;

	VEC(struct program_cost) costs;
	VEC(struct capture_cost) cost_report;
	int stats_fd;                         /* BPF_STATS are on while it is open, -1: off */
	uint64_t measure_begin_ns;            /* of the measurement under way, or of the pause */
	uint64_t measured_ns[COST_PHASE_CNT]; /* time under measurement */
	uint64_t started_ns, elapsed_ns;      /* elapsed: in all, once it has stopped */
	uint64_t measured_load, measure_load; /* capture__load() in COST_OPEN under measurement; when that began */
	double way_ns, rest_ns;               /* see way.c */
};

static inline struct hook_purpose capture_purpose(const struct capture *capture)
{
	return (struct hook_purpose){
		.sockets = capture->opts.sockets,
		.trace = capture->opts.trace,
		.probes = capture->opts.probes,
		.stacks = capture->opts.stacks,
		.goroutines = capture->opts.goroutines,
	};
}

/*
 * attach.c: every hook of the chosen tiers, or only those that stay attached between windows; 0 or -errno after one
 * line.
 */
int capture__attach(struct capture *capture);
/* Once they are: the target's threads are followed from now on, and known to be at what they are at. */
int capture__adopt_threads(struct capture *capture);
void capture__detach(struct capture *capture);
/* Of an event, one on every CPU that is there.  0 or -errno; what was kept until then stays. */
int capture__attach_hook(struct capture *capture, const struct hook *hook, struct capture_links *to);
/* Detached, the latest first. */
void capture_links__drop(struct capture_links *links);
/* Their software events run programs, or not. */
void capture_links__switch(const struct capture_links *links, bool on);
void capture_links__free(struct capture_links *links);
/* The hooks of a window. */
int capture__attach_window(struct capture *capture);
void capture__detach_window(struct capture *capture);
/* Only those of the scheduler, as those of a window. */
int capture__attach_scheduler(struct capture *capture);

/* stacks.c: a window opens or closes. 0 or -errno. */
int capture__stacks_window(struct capture *capture, bool open);

/* probes.c */
/* Starts the attaching process: before the programs are loaded, so that it has nothing of them. NULL and errno. */
struct probes *probes__new(struct capture *capture);
/* The maps probe_specs and probe_hits. */
void probes__set_tables(struct probes *probes, int specs_fd, int hits_fd);
void probes__free(struct probes *probes);
/* A process that is followed from now on, and has been there since born_ts, gets the probes of all sets. 0 or -errno.
 */
int probes__add_process(struct capture *capture, pid_t pid, uint64_t born_ts);
void probes__drop_process(struct capture *capture, pid_t pid, bool exited);
void probes__detach_all(struct capture *capture);
/* Now and then: does somebody who is not of the target come by its probes? */
void probes__watch(struct capture *capture);

/* record_rings.c: makes a ring of sz bytes (a power of two) for each CPU and puts it into the map.  NULL and errno. */
struct record_rings *record_rings__new(int outer_fd, uint32_t sz, uint32_t cpu_cnt);
void record_rings__free(struct record_rings *rings); /* NULL-safe */
/* Until the kernel side wakes us, or that many milliseconds.  0, or -errno (-EINTR). */
int record_rings__wait(struct record_rings *rings, int timeout_ms);
/* Hands over what there is and makes room.  0, -EBADMSG, or the negative value that `handle` returned. */
int record_rings__read(struct record_rings *rings, ring_handler handle, void *owner);
/* The share of the fullest one that holds records; any thread. */
double record_rings__backlog(const struct record_rings *rings);
/* What such rings take of this process's memory. */
size_t record_rings__bytes(uint32_t sz, uint32_t cpu_cnt);

/* open_table.c: NULL with errno set. */
struct open_set *open_table__map(int map_fd);
void open_table__unmap(struct open_set *table); /* NULL-safe */
/* The first place from *place on that an open interval has; false: none is. */
bool open_table__next(const struct open_set *table, uint32_t *place);
void open_table__drop(struct open_set *table, uint32_t place);

/* word_rings.c: a ring is about that long; mask is that of its words. */
uint64_t word_rings_mask(uint32_t wanted_sz);
/* Before loading. 0 or -errno. */
int word_rings_size(struct bpf_map *map, uint64_t mask, uint32_t cpu_cnt);
/* NULL and errno. */
struct word_rings *word_rings__new(int map_fd, uint64_t mask, uint32_t cpu_cnt);
void word_rings__free(struct word_rings *rings); /* NULL-safe */
/* Hands over what there is and makes room. 0, -EBADMSG, or what `handle` returned; *handled counts on. */
int word_rings__read(struct word_rings *rings, capture_handler handle, void *owner, uint64_t *handled);
/* The share of the fullest one that holds words; any thread. */
double word_rings__backlog(const struct word_rings *rings);
/* Adds how many records of each class that CPU has written into its words to loss[WL_LOSS_CNT]. */
void word_rings__add_emitted(const struct word_rings *rings, uint32_t cpu, struct wl_loss_count *loss);

/* way.c: measures way_ns and rest_ns; nothing is attached yet. */
void capture__measure_way(struct capture *capture);

/* cost.c */
int capture__cost_init(struct capture *capture);
void capture__cost_free(struct capture *capture);
/* A window begins, which is measured or not; it ends. */
void capture__cost_window(struct capture *capture, bool measured);
void capture__cost_window_end(struct capture *capture);
/* Of all programs together, while BPF_STATS were on. */
void capture__runs(struct capture *capture, uint64_t *run_ns, uint64_t *run_cnt);
/* Runs of a feature's programs while a window is open, as of the last one that was measured; 0: not measured. */
double capture__runs_per_s(const struct capture *capture, enum hook_feature feature);
/* Whether a feature's hooks cost more if they stay between windows than if they are attached anew for each. */
bool capture__leaves(const struct capture *capture, enum hook_feature feature);
/* Nothing is measured any more. */
void capture__cost_stop(struct capture *capture);
/* Runs that the kernel skipped because the program was running on that CPU already. */
uint64_t capture__missed_runs(struct capture *capture);

/*
 * goroutines.c: with opts.goroutines, starts the process that attaches, before the programs are loaded; clears the
 * option where the kernel bears no probes.  0 or -errno after one line.
 */
int goroutines__open(struct capture *capture);
/* Without them their tables take no memory. 0 or -errno. */
int goroutines__shrink(struct bpf_map *goroutines, struct bpf_map *layouts);
void goroutines__set_table(struct goroutines *goroutines, int layouts_fd);
void goroutines__free(struct goroutines *goroutines); /* NULL-safe */
/* With the hooks of a window, or for good.  0 or -errno after one line; no-ops without goroutines. */
int goroutines__attach(struct capture *capture);
void goroutines__detach(struct capture *capture);

#endif
