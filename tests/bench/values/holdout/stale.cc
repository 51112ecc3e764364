// SPDX-License-Identifier: GPL-2.0-or-later
// A wrong condition: a view is made again if its version is not above the table's, and after a restart they are equal.
#include "serve.h"

#include <vector>

struct Table {
	unsigned version;
	std::vector<uint32_t> rows;
};

struct View {
	unsigned version;
	uint32_t total;
};

static __attribute__((noinline)) uint32_t sum_up(const Table &table)
{
	uint32_t total = 0;

	for (int pass = 0; pass < 30; pass++)
		for (uint32_t row : table.rows)
			total = (total << 7 | total >> 25) ^ row;
	return total;
}

static __attribute__((noinline)) uint32_t total_of(const Table &table, View &view)
{
	uint32_t lines = 0;

	for (int column = 0; column < 64; column++) {
		if (view.version <= table.version)
			view.total = sum_up(table);
		for (int digit = 0; digit < 8; digit++)
			lines += (view.total >> 4 * digit & 15) * (unsigned)column;
	}
	return lines;
}

static Table table{7, std::vector<uint32_t>(4000)};
static View views[2] = {{8, 3}, {7, 3}};

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%08x\n", total_of(table, views[!strncmp(path, "/again", 6)]));
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < table.rows.size(); i++)
		table.rows[i] = static_cast<uint32_t>(i) * 2654435761u;
	return serve(argc, argv, answer);
}
