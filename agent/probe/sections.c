// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/sections.h"

#include "probe/section_flow.h"
#include "probe/sections_internal.h"

#include <errno.h>
#include <string.h>

#define OBJECT_SZ         32
#define WRAPPER_INSNS_MAX 150 /* a function that takes a lock for its caller does little else */

/* A value, and what happens to it behind the section. */
struct followed {
	struct section_value value;
	bool read, written, passed, returned;
};

/* A call that takes an outermost lock. */
struct locked {
	uint64_t addr;
	int lock_arg;
	struct section_state before;
};

struct search {
	struct sections *sections;
	const struct flow *flow;
	VEC(struct followed) followed;
	VEC(struct locked) locked;
	struct section_pendings pending;
	bool takes, gives; /* locks, and gives back what it took */
};

static bool is_outermost_lock(const struct flow_insn *insn, const struct section_state *state)
{
	return (insn->calls == SECTION_CALL_LOCK || insn->calls == SECTION_CALL_TRY_LOCK) && state->depth <= 0;
}

/* --- where a value lies ------------------------------------------------------------------------------------------- */

/* Of several places, one that no call changes. */
struct section_place section_place_of(const struct section_state *state, const struct section_value *value)
{
	struct section_place place = {.reg = CODE_NO_REG, .sz = value->sz};
	const struct section_value *sp = &state->regs[CODE_REG_SP], *fp = &state->regs[CODE_REG_FP];
	int32_t off = 0;
	bool on_stack = value->kind == VALUE_SLOT && value->sz;

	for (uint8_t reg = 0; reg < CODE_REG_VECTOR; reg++)
		if (reg != CODE_REG_SP && section_value_same(&state->regs[reg], value) &&
		    state->regs[reg].sz >= value->sz && (place.reg == CODE_NO_REG || !code_reg_is_scratch(reg)))
			place.reg = reg;
	if (place.reg != CODE_NO_REG)
		return place;
	if (on_stack)
		off = value->off;
	for (size_t i = 0; i < state->slot_cnt && !on_stack; i++) {
		on_stack = section_value_same(&state->slots[i].value, value) && state->slots[i].value.sz >= value->sz;
		off = state->slots[i].off;
	}
	if (!on_stack || (sp->kind != VALUE_FRAME && fp->kind != VALUE_FRAME))
		return place;
	place.in_memory = true;
	place.reg = sp->kind == VALUE_FRAME ? CODE_REG_SP : CODE_REG_FP;
	place.disp = off - (sp->kind == VALUE_FRAME ? sp->off : fp->off);
	return place;
}

static bool use_same(const struct section_use *a, const struct section_use *b)
{
	return a->out == b->out && a->addr == b->addr && a->arg == b->arg && a->off == b->off &&
	       a->place.reg == b->place.reg && a->place.in_memory == b->place.in_memory &&
	       a->place.disp == b->place.disp;
}

int section_use_add(struct sections *sections, const struct section_use *use)
{
	for (size_t i = 0; i < sections->uses.cnt; i++)
		if (use_same(&sections->uses.items[i], use)) {
			sections->uses.items[i].handed &= use->handed;
			return 0;
		}
	return sections->uses.cnt < SECTION_USES_MAX ? vec_push(&sections->uses, *use) : 0;
}

void section_pend(struct section_pendings *pending, const struct section_value *value, bool out)
{
	/* The last ones. */
	pending->items[pending->cnt++ % SECTION_PENDING_MAX] = (struct section_pending){*value, out};
}

/* A probe on these costs one trap: they need not be executed elsewhere. */
static bool is_cheap(const struct flow_insn *insn)
{
	return insn->insn.kind == CODE_BRANCH || insn->insn.kind == CODE_JUMP || insn->insn.kind == CODE_CALL;
}

static int pending_place(const struct section_pending *pending, uint64_t addr, const struct section_state *state,
			 bool lockless, struct sections *sections)
{
	struct section_use use = {
		.out = pending->out,
		.addr = addr,
		.lock_arg = -1,
		.arg = -1,
		.lockless = lockless,
		.place = section_place_of(state, &pending->value),
	};

	return use.place.reg != CODE_NO_REG ? section_use_add(sections, &use) : 0;
}

int section_pendings_place(struct section_pendings *pending, const struct flow *flow, const struct flow_insn *insn,
			   const struct section_state *state, bool lockless, struct sections *sections)
{
	size_t idx = (size_t)(insn - flow->insns.items), cnt = pending->cnt;
	bool goes_on = idx == pending->next_idx && !flow->begins[idx];
	int err = 0;

	if (cnt > SECTION_PENDING_MAX)
		cnt = SECTION_PENDING_MAX;
	/* Others come here, too: what went in had its value at the last such place already. */
	for (size_t i = 0; i < cnt && !goes_on && pending->cheap_addr && !err; i++)
		if (!pending->items[i].out)
			err = pending_place(&pending->items[i], pending->cheap_addr, &pending->cheap, lockless,
					    sections);
	/* What came out has its value still, unless other ways lead here with another one. */
	for (size_t i = 0, all = cnt; i < all && !goes_on; i++) {
		cnt = i ? cnt : 0;
		if (idx == pending->next_idx && pending->items[i].out)
			pending->items[cnt++] = pending->items[i];
	}
	if (idx != pending->next_idx)
		pending->cheap_addr = 0;
	pending->cnt = cnt;
	pending->next_idx = idx + 1;
	if (!is_cheap(insn))
		return err;
	for (size_t i = 0; i < cnt && !err; i++)
		err = pending_place(&pending->items[i], insn->insn.addr, state, lockless, sections);
	pending->cnt = 0;
	pending->cheap_addr = insn->insn.addr;
	pending->cheap = *state;
	return err;
}

/* --- what goes in ------------------------------------------------------------------------------------------------- */

static bool is_from_outside(const struct section_value *value)
{
	switch (value->kind) {
	case VALUE_ARG:
		return !value->off && value->sz >= 4;
	case VALUE_SLOT:
	case VALUE_RESULT:
	case VALUE_LOADED:
		return !value->inside && value->sz >= 4;
	default:
		return false;
	}
}

/* Of a section; goes_in() tells whether it was another one, by whether it lay somewhere when this one began. */
static bool is_from_before(const struct section_value *value)
{
	return section_value_is_taken(value) && value->inside && value->sz >= 4;
}

/* The value is written to shared memory in a section that one of the locks, or the one at lock_addr, begins. */
static int goes_in(struct search *search, const struct section_value *value, uint64_t lock_addr, bool handed)
{
	int err = 0;

	for (size_t i = 0; i < search->locked.cnt && !err; i++) {
		const struct locked *locked = &search->locked.items[i];
		struct section_use use = {
			.addr = locked->addr,
			.lock_arg = locked->lock_arg,
			.arg = value->kind == VALUE_ARG ? value->root - 1 : -1,
			.handed = handed,
		};

		if (lock_addr && lock_addr != locked->addr)
			continue;
		use.place = section_place_of(&locked->before, value);
		if (use.place.reg == CODE_NO_REG)
			use.addr = 0;
		if (use.addr || use.arg >= 0)
			err = section_use_add(search->sections, &use);
	}
	return err;
}

/* --- values that are taken out ------------------------------------------------------------------------------------ */

static struct followed *followed_find(struct search *search, const struct section_value *value)
{
	if (!value->inside || (value->kind != VALUE_LOADED && value->kind != VALUE_RESULT))
		return NULL;
	for (size_t i = 0; i < search->followed.cnt; i++)
		if (section_value_same(&search->followed.items[i].value, value))
			return &search->followed.items[i];
	if (vec_push(&search->followed, (struct followed){.value = *value}))
		return NULL;
	return &search->followed.items[search->followed.cnt - 1];
}

static void moves_note(struct search *search, const struct flow_insn *insn, const struct section_state *state)
{
	for (uint8_t i = 0; i < insn->moves.cnt; i++) {
		const struct code_move *move = &insn->moves.items[i];
		struct followed *base, *from;

		if (move->kind != CODE_MOVE_LOAD && move->kind != CODE_MOVE_STORE &&
		    move->kind != CODE_MOVE_STORE_CONST)
			continue;
		base = move->base < CODE_REG_CNT ? followed_find(search, &state->regs[move->base]) : NULL;
		if (base && move->kind == CODE_MOVE_LOAD)
			base->read = true;
		else if (base)
			base->written = true;
		from = move->kind == CODE_MOVE_STORE && move->from < CODE_REG_CNT
			       ? followed_find(search, &state->regs[move->from])
			       : NULL;
		if (from && section_address(state, move).kind != VALUE_FRAME)
			from->passed = true;
	}
}

/* The value is passed to a call, or an object of the frame with values in it is, such as a std::function. */
static void passed_note(struct search *search, const struct section_state *state, const struct section_value *value)
{
	struct followed *found = followed_find(search, value);

	if (found)
		found->passed = true;
	for (int32_t at = 0; at < OBJECT_SZ && value->kind == VALUE_FRAME; at += 8) {
		const struct section_value part = section_stack_value(state, value->off + at);

		found = followed_find(search, &part);
		if (found)
			found->passed = true;
	}
}

/* Behind a section: what is done to values that were loaded in it. */
static int use_note(void *arg, const struct flow_insn *insn, const struct section_state *state)
{
	struct search *search = arg;
	struct followed *found;

	if (state->depth > 0)
		return 0;
	if (insn->insn.kind == CODE_RETURN) {
		found = followed_find(search, &state->regs[code_reg_of_arg(-1)]);
		if (found)
			found->returned = true;
	} else if (insn->is_call) {
		for (int i = 0; i < SECTION_ARGS; i++)
			passed_note(search, state, &state->regs[code_reg_of_arg(i)]);
	} else {
		moves_note(search, insn, state);
	}
	return 0;
}

static int comes_out(struct search *search, const struct flow_insn *insn, const struct section_state *state)
{
	int err = 0;

	for (size_t i = 0; i < search->followed.cnt && !err; i++) {
		const struct followed *followed = &search->followed.items[i];
		struct section_use use = {
			.out = true,
			.addr = insn->insn.addr,
			.lock_arg = insn->lock_arg,
			.arg = -1,
			.returned = followed->returned,
			.handed = followed->value.kind == VALUE_RESULT,
			.only_written =
				followed->written && !followed->read && !followed->passed && !followed->returned,
			.place = section_place_of(state, &followed->value),
		};

		if (use.place.reg != CODE_NO_REG &&
		    (followed->read || followed->written || followed->passed || followed->returned))
			err = section_use_add(search->sections, &use);
	}
	return err;
}

/* --- sections ----------------------------------------------------------------------------------------------------- */

/* The lock that is the caller's is an argument of the function, or lies within what one points to. */
static void lock_arg_note(struct search *search, const struct flow_insn *insn, const struct section_state *state)
{
	const struct section_value *lock = insn->lock_arg < 0 ? NULL : &state->regs[code_reg_of_arg(insn->lock_arg)];

	search->sections->lock_arg = lock && lock->kind == VALUE_ARG ? lock->root - 1 : -1;
}

void section_calls_note(struct sections *sections, const struct flow_insn *insn)
{
	sections->waits |= insn->calls == SECTION_CALL_WAIT || insn->calls == SECTION_CALL_DOWN;
	sections->wakes |= insn->calls == SECTION_CALL_WAKE || insn->calls == SECTION_CALL_UP;
	sections->takes |= insn->calls == SECTION_CALL_LOCK || insn->calls == SECTION_CALL_TRY_LOCK;
	sections->exchanges |= section_exchanges(insn);
}

static int lock_note(void *arg, const struct flow_insn *insn, const struct section_state *state)
{
	struct search *search = arg;
	struct locked locked = {.addr = insn->insn.addr, .lock_arg = insn->lock_arg, .before = *state};

	section_calls_note(search->sections, insn);
	if (insn->calls == SECTION_CALL_UNLOCK) {
		search->gives |= state->depth > 0;
		if (state->depth <= 0)
			lock_arg_note(search, insn, state);
	}
	if (!is_outermost_lock(insn, state))
		return 0;
	search->takes = true;
	lock_arg_note(search, insn, state);
	return vec_push(&search->locked, locked);
}

static int store_note(struct search *search, const struct code_move *move, const struct section_state *state)
{
	const struct section_value to = section_address(state, move);
	const struct section_value *value = move->from < CODE_REG_CNT ? &state->regs[move->from] : NULL;
	struct section_value moved;
	int err = 0;

	if (!value || to.kind == VALUE_FRAME || to.kind == VALUE_ARRAY)
		return 0;
	if (value->kind == VALUE_ELEMENT && value->sz == 8 && move->sz == 8)
		section_pend(&search->pending, value, false);
	moved = *value;
	moved.sz = move->sz;
	if (is_from_outside(value) && value->sz >= move->sz)
		return goes_in(search, &moved, state->lock_addr, false);
	if (is_from_before(value) && value->sz >= move->sz)
		err = goes_in(search, &moved, state->lock_addr, false);
	/* Left where the caller wants it. */
	if (!err && value->inside && value->sz == 8 && move->sz == 8 && to.kind == VALUE_ARG && to.off >= 0 &&
	    to.root != state->lock_root)
		return section_use_add(search->sections, &(struct section_use){.out = true,
									       .lock_arg = -1,
									       .arg = to.root - 1,
									       .off = to.off,
									       .place = {.reg = CODE_NO_REG, .sz = 8}});
	return err;
}

/* What an argument is or, as a reference that C++ passes, what lies in the frame where it points to. */
static struct section_value argument(const struct section_state *state, int arg)
{
	const struct section_value *value = &state->regs[code_reg_of_arg(arg)];

	return value->kind == VALUE_FRAME ? section_stack_value(state, value->off) : *value;
}

static int call_note(struct search *search, const struct section_state *state)
{
	int err = 0;

	for (int i = 0; i < SECTION_ARGS && !err; i++) {
		const struct section_value passed = argument(state, i), *value = &passed;

		if (is_from_outside(value) && value->sz == 8 && value->kind != VALUE_SLOT &&
		    !(value->kind == VALUE_ARG && value->root == state->lock_root))
			err = goes_in(search, value, state->lock_addr, true);
	}
	return err;
}

static int section_note(void *arg, const struct flow_insn *insn, const struct section_state *state)
{
	struct search *search = arg;
	int depth = state->depth, err = 0;

	if (insn->calls == SECTION_CALL_LOCK)
		depth++;
	else if (insn->calls == SECTION_CALL_UNLOCK)
		depth--;
	if (insn->insn.kind == CODE_RETURN || insn->leaves) {
		search->sections->locks |= depth > 0;
		search->sections->unlocks |= depth < 0;
	}
	err = section_pendings_place(&search->pending, search->flow, insn, state, false, search->sections);
	if (err || state->depth <= 0)
		return err;
	if (insn->calls == SECTION_CALL_UNLOCK)
		return depth ? 0 : comes_out(search, insn, state);
	if (insn->is_call)
		return insn->calls == SECTION_CALL_NONE ? call_note(search, state) : 0;
	for (uint8_t i = 0; i < insn->moves.cnt && !err; i++)
		if (insn->moves.items[i].kind == CODE_MOVE_STORE)
			err = store_note(search, &insn->moves.items[i], state);
	return err;
}

int sections_find(struct program *program, uint32_t function, const struct call_targets *targets,
		  struct sections *sections)
{
	struct flow flow = {0};
	struct search search = {.sections = sections, .flow = &flow};
	int err;

	*sections = (struct sections){.lock_arg = -1};
	err = flow_read(program, function, targets, &flow);
	if (!err)
		err = flow_run(&flow);
	if (!err)
		err = flow_walk(&flow, lock_note, &search);
	if (!err)
		err = flow_walk(&flow, use_note, &search);
	if (!err)
		err = flow_walk(&flow, section_note, &search);
	/* A way that does not give the lock back is most often one that is never gone, as behind a flag that it is
	 * held. */
	if (flow.insns.cnt > WRAPPER_INSNS_MAX || (sections->locks && search.gives) ||
	    (sections->unlocks && search.takes))
		sections->locks = sections->unlocks = false;
	vec_free(&search.followed);
	vec_free(&search.locked);
	flow_free(&flow);
	return err == -ENOTSUP ? 0 : err;
}

void sections_free(struct sections *sections)
{
	vec_free(&sections->uses);
}
