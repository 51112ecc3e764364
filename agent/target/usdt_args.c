// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The argument part of a USDT note: assembler operands of this machine, each as SIZE@OPERAND.  Whatever is not wholly
 * understood becomes an unreadable argument; the others keep their places.
 */
#include "target/usdt_args.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include <asm/ptrace.h>

#define WORD_MAX 64

struct operand_register {
	int16_t off; /* in struct pt_regs */
	uint8_t shift;
};

#if defined(__x86_64__)
#define NUMBER_ALONE USDT_ARG_UNREADABLE /* an address */
#define REGS_SZ      sizeof(struct pt_regs)

/* Every name of a register; "" where it has none, which no operand is. */
#define REGISTER(full, e, word, low, high)        \
	{                                         \
		offsetof(struct pt_regs, full),   \
		{                                 \
			#full, e, word, low, high \
		}                                 \
	}
#define REGISTER_NEW(full) REGISTER(full, #full "d", #full "w", #full "b", "")

static const struct {
	int16_t off;
	const char *names[5];
} registers[] = {
	REGISTER(rax, "eax", "ax", "al", "ah"),
	REGISTER(rbx, "ebx", "bx", "bl", "bh"),
	REGISTER(rcx, "ecx", "cx", "cl", "ch"),
	REGISTER(rdx, "edx", "dx", "dl", "dh"),
	REGISTER(rsi, "esi", "si", "sil", ""),
	REGISTER(rdi, "edi", "di", "dil", ""),
	REGISTER(rbp, "ebp", "bp", "bpl", ""),
	REGISTER(rsp, "esp", "sp", "spl", ""),
	REGISTER_NEW(r8),
	REGISTER_NEW(r9),
	REGISTER_NEW(r10),
	REGISTER_NEW(r11),
	REGISTER_NEW(r12),
	REGISTER_NEW(r13),
	REGISTER_NEW(r14),
	REGISTER_NEW(r15),
};

static bool register_find(const char *name, struct operand_register *found)
{
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		for (size_t form = 0; form < 5; form++)
			if (!strcmp(name, registers[i].names[form])) {
				found->off = registers[i].off;
				found->shift = form == 4 ? 8 : 0;
				return true;
			}
	return false;
}
#elif defined(__aarch64__)
#define NUMBER_ALONE USDT_ARG_CONST
#define REGS_SZ      sizeof(struct user_pt_regs)

static bool register_find(const char *name, struct operand_register *found)
{
	unsigned long number;
	char *end;

	found->shift = 0;
	found->off = offsetof(struct user_pt_regs, sp);
	if (!strcmp(name, "sp"))
		return true;
	if ((*name != 'x' && *name != 'w') || !isdigit((unsigned char)name[1]))
		return false;
	number = strtoul(name + 1, &end, 10);
	found->off = offsetof(struct user_pt_regs, regs) + 8 * (number <= 30 ? number : 0);
	return !*end && number <= 30;
}
#else
#define NUMBER_ALONE USDT_ARG_UNREADABLE
#define REGS_SZ      sizeof(uint64_t)

static bool register_find(const char *name, struct operand_register *found)
{
	(void)name;
	(void)found;
	return false;
}
#endif

static bool number_read(const char **text, int64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)**text) &&
	    !((**text == '-' || **text == '+') && isdigit((unsigned char)(*text)[1])))
		return false;
	errno = 0;
	*number = strtoll(*text, &end, 0);
	if (errno) { /* an address of the upper half */
		errno = 0;
		*number = strtoull(*text, &end, 0);
	}
	*text = end;
	return !errno;
}

/* A register's name at *text, which ends at any sign that no name has. */
static bool register_read(const char **text, struct operand_register *found)
{
	char name[8];
	size_t len = 0;

	if (**text == '%')
		(*text)++;
	for (; isalnum((unsigned char)(*text)[len]) && len < sizeof(name) - 1; len++)
		name[len] = (*text)[len];
	name[len] = '\0';
	*text += len;
	return len && !isalnum((unsigned char)**text) && register_find(name, found);
}

/* One that an address is made of: a whole one. */
static bool address_register_read(const char **text, int16_t *off)
{
	struct operand_register found;

	if (!register_read(text, &found) || found.shift)
		return false;
	*off = found.off;
	return true;
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

/* OFF(%BASE), OFF(%BASE,%INDEX,SCALE), OFF(,%INDEX,SCALE); text is behind the parenthesis. */
static bool memory_read(const char *text, struct usdt_arg *arg)
{
	int64_t scale = 1;

	if (*text != ',' && !address_register_read(&text, &arg->reg_off))
		return false;
	if (*text == ',') {
		text++;
		if (!address_register_read(&text, &arg->idx_off))
			return false;
		if (*text == ',' && (text++, !number_read(&text, &scale)))
			return false;
	}
	arg->scale = scale;
	return !strcmp(text, ")") && (scale == 1 || scale == 2 || scale == 4 || scale == 8);
}

/* [REG], [REG, OFF], [REG, REG]; text is behind the bracket. */
static bool bracketed_read(const char *text, struct usdt_arg *arg)
{
	if (!address_register_read(&text, &arg->reg_off))
		return false;
	arg->scale = 1;
	if (*text == ',') {
		text = skip_blanks(text + 1);
		text += *text == '#';
		if (!number_read(&text, &arg->value) && !address_register_read(&text, &arg->idx_off))
			return false;
	}
	return !strcmp(text, "]");
}

static uint8_t operand_read(const char *text, struct usdt_arg *arg)
{
	struct operand_register found;
	bool immediate = *text == '$' || *text == '#';

	text += immediate;
	if (*text == '[')
		return bracketed_read(text + 1, arg) ? USDT_ARG_MEMORY : USDT_ARG_UNREADABLE;
	if (number_read(&text, &arg->value)) {
		if (!*text)
			return immediate ? USDT_ARG_CONST : NUMBER_ALONE;
		return *text == '(' && !immediate && memory_read(text + 1, arg) ? USDT_ARG_MEMORY : USDT_ARG_UNREADABLE;
	}
	if (immediate)
		return USDT_ARG_UNREADABLE;
	if (*text == '(')
		return memory_read(text + 1, arg) ? USDT_ARG_MEMORY : USDT_ARG_UNREADABLE;
	if (!register_read(&text, &found) || *text)
		return USDT_ARG_UNREADABLE;
	arg->reg_off = found.off;
	arg->shift = found.shift;
	return USDT_ARG_REG;
}

/* SIZE@OPERAND: the size may be missing in old notes, and bears an `f` where the value is a floating-point one. */
static void arg_read(const char *word, struct usdt_arg *arg)
{
	const char *at = strchr(word, '@'), *text = word;
	const struct usdt_arg unreadable = {.reg_off = USDT_NO_REG, .idx_off = USDT_NO_REG, .sz = 8};
	int64_t sz = 8;

	*arg = unreadable;
	if (at) {
		if (!number_read(&text, &sz) || text != at)
			return;
		arg->is_signed = sz < 0;
		sz = sz < 0 ? -sz : sz;
		if (sz != 1 && sz != 2 && sz != 4 && sz != 8)
			return;
		arg->sz = sz;
		word = at + 1;
	}
	arg->kind = operand_read(word, arg);
	/* One half of a register only ever holds one byte. */
	if (arg->kind == USDT_ARG_UNREADABLE || (arg->shift && arg->sz != 1))
		*arg = unreadable;
}

/* The length of the operand at text: a blank within brackets is none between operands. */
static size_t word_len(const char *text)
{
	size_t len = 0;
	int depth = 0;

	for (; text[len] && (depth > 0 || !isblank((unsigned char)text[len])); len++)
		depth += (text[len] == '[' || text[len] == '(') - (text[len] == ']' || text[len] == ')');
	return len;
}

unsigned usdt_args_parse(const char *text, struct usdt_arg args[USDT_ARG_MAX])
{
	unsigned cnt = 0;

	for (text = skip_blanks(text); *text; text = skip_blanks(text)) {
		size_t len = word_len(text);
		char word[WORD_MAX];

		if (cnt < USDT_ARG_MAX) {
			/* No operand is that long: what is cut is not understood, and unreadable. */
			size_t cut = len < sizeof(word) ? len : 0;

			memcpy(word, text, cut);
			word[cut] = '\0';
			arg_read(word, &args[cnt]);
		}
		cnt++;
		text += len;
	}
	return cnt;
}

static bool reg_is_right(int16_t off)
{
	return off == USDT_NO_REG ||
	       (off >= 0 && off % sizeof(uint64_t) == 0 && (size_t)off <= REGS_SZ - sizeof(uint64_t));
}

bool usdt_arg_is_right(const struct usdt_arg *arg)
{
	return arg->kind <= USDT_ARG_MEMORY && arg->is_signed <= 1 && arg->sz && arg->sz <= 8 &&
	       !(arg->sz & (arg->sz - 1)) && arg->scale <= 8 && !(arg->scale & (arg->scale - 1)) &&
	       (!arg->shift || arg->shift == 8) && reg_is_right(arg->reg_off) && reg_is_right(arg->idx_off) &&
	       (arg->kind != USDT_ARG_REG || arg->reg_off != USDT_NO_REG);
}
