// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls that only sampling sees: by pointers, and from code that cannot be read. */
#include "probe/hot_paths.h"
#include "target/program.h"
#include "target/unwind_module.h"

#include <stdlib.h>

/* Is that call known to go there, or to go somewhere else directly and only from there, by a jump, to the callee? */
static bool is_known(struct program *program, uint32_t caller, uint32_t callee, uint64_t call_addr)
{
	const struct call_edge *edges;
	size_t cnt;

	if (program__callees(program, caller, &edges, &cnt))
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (edges[i].call_addr == call_addr && (edges[i].callee == callee || edges[i].kind == CALL_DIRECT))
			return true;
	return false;
}

int hot_paths__teach(const struct hot_paths *hot, struct program *program)
{
	struct hot_edge *edges;
	size_t cnt, added = 0;
	int err = hot_paths__edges(hot, HOT_PATHS_NONE, &edges, &cnt);

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct program_function *caller = program__function(program, edges[i].caller);
		const struct program_module *module = caller ? program__module(program, caller->module) : NULL;
		uint8_t code[UNWIND_CALL_SZ_MAX];
		uint64_t return_addr;
		ssize_t sz, call_sz;

		if (!module)
			continue;
		return_addr = edges[i].call_addr - module->bias;
		sz = program__read_code(program, caller->module, return_addr - sizeof(code), code, sizeof(code));
		call_sz = sz == sizeof(code) ? unwind_call_sz(code + sz, sz) : 0;
		if (!call_sz || is_known(program, edges[i].caller, edges[i].callee, return_addr - call_sz))
			continue;
		err = program__add_dynamic_edge(program, edges[i].caller, edges[i].callee, return_addr - call_sz);
		added += !err;
		/* Its own calls are not read yet: sampling sees this one again. */
		if (err == -EAGAIN)
			err = 0;
	}
	free(edges);
	return err ? err : (int)added;
}
