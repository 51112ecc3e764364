/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends a process that answers questions while it owes the caller an answer. */
#ifndef WHYLATE_TESTS_UNIT_ENDING_H
#define WHYLATE_TESTS_UNIT_ENDING_H

#include <sys/types.h>

/* Waits until that is its state, as the kernel's letter has it; an assertion. */
void ending_await_state(pid_t pid, char state);
/*
 * Stops it now, and ends it by that signal as soon as the caller sleeps, that is, waits for its answer.  To be waited
 * for: the process that does so.
 */
pid_t ending_when_asked(pid_t pid, int signal_no);

#endif
