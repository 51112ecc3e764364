// SPDX-License-Identifier: GPL-2.0-or-later
/* A plan in words. */
#include "base/log.h"
#include "probe/plan.h"
#include "target/function_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define EXITS_SHOWN 8

const char *plan_cost_name(enum plan_cost cost)
{
	static const char *const names[PLAN_COST_CNT] = {"emulated", "stepped"};

	return cost < PLAN_COST_CNT ? names[cost] : "?";
}

const char *plan_exit_name(enum plan_exit exit)
{
	switch (exit) {
	case PLAN_EXIT_NONE:
		return "none";
	case PLAN_EXIT_URETPROBE:
		return "uretprobe";
	case PLAN_EXIT_SITES:
		return "sites";
	}
	return "?";
}

void plan_instruction(struct program *program, uint32_t module, uint64_t file_off, char *buf, size_t sz)
{
	uint8_t bytes[CODE_INSN_MAX];
	uint64_t addr;
	ssize_t len;

	snprintf(buf, sz, "?");
	if (program__addr_at(program, module, file_off, &addr))
		return;
	len = program__read_code(program, module, addr, bytes, sizeof(bytes));
	if (len > 0)
		code__text(program__code(program), bytes, len, addr, buf, sz);
}

static int line_push(plan_lines *lines, const char *fmt, ...) WL_PRINTF(2, 3);

static int line_push(plan_lines *lines, const char *fmt, ...)
{
	va_list args;
	char *line;
	int len;

	va_start(args, fmt);
	len = vasprintf(&line, fmt, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	if (vec_push(lines, line)) {
		free(line);
		return -ENOMEM;
	}
	return 0;
}

/* "entry  +0x4  push %rbp  emulated": the offset counts from the function's first instruction. */
static int site_push(struct program *program, const struct program_function *function, const char *what,
		     const struct plan_site *site, plan_lines *lines)
{
	int64_t off = site->file_off - function->file_off;
	char text[128], bias[48] = "";

	plan_instruction(program, function->module, site->file_off, text, sizeof(text));
	if (site->sp_bias)
		snprintf(bias, sizeof(bias), ", %u bytes below the frame", site->sp_bias);
	return line_push(lines, "  %-5s %c0x%-6" PRIx64 " file 0x%-8" PRIx64 " %-28s %s%s", what, off < 0 ? '-' : '+',
			 (uint64_t)(off < 0 ? -off : off), site->file_off, text, plan_cost_name(site->cost), bias);
}

static int exits_push(struct program *program, const struct program_function *function, const struct plan *plan,
		      plan_lines *lines)
{
	int err = 0;

	if (plan->exit == PLAN_EXIT_URETPROBE)
		err = line_push(lines, "  exit  return probe, from the entry's site");
	for (size_t i = 0; i < plan->exits.cnt && i < EXITS_SHOWN && !err; i++)
		err = site_push(program, function, "exit", &plan->exits.items[i], lines);
	if (!err && plan->exits.cnt > EXITS_SHOWN)
		err = line_push(lines, "  exit  and %zu more", plan->exits.cnt - EXITS_SHOWN);
	if (!err && plan->exit_why)
		err = line_push(lines,
				plan->exit == PLAN_EXIT_NONE ? "  exit  none: %s" : "        no return probe: %s",
				plan->exit_why);
	return err;
}

int plan_describe(struct program *program, const struct plan *plan, plan_lines *lines)
{
	const struct program_function *function = program__function(program, plan->function);
	const struct program_module *module;
	int err;

	if (!function)
		return -EINVAL;
	module = program__module(program, function->module);
	err = line_push(lines, "%s:%s", module->name, function->shown);
	if (!err && !plan->possible)
		return line_push(lines, "  cannot be probed: %s", plan->why);
	if (!err)
		err = site_push(program, function, "entry", &plan->entry, lines);
	if (!err && plan->why)
		err = line_push(lines, "        slow: %s", plan->why);
	return err ? err : exits_push(program, function, plan, lines);
}

void plan_lines_free(plan_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		free(lines->items[i]);
	vec_free(lines);
}
