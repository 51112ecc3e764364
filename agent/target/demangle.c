// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/demangle.h"

#include "target/proc_file.h"

#include <libiberty/demangle.h>
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
