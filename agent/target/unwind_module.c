// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/unwind_module.h"

#include "target/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define VDSO_SZ_MAX  (64 * 1024)

static int segments_read(struct unwind_module *module, uint64_t file_sz)
{
	size_t cnt;

	if (elf_getphdrnum(module->elf, &cnt))
		return -ENOEXEC;
	for (size_t i = 0; i < cnt && i < SEGMENTS_MAX; i++) {
		struct unwind_segment segment;
		GElf_Phdr phdr;

		if (!gelf_getphdr(module->elf, i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		if (phdr.p_offset > file_sz || phdr.p_filesz > file_sz - phdr.p_offset ||
		    phdr.p_vaddr > UINT64_MAX - phdr.p_filesz)
			return -ENOEXEC;
		segment = (struct unwind_segment){phdr.p_vaddr, phdr.p_offset, phdr.p_filesz};
		if (vec_push(&module->segments, segment))
			return -ENOMEM;
	}
	return 0;
}

static int module_read(struct unwind_module *module, uint64_t file_sz)
{
	int err;

	if (!module->elf || elf_kind(module->elf) != ELF_K_ELF || gelf_getclass(module->elf) != ELFCLASS64)
		return -ENOEXEC;
	err = segments_read(module, file_sz);
	if (!err)
		module->cfi = dwarf_getcfi_elf(module->elf);
	return err;
}

static int module_open(struct unwind_module *module, const char *path)
{
	struct stat st;
	int err;

	/* Not blocking: what calls itself a library may be a pipe. */
	module->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (module->fd < 0 || fstat(module->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	err = elf_header_check(module->fd, st.st_size, false);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	module->elf = elf_begin(module->fd, ELF_C_READ, NULL);
	return module_read(module, st.st_size);
}

/* What cannot be read is forgotten at once; the module stays, as one of which nothing is known. */
static void module_close(struct unwind_module *module)
{
	if (module->cfi)
		dwarf_cfi_end(module->cfi);
	if (module->elf)
		elf_end(module->elf);
	if (module->fd >= 0)
		close(module->fd);
	vec_free(&module->segments);
	free(module->image);
	module->cfi = NULL;
	module->elf = NULL;
	module->image = NULL;
	module->fd = -1;
}

struct unwind_module *unwind_module__open(const char *path)
{
	struct unwind_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->fd = -1;
	if (module_open(module, path))
		module_close(module);
	return module;
}

/* Our own, copied: libelf wants memory that it may write to. */
static int vdso_copy(struct unwind_module *module)
{
	uint64_t addr = getauxval(AT_SYSINFO_EHDR);
	target_mappings mappings = {0};
	int err = addr ? target_mappings_read(getpid(), &mappings) : -ENOENT;

	for (size_t i = 0; i < mappings.cnt && !err; i++) {
		const struct target_mapping *mapping = &mappings.items[i];

		if (mapping->start != addr || mapping->end - addr > VDSO_SZ_MAX)
			continue;
		module->image_sz = mapping->end - addr;
		module->image = malloc(module->image_sz);
		if (!module->image)
			err = -ENOMEM;
		else
			memcpy(module->image, (const void *)(uintptr_t)addr, module->image_sz);
	}
	target_mappings_free(&mappings);
	return err ? err : module->image ? 0 : -ENOENT;
}

struct unwind_module *unwind_module__vdso(void)
{
	struct unwind_module *module = calloc(1, sizeof(*module));
	int err;

	if (!module)
		return NULL;
	module->fd = -1;
	elf_version(EV_CURRENT);
	err = vdso_copy(module);
	if (!err) {
		module->elf = elf_memory(module->image, module->image_sz);
		err = module_read(module, module->image_sz);
	}
	if (err)
		module_close(module);
	return module;
}

void unwind_module__free(struct unwind_module *module)
{
	if (!module)
		return;
	module_close(module);
	free(module);
}

bool unwind_module__addr(const struct unwind_module *module, uint64_t file_off, uint64_t *addr)
{
	for (size_t i = 0; i < module->segments.cnt; i++) {
		const struct unwind_segment *segment = &module->segments.items[i];

		if (file_off < segment->file_off || file_off - segment->file_off >= segment->sz)
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
	if (module->image) {
		if (file_off > module->image_sz)
			return 0;
		memcpy(code, (const uint8_t *)module->image + file_off - cnt, cnt);
	} else if (module->fd < 0 || pread(module->fd, code, cnt, (off_t)(file_off - cnt)) != (ssize_t)cnt) {
		return 0;
	}
	return cnt;
}

bool unwind_module__is_after_call(const struct unwind_module *module, uint64_t file_off)
{
	uint8_t code[UNWIND_CALL_SZ_MAX];
	size_t cnt = unwind_module__code_before(module, file_off, code, sizeof(code));

	return cnt && unwind_call_sz(code + cnt, cnt) > 0;
}
