/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is probed in a recording: sets of probes that come and go, and the rows that say so. */
#ifndef WHYLATE_SESSION_PROBES_H
#define WHYLATE_SESSION_PROBES_H

#include "capture/probes.h"
#include "model/invocations.h"

struct recording;

#define RECORDED_UNKNOWN UINT32_MAX
/* Why probes are detached. */
#define RECORDED_ATTACHER_KILLED "whylate-attach was killed"

/* A probe and what the tables `symbol` and `probe` say of it. Nothing of it is kept. */
struct recorded_probe {
	struct probe probe;
	const char *module, *name;
	uint64_t addr;        /* in its file */
	uint64_t size;        /* bytes, 0: not known */
	uint32_t height;      /* in the call graph, RECORDED_UNKNOWN */
	uint32_t parent_func; /* the function as whose child it was opened, RECORDED_UNKNOWN: none */
};

struct recorded_set;

/* Before the capture starts; all of these return 0 or -errno after one line, and do nothing where nothing is probed. */
int recording_probes_open(struct recording *recording);
/*
 * How high the functions of the list stand in the call graph.  Before the capture is made: the graph beneath them takes
 * much memory for a short time, which the rings can have then.
 */
void recording_probes_learn(struct recording *recording);
/* Once it has started, before anything is attached. */
void recording_probes_begin(struct recording *recording);
/* What is to be attached for a target of the symbol list. */
struct probe_target;
void recording_probes_of_target(const struct recording *recording, const struct probe_target *target,
				struct recorded_probe *probe);
/* A set more; it is detached at the end if not before.  0 or -errno after one line. */
int session__attach(struct recording *recording, const struct recorded_probe *probes, size_t cnt, uint32_t round,
		    struct recorded_set **set);
/* With a reason for each probe; NULL: it will be attached again, which is not worth a row.  0 or the writer's error. */
int session__detach(struct recording *recording, struct recorded_set *set, const char *const *whys);
/* Hits of the set's probes so far, in their order. */
void session__hits(struct recording *recording, const struct recorded_set *set, struct probe_hits *hits);
/* It is not attached at all, for that reason. */
int recording_probes_forgo(struct recording *recording, const struct recorded_probe *probe, const char *why);
/* It was to stay when its set was detached, and could not be attached again: the row for that. */
int recording_probes_ended(struct recording *recording, const struct recorded_probe *probe, const char *why,
			   const struct probe_hits *hits, uint64_t ts);
/* Are functions or markers probed at all: of a symbol list, in rounds, or those that the program brings along? */
bool recording_probes_wanted(const struct recording *recording);

int recording_probes_advance(struct recording *recording);
/* Has the process that holds the probes been killed?  Said once: nothing is to be had from them any more. */
bool recording_probes_lost(struct recording *recording);
/* The capture has stopped and all records have been taken. */
int recording_probes_finish(struct recording *recording);
void recording_probes_write_loss(struct recording *recording, uint64_t ts);
int recording_probes_write_counts(struct recording *recording);
void recording_probes_say(const struct recording *recording);
void recording_probes_free(struct recording *recording);

#endif
