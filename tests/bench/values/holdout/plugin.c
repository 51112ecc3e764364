// SPDX-License-Identifier: GPL-2.0-or-later
/* A library that is loaded when it is first needed: the bug is in filter.c. */
#include "serve.h"

#include <dlfcn.h>

static int (*filter_apply)(const char *site, const char *text);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[4096];

static void load(void)
{
	char path[4200];
	void *library;

	pthread_mutex_lock(&lock);
	if (!filter_apply) {
		snprintf(path, sizeof(path), "%s/filter.so", directory);
		library = dlopen(path, RTLD_NOW);
		if (!library)
			exit(3);
		*(void **)&filter_apply = dlsym(library, "filter_apply");
	}
	pthread_mutex_unlock(&lock);
}

static size_t answer(const char *path, char *body)
{
	if (!strncmp(path, "/plain", 6))
		return (size_t)sprintf(body, "ok\n");
	if (!filter_apply)
		load();
	return (size_t)sprintf(body, "%d\n", filter_apply(path + 1, "the quick brown fox jumps over the lazy dog"));
}

int main(int argc, char **argv)
{
	ssize_t cnt = readlink("/proc/self/exe", directory, sizeof(directory) - 1);

	if (cnt > 0)
		*strrchr(directory, '/') = '\0';
	return serve(argc, argv, answer);
}
