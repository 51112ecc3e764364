/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The limits of a long recording in a file that is read again on SIGHUP: one `NAME VALUE` a line, names and values
 * those of the options of the same name, `#` comments.
 */
#ifndef WHYLATE_CMD_LIMITS_H
#define WHYLATE_CMD_LIMITS_H

#include "cmd/record_options.h"

/*
 * Applies what the file says to the options: 0, or -errno after a line that says what is wrong and where; the options
 * are as before then.
 */
int limits_read(const char *path, struct record_options *options);

#endif
