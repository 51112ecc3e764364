/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library that is loaded for a while at each SIGUSR1, and is not there before the first one: so many calls of
 * plugin_compute(), then it goes, and `round` is printed.  With --throwing it is one that throws through the C library
 * and catches, in a program that has nobody else who would.
 */
#include "lib/plugin.h"
#include "safety.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#define CALLS 20

static volatile sig_atomic_t is_asked;

static void on_ask(int signal_no)
{
	(void)signal_no;
	is_asked = 1;
}

KEPT static void one_round(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	uint64_t (*compute)(uint64_t);

	if (!safety_check(handle != NULL, "no library: %s", dlerror()))
		return;
	*(void **)&compute = dlsym(handle, "plugin_compute");
	for (uint64_t x = 0; x < CALLS; x++)
		safety_check(compute(x) == ((x * 2654435761ULL + 12345) ^ ((x + 1) * 2654435761ULL + 12345)) + 1,
			     "plugin_compute(%llu)", (unsigned long long)x);
	safety_check(!dlclose(handle), "dlclose: %s", dlerror());
}

int main(int argc, char **argv)
{
	char self[PATH_MAX - 64], library[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct sigaction action;

	if (len <= 0)
		return 1;
	self[len] = '\0';
	snprintf(library, sizeof(library), "%s/libwl%s.so", dirname(self),
		 argc > 1 && !strcmp(argv[1], "--throwing") ? "thrower" : "plugin");
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_ask;
	sigaction(SIGUSR1, &action, NULL);
	safety_begin(argc, argv);
	while (safety_goes_on()) {
		safety_sleep_us(1000);
		if (!is_asked)
			continue;
		is_asked = 0;
		one_round(library);
		printf("round\n");
		fflush(stdout);
	}
	return safety_verdict();
}
