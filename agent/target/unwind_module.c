// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/unwind_module.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define VDSO_SZ_MAX (64 * 1024)

/* Takes the image. */
static struct unwind_module *module_new(struct file_tables *tables, struct elf_image *image)
{
	struct unwind_module *module = calloc(1, sizeof(*module));

	if (module && image)
		module->table = file_tables__take(tables, image);
	if (!module || (image && !module->table)) {
		elf_image__free(image);
		free(module);
		return NULL;
	}
	module->image = image;
	return module;
}

struct unwind_module *unwind_module__open(struct file_tables *tables, const char *path)
{
	return module_new(tables, elf_image__open(path));
}

/* Our own, as a file: its descriptor, or -1. */
static int vdso_copy(void)
{
	uint64_t addr = getauxval(AT_SYSINFO_EHDR);
	target_mappings mappings = {0};
	int fd = -1;

	if (!addr || target_mappings_read(getpid(), &mappings))
		return -1;
	for (size_t i = 0; i < mappings.cnt && fd < 0; i++) {
		const struct target_mapping *mapping = &mappings.items[i];
		size_t sz = mapping->end - mapping->start;

		if (mapping->start != addr || sz > VDSO_SZ_MAX)
			continue;
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, (const void *)(uintptr_t)addr, sz) != (ssize_t)sz) {
			close(fd);
			break;
		}
	}
	target_mappings_free(&mappings);
	return fd;
}

struct unwind_module *unwind_module__vdso(struct file_tables *tables)
{
	int fd = vdso_copy();
	struct unwind_module *module = module_new(tables, fd < 0 ? NULL : elf_image__of(fd));

	if (module)
		module->is_vdso = true;
	return module;
}

void unwind_module__free(struct unwind_module *module)
{
	if (!module)
		return;
	file_table__release(module->table);
	elf_image__free(module->image);
	free(module);
}

const struct eh_frame *unwind_module__frame(struct unwind_module *module, bool *is_late)
{
	struct file_table *table = module->table;

	*is_late = false;
	if (!table || table->frame || table->has_no_frame)
		return table ? table->frame : NULL;
	table->frame = eh_frame__read(elf_image__fd(module->image), false);
	*is_late = !table->frame && errno == EAGAIN;
	table->has_no_frame = !table->frame && !*is_late;
	return table->frame;
}

bool unwind_module__addr(const struct unwind_module *module, uint64_t file_off, uint64_t *addr)
{
	const struct elf_segment *segments;
	size_t cnt = module->image ? elf_image__segments(module->image, &segments) : 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct elf_segment *segment = &segments[i];

		if (!segment->exec || file_off < segment->file_off || file_off - segment->file_off >= segment->file_sz)
			continue;
		*addr = segment->addr + (file_off - segment->file_off);
		return true;
	}
	return false;
}

#if defined(__x86_64__)
/* FF /2 with its operand: how many bytes the ModRM byte makes of it, 0: no near call. */
static size_t indirect_call_sz(const uint8_t *modrm, size_t cnt)
{
	uint8_t mod = *modrm >> 6, rm = *modrm & 7;
	bool sib = mod != 3 && rm == 4;

	if ((*modrm >> 3 & 7) != 2 || (sib && cnt < 2))
		return 0;
	if (mod == 3)
		return 2;
	if (mod == 1)
		return 3 + sib;
	if (mod == 2 || (mod == 0 && rm == 5) || (sib && (modrm[1] & 7) == 5))
		return 6 + sib;
	return 2 + sib;
}

/* Backwards an instruction can be read in several ways: the direct call, which is the commonest, goes first. */
size_t unwind_call_sz(const uint8_t *end, size_t cnt)
{
	if (cnt >= 5 && end[-5] == 0xe8)
		return 5;
	for (size_t sz = 2; sz <= 7 && sz <= cnt; sz++) {
		const uint8_t *opcode = end - sz;

		if (*opcode != 0xff || indirect_call_sz(opcode + 1, sz - 1) != sz)
			continue;
		return sz < cnt && (opcode[-1] & 0xf0) == 0x40 ? sz + 1 : sz; /* REX: a register from r8 on */
	}
	return 0;
}
#else
/* BL, BLR and its kin with pointer authentication. */
size_t unwind_call_sz(const uint8_t *end, size_t cnt)
{
	uint32_t insn;
	bool is_call;

	if (cnt < sizeof(insn))
		return 0;
	memcpy(&insn, end - sizeof(insn), sizeof(insn));
	is_call = (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
		  (insn & 0xfefff800) == 0xd63f0800;
	return is_call ? sizeof(insn) : 0;
}
#endif

size_t unwind_module__code_before(const struct unwind_module *module, uint64_t file_off, uint8_t *code, size_t cnt)
{
	uint64_t addr;

	cnt = file_off < cnt ? (size_t)file_off : cnt;
	if (!cnt || !unwind_module__addr(module, file_off - cnt, &addr))
		return 0;
	return elf_image__read(module->image, file_off - cnt, code, cnt) == (ssize_t)cnt ? cnt : 0;
}

bool unwind_module__is_after_call(const struct unwind_module *module, uint64_t file_off)
{
	uint8_t code[UNWIND_CALL_SZ_MAX];
	size_t cnt = unwind_module__code_before(module, file_off, code, sizeof(code));

	return cnt && unwind_call_sz(code + cnt, cnt) > 0;
}
