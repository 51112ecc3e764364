// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/stacks_internal.h"

#include "base/hash.h"
#include "base/names.h"
#include "base/random.h"
#include "target/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Waiting for names of inlined functions of a file. */
#define INLINED_AT_ONCE_NS 200000000ULL

void stacks__changed(struct stacks *stacks, pid_t pid)
{
	if (stacks->images)
		images__changed(stacks->images, pid);
	if (stacks->opts.values)
		sampled_values__changed(stacks->opts.values, pid);
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

/* Of the files' build ids and the offsets in them: the same wherever they are loaded.  Without a build id, of names. */
static uint64_t hash_path(struct stacks *stacks, struct image_process *process, const struct wl_stack_record *record)
{
	struct unwind_input input = {.regs = record->regs, .stack = record->stack, .stack_sz = record->stack_sz};
	struct program *program = process->image->program;
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	uint64_t hash = 0xcbf29ce484222325ULL;
	enum unwind_end end;
	size_t cnt = unwinder__frames(process->image->unwinder, &input, frames, &end);

	for (size_t i = 0; i < cnt; i++) {
		uint64_t addr = unwind_frame_addr(&frames[i]);
		const struct program_module *module = NULL;
		uint32_t idx = PROGRAM_NONE;

		if (program && program__function_at_runtime(program, addr, &idx) != PROGRAM_NONE)
			module = program__module(program, idx);
		if (module && *module->build_id) {
			hash = random_mix(fnv1a_text(hash, module->build_id) + (addr - module->bias));
		} else {
			stacks__frame_name(stacks, process, addr, record->ts, stacks->name);
			hash = fnv1a_text(hash, stacks->name);
		}
	}
	return hash;
}

int stacks__path(struct stacks *stacks, const struct wl_stack_record *record, struct stacks_path *path)
{
	struct image_process *process;
	struct stack_values *values;
	struct stack_text *text;
	int err;

	*path = (struct stacks_path){0};
	if (stacks->ended || !record->stack_sz)
		return 0;
	err = images__process(stacks->images, (pid_t)record->pid, &process);
	if (err || !process->image)
		return err;
	path->hash = hash_path(stacks, process, record);
	err = stacks__user_text(stacks, record, &text, &values);
	if (err)
		return err;
	snprintf(stacks->path, sizeof(stacks->path), "%s", text->frames);
	path->frames = stacks->path;
	stack_texts__drop(stacks->texts, text);
	return 0;
}

static void take_python(struct stacks *stacks, const struct wl_python_record *record)
{
	stacks->python_cnt++;
	if (record->cnt <= WL_PYTHON_FRAMES_MAX)
		stacks->pythons[record->header.cpu & (PYTHON_CPUS - 1)] = *record;
}

int stacks__take(struct stacks *stacks, const struct wl_record_header *header)
{
	const struct wl_stack_record *record = (const struct wl_stack_record *)header;
	struct stack_text *user, *kernel;
	struct stack_values *values;
	int err;

	if (stacks->ended)
		return 0;
	if (header->kind == WL_RECORD_PROGRAM) {
		images__ran(stacks->images, (const struct wl_program_record *)header);
		return 0;
	}
	if (header->kind == WL_RECORD_PYTHON) {
		take_python(stacks, (const struct wl_python_record *)header);
		return 0;
	}
	if (header->kind == WL_RECORD_VALUES) {
		if (stacks->opts.values)
			sampled_values__take_words(stacks->opts.values, (const struct wl_values_record *)header);
		return 0;
	}
	if (header->kind == WL_RECORD_STACK_WAIT)
		return stack_samples__take_wait(stacks->samples, (const struct wl_stack_wait_record *)header);
	stacks->spins = false;
	err = stacks__user_text(stacks, record, &user, &values);
	if (err)
		return err;
	if (stacks->spins && stacks->opts.spun)
		stacks->opts.spun(stacks->opts.owner, (pid_t)record->pid, record->ts);
	err = stacks__kernel_text(stacks, record, &kernel);
	if (!err)
		return stack_samples__take(stacks->samples, record, user, kernel, values);
	free(values);
	stack_texts__drop(stacks->texts, user);
	return err;
}

/* --- what becomes of it ------------------------------------------------------------------------------------------- */

static int write_row(void *owner, const struct stack_sample *sample)
{
	struct stacks *stacks = owner;
	struct shard_row *row = &stacks->row;
	int err;

	if (!stacks->opts.append)
		return 0;
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[STACK_TS].u64 = sample->ts;
	row->values[STACK_END_TS].u64 = sample->end_ts;
	row->values[STACK_PERIOD_NS].f64 = sample->period_ns;
	shard_row__set_null(row, sample->end_ts ? STACK_PERIOD_NS : STACK_END_TS);
	row->values[STACK_CPU].u64 = sample->cpu;
	row->values[STACK_PID].u64 = sample->pid;
	row->values[STACK_TID].u64 = sample->tid;
	row->values[STACK_SID].u64 = sample->sid;
	if (!sample->sid)
		shard_row__set_null(row, STACK_SID);
	row->values[STACK_CONTEXT].u64 = sample->context;
	if (!sample->sid || sample->context == WL_CONTEXT_ID_NONE)
		shard_row__set_null(row, STACK_CONTEXT);
	row->values[STACK_DELAYS].u64 = sample->delays;
	row->values[STACK_STATE].str = state_name(sample->state);
	row->values[STACK_WEIGHT].f64 = sample->weight_ns;
	row->values[STACK_FRAMES].str = sample->user->frames;
	if (sample->kernel)
		row->values[STACK_KERNEL_FRAMES].str = sample->kernel->frames;
	else
		shard_row__set_null(row, STACK_KERNEL_FRAMES);
	row->values[STACK_COMPLETE].u64 = sample->user->complete;
	row->values[STACK_GUESSED].u64 = sample->user->guessed;
	err = stacks->opts.append(stacks->opts.owner, SHARD_TABLE_STACK, row);
	return err || !stacks->opts.values ? err : sampled_values__write(stacks->opts.values, sample);
}

static void compare_clocks(struct stacks *stacks, const struct stack_sample *sample)
{
	if (stacks->opts.kernel_tick_ns && !sample->end_ts)
		stack_beat__add(&stacks->beat, sample->kernel_tick,
				sample->period_ns / (double)stacks->opts.kernel_tick_ns, sample->user->frames);
}

enum stack_beat_kind stacks__beat(const struct stacks *stacks)
{
	return stack_beat__found(&stacks->beat);
}

/* Of the target's own work: waiting for a CPU is no doing of a function, and what delays it is another's. */
static int learn(void *owner, const struct stack_sample *sample)
{
	struct stacks *stacks = owner;
	struct hot_sample hot = {
		.thread = sample->tid,
		.frames = sample->user->hot,
		.frame_cnt = sample->user->hot_cnt,
		.complete = sample->user->complete,
		.running = sample->state == WL_STATE_RUNNING,
		.ns = sample->weight_ns,
	};

	compare_clocks(stacks, sample);
	if (!stacks->opts.hot || !hot.frame_cnt || sample->state == WL_STATE_RUNQ_WAKEUP ||
	    (!sample->sid && sample->delays))
		return 0;
	return hot_paths__add(stacks->opts.hot, &hot);
}

static void doubt(void *owner, uint64_t key, bool is_ambiguous)
{
	struct stacks *stacks = owner;

	if (stacks->opts.doubt)
		stacks->opts.doubt(stacks->opts.owner, key, is_ambiguous);
}

int stacks__interval(struct stacks *stacks, uint64_t sid, uint64_t begin_ts, uint64_t end_ts, double weight)
{
	return stacks->ended ? 0 : stack_samples__interval(stacks->samples, sid, begin_ts, end_ts, weight);
}

int stacks__advance(struct stacks *stacks, uint64_t polled_ts)
{
	return stacks->ended ? 0 : stack_samples__advance(stacks->samples, polled_ts);
}

int stacks__finish(struct stacks *stacks)
{
	return stacks->ended ? 0 : stack_samples__finish(stacks->samples);
}

/* What is in nearly every stack is read before the first one comes: while it takes its time, a ring would fill. */
static void read_ahead(const struct stacks *stacks)
{
	const struct image *image = images__target(stacks->images);
	const uint32_t modules[] = {0, image->program ? program__module_find(image->program, "libc.so.6") : 0};
	uint32_t first, cnt;

	/* What cannot be read has no names then, and nobody needs to be told now. */
	for (size_t i = 0; i < 2 && image->program; i++)
		if (!program__module_functions(image->program, modules[i], &first, &cnt) && cnt)
			(void)unwinder__rule(image->unwinder, program__module(image->program, modules[i])->bias +
								      program__function(image->program, first)->addr);
	if (image->program)
		program__read_inlines(image->program, stacks->symbols, 0);
}

int stacks__new(const struct stacks_opts *opts, struct stacks **made)
{
	struct stack_sinks sinks = {.give = write_row, .see = learn, .doubt = doubt};
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	struct image_process *process;
	int err;

	if (!stacks)
		return -ENOMEM;
	stacks->opts = *opts;
	sinks.owner = stacks;
	stacks->images = images__new(
		&(struct images_opts){opts->pid, opts->program, opts->debuginfo_dir, opts->python, opts->owner});
	stacks->symbols = symbols__new(INLINED_AT_ONCE_NS);
	stacks->kernel = kernel_symbols__open();
	stacks->texts = stack_texts__new();
	if (stacks->texts)
		stacks->samples = stack_samples__new(stacks->texts, &sinks);
	err = stacks->samples && stacks->kernel && stacks->images && stacks->symbols
		      ? images__process(stacks->images, opts->pid, &process)
		      : -ENOMEM;
	if (!err && !process->image)
		err = -ESRCH;
	if (!err && opts->python)
		err = images__find_pythons(stacks->images);
	if (err) {
		stacks__free(stacks);
		return err;
	}
	read_ahead(stacks);
	*made = stacks;
	return 0;
}

void stacks__end(struct stacks *stacks)
{
	stacks->ended = true;
	images__free(stacks->images);
	stacks->images = NULL;
	if (stacks->symbols)
		symbols__end(stacks->symbols);
}

void stacks__free(struct stacks *stacks)
{
	if (!stacks)
		return;
	stack_samples__free(stacks->samples);
	stack_texts__free(stacks->texts);
	kernel_symbols__free(stacks->kernel);
	stacks__end(stacks);
	symbols__free(stacks->symbols);
	free(stacks);
}

void stacks__counts(const struct stacks *stacks, struct stack_sample_counts *counts)
{
	stack_samples__counts(stacks->samples, counts);
}

uint64_t stacks__python_cnt(const struct stacks *stacks)
{
	return stacks->python_cnt;
}

uint64_t stacks__python_missed_cnt(const struct stacks *stacks)
{
	return stacks->python_missed_cnt;
}

void stacks__made(const struct stacks *stacks, struct stacks_made *made)
{
	*made = stacks->made;
}
