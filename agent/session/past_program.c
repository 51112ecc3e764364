// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/past_program.h"

#include "base/order.h"
#include "target/elf_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool mapping_is_made_code(const struct target_mapping *mapping)
{
	return !strncmp(mapping->path, "/memfd:", 7);
}

bool past_program_path(const struct wl_program_record *record, char path[PATH_MAX])
{
	char link[64], given[WL_PROGRAM_PATH];
	ssize_t len = 0;

	memcpy(given, record->path, sizeof(given));
	given[sizeof(given) - 1] = '\0';
	if (!strcmp(given, "/proc/self/exe")) {
		given[0] = '\0';
		snprintf(link, sizeof(link), "/proc/%u/exe", record->parent_pid);
	} else {
		snprintf(link, sizeof(link), "/proc/%u/cwd", record->parent_pid);
	}
	if (given[0] != '/')
		len = readlink(link, path, PATH_MAX - sizeof(given) - 1);
	if (len < 0)
		return false;
	snprintf(path + len, PATH_MAX - (size_t)len, "%s%s", len && given[0] ? "/" : "", given);
	return path[0] == '/';
}

/* The kernel maps whole pages. */
int past_map_file(pid_t target, const char *path, const struct wl_stack_record *record, target_mappings *mappings)
{
	struct target_mapping mapping = {.ino = record->exe_ino, .exec = true, .path = path};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = UINT64_MAX;
	const struct elf_segment *segments;
	struct elf_image *image;
	char file[PATH_MAX];
	struct stat file_stat;
	int err = target_mapping_file(target, &mapping, file, sizeof(file));
	size_t cnt;

	image = err ? NULL : elf_image__open(file);
	if (!image || fstat(elf_image__fd(image), &file_stat)) {
		elf_image__free(image);
		return -ENOENT;
	}
	mapping.dev = file_stat.st_dev;
	cnt = elf_image__segments(image, &segments);
	for (size_t i = 0; i < cnt; i++)
		if (segments[i].exec && segments[i].addr < first)
			first = segments[i].addr;
	for (size_t i = 0; i < cnt && !err; i++) {
		uint64_t addr = record->exe_start + (segments[i].addr - first), in_page = addr % page;

		if (!segments[i].exec || segments[i].file_off < in_page)
			continue;
		mapping.start = addr - in_page;
		mapping.end = (addr + segments[i].file_sz + page - 1) / page * page;
		mapping.file_off = segments[i].file_off - in_page;
		if (mapping.end > mapping.start)
			err = target_mappings_add(mappings, &mapping);
	}
	elf_image__free(image);
	return err;
}

ORDER(mapping_cmp, struct target_mapping, BY(a->start, b->start));

int past_map_as(const struct past_code *known, const struct wl_stack_record *record, target_mappings *mappings)
{
	int err = 0;

	for (size_t i = 0; i < known->mappings->cnt && !err; i++) {
		struct target_mapping mapping = known->mappings->items[i];
		uint64_t by =
			mapping.ino == known->ino ? record->exe_start - known->start : record->mmap_base - known->base;

		if (!mapping.exec || !mapping.ino || mapping.path[0] != '/' || mapping_is_made_code(&mapping))
			continue;
		mapping.start += by;
		mapping.end += by;
		if (mapping.start < mapping.end)
			err = target_mappings_add(mappings, &mapping);
	}
	vec_sort(mappings, mapping_cmp);
	return err;
}
