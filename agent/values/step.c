// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/step.h"

#include <errno.h>
#include <string.h>

/* The kernel follows what calls preserve, and where the caller goes on. */
static bool is_followed(const struct unwind_rule *rule, uint8_t reg)
{
	return reg == rule->ra || (reg != WL_STACK_REG_SP && value_register_is_kept(reg));
}

static bool keeps_value(const struct unwind_where *line)
{
	return line->what == UNWIND_REGISTER && line->reg == line->of && !line->off;
}

bool value_step_make(const struct unwind_rule *rule, struct value_step *step)
{
	struct value_step made = {.cfa_reg = rule->cfa.reg, .cfa_off = (int32_t)rule->cfa.off, .ra = rule->ra};

	if (!rule->known || rule->start || rule->signal || rule->cfa.what != UNWIND_REGISTER ||
	    rule->cfa.reg >= WL_STACK_REGS || rule->ra >= WL_STACK_REGS || !value_off_fits(rule->cfa.off))
		return false;
	for (uint8_t i = 0; i < rule->cnt; i++) {
		const struct unwind_where *line = &rule->lines[i];

		/* The caller's stack pointer is the canonical frame address. */
		if (line->of == WL_STACK_REG_SP && (line->what != UNWIND_CFA || line->off))
			return false;
		if (!is_followed(rule, line->of) || keeps_value(line))
			continue;
		if (line->what != UNWIND_SAVED || !value_off_fits(line->off) || made.saved_cnt == VALUE_SAVED_MAX)
			return false;
		made.saved[made.saved_cnt].reg = line->of;
		made.saved[made.saved_cnt++].off = (int32_t)line->off;
	}
	*step = made;
	return true;
}

struct value_frame_rule value_step_frame(const struct value_step *step)
{
	return (struct value_frame_rule){.end = UINT64_MAX, .reg = step->cfa_reg, .off = step->cfa_off, .known = true};
}

static int take_read(void *owner, uint32_t variable, const struct value_read *read)
{
	struct value_caller *caller = owner;
	uint32_t known = 0;

	/* Inlined copies share their variables' places. */
	while (known < caller->read_cnt && memcmp(&caller->reads[known], read, sizeof(*read)))
		known++;
	if (known == VALUE_FRAME_READS_MAX) {
		caller->left_out++;
		return 0;
	}
	if (known == caller->read_cnt)
		caller->reads[caller->read_cnt++] = *read;
	return vec_push(&caller->variables, variable) ? -ENOMEM : 0;
}

int value_caller_make(struct value_caller *caller, const struct value_reader *reader, uint64_t addr,
		      const struct value_frame_rule *rule)
{
	return value_reader__caller_reads(reader, addr, rule, take_read, caller);
}

void value_caller_free(struct value_caller *caller)
{
	vec_free(&caller->variables);
}
