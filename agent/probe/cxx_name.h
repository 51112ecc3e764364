/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++ names as people write them and as the demangler does: brought to one form in which they can be compared.  Blanks,
 * ABI tags and the return type of templates go; "(anonymous namespace)" and the arguments of enclosing functions stay.
 *   key   ns::f<int>                 what somebody writes who leaves the arguments out
 *   full  ns::f<int>(char*)const     as long as there are arguments; a clone's mark is part of both
 */
#ifndef WHYLATE_PROBE_CXX_NAME_H
#define WHYLATE_PROBE_CXX_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct cxx_name {
	char *key, *full; /* owned */
	bool has_args;
};

/* 0 or -ENOMEM.  Any text will do; one that is no C++ name is its own key. */
int cxx_name_make(const char *text, struct cxx_name *name);
void cxx_name_free(struct cxx_name *name);

#endif
