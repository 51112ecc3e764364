// SPDX-License-Identifier: GPL-2.0-or-later
/* The code of programs whose processes have ended before they were looked at. */
#include "session/images_internal.h"

#include "session/past_program.h"

#include <errno.h>

void images__ran(struct images *images, const struct wl_program_record *record)
{
	uint32_t i;

	for (i = 0; i < FILES_MAX; i++)
		if (record->ino && images->files[i].ino == record->ino)
			return;
	i = images->file_cnt++ % FILES_MAX;
	images->files[i].ino = past_program_path(record, images->files[i].path) ? record->ino : 0;
}

void images__met(struct image *image, const struct wl_stack_record *record)
{
	if (!image->start && image->ino == record->exe_ino) {
		image->start = record->exe_start;
		image->base = record->mmap_base;
	}
	if (image->layout) {
		image->layout->start = image->start;
		image->layout->base = image->base;
	}
}

static int map_as(const struct image *image, const struct wl_stack_record *record, target_mappings *mappings)
{
	struct past_code known = {unwinder__mappings(image->unwinder), image->ino, image->start, image->base};

	return past_map_as(&known, record, mappings);
}

static struct image *find_program(const struct images *images, uint64_t ino, bool is_past)
{
	struct image *found = NULL;

	for (int i = 0; i < IMAGES_MAX; i++) {
		struct image *image = images->images[i];

		if (image && image->is_past == is_past && image->ino == ino && image->start &&
		    (!found || image->has_libraries))
			found = image;
	}
	return found;
}

static int map_program(const struct images *images, const struct image *like, const struct wl_stack_record *record,
		       target_mappings *mappings)
{
	int err = -ENOENT;

	if (like)
		err = map_as(like, record, mappings);
	for (uint32_t i = 0; !like && i < FILES_MAX; i++)
		if (images->files[i].ino == record->exe_ino)
			err = past_map_file(images->opts.pid, images->files[i].path, record, mappings);
	if (!err && (!mappings->cnt || images__is_too_large(images, mappings)))
		err = -ENOENT;
	if (err)
		target_mappings_free(mappings);
	return err;
}

static int move(const struct images *images, struct image *image, const struct wl_stack_record *record)
{
	target_mappings mappings = {0};
	int err = map_as(image, record, &mappings);

	if (!err)
		err = image__move(image, images->opts.pid, &mappings);
	target_mappings_free(&mappings);
	return err;
}

struct image *images__past(struct images *images, const struct wl_stack_record *record)
{
	struct image *image = find_program(images, record->exe_ino, true), **place;
	const struct image *like = find_program(images, record->exe_ino, false);
	target_mappings mappings = {0};
	bool has_libraries = like != NULL;

	if (!record->exe_ino || !record->exe_start)
		return NULL;
	if ((!image || (like && !image->has_libraries)) && !map_program(images, like, record, &mappings)) {
		place = images__room(images);
		if (image__new(images, images->opts.pid, true, &mappings, place))
			return NULL;
		image = *place;
		image->ino = record->exe_ino;
		image->has_libraries = has_libraries;
	} else if (!image || ((image->start != record->exe_start || image->base != record->mmap_base) &&
			      move(images, image, record))) {
		return NULL;
	}
	image->start = record->exe_start;
	image->base = record->mmap_base;
	return image;
}
