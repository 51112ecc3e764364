// SPDX-License-Identifier: GPL-2.0-or-later
/* More data than was thought of (as MDEV-17933): the status counts the open tables by going through all of them. */
#include "serve.h"

#include <list>

struct Table {
	unsigned id;
	unsigned handles;
	char name[48];
};

static std::list<Table> tables[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) unsigned open_tables(const std::list<Table> &of)
{
	unsigned open = 0;

	for (const Table &table : of)
		open += table.handles != 0;
	return open;
}

static __attribute__((noinline)) unsigned print_status(const std::list<Table> &of)
{
	unsigned sum = 0;

	pthread_mutex_lock(&lock);
	for (int line = 0; line < 8; line++)
		sum += open_tables(of);
	pthread_mutex_unlock(&lock);
	return sum;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", print_status(tables[!strncmp(path, "/hosting", 8)]));
}

int main(int argc, char **argv)
{
	for (unsigned id = 0; id < 60000; id++) {
		tables[1].push_back({id, id % 3, "t"});
		if (id < 400)
			tables[0].push_back({id, id % 3, "t"});
	}
	return serve(argc, argv, answer);
}
