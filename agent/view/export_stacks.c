// SPDX-License-Identifier: GPL-2.0-or-later
/* The user stacks of a recording, folded. */
#include "view/export.h"

#include "base/folded.h"
#include "base/idmap.h"
#include "base/names.h"
#include "base/order.h"
#include "shard/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct stack {
	uint32_t state, frames; /* of the strings */
	double ns;
};

/* Of one frame of the kernel's, and of a whole stack. */
#define NAME_SZ 128
#define LINE_SZ (64 * 1024)

struct stacks {
	VEC(struct stack) items;
	struct idmap ids;
	struct intern strings;
	char line[LINE_SZ];
};

static int add(struct stacks *stacks, const char *state, const char *frames, double ns)
{
	struct stack stack = {.ns = ns};
	uint32_t id;

	if (intern__id(&stacks->strings, state, &stack.state) || intern__id(&stacks->strings, frames, &stack.frames) ||
	    idmap__id(&stacks->ids, stack.state, stack.frames, &id))
		return -ENOMEM;
	if (id == stacks->items.cnt)
		return vec_push(&stacks->items, stack);
	stacks->items.items[id].ns += ns;
	return 0;
}

/* The kernel's part is marked as flame graphs mark it. */
static void whole_stack(struct stacks *stacks, const char *user, const char *kernel)
{
	char frame[NAME_SZ];

	snprintf(stacks->line, sizeof(stacks->line), "%s", user);
	while (*kernel) {
		size_t len = strcspn(kernel, ";");

		snprintf(frame, sizeof(frame), "%.*s_[k]", (int)(len < NAME_SZ - 8 ? len : NAME_SZ - 8), kernel);
		folded_add(stacks->line, sizeof(stacks->line), frame);
		kernel += len + (kernel[len] == ';');
	}
}

static int add_block(struct stacks *stacks, const struct shard_block *block)
{
	const struct stack_columns col = block_columns(block, STACK, stack);
	int err = 0;

	for (uint32_t row = 0; row < block->row_cnt && col.weight && !err; row++) {
		double ns = column_f64_or(col.weight, row, 0);
		bool is_delaying = col.sid && column_is_null(col.sid, row) && col.delays &&
				   !column_is_null(col.delays, row) && col.delays->values[row].u64;

		if (!isfinite(ns) || !(ns > 0))
			continue;
		whole_stack(stacks, column_text(col.frames, row), column_text(col.kernel_frames, row));
		err = add(stacks, is_delaying ? "delaying" : column_text(col.state, row), stacks->line, ns);
	}
	return err;
}

ORDER(compare, struct stack, BY(b->ns, a->ns), BY(a->frames, b->frames));

/* "stack;CATEGORY;STATE;root;…;leaf"; on the CPU the state says nothing more.  Of others while they delayed intervals,
 * "stack;delaying;root;…;leaf". */
static void put(FILE *out, const struct stacks *stacks, const struct stack *stack)
{
	const char *name = stacks->strings.strings[stack->state];
	int state = state_by_name(name);
	char frame[64] = "";

	if (!(stack->ns >= 0.5))
		return;
	if (strcmp(name, "delaying"))
		folded_add(frame, sizeof(frame), state < 0 ? "?" : category_name(state_category((enum wl_state)state)));
	if (state != WL_STATE_RUNNING)
		folded_add(frame, sizeof(frame), name);
	fprintf(out, "stack;%s;", frame);
	/* Whatever a file may hold, it is one line. */
	for (const char *text = stacks->strings.strings[stack->frames]; *text; text++)
		putc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
	fprintf(out, " %.0f\n", stack->ns);
}

int export_folded_stacks(FILE *out, struct shard_reader *reader)
{
	static const char *const tables[] = {"stack"};
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	const struct shard_block *block;
	int err;

	if (!stacks)
		return -ENOMEM;
	stacks->strings.arena = arena__new();
	err = stacks->strings.arena ? 0 : -ENOMEM;
	if (!err)
		err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = add_block(stacks, block);
	if (!err)
		vec_sort(&stacks->items, compare);
	for (size_t i = 0; i < stacks->items.cnt && !err; i++)
		put(out, stacks, &stacks->items.items[i]);
	idmap__free(&stacks->ids);
	vec_free(&stacks->items);
	intern__free(&stacks->strings);
	arena__free(stacks->strings.arena);
	free(stacks);
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
