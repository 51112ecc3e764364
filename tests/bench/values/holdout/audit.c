// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong condition: of some tenants all events are written down in full, whatever their level. */
#include "serve.h"

struct tenant {
	int level;
	unsigned written;
	char trail[8192];
};

static struct tenant tenants[8];

static __attribute__((noinline)) void write_event(struct tenant *tenant, int number)
{
	size_t at = 0;

	for (int field = 0; field < 24; field++)
		at += (size_t)sprintf(tenant->trail + at, "field%d=%08x;", field, (unsigned)(number * 31 + field));
	tenant->written++;
}

static __attribute__((noinline)) unsigned note_events(struct tenant *tenant, int cnt)
{
	unsigned state = 1;

	for (int i = 0; i < cnt; i++) {
		int level;

		state = state * 1103515245u + 12345u;
		level = (int)(state >> 16) % 8;
		if (level >= tenant->level)
			write_event(tenant, i);
	}
	return tenant->written;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", note_events(&tenants[path[1] & 7], 2500));
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 8; i++)
		tenants[i].level = i < 6 ? 8 : 0;
	tenants[1].level = 7;
	return serve(argc, argv, answer);
}
