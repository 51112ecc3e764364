// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the target's threads publish the trace that they work for.  A process without such a slot may load a library
 * that has one, so it is looked at again when it has more code than before.
 */
#include "session/recording.h"

#include "target/thread_context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reading the files of more processes would take too long: threads of the others have no trace ids. */
#define WATCHED_MAX 64
#define LOOK_NS     100000000ULL
/* Looks take at most one part in so many of the time. */
#define LOOK_SHARE 50
/* Of the processes, in turns. */
#define LOOKED_AT 8
/* A slot that cannot be used may be that of a library half loaded: it is read again, less and less often. */
#define AGAIN_NS     100000000ULL
#define AGAIN_MAX_NS 10000000000ULL

/* A process without a slot. */
struct slotless {
	pid_t pid;
	uint64_t code_kb;  /* of libraries, when it was looked at */
	uint64_t again_ts; /* when to look whatever code there is; UINT64_MAX: never */
	uint64_t again_ns;
};

struct trace_slots {
	VEC(struct slotless) processes;
	size_t turn;
	uint64_t look_ts; /* the next one */
};

void recording_trace_slots_free(struct recording *recording)
{
	if (recording->trace_slots)
		vec_free(&recording->trace_slots->processes);
	free(recording->trace_slots);
	recording->trace_slots = NULL;
}

static struct slotless *slotless_of(struct trace_slots *slots, pid_t pid)
{
	for (size_t i = 0; i < slots->processes.cnt; i++)
		if (slots->processes.items[i].pid == pid)
			return &slots->processes.items[i];
	return NULL;
}

static void forget(struct trace_slots *slots, pid_t pid)
{
	struct slotless *process = slotless_of(slots, pid);

	if (process)
		*process = slots->processes.items[--slots->processes.cnt];
}

/* 0 or -ENOMEM; beyond the limit nothing happens. */
static int watch(struct trace_slots *slots, const struct slotless *process)
{
	struct slotless *known = slotless_of(slots, process->pid);

	if (known)
		*known = *process;
	return known || slots->processes.cnt >= WATCHED_MAX ? 0 : vec_push(&slots->processes, *process);
}

static int search(pid_t pid, int64_t *slot)
{
	target_mappings mappings = {0};
	int err = target_mappings_read(pid, &mappings);

	if (!err)
		err = thread_context_slot(pid, &mappings, slot);
	target_mappings_free(&mappings);
	return err;
}

/* process: what was known of it, zero otherwise. */
static int look(struct recording *recording, struct slotless process, uint64_t now_ts)
{
	int64_t slot;
	int err;

	/* Before the search: what comes during it is seen by the next one. */
	if (target_lib_kb(process.pid, &process.code_kb))
		process.code_kb = 0;
	err = search(process.pid, &slot);
	capture__set_trace_slot(recording->capture, process.pid, err ? NULL : &slot);
	if (!err || err == -ESRCH) {
		forget(recording->trace_slots, process.pid);
		return 0;
	}
	process.again_ts = UINT64_MAX;
	if (err != -ENOENT) {
		log_debug("no trace ids of the threads of process %d: %s", process.pid, strerror(-err));
		process.again_ns = process.again_ns ? 2 * process.again_ns : AGAIN_NS;
		if (process.again_ns <= AGAIN_MAX_NS)
			process.again_ts = now_ts + process.again_ns;
	}
	return watch(recording->trace_slots, &process);
}

int recording_trace_slots_find(struct recording *recording, pid_t pid)
{
	if (!recording->options->types)
		return 0;
	if (!recording->trace_slots)
		recording->trace_slots = calloc(1, sizeof(*recording->trace_slots));
	if (!recording->trace_slots)
		return -ENOMEM;
	return look(recording, (struct slotless){.pid = pid}, monotonic_ns());
}

int recording_trace_slots_begin(struct recording *recording)
{
	int err = 0;

	for (size_t i = 0; !err && i < recording->target.processes.cnt && i < WATCHED_MAX; i++)
		err = recording_trace_slots_find(recording, recording->target.processes.items[i].pid);
	return err;
}

int recording_trace_slots_fork(struct recording *recording, pid_t parent, pid_t child)
{
	struct slotless *known = recording->trace_slots ? slotless_of(recording->trace_slots, parent) : NULL, process;

	if (!known) {
		capture__inherit_trace_slot(recording->capture, parent, child);
		return 0;
	}
	process = *known;
	process.pid = child;
	return watch(recording->trace_slots, &process);
}

void recording_trace_slots_exit(struct recording *recording, pid_t pid)
{
	if (recording->trace_slots)
		forget(recording->trace_slots, pid);
	capture__set_trace_slot(recording->capture, pid, NULL);
}

static bool is_due(const struct slotless *process, uint64_t now_ts)
{
	uint64_t kb;

	return now_ts >= process->again_ts || (!target_lib_kb(process->pid, &kb) && kb != process->code_kb);
}

int recording_trace_slots_watch(struct recording *recording)
{
	struct trace_slots *slots = recording->trace_slots;
	uint64_t begin_ts = monotonic_ns(), took_ns;
	int err = 0;

	if (!slots || !slots->processes.cnt || begin_ts < slots->look_ts)
		return 0;
	for (size_t i = 0; !err && i < LOOKED_AT && i < slots->processes.cnt; i++) {
		struct slotless process = slots->processes.items[slots->turn++ % slots->processes.cnt];

		if (!is_due(&process, begin_ts))
			continue;
		err = look(recording, process, begin_ts);
		/* Files are read for one process a look. */
		break;
	}
	took_ns = monotonic_ns() - begin_ts;
	slots->look_ts = begin_ts + (took_ns * LOOK_SHARE > LOOK_NS ? took_ns * LOOK_SHARE : LOOK_NS);
	return err;
}
