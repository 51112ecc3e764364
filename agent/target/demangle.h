/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++ (and Rust and D) names as their programmers wrote them. */
#ifndef WHYLATE_TARGET_DEMANGLE_H
#define WHYLATE_TARGET_DEMANGLE_H

#include <stddef.h>

/* For the caller to free(); NULL: it is not mangled (or out of memory).  Control characters become '?'. */
char *demangle(const char *name);
/* Copies it into sz bytes.  Of one that is too long the template arguments go first: "std::map<…>::find()". */
void demangle_fit(char *to, size_t sz, const char *shown);

#endif
