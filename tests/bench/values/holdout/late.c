// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: lines of a report that ended long ago are waited for, formatted and dropped one by one. */
#include "serve.h"

struct report {
	int state; /* 0: open, 2: ended */
	unsigned lines;
};

static struct report reports[2] = {{0, 30}, {2, 1800}};

static __attribute__((noinline)) unsigned format_line(const struct report *report, unsigned line, char *text)
{
	uint32_t check = line;

	for (unsigned column = 0; column < 60; column++) {
		for (int round = 0; round < 30; round++)
			check = (check ^ check >> 6) * 2654435761u;
		text[column] = (char)('0' + check % 10);
	}
	if (report->state == 2)
		return 0;
	return 60;
}

static __attribute__((noinline)) unsigned write_report(const struct report *report)
{
	char text[64];
	unsigned written = 0;

	for (unsigned line = 0; line < report->lines; line++)
		written += format_line(report, line, text);
	return written;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", write_report(&reports[!strncmp(path, "/ended", 6)]));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
