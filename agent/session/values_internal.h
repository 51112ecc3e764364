/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by values.c (values at stacks, rows), values_schemas.c (schemas, what the kernel reads) and values_callers.c
 * (how it reaches callers).
 */
#ifndef WHYLATE_SESSION_VALUES_INTERNAL_H
#define WHYLATE_SESSION_VALUES_INTERNAL_H

#include "session/values.h"

#include "base/idmap.h"
#include "base/vec.h"
#include "target/symbols.h"

/* Of one stack. */
#define TAKEN_MAX 512
/* Words that wait for their stacks, which come right behind them on the same CPU. */
#define WAITING_MAX 64
#define NO_MODULE   UINT32_MAX

struct module {
	char *name;
	struct value_schema schema;
	struct value_planned *planned; /* of each variable */
	struct value_reader *reader;
	uint32_t first; /* the number of its first variable */
	int dwarf_fd;   /* until its source lines are looked up; -1: none */
	uint32_t lines; /* the file of symbols__open(); 0: not opened so far, or it has no source lines */
};

/* A file that the target has code of. */
struct known_file {
	uint64_t dev, ino;
	uint32_t module; /* NO_MODULE: it has none, or is waited for */
};

/* A file whose schema is to be made. */
struct schema_wish {
	uint32_t file; /* index into files */
	char *path;    /* through a process that may be gone by then */
	int fd;        /* leads to it then (O_PATH); -1: there is none */
	char *name;
};

/* What was read at one tick. */
struct words {
	uint64_t ts;
	uint32_t tid;
	size_t cnt;
	struct value_word items[WL_VALUE_WORDS_MAX];
};

/* A program counter that was met. */
struct place {
	struct module *module; /* NULL: none with a schema */
	uint64_t addr;
	char *function;
	uint32_t turn; /* what the kernel reads there is read at one of so many ticks */
	bool written;
};

/* Where a module is in a process. */
struct placed {
	uint32_t of; /* the program's module */
	uint32_t module;
	uint64_t bias;
};

/* A frame that was met, by the process's program, its program counter, and whether it is a caller's. */
struct met_frame {
	bool has_reads; /* a caller's */
	bool is_given;  /* the kernel knows how it leads on */
};

/* A process that was sampled. */
struct met {
	pid_t pid;
	uint64_t signature; /* of what it has loaded, and of the modules that were known */
	uint32_t program;   /* the same as of another process with the same signature */
	VEC(struct placed) placed;
};

/* Of `value_plan`, to be written. */
struct turn {
	uint64_t ts;
	uint32_t part;
	bool is_read;
};

struct schema_worker;

struct sampled_values {
	struct sampled_values_opts opts;
	VEC(struct module *) modules;
	VEC(struct known_file) files;
	VEC(struct schema_wish) wishes;
	struct schema_worker *worker; /* NULL: none is at work */
	VEC(bool) variables;          /* by number: its row is written */
	VEC(struct place) places;
	struct idmap place_ids;
	struct symbols *lines; /* NULL: no place was met yet */
	VEC(uint32_t) late;    /* places whose rows wait for their source lines, the next one at late_pos */
	size_t late_pos;
	struct sampled_values_counts counts;
	struct value_plan plan;
	uint32_t first_part, part_cnt; /* in the kernel */
	uint64_t turned_ts;
	VEC(struct turn) turns;
	VEC(struct met) met;
	uint32_t program_seq;
	VEC(struct met_frame) frames;
	struct idmap frame_ids;
	struct words waiting[WAITING_MAX];
	size_t waiting_pos;
	struct shard_row row;
	struct {
		size_t cnt;
		struct stack_value items[TAKEN_MAX];
	} taken;
};

/* The process as it was met; NULL: it was not, or has no module with a schema. */
const struct met *sampled_values__met_as(const struct sampled_values *values, pid_t pid);
/* The module of a place, NULL: it has no schema; `of`, if not NULL, gets the program's. */
struct module *sampled_values__module_at(const struct sampled_values *values, const struct value_stack *stack,
					 const struct met *met, uint64_t addr, const struct program_module **of);
/* Frames of the stack that lead to a caller with members are given to the kernel.  0 or -ENOMEM. */
int sampled_values__meet_frames(struct sampled_values *values, const struct value_stack *stack, const struct met *met);
/* The rows of places whose source lines are known by now; is_last: of all.  0 or the writer's error. */
int sampled_values__write_places(struct sampled_values *values, bool is_last);
/* The rows of `value_plan` so far.  0 or the writer's error. */
int sampled_values__write_turns(struct sampled_values *values);
/*
 * values_unread.c: the C and C++ runtime's own variables (arenas, locales, the loader's lists) are read where a glob
 * names them: they are many times those of a small server, and would take its turns.
 */
bool sampled_values_is_runtime(const char *name);
/* What could not be read, where the user can do something about it. */
void sampled_values_say_unread(const char *path, int err);
void sampled_values_say_split(const char *name, const struct value_schema *schema);

#endif
