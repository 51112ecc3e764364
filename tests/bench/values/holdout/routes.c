// SPDX-License-Identifier: GPL-2.0-or-later
/* Only addresses: the routes of a host are a list, and its names are compared by libc. */
#include "serve.h"

struct route {
	struct route *next;
	const char *name;
	void *target;
};

static struct route *few, *many;

static __attribute__((noinline)) void *find_route(const struct route *route, const char *name)
{
	for (; route; route = route->next)
		if (!strcmp(route->name, name))
			return route->target;
	return NULL;
}

static size_t answer(const char *path, char *body)
{
	const struct route *routes = strncmp(path, "/many", 5) ? few : many;
	size_t found = 0;

	for (const char *name = "abcdefghijklmnop"; *name; name++) {
		char asked[40];

		sprintf(asked, "/api/v1/users/items/%c", *name);
		found += find_route(routes, asked) != NULL;
	}
	return (size_t)sprintf(body, "%zu\n", found);
}

static struct route *make(int cnt)
{
	struct route *all = (struct route *)calloc((size_t)cnt, sizeof(*all));

	for (int i = 0; i < cnt; i++) {
		char *name = (char *)malloc(40);

		sprintf(name, "/api/v1/users/items/%d", i);
		all[i].name = name;
		all[i].target = name;
		all[i].next = i + 1 < cnt ? &all[i + 1] : NULL;
	}
	return all;
}

int main(int argc, char **argv)
{
	few = make(100);
	many = make(60000);
	return serve(argc, argv, answer);
}
