// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/section_state.h"

#include <string.h>

#define DEPTH_MAX 3

void section_state_begin(struct section_state *state)
{
	memset(state, 0, sizeof(*state));
	state->regs[CODE_REG_SP] = (struct section_value){.kind = VALUE_FRAME, .sz = 8};
	for (uint8_t arg = 0; arg < SECTION_ARGS; arg++)
		state->regs[code_reg_of_arg(arg)] = (struct section_value){.kind = VALUE_ARG, .sz = 8, .root = arg + 1};
}

bool section_value_same(const struct section_value *a, const struct section_value *b)
{
	return a->kind == b->kind && a->root == b->root && a->inside == b->inside && a->off == b->off &&
	       a->site == b->site;
}

/* --- the stack ---------------------------------------------------------------------------------------------------- */

/* NULL: nothing is known of what lies there. */
static const struct section_slot *section_slot_at(const struct section_state *state, int32_t off)
{
	for (size_t i = 0; i < state->slot_cnt; i++)
		if (state->slots[i].off == off)
			return &state->slots[i];
	return NULL;
}

struct section_value section_stack_value(const struct section_state *state, int32_t off)
{
	const struct section_slot *slot = section_slot_at(state, off);

	return slot ? slot->value : (struct section_value){0};
}

static void slots_drop(struct section_state *state, int64_t off, int64_t sz)
{
	size_t kept = 0;

	for (size_t i = 0; i < state->slot_cnt; i++)
		if (state->slots[i].off >= off + sz || state->slots[i].off + state->slots[i].value.sz <= off)
			state->slots[kept++] = state->slots[i];
	state->slot_cnt = kept;
}

static void slot_set(struct section_state *state, int32_t off, struct section_value value)
{
	slots_drop(state, off, value.sz ? value.sz : 8);
	if (value.kind != VALUE_UNKNOWN && value.sz && state->slot_cnt < SECTION_SLOTS)
		state->slots[state->slot_cnt++] = (struct section_slot){off, value};
}

static struct section_value slot_get(const struct section_state *state, int32_t off, uint8_t sz)
{
	const struct section_slot *slot = section_slot_at(state, off);
	struct section_value value = {.kind = VALUE_SLOT, .sz = sz, .off = off};

	if (!slot)
		return value;
	if (slot->value.sz < sz)
		return (struct section_value){0};
	value = slot->value;
	value.sz = sz;
	return value;
}

/* --- where ways meet ---------------------------------------------------------------------------------------------- */

static struct section_value value_join(const struct section_value *a, const struct section_value *b)
{
	struct section_value joined = {0};

	if (section_value_same(a, b)) {
		joined = *a;
		joined.sz = a->sz < b->sz ? a->sz : b->sz;
	} else if (a->kind == VALUE_CONST && b->kind == VALUE_CONST) {
		joined = *a;
		joined.site = 0;
	} else if (a->kind == VALUE_CONST || b->kind == VALUE_CONST) {
		/* `job = NULL` where there is none: the other way has the value. */
		joined = a->kind == VALUE_CONST ? *b : *a;
	} else if ((a->kind == VALUE_FRAME || a->kind == VALUE_ARRAY) &&
		   (b->kind == VALUE_FRAME || b->kind == VALUE_ARRAY)) {
		/* It runs through an array. */
		joined = (struct section_value){.kind = VALUE_ARRAY, .sz = 8};
	} else if ((a->inside || b->inside) && section_value_is_taken(a) && section_value_is_taken(b)) {
		/* Of a free list or, where that is empty, new; what came out, and what follows it. */
		joined = a->inside && (!b->inside || a->site < b->site) ? *a : *b;
		joined.sz = a->sz < b->sz ? a->sz : b->sz;
	}
	return joined;
}

/* The deeper one: that a lock is held, or was given back, is what matters. */
static int depth_join(int a, int b)
{
	static const int rank[] = {1, 0, 2, 3, 4}; /* of -1, 0, 1, … */

	return rank[a + 1] >= rank[b + 1] ? a : b;
}

static bool value_set(struct section_value *value, struct section_value joined)
{
	if (section_value_same(value, &joined) && value->sz == joined.sz)
		return false;
	*value = joined;
	return true;
}

static bool slots_join(struct section_state *state, const struct section_state *other)
{
	size_t kept = 0, before = state->slot_cnt;
	bool changed = false;

	for (size_t i = 0; i < before; i++) {
		const struct section_slot *theirs = section_slot_at(other, state->slots[i].off);

		if (!theirs)
			continue;
		changed |= value_set(&state->slots[i].value, value_join(&state->slots[i].value, &theirs->value));
		if (state->slots[i].value.kind != VALUE_UNKNOWN)
			state->slots[kept++] = state->slots[i];
	}
	state->slot_cnt = kept;
	return changed || kept != before;
}

/* --- locks that are not NULL -------------------------------------------------------------------------------------- */

static bool is_lock(const struct section_state *state, const struct section_value *value)
{
	for (size_t i = 0; i < SECTION_LOCKS; i++)
		if (state->locks[i].kind != VALUE_UNKNOWN && section_value_same(&state->locks[i], value))
			return true;
	return false;
}

void section_state_locked(struct section_state *state, const struct section_value *lock)
{
	if (!section_value_is_taken(lock) || is_lock(state, lock))
		return;
	/* The last ones. */
	memmove(state->locks + 1, state->locks, (SECTION_LOCKS - 1) * sizeof(*state->locks));
	state->locks[0] = *lock;
}

/* The instruction at addr makes another value. */
static void lock_replaced(struct section_state *state, uint64_t addr)
{
	for (size_t i = 0; i < SECTION_LOCKS; i++)
		if (state->locks[i].site == addr)
			state->locks[i] = (struct section_value){0};
}

static bool locks_join(struct section_state *state, const struct section_state *other)
{
	bool changed = false;

	for (size_t i = 0; i < SECTION_LOCKS; i++)
		if (state->locks[i].kind != VALUE_UNKNOWN && !is_lock(other, &state->locks[i])) {
			state->locks[i] = (struct section_value){0};
			changed = true;
		}
	return changed;
}

bool section_state_join(struct section_state *state, const struct section_state *other)
{
	int depth = depth_join(state->depth, other->depth);
	bool changed = slots_join(state, other) | locks_join(state, other),
	     tells = state->tells_locked && other->tells_locked, is_nonzero = state->is_nonzero && other->is_nonzero;
	const struct section_state *locked = other->depth > 0 && state->depth <= 0 ? other : state;
	uint64_t lock_addr = locked->lock_addr;
	uint8_t lock_root = locked->lock_root;

	if (state->depth > 0 && other->depth > 0) {
		lock_addr = state->lock_addr == other->lock_addr ? lock_addr : 0;
		lock_root = state->lock_root == other->lock_root ? lock_root : NO_ROOT;
	}
	for (size_t i = 0; i < CODE_REG_CNT; i++)
		changed |= value_set(&state->regs[i], value_join(&state->regs[i], &other->regs[i]));
	changed |= depth != state->depth || lock_addr != state->lock_addr || lock_root != state->lock_root ||
		   tells != state->tells_locked || is_nonzero != state->is_nonzero;
	state->depth = depth;
	state->lock_addr = lock_addr;
	state->lock_root = lock_root;
	state->tells_locked = tells;
	state->is_nonzero = is_nonzero;
	return changed;
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static struct section_value reg_get(const struct section_state *state, uint8_t reg)
{
	return reg < CODE_REG_CNT ? state->regs[reg] : (struct section_value){0};
}

static void moved_by(struct section_value *value, int64_t by)
{
	int64_t off = value->off + by;

	if ((value->kind != VALUE_ARG && value->kind != VALUE_FRAME) || off > INT32_MAX / 2 || off < INT32_MIN / 2)
		*value = (struct section_value){.root = value->root};
	else
		value->off = (int32_t)off;
}

struct section_value section_address(const struct section_state *state, const struct code_move *move)
{
	struct section_value value = {.kind = VALUE_CONST, .sz = 8, .site = (uint64_t)move->disp};

	if (move->base == CODE_NO_REG && move->index == CODE_NO_REG)
		return value;
	value = reg_get(state, move->base);
	/* An element of an array: on the stack, or of what an argument points to. */
	if (move->index != CODE_NO_REG) {
		bool on_stack = value.kind == VALUE_FRAME || value.kind == VALUE_ARRAY;

		return (struct section_value){
			.kind = on_stack ? VALUE_ARRAY : VALUE_UNKNOWN, .sz = 8, .root = value.root};
	}
	if (value.kind == VALUE_ARRAY)
		return value;
	if (value.kind == VALUE_ARG || value.kind == VALUE_FRAME)
		moved_by(&value, move->disp);
	return value;
}

static struct section_value load(const struct section_state *state, const struct code_move *move, uint64_t addr)
{
	struct section_value from = section_address(state, move);

	if (from.kind == VALUE_FRAME)
		return slot_get(state, from.off, move->sz);
	if (move->sz < 4)
		return (struct section_value){0};
	if (from.kind == VALUE_ARRAY)
		return (struct section_value){.kind = VALUE_ELEMENT, .sz = move->sz, .site = addr};
	return (struct section_value){
		.kind = VALUE_LOADED, .sz = move->sz, .root = from.root, .inside = state->depth > 0, .site = addr};
}

static void store(struct section_state *state, const struct code_move *move)
{
	struct section_value to = section_address(state, move), value = reg_get(state, move->from);

	if (to.kind != VALUE_FRAME)
		return;
	if (move->kind == CODE_MOVE_STORE_CONST)
		value = (struct section_value){.kind = VALUE_CONST, .sz = 8, .site = (uint64_t)move->constant};
	if (value.sz < move->sz)
		value = (struct section_value){0};
	value.sz = move->sz;
	slot_set(state, to.off, value);
}

static void push(struct section_state *state, const struct code_move *move)
{
	struct section_value value = reg_get(state, move->from);

	moved_by(&state->regs[CODE_REG_SP], -8);
	if (state->regs[CODE_REG_SP].kind != VALUE_FRAME)
		return;
	value.sz = 8;
	slot_set(state, state->regs[CODE_REG_SP].off, value);
}

static struct section_value pop(struct section_state *state)
{
	struct section_value value = {0};

	if (state->regs[CODE_REG_SP].kind == VALUE_FRAME)
		value = slot_get(state, state->regs[CODE_REG_SP].off, 8);
	moved_by(&state->regs[CODE_REG_SP], 8);
	/* What the caller had there is not the function's. */
	if (value.kind == VALUE_SLOT)
		value = (struct section_value){0};
	return value;
}

static void reg_set(struct section_state *state, const struct code_move *move, struct section_value value)
{
	if (move->to >= CODE_REG_CNT)
		return;
	if (value.sz > move->sz)
		value.sz = move->sz;
	state->regs[move->to] = value;
}

static void move_one(struct section_state *state, const struct code_move *move, uint64_t addr)
{
	struct section_value value = reg_get(state, move->from);

	switch (move->kind) {
	case CODE_MOVE_COPY:
		reg_set(state, move, value);
		break;
	case CODE_MOVE_MAYBE:
		if (move->to < CODE_REG_CNT)
			state->regs[move->to] = value_join(&state->regs[move->to], &value);
		break;
	case CODE_MOVE_CONST:
		reg_set(state, move,
			(struct section_value){.kind = VALUE_CONST, .sz = 8, .site = (uint64_t)move->disp});
		break;
	case CODE_MOVE_ADDRESS:
		value = section_address(state, move);
		/* Arithmetic on a value that was passed on makes another one. */
		if (value.kind != VALUE_ARG && value.kind != VALUE_FRAME && value.kind != VALUE_ARRAY &&
		    value.kind != VALUE_CONST)
			value = (struct section_value){.root = value.root};
		reg_set(state, move, value);
		break;
	case CODE_MOVE_LOAD:
		reg_set(state, move, load(state, move, addr));
		break;
	case CODE_MOVE_STORE:
	case CODE_MOVE_STORE_CONST:
		store(state, move);
		break;
	case CODE_MOVE_PUSH:
		push(state, move);
		break;
	case CODE_MOVE_POP:
		reg_set(state, move, pop(state));
		break;
	default:
		break;
	}
}

/* What a test for zero looks at. */
static struct section_value tested(const struct section_state *state, const struct code_move *move)
{
	struct section_value at;

	if (move->from != CODE_NO_REG)
		return reg_get(state, move->from);
	at = section_address(state, move);
	return at.kind == VALUE_FRAME ? slot_get(state, at.off, move->sz) : (struct section_value){0};
}

void section_state_move(struct section_state *state, const struct code_moves *moves, uint64_t addr)
{
	bool tests = moves->cnt && moves->items[0].kind == CODE_MOVE_TEST;

	lock_replaced(state, addr);
	for (uint8_t i = 0; i < moves->cnt; i++)
		move_one(state, &moves->items[i], addr);
	for (uint8_t reg = 0; moves->written && reg < CODE_REG_CNT; reg++)
		if (moves->written >> reg & 1)
			state->regs[reg] = (struct section_value){0};
	if (tests) {
		struct section_value value = tested(state, &moves->items[0]);

		state->tells_locked = value.kind == VALUE_LOCKED;
		state->is_nonzero = (value.kind == VALUE_CONST && value.site) || is_lock(state, &value);
	} else if (moves->flags_written) {
		state->tells_locked = state->is_nonzero = false;
	}
}

void section_state_called(struct section_state *state, uint64_t addr, bool keeps_frame)
{
	const struct section_value result = {.kind = VALUE_RESULT, .sz = 8, .inside = state->depth > 0, .site = addr};

	lock_replaced(state, addr);
	/* A pointer into the frame: the call may leave what it returns there, or anything. */
	for (int arg = 0; arg < SECTION_ARGS && !keeps_frame; arg++) {
		const struct section_value *value = &state->regs[code_reg_of_arg(arg)];

		if (value->kind == VALUE_FRAME && value->off < 0)
			slot_set(state, value->off, state->depth > 0 ? result : (struct section_value){0});
	}
	for (uint8_t reg = 0; reg < CODE_REG_CNT; reg++)
		if (code_reg_is_scratch(reg))
			state->regs[reg] = (struct section_value){0};
	state->regs[code_reg_of_arg(-1)] = result;
	state->tells_locked = state->is_nonzero = false;
	if (state->depth > DEPTH_MAX)
		state->depth = DEPTH_MAX;
}
