/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of the processes whose stacks are sampled, the target's and any other of the host's.  A process is looked at
 * when it is met first, so that it may end before its stack is named.  Processes with code of the same files share one
 * image: one unwinder, one numbering of functions, read once.  Where a process has them is its layout, which forks
 * share; the image is moved to the layout of the process whose stack is named.  Names of code that a JIT compiler made
 * are each process's own, and such a process shares an image with its forks only.
 */
#ifndef WHYLATE_SESSION_IMAGES_H
#define WHYLATE_SESSION_IMAGES_H

#include "target/perf_map.h"
#include "target/program.h"
#include "target/python.h"
#include "target/runtime.h"
#include "target/unwind.h"

#include <limits.h>

struct layout;

/* The code of one or more processes. */
struct image {
	struct unwinder *unwinder;
	struct program *program; /* NULL: its symbols cannot be read */
	bool own_program;
	enum runtime runtime;
	uint64_t used_ts;
	uint64_t dev, ino;       /* of its first code */
	char name[NAME_MAX + 1]; /* that the program was started by */
	struct layout *layout;   /* where it is now; NULL: where it stays, or nowhere that is known */
	/*
	 * Where the program and its libraries were mapped (exe_start and mmap_base of a stack), 0: not known.  An image
	 * of processes that have ended (`is_past`) is moved to where each had it.
	 */
	uint64_t start, base;
	bool is_past, has_libraries;
};

struct image_process {
	pid_t pid;
	struct image *image;   /* NULL: it cannot be looked at */
	struct layout *layout; /* where it has the image's code; NULL: the image stays where it is */
	uint64_t looked_ts;
	struct perf_map *made; /* names of the code that it made itself; NULL: not asked for yet */
	struct python *python; /* NULL: it is no interpreter, or cannot be read */
	bool python_said;      /* why that is */
	bool python_begins;    /* it has the interpreter, which has not begun */
};

struct images_opts {
	pid_t pid;               /* the target itself */
	struct program *program; /* of it, the caller's; NULL: one is opened */
	const char *debuginfo_dir;
	/* Where the process keeps the frames of its Python code; NULL: nowhere any more.  May be NULL. */
	void (*python)(void *owner, pid_t pid, const struct python_layout *layout);
	void *owner;
};

struct images;

struct images *images__new(const struct images_opts *opts); /* NULL: out of memory */
void images__free(struct images *images);                   /* NULL-safe */
/*
 * The process, valid until the next call.  One that is gone has no image.  0 or -ENOMEM.
 */
int images__process(struct images *images, pid_t pid, struct image_process **process);
/*
 * A stack of it was unwound and named, at that time.  Others than the target's are dropped beyond 24 MiB, those first
 * that were not used for longest: its image may be gone afterwards.
 */
void images__used(struct images *images, struct image_process *process, uint64_t ts);
/*
 * Python interpreters of the host: their frames are read from now on, and not only from their first stack on.  Of a
 * process that is met first, the stacks that are in the rings by then have none.  0 or -ENOMEM.
 */
int images__find_pythons(struct images *images);
/* Its stack led nowhere: perhaps it has loaded something since it was looked at.  1: it may have; 0; -ENOMEM. */
int images__look_again(struct images *images, struct image_process *process);
/* The process has another program than before, or is gone. */
void images__changed(struct images *images, pid_t pid);
/* The process runs that program from now on. */
void images__ran(struct images *images, const struct wl_program_record *record);
/*
 * Of a process that has ended before its mappings were read: its program where the stack's record says, with the
 * libraries that another process of the same program had.  NULL: the program is not known, or out of memory.  Valid
 * until the next call.
 */
struct image *images__past(struct images *images, const struct wl_stack_record *record);
/* The stack is of a living process of the image. */
void images__met(struct image *image, const struct wl_stack_record *record);
/* The target's own; NULL: it could not be looked at. */
struct image *images__target(const struct images *images);
/* The name of code that the process made itself, at that time; NULL: none is known.  Valid until the next call. */
const char *images__made_name(struct images *images, struct image_process *process, uint64_t addr, uint64_t ts);

#endif
