/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One probe as it is to be attached: where (plan.h, usdt.h) and what for (symbol_list.h); and what the kernel side is
 * told of it (bpf/probe_spec.h).
 */
#ifndef WHYLATE_PROBE_PROBE_H
#define WHYLATE_PROBE_PROBE_H

#include "bpf/probe_spec.h"
#include "probe/plan.h"
#include "probe/symbol_list.h"
#include "probe/usdt.h"

/*
 * A function with several roles has several probes with one func; a marker may have several places, a probe each.
 * A role that needs the end of a call (interval, acquire and dequeue of a function, whatever reads `retval`) is refused
 * where plan.exit is PLAN_EXIT_NONE; of role `function` the entries are counted there and no invocation is recorded.
 */
struct probe {
	uint32_t func; /* the function's number in the recording: what records and the table `symbol` say */
	enum probe_role role;
	uint16_t line;           /* of the symbol list: which type of interval begins here */
	bool watched;            /* of enqueue and dequeue: only the values are wanted */
	bool want_call_addr;     /* of invocations: tells call sites apart; a read of the stack per recorded call */
	const char *file;        /* as this process can open it */
	const struct plan *plan; /* NULL: a marker */
	const struct usdt_site *usdt; /* NULL: a function */
	enum plan_cost usdt_cost;     /* of the marker's site */
	struct probe_expr key, object, task, queue, type;
};

/* Is its exit to be attached, too? */
bool probe_wants_exit(const struct probe *probe);

/*
 * What the kernel side is told.  0, or -EINVAL and -ENOTSUP with *why (static text): an argument that the marker does
 * not have or that cannot be read, an exit that cannot be had.
 */
int probe_spec_make(const struct probe *probe, struct probe_spec *spec, const char **why);
/*
 * A function that is timed and has another role as well is hit once for both: the other role's spec times it, too.
 * False if it cannot (it has no exit, or is a marker).
 */
bool probe_spec_time(const struct probe *probe, struct probe_spec *spec, bool want_call_addr);

#endif
