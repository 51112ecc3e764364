// SPDX-License-Identifier: GPL-2.0-or-later
// A member of `this`: a page that can be replaced is looked for from the end of a list whose pages are all dirty.
#include "serve.h"

#include <cstdint>
#include <vector>

struct Page {
	Page *prev = nullptr;
	bool dirty = false;
	uint32_t data[6] = {};
};

class Pool
{
	std::vector<Page> pages_;
	Page *tail_ = nullptr;
	long dirty_ = 0;
	long hits_ = 0;

      public:
	Pool(size_t cnt, size_t dirty) : pages_(cnt)
	{
		for (size_t i = 0; i < cnt; i++) {
			Page *page = &pages_[i * 7919 % cnt];

			page->prev = tail_;
			tail_ = page;
		}
		for (Page *page = tail_; page && dirty; page = page->prev, dirty--, dirty_++)
			page->dirty = true;
	}
	Page *find_clean();
	int fetch(int cnt);
};

Page *Pool::find_clean()
{
	long scanned = 0;

	for (Page *page = tail_; page; page = page->prev) {
		if (!page->dirty)
			return page;
		if (++scanned > dirty_)
			break;
	}
	return nullptr;
}

int Pool::fetch(int cnt)
{
	int found = 0;

	for (int i = 0; i < cnt; i++) {
		Page *page = find_clean();

		if (page) {
			page->data[i % 6]++;
			found++;
		}
		hits_++;
	}
	return found;
}

static Pool small(1009, 30), large(50021, 48000);

static size_t answer(const char *path, char *body)
{
	Pool &pool = strncmp(path, "/large", 6) ? small : large;

	return (size_t)sprintf(body, "%d\n", pool.fetch(60));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
