// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any registers and any stack, over any .eh_frame in a file that is otherwise in order, or over any file.
 * Without seeds it makes FDEs by itself soon enough, as libFuzzer's comparisons tell it what is wanted.
 */
#include "target/eh_frame_read.h"
#include "target/unwind.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define BASE   0x400000
#define MAX_SZ (1 << 16)

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#else
#define HOST_MACHINE EM_AARCH64
#endif

/* What is in every input before the rest. */
struct head {
	uint8_t whole_file; /* odd: the rest is the file */
	uint8_t word_sz;    /* of the stack, in words */
	uint16_t pc[3];     /* places in the file; the first is where the thread is, the others are on the stack */
	uint64_t regs[8];
};

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	char names[24];
	uint8_t eh_frame[];
};

/* One segment of everything, and the bytes as .eh_frame. */
static size_t make_file(uint8_t *file, const uint8_t *bytes, size_t sz)
{
	struct made *made = (struct made *)file;
	size_t file_sz = sizeof(*made) + sz;

	memset(made, 0, sizeof(*made));
	made->header = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = HOST_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct made, segment),
		.e_shoff = offsetof(struct made, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 1,
	};
	made->segment = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = file_sz, .p_memsz = file_sz, .p_align = 1};
	made->sections[1] = (Elf64_Shdr){.sh_name = 1,
					 .sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(struct made, names),
					 .sh_size = sizeof(made->names)};
	made->sections[2] = (Elf64_Shdr){.sh_name = 11,
					 .sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_ALLOC,
					 .sh_addr = sizeof(*made),
					 .sh_offset = sizeof(*made),
					 .sh_size = sz,
					 .sh_addralign = 1};
	memcpy(made->names, "\0.shstrtab\0.eh_frame", 21);
	memcpy(made->eh_frame, bytes, sz);
	return file_sz;
}

static void unwind(struct unwinder *unwinder, const struct head *head, const uint8_t *bytes, size_t sz)
{
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	uint64_t regs[WL_STACK_REGS];
	uint64_t stack[256];
	struct unwind_input input = {.regs = regs, .stack = (const uint8_t *)stack, .stack_sz = head->word_sz * 8U};
	enum unwind_end end;
	size_t cnt;

	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = i % 3 ? BASE + head->pc[i % 3] : 0x7000 + 8 * i;
	memcpy(stack + 16, bytes, sz < 512 ? sz : 512);
	for (size_t i = 0; i < WL_STACK_REGS; i++)
		regs[i] = head->regs[i % 8];
	regs[WL_STACK_REG_SP] = 0x7000;
	regs[WL_STACK_REG_PC] = BASE + head->pc[0];
	for (int again = 0; again < 2; again++) {
		cnt = unwinder__frames(unwinder, &input, frames, &end);
		if (!cnt || cnt > UNWIND_FRAMES_MAX || (end == UNWIND_TOO_DEEP) != (cnt == UNWIND_FRAMES_MAX))
			abort();
		if (frames[0].pc != regs[WL_STACK_REG_PC] || !frames[0].exact)
			abort();
		for (size_t i = 1; i < cnt; i++)
			if (!unwinder__is_code(unwinder, unwind_frame_addr(&frames[i])))
				abort();
	}
}

/* As whylate-symbols reads it, where libFuzzer sees what the code does: what the agent takes, or nothing. */
static void check_rows(const char *path)
{
	struct elf_image *image = elf_image__open(path);
	struct elf_rows rows = {0};

	if (image && !eh_frame_read(image, false, &rows) && elf_rows_check(&rows))
		abort();
	elf_rows_free(&rows);
	elf_image__free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static uint8_t file[MAX_SZ + sizeof(struct made)];
	target_mappings mappings = {0};
	struct target_mapping mapping = {.start = BASE, .exec = true};
	struct unwinder *unwinder;
	struct head head;
	size_t file_sz;
	struct stat st;
	char path[64];
	int fd;

	if (sz < sizeof(head) || sz > MAX_SZ)
		return 0;
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	sz -= sizeof(head);
	if (head.whole_file & 1) {
		memcpy(file, bytes, sz);
		file_sz = sz;
	} else {
		file_sz = make_file(file, bytes, sz);
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, file, file_sz) != (ssize_t)file_sz || fstat(fd, &st))
		abort();
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	check_rows(path);
	mapping.end = BASE + 0x20000;
	mapping.dev = st.st_dev;
	mapping.ino = st.st_ino;
	mapping.path = strdup(path);
	if (!mapping.path || vec_push(&mappings, mapping) || unwinder__new(getpid(), &mappings, NULL, &unwinder))
		abort();
	unwind(unwinder, &head, bytes, sz);
	unwinder__free(unwinder);
	close(fd);
	return 0;
}
