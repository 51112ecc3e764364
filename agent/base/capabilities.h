/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linux capabilities of the calling thread. */
#ifndef WHYLATE_BASE_CAPABILITIES_H
#define WHYLATE_BASE_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

/* caps may be NULL: then it has none. */
bool capability_had(cap_t caps, cap_value_t cap);
/* Of those that it has, keeps the given ones and gives up all others, for good. 0 or -errno. */
int capabilities_keep(const cap_value_t *wanted, size_t cnt);
/* This thread, from now on, opens files and does nothing else that takes a privilege. */
void capabilities_keep_reading(void);

#endif
