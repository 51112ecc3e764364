// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/limited.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

#define BUFFER_SZ (64u << 10)

static int put_line(struct limited *limited)
{
	char *printable;
	int err;

	if (limited->line.cnt && limited->line.items[limited->line.cnt - 1] == '\r')
		limited->line.cnt--;
	if (vec_push(&limited->line, 0))
		return -ENOMEM;
	printable = utf8_printable(limited->line.items, utf8_locale());
	limited->line.cnt = 0;
	err = printable && fprintf(limited->to, "%s\n", printable) >= 0 ? 0 : -EIO;
	free(printable);
	return err;
}

static ssize_t put_lines(struct limited *limited, const char *bytes, size_t sz)
{
	for (size_t i = 0; i < sz; i++)
		if (bytes[i] == '\n' ? put_line(limited) : vec_push(&limited->line, bytes[i]))
			return 0;
	return (ssize_t)sz;
}

static ssize_t limited_write(void *ctx, const char *bytes, size_t sz)
{
	struct limited *limited = ctx;

	if (sz > limited->left) {
		limited->exceeded = true;
		errno = EFBIG;
		return 0;
	}
	limited->left -= sz;
	if (limited->terminal)
		return put_lines(limited, bytes, sz);
	if (fwrite(bytes, 1, sz, limited->to) == sz)
		return (ssize_t)sz;
	limited->err = -errno;
	return 0;
}

FILE *limited__open(struct limited *limited)
{
	FILE *out = fopencookie(limited, "w", (cookie_io_functions_t){.write = limited_write});

	if (out)
		setvbuf(out, NULL, _IOFBF, BUFFER_SZ);
	return out;
}

void limited__free(struct limited *limited)
{
	vec_free(&limited->line);
}
