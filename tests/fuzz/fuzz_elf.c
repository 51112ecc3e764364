// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: any bytes as an ELF file.  Build and run:
 *   clang-19 -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude -Iagent tests/fuzz/fuzz_elf.c
 *     agent/target/elf_file.c agent/target/nearest.c -lelf -o /tmp/fuzz_elf && /tmp/fuzz_elf -max_len=65536 CORPUS
 */
#include "target/elf_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

/* The promises of elf_file.h. */
static void check(const struct elf_file *file, size_t sz)
{
	const struct elf_function *functions;
	size_t cnt = elf_file__functions(file, &functions);
	const char *near[3];

	for (size_t i = 0; i < cnt; i++) {
		if (i && strcmp(functions[i - 1].name, functions[i].name) >= 0)
			abort();
		if (functions[i].file_off >= sz || functions[i].size > sz - functions[i].file_off)
			abort();
		if (elf_file__find(file, functions[i].name) != &functions[i])
			abort();
	}
	if (elf_file__nearest(file, "main", near, 3) > 3 || strlen(elf_file__build_id(file)) % 2)
		abort();
	elf_file__symbol_kind(file, "environ");
	elf_file__is_go(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_file *file;
	char path[64];

	if (fd < 0 || write(fd, bytes, sz) != (ssize_t)sz)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = elf_file__open(path);
	if (file)
		check(file, sz);
	elf_file__free(file);
	close(fd);
	return 0;
}
