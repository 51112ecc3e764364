// SPDX-License-Identifier: GPL-2.0-or-later
#include "text.h"

#include "harness.h"
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_SZ    65536
#define PATIENCE_NS (2 * NS_PER_SEC)

struct difference {
	uint64_t byte_cnt; /* that were compared */
	bool found;
	char where[512];
};

/* Compares one piece; true when it could be read on both sides. */
static bool compare_piece(int mem_fd, int file_fd, const struct target_mapping *mapping, uint64_t off, size_t sz,
			  struct difference *difference)
{
	static unsigned char in_memory[PIECE_SZ], in_file[PIECE_SZ];
	ssize_t file_sz = pread(file_fd, in_file, sz, (off_t)(mapping->file_off + off));

	/* A mapping may reach beyond the end of its file. */
	if (file_sz <= 0 || pread(mem_fd, in_memory, (size_t)file_sz, (off_t)(mapping->start + off)) != file_sz)
		return false;
	difference->byte_cnt += (uint64_t)file_sz;
	for (ssize_t i = 0; i < file_sz; i++) {
		if (in_memory[i] == in_file[i])
			continue;
		difference->found = true;
		snprintf(difference->where, sizeof(difference->where), "%s+0x%lx is %02x instead of %02x",
			 mapping->path, mapping->file_off + off + (uint64_t)i, in_memory[i], in_file[i]);
		return false;
	}
	return true;
}

static void compare_mapping(pid_t pid, int mem_fd, const struct target_mapping *mapping, struct difference *difference)
{
	char path[128];
	int file_fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)pid, mapping->start, mapping->end);
	file_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file_fd < 0)
		return;
	for (uint64_t off = 0; off < mapping->end - mapping->start; off += PIECE_SZ) {
		uint64_t left = mapping->end - mapping->start - off;

		if (!compare_piece(mem_fd, file_fd, mapping, off, left < PIECE_SZ ? left : PIECE_SZ, difference))
			break;
	}
	close(file_fd);
}

/* A library may come or go meanwhile: what cannot be read is passed over. */
static void compare_all(pid_t pid, struct difference *difference)
{
	target_mappings mappings = {0};
	char path[64];
	int mem_fd;

	memset(difference, 0, sizeof(*difference));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (mem_fd >= 0 && !target_mappings_read(pid, &mappings))
		for (size_t i = 0; i < mappings.cnt && !difference->found; i++)
			if (mappings.items[i].exec && mappings.items[i].path[0] == '/')
				compare_mapping(pid, mem_fd, &mappings.items[i], difference);
	target_mappings_free(&mappings);
	if (mem_fd >= 0)
		close(mem_fd);
}

bool text_is_intact(pid_t pid)
{
	uint64_t deadline_ts = now_ns() + PATIENCE_NS;
	struct difference difference;

	for (;;) {
		compare_all(pid, &difference);
		if (!difference.found || now_ns() > deadline_ts)
			break;
		sleep_ms(50);
	}
	return CHECKF(!difference.found, "the code of process %d was changed: %s", (int)pid, difference.where) &&
	       CHECKF(difference.byte_cnt > 0, "the code of process %d cannot be read", (int)pid);
}

bool text_is_changed(pid_t pid)
{
	struct difference difference;

	compare_all(pid, &difference);
	return difference.found;
}

bool text_is_intact_in_tree(pid_t pid)
{
	target_processes processes = {0};
	bool good = CHECK(!target_tree(pid, &processes));

	for (size_t i = 0; i < processes.cnt; i++) {
		/* Short-lived children may be gone by now. */
		if (processes.items[i].pid == pid ||
		    !target_comm(processes.items[i].pid, processes.items[i].pid, (char[16]){0}))
			good &= text_is_intact(processes.items[i].pid);
	}
	free(processes.items);
	return good;
}

bool registers_missing(const char *said)
{
	static const int errs[] = {ENOSPC, EOPNOTSUPP, ENODEV, EACCES, EPERM};

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++)
		if (strstr(said, strerror(errs[i])))
			return true;
	return false;
}
