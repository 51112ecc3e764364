// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any bytes as an ELF file: its symbols, also compressed ones, its unwind table, its relocations, its code,
 * and plans for probes on it.  Build and run: make fuzz
 */
#include "probe/plan.h"
#include "target/data_symbol.h"
#include "target/eh_frame_read.h"
#include "target/elf_file.h"
#include "target/elf_relocs_read.h"
#include "target/elf_symbols.h"
#include "target/go_frames.h"
#include "target/go_table.h"
#include "target/usdt_notes.h"
#include "target/variable_read.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

/* The promises of elf_file.h. */
static void check(const struct elf_file *file, size_t sz)
{
	const struct elf_function *functions;
	size_t cnt = elf_file__functions(file, &functions);

	for (size_t i = 0; i < cnt; i++) {
		if (i && strcmp(functions[i - 1].name, functions[i].name) >= 0)
			abort();
		if (functions[i].file_off >= sz || functions[i].size > sz - functions[i].file_off)
			abort();
		if (elf_file__find(file, functions[i].name) != &functions[i])
			abort();
	}
	if (strlen(elf_file__build_id(file)) % 2)
		abort();
	elf_file__symbol_kind(file, "environ");
	elf_file__is_go(file);
}

/* What whylate-symbols reads is what the agent takes, or nothing. */
static void check_answer(int err, struct elf_rows *rows, size_t sz)
{
	if (!err && (elf_rows_check_head(&rows->head, sz) || elf_rows_check(rows)))
		abort();
	elf_rows_free(rows);
	*rows = (struct elf_rows){0};
}

static void check_rows(int fd, const char *path, size_t sz)
{
	const struct elf_symbols_source source = {.fd = fd};
	struct elf_image *image = elf_image__open(path);
	struct elf_rows rows = {0};
	int err = elf_symbols_read(&source, &rows);

	if (!err && image)
		err = elf_dynamic_read(image, &rows);
	check_answer(err, &rows, sz);
	if (!image)
		return;
	check_answer(eh_frame_read(image, false, &rows), &rows, sz);
	check_answer(eh_frame_read(image, true, &rows), &rows, sz);
	check_answer(eh_frame_read(image, false, &rows) ?: go_frames_add(image, &rows), &rows, sz);
	check_answer(go_frames_add(image, &rows), &rows, sz);
	check_answer(go_table_read(image, &rows), &rows, sz);
	check_answer(elf_relocs_read(image, &rows), &rows, sz);
	check_answer(usdt_notes_read(image, &rows), &rows, sz);
	check_answer(variable_read(image, "environ", STT_OBJECT, &rows.head.variable), &rows, sz);
	check_answer(variable_read(image, "errno", STT_TLS, &rows.head.variable), &rows, sz);
	for (uint64_t off = 0; off < 8192; off += 1021)
		check_answer(data_symbol_read(image, off, &rows.head.datum), &rows, sz);
	elf_image__free(image);
}

/* A site lies in the function's segment, and an exit has a reason when there is none. */
static void check_plan(struct program *program, uint32_t id, size_t sz)
{
	static const struct plan_needs needs = {.exit = true, .args = 1};
	const struct call_edge *edges;
	plan_lines lines = {0};
	struct plan plan;
	size_t cnt;

	program__callees(program, id, &edges, &cnt);
	if (plan_make(program, id, &needs, &plan))
		return;
	if (plan.possible ? plan.entry.file_off >= sz : !plan.why)
		abort();
	if (plan.possible && plan.exit == PLAN_EXIT_NONE && !plan.exit_why)
		abort();
	if (plan_describe(program, &plan, &lines))
		abort();
	plan_lines_free(&lines);
	plan_free(&plan);
}

static void check_program(const char *path, size_t sz)
{
	struct program *program;
	uint32_t first, cnt;

	if (program__open_file(path, NULL, &program))
		return;
	if (!program__module_functions(program, 0, &first, &cnt))
		for (uint32_t i = 0; i < cnt && i < 32; i++)
			check_plan(program, first + i, sz);
	program__loads(program);
	program__is_linked(program, 0);
	program__free(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_file *file;
	char path[64];

	if (fd < 0 || write(fd, bytes, sz) != (ssize_t)sz)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_rows(fd, path, sz);
	file = elf_file__open(path);
	if (file)
		check(file, sz);
	elf_file__free(file);
	check_program(path, sz);
	close(fd);
	return 0;
}
