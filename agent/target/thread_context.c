// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/thread_context.h"

#include "target/elf_image.h"
#include "target/elf_reader.h"
#include "target/proc_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL "otel_thread_ctx_v1"

/* Static thread-local storage is smaller; what a descriptor of dynamic storage points to is farther away. */
#define STATIC_TLS_MAX (1 << 20)

static bool is_offset(int64_t word)
{
	return word > -STATIC_TLS_MAX && word < STATIC_TLS_MAX;
}

/* Of the program itself, whose storage lies next to the thread pointer. */
static int program_slot(const struct elf_image *image, uint64_t value, int64_t *slot)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);

	for (size_t i = 0; i < cnt; i++) {
		uint64_t align = segments[i].align ?: 1;

		if (segments[i].type != PT_TLS || align > STATIC_TLS_MAX || segments[i].mem_sz > STATIC_TLS_MAX ||
		    value > segments[i].mem_sz)
			continue;
#if defined(__x86_64__)
		*slot = (int64_t)value - (int64_t)((segments[i].mem_sz + align - 1) / align * align);
#else
		*slot = (int64_t)value + (int64_t)((16 + align - 1) / align * align);
#endif
		return 0;
	}
	return -ENOENT;
}

static int library_slot(pid_t pid, const struct elf_image *image, const struct target_mapping *mapping, uint64_t addr,
			int64_t *slot)
{
	uint64_t bias;
	int64_t word;
	int fd, err = 0;

	if (!addr || !elf_image__bias(image, mapping->start, mapping->end, mapping->file_off, &bias))
		return -ENOTSUP;
	fd = proc_mem_open(pid);
	if (fd < 0)
		return fd;
	if (!proc_mem_read(fd, addr + bias, &word, sizeof(word)))
		err = -EACCES;
	else if (!word || !is_offset(word))
		err = -ENOTSUP;
	else
		*slot = word;
	close(fd);
	return err;
}

static int slot_in(pid_t pid, const struct target_mapping *mapping, bool is_program, int64_t *slot)
{
	struct elf_image *image;
	char path[PATH_MAX];
	struct elf_variable variable;
	int err = target_mapping_file(pid, mapping, path, sizeof(path));

	if (err)
		return -ENOENT;
	image = elf_image__open(path);
	if (!image)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	err = elf_reader_variable(elf_image__fd(image), SYMBOL, STT_TLS, &variable);
	if (!err && is_program)
		err = program_slot(image, variable.value, slot);
	else if (!err)
		err = library_slot(pid, image, mapping, variable.slot, slot);
	elf_image__free(image);
	return err;
}

int thread_context_slot(pid_t pid, const target_mappings *mappings, int64_t *slot)
{
	bool is_program = true;
	int err = -ENOENT;

	for (size_t i = 0; i < mappings->cnt && err == -ENOENT; i++) {
		if (!mappings->items[i].exec || mappings->items[i].path[0] != '/')
			continue;
		err = slot_in(pid, &mappings->items[i], is_program, slot);
		is_program = false;
	}
	return err;
}
