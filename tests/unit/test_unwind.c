// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_file.h"
#include "target/unwind.h"
#include "target/unwind_module.h"
#include "target/unwind_rules.h"
#include "unit.h"
#include "unwind_subject.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Too large for a stack that is itself to be copied. */
static struct subject_view view;
static struct unwind_frame frames[UNWIND_FRAMES_MAX];

static struct unwinder *open_own(void)
{
	struct unwinder *unwinder = NULL;
	target_mappings mappings = {0};

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	CU_ASSERT_EQUAL_FATAL(unwinder__new(getpid(), &mappings, NULL, &unwinder), 0);
	return unwinder;
}

static size_t unwind(struct unwinder *unwinder, enum unwind_end *end)
{
	struct unwind_input input = {.regs = view.regs, .stack = view.stack, .stack_sz = view.stack_sz};

	return unwinder__frames(unwinder, &input, frames, end);
}

/* The innermost frames are two places in the function that looked; all others must be the very same. */
static void must_agree(struct unwinder *unwinder)
{
	enum unwind_end end;
	size_t cnt = unwind(unwinder, &end);

	/* libgcc says of some beginnings that nothing called them. */
	while (view.backtrace_cnt && !view.backtrace[view.backtrace_cnt - 1])
		view.backtrace_cnt--;
	CU_ASSERT_EQUAL(end, UNWIND_START);
	CU_ASSERT_EQUAL(cnt, view.backtrace_cnt);
	for (size_t i = 1; i < cnt && i < view.backtrace_cnt; i++) {
		CU_ASSERT_EQUAL(frames[i].pc, view.backtrace[i]);
		CU_ASSERT_EQUAL(frames[i].how, UNWIND_BY_CFI);
		CU_ASSERT(frames[i].cfa > frames[i - 1].cfa);
	}
}

static void frames_of_all_shapes_agree_with_libgcc(void)
{
	struct unwinder *unwinder = open_own();

	for (int shape = 0; shape < SUBJECT_SHAPE_CNT; shape++) {
		subject_call(shape, &view);
		must_agree(unwinder);
	}
	subject_call_nested(2, &view);
	CU_ASSERT(view.backtrace_cnt > 15);
	must_agree(unwinder);
	/* And once more by rules that are known by now. */
	subject_call_nested(2, &view);
	must_agree(unwinder);
	unwinder__free(unwinder);
}

/* Also those that a frame's rules say nothing of. */
static void registers_of_callers_agree_with_libgcc(void)
{
	static struct unwind_regs regs[UNWIND_FRAMES_MAX];
	struct unwinder *unwinder = open_own();
	struct unwind_input input = {.regs = view.regs, .frame_regs = regs, .frame_regs_max = UNWIND_FRAMES_MAX};
	enum unwind_end end;
	size_t cnt;

	subject_call_nested(2, &view);
	input.stack = view.stack;
	input.stack_sz = view.stack_sz;
	cnt = unwinder__frames(unwinder, &input, frames, &end);
	CU_ASSERT(cnt > 15);
	for (size_t i = 1; i < cnt && i < view.backtrace_cnt && i < 15; i++) {
		for (size_t k = 0; k < SUBJECT_KEPT; k++) {
			CU_ASSERT(regs[i].known >> subject_kept[k] & 1);
			CU_ASSERT_EQUAL(regs[i].values[subject_kept[k]], view.kept[i][k]);
		}
	}
	unwinder__free(unwinder);
}

static void *look_on_thread(void *unused)
{
	(void)unused;
	subject_call_nested(1, &view);
	return NULL;
}

static void threads_are_followed_to_their_beginning(void)
{
	struct unwinder *unwinder = open_own();
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, look_on_thread, NULL), 0);
	pthread_join(thread, NULL);
	must_agree(unwinder);
	unwinder__free(unwinder);
}

static void on_signal(int signal_no)
{
	(void)signal_no;
	subject_call(SUBJECT_ALIGNED, &view);
}

static void signals_are_passed(void)
{
	struct sigaction action = {.sa_handler = on_signal}, before;
	struct unwinder *unwinder = open_own();
	enum unwind_end end;
	size_t cnt, exact = 0;

	sigaction(SIGUSR2, &action, &before);
	raise(SIGUSR2);
	sigaction(SIGUSR2, &before, NULL);
	must_agree(unwinder);
	cnt = unwind(unwinder, &end);
	for (size_t i = 1; i < cnt; i++) {
		exact += frames[i].exact;
		CU_ASSERT_EQUAL(unwind_frame_addr(&frames[i]), frames[i].pc - !frames[i].exact);
	}
	CU_ASSERT_EQUAL(exact, 1);
	unwinder__free(unwinder);
}

static void a_stack_that_is_cut_is_said_to_be(void)
{
	struct unwinder *unwinder = open_own();
	enum unwind_end end;
	size_t whole, cnt, last = 0, sz;

	subject_call_nested(1, &view);
	whole = unwind(unwinder, &end);
	sz = view.stack_sz;
	CU_ASSERT(view.regs[WL_STACK_REG_SP] + sz >= frames[whole - 1].cfa);
	for (view.stack_sz = 0; view.stack_sz < sz; view.stack_sz += 8) {
		cnt = unwind(unwinder, &end);
		CU_ASSERT(cnt >= last && cnt <= whole);
		last = cnt;
		if (end == UNWIND_START)
			break;
		CU_ASSERT_EQUAL(end, UNWIND_CUT);
		for (size_t i = 1; i < cnt; i++)
			CU_ASSERT_EQUAL(frames[i].pc, view.backtrace[i]);
	}
	CU_ASSERT_EQUAL(last, whole);
	unwinder__free(unwinder);
}

static void depth_is_bounded(void)
{
	struct unwinder *unwinder = open_own();
	enum unwind_end end;

	subject_call_nested(16, &view);
	CU_ASSERT(unwind(unwinder, &end) <= UNWIND_FRAMES_MAX);
	CU_ASSERT(end == UNWIND_CUT || end == UNWIND_TOO_DEEP);
	unwinder__free(unwinder);
}

/* Nothing is known of code that belongs to no file; frame pointers and words behind calls help on. */
static void code_without_cfi_is_guessed_at(void)
{
	struct unwinder *unwinder;
	target_mappings mappings = {0};
	struct target_mapping code = {.start = 0x10000, .end = 0x20000, .exec = true};
	enum unwind_end end;
	uint64_t *stack = (uint64_t *)view.stack;
	size_t cnt;

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	code.path = strdup("");
	CU_ASSERT_EQUAL_FATAL(vec_push(&mappings, code), 0);
	/* Sorted, as they are in maps. */
	memmove(mappings.items + 1, mappings.items, (mappings.cnt - 1) * sizeof(code));
	mappings.items[0] = code;
	CU_ASSERT_EQUAL_FATAL(unwinder__new(getpid(), &mappings, NULL, &unwinder), 0);
	CU_ASSERT(unwinder__is_code(unwinder, 0x10000));
	CU_ASSERT(!unwinder__is_code(unwinder, 0x20000));

	subject_call_nested(1, &view);
	/* As if the innermost function were such code: its caller is the word behind a call. */
	cnt = unwind(unwinder, &end);
	CU_ASSERT_FATAL(cnt > 3);
	CU_ASSERT_FATAL(frames[1].cfa - view.regs[WL_STACK_REG_SP] <= sizeof(view.stack));
	/* Its own frame may hold return addresses of calls that are over, any of which would do. */
	memset(view.stack, 0, frames[1].cfa - view.regs[WL_STACK_REG_SP] - sizeof(*stack));
	view.regs[WL_STACK_REG_PC] = 0x10010;
	view.regs[6] = view.regs[29] = 0;
	cnt = unwind(unwinder, &end);
	CU_ASSERT_FATAL(cnt > 2);
	CU_ASSERT_EQUAL(frames[1].how, UNWIND_BY_SCAN);
	CU_ASSERT_EQUAL(frames[1].pc, view.backtrace[1]);

	/* A frame pointer is better than that. */
	memset(view.stack, 0, sizeof(view.stack));
	view.stack_sz = 64;
	stack[2] = 0;
	stack[3] = view.backtrace[2];
	view.regs[6] = view.regs[29] = view.regs[WL_STACK_REG_SP] + 16;
	cnt = unwind(unwinder, &end);
	CU_ASSERT_EQUAL(frames[1].how, UNWIND_BY_FRAME_POINTER);
	CU_ASSERT_EQUAL(frames[1].pc, view.backtrace[2]);
	CU_ASSERT_EQUAL(frames[1].cfa, view.regs[WL_STACK_REG_SP] + 32);

	/* No word that does not lie behind a call. */
	memset(view.stack, 0, sizeof(view.stack));
	stack[3] = view.backtrace[2] + 1;
	view.regs[6] = view.regs[29] = 0;
	cnt = unwind(unwinder, &end);
	CU_ASSERT_EQUAL(cnt, 1);
	CU_ASSERT_EQUAL(end, UNWIND_CUT);
	unwinder__free(unwinder);
}

#if defined(__x86_64__)
/* A leaf without a frame leaves its caller's frame pointer alone: its caller is not skipped. */
static void leaves_without_frames_are_left(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *stack = (uint64_t *)view.stack, base = (uint64_t)(uintptr_t)code;
	struct unwinder *unwinder;
	int32_t to = 0x200 - 0x105;
	enum unwind_end end;
	size_t cnt;

	CU_ASSERT_FATAL(code != MAP_FAILED);
	/* At 0x100 a call of the leaf, which begins at 0x200; at 0x300 a call of the caller. */
	code[0x100] = code[0x300] = 0xe8;
	memcpy(code + 0x101, &to, sizeof(to));
	unwinder = open_own();
	memset(view.stack, 0, sizeof(view.stack));
	memset(view.regs, 0, sizeof(view.regs));
	view.stack_sz = 64;
	view.regs[WL_STACK_REG_SP] = 0x7000;
	view.regs[WL_STACK_REG_PC] = base + 0x210;
	view.regs[6] = 0x7010;
	stack[0] = base + 0x105;
	stack[3] = base + 0x305;
	cnt = unwind(unwinder, &end);
	CU_ASSERT_FATAL(cnt >= 3);
	CU_ASSERT_EQUAL(frames[1].pc, base + 0x105);
	CU_ASSERT_EQUAL(frames[2].pc, base + 0x305);
	/* A word behind a call of something else is no return address of this one. */
	view.regs[WL_STACK_REG_PC] = base + 0x110;
	cnt = unwind(unwinder, &end);
	CU_ASSERT_FATAL(cnt >= 2);
	CU_ASSERT_EQUAL(frames[1].pc, base + 0x305);
	unwinder__free(unwinder);
	munmap(code, 4096);
}
#endif

/* The code of a Go program as if it were mapped here; NULL: it cannot be read. */
static struct unwinder *unwinder_of_go(const char *path, const struct elf_file *file)
{
	const struct elf_code *code = &elf_file__head(file)->code[0];
	target_mappings mappings = {0};
	struct target_mapping mapping = {.exec = true, .file_off = code->file_off & ~4095ULL};
	struct unwinder *unwinder = NULL;
	struct stat stat_of;

	CU_ASSERT_EQUAL_FATAL(stat(path, &stat_of), 0);
	mapping.start = code->addr & ~4095ULL;
	mapping.end = code->addr + code->sz;
	mapping.dev = stat_of.st_dev;
	mapping.ino = stat_of.st_ino;
	mapping.path = strdup(path);
	CU_ASSERT_EQUAL_FATAL(vec_push(&mappings, mapping), 0);
	CU_ASSERT_EQUAL_FATAL(unwinder__new(getpid(), &mappings, NULL, &unwinder), 0);
	return unwinder;
}

/* Go's assembly may use the frame pointer as it likes: the size of its frame leads to its caller. */
static void assembly_of_go_is_left_without_frame_pointer(void)
{
	const struct elf_function *leaf, *first;
	const struct unwind_rule *rule = NULL;
	struct unwinder *unwinder;
	struct elf_file *file;
	uint64_t pc, caller;
	char path[PATH_MAX];
	enum unwind_end end;

	if (!unit_go_subject("go-subject-plain", path, sizeof(path)))
		return;
	file = elf_file__open(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	unwinder = unwinder_of_go(path, file);
	leaf = elf_file__find(file, "runtime.asyncPreempt.abi0");
	first = elf_file__find(file, "runtime.goexit.abi0");
	CU_ASSERT_FATAL(leaf && first);
	for (pc = leaf->addr; pc < leaf->addr + leaf->size; pc++) {
		rule = unwinder__rule(unwinder, pc);
		if (rule && rule->cfa.off > 64 && rule->cfa.off < (int64_t)sizeof(view.stack))
			break;
	}
	CU_ASSERT_FATAL(pc < leaf->addr + leaf->size);
	memset(&view, 0, sizeof(view));
	memset(view.regs, 0x47, sizeof(view.regs));
	view.stack_sz = (size_t)rule->cfa.off;
	view.regs[WL_STACK_REG_PC] = pc;
	view.regs[WL_STACK_REG_SP] = 0xc000040000;
	caller = first->addr + 1;
	memcpy(view.stack + (EH_ENTRY_SP ? rule->cfa.off - EH_ENTRY_SP : 0), &caller, sizeof(caller));
	CU_ASSERT_EQUAL(unwind(unwinder, &end), 2);
	CU_ASSERT_EQUAL(frames[1].pc, caller);
	CU_ASSERT_EQUAL(frames[1].how, UNWIND_BY_CFI);
	CU_ASSERT_EQUAL(end, UNWIND_START);
	unwinder__free(unwinder);
	elf_file__free(file);
}

static void nonsense_ends_at_once(void)
{
	struct unwinder *unwinder = open_own();
	enum unwind_end end;

	memset(&view, 0, sizeof(view));
	CU_ASSERT_EQUAL(unwind(unwinder, &end), 1);
	CU_ASSERT_EQUAL(end, UNWIND_CUT);
	memset(&view, 0xff, sizeof(view));
	view.stack_sz = sizeof(view.stack);
	CU_ASSERT_EQUAL(unwind(unwinder, &end), 1);
	CU_ASSERT_NOT_EQUAL(end, UNWIND_START);
	view.stack_wanted = 0;
	unwinder__free(unwinder);
}

#if defined(__x86_64__)
/* Where the linker put the stubs of this program: 0 if there are none. */
static uint64_t plt_of_this_program(uint64_t *sz)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t found = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(elf);
	CU_ASSERT_EQUAL_FATAL(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (name && !strcmp(name, ".plt") && shdr.sh_entsize == 16) {
			found = shdr.sh_addr + _r_debug.r_map->l_addr;
			*sz = shdr.sh_size;
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}

/* In a stub the return address moves from the top of the stack to the word below it: an expression says so. */
static void stubs_of_the_linker_are_left(void)
{
	struct unwinder *unwinder = open_own();
	uint64_t sz = 0, plt = plt_of_this_program(&sz), *stack = (uint64_t *)view.stack;
	enum unwind_end end;

	if (!plt || sz < 32) {
		printf("SKIP: this linker makes no lazy stubs\n");
		unwinder__free(unwinder);
		return;
	}
	subject_call(SUBJECT_PLAIN, &view);
	for (int into = 0; into < 16; into++) {
		bool pushed = into >= 11;

		memset(view.stack, 0, 64);
		view.stack_sz = 24;
		stack[0] = pushed ? 5 : view.backtrace[1];
		stack[1] = pushed ? view.backtrace[1] : 5;
		view.regs[WL_STACK_REG_PC] = plt + 16 + into;
		CU_ASSERT(unwind(unwinder, &end) >= 2);
		CU_ASSERT_EQUAL(frames[1].pc, view.backtrace[1]);
		CU_ASSERT_EQUAL(frames[1].how, UNWIND_BY_CFI);
		CU_ASSERT_EQUAL(frames[1].cfa, view.regs[WL_STACK_REG_SP] + (pushed ? 16 : 8));
	}
	unwinder__free(unwinder);
}

static void calls_are_told_from_other_bytes(void)
{
	static const struct {
		uint8_t code[8];
		size_t sz;
	} cases[] = {
		{{0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4}, 5},             /* call rel32 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, 2}, /* call *%rax */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4}, 3}, /* call *%r12 */
		{{0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4}, 6},             /* call *x(%rip) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x18}, 3}, /* call *0x18(%rax) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 8}, 4},    /* call *8(%rsp) */
		{{0x41, 0xff, 0x94, 0xc4, 1, 2, 0, 0}, 8},             /* call *0x201(%r12,%rax,8) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc8}, 3}, /* call *(%rax,%rcx,8) */
		{{0x90, 0xff, 0x14, 0xc5, 1, 2, 3, 4}, 7},             /* call *x(,%rax,8) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, 0}, /* jmp *%rax */
		{{0x90, 0x90, 0x90, 0xe9, 1, 2, 3, 4}, 0},             /* jmp rel32 */
		{{0, 0, 0, 0, 0, 0, 0, 0}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(unwind_call_sz(cases[i].code + 8, 8), cases[i].sz);
	CU_ASSERT_EQUAL(unwind_call_sz(cases[0].code + 8, 4), 0);
	CU_ASSERT_EQUAL(unwind_call_sz(cases[1].code + 8, 2), 2);
	CU_ASSERT_EQUAL(unwind_call_sz(cases[1].code + 8, 0), 0);
}
#endif

static struct unwind_regs some_regs(void)
{
	struct unwind_regs regs = {.known = ~0ULL};

	for (int i = 0; i < WL_STACK_REGS; i++)
		regs.values[i] = 1000 + i;
	return regs;
}

static int evaluate(const struct unwind_op *ops, size_t cnt, uint64_t *value)
{
	static const uint64_t words[2] = {0x1122334455667788, 77};
	struct unwind_memory memory = {.bytes = (const uint8_t *)words, .addr = 0x1000, .sz = sizeof(words)};
	struct unwind_regs regs = some_regs();

	return unwind_evaluate(ops, cnt, &memory, &regs, 0x5000, value);
}

static void expressions_are_evaluated(void)
{
	const struct unwind_op plus[] = {
		{.atom = DW_OP_breg3, .number = -2ULL}, {.atom = DW_OP_call_frame_cfa}, {.atom = DW_OP_plus}};
	const struct unwind_op deref[] = {{.atom = DW_OP_constu, .number = 0x1008}, {.atom = DW_OP_deref}};
	const struct unwind_op small[] = {{.atom = DW_OP_constu, .number = 0x1000},
					  {.atom = DW_OP_deref_size, .number = 2}};
	const struct unwind_op beyond[] = {{.atom = DW_OP_constu, .number = 0x1009}, {.atom = DW_OP_deref}};
	const struct unwind_op before[] = {{.atom = DW_OP_constu, .number = 0xfff}, {.atom = DW_OP_deref}};
	const struct unwind_op empty[] = {{.atom = DW_OP_plus}};
	const struct unwind_op by_zero[] = {{.atom = DW_OP_lit1}, {.atom = DW_OP_lit0}, {.atom = DW_OP_div}};
	const struct unwind_op pick[] = {{.atom = DW_OP_lit7}, {.atom = DW_OP_lit9}, {.atom = DW_OP_pick, .number = 1}};
	const struct unwind_op rot[] = {{.atom = DW_OP_lit1},
					{.atom = DW_OP_lit2},
					{.atom = DW_OP_lit3},
					{.atom = DW_OP_rot},
					{.atom = DW_OP_minus}};
	const struct unwind_op forever[] = {{.atom = DW_OP_skip, .number = -3ULL, .offset = 0}};
	const struct unwind_op branch[] = {{.atom = DW_OP_lit1, .offset = 0},
					   {.atom = DW_OP_lit1, .offset = 1},
					   {.atom = DW_OP_bra, .number = 1, .offset = 2},
					   {.atom = DW_OP_lit9, .offset = 5},
					   {.atom = DW_OP_lit4, .offset = 6},
					   {.atom = DW_OP_shl, .offset = 7}};
	const struct unwind_op astray[] = {{.atom = DW_OP_const2u, .number = 1, .offset = 0},
					   {.atom = DW_OP_skip, .number = -5ULL, .offset = 3}};
	uint64_t value = 0;

	CU_ASSERT(!evaluate(plus, 3, &value) && value == 1003 - 2 + 0x5000);
	CU_ASSERT(!evaluate(deref, 2, &value) && value == 77);
	CU_ASSERT(!evaluate(small, 2, &value) && value == 0x7788);
	CU_ASSERT_EQUAL(evaluate(beyond, 2, &value), -ENODATA);
	CU_ASSERT_EQUAL(evaluate(before, 2, &value), -EFAULT);
	CU_ASSERT_EQUAL(evaluate(empty, 1, &value), -EINVAL);
	CU_ASSERT_EQUAL(evaluate(by_zero, 3, &value), -EINVAL);
	CU_ASSERT(!evaluate(pick, 3, &value) && value == 7);
	/* 1 2 3 → 3 1 2 */
	CU_ASSERT(!evaluate(rot, 5, &value) && value == UINT64_MAX);
	CU_ASSERT_EQUAL(evaluate(forever, 1, &value), -EINVAL);
	CU_ASSERT(!evaluate(branch, 6, &value) && value == 1 << 4);
	CU_ASSERT_EQUAL(evaluate(astray, 2, &value), -EINVAL);
	CU_ASSERT_EQUAL(evaluate(plus, 0, &value), -EINVAL);
}

static void unknown_registers_lead_nowhere(void)
{
	uint64_t words[2] = {42, 43};
	struct unwind_memory memory = {.bytes = (const uint8_t *)words, .addr = 0x1000, .sz = sizeof(words)};
	struct unwind_regs regs = some_regs(), caller;
	struct unwind_rule rule = {
		.known = true,
		.ra = 1,
		.cnt = 2,
		.cfa = {.what = UNWIND_REGISTER, .reg = 2, .off = 16},
		.lines = {{.what = UNWIND_SAVED, .of = 1, .off = -8}, {.what = UNWIND_SAVED, .of = 3, .off = 800}},
	};

	regs.values[2] = 0x1000;
	CU_ASSERT_EQUAL_FATAL(unwind_rule__apply(&rule, &memory, &regs, &caller), 0);
	CU_ASSERT_EQUAL(caller.values[WL_STACK_REG_PC], 43);
	CU_ASSERT_EQUAL(caller.values[WL_STACK_REG_SP], 0x1010);
	CU_ASSERT_EQUAL(caller.values[0], 1000);
	/* What cannot be read is not known from then on. */
	CU_ASSERT(!(caller.known >> 3 & 1));
	regs.known &= ~(1ULL << 2);
	CU_ASSERT_EQUAL(unwind_rule__apply(&rule, &memory, &regs, &caller), -EINVAL);
}

int suite_unwind(void)
{
	static const struct unit_test tests[] = {
		{"frames of all shapes agree with libgcc", frames_of_all_shapes_agree_with_libgcc},
		{"registers of callers agree with libgcc", registers_of_callers_agree_with_libgcc},
		{"threads are followed to their beginning", threads_are_followed_to_their_beginning},
		{"signals are passed", signals_are_passed},
		{"a stack that is cut is said to be", a_stack_that_is_cut_is_said_to_be},
		{"depth is bounded", depth_is_bounded},
		{"code without CFI is guessed at", code_without_cfi_is_guessed_at},
		{"assembly of Go is left without frame pointer", assembly_of_go_is_left_without_frame_pointer},
		{"nonsense ends at once", nonsense_ends_at_once},
#if defined(__x86_64__)
		{"leaves without frames are left", leaves_without_frames_are_left},
#endif
#if defined(__x86_64__)
		{"stubs of the linker are left", stubs_of_the_linker_are_left},
		{"calls are told from other bytes", calls_are_told_from_other_bytes},
#endif
		{"expressions are evaluated", expressions_are_evaluated},
		{"unknown registers lead nowhere", unknown_registers_lead_nowhere},
	};

	return unit_suite("unwind", tests, sizeof(tests) / sizeof(tests[0]));
}
