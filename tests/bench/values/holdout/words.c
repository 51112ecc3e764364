// SPDX-License-Identifier: GPL-2.0-or-later
/* The length of a text is found again for each of its letters. */
#include "serve.h"

enum { LETTERS = 9000 };

static char texts[2][LETTERS + 1];

static __attribute__((noinline)) size_t length_of(const volatile char *text)
{
	size_t len = 0;

	while (text[len])
		len++;
	return len;
}

static __attribute__((noinline)) unsigned count_words(const char *text)
{
	unsigned words = 0;

	for (size_t at = 0; at < length_of(text); at++)
		words += text[at] == ' ' && text[at + 1] != ' ';
	return words;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", count_words(texts[!strncmp(path, "/book", 5)]));
}

int main(int argc, char **argv)
{
	for (int text = 0; text < 2; text++)
		for (int i = 0; i < (text ? LETTERS : 300); i++)
			texts[text][i] = i % 6 ? (char)('a' + i % 26) : ' ';
	return serve(argc, argv, answer);
}
