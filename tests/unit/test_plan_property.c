// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The planner on every function of real binaries, judged by others than those that it asks: the operands that Capstone
 * names, the unwinder's table, and all jumps of the whole module.
 */
#include "probe/plan.h"
#include "target/eh_frame.h"
#include "target/elf_image.h"
#include "target/function_code.h"
#include "unit.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))
#define BROKEN_SHOWN     10

/* What the shares are counted of: functions that are called. */
enum tally {
	CALLED,
	POSSIBLE,
	FAST_ENTRY,
	FAST_WITH_RDI,
	FAST_WITH_EXIT,
	WITH_URETPROBE,
	WITH_SITES,
	WHOLE,
	BIASES_CHECKED,
	TALLY_CNT
};

struct judge {
	const char *path;
	struct program *program;
	uint32_t first, cnt;
	struct elf_image *image;
	struct eh_frame *frame;
	csh capstone;
	cs_insn *insn;
	VEC(uint64_t) targets; /* of every direct jump and call, ascending */
	size_t broken_cnt;     /* how often a property did not hold */
	size_t tally[TALLY_CNT];
};

static void broken(struct judge *judge, const struct plan *plan, const char *what)
{
	if (judge->broken_cnt++ < BROKEN_SHOWN)
		fprintf(stderr, "%s: %s: %s\n", judge->path, program__function(judge->program, plan->function)->shown,
			what);
}

static int addr_cmp(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void targets_collect(struct judge *judge)
{
	for (uint32_t i = 0; i < judge->cnt; i++) {
		struct function_code code;

		if (!program__function_code(judge->program, judge->first + i, &code))
			for (size_t j = 0; j < code.pieces[0].insns.cnt; j++)
				if (code.pieces[0].insns.items[j].flags & CODE_TARGET)
					CU_ASSERT_EQUAL_FATAL(
						vec_push(&judge->targets, code.pieces[0].insns.items[j].target), 0);
		function_code_free(&code);
	}
	if (judge->targets.cnt)
		qsort(judge->targets.items, judge->targets.cnt, sizeof(uint64_t), addr_cmp);
}

static bool is_target_within(const struct judge *judge, uint64_t first, uint64_t last)
{
	size_t low = 0, high = judge->targets.cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (judge->targets.items[mid] < first)
			low = mid + 1;
		else
			high = mid;
	}
	return low < judge->targets.cnt && judge->targets.items[low] <= last;
}

static bool writes(struct judge *judge, x86_reg reg64, x86_reg reg32)
{
	uint8_t read_cnt, write_cnt;
	cs_regs read, written;

	CU_ASSERT_EQUAL_FATAL(cs_regs_access(judge->capstone, judge->insn, read, &read_cnt, written, &write_cnt),
			      CS_ERR_OK);
	for (size_t i = 0; i < write_cnt; i++)
		if (written[i] == reg64 || written[i] == reg32)
			return true;
	return false;
}

static bool leads_elsewhere(const struct judge *judge)
{
	static const uint8_t groups[] = {CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET, CS_GRP_INT};

	for (size_t i = 0; i < sizeof(groups); i++)
		if (cs_insn_group(judge->capstone, judge->insn, groups[i]))
			return true;
	return false;
}

/* From the entry to the site: one instruction after the other, none of which jumps or writes what is needed. */
static void check_stretch(struct judge *judge, const struct plan *plan, const struct plan_needs *needs)
{
	const struct program_function *function = program__function(judge->program, plan->function);
	uint64_t addr = function->addr, site = addr + (plan->entry.file_off - function->file_off);
	uint8_t bytes[256];
	const uint8_t *next = bytes;
	ssize_t len = program__read_code(judge->program, 0, addr, bytes, sizeof(bytes));
	size_t left = len > 0 ? len : 0;

	if (plan->entry.file_off < function->file_off || site - addr >= left) {
		broken(judge, plan, "the site is outside");
		return;
	}
	while (addr < site) {
		if (!cs_disasm_iter(judge->capstone, &next, &left, &addr, judge->insn) || addr > site) {
			broken(judge, plan, "the site is no instruction's first byte");
			return;
		}
		if (leads_elsewhere(judge))
			broken(judge, plan, "the site does not follow from the entry");
		if (needs->args & 1 && writes(judge, X86_REG_RDI, X86_REG_EDI))
			broken(judge, plan, "rdi is written before the site");
	}
	if (site > function->addr && is_target_within(judge, function->addr + 1, site))
		broken(judge, plan, "others jump between the entry and the site");
}

/* The unwinder's table has been written by the compiler, and knows nothing of us. */
static void check_bias(struct judge *judge, const struct plan *plan, const struct plan_site *site)
{
	const struct frame_rule *rule;
	uint64_t addr;

	if (!judge->frame || program__addr_at(judge->program, 0, site->file_off, &addr))
		return;
	rule = eh_frame__rule(judge->frame, addr);
	if (!rule || rule->cfa.what != UNWIND_REGISTER || rule->cfa.reg != EH_REG_SP)
		return;
	judge->tally[BIASES_CHECKED]++;
	if (rule->cfa.off - EH_ENTRY_SP != (int64_t)site->sp_bias)
		broken(judge, plan, "the unwinder's table knows another distance to the frame");
}

static bool is_exit(const struct plan *plan, uint64_t file_off)
{
	for (size_t i = 0; i < plan->exits.cnt; i++)
		if (plan->exits.items[i].file_off == file_off)
			return true;
	return false;
}

/* Every `ret` is one, none lies before the entry's site, and each is an instruction of the function. */
static void check_exits(struct judge *judge, const struct plan *plan)
{
	const struct program_function *function = program__function(judge->program, plan->function);
	struct function_code code;
	uint64_t file_off, addr;

	CU_ASSERT_EQUAL_FATAL(program__function_code(judge->program, plan->function, &code), 0);
	for (size_t i = 0; i < code.piece_cnt; i++)
		for (size_t j = 0; j < code.pieces[i].insns.cnt; j++) {
			const struct code_insn *insn = &code.pieces[i].insns.items[j];

			if (insn->kind == CODE_RETURN &&
			    (program__file_off(judge->program, 0, insn->addr, &file_off) || !is_exit(plan, file_off)))
				broken(judge, plan, "a return is no exit");
		}
	for (size_t i = 0; i < plan->exits.cnt; i++) {
		file_off = plan->exits.items[i].file_off;
		if (program__addr_at(judge->program, 0, file_off, &addr) || !function_code_at(&code, addr))
			broken(judge, plan, "an exit is no instruction of it");
		if (file_off >= function->file_off && file_off <= plan->entry.file_off)
			broken(judge, plan, "an exit comes before the entry's site");
		check_bias(judge, plan, &plan->exits.items[i]);
	}
	function_code_free(&code);
}

/* By what people know of these names, and by the header, not by what the planner looks at. */
static bool never_comes_back(const struct judge *judge, const struct plan *plan)
{
	static const char *const names[] = {"setcontext", "swapcontext", "longjmp",      "_longjmp",
					    "siglongjmp", "__longjmp",   "__restore_rt", "_start"};
	const struct program_function *function = program__function(judge->program, plan->function);

	for (size_t i = 0; i < ARRAY_CNT(names); i++)
		if (!strcmp(function->name, names[i]))
			return true;
	return function->addr == elf_image__entry(judge->image);
}

static void check_plan(struct judge *judge, const struct plan *plan, const struct plan_needs *needs)
{
	if (!plan->possible) {
		if (!plan->why)
			broken(judge, plan, "impossible, and nobody knows why");
		return;
	}
	check_stretch(judge, plan, needs);
	check_bias(judge, plan, &plan->entry);
	if (!plan->why != (plan->entry.cost == PLAN_EMULATED))
		broken(judge, plan, "a slow site without a reason, or a fast one with one");
	if (plan->exit == PLAN_EXIT_URETPROBE && (plan->uretprobe_off != plan->entry.file_off || plan->entry.sp_bias))
		broken(judge, plan, "a return probe where the return address is not");
	if (plan->exit == PLAN_EXIT_SITES)
		check_exits(judge, plan);
	if (needs->exit && plan->exit == PLAN_EXIT_NONE && !plan->exit_why)
		broken(judge, plan, "no exit, and nobody knows why");
	if (plan->exit != PLAN_EXIT_NONE && never_comes_back(judge, plan))
		broken(judge, plan, "an exit of what never comes back to its caller");
}

/* Of a whole call, only its returns are ends; and who needs no more than a time may have what it ends by as well. */
static void check_whole(struct judge *judge, uint32_t id)
{
	const struct plan_needs needs = {.exit = true, .whole = true};
	struct plan plan;

	CU_ASSERT_EQUAL_FATAL(plan_make(judge->program, id, &needs, &plan), 0);
	check_plan(judge, &plan, &needs);
	for (size_t i = 0; i < plan.exits.cnt; i++) {
		uint8_t bytes[CODE_INSN_MAX];
		const uint8_t *next = bytes;
		uint64_t addr = 0;
		ssize_t len = -1;
		size_t left;

		if (!program__addr_at(judge->program, 0, plan.exits.items[i].file_off, &addr))
			len = program__read_code(judge->program, 0, addr, bytes, sizeof(bytes));
		left = len > 0 ? len : 0;
		if (!cs_disasm_iter(judge->capstone, &next, &left, &addr, judge->insn) ||
		    !cs_insn_group(judge->capstone, judge->insn, CS_GRP_RET))
			broken(judge, &plan, "a whole call ends by something that is no return");
	}
	judge->tally[WHOLE] += plan.exit != PLAN_EXIT_NONE;
	plan_free(&plan);
}

static void judge_function(struct judge *judge, uint32_t id)
{
	static const struct {
		struct plan_needs needs;
		enum tally fast;
	} cases[] = {
		{{0}, FAST_ENTRY},
		{{.args = 1}, FAST_WITH_RDI},
		{{.args = 1, .exit = true}, FAST_WITH_EXIT},
		{{.args = 1, .memory = true, .flags = true}, TALLY_CNT},
	};

	if (program__function(judge->program, id)->is_part)
		return;
	judge->tally[CALLED]++;
	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct plan plan;

		CU_ASSERT_EQUAL_FATAL(plan_make(judge->program, id, &cases[i].needs, &plan), 0);
		check_plan(judge, &plan, &cases[i].needs);
		judge->tally[POSSIBLE] += !i && plan.possible;
		if (plan.possible && plan.entry.cost == PLAN_EMULATED && cases[i].fast != TALLY_CNT)
			judge->tally[cases[i].fast]++;
		judge->tally[WITH_URETPROBE] += plan.exit == PLAN_EXIT_URETPROBE;
		judge->tally[WITH_SITES] += plan.exit == PLAN_EXIT_SITES;
		plan_free(&plan);
	}
	check_whole(judge, id);
}

static double percent(const struct judge *judge, enum tally what)
{
	return judge->tally[CALLED] ? 100.0 * judge->tally[what] / judge->tally[CALLED] : 0;
}

static void judge_file(const char *path)
{
	struct judge judge = {.path = path};

	CU_ASSERT_EQUAL_FATAL(program__open_file(path, NULL, &judge.program), 0);
	CU_ASSERT_EQUAL_FATAL(program__module_functions(judge.program, 0, &judge.first, &judge.cnt), 0);
	judge.image = elf_image__open(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(judge.image);
	judge.frame = eh_frame__read(elf_image__fd(judge.image), false);
	CU_ASSERT_PTR_NOT_NULL(judge.frame);
	CU_ASSERT_EQUAL_FATAL(cs_open(CS_ARCH_X86, CS_MODE_64, &judge.capstone), CS_ERR_OK);
	cs_option(judge.capstone, CS_OPT_DETAIL, CS_OPT_ON);
	judge.insn = cs_malloc(judge.capstone);
	targets_collect(&judge);
	for (uint32_t i = 0; i < judge.cnt; i++)
		judge_function(&judge, judge.first + i);
	CU_ASSERT_EQUAL(judge.broken_cnt, 0);
	CU_ASSERT(judge.tally[CALLED] > 1000);
	CU_ASSERT(judge.tally[BIASES_CHECKED] > 1000);
	CU_ASSERT(percent(&judge, FAST_ENTRY) > 50);
	printf("\n    %s: %zu functions; emulated: entry alone %.1f %%, with rdi %.1f %%, with rdi and exit %.1f %%; "
	       "exits: %zu uretprobe, %zu sites, of whole calls %.1f %%; %zu distances checked ",
	       strrchr(path, '/') + 1, judge.tally[CALLED], percent(&judge, FAST_ENTRY), percent(&judge, FAST_WITH_RDI),
	       percent(&judge, FAST_WITH_EXIT), judge.tally[WITH_URETPROBE], judge.tally[WITH_SITES],
	       percent(&judge, WHOLE), judge.tally[BIASES_CHECKED]);
	vec_free(&judge.targets);
	cs_free(judge.insn, 1);
	cs_close(&judge.capstone);
	eh_frame__free(judge.frame);
	elf_image__free(judge.image);
	program__free(judge.program);
}

static void judge_library(const char *name)
{
	void *handle = dlopen(name, RTLD_LAZY);
	struct link_map *map = NULL;

	CU_ASSERT_FATAL(handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map));
	judge_file(map->l_name);
	dlclose(handle);
}

/* The servers need not be there to build or to test the rest. */
static void judge_first_of(const char *const *paths, size_t cnt, const char *what)
{
	for (size_t i = 0; i < cnt; i++)
		if (!access(paths[i], R_OK)) {
			judge_file(paths[i]);
			return;
		}
	printf("\n    skipped: %s is not installed ", what);
}

static void every_function_of_libc(void)
{
	judge_library("libc.so.6");
}

static void every_function_of_libstdcxx(void)
{
	judge_library("libstdc++.so.6");
}

static void every_function_of_postgres(void)
{
	static const char *const paths[] = {
		"/usr/lib/postgresql/18/bin/postgres", "/usr/lib/postgresql/17/bin/postgres",
		"/usr/lib/postgresql/16/bin/postgres", "/usr/lib/postgresql/15/bin/postgres"};

	judge_first_of(paths, ARRAY_CNT(paths), "postgres");
}

static void every_function_of_redis(void)
{
	static const char *const paths[] = {"/usr/bin/redis-server", "/usr/bin/valkey-server"};

	judge_first_of(paths, ARRAY_CNT(paths), "redis-server");
}
#endif

int suite_plan_property(void)
{
	static const struct unit_test tests[] = {
#ifdef __x86_64__
		{"every function of libc", every_function_of_libc},
		{"every function of libstdc++", every_function_of_libstdcxx},
		{"every function of postgres", every_function_of_postgres},
		{"every function of redis-server", every_function_of_redis},
#else
		{NULL, NULL},
#endif
	};

	return unit_suite("plan_property", tests, tests[0].name ? sizeof(tests) / sizeof(tests[0]) : 0);
}
