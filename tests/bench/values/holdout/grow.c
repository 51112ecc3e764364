// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong limit: the step by which some logs grow is in bytes, not pages, and each line copies what there is. */
#include "serve.h"

struct journal {
	size_t step, cap, len;
	char *text;
};

static __attribute__((noinline)) void move_text(struct journal *journal, size_t cap)
{
	char *text = (char *)malloc(cap);

	for (size_t i = 0; i < journal->len; i++)
		text[i] = journal->text[i];
	free(journal->text);
	journal->text = text;
	journal->cap = cap;
}

static __attribute__((noinline)) int append_lines(struct journal *journal, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		if (journal->len + 40 > journal->cap)
			move_text(journal, journal->len + 40 + journal->step);
		memset(journal->text + journal->len, 'a' + i % 26, 40);
		journal->len += 40;
	}
	return (int)journal->len;
}

static size_t answer(const char *path, char *body)
{
	struct journal journal = {strncmp(path, "/bytes", 6) ? 4 * 4096 : 4, 0, 0, NULL};
	int len = append_lines(&journal, 2500);

	free(journal.text);
	return (size_t)sprintf(body, "%d\n", len);
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
