// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_callee.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>

struct call {
	uint32_t caller, callee;
	double weight;
};

ORDER(compare_calls, struct call, BY(a->caller, b->caller), BY(a->callee, b->callee));

typedef VEC(struct call) call_list;

static bool is_seen(const uint32_t *frames, size_t cnt, uint32_t function)
{
	for (size_t i = 0; i < cnt; i++)
		if (frames[i] == function)
			return true;
	return false;
}

/* The frames of one tick, the innermost first: each function counts once, with what its innermost frame calls. */
static int take_tick(struct value_callee *callees, call_list *calls, const struct value_input *input,
		     const struct value_row *rows, size_t cnt)
{
	uint32_t frames[UINT8_MAX + 1];
	size_t frame_cnt = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint32_t function = input->functions[rows[i].place];
		struct call call = {function, VALUE_NONE, rows[i].weight};
		bool is_slow = input->is_slow[rows[i].profile], is_next = i && rows[i].depth == rows[i - 1].depth + 1;

		if (i && rows[i].depth == rows[i - 1].depth)
			continue;
		if (is_next)
			call.callee = frames[frame_cnt - 1];
		if (!is_seen(frames, frame_cnt, function)) {
			*(is_slow ? &callees[function].slow : &callees[function].normal) += call.weight;
			if (is_slow && is_next && vec_push(calls, call))
				return -ENOMEM;
		}
		frames[frame_cnt++] = function;
	}
	return 0;
}

int value_callees_find(struct value_callee *callees, const struct value_input *input)
{
	call_list calls = {0};
	int err = 0;

	for (size_t f = 0; f < input->function_cnt; f++)
		callees[f] = (struct value_callee){.function = VALUE_NONE};
	for (size_t first = 0, end; first < input->row_cnt && !err; first = end) {
		for (end = first + 1; end < input->row_cnt && input->rows[end].tick == input->rows[first].tick;)
			end++;
		err = take_tick(callees, &calls, input, &input->rows[first], end - first);
	}
	if (!err)
		vec_sort(&calls, compare_calls);
	for (size_t first = 0, end; first < calls.cnt && !err; first = end) {
		const struct call *call = &calls.items[first];
		struct value_callee *callee = &callees[call->caller];
		double weight = 0;

		for (end = first; end < calls.cnt && !compare_calls(&calls.items[end], call); end++)
			weight += calls.items[end].weight;
		if (weight / callee->slow > callee->share) {
			callee->share = weight / callee->slow;
			callee->function = call->callee;
		}
	}
	vec_free(&calls);
	return err;
}

/* The callee that stands for all that the function does while it is slow. */
#define MOST 0.8

enum value_pattern value_pattern_by_callee(enum value_pattern pattern, const struct value_function *functions,
					   const struct value_callee *callees, uint32_t function)
{
	const struct value_callee *callee = &callees[function];
	bool is_default = pattern == VALUE_PATTERN_NONE;

	if (callee->function == VALUE_NONE || callee->share < MOST ||
	    (!is_default && pattern != VALUE_PATTERN_SCALABILITY))
		return pattern;
	if (functions[callee->function].is_given &&
	    (isfinite(functions[function].step) || functions[callee->function].is_for_many))
		return VALUE_PATTERN_MISSING_CONSTRAINT;
	if (is_default && callees[callee->function].normal <= 0 && callee->normal > 0)
		return VALUE_PATTERN_WRONG_CONSTRAINT;
	return pattern;
}
