/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What acts on a recording while it runs: `diagnose` probes functions in rounds, or ends when its answer is certain.
 * The session calls the client, and the client acts by the session's verbs; neither sees the other's fields.  One
 * thread: the verbs are for what the session calls.  Those for probes are in session/probes.h.
 */
#ifndef WHYLATE_SESSION_CLIENT_H
#define WHYLATE_SESSION_CLIENT_H

#include "capture/call_rates.h"
#include "probe/hot_paths.h"
#include "probe/symbol_list.h"
#include "session/journal.h"
#include "session/options.h"
#include "session/probes.h"
#include "target/program.h"

/* All that return int: 0, or -errno after one line. */
struct session_client {
	const char *why_always; /* why hooks have to stay attached all the time; NULL: they need not */
	bool probes;            /* it attaches probes, and keeps their budget itself */
	uint32_t stacks_hz;     /* rate at which it wants user stacks sampled unless the options say more */
	/* Before the capture is made, after the symbol list was read.  free() is called in any case. */
	int (*open)(struct recording *recording, const void *options, void **client);
	int (*begin)(void *client); /* everything is attached */
	int (*step)(void *client);  /* a few times a second */
	/* With probes: return probes are no longer safe, as the program knows by now. */
	int (*distrust_returns)(void *client);
	bool (*is_probing)(const void *client); /* it keeps the budget itself at the moment */
	int (*end)(void *client);               /* the time is over, the target's probes are still attached */
	void (*free)(void *client);             /* NULL-safe */
};

const struct record_options *session__options(const struct recording *recording);
/* Where the shards go. */
const char *session__dir(const struct recording *recording);
struct journal *session__journal(struct recording *recording);
/* The target's, which is read where it has not been yet.  0 or -errno after one line. */
int session__program(struct recording *recording, struct program **program);

struct session_moment {
	uint64_t ts;
	uint64_t seen;   /* intervals so far */
	uint64_t cpu_ns; /* of the target */
};

struct session_moment session__now(struct recording *recording);

/* Until it resumes, nothing is selected, and the time does not count as recorded. */
void session__pause(struct recording *recording);
void session__resume(struct recording *recording);
/* How long all pauses were, the one under way included, and how many. */
uint64_t session__pauses(const struct recording *recording, uint32_t *cnt);
/* A recording that has a duration goes on for so much longer; whatever it has, it ends at that time. */
void session__extend(struct recording *recording, uint64_t ns);
void session__end_at(struct recording *recording, uint64_t ts);
/* What the client does next may wait for an idle CPU for that time, as long as the rings have room. */
void session__take_time(struct recording *recording, uint64_t ns);

/* Before the capture is made: what stacks say of the program is added to `hot`, the client's. */
void session__learn(struct recording *recording, struct hot_paths *hot);
/* No more stacks are sampled: the client has learnt what it wanted. */
void session__stop_stacks(struct recording *recording);

/* A target of the symbol list. */
struct session_listed {
	enum probe_role role;
	bool has_func; /* it is a function, not a marker */
	uint32_t func;
};

/* False: there are no more of them. */
bool session__listed(const struct recording *recording, size_t idx, struct session_listed *listed);
/* As call_rates__count(), of the target's threads, in at most so many seconds. */
int session__count_calls(struct recording *recording, uint64_t seconds_max, const uint64_t *addrs, size_t cnt,
			 struct call_rate *rates);
/* Can hundreds of functions be probed at once? */
bool session__probes_many(const struct recording *recording);

#endif
