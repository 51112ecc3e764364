/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols of one ELF file.  The file is hostile until proven otherwise: a process without privileges reads it, see
 * elf_reader.h.  A file that cannot be read there has no symbols, and all marks.
 */
#ifndef WHYLATE_TARGET_ELF_FILE_H
#define WHYLATE_TARGET_ELF_FILE_H

#include "target/elf_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_function {
	const char *name; /* owned by the file */
	uint64_t addr;    /* virtual address as linked */
	uint64_t file_off;
	uint64_t size;  /* 0 when the file does not say; never beyond the segment */
	bool ambiguous; /* others bear this name with equal right (static functions of several sources) */
	bool is_ifunc;  /* elf_file__by_addr() only */
};

struct elf_file;

/*
 * NULL and errno: ENOENT, EACCES, ENOEXEC (not an ELF file, or a damaged one), ENOTSUP (not this machine's 64-bit
 * kind), EAGAIN (not read yet, see elf_reader_patience()).
 */
struct elf_file *elf_file__open(const char *path);
/*
 * The symbols of a separate debug file of the other one, whose segments it need not repeat; as elf_file__open(). EFBIG:
 * there are more than *symbols_left bytes of them, from which those that are read are taken.
 */
struct elf_file *elf_file__open_debug(const char *path, const struct elf_file *of, uint64_t *symbols_left);
/* The same of what a part of an open file, the other one's .gnu_debugdata, unpacks to. */
struct elf_file *elf_file__open_packed(int fd, uint64_t off, uint64_t sz, const struct elf_file *of,
				       uint64_t *symbols_left);
void elf_file__free(struct elf_file *file);
size_t elf_file__sz(const struct elf_file *file); /* bytes that it takes; NULL: 0 */

/*
 * Functions of .symtab and .dynsym, sorted by name, each name once; versioned names (`foo@@V`) appear without the
 * version.  Among functions of one name the default version comes before old ones, a global before a weak one, and
 * both before a static one.  Names with control characters or longer than 4096 bytes are left out.
 */
size_t elf_file__functions(const struct elf_file *file, const struct elf_function **functions);
/*
 * The same functions and those that only choose one (IFUNC) by address, each address once, under the name of it that
 * people use.  Unlike above, several may bear one name; `ambiguous` is not set.
 */
size_t elf_file__by_addr(const struct elf_file *file, const struct elf_function **functions);
/* Whoever has made a table of its own of them needs them no longer: from now on there are none. */
void elf_file__drop_by_addr(struct elf_file *file);
/* Exact name; NULL when there is none. */
const struct elf_function *elf_file__find(const struct elf_file *file, const char *name);
/* What `name` is in this file: to say why it is not a function. */
enum elf_symbol_kind elf_file__symbol_kind(const struct elf_file *file, const char *name);
/* What it needs of other files, and what it calls itself; the head says whether that is known (`has_dynamic`). */
size_t elf_file__libraries(const struct elf_file *file, const struct elf_library **libraries);
const char *elf_file__library_name(const struct elf_file *file, const struct elf_library *library);
/* Built by Go (.go.buildinfo, .gopclntab or the go note): its stacks do not bear uretprobes. */
bool elf_file__is_go(const struct elf_file *file);
/* Has C++ code with exceptions: the unwinder does not get past a uretprobe, it ends the process. */
bool elf_file__unwinds(const struct elf_file *file);
uint8_t elf_file__marks(const struct elf_file *file); /* enum elf_mark */
/* What else it says of itself; the file's own until it is freed. */
const struct elf_rows_head *elf_file__head(const struct elf_file *file);
/* Hex, "" when it has none. */
const char *elf_file__build_id(const struct elf_file *file);
/* The same of a file whose symbols are not read; "" also when it cannot be read. */
void elf_file_build_id(const char *path, char build_id[ELF_ROWS_BUILD_ID_HEX]);

#endif
