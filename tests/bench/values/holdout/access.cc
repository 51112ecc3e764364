// SPDX-License-Identifier: GPL-2.0-or-later
/* For each row all groups of the user are gone through. */
#include "serve.h"

#include <vector>

struct User {
	std::vector<uint32_t> groups;
};

static std::vector<uint32_t> rows;

static __attribute__((noinline)) bool may_read(const User &user, uint32_t owner)
{
	for (size_t at = 0; at < user.groups.size(); at++)
		if (user.groups[at] == owner)
			return true;
	return false;
}

static __attribute__((noinline)) unsigned visible_rows(const User &user)
{
	unsigned cnt = 0;

	for (uint32_t owner : rows)
		cnt += may_read(user, owner);
	return cnt;
}

static size_t answer(const char *path, char *body)
{
	static User clerk, chief;
	User &user = strncmp(path, "/chief", 6) ? clerk : chief;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (clerk.groups.empty())
		for (uint32_t i = 0; i < 12000; i++) {
			if (i < 120)
				clerk.groups.push_back(i * 2);
			chief.groups.push_back(i * 2);
		}
	pthread_mutex_unlock(&lock);
	return (size_t)sprintf(body, "%u\n", visible_rows(user));
}

int main(int argc, char **argv)
{
	for (uint32_t i = 0; i < 1200; i++)
		rows.push_back(i * 2654435761u | 1);
	return serve(argc, argv, answer);
}
