/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The argument part of a USDT note, `8@%rax -4@-20(%rbp) 4@$5 8@8(%rdi,%rcx,4)`, by which symbol lists also name
 * registers.  What a file says is parsed in whylate-symbols (usdt_notes.h).
 */
#ifndef WHYLATE_TARGET_USDT_ARGS_H
#define WHYLATE_TARGET_USDT_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define USDT_ARG_MAX 6 /* arg0…arg5; a marker may have more, which no expression can name */

enum usdt_arg_kind {
	USDT_ARG_UNREADABLE, /* floating point, %rip-relative by a symbol, a form that is not understood */
	USDT_ARG_CONST,      /* value */
	USDT_ARG_REG,        /* the register at reg_off */
	USDT_ARG_MEMORY,     /* sz bytes at register reg_off + register idx_off * scale + value */
};

#define USDT_NO_REG (-1)

/*
 * One argument, as whylate-symbols sends it (elf_rows.h).  The result is cut to sz bytes and, if is_signed,
 * sign-extended.
 */
struct usdt_arg {
	uint8_t kind; /* enum usdt_arg_kind */
	uint8_t sz;   /* 1, 2, 4 or 8 bytes */
	uint8_t is_signed;
	uint8_t scale; /* of the index register: 1, 2, 4, 8 */
	uint8_t shift; /* bits to shift a register right before cutting it: 8 for %ah */
	uint8_t pad;
	int16_t reg_off; /* byte offset in this machine's struct pt_regs; USDT_NO_REG: none */
	int16_t idx_off; /* likewise */
	uint16_t pad_2[3];
	int64_t value;
};

_Static_assert(sizeof(struct usdt_arg) == 24, "arguments have no hidden padding");

/* How many arguments the text has, of which the first USDT_ARG_MAX are in args. */
unsigned usdt_args_parse(const char *text, struct usdt_arg args[USDT_ARG_MAX]);
/* Could usdt_args_parse() have made it? */
bool usdt_arg_is_right(const struct usdt_arg *arg);

#endif
