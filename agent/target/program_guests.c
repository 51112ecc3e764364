// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Beneath which functions of the C library there may be code of others: what they are handed to be called, or to write
 * a stream with (fopencookie).  POSIX.1-2017 and the manual of glibc say which do that; what they call on the way is
 * found in the code.
 */
#include "target/hazard.h"
#include "target/program_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_CNT(list) (sizeof(list) / sizeof((list)[0]))

/* They look far and wide for what they need, but in the library's own parts. */
static bool is_alone_in(const char *name)
{
	return hazard_is(HAZARD_ALONE, name) || !strncmp(name, "gconv", 5) || c_library_is_alone_in(name);
}

/* Without what tells variants of one function apart: __printf_chk, fputs_unlocked, glob64, msort_with_tmp.part.0 */
static void plain_name(const char *name, char *plain, size_t sz)
{
	static const char *const ends[] = {"_unlocked", "_chk", "64"};
	size_t len;

	name += strspn(name, "_");
	snprintf(plain, sz, "%.*s", (int)strcspn(name, "."), name);
	len = strlen(plain);
	for (size_t i = 0; i < ARRAY_CNT(ends); i++) {
		size_t end_len = strlen(ends[i]);

		if (len > end_len && !strcmp(plain + len - end_len, ends[i]))
			plain[len -= end_len] = '\0';
	}
}

typedef VEC(uint32_t) function_ids;

/* What has such a name, or none, and all of the library that is called beneath: 0 or -errno. */
static int find_beneath(struct program *program, struct module *module, function_ids *beneath, uint8_t *seen)
{
	int err = 0;

	for (size_t i = 0; !err && i < module->functions.cnt; i++) {
		const struct program_function *function = &module->functions.items[i].public;
		char plain[64];

		plain_name(function->name, plain, sizeof(plain));
		seen[i] = hazard_is(HAZARD_HOST, plain) || !strncmp(plain, "IO_", 3) ||
			  function->source == FUNCTION_EH_FRAME;
		if (seen[i])
			err = vec_push(beneath, module->first_id + i);
	}
	for (size_t i = 0; !err && i < beneath->cnt; i++) {
		const struct call_edge *edges;
		size_t cnt;

		err = program__callees(program, beneath->items[i], &edges, &cnt);
		for (size_t j = 0; !err && j < cnt; j++) {
			uint32_t idx = edges[j].callee - module->first_id;
			char plain[64];

			if (idx >= module->functions.cnt || seen[idx])
				continue;
			seen[idx] = 1;
			plain_name(module->functions.items[idx].public.name, plain, sizeof(plain));
			if (!is_alone_in(plain))
				err = vec_push(beneath, edges[j].callee);
		}
	}
	return err;
}

/* Does it call through a pointer, or somebody who does? */
static bool leads_to_pointer(struct program *program, struct module *module, uint32_t id)
{
	const struct function *function = program_function_of(program, id);

	if (program__calls_indirectly(program, id) || function->unresolved_calls)
		return true;
	for (uint32_t i = 0; i < function->edge_cnt; i++) {
		uint32_t idx = function->edges[i].callee - module->first_id;

		if (idx < module->functions.cnt && module->functions.items[idx].has_guests)
			return true;
	}
	return false;
}

static int find_guests(struct program *program, struct module *module)
{
	function_ids beneath = {0};
	int err = module_functions_load(program, module);
	uint8_t *seen = err ? NULL : calloc(module->functions.cnt + 1, 1);
	bool more = seen;

	err = err ? err : seen ? find_beneath(program, module, &beneath, seen) : -ENOMEM;
	while (!err && more) {
		more = false;
		for (size_t i = beneath.cnt; i-- > 0;) {
			struct function *function = program_function_of(program, beneath.items[i]);

			/* From the last one on: callees come after their callers. */
			if (!function->has_guests && leads_to_pointer(program, module, beneath.items[i]))
				more = function->has_guests = true;
		}
	}
	free(seen);
	vec_free(&beneath);
	module->guests_known = !err;
	return err;
}

bool program__has_guests(struct program *program, uint32_t id)
{
	const struct function *function = program_function_of(program, id);
	struct module *module = function ? program_module_of(program, function->public.module) : NULL;

	if (!module || strncmp(module->name, "libc.so.6", 9))
		return true;
	if (!module->guests_known && find_guests(program, module))
		return true;
	return program_function_of(program, id)->has_guests;
}
