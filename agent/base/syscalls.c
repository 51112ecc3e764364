// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/syscalls.h"

#include "bpf/knobs.h"

#include <string.h>

static const struct {
	const char *name;
	uint32_t nr;
	uint8_t class;
} calls[] = {
#define SYSCALL_NUMBER(name, class, nr) {name, nr, WAIT_##class},
#include "syscall_number.def"
#undef SYSCALL_NUMBER
};

const char *syscall_name(uint32_t nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == nr)
			return calls[i].name;
	return NULL;
}

void syscall_wait_classes(uint8_t *classes, size_t cnt)
{
	memset(classes, WAIT_OTHER, cnt);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr < cnt)
			classes[calls[i].nr] = calls[i].class;
}

void syscall_read_classes(uint8_t *classes, size_t cnt)
{
	static const struct {
		const char *name;
		uint8_t class;
	} reads[] = {
		{"read", READ_BUFFER},  {"recvfrom", READ_BUFFER}, {"readv", READ_VECTOR},  {"recvmsg", READ_MESSAGE},
		{"write", READ_BUFFER}, {"sendto", READ_BUFFER},   {"writev", READ_VECTOR}, {"sendmsg", READ_MESSAGE},
	};

	memset(classes, READ_NOWHERE, cnt);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (size_t j = 0; j < sizeof(reads) / sizeof(reads[0]); j++)
			if (calls[i].nr < cnt && !strcmp(calls[i].name, reads[j].name))
				classes[calls[i].nr] = reads[j].class;
}
