// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong condition that skips a cache: a page's time to live is given in seconds and compared in milliseconds. */
#include "serve.h"

struct page {
	uint64_t rendered_ms;
	int ttl;
	size_t len;
	char text[8192];
};

static struct page pages[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t shade(uint32_t x, int turns)
{
	while (turns--)
		x = (x ^ x >> 13) * 2654435761u;
	return x;
}

static __attribute__((noinline)) void render(struct page *page, uint32_t number)
{
	size_t at = 0;

	for (int row = 0; row < 160; row++)
		at += (size_t)sprintf(page->text + at, "<li>%u %08x\n", number, shade(number + (uint32_t)row, 20000));
	page->len = at;
}

static __attribute__((noinline)) size_t get_page(uint32_t number, char *body)
{
	struct page *page = &pages[number % 16];
	uint64_t now = clock_ms();
	int64_t age = (int64_t)(now - page->rendered_ms);
	size_t len;

	if (!page->len || age > page->ttl) {
		render(page, number);
		page->rendered_ms = clock_ms();
	}
	len = page->len;
	memcpy(body, page->text, len);
	return len;
}

static size_t answer(const char *path, char *body)
{
	size_t len;

	pthread_mutex_lock(&lock);
	len = get_page((uint32_t)atoi(path + 1), body);
	pthread_mutex_unlock(&lock);
	return len;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 16; i++)
		pages[i].ttl = i < 12 ? 600000 : 1;
	return serve(argc, argv, answer);
}
