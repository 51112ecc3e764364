/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of everything that has a line in a .def file.  Indexes are those of <whylate/record.h>; all are in bounds
 * or NULL. */
#ifndef WHYLATE_BASE_NAMES_H
#define WHYLATE_BASE_NAMES_H

#include <whylate/record.h>

#include <stdbool.h>

const char *category_name(enum wl_category category);
/* "chan receive" of the object of a goroutine's wait, WL_GO_WAIT | enum wl_go_wait; NULL: it is none. */
const char *go_wait_text(uint64_t object);
const char *category_label(enum wl_category category);
/* -1 when there is no such category. */
int category_by_name(const char *name);
const char *state_name(enum wl_state state);
enum wl_category state_category(enum wl_state state);
/* -1 when there is no such state; likewise below. */
int state_by_name(const char *name);
const char *context_name(enum wl_context context);
bool context_has_waker(enum wl_context context);
int context_by_name(const char *name);
const char *certainty_name(enum wl_certainty certainty);
int certainty_by_name(const char *name);
const char *handoff_name(enum wl_handoff handoff);
/* "data in a pipe": what its receiver waited for. */
const char *handoff_what(enum wl_handoff handoff);
int handoff_by_name(const char *name);
/* Stands where a task is named that had the CPU, if there was none; longer than the name of a task can be. */
#define NAME_IDLE_CPU "idle CPU (no task)"
bool name_is_idle_cpu(const char *name);
const char *tally_name(enum wl_tally tally);
const char *loss_name(enum wl_loss loss);
const char *loss_meaning(enum wl_loss loss);

#endif
