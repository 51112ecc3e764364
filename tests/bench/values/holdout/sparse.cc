// SPDX-License-Identifier: GPL-2.0-or-later
/* A condition that compares the wrong way: a table that is nearly empty is made anew at each insertion. */
#include "serve.h"

#include <vector>

class Table
{
      public:
	explicit Table(size_t size) : cells_(size), used_(0) {}

	__attribute__((noinline)) void insert(uint32_t key)
	{
		if (used_ * 4 < cells_.size())
			rebuild();
		cells_[key % cells_.size()] = key;
		used_++;
	}

	size_t used() const { return used_; }

      private:
	__attribute__((noinline)) void rebuild()
	{
		std::vector<uint32_t> old(cells_);

		for (size_t at = 0; at < old.size(); at++)
			cells_[at] = (old[at] ^ old[at] >> 11) * 2654435761u;
	}

	std::vector<uint32_t> cells_;
	size_t used_;
};

static size_t answer(const char *path, char *body)
{
	bool large = !strncmp(path, "/import", 7);
	Table table(large ? 40000 : 80);

	for (uint32_t key = 1; key <= 150; key++)
		table.insert(key);
	return (size_t)sprintf(body, "%zu\n", table.used());
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
