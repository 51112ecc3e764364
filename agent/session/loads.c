// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Return probes were planned for the code that was there.  A library that comes later may switch stacks, have signals
 * handled on others, or cancel threads that have something to clean up: then the kernel, or the unwinder, loses the way
 * back of calls that have return probes, and the target dies.
 *
 * All of them go then, also those of functions beneath which nothing of that kind can happen: when one is met on
 * another stack, the kernel drops those that seem to lie beyond it, of calls that began before.  With none left to be
 * met, calls that are under way return as they should.
 */
#include "base/log.h"
#include "session/client.h"
#include "session/list.h"
#include "session/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_NS 100000000ULL
/* In which nothing but the amount of code is looked at, where that stays the same. */
#define WHOLE_NS 10000000000ULL
/* Looks take at most one part in so many of the time. */
#define LOOK_SHARE 50
/* Children at a time, in turns. */
#define CHILDREN 8
/* The kernel waits for whoever is in a probe. */
#define PATIENCE_NS 1000000000ULL
#define NAMED_MAX   3

struct process_libs {
	pid_t pid;
	uint64_t kb;
};

struct recording_loads {
	uint64_t look_ts, whole_ts; /* the next ones */
	int program_fd;
	uint64_t kb; /* of the target itself */
	VEC(struct process_libs) children;
	size_t turn;
	uint8_t hazards; /* that functions were planned for */
	bool idle;       /* there are no return probes any more */
	char note[1024];
};

static int open_loads(struct recording *recording)
{
	struct recording_loads *loads = recording->loads = calloc(1, sizeof(*loads));
	char path[64];

	if (!loads)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/exe", recording->options->pid);
	loads->program_fd = open(path, O_PATH | O_CLOEXEC);
	/* Nothing has been looked for yet: that is what it was when functions were planned. */
	loads->hazards = program__hazards(recording->program);
	return 0;
}

void recording_loads_free(struct recording *recording)
{
	if (!recording->loads)
		return;
	if (recording->loads->program_fd >= 0)
		close(recording->loads->program_fd);
	vec_free(&recording->loads->children);
	free(recording->loads);
	recording->loads = NULL;
}

/* --- has anything come? ------------------------------------------------------------------------------------------- */

/* A child begins with what its parent has. */
static int libs_of(struct recording_loads *loads, pid_t pid, struct process_libs **libs)
{
	for (size_t i = 0; i < loads->children.cnt; i++) {
		*libs = &loads->children.items[i];
		if ((*libs)->pid == pid)
			return 0;
	}
	if (vec_push(&loads->children, ((struct process_libs){pid, loads->kb})))
		return -ENOMEM;
	*libs = &loads->children.items[loads->children.cnt - 1];
	return 0;
}

static int look_at_child(struct recording *recording, pid_t pid)
{
	struct recording_loads *loads = recording->loads;
	struct process_libs *libs;
	uint64_t kb;
	int err = libs_of(loads, pid, &libs);

	if (err || target_lib_kb(pid, &kb) || kb == libs->kb)
		return err;
	libs->kb = kb;
	/* What a child has become is nobody's who has the target's probes. */
	if (!target_runs(pid, loads->program_fd))
		return 0;
	err = program__learn_modules(recording->program, pid);
	return err == -ENOMEM ? err : 0;
}

static int look_at_children(struct recording *recording)
{
	struct recording_loads *loads = recording->loads;
	size_t cnt = recording->target.processes.cnt ? recording->target.processes.cnt - 1 : 0;
	int err = 0;

	/* Most of them have ended. */
	if (loads->children.cnt > 2 * cnt + CHILDREN)
		loads->children.cnt = 0;
	for (size_t i = 0; i < cnt && i < CHILDREN && !err; i++)
		err = look_at_child(recording, recording->target.processes.items[1 + loads->turn++ % cnt].pid);
	return err;
}

static int look(struct recording *recording, uint64_t now)
{
	struct recording_loads *loads = recording->loads;
	uint64_t kb;

	if (!target_lib_kb(recording->options->pid, &kb) && (kb != loads->kb || now >= loads->whole_ts)) {
		int changes = program__refresh(recording->program);

		if (changes == -ENOMEM)
			return changes;
		loads->kb = kb;
		loads->whole_ts = now + WHOLE_NS;
	}
	return look_at_children(recording);
}

/* --- what then? --------------------------------------------------------------------------------------------------- */

static const char *why_of(uint8_t hazards)
{
	if (hazards & HAZARD_SWITCHES)
		return "stacks are switched";
	return hazards & HAZARD_SIGNALS ? "signals are handled on stacks of their own"
					: "threads that are cancelled clean up frame by frame";
}

/* Of modules from this one on. */
static void name_new(struct program *program, uint32_t first, char *names, size_t sz)
{
	uint32_t cnt = program__module_cnt(program);
	size_t len = 0;

	snprintf(names, sz, "a library");
	for (uint32_t i = first; i < cnt && i < first + NAMED_MAX && len < sz; i++)
		len += (size_t)snprintf(names + len, sz - len, "%s%.80s", i > first ? ", " : "",
					program__module(program, i)->name);
	if (cnt > first + NAMED_MAX && len < sz)
		snprintf(names + len, sz - len, " and %u more", cnt - first - NAMED_MAX);
}

static int let_returns_go(struct recording *recording, uint8_t appeared, uint32_t first_new)
{
	struct recording_loads *loads = recording->loads;
	struct list_replanned replanned = {0};
	char names[320], gone[160] = "";
	size_t closing;
	int err;

	program__distrust_returns(recording->program);
	err = recording_list_replan(recording, &replanned);
	if (!err)
		err = recording_client_probes(recording)
			      ? recording->options->client->distrust_returns(recording->client)
			      : 0;
	if (err)
		return err;
	capture__set_stack_switching(recording->capture, program__switches_stacks(recording->program));
	program__forget_tables(recording->program);
	malloc_trim(0);
	closing = capture__detaching(recording->capture, PATIENCE_NS);
	name_new(recording->program, first_new, names, sizeof(names));
	if (replanned.gone_cnt)
		snprintf(gone, sizeof(gone), ", and %zu no longer probed (%.80s%s)", replanned.gone_cnt, replanned.gone,
			 replanned.gone_cnt > 1 ? ", …" : "");
	snprintf(loads->note, sizeof(loads->note),
		 "with %s, which was loaded %.1f s after the beginning or earlier, %s: return probes are not safe any "
		 "more, and functions are probed at each of their returns instead%s%s",
		 names, (double)(monotonic_ns() - recording->clock.begin_ts) / 1e9, why_of(appeared), gone,
		 replanned.is_broken ? "; without it there are no requests, and the recording ends" : "");
	recording->symbols.unsafe = replanned.is_broken;
	log_progress_end();
	log_warn("%s%s", loads->note, closing ? "; the kernel has not taken all of them back yet" : "");
	return 0;
}

int recording_loads_watch(struct recording *recording)
{
	uint64_t begin_ts = monotonic_ns(), took_ns;
	struct recording_loads *loads;
	uint32_t first_new;
	uint8_t appeared;
	int err;

	if (!recording->program || !recording->probes || recording->probes_lost)
		return 0;
	err = recording->loads ? 0 : open_loads(recording);
	loads = recording->loads;
	if (err || loads->idle || begin_ts < loads->look_ts)
		return err;
	loads->idle = !recording_client_probes(recording) && !recording_list_has_returns(recording);
	if (loads->idle)
		return 0;
	first_new = program__module_cnt(recording->program);
	err = look(recording, begin_ts);
	if (err)
		return err;
	appeared = program__hazards(recording->program) & ~loads->hazards;
	if (appeared) {
		loads->idle = true;
		return let_returns_go(recording, appeared, first_new);
	}
	took_ns = monotonic_ns() - begin_ts;
	loads->look_ts = begin_ts + (took_ns * LOOK_SHARE > LOOK_NS ? took_ns * LOOK_SHARE : LOOK_NS);
	return 0;
}

int recording_loads_write_note(struct recording *recording)
{
	if (!recording->loads || !recording->loads->note[0])
		return 0;
	return journal__note(&recording->journal, "%s", recording->loads->note);
}
