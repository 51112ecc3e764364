// SPDX-License-Identifier: GPL-2.0-or-later
/* A loop bound that grows: the sessions of a tenant are never dropped, and are looked for one by one. */
#include "serve.h"

struct session {
	uint64_t id;
	uint32_t user, flags;
};

struct tenant {
	const char *name;
	struct session *all;
	size_t used;
};

static struct tenant tenants[2] = {{"small", NULL, 300}, {"large", NULL, 900000}};

static const struct session *find_session(const struct tenant *tenant, uint64_t id)
{
	for (size_t i = 0; i < tenant->used; i++)
		if (tenant->all[i].id == id)
			return &tenant->all[i];
	return NULL;
}

static unsigned check_rights(const struct tenant *tenant, const uint64_t *ids, int cnt)
{
	unsigned granted = 0;

	for (int i = 0; i < cnt; i++) {
		const struct session *session = find_session(tenant, ids[i]);

		granted += session && !(session->flags & 1);
	}
	return granted;
}

static size_t answer(const char *path, char *body)
{
	const struct tenant *tenant = &tenants[!strncmp(path, "/large", 6)];
	uint64_t ids[12], seed = clock_ms();

	for (int i = 0; i < 12; i++)
		ids[i] = (seed * 2654435761u + (uint64_t)i * 977) % tenant->used * 17;
	return (size_t)sprintf(body, "%s: %u of 12\n", tenant->name, check_rights(tenant, ids, 12));
}

int main(int argc, char **argv)
{
	for (int t = 0; t < 2; t++) {
		tenants[t].all = (struct session *)calloc(tenants[t].used, sizeof(struct session));
		for (size_t i = 0; i < tenants[t].used; i++)
			tenants[t].all[i] = (struct session){i * 17, (uint32_t)i, (uint32_t)i % 3};
	}
	return serve(argc, argv, answer);
}
