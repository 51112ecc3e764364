// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_image.h"

#include "base/vec.h"
#include "base/whole_io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTION_NAMES_MAX (1ULL << 20)
#define SEGMENTS_MAX      256
#define LOAD_MAX          64

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#elif defined(__s390x__)
#define HOST_MACHINE EM_S390
#elif defined(__powerpc64__)
#define HOST_MACHINE EM_PPC64
#else
#error "which machine do ELF files of this architecture name?"
#endif
#define HOST_ENCODING (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

struct elf_image {
	int fd;
	uint64_t file_sz;
	struct timespec changed;
	uint64_t entry;
	bool is_fixed;
	VEC(struct elf_segment) segments;
	VEC(struct elf_section) sections;
	char *section_names;
};

static bool within(uint64_t off, uint64_t sz, uint64_t whole)
{
	return off <= whole && sz <= whole - off;
}

/* More than 65,279 sections or 65,534 segments (extended numbering) occur in no program. */
static int check_header(const Elf64_Ehdr *header, uint64_t file_sz, bool is_debug_file)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != HOST_ENCODING ||
	    header->e_machine != HOST_MACHINE)
		return -ENOTSUP;
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return -ENOEXEC;
	if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_phnum == PN_XNUM)
		return -ENOEXEC;
	if (!header->e_phnum && !is_debug_file)
		return -ENOEXEC;
	if (header->e_phnum && (header->e_phentsize != sizeof(Elf64_Phdr) ||
				!within(header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr), file_sz)))
		return -ENOEXEC;
	if (!header->e_shoff)
		return header->e_shnum ? -ENOEXEC : 0;
	if (!header->e_shnum || header->e_shnum >= SHN_LORESERVE || header->e_shentsize != sizeof(Elf64_Shdr) ||
	    !within(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr), file_sz))
		return -ENOEXEC;
	return 0;
}

int elf_header_check(int fd, uint64_t file_sz, bool is_debug_file)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return -ENOEXEC;
	return check_header(&header, file_sz, is_debug_file);
}

int elf_bytes_check(const void *bytes, uint64_t file_sz, bool is_debug_file)
{
	Elf64_Ehdr header;

	if (file_sz < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	return check_header(&header, file_sz, is_debug_file);
}

ssize_t elf_image__read(const struct elf_image *image, uint64_t file_off, void *buf, size_t sz)
{
	if (file_off > image->file_sz)
		return -ENOEXEC;
	if (sz > image->file_sz - file_off)
		sz = image->file_sz - file_off;
	return whole_read(image->fd, buf, sz, (int64_t)file_off);
}

void *elf_image__copy(const struct elf_image *image, uint64_t file_off, uint64_t sz, uint64_t max)
{
	char *bytes;

	if (sz > max || !within(file_off, sz, image->file_sz)) {
		errno = ENOEXEC;
		return NULL;
	}
	bytes = malloc(sz + 1);
	if (!bytes)
		return NULL;
	if (elf_image__read(image, file_off, bytes, sz) != (ssize_t)sz) {
		free(bytes);
		errno = ENOEXEC;
		return NULL;
	}
	bytes[sz] = '\0';
	return bytes;
}

static int segments_read(struct elf_image *image, const Elf64_Ehdr *header)
{
	size_t load_cnt = 0;
	int err = 0;

	if (header->e_phnum > SEGMENTS_MAX)
		return -ENOEXEC;
	for (size_t i = 0; i < header->e_phnum && !err; i++) {
		struct elf_segment segment;
		Elf64_Phdr phdr;

		if (elf_image__read(image, header->e_phoff + i * sizeof(phdr), &phdr, sizeof(phdr)) != sizeof(phdr))
			return -ENOEXEC;
		if (phdr.p_type != PT_LOAD && phdr.p_type != PT_GNU_EH_FRAME && phdr.p_type != PT_TLS)
			continue;
		if (!within(phdr.p_offset, phdr.p_filesz, image->file_sz) ||
		    phdr.p_vaddr > UINT64_MAX - phdr.p_filesz || load_cnt++ == LOAD_MAX)
			return -ENOEXEC;
		segment = (struct elf_segment){.addr = phdr.p_vaddr,
					       .file_off = phdr.p_offset,
					       .file_sz = phdr.p_filesz,
					       .mem_sz = phdr.p_memsz,
					       .align = phdr.p_align,
					       .type = phdr.p_type,
					       .exec = phdr.p_type == PT_LOAD && phdr.p_flags & PF_X};
		err = vec_push(&image->segments, segment);
	}
	return err;
}

/* Section headers are for linkers: a file whose own lie is read without them. */
static int sections_read(struct elf_image *image, const Elf64_Ehdr *header)
{
	uint64_t names_sz = 0;
	Elf64_Shdr shdr;
	int err = 0;

	if (!header->e_shnum)
		return 0;
	if (header->e_shstrndx < header->e_shnum &&
	    elf_image__read(image, header->e_shoff + header->e_shstrndx * sizeof(shdr), &shdr, sizeof(shdr)) ==
		    sizeof(shdr) &&
	    shdr.sh_type == SHT_STRTAB) {
		image->section_names = elf_image__copy(image, shdr.sh_offset, shdr.sh_size, SECTION_NAMES_MAX);
		names_sz = image->section_names ? shdr.sh_size : 0;
	}
	for (size_t i = 0; i < header->e_shnum && !err; i++) {
		struct elf_section section;

		if (elf_image__read(image, header->e_shoff + i * sizeof(shdr), &shdr, sizeof(shdr)) != sizeof(shdr))
			return -ENOEXEC;
		section =
			(struct elf_section){.name = shdr.sh_name < names_sz ? image->section_names + shdr.sh_name : "",
					     .addr = shdr.sh_addr,
					     .file_off = shdr.sh_offset,
					     .size = shdr.sh_size,
					     .flags = shdr.sh_flags,
					     .type = shdr.sh_type,
					     .link = shdr.sh_link};
		if (shdr.sh_type != SHT_NOBITS && !within(shdr.sh_offset, shdr.sh_size, image->file_sz))
			section.type = SHT_NULL;
		err = vec_push(&image->sections, section);
	}
	return err;
}

static int load(struct elf_image *image)
{
	Elf64_Ehdr header;
	struct stat stat;
	int err;

	if (fstat(image->fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENOEXEC;
	image->file_sz = stat.st_size;
	image->changed = stat.st_ctim;
	err = elf_header_check(image->fd, image->file_sz, false);
	if (err)
		return err;
	if (elf_image__read(image, 0, &header, sizeof(header)) != sizeof(header))
		return -ENOEXEC;
	image->is_fixed = header.e_type == ET_EXEC;
	image->entry = header.e_entry;
	err = segments_read(image, &header);
	return err ? err : sections_read(image, &header);
}

struct elf_image *elf_image__open(const char *path)
{
	/* Not blocking: what calls itself a library may be a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? NULL : elf_image__of(fd);
}

struct elf_image *elf_image__of(int fd)
{
	struct elf_image *image = calloc(1, sizeof(*image));
	int err;

	if (!image) {
		close(fd);
		return NULL;
	}
	image->fd = fd;
	err = load(image);
	if (err) {
		elf_image__free(image);
		errno = -err;
		return NULL;
	}
	return image;
}

void elf_image__free(struct elf_image *image)
{
	if (!image)
		return;
	if (image->fd >= 0)
		close(image->fd);
	vec_free(&image->segments);
	vec_free(&image->sections);
	free(image->section_names);
	free(image);
}

size_t elf_image__segments(const struct elf_image *image, const struct elf_segment **segments)
{
	*segments = image->segments.items;
	return image->segments.cnt;
}

size_t elf_image__sections(const struct elf_image *image, const struct elf_section **sections)
{
	*sections = image->sections.items;
	return image->sections.cnt;
}

const struct elf_section *elf_image__section(const struct elf_image *image, const char *name)
{
	for (size_t i = 0; i < image->sections.cnt; i++) {
		const struct elf_section *section = &image->sections.items[i];

		if (section->type != SHT_NULL && section->type != SHT_NOBITS && !(section->flags & SHF_COMPRESSED) &&
		    !strcmp(section->name, name))
			return section;
	}
	return NULL;
}

bool elf_image__is_changed(const struct elf_image *image)
{
	struct stat stat;

	return fstat(image->fd, &stat) || stat.st_ctim.tv_sec != image->changed.tv_sec ||
	       stat.st_ctim.tv_nsec != image->changed.tv_nsec;
}

int elf_image__fd(const struct elf_image *image)
{
	return image->fd;
}

uint64_t elf_image__entry(const struct elf_image *image)
{
	return image->entry;
}

bool elf_image__is_fixed(const struct elf_image *image)
{
	return image->is_fixed;
}

static const struct elf_segment *segment_at(const struct elf_image *image, uint64_t addr, bool code_only)
{
	for (size_t i = 0; i < image->segments.cnt; i++) {
		const struct elf_segment *segment = &image->segments.items[i];

		if (segment->type == PT_LOAD && (segment->exec || !code_only) && addr >= segment->addr &&
		    addr - segment->addr < segment->file_sz)
			return segment;
	}
	return NULL;
}

const struct elf_segment *elf_image__code_at(const struct elf_image *image, uint64_t addr)
{
	return segment_at(image, addr, true);
}

ssize_t elf_image__read_addr(const struct elf_image *image, uint64_t addr, void *buf, size_t sz)
{
	const struct elf_segment *segment = segment_at(image, addr, false);

	if (!segment)
		return -ENOENT;
	if (sz > segment->file_sz - (addr - segment->addr))
		sz = segment->file_sz - (addr - segment->addr);
	return elf_image__read(image, segment->file_off + (addr - segment->addr), buf, sz);
}

bool elf_image__bias(const struct elf_image *image, uint64_t start, uint64_t end, uint64_t file_off, uint64_t *bias)
{
	for (size_t i = 0; i < image->segments.cnt; i++) {
		const struct elf_segment *segment = &image->segments.items[i];

		if (segment->type != PT_LOAD || !segment->exec || file_off > segment->file_off ||
		    segment->file_off - file_off >= end - start)
			continue;
		*bias = start + (segment->file_off - file_off) - segment->addr;
		return true;
	}
	return false;
}
