// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets that grow: each of a user's roles is looked for among the roles that an object admits. */
#include "serve.h"

struct roles {
	unsigned cnt;
	uint32_t ids[6000];
};

static struct roles users[2], object;

static __attribute__((noinline)) unsigned count_grants(const struct roles *user, const struct roles *admitted)
{
	unsigned found = 0;

	for (unsigned i = 0; i < user->cnt; i++)
		for (unsigned j = 0; j < admitted->cnt; j++)
			if (user->ids[i] == admitted->ids[j]) {
				found++;
				break;
			}
	return found;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", count_grants(&users[!strncmp(path, "/many", 5)], &object));
}

int main(int argc, char **argv)
{
	users[0].cnt = 40;
	users[1].cnt = 6000;
	object.cnt = 3000;
	for (unsigned i = 0; i < 6000; i++) {
		users[0].ids[i] = users[1].ids[i] = i * 7;
		object.ids[i] = i * 7 + 3;
	}
	return serve(argc, argv, answer);
}
