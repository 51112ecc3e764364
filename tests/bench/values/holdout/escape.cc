// SPDX-License-Identifier: GPL-2.0-or-later
// Text that is longer than expected: each replacement moves all that follows.
#include "serve.h"

#include <string>

static __attribute__((noinline)) size_t escape(std::string &text)
{
	size_t made = 0;

	for (size_t at = 0; at < text.size(); at++) {
		if (text[at] != '<')
			continue;
		text.replace(at, 1, "&lt;");
		made++;
		at += 3;
	}
	return made;
}

static size_t answer(const char *path, char *body)
{
	std::string text;
	int rows = strncmp(path, "/dump", 5) ? 60 : 12000;

	for (int i = 0; i < rows; i++)
		text += "<row";
	return (size_t)sprintf(body, "%zu\n", escape(text));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
