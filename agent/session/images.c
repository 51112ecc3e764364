// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/images_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "session/past_program.h"
#include "target/elf_reader.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that the code of other processes than the target may take. */
#define OTHERS_SZ_MAX (16 << 20)
/* A program with more code than this would take more than that while it is read. */
#define CODE_SZ_MAX (32 << 20)
/* A process is looked at again, when its stacks lead nowhere, not more often than this. */
#define LOOK_EVERY_NS 1000000000ULL
/* Processes that cannot be looked at are forgotten when there are so many. */
#define PROCESSES_MANY 1024
/* Processes of which the names of JIT code are known at a time: each takes half a megabyte and more. */
#define MADE_MAX 16

/* Interpreters of Python that are looked for before a stack of theirs is there, and for so long. */
#define PYTHONS_MAX 32
#define PYTHONS_NS  200000000ULL

/* The file that the process was started from, or nearly: that of its first code. NULL: it has none. */
static const struct target_mapping *first_code(const target_mappings *mappings)
{
	for (size_t i = 0; i < mappings->cnt; i++)
		if (mappings->items[i].exec && mappings->items[i].ino)
			return &mappings->items[i];
	return NULL;
}

bool images__is_too_large(const struct images *images, const target_mappings *mappings)
{
	const struct target_mapping *code = first_code(mappings);
	uint64_t code_sz = 0;

	for (size_t i = 0; i < mappings->cnt; i++)
		if (mappings->items[i].exec && mappings->items[i].ino && !mapping_is_made_code(&mappings->items[i]))
			code_sz += mappings->items[i].end - mappings->items[i].start;
	if (code_sz > CODE_SZ_MAX)
		return true;
	for (uint32_t i = 0; code && i < images->too_large_cnt && i < TOO_LARGE_MAX; i++)
		if (images->too_large[i].dev == code->dev && images->too_large[i].ino == code->ino)
			return true;
	return false;
}

static void image__free(struct image *image)
{
	if (!image)
		return;
	unwinder__free(image->unwinder);
	if (image->own_program)
		program__free(image->program);
	free(image);
}

/* The target's files are read for it alone. */
static struct file_tables *tables_of(struct images *images, const struct image *image, pid_t pid)
{
	return pid == images->opts.pid && !image->is_past ? NULL : images->tables;
}

static int open_program(struct images *images, struct image *image, pid_t pid, const target_mappings *mappings)
{
	const struct program_opts opts = {.debuginfo_dir = images->opts.debuginfo_dir,
					  .names_only = true,
					  .tables = tables_of(images, image, pid)};

	return image->is_past ? program__open_mapped(pid, mappings, &opts, &image->program)
			      : program__open(pid, &opts, &image->program);
}

int image__new(struct images *images, pid_t pid, bool is_past, target_mappings *mappings, struct image **made)
{
	struct image *image = calloc(1, sizeof(*image));
	const struct target_mapping *code;
	int err;

	if (!image) {
		target_mappings_free(mappings);
		return -ENOMEM;
	}
	image->is_past = is_past;
	if (target_program_name(pid, image->name, sizeof(image->name)))
		image->name[0] = '\0';
	image->runtime = runtime_of(mappings, NULL);
	code = first_code(mappings);
	if (code) {
		image->dev = code->dev;
		image->ino = code->ino;
	}
	err = unwinder__new(pid, mappings, tables_of(images, image, pid), &image->unwinder);
	if (err) {
		free(image);
		return err;
	}
	if (pid == images->opts.pid && images->opts.program && !is_past) {
		image->program = images->opts.program;
	} else {
		err = open_program(images, image, pid, unwinder__mappings(image->unwinder));
		image->own_program = !err;
		if (err) {
			log_debug("no symbols of process %d: %s", pid, strerror(-err));
			image->program = NULL;
		}
	}
	*made = image;
	return 0;
}

/* The one that was not used for longest; the target's own stays, and one more.  NULL: there is no other. */
static struct image **oldest_other(struct images *images, const struct image *but)
{
	struct image **oldest = NULL;

	for (int i = 1; i < IMAGES_MAX; i++) {
		struct image **place = &images->images[i];

		if (*place && *place != but && (!oldest || (*place)->used_ts < (*oldest)->used_ts))
			oldest = place;
	}
	return oldest;
}

static void drop_image(struct images *images, struct image **place)
{
	images__drop_layouts(images, *place, NULL);
	for (size_t i = 0; i < images->processes.cnt; i++)
		if (images->processes.items[i].image == *place)
			images->processes.items[i].image = NULL;
	image__free(*place);
	*place = NULL;
}

struct image **images__room(struct images *images)
{
	struct image **place;

	for (int i = 1; i < IMAGES_MAX; i++)
		if (!images->images[i])
			return &images->images[i];
	place = oldest_other(images, NULL);
	drop_image(images, place);
	return place;
}

static size_t programs_sz(const struct images *images)
{
	size_t sz = 0;

	for (int i = 1; i < IMAGES_MAX; i++)
		if (images->images[i] && images->images[i]->program)
			sz += program__sz(images->images[i]->program);
	return sz;
}

/* Files without a process go before images, and those before the image itself. */
static void make_room(struct images *images, struct image_process *process)
{
	struct image *image = process->image;
	struct image **place;
	size_t sz;

	while ((sz = programs_sz(images) + file_tables__sz(images->tables)) > OTHERS_SZ_MAX) {
		if (file_tables__drop(images->tables))
			continue;
		place = oldest_other(images, image);
		if (!place) {
			images->too_large[images->too_large_cnt % TOO_LARGE_MAX].dev = image->dev;
			images->too_large[images->too_large_cnt++ % TOO_LARGE_MAX].ino = image->ino;
			log_debug("the symbols of process %d take %zu MiB: its stacks are not unwound", process->pid,
				  sz >> 20);
			place = oldest_other(images, NULL);
		}
		if (!place)
			return;
		drop_image(images, place);
	}
}

void images__used(struct images *images, struct image_process *process, uint64_t ts)
{
	uint64_t filled = programs_sz(images) + elf_reader_cnt();

	process->image->used_ts = ts;
	if (process->layout)
		process->layout->used_ts = ts;
	if (process->image == images->images[0] || filled == images->filled)
		return;
	images->filled = filled;
	make_room(images, process);
}

static bool is_its_own(const struct images *images, const struct image_process *process)
{
	if (!process->image)
		return false;
	for (size_t i = 0; i < images->processes.cnt; i++)
		if (images->processes.items[i].image == process->image && &images->processes.items[i] != process)
			return false;
	return true;
}

static int image__refresh(struct image *image)
{
	if (image->program)
		program__refresh(image->program);
	return unwinder__refresh(image->unwinder);
}

int image__move(struct image *image, pid_t pid, const target_mappings *mappings)
{
	target_mappings copy;
	int err = target_mappings_copy(mappings, &copy);

	image->layout = NULL;
	if (!err)
		err = unwinder__move(image->unwinder, pid, &copy);
	if (!err && image->program)
		err = program__move(image->program, pid, mappings);
	return err;
}

/* The process has loaded something since it was looked at.  Takes the mappings. */
static void renew(struct images *images, struct image_process *process, target_mappings *mappings)
{
	struct layout *layout = process->layout;

	images__drop_layouts(images, process->image, layout);
	target_mappings_free(&layout->mappings);
	layout->mappings = *mappings;
	/* A program may become one that embeds a runtime. */
	process->image->runtime = runtime_of(mappings, NULL);
	process->image->layout = NULL;
}

/* Takes the mappings. */
static int make_image(struct images *images, struct image_process *process, target_mappings *mappings)
{
	target_mappings copy;
	struct image **place;
	int err = target_mappings_copy(mappings, &copy);

	if (!err) {
		place = images__room(images);
		err = image__new(images, process->pid, false, &copy, place);
	}
	if (err) {
		target_mappings_free(mappings);
		return err;
	}
	images__lay_out(images, process, *place, mappings);
	(*place)->layout = process->layout;
	return 0;
}

/* The target has no other than its own image, whose numbers stay good, whatever it loads.  Takes the mappings. */
static int look_at_target(struct images *images, struct image_process *process, target_mappings *mappings)
{
	struct image *image = images->images[0];
	int err;

	if (image) {
		image->runtime = runtime_of(mappings, NULL);
		target_mappings_free(mappings);
		err = image__refresh(image);
	} else {
		err = image__new(images, process->pid, false, mappings, &images->images[0]);
		image = images->images[0];
	}
	process->image = image;
	process->layout = NULL;
	return err;
}

/* The image that the process is of, as it is mapped now: 0 or -errno. */
static int find_image(struct images *images, struct image_process *process)
{
	target_mappings mappings = {0};
	struct layout *layout;
	struct image *like;
	int err = target_mappings_read(process->pid, &mappings);

	if (err)
		return err;
	if (images->images[0] && target_mappings_fit(unwinder__mappings(images->images[0]->unwinder), &mappings)) {
		process->image = images->images[0];
		process->layout = NULL;
	} else if (process->pid == images->opts.pid) {
		return look_at_target(images, process, &mappings);
	} else if ((layout = images__layout(images, &mappings))) {
		process->image = layout->image;
		process->layout = layout;
	} else if ((like = images__like(images, process->pid, &mappings))) {
		images__lay_out(images, process, like, &mappings);
		return 0;
	} else if (process->layout && is_its_own(images, process)) {
		renew(images, process, &mappings);
		return 0;
	} else if (images__is_too_large(images, &mappings)) {
		err = -EFBIG;
	} else {
		return make_image(images, process, &mappings);
	}
	target_mappings_free(&mappings);
	return err;
}

/* A program that is linked with the interpreter is called as it likes. */
static bool may_be_python(enum runtime runtime)
{
	return runtime == RUNTIME_NONE || runtime_is_python(runtime);
}

/* If it is an interpreter of Python, its frames are read from now on. */
static void find_python(struct images *images, struct image_process *process)
{
	target_mappings own = {0};
	int err = 0;

	if (process->python || (process->image && !may_be_python(process->image->runtime)))
		return;
	if (!process->image)
		err = target_mappings_read(process->pid, &own);
	if (!err)
		err = python__open(process->pid, process->image ? unwinder__mappings(process->image->unwinder) : &own,
				   &process->python);
	target_mappings_free(&own);
	if (!err && images->opts.python)
		images->opts.python(images->opts.owner, process->pid, python__layout(process->python));
	process->python_begins = err == -EAGAIN;
	if (err && err != -ENOENT && !process->python_said)
		log_debug("no Python frames of process %d: %s", process->pid, strerror(-err));
	process->python_said = err && err != -ENOENT;
}

static int look_at(struct images *images, struct image_process *process)
{
	int err = find_image(images, process);

	if (!err)
		err = image_process__move(process);
	if (err)
		process->image = NULL;
	process->looked_ts = monotonic_ns();
	if (process->image)
		find_python(images, process);
	return err == -ENOMEM ? err : 0;
}

static void drop_names(struct images *images, struct image_process *process)
{
	images->made_cnt -= process->made != NULL;
	perf_map__free(process->made);
	process->made = NULL;
	if (process->python && images->opts.python)
		images->opts.python(images->opts.owner, process->pid, NULL);
	python__free(process->python);
	process->python = NULL;
}

static bool is_known(const struct images *images, pid_t pid)
{
	for (size_t i = 0; i < images->processes.cnt; i++)
		if (images->processes.items[i].pid == pid)
			return true;
	return false;
}

/* Those that were gone before they were looked at. */
static void forget_lost(struct images *images)
{
	size_t kept = 0;

	for (size_t i = 0; i < images->processes.cnt; i++) {
		if (images->processes.items[i].image)
			images->processes.items[kept++] = images->processes.items[i];
		else
			drop_names(images, &images->processes.items[i]);
	}
	images->processes.cnt = kept;
}

int images__process(struct images *images, pid_t pid, struct image_process **found)
{
	struct image_process process = {.pid = pid};
	size_t i;

	for (i = 0; i < images->processes.cnt && images->processes.items[i].pid != pid; i++)
		;
	if (i == images->processes.cnt) {
		if (i >= PROCESSES_MANY)
			forget_lost(images);
		i = images->processes.cnt;
		if (vec_push(&images->processes, process))
			return -ENOMEM;
	}
	*found = &images->processes.items[i];
	if (((*found)->image && !(*found)->python_begins) || monotonic_ns() - (*found)->looked_ts < LOOK_EVERY_NS)
		return image_process__move(*found);
	return look_at(images, *found);
}

int images__look_again(struct images *images, struct image_process *process)
{
	struct image *image = process->image;
	int err;

	if (monotonic_ns() - process->looked_ts <= LOOK_EVERY_NS)
		return 0;
	err = look_at(images, process);
	if (err)
		return err;
	/* Gone since: what was known of it holds. */
	if (!process->image && (process->layout ? process->layout->image == image : image == images->images[0]))
		process->image = image;
	return process->image != NULL;
}

void images__changed(struct images *images, pid_t pid)
{
	for (size_t i = 0; i < images->processes.cnt; i++) {
		if (images->processes.items[i].pid != pid)
			continue;
		drop_names(images, &images->processes.items[i]);
		images->processes.items[i--] = images->processes.items[--images->processes.cnt];
	}
}

int images__find_pythons(struct images *images)
{
	uint64_t end_ts = monotonic_ns() + PYTHONS_NS;
	pid_t pids[PYTHONS_MAX];
	size_t cnt = python_processes(pids, PYTHONS_MAX);

	for (size_t i = 0; i < cnt && monotonic_ns() < end_ts; i++) {
		struct image_process process = {.pid = pids[i]};

		if (is_known(images, pids[i]))
			continue;
		find_python(images, &process);
		if (process.python && vec_push(&images->processes, process)) {
			drop_names(images, &process);
			return -ENOMEM;
		}
	}
	return 0;
}

struct image *images__target(const struct images *images)
{
	return images->images[0];
}

const char *images__made_name(struct images *images, struct image_process *process, uint64_t addr, uint64_t ts)
{
	if (!process->made) {
		process->made = images->made_cnt < MADE_MAX ? perf_map__new(process->pid) : NULL;
		if (!process->made)
			return NULL;
		images->made_cnt++;
	}
	/* Out of memory: the names that are known remain. */
	(void)perf_map__refresh(process->made, monotonic_ns());
	return perf_map__find(process->made, addr, ts);
}

struct images *images__new(const struct images_opts *opts)
{
	struct images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->opts = *opts;
	images->tables = file_tables__new();
	if (images->tables)
		return images;
	free(images);
	return NULL;
}

void images__free(struct images *images)
{
	if (!images)
		return;
	for (int i = 0; i < IMAGES_MAX; i++)
		image__free(images->images[i]);
	for (int i = 0; i < LAYOUTS_MAX; i++)
		target_mappings_free(&images->layouts[i].mappings);
	file_tables__free(images->tables);
	/* The receiver of interpreters may be freed by now. */
	images->opts.python = NULL;
	for (size_t i = 0; i < images->processes.cnt; i++)
		drop_names(images, &images->processes.items[i]);
	vec_free(&images->processes);
	free(images);
}
