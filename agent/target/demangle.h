/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++ (and Rust and D) names as their programmers wrote them. */
#ifndef WHYLATE_TARGET_DEMANGLE_H
#define WHYLATE_TARGET_DEMANGLE_H

/* For the caller to free(); NULL: it is not mangled (or out of memory).  Control characters become '?'. */
char *demangle(const char *name);

#endif
