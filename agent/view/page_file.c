// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/page_file.h"

#include "base/log.h"
#include "base/user_file.h"

#include <errno.h>
#include <string.h>

bool page_file_is_stdout(const char *path)
{
	return !strcmp(path, "-");
}

int page_file_write(const char *path, int (*write)(FILE *out, const void *ctx), const void *ctx)
{
	bool is_stdout = page_file_is_stdout(path);
	FILE *out = is_stdout ? stdout : user_file_create(path);
	int err = out ? write(out, ctx) : -errno;

	if (out && !is_stdout && fclose(out) && !err)
		err = -EIO;
	if (err)
		log_error("cannot write the page '%s': %s", path, strerror(-err));
	return err;
}
