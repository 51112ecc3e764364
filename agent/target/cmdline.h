/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_TARGET_CMDLINE_H
#define WHYLATE_TARGET_CMDLINE_H

#include <stddef.h>

/*
 * Arguments as /proc/PID/cmdline has them (each with a NUL behind it, and one behind the last) as one line, cut to
 * `room`.  What looks like a secret becomes ***: the value of NAME=VALUE, NAME:VALUE and --NAME VALUE by NAME, the
 * password in a URL, and -pPASSWORD of mysql.
 */
void cmdline_join(const char *args, size_t sz, char *text, size_t room);

#endif
