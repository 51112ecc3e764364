// SPDX-License-Identifier: GPL-2.0-or-later
/* A member through a pointer, and libc as the hot leaf: after each line the rest of the buffer is moved to its front.
 */
#include "serve.h"

struct buffer {
	char *data;
	size_t len;
};

static char *stored;
#define STORED_SZ 250000

static int take_line(struct buffer *buffer, char *line, size_t sz)
{
	char *end = (char *)memchr(buffer->data, '\n', buffer->len);
	size_t cnt;

	if (!end)
		return 0;
	cnt = (size_t)(end + 1 - buffer->data);
	memcpy(line, buffer->data, cnt < sz ? cnt : sz);
	memmove(buffer->data, buffer->data + cnt, buffer->len - cnt);
	buffer->len -= cnt;
	return (int)cnt;
}

static long import_lines(size_t sz)
{
	struct buffer buffer = {(char *)malloc(sz), sz};
	char line[256];
	long total = 0;
	int cnt;

	memcpy(buffer.data, stored, sz);
	while ((cnt = take_line(&buffer, line, sizeof(line))) > 0)
		total += line[0] + cnt;
	free(buffer.data);
	return total;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%ld\n", import_lines(strncmp(path, "/import-all", 11) ? 20000 : STORED_SZ));
}

int main(int argc, char **argv)
{
	stored = (char *)malloc(STORED_SZ);
	for (int i = 0; i < STORED_SZ; i++)
		stored[i] = i % 100 == 99 ? '\n' : (char)('a' + i % 26);
	return serve(argc, argv, answer);
}
