// SPDX-License-Identifier: GPL-2.0-or-later
/* libFuzzer: any bytes as a jitdump file, read record by record and in pieces.  Build and run: make fuzz */
#include "target/jitdump.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define NEED(ok)                 \
	do {                     \
		if (!(ok))       \
			abort(); \
	} while (0)

/* A copy of its own, so that a byte read behind it is found. */
static bool parse(const uint8_t *bytes, size_t len, struct jitdump_record *record, char **copy)
{
	*copy = malloc(len ? len : 1);
	NEED(*copy);
	memcpy(*copy, bytes, len);
	return jitdump_parse(*copy, len, record);
}

static void check(const struct jitdump_record *record, const char *copy, size_t len)
{
	NEED(record->sz >= 16);
	if (record->kind == JITDUMP_OTHER)
		return;
	NEED(record->addr && record->code_sz && record->addr + record->code_sz >= record->addr);
	if (record->kind != JITDUMP_LOAD)
		return;
	NEED(record->name > copy && record->name_len && record->name + record->name_len <= copy + len);
	NEED(!memchr(record->name, 0, record->name_len));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	size_t off = jitdump_begin(bytes, sz);
	struct jitdump_record record, part;
	char *copy;

	/* The header is guessed rarely: what follows is tried without it, too. */
	NEED(!off || off >= 40);
	for (int i = 0; i < 64 && off < sz; i++) {
		size_t len = sz - off < JITDUMP_READ_SZ ? sz - off : JITDUMP_READ_SZ;
		bool whole = parse(bytes + off, len, &record, &copy);

		if (whole)
			check(&record, copy, len);
		free(copy);
		/* What has not come yet cannot make a record whole. */
		if (parse(bytes + off, len / 2, &part, &copy)) {
			check(&part, copy, len / 2);
			NEED(whole && part.sz == record.sz);
		}
		free(copy);
		if (!whole)
			break;
		off += record.sz;
	}
	return 0;
}
