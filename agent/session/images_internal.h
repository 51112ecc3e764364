/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by images.c (processes and their images), images_layouts.c (where they have them) and images_past.c (programs
 * that have ended).
 */
#ifndef WHYLATE_SESSION_IMAGES_INTERNAL_H
#define WHYLATE_SESSION_IMAGES_INTERNAL_H

#include "session/images.h"

#include "base/vec.h"
#include "target/file_tables.h"

#include <limits.h>

/* Different code at a time; beyond, the one that was not used for longest goes. */
#define IMAGES_MAX 12
/* Where processes have it, and mappings in all of these. */
#define LAYOUTS_MAX  64
#define MAPPINGS_MAX 16384
/* Programs that take too much memory are remembered, the last so many. */
#define TOO_LARGE_MAX 32
/* Programs whose files can be found by their path, the last so many. */
#define FILES_MAX 32

/* Where one process, or several with the same code at the same addresses, have an image's code. */
struct layout {
	struct image *image; /* NULL: there is none */
	target_mappings mappings;
	uint64_t start, base; /* as of struct image */
	uint64_t used_ts;
};

struct images {
	struct images_opts opts;
	struct image *images[IMAGES_MAX]; /* the target's first */
	struct layout layouts[LAYOUTS_MAX];
	struct file_tables *tables; /* of all but the target */
	VEC(struct image_process) processes;
	uint32_t made_cnt;
	uint64_t filled; /* programs and files that had been read when memory was looked at */
	struct {
		uint64_t dev, ino;
	} too_large[TOO_LARGE_MAX];
	uint32_t too_large_cnt;
	struct {
		uint64_t ino;
		char path[PATH_MAX];
	} files[FILES_MAX];
	uint32_t file_cnt;
};

/* Takes the mappings; of a process that has ended `pid` is the target.  0 or -errno. */
int image__new(struct images *images, pid_t pid, bool is_past, target_mappings *mappings, struct image **made);
/* Its code is mapped so from now on, by that process.  0 or -errno. */
int image__move(struct image *image, pid_t pid, const target_mappings *mappings);
/* The place for another image. */
struct image **images__room(struct images *images);
bool images__is_too_large(const struct images *images, const target_mappings *mappings);

/* The process has the image's code there.  Takes the mappings. */
void images__lay_out(struct images *images, struct image_process *process, struct image *image,
		     target_mappings *mappings);
/* Of processes that have the code at the same addresses; NULL. */
struct layout *images__layout(struct images *images, const target_mappings *mappings);
/* Of processes that have code of the same files, started by the same name; NULL. */
struct image *images__like(const struct images *images, pid_t pid, const target_mappings *mappings);
/* All of the image but one; NULL: all.  Its processes have no image any more. */
void images__drop_layouts(struct images *images, const struct image *image, const struct layout *but);
/* The image of the process to where that has its code.  0 or -errno. */
int image_process__move(struct image_process *process);

#endif
