// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How machine code uses variables (vProf §3.1, from the binary): natural loops by dominators, flags by the last
 * instruction of the block that sets them, arguments by what is in their registers at a call.  A register is followed
 * backwards through copies and loads of its basic block.  x86-64 only.
 */
#if defined(__x86_64__)

#include "values/schema_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOW_MAX 24 /* steps back through copies */

/* Is the variable there at pc, or, unless place->exact, what it differs from by a constant? */
static bool is_at(struct tagger *tagger, struct builder *builder, const struct value_location *location, uint64_t pc,
		  const struct place *place)
{
	int64_t off;

	if (pc < location->pc_begin || pc >= location->pc_end)
		return false;
	switch (location->place) {
	case VALUE_IN_REGISTER:
		return place->kind == PLACE_REGISTER && place->reg == location->reg;
	case VALUE_IS_SUM:
		return place->kind == PLACE_REGISTER && place->reg == location->reg && !(place->exact && location->off);
	case VALUE_AT_REGISTER:
		return place->kind == PLACE_MEMORY && place->reg == location->reg && place->off == location->off;
	case VALUE_AT_CFA:
		if (place->kind != PLACE_MEMORY)
			return false;
		if (pc < tagger->frame.begin || pc >= tagger->frame.end)
			builder_frame(builder, pc, &tagger->frame);
		return tagger->frame.known && place->reg == tagger->frame.reg &&
		       !__builtin_add_overflow(location->off, tagger->frame.off, &off) && place->off == off;
	case VALUE_AT_ADDRESS:
		return place->kind == PLACE_ADDRESS && place->off == location->off;
	default:
		return false;
	}
}

/* Is the variable in that place at pc? Members only through find_members(). */
static bool candidate_is_at(struct tagger *tagger, struct builder *builder, const struct candidate *candidate,
			    uint64_t pc, const struct place *place)
{
	if (candidate->variable.member_off >= 0)
		return false;
	for (size_t i = 0; i < candidate->locations.cnt; i++)
		if (is_at(tagger, builder, &candidate->locations.items[i], pc, place))
			return true;
	return false;
}

/*
 * From a register before instruction `*at` to what a copy or load earlier in the block put there, or, with `sums`, what
 * it differs from by a constant.  False: that is not known.
 */
static bool step_back(const struct tagger *tagger, uint32_t *at, struct place *place, bool sums)
{
	const struct insn *insns = tagger->insns.items;
	uint32_t first = tagger->blocks.items[insns[*at].block].first;
	bool exact = place->exact;

	for (uint32_t i = *at; i-- > first && place->kind == PLACE_REGISTER;) {
		if (!(place->reg < 32 && insns[i].clobbers & 1u << place->reg))
			continue;
		if (insns[i].source.kind == PLACE_NONE || (insns[i].adds && !sums) || insns[i].is_call ||
		    !insns[i].write_cnt || insns[i].writes[0].kind != PLACE_REGISTER ||
		    insns[i].writes[0].reg != place->reg)
			return false;
		*place = insns[i].source;
		place->exact = exact;
		*at = i;
		return true;
	}
	return false;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

/*
 * If the candidate, a pointer, is the base of the memory operand `place` of instruction `at`: how far behind what it
 * points to the operand lies.  The register may be a copy of it: `mov p, %rax; mov 8(%rax), …`.
 */
static bool offset_from(struct tagger *tagger, struct builder *builder, const struct candidate *candidate, uint32_t at,
			const struct place *place, int64_t *off)
{
	struct place base = {.kind = PLACE_REGISTER, .reg = place->reg};
	uint32_t steps = 0;

	do {
		for (size_t l = 0; l < candidate->locations.cnt; l++) {
			const struct value_location *location = &candidate->locations.items[l];

			if (!is_at(tagger, builder, location, tagger->insns.items[at].addr, &base))
				continue;
			*off = place->off;
			return location->place != VALUE_IS_SUM || !__builtin_sub_overflow(*off, location->off, off);
		}
	} while (steps++ < FOLLOW_MAX && step_back(tagger, &at, &base, false));
	return false;
}

/* `p->len`, that far behind where p points to: found, or appended to the function's variables. */
static struct candidate *member_of(struct builder *builder, const struct candidate *base, int64_t off, uint8_t size)
{
	struct function_vars *function = &builder->function;
	struct candidate member = {.variable = base->variable};
	char name[MEMBER_NAME_SZ], text[MEMBER_NAME_SZ + 100];

	for (size_t i = 0; i < function->items.cnt; i++) {
		struct candidate *other = &function->items.items[i];

		if (other->variable.member_off == off && other->locations.cnt == base->locations.cnt &&
		    other->variable.line == base->variable.line && other->struct_die.addr == base->struct_die.addr &&
		    !strncmp(other->variable.name, base->variable.name, strlen(base->variable.name)) &&
		    other->variable.name[strlen(base->variable.name)] == '-')
			return other;
	}
	if (off < 0 || off > INT32_MAX || function->items.cnt >= FUNCTION_VARS_MAX ||
	    !schema_member(builder, &base->struct_die, off, size, &member.variable, name))
		return NULL;
	snprintf(text, sizeof(text), "%.90s->%s", base->variable.name, name);
	member.variable.name = builder_text(builder, text);
	member.variable.member_off = (int32_t)off;
	member.variable.tags = 0;
	member.struct_die = base->struct_die;
	for (size_t i = 0; i < base->locations.cnt; i++)
		if (vec_push(&member.locations, base->locations.items[i]))
			builder->err = -ENOMEM;
	if (builder->err || vec_push(&function->items, member)) {
		vec_free(&member.locations);
		builder->err = -ENOMEM;
		return NULL;
	}
	return &function->items.items[function->items.cnt - 1];
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

typedef void (*found_fn)(struct candidate *candidate, void *owner);

/* Calls `found` for each variable in that place at pc, before or behind instruction `at`. */
static void find_variables(struct tagger *tagger, struct builder *builder, uint32_t at, uint64_t pc,
			   const struct place *place, found_fn found, void *owner)
{
	struct function_vars *function = &builder->function;
	int64_t off;

	for (size_t i = 0; i < function->items.cnt && !builder->err; i++) {
		struct candidate *candidate = &function->items.items[i], *member;

		if (candidate_is_at(tagger, builder, candidate, pc, place)) {
			found(candidate, owner);
			continue;
		}
		if (place->kind != PLACE_MEMORY || !candidate->has_struct || candidate->variable.member_off >= 0 ||
		    !offset_from(tagger, builder, candidate, at, place, &off))
			continue;
		member = member_of(builder, candidate, off, place->size);
		if (member)
			found(member, owner);
	}
}

/* The variables whose value is in `place` before instruction `at`: also by copies and loads earlier in its block. */
static void find_sources(struct tagger *tagger, struct builder *builder, uint32_t at, struct place place,
			 found_fn found, void *owner)
{
	uint32_t steps = 0;
	bool sums = !place.exact;

	do
		find_variables(tagger, builder, at, tagger->insns.items[at].addr, &place, found, owner);
	while (steps++ < FOLLOW_MAX && step_back(tagger, &at, &place, sums));
}

/* --- tags --------------------------------------------------------------------------------------------------------- */

static void add_tag(struct candidate *candidate, void *owner)
{
	candidate->variable.tags |= *(const uint8_t *)owner;
}

static void add_choice_tag(struct candidate *candidate, void *owner)
{
	(void)owner;
	if (!(candidate->variable.tags & VALUE_TAG_STEP))
		candidate->variable.tags |= VALUE_TAG_COND;
}

/* The instruction of the block whose flags the branch tests; NO_BLOCK: an earlier block's. */
static uint32_t flags_of(const struct tagger *tagger, uint32_t branch)
{
	const struct insn *insns = tagger->insns.items;
	uint32_t first = tagger->blocks.items[insns[branch].block].first;

	for (uint32_t i = branch; i-- > first;) {
		if (insns[i].is_call)
			return NO_BLOCK;
		if (insns[i].sets_flags)
			return i;
	}
	return NO_BLOCK;
}

static void find_tested(struct tagger *tagger, struct builder *builder, uint32_t branch, found_fn found, void *owner)
{
	uint32_t setter = flags_of(tagger, branch);

	for (uint8_t i = 0; setter != NO_BLOCK && i < tagger->insns.items[setter].read_cnt; i++)
		find_sources(tagger, builder, setter, tagger->insns.items[setter].reads[i], found, owner);
	/* `dec r; jne`, `add $1, m; jne`: what is written is tested as well. */
	for (uint8_t i = 0; setter != NO_BLOCK && i < tagger->insns.items[setter].write_cnt; i++)
		find_variables(tagger, builder, setter,
			       tagger->insns.items[setter].addr + tagger->insns.items[setter].len,
			       &tagger->insns.items[setter].writes[i], found, owner);
}

static void tag_branches(struct tagger *tagger, struct builder *builder)
{
	uint8_t tag = VALUE_TAG_COND;

	for (uint32_t i = 0; i < tagger->insns.cnt && !builder->err; i++)
		if (tagger->insns.items[i].is_branch)
			find_tested(tagger, builder, i, add_tag, &tag);
}

/*
 * A condition without a jump: what `cmp` or `test` sets is what a cmov, set, adc or sbb tests.  The carry of a sum is
 * no condition; a variable that a loop makes of itself, such as the largest one so far, keeps that tag.
 */
static void tag_choices(struct tagger *tagger, struct builder *builder)
{
	struct insn *insns = tagger->insns.items;

	for (uint32_t i = 0; i < tagger->insns.cnt && !builder->err; i++) {
		uint32_t setter = insns[i].is_choice ? flags_of(tagger, i) : NO_BLOCK;

		if (setter != NO_BLOCK && !insns[setter].write_cnt)
			find_tested(tagger, builder, i, add_choice_tag, NULL);
	}
}

static void tag_arguments(struct tagger *tagger, struct builder *builder)
{
	static const uint8_t registers[] = {5,  4,  1,  2,  8,  9, /* rdi rsi rdx rcx r8 r9 */
					    17, 18, 19, 20, 21, 22, 23, 24};
	uint8_t tag = VALUE_TAG_ARGS;

	for (uint32_t i = 0; i < tagger->insns.cnt && !builder->err; i++) {
		if (!tagger->insns.items[i].is_call)
			continue;
		for (size_t r = 0; r < sizeof(registers); r++) {
			struct place place = {.kind = PLACE_REGISTER, .reg = registers[r], .exact = true};
			uint32_t first = tagger->blocks.items[tagger->insns.items[i].block].first;
			bool is_set = false;

			/* Only what this block puts there: a register that nobody sets may carry anything. */
			for (uint32_t j = i; j-- > first && !tagger->insns.items[j].is_call && !is_set;)
				is_set = tagger->insns.items[j].clobbers & 1u << registers[r];
			if (is_set)
				find_sources(tagger, builder, i, place, add_tag, &tag);
		}
	}
}

/* Blocks of the natural loop of the back edge tail → head: marked in in_body, listed in body. */
static int loop_body(struct tagger *tagger, uint32_t head, uint32_t tail)
{
	tagger->in_body.cnt = tagger->body.cnt = 0;
	if (vec_extend(&tagger->in_body, tagger->blocks.cnt) || vec_push(&tagger->body, head))
		return -ENOMEM;
	tagger->in_body.items[head] = 1;
	if (!tagger->in_body.items[tail]) {
		tagger->in_body.items[tail] = 1;
		if (vec_push(&tagger->body, tail))
			return -ENOMEM;
	}
	for (size_t i = 1; i < tagger->body.cnt; i++) {
		uint32_t b = tagger->body.items[i];

		for (uint32_t p = tagger->pred_first.items[b]; p < tagger->pred_first.items[b + 1]; p++) {
			uint32_t pred = tagger->preds.items[p];

			if (tagger->in_body.items[pred] || tagger->blocks.items[pred].order == NO_BLOCK)
				continue;
			tagger->in_body.items[pred] = 1;
			if (vec_push(&tagger->body, pred))
				return -ENOMEM;
		}
	}
	return 0;
}

struct loop_search {
	struct tagger *tagger;
	struct builder *builder;
};

/*
 * Is the variable in the register that instruction `at` wrote before something else is written there?  In its block,
 * and where the next ones begin.
 */
static bool becomes_variable(struct tagger *tagger, struct builder *builder, const struct candidate *candidate,
			     uint32_t at, const struct place *place)
{
	const struct insn *insns = tagger->insns.items;
	const struct block *block = &tagger->blocks.items[insns[at].block];

	for (uint32_t i = at + 1; i <= block->last; i++) {
		if (candidate_is_at(tagger, builder, candidate, insns[i].addr, place))
			return true;
		if (place->kind != PLACE_REGISTER || (place->reg < 32 && insns[i].clobbers & 1u << place->reg))
			return false;
	}
	for (int n = 0; n < 2; n++)
		if (block->next[n] != NO_BLOCK &&
		    candidate_is_at(tagger, builder, candidate, insns[tagger->blocks.items[block->next[n]].first].addr,
				    place))
			return true;
	return false;
}

/* Does an instruction of the loop write to where the variable is? */
static bool changes(struct tagger *tagger, struct builder *builder, const struct candidate *candidate)
{
	const struct insn *insns = tagger->insns.items;
	int64_t off;

	for (size_t b = 0; b < tagger->body.cnt; b++) {
		const struct block *block = &tagger->blocks.items[tagger->body.items[b]];

		for (uint32_t i = block->first; i <= block->last; i++) {
			for (uint8_t w = 0; w < insns[i].write_cnt; w++) {
				struct place place = insns[i].writes[w];

				if (candidate->variable.member_off < 0) {
					if (becomes_variable(tagger, builder, candidate, i, &place))
						return true;
					continue;
				}
				if (place.kind == PLACE_MEMORY &&
				    offset_from(tagger, builder, candidate, i, &place, &off) &&
				    off == candidate->variable.member_off)
					return true;
			}
		}
	}
	return false;
}

static void add_loop_tag(struct candidate *candidate, void *owner)
{
	struct loop_search *search = owner;

	if (!(candidate->variable.tags & VALUE_TAG_LOOP) && changes(search->tagger, search->builder, candidate))
		candidate->variable.tags |= VALUE_TAG_LOOP;
}

/* The variables that the loop changes and an exit of it tests. */
static void tag_tested(struct tagger *tagger, struct builder *builder)
{
	struct loop_search search = {tagger, builder};

	for (size_t b = 0; b < tagger->body.cnt; b++) {
		const struct block *block = &tagger->blocks.items[tagger->body.items[b]];
		bool exits = false;

		for (int n = 0; n < 2; n++)
			exits |= block->next[n] != NO_BLOCK && !tagger->in_body.items[block->next[n]];
		if (exits && tagger->insns.items[block->last].is_branch)
			find_tested(tagger, builder, block->last, add_loop_tag, &search);
	}
}

/* Is what the instruction writes to `to` made of what was there, or of what that pointed to? */
static bool is_made_of(const struct insn *insn, const struct place *to)
{
	const struct place *reads = insn->reads;

	/* `xor r, r` is a zero. */
	if (insn->read_cnt == 2 && reads[0].kind == PLACE_REGISTER && reads[1].kind == PLACE_REGISTER &&
	    reads[0].reg == reads[1].reg)
		return false;
	for (uint8_t r = 0; r < insn->read_cnt; r++) {
		bool same_register = reads[r].reg == to->reg;

		if (to->kind == PLACE_REGISTER && reads[r].kind != PLACE_ADDRESS && same_register)
			return true;
		if (to->kind == PLACE_MEMORY && reads[r].kind == PLACE_MEMORY && same_register &&
		    reads[r].off == to->off)
			return true;
	}
	return insn->adds && to->kind == PLACE_REGISTER && insn->source.reg == to->reg;
}

/* The variables without any other tag that an instruction of the loop makes of themselves. */
static void tag_steps(struct tagger *tagger, struct builder *builder)
{
	for (size_t b = 0; b < tagger->body.cnt; b++) {
		const struct block *block = &tagger->blocks.items[tagger->body.items[b]];

		for (uint32_t i = block->first; i <= block->last; i++) {
			struct insn *insn = &tagger->insns.items[i];

			if (insn->is_step || insn->is_call || insn->write_cnt != 1 ||
			    !is_made_of(insn, &insn->writes[0]))
				continue;
			insn->is_step = true;
			for (size_t c = 0; c < builder->function.items.cnt; c++) {
				struct candidate *candidate = &builder->function.items.items[c];

				if (!candidate->variable.tags && candidate->variable.member_off < 0 &&
				    becomes_variable(tagger, builder, candidate, i, &insn->writes[0]))
					candidate->variable.tags = VALUE_TAG_STEP;
			}
		}
	}
}

/* The locals that a condition tests, no exit of the loop does, and the loop sets anew. */
static void tag_renewed(struct tagger *tagger, struct builder *builder)
{
	struct function_vars *function = &builder->function;

	for (size_t c = 0; c < function->items.cnt; c++) {
		struct value_variable *variable = &function->items.items[c].variable;

		if ((variable->tags & (VALUE_TAG_COND | VALUE_TAG_LOOP)) == VALUE_TAG_COND &&
		    variable->member_off < 0 && changes(tagger, builder, &function->items.items[c]))
			variable->tags |= VALUE_TAG_STEP;
	}
}

static int visit_loops(struct tagger *tagger, struct builder *builder,
		       void (*visit)(struct tagger *tagger, struct builder *builder))
{
	int err = 0;

	for (size_t t = 0; t < tagger->blocks.cnt && !err; t++) {
		const struct block *tail = &tagger->blocks.items[t];

		for (int e = 0; e < 2 && !err; e++) {
			uint32_t head = tail->next[e];

			if (head == NO_BLOCK || tail->order == NO_BLOCK || !tagger_dominates(tagger, head, (uint32_t)t))
				continue;
			err = loop_body(tagger, head, (uint32_t)t);
			if (!err)
				visit(tagger, builder);
		}
	}
	return err ? err : builder->err;
}

int tagger__run(struct tagger *tagger, struct builder *builder)
{
	int ret;

	tagger->frame = (struct value_frame_rule){.begin = 0};
	ret = tagger_read_code(tagger, builder);
	if (ret <= 0)
		return ret;
	tag_branches(tagger, builder);
	tag_arguments(tagger, builder);
	ret = builder->err ? builder->err : visit_loops(tagger, builder, tag_tested);
	if (!ret)
		ret = visit_loops(tagger, builder, tag_steps);
	if (ret)
		return ret;
	tag_choices(tagger, builder);
	return builder->err ? builder->err : visit_loops(tagger, builder, tag_renewed);
}

#else

#include "values/schema_internal.h"

struct tagger *tagger__new(void)
{
	return NULL;
}

void tagger__free(struct tagger *tagger)
{
	(void)tagger;
}

int tagger__run(struct tagger *tagger, struct builder *builder)
{
	(void)tagger;
	(void)builder;
	return 0;
}

#endif
