// SPDX-License-Identifier: GPL-2.0-or-later
/* What --stacks adds to a recording. */
#include "base/log.h"
#include "base/names.h"
#include "session/client.h"
#include "session/recording.h"
#include "session/sinks.h"

#include <inttypes.h>
#include <string.h>

uint32_t recording_stacks_hz(const struct recording *recording)
{
	if (recording->options->stacks_hz)
		return recording->options->stacks_hz;
	return recording->options->client ? recording->options->client->stacks_hz : 0;
}

/* Our clock's part of the budget, and at most so many ticks a second and CPU. */
#define BUDGET_PART 0.25
#define HZ_MOST     997
#define HZ_LEAST    49
/* What a tick that copies a stack takes beyond one that does not; docs/OVERHEAD.md has the figures. */
#define COPY_NS 3000

/* As often as the budget allows, every tick being feared to copy a stack. */
static uint32_t hz_by_budget(const struct recording *recording, uint64_t tick_ns)
{
	double share = recording->options->budget * BUDGET_PART, hz;

	if (!recording_has_budget(recording))
		return HZ_MOST;
	hz = share * 1e9 / (double)(tick_ns + COPY_NS);
	return hz > HZ_MOST ? HZ_MOST : hz < HZ_LEAST ? HZ_LEAST : (uint32_t)hz;
}

static void doubt(void *owner, uint64_t key, bool is_ambiguous)
{
	struct recording *recording = owner;

	capture__stack_doubt(recording->capture, key, is_ambiguous);
}

static void set_python(void *owner, pid_t pid, const struct python_layout *layout)
{
	struct recording *recording = owner;

	capture__set_python(recording->capture, pid, layout);
}

static void note_spin(void *owner, pid_t pid, uint64_t ts)
{
	struct recording *recording = owner;

	capture__stacks_spin(recording->capture);
	if (recording->trace)
		trace__spun(recording->trace, (uint32_t)pid, ts);
}

static void place_values(void *owner, pid_t pid, const struct value_image *image)
{
	struct recording *recording = owner;
	int err = capture__place_values(recording->capture, pid, image);

	if (err && image)
		log_debug("values of process %d that are in memory cannot be read: %s", pid, strerror(-err));
}

static int load_values(void *owner, const struct value_plan *plan, const struct value_part *slices)
{
	struct recording *recording = owner;

	return capture__plan_values(recording->capture, plan->ranges.items + slices->ranges.first, slices->ranges.cnt,
				    plan->reads.items + slices->reads.first, slices->reads.cnt,
				    plan->globals.items + slices->globals.first, slices->globals.cnt,
				    slices->reads.first);
}

static int meet_frame(void *owner, const struct value_step_key *key, const struct value_step *step)
{
	struct recording *recording = owner;

	return capture__step_values(recording->capture, key, step);
}

static bool is_target(void *owner, pid_t pid)
{
	const struct recording *recording = owner;

	for (size_t i = 0; i < recording->target.processes.cnt; i++)
		if (recording->target.processes.items[i].pid == pid)
			return true;
	return pid == recording->options->pid;
}

/* Reads the schemas before anything is attached to the target. */
int recording_values_open(struct recording *recording)
{
	const struct record_options *options = recording->options;
	struct sampled_values_opts opts = {
		.glob = options->values_glob,
		.debuginfo_dir = options->debuginfo_dir,
		.depth = options->values_depth,
		.append = recording_append,
		.place = place_values,
		.load = load_values,
		.meet = meet_frame,
		.is_target = is_target,
		.owner = recording,
	};
	struct sampled_values_counts counts;
	int err = 0;

	if (!options->values)
		return 0;
	if (!recording->program)
		err = recording_open_program(recording);
	if (err)
		return err;
	opts.program = recording->program;
	err = sampled_values__new(&opts, &recording->values);
	if (err) {
		log_error("cannot read the variables of process %d: %s", options->pid, strerror(-err));
		return err;
	}
	sampled_values__counts(recording->values, &counts);
	if (!counts.modules)
		log_warn("values cannot be read: nothing that the target has loaded so far has debugging "
			 "information%s%s%s. Compile it with -g, or install its -dbgsym package. Stacks, and arguments "
			 "of probed functions in the symbol list, do not need it",
			 options->values_glob ? " on '" : "", options->values_glob ? options->values_glob : "",
			 options->values_glob ? "'" : "");
	sampled_values__met(recording->values, options->pid, recording->program);
	if (!options->quiet && counts.modules)
		log_info("values: %" PRIu64 " variables of %" PRIu64 " functions, and of %u callers", counts.variables,
			 counts.functions, opts.depth);
	journal__say(&recording->journal, "values", "%s", options->values_glob ? options->values_glob : "*");
	return journal__say(&recording->journal, "values_depth", "%u", opts.depth);
}

int recording_stacks_start(struct recording *recording)
{
	struct capture_stacks capture = {
		.hz = recording_stacks_hz(recording),
		.kernel_tick = true,
		.waits = true,
		.always = recording->options->stacks_all,
	};
	uint64_t tick_ns;
	struct stacks_opts opts = {
		.pid = recording->options->pid,
		.program = recording->program,
		.append = recording_append,
		.doubt = doubt,
		.python = set_python,
		.spun = note_spin,
		.owner = recording,
		.hot = recording->hot,
	};
	int err;

	if (!capture.hz)
		return 0;
	if (!capture__survey(recording->capture)->tier[HOOK_FEATURE_STACK]) {
		log_warn("stacks cannot be sampled on this kernel: %s",
			 capture__survey(recording->capture)->missing[HOOK_FEATURE_STACK]);
		return 0;
	}
	opts.values = recording->values;
	opts.program = recording->program;
	tick_ns = capture__stack_tick_cost_ns(recording->capture);
	if (capture.hz == STACKS_HZ_BY_BUDGET)
		capture.hz = hz_by_budget(recording, tick_ns);
	err = capture__sample_stacks(recording->capture, &capture);
	opts.kernel_tick_ns = err ? 0 : capture__stacks_kernel_tick_ns(recording->capture);
	if (!err)
		err = stacks__new(&opts, &recording->stacks);
	if (err) {
		log_error("cannot sample stacks of process %d: %s", opts.pid, strerror(-err));
		capture__stop_stacks(recording->capture);
		return err;
	}
	recording->governor.clock_share = (double)capture.hz * (double)(tick_ns + COPY_NS) / 1e9;
	log_debug("stacks: our clock %u times a second and CPU, a tick takes %" PRIu64 " ns", capture.hz, tick_ns);
	journal__say(&recording->journal, "stacks_hz", "%u", capture.hz);
	if (opts.kernel_tick_ns)
		journal__say(&recording->journal, "stacks_kernel_hz", "%g", 1e9 / (double)opts.kernel_tick_ns);
	if (tick_ns)
		journal__say(&recording->journal, "stack_tick_ns", "%" PRIu64, tick_ns);
	return recording->journal.err;
}

/* A row of the table `context`. */
static int write_context(struct recording *recording, const struct wl_stack_record *record)
{
	const char *kind = handoff_name(record->state);
	struct shard_row *row = &recording->journal.row;
	struct stacks_path path = {0};
	int err = kind && recording->stacks ? stacks__path(recording->stacks, record, &path) : 0;

	if (err || !kind)
		return err;
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[CONTEXT_TS].u64 = record->ts;
	row->values[CONTEXT_ID].u64 = record->key;
	row->values[CONTEXT_PARENT].u64 = record->context;
	if (record->context == WL_CONTEXT_ID_NONE)
		shard_row__set_null(row, CONTEXT_PARENT);
	row->values[CONTEXT_KIND].str = kind;
	row->values[CONTEXT_PID].u64 = record->pid;
	row->values[CONTEXT_TID].u64 = record->tid;
	row->values[CONTEXT_PATH].u64 = path.hash;
	row->values[CONTEXT_FRAMES].str = path.frames;
	if (!path.frames) {
		shard_row__set_null(row, CONTEXT_PATH);
		shard_row__set_null(row, CONTEXT_FRAMES);
	}
	return journal__append(&recording->journal, SHARD_TABLE_CONTEXT, row);
}

/* A process runs another program, or has ended. */
static void take_task(struct recording *recording, const struct wl_task_record *record)
{
	if (record->event == WL_TASK_EXEC || (record->event == WL_TASK_EXIT && record->pid == record->tid))
		stacks__changed(recording->stacks, (pid_t)record->pid);
}

int recording_samples_take(struct recording *recording, struct taken *taken)
{
	const struct wl_stack_record *stack = (const struct wl_stack_record *)taken->header;
	const struct wl_brief_record *ended = taken->ended;

	if (taken->header->kind == WL_RECORD_STACK && stack->flags & WL_STACK_HANDOFF)
		return write_context(recording, stack);
	if (!recording->stacks)
		return 0;
	if (ended)
		return stacks__interval(recording->stacks, ended->sid, ended->begin_ts, ended->end_ts, taken->weight);
	if (taken->header->kind != WL_RECORD_TASK)
		return stacks__take(recording->stacks, taken->header);
	take_task(recording, (const struct wl_task_record *)taken->header);
	return 0;
}

/* A clock that beats with the work is no clock: what it has sampled until now is a small part. */
static int drop_beating(struct recording *recording)
{
	static const char *const what[] = {[STACK_BEAT_RATE] = "rate", [STACK_BEAT_PROFILE] = "profile"};
	enum stack_beat_kind beat = stacks__beat(recording->stacks);

	if (beat == STACK_BEAT_NONE || !capture__stacks_kernel_tick_ns(recording->capture))
		return 0;
	capture__stacks_drop_kernel_tick(recording->capture);
	log_info("stacks: the kernel's tick beats with the work (%s): from now on only the jittered clock is sampled",
		 what[beat]);
	return journal__say(&recording->journal, "stack_beat", "%s", what[beat]);
}

int recording_stacks_advance(struct recording *recording)
{
	uint64_t polled_ts = capture__polled_ts(recording->capture);
	int err;

	if (!recording->stacks)
		return 0;
	capture__stacks_jitter(recording->capture);
	err = stacks__advance(recording->stacks, polled_ts);
	if (!err && recording->values)
		err = sampled_values__advance(recording->values);
	return err ? err : drop_beating(recording);
}

int recording_stacks_finish(struct recording *recording)
{
	int err = recording->stacks ? stacks__finish(recording->stacks) : 0;

	return !err && recording->stacks && recording->values ? sampled_values__finish(recording->values) : err;
}

static int write_value_counts(struct recording *recording, uint64_t crowded)
{
	struct sampled_values_counts counts;

	sampled_values__counts(recording->values, &counts);
	const struct {
		const char *key;
		uint64_t cnt;
	} facts[] = {
		{"values_read", counts.reads.read},
		{"values_kept", counts.written},
		{"values_no_register", counts.reads.no_register},
		{"values_no_memory", counts.reads.no_memory},
		{"values_not_set", counts.reads.not_set},
		{"values_frames_without_schema", counts.no_schema},
		{"values_samples_crowded", crowded},
		{"values_faulted", counts.faulted},
		{"values_globals", counts.globals},
		{"values_left_out", counts.left_out},
		{"values_no_frame", counts.no_frame},
		{"values_callers", counts.callers},
		{"values_callers_in_turn", counts.callers_in_turn},
		{"values_callers_left_out", counts.callers_left_out},
		{"values_crowded", counts.crowded},
		{"values_modules", counts.modules},
		{"values_modules_left_out", counts.modules_left_out},
		{"values_parts", counts.parts},
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		journal__say(&recording->journal, facts[i].key, "%" PRIu64, facts[i].cnt);
	return recording->journal.err;
}

int recording_stacks_write_counts(struct recording *recording)
{
	struct stack_sample_counts counts;

	if (!recording->stacks)
		return 0;
	stacks__counts(recording->stacks, &counts);
	const struct {
		const char *key;
		uint64_t cnt;
	} facts[] = {
		{"stack_records", counts.stacks},
		{"stack_waits", counts.waits},
		{"stacks_complete", counts.complete},
		{"stacks_guessed", counts.guessed},
		{"stack_samples", counts.taken},
		{"stack_samples_kept", counts.given},
		{"stack_samples_crowded", counts.crowded},
		{"stack_keys", counts.keys},
		{"stack_checks", counts.checks},
		{"stack_checks_wrong", counts.wrong},
		{"stack_keys_wrong", counts.wrong_keys},
		{"stack_waits_unknown", counts.unknown},
		{"stack_python", stacks__python_cnt(recording->stacks)},
		{"stack_python_missed", stacks__python_missed_cnt(recording->stacks)},
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		journal__say(&recording->journal, facts[i].key, "%" PRIu64, facts[i].cnt);
	return !recording->values ? recording->journal.err : write_value_counts(recording, counts.values_crowded);
}

static void say_values(const struct recording *recording)
{
	struct sampled_values_counts counts;

	sampled_values__counts(recording->values, &counts);
	log_info("values: %" PRIu64 " read, %" PRIu64 " kept; %" PRIu64 " in registers that are not known, %" PRIu64
		 " in memory that was not read, %" PRIu64 " reads faulted",
		 counts.reads.read, counts.written, counts.reads.no_register, counts.reads.no_memory, counts.faulted);
}

/* Frames without names that are worth a line: fewer, and no call path lacks much. */
#define UNNAMED_MANY 20

static int write_made_note(struct recording *recording)
{
	struct stacks_made made;

	stacks__made(recording->stacks, &made);
	if (made.unnamed < UNNAMED_MANY || made.unnamed < made.named / 10)
		return 0;
	if (made.runtime == RUNTIME_NONE)
		return journal__note(&recording->journal,
				     "process %d runs code that it has made itself, which has names only where a "
				     "/tmp/perf-%d.map says them",
				     made.pid, made.pid);
	return journal__note(&recording->journal,
			     "code that the JIT compiler of process %d (%s) has made has no names in call paths: %s",
			     made.pid, runtime_name(made.runtime), runtime_advice(made.runtime, made.has_map));
}

/* Likewise of stacks of Python processes that show the interpreter's own functions only. */
static int write_python_note(struct recording *recording)
{
	uint64_t with = stacks__python_cnt(recording->stacks), without = stacks__python_missed_cnt(recording->stacks);

	if (without < UNNAMED_MANY || without < with / 10)
		return 0;
	return journal__note(&recording->journal,
			     "%" PRIu64 " of %" PRIu64 " stacks of Python processes have no Python functions: those of "
			     "threads without any, and of processes that began during the recording",
			     without, with + without);
}

int recording_stacks_write_note(struct recording *recording)
{
	int err = recording->stacks ? write_made_note(recording) : 0;

	return err || !recording->stacks ? err : write_python_note(recording);
}

void recording_stacks_say(const struct recording *recording)
{
	struct stack_sample_counts counts;

	if (!recording->stacks)
		return;
	stacks__counts(recording->stacks, &counts);
	log_info("stacks: %" PRIu64 " copied, %" PRIu64 " waits; %.1f %% up to the beginning of their thread, %.1f %% "
		 "with guessed frames",
		 counts.stacks, counts.waits, counts.stacks ? 100.0 * counts.complete / counts.stacks : 0,
		 counts.stacks ? 100.0 * counts.guessed / counts.stacks : 0);
	if (recording->values)
		say_values(recording);
	if (counts.keys)
		log_info("stacks: %" PRIu64 " keys of waits; of %" PRIu64 " checks %" PRIu64
			 " found another stack, at %" PRIu64 " keys",
			 counts.keys, counts.checks, counts.wrong, counts.wrong_keys);
	if (counts.unknown || counts.crowded || counts.impossible)
		log_info("stacks: the stacks of %" PRIu64 " waits are not known; no room for %" PRIu64
			 " samples until their request ended; %" PRIu64 " records cannot be true",
			 counts.unknown, counts.crowded, counts.impossible);
}
