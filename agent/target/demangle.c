// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/demangle.h"

#include "target/proc_file.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 4096
#define SHOWN_MAX   65536

char *demangle(const char *name)
{
	char *shown;

	if (strlen(name) > MANGLED_MAX)
		return NULL;
	/* Limits its own recursion unless told otherwise. */
	shown = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (shown && strlen(shown) > SHOWN_MAX) {
		free(shown);
		return NULL;
	}
	if (shown)
		proc_make_printable(shown);
	return shown;
}

/* Template arguments begin there: not in operator<, operator<<, nor in "<lambda()>". */
static bool begins_arguments(const char *shown, size_t at)
{
	static const char operator_[] = "operator";
	const size_t len = sizeof(operator_) - 1;

	if (shown[at] != '<' || !at || !(isalnum((unsigned char)shown[at - 1]) || shown[at - 1] == '_'))
		return false;
	return at < len || strncmp(shown + at - len, operator_, len) != 0;
}

void demangle_fit(char *to, size_t sz, const char *shown)
{
	static const char left_out[] = "<…>";
	size_t len = 0, depth = 0;

	if (strlen(shown) < sz) {
		strcpy(to, shown);
		return;
	}
	for (size_t i = 0; shown[i]; i++) {
		bool begins = !depth && begins_arguments(shown, i);

		if (len + (begins ? sizeof(left_out) : 2) > sz)
			break;
		if (depth) {
			depth += shown[i] == '<';
			depth -= shown[i] == '>' && shown[i - 1] != '-';
		} else if (begins) {
			depth = 1;
			memcpy(to + len, left_out, sizeof(left_out) - 1);
			len += sizeof(left_out) - 1;
		} else {
			to[len++] = shown[i];
		}
	}
	to[len] = '\0';
}
