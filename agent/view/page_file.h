/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that --html names, "-" for stdout.  It is opened with the rights of the user. */
#ifndef WHYLATE_VIEW_PAGE_FILE_H
#define WHYLATE_VIEW_PAGE_FILE_H

#include <stdbool.h>
#include <stdio.h>

bool page_file_is_stdout(const char *path);
/* What write() writes, 0 or -errno; a file that was there is replaced.  0, or -errno after a line that says why. */
int page_file_write(const char *path, int (*write)(FILE *out, const void *ctx), const void *ctx);

#endif
