/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library that is loaded, called and unloaded, over and over, while another thread holds on to its own copy of it for
 * a while; now and then something else takes the place where it was.
 */
#include "lib/plugin.h"
#include "safety.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

static char library[PATH_MAX];

static uint64_t expected_middle(uint64_t x)
{
	return (x * 2654435761ULL + 12345) ^ ((x + 1) * 2654435761ULL + 12345);
}

static uint64_t expected_fold(uint64_t x, unsigned int times)
{
	while (times--)
		x = expected_middle(x);
	return x;
}

KEPT static void one_round(uint64_t x, unsigned int hold_us)
{
	uint64_t (*compute)(uint64_t), (*fold)(uint64_t, unsigned int);
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!safety_check(handle != NULL, "no library: %s", dlerror()))
		return;
	*(void **)&compute = dlsym(handle, "plugin_compute");
	*(void **)&fold = dlsym(handle, "plugin_fold");
	for (uint64_t i = 0; i < 20; i++) {
		safety_check(compute(x + i) == expected_middle(x + i) + 1, "plugin_compute(%llx)",
			     (unsigned long long)(x + i));
		safety_check(fold(x + i, 10) == expected_fold(x + i, 10), "plugin_fold(%llx)",
			     (unsigned long long)(x + i));
	}
	safety_sleep_us(hold_us);
	dlclose(handle);
}

static void *thread_body(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; safety_goes_on(); i++) {
		one_round(safety_mix(i), 20000);
		safety_sleep_us(20000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX - 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pthread_t other;

	if (len <= 0)
		return 1;
	self[len] = '\0';
	snprintf(library, sizeof(library), "%s/libwlplugin.so", dirname(self));
	safety_begin(argc, argv);
	if (pthread_create(&other, NULL, thread_body, NULL))
		return 1;
	for (uint64_t i = 0; safety_goes_on(); i += 2) {
		void *place = MAP_FAILED;

		one_round(safety_mix(i), 300);
		if (i % 16 == 0)
			place = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		safety_sleep_us(300);
		if (place != MAP_FAILED)
			munmap(place, 1 << 20);
	}
	pthread_join(other, NULL);
	return safety_verdict();
}
