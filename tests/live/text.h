/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine code of a process: is it still that of its files? */
#ifndef WHYLATE_TESTS_TEXT_H
#define WHYLATE_TESTS_TEXT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Every byte of every executable mapping of a file, compared with the file.  After kill -9 of its agent the kernel
 * takes a moment to put the last byte back, so this waits for up to two seconds.  A difference is a failed check that
 * names the place.
 */
bool text_is_intact(pid_t pid);
/* The same, of the process and all its children. */
bool text_is_intact_in_tree(pid_t pid);
/* Is there a difference by now?  (That there is one while probes are attached shows that one would be seen.) */
bool text_is_changed(pid_t pid);
/* Does the prober, or a recording, say that it cannot have breakpoint registers? */
bool registers_missing(const char *said);

#endif
