/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol list (DESIGN §7): one probe a line, `#` comments,
 *   ROLE [MODULE:]SYMBOL [name=TEXT] [key=EXPR] [object=EXPR] [task=EXPR] [queue=EXPR] [type=EXPR|str(EXPR)]
 * SYMBOL is a function's name, a glob, a C++ name with or without its arguments, usdt:PROVIDER:NAME (NAME may be a
 * glob), or +0xADDRESS, as linked: the function that begins there or, where an expression names a register (%rbx,
 * %ebx, *(%rsp+OFF)), the one instruction.  A name in both functions and libraries means the executable's.
 *
 * What each role is, what it takes and when it happens:
 *   interval  the call is the interval: begins at its entry, ends at its exit; type=; no marker
 *   begin     an interval begins: key= required, type=
 *   end       the interval of that key ends: key= required; the list must have a begin
 *   work      this thread now works for the interval of that key: key= required; the list must have a begin
 *   acquire   takes a lock, waiting from entry to exit, held from then on: object= (default arg0)
 *   release   gives it back: object= (default arg0); the list must have an acquire
 *   enqueue   puts a task into a queue: task= required, queue= (default arg0); the list must have a dequeue
 *   dequeue   takes it out, at the function's exit: task= required, queue= (default arg0); and an enqueue
 *   function  only to be timed; no option but name=; no marker
 * begin, end, work, release and enqueue happen at the entry, or at the exit if one of their expressions is `retval`.
 * type= tells intervals of a line apart, by a number or by the text that a pointer points to; it may not be `retval`.
 * Arguments are those of the entry; `*(argN+OFF)` is read when the role happens, so at the exit for a task= of dequeue.
 */
#ifndef WHYLATE_PROBE_SYMBOL_LIST_H
#define WHYLATE_PROBE_SYMBOL_LIST_H

#include "base/vec.h"
#include "target/target.h"

enum probe_role {
	PROBE_INTERVAL,
	PROBE_BEGIN,
	PROBE_END,
	PROBE_WORK,
	PROBE_ACQUIRE,
	PROBE_RELEASE,
	PROBE_ENQUEUE,
	PROBE_DEQUEUE,
	PROBE_FUNCTION,
	PROBE_ROLE_CNT
};

enum probe_expr_kind {
	PROBE_EXPR_NONE, /* not given, and the role has no use for it */
	PROBE_EXPR_ARG,  /* argument register `arg`; of a USDT marker, its argument `arg` */
	PROBE_EXPR_RETVAL,
	PROBE_EXPR_TID,
	PROBE_EXPR_MEMORY, /* `width` bytes (8 or 4, zero-extended) at argument `arg` + off */
};

/* A parsed EXPR. */
struct probe_expr {
	uint8_t kind; /* enum probe_expr_kind */
	uint8_t arg;  /* 0…5 */
	uint8_t width;
	int32_t off;
	int16_t reg_off; /* is_reg: in struct pt_regs */
	bool is_reg;     /* a register in place of the argument: only of a place */
	bool is_string;  /* of type=: it points to a text */
};

enum probe_symbol_form {
	PROBE_SYMBOL_PLAIN,
	PROBE_SYMBOL_GLOB,
	PROBE_SYMBOL_CPLUSPLUS,
	PROBE_SYMBOL_CPLUSPLUS_GLOB, /* `*` or `?` outside of template and function arguments: ha_innobase::* */
	PROBE_SYMBOL_USDT,           /* usdt:PROVIDER:NAME, either may be a glob */
	PROBE_SYMBOL_ADDRESS,        /* +0xADDRESS: a function */
	PROBE_SYMBOL_PLACE,          /* +0xADDRESS: one instruction */
};

struct probe_line {
	uint32_t line_no;
	enum probe_role role;
	enum probe_symbol_form form;
	char *module; /* NULL: the executable first, then the one mapped library that has it */
	char *symbol;
	char *name;                                 /* what reports call it; the symbol unless name= says otherwise */
	bool named;                                 /* name= was given */
	struct probe_expr key, object, task, queue; /* defaults filled in */
	struct probe_expr type;
};

typedef VEC(struct probe_line) probe_lines;

const char *probe_role_name(enum probe_role role);
/* EXPR: arg0…arg5, retval, tid, *(argN+OFF), %REG, *(%REG+OFF), the dereferencing ones with or without :4. */
bool probe_expr_parse(const char *text, struct probe_expr *expr);
/* str(EXPR): of type= only. */
bool probe_type_parse(char *text, struct probe_expr *expr);
/* Is it one place, and no call from an entry to an exit? */
bool probe_form_is_place(enum probe_symbol_form form);
/* The address that the symbol is.  False: it is malformed. */
bool probe_symbol_address(const char *symbol, uint64_t *addr);
/* The role without which this one tells nothing; PROBE_ROLE_CNT: none. */
enum probe_role probe_role_counterpart(enum probe_role role);
/* Does it happen at (or last until) the exit: must the exit be probed? */
bool probe_line_needs_exit(const struct probe_line *line);
/* Bit i: argument i is read. */
uint8_t probe_line_args(const struct probe_line *line);
/* Do these lines say what an interval is?  If not, socket requests are the intervals and the lines only explain them.
 */
bool probe_lines_have_intervals(const probe_lines *lines);
/* Does any of them tell types of intervals? */
bool probe_lines_have_types(const probe_lines *lines);
/* Do they only time functions, if there are any? */
bool probe_lines_only_time(const probe_lines *lines);

/*
 * `list` is a path, or preset:NAME for a list that ships with the product (see preset.h).
 * 0, or -errno after one line that names file, line and what is wrong (unknown role, malformed line or expression, an
 * option that the role demands or has no use for, a role without its counterpart, a line longer than 4096 bytes, more
 * than 100,000 lines, no probe in the whole file, unreadable file).
 */
int symbol_list_read(const char *list, probe_lines *lines);
/* One more line from elsewhere, which `place` names in what is said of it; no counterparts are asked for. */
int symbol_list_add(const char *place, const char *text, probe_lines *lines);
void symbol_list_free(probe_lines *lines);

#endif
