// SPDX-License-Identifier: GPL-2.0-or-later
/* More data than was thought of (as HTTPD's start with many hosts): each host is compared with all hosts before it. */
#include "serve.h"

enum { HOSTS = 1600 };

struct host {
	struct host *next;
	unsigned port;
	char name[32];
};

static struct host *same_host(struct host *first, const struct host *wanted)
{
	for (struct host *host = first; host != wanted; host = host->next)
		if (host->port == wanted->port && !strcasecmp(host->name, wanted->name))
			return host;
	return NULL;
}

static __attribute__((noinline)) unsigned load_hosts(unsigned cnt)
{
	struct host *hosts = calloc(cnt, sizeof(*hosts));
	unsigned doubles = 0;

	for (unsigned at = 0; at < cnt; at++) {
		hosts[at].port = 80 + at % 2;
		snprintf(hosts[at].name, sizeof(hosts[at].name), "www%u.example", at);
		if (at)
			hosts[at - 1].next = &hosts[at];
		doubles += same_host(hosts, &hosts[at]) != NULL;
	}
	free(hosts);
	return doubles;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", load_hosts(!strncmp(path, "/provider", 9) ? HOSTS : 30));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
