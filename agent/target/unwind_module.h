/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mapped file as the unwinder needs it: its .eh_frame and, for guesses, its code.  Opened once, read as needed. */
#ifndef WHYLATE_TARGET_UNWIND_MODULE_H
#define WHYLATE_TARGET_UNWIND_MODULE_H

#include "target/eh_frame.h"
#include "target/elf_image.h"
#include "target/file_tables.h"
#include "target/target.h"

struct unwind_module {
	dev_t dev;
	ino_t ino;
	bool used; /* by the mappings as they are */
	bool is_vdso;
	struct elf_image *image;  /* NULL: it is no ELF file that can be read */
	struct file_table *table; /* has its frames; NULL: there is no image */
};

/*
 * From a path that may lead to no ELF file: then nothing is known of the module.  Of the tables, which outlive it, it
 * takes those of its file.  NULL when out of memory.
 */
struct unwind_module *unwind_module__open(struct file_tables *tables, const char *path);
/* The same of the vdso, which is the same in every process. */
struct unwind_module *unwind_module__vdso(struct file_tables *tables);
void unwind_module__free(struct unwind_module *module);

/* Read when it is first asked for.  NULL: there is none, or it is not read yet, see elf_reader_patience(). */
const struct eh_frame *unwind_module__frame(struct unwind_module *module, bool *is_late);
/* The address as linked, of a place in the file: false when no segment has it. */
bool unwind_module__addr(const struct unwind_module *module, uint64_t file_off, uint64_t *addr);
/* The bytes before a place in the file: how many, 0: none. */
size_t unwind_module__code_before(const struct unwind_module *module, uint64_t file_off, uint8_t *code, size_t cnt);
/* Do the bytes before that place end in a call?  A place in the file. */
bool unwind_module__is_after_call(const struct unwind_module *module, uint64_t file_off);

/* The size of the call instruction that ends right before `end`, of which `cnt` bytes are given; 0: there is none. */
#define UNWIND_CALL_SZ_MAX 8
size_t unwind_call_sz(const uint8_t *end, size_t cnt);

#endif
