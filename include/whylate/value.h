/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of a variable whose values are sampled: in the schema of a binary, in a recording, in the analysis. */
#ifndef WHYLATE_VALUE_H
#define WHYLATE_VALUE_H

enum value_tag {
	VALUE_TAG_GLOBAL = 1,
	VALUE_TAG_LOOP = 2,  /* changed in a natural loop and tested by an exit of it */
	VALUE_TAG_COND = 4,  /* source of the flags of a conditional jump */
	VALUE_TAG_ARGS = 8,  /* in, or moved into, an argument register before a call */
	VALUE_TAG_STEP = 16, /* no other, and changed from its own value in a natural loop: `depth++`, `p = p->next`; or
				set there, with COND */
};

enum value_type {
	VALUE_SIGNED,
	VALUE_UNSIGNED,
	VALUE_BOOL,
	VALUE_FLOAT,
	VALUE_ENUM,
	VALUE_POINTER, /* compared by identity only */
	VALUE_TYPE_CNT
};

#define VALUE_TYPE_NAMES                                                                               \
	{                                                                                              \
		[VALUE_SIGNED] = "signed", [VALUE_UNSIGNED] = "unsigned", [VALUE_BOOL] = "bool",       \
		[VALUE_FLOAT] = "float",   [VALUE_ENUM] = "enum",         [VALUE_POINTER] = "pointer", \
	}

#define VALUE_TAG_NAMES {"global", "loop", "cond", "args", "step"} /* by bit */
#define VALUE_TAG_CNT   5

#endif
