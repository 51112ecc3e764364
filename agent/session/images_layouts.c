// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/images_internal.h"

#include "base/clock.h"

#include <string.h>

static void drop_layout(struct images *images, struct layout *layout)
{
	for (size_t i = 0; i < images->processes.cnt; i++)
		if (images->processes.items[i].layout == layout) {
			images->processes.items[i].layout = NULL;
			images->processes.items[i].image = NULL;
		}
	if (layout->image && layout->image->layout == layout)
		layout->image->layout = NULL;
	target_mappings_free(&layout->mappings);
	*layout = (struct layout){0};
}

void images__drop_layouts(struct images *images, const struct image *image, const struct layout *but)
{
	for (int i = 0; i < LAYOUTS_MAX; i++)
		if (images->layouts[i].image == image && &images->layouts[i] != but)
			drop_layout(images, &images->layouts[i]);
}

/* The one that was not used for longest. */
static struct layout *oldest_layout(struct images *images)
{
	struct layout *oldest = NULL;

	for (int i = 0; i < LAYOUTS_MAX; i++) {
		struct layout *layout = &images->layouts[i];

		if (layout->image && (!oldest || layout->used_ts < oldest->used_ts))
			oldest = layout;
	}
	return oldest;
}

/* A place for another one of so many mappings. */
static struct layout *room_for_layout(struct images *images, size_t mapping_cnt)
{
	struct layout *room = images->layouts, *oldest;
	size_t used = 0, cnt = 0;

	for (int i = 0; i < LAYOUTS_MAX; i++) {
		used += images->layouts[i].image != NULL;
		cnt += images->layouts[i].mappings.cnt;
	}
	for (; (used == LAYOUTS_MAX || cnt + mapping_cnt > MAPPINGS_MAX) && (oldest = oldest_layout(images)); used--) {
		cnt -= oldest->mappings.cnt;
		drop_layout(images, oldest);
	}
	while (room->image)
		room++;
	return room;
}

void images__lay_out(struct images *images, struct image_process *process, struct image *image,
		     target_mappings *mappings)
{
	struct layout *layout = room_for_layout(images, mappings->cnt);

	*layout = (struct layout){.image = image, .mappings = *mappings, .used_ts = monotonic_ns()};
	process->image = image;
	process->layout = layout;
}

struct layout *images__layout(struct images *images, const target_mappings *mappings)
{
	for (int i = 0; i < LAYOUTS_MAX; i++)
		if (images->layouts[i].image && target_mappings_fit(&images->layouts[i].mappings, mappings))
			return &images->layouts[i];
	return NULL;
}

struct image *images__like(const struct images *images, pid_t pid, const target_mappings *mappings)
{
	char name[NAME_MAX + 1];

	if (target_program_name(pid, name, sizeof(name)))
		return NULL;
	for (int i = 1; i < IMAGES_MAX; i++) {
		struct image *image = images->images[i];

		if (image && !image->is_past && image->program && !strcmp(image->name, name) &&
		    target_mappings_are_like(unwinder__mappings(image->unwinder), mappings) &&
		    !unwinder__is_changed(image->unwinder) && !program__is_changed(image->program))
			return image;
	}
	return NULL;
}

int image_process__move(struct image_process *process)
{
	struct layout *layout = process->layout;
	struct image *image = process->image;
	int err;

	if (!image || !layout || image->layout == layout)
		return 0;
	err = image__move(image, process->pid, &layout->mappings);
	if (err)
		return err;
	image->layout = layout;
	image->start = layout->start;
	image->base = layout->base;
	return 0;
}
