// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/usdt.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asm/ptrace.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* The notes of markers as <sys/sdt.h> writes them, in this very program; `semaphore` is a symbol or 0. */
#define MARKER(provider, name, semaphore, args)                                                  \
	__asm__ volatile("990: nop\n"                                                            \
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
			 ".balign 4\n"                                                           \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                      \
			 "991: .asciz \"stapsdt\"\n"                                             \
			 "992: .balign 4\n"                                                      \
			 "993: .8byte 990b\n"                                                    \
			 ".8byte _.stapsdt.base\n"                                               \
			 ".8byte " semaphore "\n"                                                \
			 ".asciz \"" provider "\"\n"                                             \
			 ".asciz \"" name "\"\n"                                                 \
			 ".asciz \"" args "\"\n"                                                 \
			 "994: .balign 4\n"                                                      \
			 ".popsection\n"                                                         \
			 ".ifndef _.stapsdt.base\n"                                              \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n"                                                \
			 ".hidden _.stapsdt.base\n"                                              \
			 "_.stapsdt.base: .space 1\n"                                            \
			 ".size _.stapsdt.base, 1\n"                                             \
			 ".popsection\n"                                                         \
			 ".endif\n")

extern unsigned short usdt_test_semaphore;
unsigned short usdt_test_semaphore __attribute__((section(".probes"), used)) = 0x5aa5;
void usdt_test_markers(void);
__attribute__((noinline)) void usdt_test_markers(void)
{
	MARKER("whylate_test", "second", "usdt_test_semaphore", "8@$5 -4@$-7");
	MARKER("whylate_test", "first", "0", "");
}

static const struct usdt_site *site_named(const usdt_sites *sites, const char *name)
{
	for (size_t i = 0; i < sites->cnt; i++)
		if (!strcmp(sites->items[i].provider, "whylate_test") && !strcmp(sites->items[i].name, name))
			return &sites->items[i];
	return NULL;
}

static void markers_of_a_file_are_found(void)
{
	const struct usdt_site *first, *second;
	usdt_sites sites = {0};
	unsigned short semaphore = 0;
	unsigned char code = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	usdt_test_markers();
	CU_ASSERT_EQUAL_FATAL(usdt_sites_read("/proc/self/exe", &sites), 0);
	first = site_named(&sites, "first");
	second = site_named(&sites, "second");
	CU_ASSERT_FATAL(first && second && first < second);
	CU_ASSERT_EQUAL(first->arg_cnt, 0);
	CU_ASSERT_EQUAL(first->semaphore_off, 0);
	CU_ASSERT_EQUAL(second->arg_cnt, 2);
	CU_ASSERT_EQUAL(second->args[0].kind, USDT_ARG_CONST);
	CU_ASSERT_EQUAL(second->args[0].value, 5);
	CU_ASSERT_EQUAL(second->args[1].value, -7);
	CU_ASSERT(second->args[1].is_signed);
	/* The linker moves `first` and `second` as it likes, but not apart from what they are. */
	CU_ASSERT_EQUAL(pread(fd, &semaphore, sizeof(semaphore), second->semaphore_off), sizeof(semaphore));
	CU_ASSERT_EQUAL(semaphore, 0x5aa5);
#ifdef __x86_64__
	CU_ASSERT_EQUAL(pread(fd, &code, 1, first->file_off), 1);
	CU_ASSERT_EQUAL(code, 0x90);
	CU_ASSERT_EQUAL(pread(fd, &code, 1, second->file_off), 1);
	CU_ASSERT_EQUAL(code, 0x90);
#endif
	usdt_sites_free(&sites);
	CU_ASSERT_EQUAL(usdt_sites_read("/nonexistent", &sites), -ENOENT);
	CU_ASSERT_EQUAL(usdt_sites_read("/etc/passwd", &sites), -ENOEXEC);
	CU_ASSERT_EQUAL(usdt_sites_read("/proc/self", &sites), -ENOEXEC);
	close(fd);
}

/* The notes cut short, or overwritten, at every byte: whatever comes out is within the file. */
static void damaged_notes_stay_within_the_file(void)
{
	static const char mark[] = "whylate_test";
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("usdt", MFD_CLOEXEC);
	unsigned char *bytes, *note;
	struct stat stat;
	char path[64];

	CU_ASSERT_FATAL(from >= 0 && fd >= 0 && !fstat(from, &stat));
	bytes = mmap(NULL, stat.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, from, 0);
	CU_ASSERT_FATAL(bytes != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(write(fd, bytes, stat.st_size), stat.st_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* The last occurrence is in the notes, which lie behind everything that is loaded; 44 bytes come before it. */
	note = memmem(bytes, stat.st_size, mark, sizeof(mark));
	for (unsigned char *next = note; next;
	     next = memmem(note + 1, stat.st_size - (note + 1 - bytes), mark, sizeof(mark)))
		note = next;
	CU_ASSERT_PTR_NOT_NULL_FATAL(note);
	for (off_t at = note - bytes - 44; at < note - bytes + 40; at++) {
		static const unsigned char values[] = {0x00, 0x01, 0x7f, 0xff};

		for (size_t i = 0; i < sizeof(values); i++) {
			usdt_sites sites = {0};

			CU_ASSERT_EQUAL(pwrite(fd, &values[i], 1, at), 1);
			CU_ASSERT_EQUAL(usdt_sites_read(path, &sites), 0);
			for (size_t j = 0; j < sites.cnt; j++) {
				CU_ASSERT(sites.items[j].file_off < (uint64_t)stat.st_size);
				CU_ASSERT(sites.items[j].semaphore_off < (uint64_t)stat.st_size);
				CU_ASSERT(sites.items[j].name[0] && sites.items[j].provider[0]);
			}
			usdt_sites_free(&sites);
		}
		CU_ASSERT_EQUAL(pwrite(fd, bytes + at, 1, at), 1);
	}
	munmap(bytes, stat.st_size);
	close(from);
	close(fd);
}

#ifdef __x86_64__
#define REG(name) ((int16_t)offsetof(struct pt_regs, name))
#define NONE      USDT_NO_REG
#define ARG(kind, sz, is_signed, scale, shift, reg_off, idx_off, value) \
	{kind, sz, is_signed, scale, shift, 0, reg_off, idx_off, {0}, value}

static void operands_of_x86_are_understood(void)
{
	static const struct {
		const char *text;
		struct usdt_arg arg;
	} cases[] = {
		{"8@%rax", ARG(USDT_ARG_REG, 8, false, 0, 0, REG(rax), NONE, 0)},
		{"-4@%r12d", ARG(USDT_ARG_REG, 4, true, 0, 0, REG(r12), NONE, 0)},
		{"1@%ah", ARG(USDT_ARG_REG, 1, false, 0, 8, REG(rax), NONE, 0)},
		{"2@%sp", ARG(USDT_ARG_REG, 2, false, 0, 0, REG(rsp), NONE, 0)},
		{"-4@-20(%rbp)", ARG(USDT_ARG_MEMORY, 4, true, 1, 0, REG(rbp), NONE, -20)},
		{"8@(%rdi)", ARG(USDT_ARG_MEMORY, 8, false, 1, 0, REG(rdi), NONE, 0)},
		{"4@$5", ARG(USDT_ARG_CONST, 4, false, 0, 0, NONE, NONE, 5)},
		{"-8@$-1", ARG(USDT_ARG_CONST, 8, true, 0, 0, NONE, NONE, -1)},
		{"8@$0xffffffff81000000", ARG(USDT_ARG_CONST, 8, false, 0, 0, NONE, NONE, (int64_t)0xffffffff81000000)},
		{"8@8(%rdi,%rcx,4)", ARG(USDT_ARG_MEMORY, 8, false, 4, 0, REG(rdi), REG(rcx), 8)},
		{"8@(%rdi,%rcx)", ARG(USDT_ARG_MEMORY, 8, false, 1, 0, REG(rdi), REG(rcx), 0)},
		{"8@16(,%rax,8)", ARG(USDT_ARG_MEMORY, 8, false, 8, 0, NONE, REG(rax), 16)},
		{"%rdx", ARG(USDT_ARG_REG, 8, false, 0, 0, REG(rdx), NONE, 0)},
	};
	static const char *const unreadable[] = {
		"8f@%xmm0",
		"8@%xmm0",
		"-4@NBuffers(%rip)",
		"8@sym+8(%rip)",
		"3@%rax",
		"@%rax",
		"8@8(%rdi,%rcx,3)",
		"8@(%ah)",
		"8@8(%rdi",
		"8@%",
		"8@",
		"8@$",
		"8@1234",
		"4@%ah",
		"8@%raxx",
		"8@$5x",
		"8@()",
		"8@(,)",
		"8@%r16",
		"8@8(%rdi,,)",
		"99999999999999999999@%rax",
	};
	struct usdt_arg args[USDT_ARG_MAX];

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		const struct usdt_arg *want = &cases[i].arg;

		CU_ASSERT_EQUAL_FATAL(usdt_args_parse(cases[i].text, args), 1);
		if (args[0].kind != want->kind || args[0].sz != want->sz || args[0].is_signed != want->is_signed ||
		    args[0].shift != want->shift || args[0].reg_off != want->reg_off ||
		    args[0].idx_off != want->idx_off || args[0].value != want->value ||
		    (want->kind == USDT_ARG_MEMORY && args[0].scale != want->scale)) {
			fprintf(stderr, "%s is not understood as it should be\n", cases[i].text);
			CU_FAIL("operand");
		}
	}
	for (size_t i = 0; i < ARRAY_CNT(unreadable); i++) {
		CU_ASSERT_EQUAL_FATAL(usdt_args_parse(unreadable[i], args), 1);
		if (args[0].kind != USDT_ARG_UNREADABLE) {
			fprintf(stderr, "%s should not be readable\n", unreadable[i]);
			CU_FAIL("operand");
		}
	}
}

static void arguments_keep_their_places(void)
{
	struct usdt_arg args[USDT_ARG_MAX];
	char many[400] = "";

	CU_ASSERT_EQUAL(usdt_args_parse("", args), 0);
	CU_ASSERT_EQUAL(usdt_args_parse("   ", args), 0);
	CU_ASSERT_EQUAL(usdt_args_parse(" 8@%rax  nonsense\t4@$7 ", args), 3);
	CU_ASSERT_EQUAL(args[0].kind, USDT_ARG_REG);
	CU_ASSERT_EQUAL(args[1].kind, USDT_ARG_UNREADABLE);
	CU_ASSERT_EQUAL(args[2].kind, USDT_ARG_CONST);
	CU_ASSERT_EQUAL(args[2].value, 7);
	for (int i = 0; i < 12; i++)
		strcat(many, "8@%rdi ");
	CU_ASSERT_EQUAL(usdt_args_parse(many, args), 12);
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	CU_ASSERT_EQUAL(usdt_args_parse(many, args), 1);
	CU_ASSERT_EQUAL(args[0].kind, USDT_ARG_UNREADABLE);
}
#endif

int suite_usdt(void)
{
	static const struct unit_test tests[] = {
		{"markers of a file are found", markers_of_a_file_are_found},
		{"damaged notes stay within the file", damaged_notes_stay_within_the_file},
#ifdef __x86_64__
		{"operands of x86 are understood", operands_of_x86_are_understood},
		{"arguments keep their places", arguments_keep_their_places},
#endif
	};

	return unit_suite("usdt", tests, sizeof(tests) / sizeof(tests[0]));
}
