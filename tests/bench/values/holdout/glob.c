// SPDX-License-Identifier: GPL-2.0-or-later
/* Recursion: stars that follow each other are not taken for one, and each tries all of the rest. */
#include "serve.h"

static int match(const char *pattern, const char *name, int depth)
{
	if (depth > 200)
		return 0;
	for (; *pattern; pattern++, name++) {
		if (*pattern == '*') {
			for (; *name; name++)
				if (match(pattern + 1, name, depth + 1))
					return 1;
			return match(pattern + 1, name, depth + 1);
		}
		if (*pattern != '?' && *pattern != *name)
			return 0;
	}
	return !*name;
}

static int list_names(const char *pattern)
{
	static const char *const names[] = {"report-2021-final-version.txt", "archive-of-all-the-mail.mbox",
					    "holiday-pictures-in-the-sun.zip"};
	int found = 0;

	for (int turn = 0; turn < 20; turn++)
		for (int i = 0; i < 3; i++)
			found += match(pattern, names[i], 0);
	return found;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%d\n", list_names(path + 1));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
