// SPDX-License-Identifier: GPL-2.0-or-later
/* What is on a stack: frames, their names, and what variables hold there. */
#include "session/stacks_internal.h"

#include "base/folded.h"
#include "target/demangle.h"
#include "target/kernel_symbols.h"
#include "target/spin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Code that the process made itself: by what its compiler told of it. */
static void made_name(struct stacks *stacks, struct image_process *process, uint64_t addr, uint64_t ts, char *name)
{
	const char *told = images__made_name(stacks->images, process, addr, ts);

	if (told) {
		stacks->made.named++;
		snprintf(name, NAME_SZ, "%s", told);
		return;
	}
	stacks->made.unnamed++;
	stacks->made.pid = process->pid;
	stacks->made.runtime = process->image->runtime;
	stacks->made.has_map = process->made && perf_map__is_there(process->made);
	snprintf(name, NAME_SZ, "[jit]+0x%" PRIx64, addr);
}

void stacks__frame_name(struct stacks *stacks, struct image_process *process, uint64_t addr, uint64_t ts, char *name)
{
	const struct image *image = process->image;
	uint32_t id = PROGRAM_NONE;

	if (image->program)
		id = program__function_at_runtime(image->program, addr, NULL);
	if (id != PROGRAM_NONE)
		demangle_fit(name, NAME_SZ, program__function(image->program, id)->shown);
	else if (unwinder__is_made(image->unwinder, addr))
		made_name(stacks, process, addr, ts, name);
	else if (!unwinder__place(image->unwinder, addr, name, NAME_SZ))
		snprintf(name, NAME_SZ, STACK_UNKNOWN);
}

/*
 * What the compiler has inlined there stands below it, as "f (inlined by g)".  Of the target's own code only: DWARF
 * takes much memory and time.
 */
static void add_inlined(struct stacks *stacks, const struct image *image, uint64_t addr, bool is_guess)
{
	const char *names[INLINES_DEPTH_MAX], *by;
	uint32_t id = image->program ? program__function_at_runtime(image->program, addr, NULL) : PROGRAM_NONE;
	char text[NAME_SZ], inlined[NAME_SZ / 2], in[NAME_SZ / 2 - 16];
	size_t cnt;

	if (id == PROGRAM_NONE || is_guess || image != images__target(stacks->images))
		return;
	by = program__function(image->program, id)->shown;
	cnt = program__inlined_at(image->program, stacks->symbols, addr, names);
	for (size_t i = 0; i < cnt; i++) {
		demangle_fit(inlined, sizeof(inlined), names[i]);
		demangle_fit(in, sizeof(in), i ? names[i - 1] : by);
		snprintf(text, sizeof(text), "%s (inlined by %s)", inlined, in);
		folded_add(stacks->line, sizeof(stacks->line), text);
	}
}

/* A loop that waits for a lock stands below its function, as the frame FRAME_SPIN.  Of the target's own code only. */
static void add_spin(struct stacks *stacks, const struct image *image, uint64_t pc)
{
	uint8_t bytes[2 * SPIN_LOOP_MAX + 16];
	const struct program_module *module;
	uint32_t id, idx = PROGRAM_NONE;
	uint64_t addr, from;
	ssize_t sz;

	if (!image->program || image != images__target(stacks->images))
		return;
	id = program__function_at_runtime(image->program, pc, &idx);
	if (id == PROGRAM_NONE)
		return;
	module = program__module(image->program, idx);
	addr = pc - module->bias;
	from = program__function(image->program, id)->addr;
	if (addr > from + SPIN_LOOP_MAX)
		from = addr - SPIN_LOOP_MAX;
	sz = program__read_code(image->program, idx, from, bytes, sizeof(bytes));
	if (sz <= 0 || !code_spins(bytes, (size_t)sz, addr - from))
		return;
	folded_add(stacks->line, sizeof(stacks->line), FRAME_SPIN);
	stacks->spins = true;
}

/* The function's number in the target's program, also where another process runs the same file at another place. */
static uint32_t number_of(const struct stacks *stacks, const struct image *image, uint64_t addr)
{
	struct program *program = images__target(stacks->images)->program;
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
	if (!cnt || !stacks->opts.hot || !image->program || !images__target(stacks->images)->program)
		return 0;
	for (size_t i = 0; i < cnt; i++)
		hot[i] = (struct hot_frame){
			.function = number_of(stacks, image, unwind_frame_addr(&frames[i])),
			.call_addr = frames[i].exact ? 0 : frames[i].pc,
			.guessed = frames[i].how == UNWIND_BY_SCAN,
		};
	return cnt;
}

/* The frames of Python code that were sent with the stack; NULL: none. */
static const struct wl_python_record *python_of(const struct stacks *stacks, const struct image_process *process,
						const struct wl_stack_record *record)
{
	const struct wl_python_record *python = &stacks->pythons[record->header.cpu & (PYTHON_CPUS - 1)];

	if (!(record->flags & WL_STACK_PYTHON) || !process->python || python->ts != record->ts ||
	    python->tid != record->tid || python->pid != record->pid)
		return NULL;
	return python;
}

/* What of the C stack is the interpreter's own. */
static void tell_interpreter(const struct image *image, const struct unwind_frame *frames, size_t cnt,
			     enum python_frame *kinds)
{
	const struct program_function *function;
	uint32_t modules[UNWIND_FRAMES_MAX], interpreter = PROGRAM_NONE, id;

	for (size_t i = 0; i < cnt; i++) {
		uint64_t addr = unwind_frame_addr(&frames[i]);

		kinds[i] = PYTHON_FRAME_OTHER;
		modules[i] = PROGRAM_NONE;
		/* `python -X perf` has a trampoline for each function. */
		if (unwinder__is_made(image->unwinder, addr))
			kinds[i] = PYTHON_FRAME_INTERPRETER;
		id = image->program ? program__function_at_runtime(image->program, addr, &modules[i]) : PROGRAM_NONE;
		function = id != PROGRAM_NONE ? program__function(image->program, id) : NULL;
		if (!function || !python_is_loop(function->name))
			continue;
		kinds[i] = PYTHON_FRAME_EVAL;
		interpreter = function->module;
	}
	for (size_t i = 0; i < cnt; i++)
		if (kinds[i] == PYTHON_FRAME_OTHER && interpreter != PROGRAM_NONE && modules[i] == interpreter)
			kinds[i] = PYTHON_FRAME_INTERPRETER;
}

/* Innermost first: how many. */
static size_t make_path(struct stacks *stacks, const struct image_process *process,
			const struct wl_stack_record *record, const struct unwind_frame *frames, size_t cnt,
			struct python_merged *path)
{
	const struct wl_python_record *python = python_of(stacks, process, record);
	enum python_frame kinds[UNWIND_FRAMES_MAX];

	if (python) {
		tell_interpreter(process->image, frames, cnt, kinds);
		return python_merge(kinds, cnt, python->code, python->cnt, path, PATH_MAX_CNT);
	}
	for (size_t i = 0; i < cnt; i++)
		path[i] = (struct python_merged){.idx = i};
	return cnt;
}

/* Of a goroutine that waits the innermost frames are the runtime's own: its wait tells what they do. */
static bool is_waits_own(const char *name)
{
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "sync.runtime_", 13) ||
	       !strncmp(name, "internal/poll.runtime_", 22);
}

static size_t innermost_frame(struct stacks *stacks, struct image_process *process,
			      const struct wl_stack_record *record, const struct unwind_frame *frames, size_t cnt)
{
	char name[NAME_SZ + 1];
	size_t first = 0;

	if (!(record->flags & WL_STACK_WAITS) || !(record->tid & WL_GOROUTINE_TID))
		return 0;
	for (; first + 1 < cnt; first++) {
		stacks__frame_name(stacks, process, unwind_frame_addr(&frames[first]), record->ts, name);
		if (!is_waits_own(name))
			break;
	}
	return first;
}

static struct stack_text *text_of(struct stacks *stacks, struct image_process *process,
				  const struct wl_stack_record *record, const struct unwind_frame *frames, size_t cnt,
				  enum unwind_end end)
{
	struct python_merged path[PATH_MAX_CNT];
	struct hot_frame hot[UNWIND_FRAMES_MAX];
	char name[NAME_SZ + 1];
	uint32_t guessed = 0;
	size_t first = innermost_frame(stacks, process, record, frames, cnt);

	frames += first;
	cnt -= first;
	stacks->line[0] = '\0';
	for (size_t i = make_path(stacks, process, record, frames, cnt, path); i-- > 0;) {
		const struct unwind_frame *frame = &frames[path[i].idx];
		bool is_guess = !path[i].code && frame->how == UNWIND_BY_SCAN;

		name[0] = '?';
		if (path[i].code)
			snprintf(name, NAME_SZ, "%s", python__name(process->python, path[i].code) ?: "[python]");
		else
			stacks__frame_name(stacks, process, unwind_frame_addr(frame), record->ts, name + is_guess);
		folded_add(stacks->line, sizeof(stacks->line), name);
		if (!path[i].code)
			add_inlined(stacks, process->image, unwind_frame_addr(frame), is_guess);
		guessed += is_guess;
	}
	if (!(record->flags & WL_STACK_WAITS) && cnt && !path[0].code)
		add_spin(stacks, process->image, frames[0].pc);
	return stack_texts__get(stacks->texts, stacks->line, end == UNWIND_START, guessed, hot,
				hot_frames(stacks, process->image, frames, cnt, hot));
}

/* A stack without frames that anything is known of. */
static struct stack_text *text_without(struct stacks *stacks, const char *name, bool complete)
{
	return stack_texts__get(stacks->texts, name, complete, 0, NULL, 0);
}

struct naming {
	struct stacks *stacks;
	struct image_process *process;
	uint64_t ts;
};

static const char *place_name(void *owner, uint64_t addr)
{
	const struct naming *naming = owner;

	stacks__frame_name(naming->stacks, naming->process, addr, naming->ts, naming->stacks->name);
	return naming->stacks->name;
}

/* What variables hold at its innermost frames, which are those of process `as`; NULL: out of memory. */
static struct stack_values *values_of(struct stacks *stacks, struct image_process *process, pid_t as,
				      const struct wl_stack_record *record, const struct unwind_frame *frames,
				      size_t cnt)
{
	struct naming naming = {stacks, process, record->ts};
	struct value_stack stack = {
		.pid = as,
		.program = process->image->program,
		.unwinder = process->image->unwinder,
		.frames = frames,
		.regs = stacks->frame_regs,
		.frame_cnt = cnt,
		.memory = {.bytes = record->stack, .addr = record->regs[WL_STACK_REG_SP], .sz = record->stack_sz},
		.ts = record->ts,
		.tid = record->tid,
		.name = place_name,
		.owner = &naming,
	};

	return sampled_values__take(stacks->opts.values, &stack);
}

/* Are values read of a stack of that process, or of one taken for it?  What the agent does is no cause of the target's.
 */
static bool wants_values(struct stacks *stacks, const struct wl_stack_record *record, pid_t as,
			 const struct image *image)
{
	return stacks->opts.values && !(record->flags & WL_STACK_WAITS) && record->pid != (uint32_t)getpid() &&
	       sampled_values__met(stacks->opts.values, as, image->program);
}

static int unwind(struct stacks *stacks, struct image_process *process, const struct wl_stack_record *record,
		  struct stack_text **text, struct stack_values **values)
{
	bool has_values = wants_values(stacks, record, process->pid, process->image);
	struct unwind_input input = {.regs = record->regs,
				     .stack = record->stack,
				     .stack_sz = record->stack_sz,
				     .frame_regs = stacks->frame_regs,
				     .frame_regs_max = has_values ? sampled_values__depth(stacks->opts.values) + 1 : 0};
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	enum unwind_end end;
	size_t cnt;

	cnt = unwinder__frames(process->image->unwinder, &input, frames, &end);
	/* In code that was loaded since, the stack is searched for return addresses, and that may lead to its
	 * beginning. */
	if (end == UNWIND_NOT_KNOWN || !unwinder__is_code(process->image->unwinder, frames[0].pc)) {
		int again = images__look_again(stacks->images, process);

		if (again < 0)
			return again;
		if (again)
			cnt = unwinder__frames(process->image->unwinder, &input, frames, &end);
		if (!process->image)
			return 0;
		has_values = has_values && wants_values(stacks, record, process->pid, process->image);
	}
	*text = text_of(stacks, process, record, frames, cnt, end);
	if (*text && has_values)
		*values = values_of(stacks, process, process->pid, record, frames, cnt);
	/* It may forget the image. */
	images__used(stacks->images, process, record->ts);
	return *text ? 0 : -ENOMEM;
}

/*
 * A process that has ended before its mappings could be read may be a fork of the target: then its code is where the
 * target has it, and the target's tables lead from its registers to where the thread began.
 */
static int unwind_as_target(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text,
			    struct stack_values **values)
{
	struct unwind_input input = {.regs = record->regs, .stack = record->stack, .stack_sz = record->stack_sz};
	struct image_process like = {.pid = (pid_t)record->pid, .image = images__target(stacks->images)};
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	enum unwind_end end;
	size_t cnt;

	if (!like.image)
		return 0;
	if (wants_values(stacks, record, stacks->opts.pid, like.image)) {
		input.frame_regs = stacks->frame_regs;
		input.frame_regs_max = sampled_values__depth(stacks->opts.values) + 1;
	}
	cnt = unwinder__frames(like.image->unwinder, &input, frames, &end);
	if (end != UNWIND_START || cnt < 2)
		return 0;
	for (size_t i = 0; i < cnt; i++)
		if (frames[i].how == UNWIND_BY_SCAN || unwinder__is_made(like.image->unwinder, frames[i].pc))
			return 0;
	*text = text_of(stacks, &like, record, frames, cnt, end);
	if (*text && input.frame_regs)
		*values = values_of(stacks, &like, stacks->opts.pid, record, frames, cnt);
	return *text ? 0 : -ENOMEM;
}

/* Likewise of another program: where the record says that it began.  python: its interpreter, NULL: it has none. */
static int unwind_past(struct stacks *stacks, const struct wl_stack_record *record, struct python *python,
		       struct stack_text **text)
{
	struct unwind_input input = {.regs = record->regs, .stack = record->stack, .stack_sz = record->stack_sz};
	struct image_process like = {
		.pid = (pid_t)record->pid, .image = images__past(stacks->images, record), .python = python};
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	enum unwind_end end;
	size_t cnt;

	if (!like.image)
		return 0;
	cnt = unwinder__frames(like.image->unwinder, &input, frames, &end);
	for (size_t i = 0; i < cnt; i++)
		if (unwinder__is_made(like.image->unwinder, unwind_frame_addr(&frames[i])))
			return 0;
	if (cnt > 1 || unwinder__is_code(like.image->unwinder, frames[0].pc))
		*text = text_of(stacks, &like, record, frames, cnt, end);
	images__used(stacks->images, &like, record->ts);
	return 0;
}

int stacks__user_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text,
		      struct stack_values **values)
{
	static const struct unwind_frame none;
	struct image_process *process;
	int err;

	*text = NULL;
	*values = NULL;
	if (record->flags & WL_STACK_NO_USER) {
		*text = text_without(stacks, "[kernel]", true);
		return *text ? 0 : -ENOMEM;
	}
	err = images__process(stacks->images, (pid_t)record->pid, &process);
	if (!err && process->image)
		images__met(process->image, record);
	if (!err && process->python && !(record->flags & WL_STACK_PYTHON))
		stacks->python_missed_cnt++;
	/* It may have ended between the look at its mappings and the look at its files. */
	if (!err && process->image && process->image->program)
		return unwind(stacks, process, record, text, values);
	if (!err && !process->image)
		err = unwind_as_target(stacks, record, text, values);
	if (!err && !*text)
		err = unwind_past(stacks, record, process->python, text);
	if (!err && !*text && process->image)
		err = unwind(stacks, process, record, text, values);
	if (err || *text)
		return err;
	/* It has ended before its mappings could be read, or its image had to make room. */
	*text = python_of(stacks, process, record) ? text_of(stacks, process, record, &none, 0, UNWIND_NOT_KNOWN)
						   : text_without(stacks, STACK_UNKNOWN, false);
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

int stacks__kernel_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text)
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
