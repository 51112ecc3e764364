// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/stacks.h"

#include "base/clock.h"
#include "base/folded.h"
#include "base/log.h"
#include "base/names.h"
#include "base/vec.h"
#include "target/kernel_symbols.h"
#include "target/unwind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Different code at a time; beyond, the one that was not used for longest goes. */
#define IMAGES_MAX 12
/* A process is looked at again, when its stacks lead nowhere, not more often than this. */
#define LOOK_EVERY_NS 1000000000ULL
/* Processes that cannot be looked at are forgotten when there are so many. */
#define PROCESSES_MANY 1024
/* Of one frame's name. */
#define NAME_SZ 256

/* The code of one or more processes. */
struct image {
	struct unwinder *unwinder;
	struct program *program; /* NULL: its symbols cannot be read */
	bool own_program;
	uint64_t used_ts;
};

struct process {
	pid_t pid;
	struct image *image; /* NULL: it cannot be looked at */
	uint64_t looked_ts;
};

struct stacks {
	struct stacks_opts opts;
	struct stack_texts *texts;
	struct stack_samples *samples;
	struct kernel_symbols *kernel;
	struct stack_beat beat;
	struct image *images[IMAGES_MAX]; /* the target's first */
	VEC(struct process) processes;
	bool ended;
	struct shard_row row;
	char line[UNWIND_FRAMES_MAX * (NAME_SZ + 1)];
};

/* --- whose stack it is -------------------------------------------------------------------------------------------- */

static void image__free(struct image *image)
{
	if (!image)
		return;
	unwinder__free(image->unwinder);
	if (image->own_program)
		program__free(image->program);
	free(image);
}

/* Takes the mappings.  0 or -errno. */
static int image__new(struct stacks *stacks, pid_t pid, target_mappings *mappings, struct image **made)
{
	struct program_opts program_opts = {.debuginfo_dir = stacks->opts.debuginfo_dir};
	struct image *image = calloc(1, sizeof(*image));
	int err;

	if (!image) {
		target_mappings_free(mappings);
		return -ENOMEM;
	}
	err = unwinder__new(pid, mappings, &image->unwinder);
	if (err) {
		free(image);
		return err;
	}
	if (pid == stacks->opts.pid && stacks->opts.program) {
		image->program = stacks->opts.program;
	} else {
		err = program__open(pid, &program_opts, &image->program);
		image->own_program = !err;
		if (err) {
			log_debug("no symbols of process %d: %s", pid, strerror(-err));
			image->program = NULL;
		}
	}
	*made = image;
	return 0;
}

/* The place for another image. */
static struct image **room_for_image(struct stacks *stacks)
{
	struct image **oldest = NULL;

	for (int i = 0; i < IMAGES_MAX; i++) {
		struct image **place = &stacks->images[i];

		if (!*place)
			return place;
		/* The target's own stays. */
		if (i && (!oldest || (*place)->used_ts < (*oldest)->used_ts))
			oldest = place;
	}
	for (size_t i = 0; i < stacks->processes.cnt; i++)
		if (stacks->processes.items[i].image == *oldest)
			stacks->processes.items[i].image = NULL;
	image__free(*oldest);
	*oldest = NULL;
	return oldest;
}

/* The image that the process is of, as it is mapped now: 0 or -errno. */
static int find_image(struct stacks *stacks, pid_t pid, struct image **found)
{
	target_mappings mappings = {0};
	struct image **place;
	int err = target_mappings_read(pid, &mappings);

	if (err)
		return err;
	for (int i = 0; i < IMAGES_MAX; i++) {
		if (!stacks->images[i] || !unwinder__fits(stacks->images[i]->unwinder, &mappings))
			continue;
		target_mappings_free(&mappings);
		*found = stacks->images[i];
		return 0;
	}
	/* The target's own numbers stay good, whatever it loads. */
	if (pid == stacks->opts.pid && stacks->images[0]) {
		target_mappings_free(&mappings);
		*found = stacks->images[0];
		if (stacks->images[0]->program)
			program__refresh(stacks->images[0]->program);
		return unwinder__refresh(stacks->images[0]->unwinder);
	}
	place = room_for_image(stacks);
	err = image__new(stacks, pid, &mappings, place);
	*found = *place;
	return err;
}

static bool is_there(const struct stacks *stacks, const struct image *image)
{
	for (int i = 0; i < IMAGES_MAX; i++)
		if (stacks->images[i] == image)
			return true;
	return false;
}

static int look_at(struct stacks *stacks, struct process *process)
{
	int err = find_image(stacks, process->pid, &process->image);

	process->looked_ts = monotonic_ns();
	if (err)
		process->image = NULL;
	return err == -ENOMEM ? err : 0;
}

/* Those that were gone before they were looked at. */
static void forget_lost(struct stacks *stacks)
{
	size_t kept = 0;

	for (size_t i = 0; i < stacks->processes.cnt; i++)
		if (stacks->processes.items[i].image)
			stacks->processes.items[kept++] = stacks->processes.items[i];
	stacks->processes.cnt = kept;
}

static int process_of(struct stacks *stacks, pid_t pid, struct process **found)
{
	struct process process = {.pid = pid};
	size_t i;

	for (i = 0; i < stacks->processes.cnt && stacks->processes.items[i].pid != pid; i++)
		;
	if (i == stacks->processes.cnt) {
		if (i >= PROCESSES_MANY)
			forget_lost(stacks);
		i = stacks->processes.cnt;
		if (vec_push(&stacks->processes, process))
			return -ENOMEM;
	}
	*found = &stacks->processes.items[i];
	if ((*found)->image || monotonic_ns() - (*found)->looked_ts < LOOK_EVERY_NS)
		return 0;
	return look_at(stacks, *found);
}

void stacks__changed(struct stacks *stacks, pid_t pid)
{
	for (size_t i = 0; i < stacks->processes.cnt; i++)
		if (stacks->processes.items[i].pid == pid)
			stacks->processes.items[i--] = stacks->processes.items[--stacks->processes.cnt];
}

/* --- what is on it ------------------------------------------------------------------------------------------------ */

static void frame_name(const struct image *image, uint64_t addr, char *name)
{
	uint32_t id = PROGRAM_NONE;

	if (image->program)
		id = program__function_at_runtime(image->program, addr, NULL);
	if (id != PROGRAM_NONE)
		snprintf(name, NAME_SZ, "%s", program__function(image->program, id)->shown);
	else if (!unwinder__place(image->unwinder, addr, name, NAME_SZ))
		snprintf(name, NAME_SZ, "[unknown]");
	else if (!strcmp(name, "[anon]"))
		snprintf(name, NAME_SZ, "[jit]+0x%" PRIx64, addr);
}

/* The function's number in the target's program, also where another process runs the same file at another place. */
static uint32_t number_of(const struct stacks *stacks, const struct image *image, uint64_t addr)
{
	struct program *program = stacks->images[0]->program;
	const struct program_function *function;
	const struct program_module *module;
	uint32_t id = program__function_at_runtime(image->program, addr, NULL), idx;

	if (id == PROGRAM_NONE || image->program == program)
		return id;
	function = program__function(image->program, id);
	module = program__module(image->program, function->module);
	idx = module ? program__module_find(program, module->path) : PROGRAM_NONE;
	return idx == PROGRAM_NONE ? PROGRAM_NONE : program__function_at(program, idx, function->addr);
}

/* What hot paths want to know of the frames: how many, 0: nothing. */
static size_t hot_frames(const struct stacks *stacks, const struct image *image, const struct unwind_frame *frames,
			 size_t cnt, struct hot_frame *hot)
{
	if (!stacks->opts.hot || !image->program || !stacks->images[0]->program)
		return 0;
	for (size_t i = 0; i < cnt; i++)
		hot[i] = (struct hot_frame){
			.function = number_of(stacks, image, unwind_frame_addr(&frames[i])),
			.call_addr = frames[i].exact ? 0 : frames[i].pc,
			.guessed = frames[i].how == UNWIND_BY_SCAN,
		};
	return cnt;
}

static struct stack_text *text_of(struct stacks *stacks, const struct image *image, const struct unwind_frame *frames,
				  size_t cnt, enum unwind_end end)
{
	struct hot_frame hot[UNWIND_FRAMES_MAX];
	char name[NAME_SZ + 1];
	uint32_t guessed = 0;

	stacks->line[0] = '\0';
	for (size_t i = cnt; i-- > 0;) {
		bool is_guess = frames[i].how == UNWIND_BY_SCAN;

		name[0] = '?';
		frame_name(image, unwind_frame_addr(&frames[i]), name + is_guess);
		folded_add(stacks->line, sizeof(stacks->line), name);
		guessed += is_guess;
	}
	return stack_texts__get(stacks->texts, stacks->line, end == UNWIND_START, guessed, hot,
				hot_frames(stacks, image, frames, cnt, hot));
}

/* A stack without frames that anything is known of. */
static struct stack_text *text_without(struct stacks *stacks, const char *name, bool complete)
{
	return stack_texts__get(stacks->texts, name, complete, 0, NULL, 0);
}

static int unwind(struct stacks *stacks, struct process *process, const struct wl_stack_record *record,
		  struct stack_text **text)
{
	struct unwind_input input = {.regs = record->regs, .stack = record->stack, .stack_sz = record->stack_sz};
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	enum unwind_end end;
	size_t cnt;
	int err;

	cnt = unwinder__frames(process->image->unwinder, &input, frames, &end);
	/* Perhaps it has loaded something meanwhile. */
	if (end == UNWIND_NOT_KNOWN && monotonic_ns() - process->looked_ts > LOOK_EVERY_NS) {
		struct image *image = process->image;

		err = look_at(stacks, process);
		if (err)
			return err;
		/* Gone since: what was known of it holds. */
		if (!process->image && is_there(stacks, image))
			process->image = image;
		if (!process->image)
			return 0;
		cnt = unwinder__frames(process->image->unwinder, &input, frames, &end);
	}
	process->image->used_ts = record->ts;
	*text = text_of(stacks, process->image, frames, cnt, end);
	return *text ? 0 : -ENOMEM;
}

static int user_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text)
{
	struct process *process;
	int err;

	*text = NULL;
	if (record->flags & WL_STACK_NO_USER) {
		*text = text_without(stacks, "[kernel]", true);
		return *text ? 0 : -ENOMEM;
	}
	err = process_of(stacks, record->pid, &process);
	if (!err && process->image)
		err = unwind(stacks, process, record, text);
	if (err || *text)
		return err;
	/* It has ended before its mappings could be read. */
	*text = text_without(stacks, "[unknown]", false);
	return *text ? 0 : -ENOMEM;
}

/* How many of the innermost frames are the sampler's own: the interrupt of a tick, the switch of a wait. */
static size_t own_frames(struct stacks *stacks, const struct wl_stack_record *record, size_t cnt)
{
	const char *name;
	size_t own = 0;

	if (record->flags & WL_STACK_KERNEL_TICK) {
		for (size_t i = 0; i < cnt; i++) {
			name = kernel_symbols__name(stacks->kernel, record->kernel[i]);
			if (name && !strncmp(name, "asm_sysvec_", 11))
				return i + 1;
		}
		return cnt;
	}
	if (!(record->flags & WL_STACK_WAITS))
		return 0;
	for (size_t i = 0; i < cnt; i++) {
		name = kernel_symbols__name(stacks->kernel, record->kernel[i]);
		if (name && !strncmp(name, "__schedule", 10))
			own = i + 1;
		else if (own && name && !strcmp(name, "schedule"))
			return i + 1;
		else if (own)
			return own;
	}
	return own;
}

static int kernel_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text)
{
	size_t cnt = record->kernel_cnt < WL_STACK_KERNEL_MAX ? record->kernel_cnt : WL_STACK_KERNEL_MAX, own;
	bool named = false;

	*text = NULL;
	own = own_frames(stacks, record, cnt);
	stacks->line[0] = '\0';
	for (size_t i = cnt; i-- > own;) {
		const char *name = kernel_symbols__name(stacks->kernel, record->kernel[i]);

		folded_add(stacks->line, sizeof(stacks->line), name ? name : "[kernel]");
		named |= name != NULL;
	}
	if (!named)
		return 0;
	*text = stack_texts__get(stacks->texts, stacks->line, true, 0, NULL, 0);
	return *text ? 0 : -ENOMEM;
}

int stacks__take(struct stacks *stacks, const struct wl_record_header *header)
{
	const struct wl_stack_record *record = (const struct wl_stack_record *)header;
	struct stack_text *user, *kernel;
	int err;

	if (stacks->ended)
		return 0;
	if (header->kind == WL_RECORD_STACK_WAIT)
		return stack_samples__take_wait(stacks->samples, (const struct wl_stack_wait_record *)header);
	err = user_text(stacks, record, &user);
	if (err)
		return err;
	err = kernel_text(stacks, record, &kernel);
	if (!err)
		return stack_samples__take(stacks->samples, record, user, kernel);
	stack_texts__drop(stacks->texts, user);
	return err;
}

/* --- what becomes of it ------------------------------------------------------------------------------------------- */

static int write_row(void *owner, const struct stack_sample *sample)
{
	struct stacks *stacks = owner;
	struct shard_row *row = &stacks->row;

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
	return stacks->opts.append(stacks->opts.owner, SHARD_TABLE_STACK, row);
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
	struct program *program = stacks->images[0]->program;
	uint32_t libc = program ? program__module_find(program, "libc.so.6") : PROGRAM_NONE, first, cnt;

	/* What cannot be read has no names then, and nobody needs to be told now. */
	if (program)
		program__module_functions(program, 0, &first, &cnt);
	if (libc != PROGRAM_NONE)
		program__module_functions(program, libc, &first, &cnt);
}

int stacks__new(const struct stacks_opts *opts, struct stacks **made)
{
	struct stack_sinks sinks = {.give = write_row, .see = learn, .doubt = doubt};
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	struct process *process;
	int err;

	if (!stacks)
		return -ENOMEM;
	stacks->opts = *opts;
	sinks.owner = stacks;
	stacks->kernel = kernel_symbols__open();
	stacks->texts = stack_texts__new();
	if (stacks->texts)
		stacks->samples = stack_samples__new(stacks->texts, &sinks);
	err = stacks->samples && stacks->kernel ? process_of(stacks, opts->pid, &process) : -ENOMEM;
	if (!err && !process->image)
		err = -ESRCH;
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
	for (int i = 0; i < IMAGES_MAX; i++) {
		image__free(stacks->images[i]);
		stacks->images[i] = NULL;
	}
	vec_free(&stacks->processes);
}

void stacks__free(struct stacks *stacks)
{
	if (!stacks)
		return;
	stack_samples__free(stacks->samples);
	stack_texts__free(stacks->texts);
	kernel_symbols__free(stacks->kernel);
	stacks__end(stacks);
	free(stacks);
}

void stacks__counts(const struct stacks *stacks, struct stack_sample_counts *counts)
{
	stack_samples__counts(stacks->samples, counts);
}

/* --- calls that only sampling sees -------------------------------------------------------------------------------- */

/* Is that call known to go there, or to go somewhere else directly and only from there, by a jump, to the callee? */
static bool is_known(struct program *program, uint32_t caller, uint32_t callee, uint64_t call_addr)
{
	const struct call_edge *edges;
	size_t cnt;

	if (program__callees(program, caller, &edges, &cnt))
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (edges[i].call_addr == call_addr && (edges[i].callee == callee || edges[i].kind == CALL_DIRECT))
			return true;
	return false;
}

int stacks__teach(const struct hot_paths *hot, struct program *program)
{
	struct hot_edge *edges;
	size_t cnt, added = 0;
	int err = hot_paths__edges(hot, HOT_PATHS_NONE, &edges, &cnt);

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct program_function *caller = program__function(program, edges[i].caller);
		const struct program_module *module = caller ? program__module(program, caller->module) : NULL;
		uint8_t code[UNWIND_CALL_SZ_MAX];
		uint64_t return_addr;
		ssize_t sz, call_sz;

		if (!module)
			continue;
		return_addr = edges[i].call_addr - module->bias;
		sz = program__read_code(program, caller->module, return_addr - sizeof(code), code, sizeof(code));
		call_sz = sz == sizeof(code) ? unwind_call_sz(code + sz, sz) : 0;
		if (!call_sz || is_known(program, edges[i].caller, edges[i].callee, return_addr - call_sz))
			continue;
		err = program__add_dynamic_edge(program, edges[i].caller, edges[i].callee, return_addr - call_sz);
		added += !err;
	}
	free(edges);
	return err ? err : (int)added;
}
