// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/eh_frame.h"

#include "base/order.h"
#include "target/elf_reader.h"

#include <errno.h>
#include <stdlib.h>

struct eh_frame {
	struct elf_rows rows;
};

struct eh_frame *eh_frame__read(int fd, bool functions_only)
{
	struct elf_read read = {.fd = fd, .what = functions_only ? ELF_READ_FUNCTIONS : ELF_READ_FRAMES};
	struct eh_frame *frame = calloc(1, sizeof(*frame));
	int err = frame ? elf_reader_read(&read, &frame->rows) : -ENOMEM;

	if (!err)
		return frame;
	eh_frame__free(frame);
	errno = -err;
	return NULL;
}

void eh_frame__free(struct eh_frame *frame)
{
	if (frame)
		elf_rows_free(&frame->rows);
	free(frame);
}

size_t eh_frame__sz(const struct eh_frame *frame)
{
	return frame ? elf_rows_sz(&frame->rows) : 0;
}

size_t eh_frame__functions(const struct eh_frame *frame, const struct frame_function **functions)
{
	*functions = frame->rows.frames.items;
	return frame->rows.frames.cnt;
}

static const struct frame_rule *rule_of(const struct eh_frame *frame, uint32_t rule)
{
	return rule == FRAME_RULE_NONE ? NULL : &frame->rows.rules.items[rule];
}

const struct frame_rule *eh_frame__first_rule(const struct eh_frame *frame, const struct frame_function *function)
{
	return rule_of(frame, function->rule);
}

const struct frame_rule *eh_frame__rule(const struct eh_frame *frame, uint64_t addr)
{
	const struct frame_step *steps = frame->rows.steps.items;
	uint64_t off = addr - frame->rows.head.frames_base;
	size_t at;

	if (addr < frame->rows.head.frames_base)
		return NULL;
	at = search_first(0, frame->rows.steps.cnt, mid, steps[mid].off > off);
	return at ? rule_of(frame, steps[at - 1].rule) : NULL;
}

const struct unwind_where *eh_frame__lines(const struct eh_frame *frame, const struct frame_rule *rule)
{
	return frame->rows.lines.items + rule->first_line;
}

const struct unwind_op *eh_frame__ops(const struct eh_frame *frame)
{
	return frame->rows.ops.items;
}
