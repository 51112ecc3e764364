// SPDX-License-Identifier: GPL-2.0-or-later
/* What whylate-symbols reads of .eh_frame: the same as libdw does, and nothing impossible. */
#include "base/vec.h"
#include "target/eh_frame.h"
#include "target/elf_rows.h"
#include "unit.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- as libdw reads it -------------------------------------------------------------------------------------------- */

struct oracle {
	const struct eh_frame *frame;
	Dwarf_CFI *cfi;
	size_t rows, expressions, wrong;
};

static bool is_register(const Dwarf_Op *op, unsigned first, unsigned atom, uint64_t *reg)
{
	*reg = op->atom == atom ? op->number : op->atom - first;
	return op->atom == atom || (op->atom >= first && op->atom < first + 32);
}

static bool ops_are_same(const struct oracle *oracle, const struct unwind_where *where, const Dwarf_Op *ops, size_t cnt)
{
	const struct unwind_op *ours = eh_frame__ops(oracle->frame) + where->off;
	bool ends = cnt && ops[cnt - 1].atom == DW_OP_stack_value;

	cnt -= ends;
	if (where->op_cnt != cnt)
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (ours[i].atom != ops[i].atom || ours[i].number != ops[i].number || ours[i].number2 != ops[i].number2)
			return false;
	return true;
}

static bool cfa_is_same(struct oracle *oracle, const struct unwind_where *where, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	uint64_t reg;
	size_t cnt;

	if (dwarf_frame_cfa(frame, &ops, &cnt) || !cnt)
		return where->what == UNWIND_UNDEFINED;
	if (cnt == 1 && is_register(&ops[0], DW_OP_breg0, DW_OP_bregx, &reg))
		return where->what == UNWIND_REGISTER && where->reg == reg &&
		       (uint64_t)where->off == (ops[0].atom == DW_OP_bregx ? ops[0].number2 : ops[0].number);
	oracle->expressions++;
	return where->what == UNWIND_EXPR && ops_are_same(oracle, where, ops, cnt);
}

/* NULL: it keeps its value. */
static bool line_is_same(struct oracle *oracle, const struct unwind_where *where, Dwarf_Frame *frame, int reg)
{
	Dwarf_Op mem[3], *ops;
	uint64_t other;
	size_t cnt;

	if (dwarf_frame_register(frame, reg, mem, &ops, &cnt))
		return false;
	/* libdw's rules of the ABI may say that calls preserve rax, where rbx is meant. */
	if (!cnt)
		return !where ? !ops || reg == 3 : where->what == UNWIND_UNDEFINED && (ops || !reg);
	if (!where)
		return false;
	if (cnt == 1 && is_register(&ops[0], DW_OP_reg0, DW_OP_regx, &other))
		return where->what == UNWIND_REGISTER && where->reg == other && !where->off;
	if (ops[0].atom == DW_OP_call_frame_cfa && ops == mem) {
		bool has_off = cnt > 1 && ops[1].atom == DW_OP_plus_uconst;

		return where->what == (ops[cnt - 1].atom == DW_OP_stack_value ? UNWIND_CFA : UNWIND_SAVED) &&
		       (uint64_t)where->off == (has_off ? ops[1].number : 0);
	}
	oracle->expressions++;
	return (where->what == UNWIND_EXPR || where->what == UNWIND_SAVED_EXPR) &&
	       ops_are_same(oracle, where, ops, cnt);
}

static bool rule_is_same(struct oracle *oracle, const struct frame_rule *rule, Dwarf_Frame *frame, int ra, bool signal)
{
	const struct unwind_where *lines = eh_frame__lines(oracle->frame, rule);

	if (rule->ra != ra || rule->is_signal != signal || (!rule->is_start && !cfa_is_same(oracle, &rule->cfa, frame)))
		return false;
	for (int reg = 0; reg < UNWIND_REGS; reg++) {
		const struct unwind_where *line = NULL;

		for (uint8_t i = 0; i < rule->line_cnt; i++)
			if (lines[i].of == reg)
				line = &lines[i];
		if (!line_is_same(oracle, line, frame, reg))
			return false;
	}
	return true;
}

/* The rows of one function. */
static void compare_function(struct oracle *oracle, const struct frame_function *function)
{
	uint64_t addr = function->addr, end = function->addr + function->size;

	while (addr < end) {
		const struct frame_rule *rule = eh_frame__rule(oracle->frame, addr);
		Dwarf_Addr row_begin = 0, row_end = 0;
		Dwarf_Frame *frame;
		bool signal;
		int ra;

		if (dwarf_cfi_addrframe(oracle->cfi, addr, &frame))
			return;
		ra = dwarf_frame_info(frame, &row_begin, &row_end, &signal);
		oracle->rows++;
		if (row_begin > addr || row_end <= addr || !rule || !rule_is_same(oracle, rule, frame, ra, signal) ||
		    eh_frame__rule(oracle->frame, (row_end < end ? row_end : end) - 1) != rule)
			oracle->wrong++;
		addr = row_end > addr ? row_end : end;
		free(frame);
	}
}

static void compare(const char *path, struct oracle *oracle)
{
	const struct frame_function *functions;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct eh_frame *frame = eh_frame__read(fd, false), *fewer = eh_frame__read(fd, true);
	Elf *elf;
	size_t cnt;

	CU_ASSERT_FATAL(frame && fewer);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	oracle->frame = frame;
	oracle->cfi = dwarf_getcfi_elf(elf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(oracle->cfi);
	cnt = eh_frame__functions(frame, &functions);
	CU_ASSERT(cnt > 100);
	for (size_t i = 0; i < cnt; i++)
		compare_function(oracle, &functions[i]);
	CU_ASSERT_EQUAL(eh_frame__functions(fewer, &functions), cnt);
	for (size_t i = 0; i < cnt; i++)
		CU_ASSERT(eh_frame__first_rule(fewer, &functions[i]) && !eh_frame__rule(fewer, functions[i].addr));
	CU_ASSERT_PTR_NULL(eh_frame__rule(frame, 0));
	CU_ASSERT_PTR_NULL(eh_frame__rule(frame, UINT64_MAX));
	dwarf_cfi_end(oracle->cfi);
	elf_end(elf);
	eh_frame__free(frame);
	eh_frame__free(fewer);
	close(fd);
}

static const char *libc_path(void)
{
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (strstr(map->l_name, "libc.so.6"))
			return map->l_name;
	return NULL;
}

static void every_row_is_as_libdw_reads_it(void)
{
	const char *const paths[] = {"/proc/self/exe", libc_path()};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct oracle oracle = {0};

		compare(paths[i], &oracle);
		CU_ASSERT(oracle.rows > 10000);
		CU_ASSERT(!i || oracle.expressions > 0);
		CU_ASSERT_EQUAL(oracle.wrong, 0);
	}
}

static void what_has_none_says_so(void)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    text_fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	errno = 0;
	CU_ASSERT(!eh_frame__read(null_fd, false) && errno == ENOEXEC);
	CU_ASSERT(!eh_frame__read(text_fd, true) && errno == ENOEXEC);
	close(null_fd);
	close(text_fd);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static struct frame_function frames[2];
static struct frame_step steps[3];
static struct frame_rule rules[1];
static struct unwind_where lines[2];
static struct unwind_op ops[3];

static struct elf_rows good_rows(void)
{
	struct elf_rows rows = {
		.frames = {frames, 2, 0},
		.steps = {steps, 3, 0},
		.rules = {rules, 1, 0},
		.lines = {lines, 2, 0},
		.ops = {ops, 3, 0},
	};

	frames[0] = (struct frame_function){.addr = 0x1000, .size = 16};
	frames[1] = (struct frame_function){.addr = 0x1000, .size = 8, .rule = FRAME_RULE_NONE};
	steps[0] = (struct frame_step){0, 0};
	steps[1] = (struct frame_step){1, FRAME_RULE_NONE};
	steps[2] = (struct frame_step){UINT32_MAX, 0};
	rules[0] = (struct frame_rule){.cfa = {.what = UNWIND_REGISTER, .reg = 7, .off = 8}, .line_cnt = 2, .ra = 16};
	lines[0] = (struct unwind_where){.what = UNWIND_SAVED, .of = 3, .off = -16};
	lines[1] = (struct unwind_where){.what = UNWIND_EXPR, .of = 6, .op_cnt = 2, .off = 1};
	return rows;
}

static void check_is_refused(struct elf_rows *rows)
{
	CU_ASSERT_EQUAL(elf_rows_check(rows), -EBADMSG);
	*rows = good_rows();
}

static void rows_are_not_trusted(void)
{
	struct elf_rows rows = good_rows();

	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
	frames[0].size = 0;
	check_is_refused(&rows);
	frames[0].size = UINT64_MAX;
	check_is_refused(&rows);
	frames[0].addr++;
	check_is_refused(&rows);
	frames[0].rule = 1;
	check_is_refused(&rows);
	steps[0].off = 1;
	check_is_refused(&rows);
	steps[0].rule = 1;
	check_is_refused(&rows);
	rules[0].ra = UNWIND_REGS;
	check_is_refused(&rows);
	rules[0].is_start = 2;
	check_is_refused(&rows);
	rules[0].first_line = 1;
	check_is_refused(&rows);
	rules[0].first_line = UINT32_MAX;
	check_is_refused(&rows);
	rules[0].line_cnt = UNWIND_LINES_MAX + 1;
	check_is_refused(&rows);
	rules[0].cfa.reg = UNWIND_REGS;
	check_is_refused(&rows);
	lines[0].of = UNWIND_REGS;
	check_is_refused(&rows);
	lines[0].what = UNWIND_EXPR + 1;
	check_is_refused(&rows);
	lines[1].op_cnt = 0;
	check_is_refused(&rows);
	lines[1].op_cnt = 3;
	check_is_refused(&rows);
	lines[1].off = -1;
	check_is_refused(&rows);
	lines[1].off = 4;
	check_is_refused(&rows);
	rows.lines.cnt = 1;
	check_is_refused(&rows);
	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
}

int suite_eh_frame(void)
{
	static const struct unit_test tests[] = {
		{"every row is as libdw reads it", every_row_is_as_libdw_reads_it},
		{"what has none says so", what_has_none_says_so},
		{"rows are not trusted", rows_are_not_trusted},
	};

	return unit_suite("eh_frame", tests, sizeof(tests) / sizeof(tests[0]));
}
