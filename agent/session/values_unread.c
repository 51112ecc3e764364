// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose variables are not read, and what works without. */
#include "session/values_internal.h"

#include "base/log.h"
#include "values/schema_make.h"

#include <string.h>

bool sampled_values_is_runtime(const char *name)
{
	static const char *const runtime[] = {"ld-linux", "ld-musl",    "libc.so",      "libc-",    "libm.so",
					      "libm-",    "libpthread", "libstdc++.so", "libgcc_s", "libc++.so"};
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

	for (size_t i = 0; i < sizeof(runtime) / sizeof(runtime[0]); i++)
		if (!strncmp(base, runtime[i], strlen(runtime[i])))
			return true;
	return false;
}

/* Without debugging information there is nothing to say. */
void sampled_values_say_unread(const char *path, int err)
{
	const char *why = value_schema_why(err);

	if (why)
		log_warn("values of '%s' are not read: %s", path, why);
	else
		log_debug("values: %s: %s", path, strerror(-err));
}

/* With -gsplit-dwarf the binary has lines, functions' names and unwinding tables, and nothing of variables. */
void sampled_values_say_split(const char *name, const struct value_schema *schema)
{
	size_t split = schema->skipped[VALUE_SKIP_SPLIT];

	if (split)
		log_warn("values of '%s': the variables of %zu of its %zu source files are not read, their debugging "
			 "information is in .dwo files (-gsplit-dwarf). Compile it with -g alone. Stacks, function "
			 "names, and arguments of probed functions in the symbol list, do not need it",
			 name, split, split + schema->units);
}
