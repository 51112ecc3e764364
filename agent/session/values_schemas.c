// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whose variables are read: schemas of what the target has loaded, made at the start, and by a thread of their own for
 * what it loads later, for its children and for its other programs; and which of them are in the kernel.
 */
#include "session/values_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "values/schema_make.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* So long a part of what does not fit into the kernel stays there. */
#define TURN_NS 1000000000ULL
/* Files that wait for their schema, and are still there when the process is gone. */
#define WISH_FDS_MAX 32

/* --- what the kernel reads ---------------------------------------------------------------------------------------- */

static struct value_slice join(struct value_slice a, struct value_slice b)
{
	return a.cnt ? (struct value_slice){a.first, a.cnt + b.cnt} : b;
}

/* The slices of the parts that are in the kernel, of one module or (NO_MODULE) of all. */
static struct value_part resident(const struct sampled_values *values, uint32_t module)
{
	struct value_part whole = {.module = module};

	for (uint32_t p = values->first_part; p < values->first_part + values->part_cnt; p++) {
		const struct value_part *part = &values->plan.parts.items[p];

		if (module != NO_MODULE && part->module != module)
			continue;
		whole.ranges = join(whole.ranges, part->ranges);
		whole.reads = join(whole.reads, part->reads);
		whole.globals = join(whole.globals, part->globals);
	}
	return whole;
}

/* The addresses outside of which nothing is read relative to registers are those of the ranges. */
static void place(struct sampled_values *values, const struct met *met)
{
	struct value_part whole = resident(values, NO_MODULE);
	const struct value_range *ranges = values->plan.ranges.items;
	struct value_image image = {.program = met->program};

	if (!met->placed.cnt || !values->opts.place)
		return;
	for (size_t i = 0; i < met->placed.cnt; i++) {
		const struct placed *placed = &met->placed.items[i];
		struct value_slice own = resident(values, placed->module).ranges;

		image.modules[placed->module] = (struct value_module){
			.begin = placed->bias + (own.cnt ? ranges[own.first].begin : 0),
			.end = placed->bias + (own.cnt ? ranges[own.first + own.cnt - 1].end : 1),
			.bias = placed->bias,
			.first_range = own.cnt ? own.first - whole.ranges.first : 0,
			.range_cnt = own.cnt,
		};
	}
	values->opts.place(values->opts.owner, met->pid, &image);
}

static int note_turn(struct sampled_values *values, uint32_t part, bool is_read)
{
	return vec_push(&values->turns, ((struct turn){monotonic_ns(), part, is_read}));
}

/* A part without reads is of variables that need none. */
static bool takes_turns(const struct sampled_values *values, uint32_t part)
{
	return values->plan.parts.items[part].reads.cnt || values->plan.parts.items[part].globals.cnt;
}

struct parts {
	uint32_t first, cnt;
};

/* Those of `some` that are not among the others. */
static int note_turns(struct sampled_values *values, struct parts some, struct parts others, bool is_read)
{
	int err = 0;

	for (uint32_t p = some.first; p < some.first + some.cnt && !err; p++)
		if (takes_turns(values, p) && !(p >= others.first && p - others.first < others.cnt))
			err = note_turn(values, p, is_read);
	return err;
}

/*
 * The parts from `first` on are in the kernel from now on.  What it reads meanwhile, by half of the one and half of the
 * other, is what lies at an address, and that is how values are found.
 */
static int load(struct sampled_values *values, uint32_t first)
{
	const struct value_plan *plan = &values->plan;
	struct parts before = {values->first_part, values->part_cnt}, now = {first, value_plan_fits(plan, first)};
	struct value_part whole;
	int err = note_turns(values, before, now, false);

	values->first_part = now.first;
	values->part_cnt = now.cnt;
	values->turned_ts = monotonic_ns();
	whole = resident(values, NO_MODULE);
	if (!err && values->opts.load)
		err = values->opts.load(values->opts.owner, plan, &whole);
	for (size_t m = 0; m < values->met.cnt && !err; m++)
		place(values, &values->met.items[m]);
	return err ? err : note_turns(values, now, before, true);
}

const struct value_plan *sampled_values__plan(const struct sampled_values *values)
{
	return &values->plan;
}

/* --- schemas ------------------------------------------------------------------------------------------------------ */

static void module__free(struct module *module)
{
	if (!module)
		return;
	value_reader__free(module->reader);
	if (module->dwarf_fd >= 0)
		close(module->dwarf_fd);
	value_schema_free(&module->schema);
	free(module->planned);
	free(module->name);
	free(module);
}

/* What has been made of a file. */
struct made {
	struct value_schema schema;
	int dwarf_fd; /* -1: none */
};

static void made__free(struct made *made)
{
	value_schema_free(&made->schema);
	if (made->dwarf_fd >= 0)
		close(made->dwarf_fd);
	made->dwarf_fd = -1;
}

/* Takes what has been made.  0 or -errno. */
static int add_module(struct sampled_values *values, struct made *made, const char *name, bool is_late)
{
	struct module *module = calloc(1, sizeof(*module));
	size_t cnt = made->schema.variables.cnt;
	int err = 0;

	if (!module) {
		made__free(made);
		return -ENOMEM;
	}
	module->schema = made->schema;
	module->dwarf_fd = made->dwarf_fd;
	module->first = (uint32_t)values->variables.cnt;
	module->name = strdup(name);
	module->planned = calloc(cnt + 1, sizeof(*module->planned));
	err = module->name && module->planned ? value_reader__new(&module->schema, &module->reader) : -ENOMEM;
	if (!err)
		err = value_plan_add(&values->plan, &module->schema, (uint32_t)values->modules.cnt, module->planned);
	/* What needs no reads is there from now on. */
	if (!err && is_late)
		err = value_plan_add_empty(&values->plan, (uint32_t)values->modules.cnt);
	if (!err && is_late)
		err = note_turn(values, (uint32_t)values->plan.parts.cnt - 1, true);
	for (size_t v = 0; v < cnt && !err && is_late; v++)
		if (module->planned[v].part == VALUE_NO_PART)
			module->planned[v].part = (uint32_t)values->plan.parts.cnt - 1;
	if (!err)
		err = vec_reserve(&values->variables, cnt);
	if (!err)
		err = vec_push(&values->modules, module);
	if (err) {
		module__free(module);
		return err;
	}
	memset(values->variables.items + values->variables.cnt, 0, cnt);
	values->variables.cnt += cnt;
	values->counts.variables += cnt;
	values->counts.functions += module->schema.functions;
	return 0;
}

static struct value_schema_opts schema_opts(const struct sampled_values *values, const char *path, struct made *made)
{
	made->dwarf_fd = -1;
	return (struct value_schema_opts){.path = path,
					  .debuginfo_dir = values->opts.debuginfo_dir,
					  .either = values->opts.glob,
					  .cached = true,
					  .dwarf_fd = &made->dwarf_fd};
}

/* Does it have variables, and is its build not among the modules? The same build may be at several places. */
static bool is_new(const struct sampled_values *values, const struct value_schema *schema, uint32_t *module)
{
	if (!schema->variables.cnt)
		return false;
	for (size_t m = 0; m < values->modules.cnt && *schema->build_id; m++) {
		if (strcmp(values->modules.items[m]->schema.build_id, schema->build_id))
			continue;
		*module = (uint32_t)m;
		return false;
	}
	return true;
}

/* It is taken, or freed. */
static int take_made(struct sampled_values *values, struct made *made, uint32_t file, const char *name, bool is_late)
{
	int err = 0;

	sampled_values_say_split(name, &made->schema);
	if (!is_new(values, &made->schema, &values->files.items[file].module)) {
		made__free(made);
	} else if (values->modules.cnt == VALUE_MODULES_MAX) {
		values->counts.modules_left_out++;
		made__free(made);
	} else {
		values->files.items[file].module = (uint32_t)values->modules.cnt;
		err = add_module(values, made, name, is_late);
	}
	return err;
}

/* --- a thread for those that are made later ----------------------------------------------------------------------- */

struct schema_worker {
	struct value_schema_opts opts;
	struct schema_wish wish;
	struct made made;
	int err;
	atomic_bool done, stop;
	pthread_t thread;
};

static void *make_schema(void *ctx)
{
	struct schema_worker *worker = ctx;
	char by_fd[32];

	prctl(PR_SET_NAME, "whylate-schema");
	worker->err = value_schema_make(&worker->made.schema, &worker->opts);
	/* Beside its own path there may be a debug file; beside this one there is none. */
	if (worker->err == -ENOENT && worker->wish.fd >= 0) {
		snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", worker->wish.fd);
		worker->opts.path = by_fd;
		made__free(&worker->made);
		worker->err = value_schema_make(&worker->made.schema, &worker->opts);
	}
	atomic_store_explicit(&worker->done, true, memory_order_release);
	return NULL;
}

static void wish__free(struct schema_wish *wish)
{
	if (wish->fd >= 0)
		close(wish->fd);
	free(wish->path);
	free(wish->name);
}

static int start_worker(struct sampled_values *values)
{
	struct schema_worker *worker = calloc(1, sizeof(*worker));
	sigset_t all, before;
	int err;

	if (!worker)
		return -ENOMEM;
	worker->wish = values->wishes.items[--values->wishes.cnt];
	worker->opts = schema_opts(values, worker->wish.path, &worker->made);
	worker->opts.stop = &worker->stop;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&worker->thread, NULL, make_schema, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		log_debug("values: %s: no thread: %s", worker->wish.name, strerror(-err));
		wish__free(&worker->wish);
		free(worker);
		return err == -ENOMEM ? err : 0;
	}
	values->worker = worker;
	return 0;
}

/* Its schema is taken, or was freed. */
static void schema_worker__free(struct schema_worker *worker)
{
	wish__free(&worker->wish);
	free(worker);
}

/* Takes what the thread has made, and gives it the next one. */
static int tend_worker(struct sampled_values *values)
{
	struct schema_worker *worker = values->worker;
	size_t before = values->modules.cnt;
	int err = 0;

	if (worker && atomic_load_explicit(&worker->done, memory_order_acquire)) {
		pthread_join(worker->thread, NULL);
		values->worker = NULL;
		log_debug("values: %s: %zu variables", worker->wish.path, worker->made.schema.variables.cnt);
		if (worker->err) {
			sampled_values_say_unread(worker->wish.path, worker->err);
			made__free(&worker->made);
		} else {
			err = take_made(values, &worker->made, worker->wish.file, worker->wish.name, true);
		}
		schema_worker__free(worker);
	}
	if (!err && values->modules.cnt > before)
		err = load(values, values->first_part);
	return !err && !values->worker && values->wishes.cnt ? start_worker(values) : err;
}

int sampled_values__advance(struct sampled_values *values)
{
	uint32_t next = values->first_part + values->part_cnt;
	int err = tend_worker(values);

	if (!err && values->part_cnt < values->plan.parts.cnt && monotonic_ns() - values->turned_ts >= TURN_NS)
		err = load(values, next < values->plan.parts.cnt ? next : 0);
	if (!err)
		err = sampled_values__write_places(values, false);
	return err ? err : sampled_values__write_turns(values);
}

/* --- files and processes ------------------------------------------------------------------------------------------ */

/* By device and inode; UINT32_MAX: it cannot be reached. */
static uint32_t find_file(struct sampled_values *values, const char *path, bool *is_new_file, int *err)
{
	struct known_file file = {.module = NO_MODULE};
	struct stat st;

	*is_new_file = false;
	if (!path || stat(path, &st))
		return UINT32_MAX;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	for (size_t f = 0; f < values->files.cnt; f++)
		if (values->files.items[f].dev == file.dev && values->files.items[f].ino == file.ino)
			return (uint32_t)f;
	*err = vec_push(&values->files, file);
	*is_new_file = !*err;
	return *err ? UINT32_MAX : (uint32_t)values->files.cnt - 1;
}

static bool is_left_out(const struct sampled_values *values, const struct program_module *of)
{
	return !values->opts.glob && sampled_values_is_runtime(of->name);
}

static int add_at_start(struct sampled_values *values, const struct program_module *of)
{
	struct made made;
	struct value_schema_opts opts = schema_opts(values, of->file, &made);
	bool is_new_file;
	int err = 0;
	uint32_t file = find_file(values, of->file, &is_new_file, &err);

	if (file == UINT32_MAX || !is_new_file || is_left_out(values, of))
		return err;
	err = value_schema_make(&made.schema, &opts);
	if (!err)
		return take_made(values, &made, file, of->name, false);
	sampled_values_say_unread(of->path, err);
	made__free(&made);
	return err == -ENOMEM ? err : 0;
}

int sampled_values__new(const struct sampled_values_opts *opts, struct sampled_values **made)
{
	struct sampled_values *values = calloc(1, sizeof(*values));
	uint32_t cnt = program__module_cnt(opts->program);
	int err = 0;

	if (!values)
		return -ENOMEM;
	values->opts = *opts;
	values->plan.limits = opts->limits;
	for (uint32_t m = 0; m < cnt && !err; m++)
		err = add_at_start(values, program__module(opts->program, m));
	if (!err && values->plan.parts.cnt)
		err = load(values, 0);
	if (err) {
		sampled_values__free(values);
		return err;
	}
	*made = values;
	return 0;
}

static void met__free(struct met *met)
{
	vec_free(&met->placed);
}

void sampled_values__free(struct sampled_values *values)
{
	if (!values)
		return;
	if (values->worker) {
		atomic_store(&values->worker->stop, true);
		pthread_join(values->worker->thread, NULL);
		made__free(&values->worker->made);
		schema_worker__free(values->worker);
	}
	for (size_t w = 0; w < values->wishes.cnt; w++)
		wish__free(&values->wishes.items[w]);
	for (size_t m = 0; m < values->modules.cnt; m++)
		module__free(values->modules.items[m]);
	for (size_t p = 0; p < values->places.cnt; p++)
		free(values->places.items[p].function);
	for (size_t m = 0; m < values->met.cnt; m++)
		met__free(&values->met.items[m]);
	vec_free(&values->modules);
	vec_free(&values->files);
	vec_free(&values->wishes);
	vec_free(&values->variables);
	vec_free(&values->places);
	vec_free(&values->late);
	symbols__free(values->lines);
	vec_free(&values->met);
	vec_free(&values->turns);
	vec_free(&values->frames);
	idmap__free(&values->frame_ids);
	value_plan_free(&values->plan);
	idmap__free(&values->place_ids);
	free(values);
}

static size_t index_of(const struct sampled_values *values, pid_t pid)
{
	size_t i = 0;

	while (i < values->met.cnt && values->met.items[i].pid != pid)
		i++;
	return i;
}

const struct met *sampled_values__met_as(const struct sampled_values *values, pid_t pid)
{
	size_t i = index_of(values, pid);

	return i < values->met.cnt && values->met.items[i].placed.cnt ? &values->met.items[i] : NULL;
}

void sampled_values__changed(struct sampled_values *values, pid_t pid)
{
	size_t i = index_of(values, pid);

	if (i < values->met.cnt) {
		met__free(&values->met.items[i]);
		values->met.items[i] = values->met.items[--values->met.cnt];
	}
	if (values->opts.place)
		values->opts.place(values->opts.owner, pid, NULL);
}

/* Changes with what the process has mapped, and with what is known of that. */
static uint64_t signature_of(const struct sampled_values *values, struct program *program)
{
	uint64_t sum = random_mix(values->modules.cnt) + (uintptr_t)program;

	for (uint32_t m = 0; m < program__module_cnt(program); m++) {
		const struct program_module *of = program__module(program, m);

		sum += random_mix(of->bias * 2 + of->gone + ((uint64_t)m << 48));
	}
	return sum;
}

/* What is known of frames holds for all processes with the same code. */
static void number_program(struct sampled_values *values, struct met *met)
{
	for (size_t i = 0; i < values->met.cnt; i++) {
		const struct met *other = &values->met.items[i];

		if (other != met && other->signature == met->signature && other->program) {
			met->program = other->program;
			return;
		}
	}
	met->program = ++values->program_seq;
}

static int wish_for(struct sampled_values *values, const struct program_module *of, uint32_t file)
{
	struct schema_wish wish = {.file = file, .path = strdup(of->file), .fd = -1, .name = strdup(of->name)};
	int err;

	if (wish.path && values->wishes.cnt < WISH_FDS_MAX)
		wish.fd = open(wish.path, O_PATH | O_CLOEXEC);
	err = wish.path && wish.name ? vec_push(&values->wishes, wish) : -ENOMEM;

	if (err)
		wish__free(&wish);
	return err;
}

/* Where the process through which the file was reached is gone: another one that shares its program has it, too. */
static uint32_t module_of_build(const struct sampled_values *values, const struct program_module *of)
{
	for (size_t m = 0; m < values->modules.cnt && of->build_id && *of->build_id; m++)
		if (!strcmp(values->modules.items[m]->schema.build_id, of->build_id))
			return (uint32_t)m;
	return NO_MODULE;
}

static int look_at_module(struct sampled_values *values, struct met *met, const struct program_module *of,
			  bool is_target)
{
	bool is_new_file;
	int err = 0;
	uint32_t file, module;

	if (of->gone || of->awaited)
		return 0;
	file = find_file(values, of->file, &is_new_file, &err);
	if (err)
		return err;
	if (is_new_file && is_target && is_left_out(values, of))
		return 0;
	if (is_new_file && is_target)
		return wish_for(values, of, file);
	/* Another process may have it first, and the target later. */
	if (is_new_file)
		values->files.cnt--;
	module = file == UINT32_MAX ? module_of_build(values, of) : NO_MODULE;
	if (file != UINT32_MAX && !is_new_file)
		module = values->files.items[file].module;
	if (module != NO_MODULE)
		return vec_push(&met->placed, ((struct placed){.of = of->idx, .module = module, .bias = of->bias}));
	return 0;
}

bool sampled_values__met(struct sampled_values *values, pid_t pid, struct program *program)
{
	size_t i = index_of(values, pid);
	uint64_t signature;
	bool is_target;
	int err = 0;

	if (!program)
		return false;
	signature = signature_of(values, program);
	if (i < values->met.cnt && values->met.items[i].signature == signature)
		return values->met.items[i].placed.cnt;
	if (i == values->met.cnt && vec_push(&values->met, ((struct met){.pid = pid})))
		return false;
	values->met.items[i].signature = signature;
	values->met.items[i].placed.cnt = 0;
	is_target = !values->opts.is_target || values->opts.is_target(values->opts.owner, pid);
	for (uint32_t m = 0; m < program__module_cnt(program) && !err; m++)
		err = look_at_module(values, &values->met.items[i], program__module(program, m), is_target);
	number_program(values, &values->met.items[i]);
	/* Without memory it is met again. */
	if (err)
		values->met.items[i].signature = 0;
	place(values, &values->met.items[i]);
	return values->met.items[i].placed.cnt;
}

void sampled_values__counts(const struct sampled_values *values, struct sampled_values_counts *counts)
{
	*counts = values->counts;
	counts->modules = values->modules.cnt;
	counts->parts = values->plan.parts.cnt;
	counts->globals = values->plan.globals.cnt;
	counts->left_out = values->plan.left_out;
	counts->no_frame = values->plan.no_frame;
}
