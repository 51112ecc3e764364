// SPDX-License-Identifier: GPL-2.0-or-later
/* What whylate-symbols reads of .eh_frame: the same as libdw does, and nothing impossible. */
#include "base/bytes.h"
#include "base/vec.h"
#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/elf_rows.h"
#include "target/go_frames.h"
#include "unit.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* --- Go ----------------------------------------------------------------------------------------------------------- */

struct go_oracle {
	struct oracle oracle;
	size_t starts, unknown, assembly; /* rules that say there is no caller; none; of assembly with a frame */
};

/* What .debug_frame has of the row at that address; where it ends.  Each is of one function. */
static uint64_t compare_go_row(struct go_oracle *go, uint64_t addr, uint64_t end, bool is_assembly)
{
	const struct frame_rule *rule = eh_frame__rule(go->oracle.frame, addr);
	const struct unwind_where *lines = rule ? eh_frame__lines(go->oracle.frame, rule) : NULL;
	Dwarf_Addr row_begin = 0, row_end = 0;
	Dwarf_Frame *frame;
	bool signal;

	if (dwarf_cfi_addrframe(go->oracle.cfi, addr, &frame))
		return end;
	dwarf_frame_info(frame, &row_begin, &row_end, &signal);
	row_end = row_end > addr && row_end < end ? row_end : end;
	if (!rule) {
		go->unknown++;
	} else if (rule->is_start) {
		go->starts++;
	} else {
		go->oracle.rows++;
		go->assembly += is_assembly && rule->cfa.off > EH_ENTRY_SP;
		if (!cfa_is_same(&go->oracle, &rule->cfa, frame) ||
		    eh_frame__rule(go->oracle.frame, row_end - 1) != rule ||
		    (EH_ENTRY_SP && lines[rule->line_cnt - 1].off != -EH_ENTRY_SP))
			go->oracle.wrong++;
	}
	free(frame);
	return row_end;
}

static void frames_of_go_are_as_its_debugging_information_has_them(void)
{
	struct go_oracle go = {0};
	const struct elf_function *functions;
	struct elf_file *file;
	char path[PATH_MAX];
	Dwarf *dwarf;
	size_t cnt;
	int fd;

	if (!unit_go_subject("go-subject-plain", path, sizeof(path)))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	file = elf_file__open(path);
	dwarf = dwarf_begin(fd, DWARF_C_READ);
	go.oracle.frame = eh_frame__read(fd, false);
	CU_ASSERT_FATAL(file && dwarf && go.oracle.frame);
	go.oracle.cfi = dwarf_getcfi(dwarf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(go.oracle.cfi);
	cnt = elf_file__by_addr(file, &functions);
	for (size_t i = 0; i < cnt; i++)
		for (uint64_t addr = functions[i].addr, end = addr + functions[i].size; addr < end;)
			addr = compare_go_row(&go, addr, end, !strcmp(functions[i].name, "runtime.asyncPreempt.abi0"));
	CU_ASSERT(go.oracle.rows > 3000);
	CU_ASSERT_EQUAL(go.oracle.wrong, 0);
	CU_ASSERT(go.starts > 2 && go.starts < 100);
	CU_ASSERT(go.unknown > 0 && go.unknown < 200);
	CU_ASSERT(go.assembly > 0);
	eh_frame__free((struct eh_frame *)go.oracle.frame);
	elf_file__free(file);
	dwarf_end(dwarf);
	close(fd);
}

/* What a damaged table says is what the agent takes, or nothing. */
static void tables_of_go_are_not_trusted(void)
{
	static const uint64_t values[] = {0, 1, 0x7f, 0x80, UINT32_MAX, INT64_MAX, UINT64_MAX};
	const struct elf_section *section;
	struct elf_image *image;
	char path[PATH_MAX];
	struct stat file;
	uint8_t *bytes;

	if (!unit_go_subject("go-subject-stripped", path, sizeof(path)))
		return;
	image = elf_image__open(path);
	section = image ? elf_image__section(image, ".gopclntab") : NULL;
	CU_ASSERT_FATAL(section && section->size > 4096 && !stat(path, &file));
	bytes = elf_image__copy(image, 0, (uint64_t)file.st_size, UINT64_MAX);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	/* The header's words, and the first functions' places and entries. */
	for (size_t at = 8; at < 4096; at += at < 72 ? 8 : 250) {
		uint64_t off = section->file_off + (at < 72 ? at : get_le(bytes + section->file_off + 64, 8) + at), was;
		int damaged = memfd_create("go", MFD_CLOEXEC);
		struct elf_rows rows = {0};
		struct elf_image *its;

		memcpy(&was, bytes + off, sizeof(was));
		memcpy(bytes + off, &values[at / 8 % (sizeof(values) / sizeof(values[0]))], sizeof(was));
		CU_ASSERT_EQUAL_FATAL(write(damaged, bytes, (size_t)file.st_size), file.st_size);
		memcpy(bytes + off, &was, sizeof(was));
		its = elf_image__of(damaged);
		CU_ASSERT_PTR_NOT_NULL_FATAL(its);
		CU_ASSERT_EQUAL(go_frames_add(its, &rows), 0);
		CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
		elf_rows_free(&rows);
		elf_image__free(its);
	}
	free(bytes);
	elf_image__free(image);
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
		{"frames of Go are as its debugging information has them",
		 frames_of_go_are_as_its_debugging_information_has_them},
		{"tables of Go are not trusted", tables_of_go_are_not_trusted},
		{"what has none says so", what_has_none_says_so},
		{"rows are not trusted", rows_are_not_trusted},
	};

	return unit_suite("eh_frame", tests, sizeof(tests) / sizeof(tests[0]));
}
