// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any bytes as an answer of whylate-symbols, and the functions inlined in any tree of debugging information
 * entries, as that process reads them.
 */
#include "dwarf_tree.h"
#include "target/symbols_wire.h"

#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

/* The whole of the answer is names, each one's NUL included; none is empty, too long or acts on a terminal. */
static void check_answer(const uint8_t *bytes, size_t sz)
{
	struct symbols_answer answer = {0};
	struct symbols_question question = {.ask = SYMBOLS_ASK_INLINED};
	ssize_t names_sz;
	size_t at = 0;

	memcpy(&answer, bytes, sz < sizeof(answer) ? sz : sizeof(answer));
	question.seq = answer.seq;
	if (!symbols_go_check(&answer, sz, &question))
		NEED(answer.err || (answer.go.goid <= UINT16_MAX + 1 && answer.go.stopping_sz <= 4));
	names_sz = symbols_answer_check(&answer, sz, &question);
	if (names_sz < 0)
		return;
	NEED(answer.cnt <= INLINES_DEPTH_MAX && SYMBOLS_ANSWER_HEAD + (size_t)names_sz == sz);
	for (uint32_t i = 0; i < answer.cnt; i++) {
		size_t len = strlen(answer.names + at);

		NEED(len && len < INLINES_NAME_SZ);
		for (size_t k = 0; k < len; k++)
			NEED((uint8_t)answer.names[at + k] >= ' ' && answer.names[at + k] != 0x7f);
		at += len + 1;
	}
	NEED(at == (size_t)names_sz);
}

/* How many addresses have something inlined. */
static size_t check_file(const struct file *file)
{
	const char *names[INLINES_DEPTH_MAX];
	struct inlines *inlines;
	size_t found = 0;
	char path[64];

	dwarf_file_path(file, path, sizeof(path));
	inlines = inlines__open(open(path, O_RDONLY | O_CLOEXEC));
	for (uint64_t addr = TEXT_ADDR; inlines && addr < TEXT_ADDR + TEXT_SZ; addr++) {
		size_t cnt = inlines__at(inlines, addr, names);

		NEED(cnt <= INLINES_DEPTH_MAX);
		for (size_t i = 0; i < cnt; i++)
			NEED(*names[i] && strlen(names[i]) < INLINES_NAME_SZ);
		found += cnt > 0;
	}
	inlines__free(inlines);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static const uint8_t text[TEXT_SZ] = {0x90};
	struct file file = {0}, info = {0};
	struct input input = {bytes, sz};

	check_answer(bytes, sz);
	put_info(&info, &input);
	dwarf_file_make(&file, abbrevs, sizeof(abbrevs), &info, NULL, 0, text);
	check_file(&file);
	return 0;
}
