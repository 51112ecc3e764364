// SPDX-License-Identifier: GPL-2.0-or-later
/* The planner on hand-made machine code, instruction by instruction. */
#include "elf_fixture.h"
#include "probe/plan.h"
#include "probe/site.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

#ifdef __x86_64__
/* One instruction each. */
static void the_kernel_s_verdict_on_each_instruction(void)
{
	static const struct {
		uint8_t bytes[12];
		size_t len;
		enum site_kind kind;
	} cases[] = {
		{{0x55}, 1, SITE_EMULATED},                                       /* push %rbp */
		{{0x54}, 1, SITE_EMULATED},                                       /* push %rsp */
		{{0x41, 0x57}, 2, SITE_EMULATED},                                 /* push %r15 */
		{{0x40, 0x55}, 2, SITE_STEPPED},                                  /* rex push %rbp */
		{{0x66, 0x55}, 2, SITE_STEPPED},                                  /* push %bp */
		{{0x68, 1, 0, 0, 0}, 5, SITE_STEPPED},                            /* push $1 */
		{{0x90}, 1, SITE_EMULATED},                                       /* nop */
		{{0x66, 0x90}, 2, SITE_EMULATED},                                 /* xchg %ax,%ax */
		{{0xf3, 0x90}, 2, SITE_STEPPED},                                  /* pause */
		{{0x49, 0x90}, 2, SITE_REFUSED},                                  /* xchg %rax,%r8 */
		{{0x0f, 0x1f, 0x00}, 3, SITE_LONG_NOP},                           /* nopl (%rax) */
		{{0x0f, 0x1f, 0x40, 0x00}, 4, SITE_LONG_NOP},                     /* nopl 0(%rax) */
		{{0x0f, 0x1f, 0x44, 0x00, 0x00}, 5, SITE_CALLABLE_NOP},           /* nopl 0(%rax,%rax) */
		{{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}, 6, SITE_LONG_NOP},         /* nopw 0(%rax,%rax) */
		{{0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0}, 8, SITE_LONG_NOP},         /* nopl 0(%rax,%rax) */
		{{0x2e, 0x0f, 0x1f, 0x44, 0x00, 0x00}, 6, SITE_REFUSED},          /* cs nopl */
		{{0x0f, 0x1f, 0xc0}, 3, SITE_STEPPED},                            /* nop %eax: not the kernel's own */
		{{0xe8, 0, 0, 0, 0}, 5, SITE_EMULATED},                           /* call */
		{{0x66, 0xe8, 0, 0, 0, 0}, 6, SITE_REFUSED},                      /* callw */
		{{0xe9, 0, 0, 0, 0}, 5, SITE_EMULATED},                           /* jmp */
		{{0xeb, 0}, 2, SITE_EMULATED},                                    /* jmp */
		{{0x74, 0}, 2, SITE_EMULATED},                                    /* je */
		{{0x0f, 0x85, 0, 0, 0, 0}, 6, SITE_EMULATED},                     /* jne */
		{{0xf2, 0xe9, 0, 0, 0, 0}, 6, SITE_EMULATED},                     /* bnd jmp */
		{{0xe3, 0}, 2, SITE_STEPPED},                                     /* jrcxz */
		{{0xff, 0xd0}, 2, SITE_STEPPED},                                  /* call *%rax */
		{{0xff, 0xe0}, 2, SITE_STEPPED},                                  /* jmp *%rax */
		{{0x3e, 0xff, 0xe0}, 3, SITE_REFUSED},                            /* notrack jmp *%rax */
		{{0xc3}, 1, SITE_STEPPED},                                        /* ret */
		{{0xf3, 0xc3}, 2, SITE_STEPPED},                                  /* repz ret */
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, SITE_STEPPED},                      /* endbr64 */
		{{0x48, 0x89, 0xe5}, 3, SITE_STEPPED},                            /* mov %rsp,%rbp */
		{{0x48, 0x8b, 0x05, 0, 0, 0, 0}, 7, SITE_STEPPED},                /* mov 0(%rip),%rax */
		{{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 9, SITE_STEPPED}, /* mov %fs:0x28,%rax */
		{{0xf0, 0xff, 0x07}, 3, SITE_REFUSED},                            /* lock incl (%rdi) */
		{{0xf3, 0x48, 0xab}, 3, SITE_REFUSED},                            /* rep stos */
		{{0x48, 0xab}, 2, SITE_STEPPED},                                  /* stos */
		{{0xc5, 0xf8, 0x77}, 3, SITE_REFUSED},                            /* vzeroupper, "ja" to the kernel */
		{{0xc5, 0xf9, 0xeb, 0xc1}, 4, SITE_REFUSED},                      /* vpor, "jmp" to the kernel */
		{{0xc4, 0xe2, 0xfb, 0xf7, 0xc7}, 5, SITE_REFUSED},                /* shrx */
		{{0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1}, 6, SITE_REFUSED},          /* vmovaps %zmm1,%zmm0 */
		{{0x8f, 0x00}, 2, SITE_STEPPED},                                  /* pop (%rax) */
		{{0x0f, 0x05}, 2, SITE_REFUSED},                                  /* syscall */
		{{0x0f, 0x0b}, 2, SITE_REFUSED},                                  /* ud2 */
		{{0x0f, 0xae, 0xf0}, 3, SITE_REFUSED},                            /* mfence */
		{{0x9c}, 1, SITE_REFUSED},                                        /* pushf */
		{{0xcc}, 1, SITE_REFUSED},                                        /* int3 */
		{{0xf4}, 1, SITE_REFUSED},                                        /* hlt */
		{{0xc7, 0xf8, 0, 0, 0, 0}, 6, SITE_REFUSED},                      /* xbegin */
		{{0x8e, 0xd0}, 2, SITE_REFUSED},                                  /* mov %eax,%ss */
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		const char *why;
		enum site_kind kind = site_judge(cases[i].bytes, cases[i].len, &why);

		CU_ASSERT_EQUAL(kind, cases[i].kind);
		CU_ASSERT_EQUAL(!why, kind != SITE_REFUSED);
		if (kind != cases[i].kind)
			fprintf(stderr, "case %zu: %d\n", i, kind);
	}
}

/*
 * A file of up to three functions: `f` of these bytes, `g` at +0x100, and what else is wanted.  begin: where the
 * program does, 0: nowhere.
 */
static struct program *program_begun_at(uint64_t begin, const uint8_t *f, size_t f_sz, const char *g, size_t g_sz,
					const struct made_symbol *third)
{
	const struct made_symbol symbols[] = {
		{"f", CODE_ADDR, STT_FUNC, STB_GLOBAL, f_sz},
		{"g", CODE_ADDR + 0x100, STT_FUNC, STB_GLOBAL, g_sz},
		third ? *third : (struct made_symbol){"h", CODE_ADDR + 0x200, STT_FUNC, STB_GLOBAL, 2},
	};
	struct program *program = NULL;
	struct made_elf made;
	char path[64];
	int fd;

	elf_make(&made, symbols, ARRAY_CNT(symbols), ".text");
	memset(made.bytes + CODE_OFF, 0xcc, CODE_SZ);
	memcpy(made.bytes + CODE_OFF, f, f_sz);
	memcpy(made.bytes + CODE_OFF + 0x100, g, g_sz);
	memcpy(made.bytes + CODE_OFF + 0x200, "\xff\xd0", 2);
	made_header(&made)->e_entry = begin;
	fd = elf_make_file(made.bytes, made.sz, path);
	CU_ASSERT_EQUAL_FATAL(program__open_file(path, NULL, &program), 0);
	close(fd);
	return program;
}

static struct program *program_of(const uint8_t *f, size_t f_sz, const char *g, size_t g_sz,
				  const struct made_symbol *third)
{
	return program_begun_at(0, f, f_sz, g, g_sz, third);
}

/* xor %eax,%eax; ret: calls nothing and throws nothing. */
#define HARMLESS_G "\x31\xc0\xc3", 3

static struct program *c_program_of(const uint8_t *bytes, size_t sz)
{
	return program_of(bytes, sz, HARMLESS_G, NULL);
}

/* With a symbol that only C++ has. */
static struct program *cxx_program_of(const uint8_t *bytes, size_t sz)
{
	static const struct made_symbol catcher = {"__cxa_begin_catch", CODE_ADDR + 0x200, STT_FUNC, STB_GLOBAL, 2};

	return program_of(bytes, sz, HARMLESS_G, &catcher);
}

/* xor %eax,%eax; xor %edx,%edx; push %rbp; pop %rbp; ret */
static const uint8_t late_push[] = {0x31, 0xc0, 0x31, 0xd2, 0x55, 0x5d, 0xc3};

static void plan_of(struct program *program, const char *name, const struct plan_needs *needs, struct plan *plan)
{
	CU_ASSERT_EQUAL_FATAL(plan_make(program, program__function_find(program, 0, name), needs, plan), 0);
}

#define IMPOSSIBLE 99

static void the_entry_moves_as_far_as_it_may(void)
{
	static const struct {
		uint8_t bytes[32];
		size_t sz;
		struct plan_needs needs;
		unsigned off;
		uint32_t sp_bias;
		enum plan_cost cost;
	} cases[] = {
		/* push %rbp; pop %rbp; ret */
		{{0x55, 0x5d, 0xc3}, 3, {0}, 0, 0, PLAN_EMULATED},
		/* endbr64; push %rbp; … */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x5d, 0xc3},
		 7,
		 {.args = 0x3f, .flags = true, .memory = true},
		 4,
		 0,
		 PLAN_EMULATED},
		/* sub $8,%rsp; call g; add $8,%rsp; ret */
		{{0x48, 0x83, 0xec, 0x08, 0xe8, 0xf7, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3},
		 14,
		 {.args = 1},
		 4,
		 8,
		 PLAN_EMULATED},
		/* where flags are read: sub changes them */
		{{0x48, 0x83, 0xec, 0x08, 0xe8, 0xf7, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3},
		 14,
		 {.flags = true},
		 0,
		 0,
		 PLAN_STEPPED},
		/* with a return probe: at the call [rsp] is no longer the return address */
		{{0x48, 0x83, 0xec, 0x08, 0xe8, 0xf7, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3},
		 14,
		 {.exit = true},
		 0,
		 0,
		 PLAN_STEPPED},
		/* mov %rdi,%rax; test %rdi,%rdi; je +1; ret; ret: rdi intact */
		{{0x48, 0x89, 0xf8, 0x48, 0x85, 0xff, 0x74, 0x01, 0xc3, 0xc3}, 10, {.args = 1}, 6, 0, PLAN_EMULATED},
		/* mov %rsi,%rdi; jmp g */
		{{0x48, 0x89, 0xf7, 0xe9, 0xf8, 0, 0, 0}, 8, {0}, 3, 0, PLAN_EMULATED},
		{{0x48, 0x89, 0xf7, 0xe9, 0xf8, 0, 0, 0}, 8, {.args = 2}, 3, 0, PLAN_EMULATED},
		{{0x48, 0x89, 0xf7, 0xe9, 0xf8, 0, 0, 0}, 8, {.args = 1}, 0, 0, PLAN_STEPPED},
		/* mov %edi,%edi clears half of it */
		{{0x89, 0xff, 0x55, 0x5d, 0xc3}, 5, {.args = 1}, 0, 0, PLAN_STEPPED},
		/* mov %sil,%dil */
		{{0x40, 0x88, 0xf7, 0x55, 0x5d, 0xc3}, 6, {.args = 1}, 0, 0, PLAN_STEPPED},
		/* xchg %rdi,%rax writes both */
		{{0x48, 0x97, 0x55, 0x5d, 0xc3}, 5, {.args = 1}, 0, 0, PLAN_STEPPED},
		/* cqto writes rdx without naming it */
		{{0x48, 0x99, 0x55, 0x5d, 0xc3}, 5, {.args = 4}, 0, 0, PLAN_STEPPED},
		/* movq $0,(%rdi): what the probe would read is gone */
		{{0x48, 0xc7, 0x07, 0, 0, 0, 0, 0x55, 0x5d, 0xc3}, 10, {.args = 1, .memory = true}, 0, 0, PLAN_STEPPED},
		{{0x48, 0xc7, 0x07, 0, 0, 0, 0, 0x55, 0x5d, 0xc3}, 10, {.args = 1}, 7, 0, PLAN_EMULATED},
		/* sub $24,%rsp; mov %rdi,8(%rsp); call g; …: a store to its own frame */
		{{0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x7c, 0x24, 0x08, 0xe8, 0xf2, 0, 0, 0, 0x48, 0x83, 0xc4, 0x18,
		  0xc3},
		 19,
		 {.args = 1, .memory = true},
		 9,
		 24,
		 PLAN_EMULATED},
		/* mov %rax,8(%rsp): a store to the caller's */
		{{0x48, 0x89, 0x44, 0x24, 0x08, 0x55, 0x5d, 0xc3}, 8, {.memory = true}, 0, 0, PLAN_STEPPED},
		/* and $-16,%rsp: nobody knows how far */
		{{0x48, 0x83, 0xe4, 0xf0, 0x55, 0x5d, 0xc3}, 7, {0}, 0, 0, PLAN_STEPPED},
		/* lea -0x20(%rsp),%rsp; call g; … */
		{{0x48, 0x8d, 0x64, 0x24, 0xe0, 0xe8, 0xf6, 0, 0, 0, 0x48, 0x8d, 0x64, 0x24, 0x20, 0xc3},
		 16,
		 {0},
		 5,
		 0x20,
		 PLAN_EMULATED},
		/* pop %rax: above its own frame */
		{{0x58, 0x50, 0xc3}, 3, {0}, 0, 0, PLAN_STEPPED},
		/* endbr64; nopl: safe while nothing is kept below the stack pointer */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}, 10, {0}, 4, 0, PLAN_EMULATED},
		{{0x48, 0x89, 0x7c, 0x24, 0xf8, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}, 11, {0}, 0, 0, PLAN_STEPPED},
		{{0x0f, 0x1f, 0x40, 0x00, 0x55, 0x5d, 0xc3}, 7, {.no_long_nops = true}, 4, 0, PLAN_EMULATED},
		/* xor %eax,%eax; 1: dec %edi; jne 1b: a loop leads back between entry and site */
		{{0x31, 0xc0, 0xff, 0xcf, 0x75, 0xfc, 0xc3}, 7, {0}, 0, 0, PLAN_STEPPED},
		/* 1: dec %edi; jne 1b: to the entry itself */
		{{0xff, 0xcf, 0x75, 0xfc, 0xc3}, 5, {0}, IMPOSSIBLE, 0, 0},
		/* lock incl (%rdi); ret: refused at the entry, the next one serves */
		{{0xf0, 0xff, 0x07, 0xc3}, 4, {0}, 3, 0, PLAN_STEPPED},
		{{0xf0, 0xff, 0x07, 0xc3}, 4, {.memory = true}, IMPOSSIBLE, 0, 0},
		/* mov $1,%eax; syscall: time passes in it */
		{{0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x74, 0x00, 0xc3}, 10, {0}, 0, 0, PLAN_STEPPED},
		/* rep movsb: likewise, and each byte would be a hit */
		{{0xf3, 0x48, 0xa4, 0x55, 0x5d, 0xc3}, 6, {0}, IMPOSSIBLE, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct program *program = c_program_of(cases[i].bytes, cases[i].sz);
		struct plan plan;
		bool right;

		plan_of(program, "f", &cases[i].needs, &plan);
		if (cases[i].off == IMPOSSIBLE)
			right = !plan.possible && plan.why;
		else
			right = plan.possible && plan.entry.file_off == CODE_OFF + cases[i].off &&
				plan.entry.sp_bias == cases[i].sp_bias && plan.entry.cost == cases[i].cost &&
				!plan.why == (plan.entry.cost == PLAN_EMULATED);
		CU_ASSERT(right);
		if (!right)
			fprintf(stderr, "case %zu: +0x%lx, bias %u, cost %d, %s\n", i, plan.entry.file_off - CODE_OFF,
				plan.entry.sp_bias, plan.entry.cost, plan.why ? plan.why : "-");
		plan_free(&plan);
		program__free(program);
	}
}

static void a_return_probe_where_nobody_unwinds(void)
{
	/* push %rbx; call g; pop %rbx; ret */
	static const uint8_t bytes[] = {0x53, 0xe8, 0xfa, 0, 0, 0, 0x5b, 0xc3};
	/* push %rbx; call *%rax; pop %rbx; ret */
	static const uint8_t unknown[] = {0x53, 0xff, 0xd0, 0x5b, 0xc3};
	const struct plan_needs needs = {.exit = true, .args = 1};
	struct program *programs[] = {c_program_of(bytes, sizeof(bytes)), c_program_of(unknown, sizeof(unknown)),
				      cxx_program_of(bytes, sizeof(bytes))};

	for (size_t i = 0; i < ARRAY_CNT(programs); i++) {
		struct plan plan;

		plan_of(programs[i], "f", &needs, &plan);
		CU_ASSERT(plan.possible);
		CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_URETPROBE);
		CU_ASSERT_EQUAL(plan.uretprobe_off, CODE_OFF);
		CU_ASSERT_EQUAL(plan.entry.file_off, CODE_OFF);
		CU_ASSERT_PTR_NULL(plan.exit_why);
		CU_ASSERT_EQUAL(plan.exits.cnt, 0);
		plan_free(&plan);
		program__free(programs[i]);
	}
}

static void check_lines(struct program *program, const struct plan *plan)
{
	static const char *const parts[] = {":f", "push", "ret", "jmp", "unwinder"};
	plan_lines lines = {0};

	CU_ASSERT_EQUAL_FATAL(plan_describe(program, plan, &lines), 0);
	CU_ASSERT_EQUAL_FATAL(lines.cnt, ARRAY_CNT(parts));
	for (size_t i = 0; i < lines.cnt; i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(lines.items[i], parts[i]));
	CU_ASSERT_PTR_NOT_NULL(strstr(lines.items[1], "emulated"));
	CU_ASSERT_PTR_NOT_NULL(strstr(lines.items[2], "stepped"));
	plan_lines_free(&lines);
}

static void probes_on_all_ends_where_exceptions_may_pass(void)
{
	/* push %rbx; test %edi,%edi; je 1f; call *%rax; pop %rbx; ret; 1: pop %rbx; jmp g */
	static const uint8_t bytes[] = {0x53, 0x85, 0xff, 0x74, 0x04, 0xff, 0xd0, 0x5b,
					0xc3, 0x5b, 0xe9, 0xf1, 0x00, 0x00, 0x00};
	const struct plan_needs needs = {.exit = true, .args = 1};
	struct program *program = cxx_program_of(bytes, sizeof(bytes));
	struct plan plan;

	CU_ASSERT(program__catches(program));
	CU_ASSERT(!program__switches_stacks(program));
	CU_ASSERT(program__may_throw(program, program__function_find(program, 0, "f")));
	CU_ASSERT(!program__may_throw(program, program__function_find(program, 0, "g")));
	plan_of(program, "f", &needs, &plan);
	CU_ASSERT(plan.possible);
	CU_ASSERT_EQUAL(plan.entry.file_off, CODE_OFF);
	CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_SITES);
	CU_ASSERT_EQUAL_FATAL(plan.exits.cnt, 2);
	CU_ASSERT_EQUAL(plan.exits.items[0].file_off, CODE_OFF + 8);
	CU_ASSERT_EQUAL(plan.exits.items[0].cost, PLAN_STEPPED);
	CU_ASSERT_EQUAL(plan.exits.items[1].file_off, CODE_OFF + 10);
	CU_ASSERT_EQUAL(plan.exits.items[1].cost, PLAN_EMULATED);
	CU_ASSERT_PTR_NOT_NULL(plan.exit_why);
	check_lines(program, &plan);
	plan_free(&plan);
	/* The time of g would be missing. */
	plan_of(program, "f", &(struct plan_needs){.exit = true, .whole = true}, &plan);
	CU_ASSERT(plan.possible);
	CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_NONE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(plan.exit_why);
	CU_ASSERT_PTR_NOT_NULL(strstr(plan.exit_why, "would be missing"));
	plan_free(&plan);
	program__free(program);
}

/* A return probe there would change what is no return address, or wait for what does not come. */
static void what_does_not_return_has_no_exit(void)
{
	static const struct made_symbol jumper = {"siglongjmp", CODE_ADDR + 0x200, STT_FUNC, STB_GLOBAL, 2};
	const struct plan_needs needs = {.exit = true};
	struct program *programs[] = {
		program_of(late_push, sizeof(late_push), HARMLESS_G, &jumper),
		/* mov %rdi,(%rdi); mov (%rsi),%rsp; ret */
		program_of(late_push, sizeof(late_push), "\x48\x89\x3f\x48\x8b\x26\xc3", 7, NULL),
		/* mov $15,%rax; syscall */
		program_of(late_push, sizeof(late_push), "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, NULL),
	};
	static const char *const names[] = {"siglongjmp", "g", "g"};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_CNT(programs); i++) {
		plan_of(programs[i], names[i], &needs, &plan);
		CU_ASSERT_EQUAL(plan.possible, i < 2);
		CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_NONE);
		CU_ASSERT_PTR_NOT_NULL(i < 2 ? plan.exit_why : plan.why);
		plan_free(&plan);
		plan_of(programs[i], "f", &needs, &plan);
		CU_ASSERT_NOT_EQUAL(plan.exit, PLAN_EXIT_NONE);
		plan_free(&plan);
		program__free(programs[i]);
	}
}

/* Where the file says that the program begins. */
static void a_program_s_beginning_has_no_exit(void)
{
	const struct plan_needs needs = {.exit = true};
	struct program *program = program_begun_at(CODE_ADDR + 0x100, late_push, sizeof(late_push), HARMLESS_G, NULL);
	struct plan plan;

	plan_of(program, "g", &needs, &plan);
	CU_ASSERT(plan.possible);
	CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_NONE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(plan.exit_why);
	CU_ASSERT_PTR_NOT_NULL(strstr(plan.exit_why, "begins there"));
	plan_free(&plan);
	plan_of(program, "f", &needs, &plan);
	CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_URETPROBE);
	plan_free(&plan);
	program__free(program);
}

/* mov (%rsi),%rsp at the beginning of something: a C program, but its stacks take turns. */
static void probes_on_all_ends_where_stacks_take_turns(void)
{
	static const uint8_t bytes[] = {0x53, 0xff, 0xd0, 0x5b, 0xc3};
	const struct plan_needs needs = {.exit = true};
	struct program *program = program_of(bytes, sizeof(bytes), "\x48\x89\x27\x48\x8b\x26\xc3", 7, NULL);
	struct plan plan;

	CU_ASSERT(program__switches_stacks(program));
	CU_ASSERT_EQUAL(program__hazards(program), HAZARD_SWITCHES);
	plan_of(program, "f", &needs, &plan);
	CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_SITES);
	CU_ASSERT_EQUAL(plan.exits.cnt, 1);
	plan_free(&plan);
	program__free(program);
}

/* Others are under way that it would make the kernel lose. */
static void no_return_probe_once_none_is_trusted(void)
{
	/* push %rbx; call *%rax; pop %rbx; ret, and push %rbx; mov %rdi,%rbx; pop %rbx; ret */
	static const uint8_t calling[] = {0x53, 0xff, 0xd0, 0x5b, 0xc3}, alone[] = {0x53, 0x48, 0x89, 0xfb, 0x5b, 0xc3};
	const struct plan_needs needs = {.exit = true};
	struct program *programs[] = {c_program_of(calling, sizeof(calling)), c_program_of(alone, sizeof(alone))};

	for (size_t i = 0; i < ARRAY_CNT(programs); i++) {
		struct plan plan;

		CU_ASSERT_EQUAL(program__hazards(programs[i]), 0);
		plan_of(programs[i], "f", &needs, &plan);
		CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_URETPROBE);
		plan_free(&plan);
		program__distrust_returns(programs[i]);
		CU_ASSERT(program__distrusts_returns(programs[i]));
		plan_of(programs[i], "f", &needs, &plan);
		CU_ASSERT(plan.possible);
		CU_ASSERT_EQUAL(plan.exit, PLAN_EXIT_SITES);
		CU_ASSERT_EQUAL(plan.exits.cnt, 1);
		CU_ASSERT_PTR_NOT_NULL(plan.exit_why);
		plan_free(&plan);
		program__free(programs[i]);
	}
}

static void ends_that_cannot_be_probed(void)
{
	static const struct {
		uint8_t bytes[16];
		size_t sz;
		const char *why;
	} cases[] = {
		/* call *%rax alone, and jmp *slot(%rip) */
		{{0xff, 0xe0}, 2, "register"},
		{{0xff, 0x25, 0, 0, 0, 0}, 6, "too small"},
		/* push %rbx; 1: call *%rax; jmp 1b */
		{{0x53, 0xff, 0xd0, 0xeb, 0xfc}, 5, "never returns"},
		/* push %rbx; call *%rax; pop %rbx; je g; ret */
		{{0x53, 0xff, 0xd0, 0x5b, 0x0f, 0x84, 0xf6, 0, 0, 0, 0xc3}, 11, "conditional"},
		/* call *%rax; notrack jmp *slot(%rip) */
		{{0xff, 0xd0, 0x3e, 0xff, 0x25, 0, 0, 0, 0}, 9, "prefix"},
		/* call *%rax; jmp *%rcx, which may be a switch */
		{{0xff, 0xd0, 0xff, 0xe1}, 4, "register"},
		/* call *%rax; jmp into the middle of g */
		{{0xff, 0xd0, 0xe9, 0xfb, 0, 0, 0}, 7, "middle"},
		/* call *%rax; jmp 1f + 1; 1: mov $…,%eax */
		{{0xff, 0xd0, 0xeb, 0x02, 0xb8, 0x90, 0x90, 0x90, 0xc3, 0xc3}, 10, "middle"},
		/* call *%rax; what is no instruction */
		{{0xff, 0xd0, 0x06}, 3, "no instruction"},
	};
	const struct plan_needs needs = {.exit = true};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct program *program = cxx_program_of(cases[i].bytes, cases[i].sz);
		struct plan plan;
		bool right;

		plan_of(program, "f", &needs, &plan);
		right = plan.possible && plan.exit == PLAN_EXIT_NONE && plan.exit_why &&
			strstr(plan.exit_why, cases[i].why) && !plan.exits.cnt;
		CU_ASSERT(right);
		if (!right)
			fprintf(stderr, "case %zu: %d %s\n", i, plan.exit, plan.exit_why ? plan.exit_why : "-");
		plan_free(&plan);
		program__free(program);
	}
}

static void code_that_others_enter_is_left_alone(void)
{
	static const struct made_symbol inner = {"inner", CODE_ADDR + 4, STT_FUNC, STB_LOCAL, 3};
	const struct plan_needs needs = {0};
	struct program *programs[] = {
		/* jmp f+2 */
		program_of(late_push, sizeof(late_push), "\xe9\xfd\xfe\xff\xff", 5, NULL),
		program_of(late_push, sizeof(late_push), HARMLESS_G, &inner),
		/* nobody: for comparison */
		program_of(late_push, sizeof(late_push), HARMLESS_G, NULL),
	};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_CNT(programs); i++) {
		plan_of(programs[i], "f", &needs, &plan);
		CU_ASSERT(plan.possible);
		CU_ASSERT_EQUAL(plan.entry.file_off, i < 2 ? CODE_OFF : CODE_OFF + 4);
		plan_free(&plan);
	}
	plan_of(programs[1], "inner", &needs, &plan);
	CU_ASSERT(!plan.possible);
	CU_ASSERT_PTR_NOT_NULL(plan.why);
	plan_free(&plan);
	for (size_t i = 0; i < ARRAY_CNT(programs); i++)
		program__free(programs[i]);
}

static void what_is_not_called_is_not_probed(void)
{
	static const struct made_symbol part = {"f.cold", CODE_ADDR + 0x200, STT_FUNC, STB_LOCAL, 2};
	static const struct made_symbol chooser = {"chooser", CODE_ADDR + 0x200, STT_GNU_IFUNC, STB_GLOBAL, 2};
	const struct plan_needs needs = {0};
	struct program *programs[] = {program_of(late_push, sizeof(late_push), HARMLESS_G, &part),
				      program_of(late_push, sizeof(late_push), HARMLESS_G, &chooser)};
	static const char *const names[] = {"f.cold", "chooser"};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_CNT(programs); i++) {
		plan_of(programs[i], names[i], &needs, &plan);
		CU_ASSERT(!plan.possible);
		CU_ASSERT_PTR_NOT_NULL(plan.why);
		plan_free(&plan);
		CU_ASSERT(plan_make(programs[i], PROGRAM_NONE, &needs, &plan) < 0);
		program__free(programs[i]);
	}
}

static void a_marker_s_site_is_checked(void)
{
	/* nop; lock incl (%rdi); mov %rsp,%rbp; nop of five bytes; nop of four; ret */
	static const uint8_t bytes[] = {0x90, 0xf0, 0xff, 0x07, 0x48, 0x89, 0xe5, 0x0f, 0x1f,
					0x44, 0x00, 0x00, 0x0f, 0x1f, 0x40, 0x00, 0xc3};
	struct program *program = c_program_of(bytes, sizeof(bytes));
	enum plan_cost cost;
	const char *why;

	CU_ASSERT_EQUAL(plan_site_check(program, 0, CODE_OFF, &cost, &why), 0);
	CU_ASSERT_EQUAL(cost, PLAN_EMULATED);
	CU_ASSERT_EQUAL(plan_site_check(program, 0, CODE_OFF + 4, &cost, &why), 0);
	CU_ASSERT_EQUAL(cost, PLAN_STEPPED);
	CU_ASSERT(plan_site_check(program, 0, CODE_OFF + 1, &cost, &why) < 0);
	CU_ASSERT_PTR_NOT_NULL(why);
	CU_ASSERT(plan_site_check(program, 0, CODE_OFF + 7, &cost, &why) < 0);
	CU_ASSERT_PTR_NOT_NULL(why);
	CU_ASSERT_EQUAL(plan_site_check(program, 0, CODE_OFF + 12, &cost, &why), 0);
	CU_ASSERT_EQUAL(cost, PLAN_EMULATED);
	CU_ASSERT(plan_site_check(program, 0, CODE_OFF + CODE_SZ + 100, &cost, &why) < 0);
	CU_ASSERT(plan_site_check(program, 7, CODE_OFF, &cost, &why) < 0);
	program__free(program);
}
#endif

int suite_plan(void)
{
	static const struct unit_test tests[] = {
#ifdef __x86_64__
		{"the kernel's verdict on each instruction", the_kernel_s_verdict_on_each_instruction},
		{"the entry moves as far as it may", the_entry_moves_as_far_as_it_may},
		{"a return probe where nobody unwinds", a_return_probe_where_nobody_unwinds},
		{"probes on all ends where exceptions may pass", probes_on_all_ends_where_exceptions_may_pass},
		{"probes on all ends where stacks take turns", probes_on_all_ends_where_stacks_take_turns},
		{"no return probe once none is trusted", no_return_probe_once_none_is_trusted},
		{"ends that cannot be probed", ends_that_cannot_be_probed},
		{"what does not return has no exit", what_does_not_return_has_no_exit},
		{"a program's beginning has no exit", a_program_s_beginning_has_no_exit},
		{"code that others enter is left alone", code_that_others_enter_is_left_alone},
		{"what is not called is not probed", what_is_not_called_is_not_probed},
		{"a marker's site is checked", a_marker_s_site_is_checked},
#else
		{NULL, NULL},
#endif
	};

	return unit_suite("plan", tests, tests[0].name ? sizeof(tests) / sizeof(tests[0]) : 0);
}
