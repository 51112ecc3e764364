// SPDX-License-Identifier: GPL-2.0-or-later
/* libFuzzer: any text as a perf map, which grows by its second part.  Build and run: make fuzz */
#include "target/perf_map.h"
#include "target/proc_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static char dir[] = "/tmp/whylate-fuzz-map-XXXXXX";

/* What stands for /proc, once. */
static void make_proc(void)
{
	static const char *const below[] = {"/77", "/77/root", "/77/root/tmp"};
	char path[96];
	FILE *file;

	if (!mkdtemp(dir))
		abort();
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, below[i]);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/77/status", dir);
	file = fopen(path, "w");
	if (!file)
		abort();
	fprintf(file, "Name:\tx\nUid:\t%u\t%u\t0\t0\nNSpid:\t77\n", geteuid(), geteuid());
	fclose(file);
	proc_set_root(dir);
}

static void add(const char *path, int flags, const uint8_t *bytes, size_t sz)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	if (fd < 0 || write(fd, bytes, sz) != (ssize_t)sz)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	struct perf_map *map;
	char path[96];
	uint64_t addr;

	if (!strcmp(dir + sizeof(dir) - 7, "XXXXXX"))
		make_proc();
	snprintf(path, sizeof(path), "%s/77/root/tmp/perf-77.map", dir);
	map = perf_map__new(77);
	if (!map)
		abort();
	add(path, O_TRUNC, bytes, sz / 2);
	perf_map__refresh(map, 1);
	add(path, O_APPEND, bytes + sz / 2, sz - sz / 2);
	perf_map__refresh(map, 2000000000);
	for (size_t i = 0; i + sizeof(addr) <= sz; i += sizeof(addr)) {
		memcpy(&addr, bytes + i, sizeof(addr));
		perf_map__find(map, addr >> (addr & 63), addr & 1 ? 1 : 2000000000);
	}
	perf_map__free(map);
	return 0;
}
