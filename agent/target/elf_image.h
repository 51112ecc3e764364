/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes of one ELF file: where its segments and sections lie, and reading them.  By pread, not mmap: a mapped
 * library that another process truncates meanwhile raises SIGBUS.  Every range is checked against the file.
 */
#ifndef WHYLATE_TARGET_ELF_IMAGE_H
#define WHYLATE_TARGET_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct elf_segment {
	uint64_t addr, file_off, file_sz, mem_sz, align;
	uint32_t type; /* PT_LOAD, PT_GNU_EH_FRAME, PT_TLS */
	bool exec;
};

struct elf_section {
	const char *name; /* "" where the file has none */
	uint64_t addr, file_off, size;
	uint64_t flags;
	uint32_t type, link;
};

struct elf_image;

/*
 * 0; -ENOEXEC: no ELF file or a damaged one; -ENOTSUP: not this machine's 64-bit kind.  A file of separate debug
 * information need have no segments.
 */
int elf_header_check(int fd, uint64_t file_sz, bool is_debug_file);
/* The same of a file in memory. */
int elf_bytes_check(const void *bytes, uint64_t file_sz, bool is_debug_file);

/* NULL and errno: ENOENT, EACCES, ENOEXEC, ENOTSUP, ENOMEM. */
struct elf_image *elf_image__open(const char *path);
/* The same of an open file, whose descriptor becomes the image's own, also on failure. */
struct elf_image *elf_image__of(int fd);
void elf_image__free(struct elf_image *image);

size_t elf_image__segments(const struct elf_image *image, const struct elf_segment **segments);
size_t elf_image__sections(const struct elf_image *image, const struct elf_section **sections);
/* The first of that name whose bytes lie in the file; NULL. */
const struct elf_section *elf_image__section(const struct elf_image *image, const char *name);
/* Has the file been written to, or got another name, since it was opened? */
bool elf_image__is_changed(const struct elf_image *image);
/* The file, which stays the image's own. */
int elf_image__fd(const struct elf_image *image);
/* Linked for fixed addresses. */
bool elf_image__is_fixed(const struct elf_image *image);
/* Where the program begins; 0: nowhere. */
uint64_t elf_image__entry(const struct elf_image *image);
/* How far the file was moved when its code was mapped there.  False: the mapping has none of its code. */
bool elf_image__bias(const struct elf_image *image, uint64_t start, uint64_t end, uint64_t file_off, uint64_t *bias);
/* Executable segment around a linked address; NULL. */
const struct elf_segment *elf_image__code_at(const struct elf_image *image, uint64_t addr);

/* Up to sz bytes that the file has at an offset, or at a linked address (only within one segment): how many, or -errno.
 */
ssize_t elf_image__read(const struct elf_image *image, uint64_t file_off, void *buf, size_t sz);
ssize_t elf_image__read_addr(const struct elf_image *image, uint64_t addr, void *buf, size_t sz);
/* All of a range of the file and a NUL behind it, for the caller to free(); NULL and errno (ENOEXEC: not all there, or
 * more than max). */
void *elf_image__copy(const struct elf_image *image, uint64_t file_off, uint64_t sz, uint64_t max);

#endif
