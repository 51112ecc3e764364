// SPDX-License-Identifier: GPL-2.0-or-later
/* The expressions and addresses of a symbol list. */
#include "probe/symbol_list.h"
#include "probe/usdt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REG_LEN_MAX 8

/* %rbx, %ebx, …; *len of it.  False: it is none. */
static bool parse_register(const char *text, struct probe_expr *expr, size_t *len)
{
	struct usdt_arg arg[USDT_ARG_MAX];
	char operand[REG_LEN_MAX + 8];

	*len = 1;
	while (isalnum((unsigned char)text[*len]))
		(*len)++;
	if (*len < 2 || *len > REG_LEN_MAX)
		return false;
	snprintf(operand, sizeof(operand), "8@%.*s", (int)*len, text);
	if (usdt_args_parse(operand, arg) != 1 || arg[0].kind != USDT_ARG_REG || arg[0].shift)
		return false;
	/* ebx, r8d: four bytes of it. */
	if (text[1] == 'e' || (text[1] == 'r' && text[*len - 1] == 'd'))
		expr->width = 4;
	else if (text[1] != 'r' && text[1] != 'x')
		return false;
	expr->is_reg = true;
	expr->reg_off = arg[0].reg_off;
	return true;
}

/* argN or %REG.  Its length; 0: it is neither. */
static size_t parse_base(const char *text, struct probe_expr *expr)
{
	size_t len;

	if (*text == '%')
		return parse_register(text, expr, &len) ? len : 0;
	if (strncmp(text, "arg", 3) || text[3] < '0' || text[3] > '5')
		return 0;
	expr->arg = text[3] - '0';
	return 4;
}

bool probe_expr_parse(const char *text, struct probe_expr *expr)
{
	bool dereferences = !strncmp(text, "*(", 2);
	size_t len;
	long long off;
	char *end;

	*expr = (struct probe_expr){.kind = dereferences ? PROBE_EXPR_MEMORY : PROBE_EXPR_ARG, .width = 8};
	if (!strcmp(text, "retval") || !strcmp(text, "tid")) {
		expr->kind = *text == 'r' ? PROBE_EXPR_RETVAL : PROBE_EXPR_TID;
		return true;
	}
	if (dereferences)
		text += 2;
	len = parse_base(text, expr);
	if (!len)
		return false;
	text += len;
	if (!dereferences)
		return !*text;
	/* An address has all eight bytes. */
	if (expr->is_reg && expr->width != 8)
		return false;
	if ((text[0] != '+' && !(text[0] == '-' && expr->is_reg)) || !isdigit((unsigned char)text[1]))
		return false;
	errno = 0;
	off = strtoll(text + 1, &end, 0);
	expr->off = text[0] == '-' ? -off : off;
	expr->width = !strcmp(end, "):4") ? 4 : 8;
	return !errno && off <= INT32_MAX && (expr->width == 4 || !strcmp(end, ")"));
}

bool probe_type_parse(char *text, struct probe_expr *expr)
{
	size_t len = strlen(text);
	bool is_string = len > 5 && !strncmp(text, "str(", 4) && text[len - 1] == ')', parsed;

	if (is_string)
		text[len - 1] = '\0';
	parsed = probe_expr_parse(is_string ? text + 4 : text, expr);
	if (is_string)
		text[len - 1] = ')';
	expr->is_string = is_string;
	return parsed && !(is_string && expr->kind == PROBE_EXPR_MEMORY && expr->width != 8);
}

bool probe_form_is_place(enum probe_symbol_form form)
{
	return form == PROBE_SYMBOL_USDT || form == PROBE_SYMBOL_PLACE;
}

bool probe_symbol_address(const char *symbol, uint64_t *addr)
{
	char *end;

	if (strncmp(symbol, "+0x", 3) || !isxdigit((unsigned char)symbol[3]))
		return false;
	errno = 0;
	*addr = strtoull(symbol + 3, &end, 16);
	return !errno && !*end;
}
