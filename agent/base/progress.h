/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a command is at and since when, on a terminal, once it has taken two seconds.  Nothing where stderr is none, or
 * where the results go to the same terminal meanwhile.  One at a time; a thread paints.
 */
#ifndef WHYLATE_BASE_PROGRESS_H
#define WHYLATE_BASE_PROGRESS_H

#include <stdint.h>

/* `what` and that of progress_at() are strings that stay. */
void progress_begin(const char *what);
void progress_at(const char *what);
/* So much of it is done; total 0: not known. */
void progress_done(uint64_t done, uint64_t total);
/* Before the results are written; without a progress_begin() nothing happens. */
void progress_end(void);

#endif
