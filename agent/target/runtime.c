// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/runtime.h"

#include <limits.h>
#include <string.h>

static const struct {
	const char *name, *file, *advice, *again;
} runtimes[RUNTIME_CNT] = {
	[RUNTIME_NONE] = {"", "", "", NULL},
#define RUNTIME(id, name, file, advice, again) [RUNTIME_##id] = {name, file, advice, again},
#include "target/runtime.def"
};

/* "node" and "nodejs" and "python3.11", not "nodelay.so". */
static bool is_called(const char *base, const char *file)
{
	size_t len = strlen(file);

	if (strncmp(base, file, len))
		return false;
	return !base[len] || strchr(".0123456789", base[len]) || !strcmp(base + len, "js");
}

enum runtime runtime_of(const target_mappings *mappings, size_t *idx)
{
	char base[NAME_MAX + 1];

	for (size_t i = 0; i < mappings->cnt; i++) {
		const struct target_mapping *mapping = &mappings->items[i];

		if (!mapping->exec || mapping->path[0] != '/')
			continue;
		target_mapping_basename(mapping, base, sizeof(base));
		for (int r = RUNTIME_NONE + 1; r < RUNTIME_CNT; r++) {
			if (!is_called(base, runtimes[r].file))
				continue;
			if (idx)
				*idx = i;
			return (enum runtime)r;
		}
	}
	return RUNTIME_NONE;
}

bool runtime_is_python(enum runtime runtime)
{
	return runtime == RUNTIME_PYTHON || runtime == RUNTIME_PYTHON_LIBRARY;
}

const char *runtime_name(enum runtime runtime)
{
	return runtimes[runtime].name;
}

const char *runtime_advice(enum runtime runtime, bool has_map)
{
	return has_map && runtimes[runtime].again ? runtimes[runtime].again : runtimes[runtime].advice;
}
