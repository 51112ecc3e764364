// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/data_names.h"

#include "base/clock.h"
#include "base/names.h"
#include "target/elf_reader.h"
#include "target/locked_files.h"
#include "target/python.h"

#include <whylate/record.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 16
#define STRETCHES_MAX 256
#define BLOCKS_MAX    256
#define REREAD_NS     1000000000ULL
#define FORGET_NS     10000000000ULL

struct known_process {
	pid_t pid; /* 0: a free place */
	uint64_t read_ts;
	target_mappings mappings;
};

/*
 * An address in memory that belongs to no file.  It keeps its place for as long as it is asked for more often than
 * others that would have it: programs may make a lock for each request, and those are one object all together.
 */
struct block {
	uint64_t addr; /* 0: a free place */
	uint32_t credit;
};

#define BLOCK_CREDIT     4
#define BLOCK_CREDIT_MAX 64

/* What is known of a part of a file's data. */
struct stretch {
	dev_t dev;
	ino_t ino; /* 0: a free place */
	struct elf_datum datum;
};

#define PYTHONS_MAX 8

/* An interpreter of Python whose locks were asked for. */
struct known_python {
	pid_t pid;             /* 0: a free place */
	struct python *python; /* NULL: none that is understood */
};

struct data_names {
	struct known_python pythons[PYTHONS_MAX];
	uint32_t next_python;
	struct known_process processes[PROCESSES_MAX];
	uint32_t next_process;
	struct stretch stretches[STRETCHES_MAX];
	uint32_t next_stretch;
	struct block blocks[BLOCKS_MAX];
	struct locked_files *locked_files;
};

struct data_names *data_names__new(void)
{
	struct data_names *names = calloc(1, sizeof(*names));

	if (names)
		names->locked_files = locked_files__new();
	if (names && !names->locked_files) {
		free(names);
		return NULL;
	}
	return names;
}

void data_names__free(struct data_names *names)
{
	if (!names)
		return;
	for (int i = 0; i < PROCESSES_MAX; i++)
		target_mappings_free(&names->processes[i].mappings);
	for (int i = 0; i < PYTHONS_MAX; i++)
		python__free(names->pythons[i].python);
	locked_files__free(names->locked_files);
	free(names);
}

/* --- mappings ----------------------------------------------------------------------------------------------------- */

static struct known_process *process_of(struct data_names *names, pid_t pid)
{
	struct known_process *process;

	for (int i = 0; i < PROCESSES_MAX; i++)
		if (names->processes[i].pid == pid)
			return &names->processes[i];
	process = &names->processes[names->next_process++ % PROCESSES_MAX];
	process->pid = pid;
	process->read_ts = 0;
	target_mappings_free(&process->mappings);
	return process;
}

/* A pid may be another process's by now, and a process may have mapped something else. */
static const target_mappings *mappings_of(struct data_names *names, pid_t pid, uint64_t addr)
{
	struct known_process *process = process_of(names, pid);
	uint64_t now = monotonic_ns(), age_ns = now - process->read_ts;

	if (process->read_ts &&
	    (age_ns < REREAD_NS || (age_ns < FORGET_NS && target_mapping_find(&process->mappings, addr))))
		return &process->mappings;
	target_mappings_free(&process->mappings);
	target_mappings_read(pid, &process->mappings);
	process->read_ts = now;
	return &process->mappings;
}

/* The mapping of a file that this one, which is anonymous, may be the .bss of: the one that ends where it begins. */
static const struct target_mapping *file_before(const target_mappings *mappings, const struct target_mapping *mapping)
{
	if (mapping == mappings->items || mapping[-1].end != mapping->start || mapping[-1].path[0] != '/')
		return NULL;
	return mapping - 1;
}

/* --- symbols ------------------------------------------------------------------------------------------------------ */

/* 0 or -errno; -EAGAIN: not read yet. */
static int read_datum(const char *path, uint64_t off, struct elf_datum *datum)
{
	/* Not blocking: what calls itself a library may be a pipe. */
	struct elf_read read = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .what = ELF_READ_DATUM, .at = off};
	struct elf_rows rows = {0};
	int err = read.fd < 0 ? -errno : elf_reader_read(&read, &rows);

	/* An answer that is not about that place would be asked for again and again. */
	if (!err && off >= rows.head.datum.lo && off < rows.head.datum.hi)
		*datum = rows.head.datum;
	elf_rows_free(&rows);
	if (read.fd >= 0)
		close(read.fd);
	return err;
}

static const struct elf_datum *datum_of(struct data_names *names, pid_t pid, const struct target_mapping *file,
					uint64_t off)
{
	struct stretch *stretch;
	char path[PATH_MAX];

	for (int i = 0; i < STRETCHES_MAX; i++) {
		const struct elf_datum *datum = &names->stretches[i].datum;

		stretch = &names->stretches[i];
		if (stretch->ino == file->ino && stretch->dev == file->dev && off >= datum->lo && off < datum->hi)
			return datum;
	}
	stretch = &names->stretches[names->next_stretch++ % STRETCHES_MAX];
	*stretch = (struct stretch){.dev = file->dev, .ino = file->ino, .datum = {.lo = off, .hi = off + 1}};
	/* What is not read yet is asked for again. */
	if (!target_mapping_file(pid, file, path, sizeof(path)) && read_datum(path, off, &stretch->datum) == -EAGAIN)
		stretch->ino = 0;
	return &stretch->datum;
}

/* --- memory of no file -------------------------------------------------------------------------------------------- */

/* Whether this address is told apart from the others. */
static bool is_known_block(struct data_names *names, uint64_t addr)
{
	struct block *block = &names->blocks[(addr >> 3) * 0x9e3779b97f4a7c15ULL >> 56];

	_Static_assert(BLOCKS_MAX == 256, "the hash has eight bits");
	if (block->addr != addr && block->credit && --block->credit)
		return false;
	if (block->addr != addr)
		*block = (struct block){.addr = addr, .credit = BLOCK_CREDIT};
	else if (block->credit < BLOCK_CREDIT_MAX)
		block->credit++;
	return true;
}

/* "[heap]+0x12a0", which is the same in all children of a process, "[anon 0x7f1c5c000b60]", or without the number. */
static const char *block_name(struct data_names *names, const target_mappings *mappings,
			      const struct target_mapping *mapping, uint64_t addr, char *buf, size_t sz)
{
	bool is_heap = !strcmp(mapping->path, "[heap]");

	if ((mapping->path[0] && !is_heap) || !is_known_block(names, addr))
		return target_mapping_name(mappings, addr, true, buf, sz);
	while (is_heap && mapping > mappings->items && !strcmp(mapping[-1].path, "[heap]"))
		mapping--;
	if (is_heap)
		snprintf(buf, sz, "[heap]+0x%" PRIx64, addr - mapping->start);
	else
		snprintf(buf, sz, "[anon 0x%" PRIx64 "]", addr);
	return buf;
}

/* --- locks that a language makes ---------------------------------------------------------------------------------- */

static bool is_gil(struct data_names *names, pid_t pid, const target_mappings *mappings, uint64_t addr)
{
	struct known_python *known = NULL;

	for (int i = 0; i < PYTHONS_MAX && !known; i++)
		if (names->pythons[i].pid == pid)
			known = &names->pythons[i];
	if (!known) {
		int err;

		known = &names->pythons[names->next_python++ % PYTHONS_MAX];
		python__free(known->python);
		*known = (struct known_python){.pid = pid};
		err = python__open(pid, mappings, &known->python);
		if (err)
			known->python = NULL;
		/* What is not read yet is asked for again. */
		if (err == -EAGAIN)
			known->pid = 0;
	}
	return known->python && python__is_gil(known->python, addr);
}

const char *data_names__get(struct data_names *names, pid_t pid, const target_mappings *mappings, uint64_t addr,
			    char *buf, size_t sz)
{
	const struct target_mapping *mapping, *file;
	const struct elf_datum *datum;
	uint64_t off;
	size_t len;

	if (addr == WL_MMAP_LOCK) {
		snprintf(buf, sz, "mmap_lock");
		return buf;
	}
	if (addr & WL_GO_WAIT && !(addr & WL_FILE_LOCK)) {
		snprintf(buf, sz, "%s", go_wait_text(addr));
		return buf;
	}
	if (go_wait_text(addr)) {
		snprintf(buf, sz, "%s", go_wait_text(addr));
		return buf;
	}
	if (addr & WL_FILE_LOCK)
		return locked_files__name(names->locked_files, pid, addr, buf, sz);
	if (!mappings)
		mappings = mappings_of(names, pid, addr);
	mapping = target_mapping_find(mappings, addr);
	if (!mapping || !sz)
		return NULL;
	file = mapping->path[0] ? mapping : file_before(mappings, mapping);
	if (!file || file->path[0] != '/' || !file->ino)
		return block_name(names, mappings, mapping, addr, buf, sz);
	off = addr - target_mapping_base(mappings, file);
	datum = datum_of(names, pid, file, off);
	if (file != mapping && !datum->is_data)
		return block_name(names, mappings, mapping, addr, buf, sz);
	if (!strcmp(datum->name, "_PyRuntime") && is_gil(names, pid, mappings, addr)) {
		snprintf(buf, sz, "the GIL");
		return buf;
	}
	target_mapping_basename(file, buf, sz);
	len = strlen(buf);
	if (!datum->name[0])
		snprintf(buf + len, sz - len, "+0x%" PRIx64, off);
	else if (off == datum->lo)
		snprintf(buf + len, sz - len, ":%s", datum->name);
	else
		snprintf(buf + len, sz - len, ":%s+0x%" PRIx64, datum->name, off - datum->lo);
	return buf;
}
