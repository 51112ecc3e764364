// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/jitdump.h"

#include <string.h>

#define MAGIC 0x4a695444U /* "JiTD" */

struct file_header {
	uint32_t magic, version, sz, elf_machine, zero, pid;
	uint64_t ts, flags;
};

struct record_header {
	uint32_t id, sz;
	uint64_t ts;
};

enum { ID_LOAD = 0, ID_MOVE = 1 };

/* Followed by the name, with its NUL, and by the code. */
struct load {
	uint32_t pid, tid;
	uint64_t vma, addr, code_sz, index;
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, old_addr, addr, code_sz, index;
};

uint32_t jitdump_begin(const void *bytes, size_t len)
{
	struct file_header header;

	if (len < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	return header.magic == MAGIC && header.sz >= sizeof(header) && header.sz <= JITDUMP_READ_SZ ? header.sz : 0;
}

static bool parse_load(const char *body, size_t len, struct jitdump_record *record)
{
	struct load load;

	if (len <= sizeof(load))
		return false;
	memcpy(&load, body, sizeof(load));
	record->kind = JITDUMP_LOAD;
	record->addr = load.addr;
	record->code_sz = load.code_sz;
	record->name = body + sizeof(load);
	record->name_len = strnlen(record->name, len - sizeof(load));
	return record->name_len > 0;
}

static bool parse_move(const char *body, size_t len, struct jitdump_record *record)
{
	struct move move;

	if (len < sizeof(move))
		return false;
	memcpy(&move, body, sizeof(move));
	record->kind = JITDUMP_MOVE;
	record->addr = move.addr;
	record->code_sz = move.code_sz;
	record->moved_from = move.old_addr;
	return true;
}

bool jitdump_parse(const void *bytes, size_t len, struct jitdump_record *record)
{
	const char *body = (const char *)bytes + sizeof(struct record_header);
	struct record_header header;
	bool has_sense = true;

	*record = (struct jitdump_record){.kind = JITDUMP_OTHER};
	if (len < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.sz < sizeof(header) || (len < header.sz && len < JITDUMP_READ_SZ))
		return false;
	record->sz = header.sz;
	len = (len < header.sz ? len : header.sz) - sizeof(header);
	if (header.id == ID_LOAD)
		has_sense = parse_load(body, len, record);
	else if (header.id == ID_MOVE)
		has_sense = parse_move(body, len, record);
	if (!has_sense || (record->kind != JITDUMP_OTHER &&
			   (!record->addr || !record->code_sz || record->addr + record->code_sz < record->addr)))
		record->kind = JITDUMP_OTHER;
	return true;
}
