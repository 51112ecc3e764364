// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/spin.h"

#include <string.h>

#ifdef __aarch64__

#define STEP    4
#define HINT_SZ 4

static uint32_t word_at(const uint8_t *bytes, size_t sz, size_t at)
{
	uint32_t word = 0;

	if (sz >= sizeof(word) && at <= sz - sizeof(word))
		memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static bool is_hint(const uint8_t *bytes, size_t sz, size_t at)
{
	uint32_t word = word_at(bytes, sz, at);

	return word == 0xd503203f || word == 0xd5033fdf;
}

/* How far the jump at `at` leads, from its own first byte; 0: it is none. */
static int64_t jump_at(const uint8_t *bytes, size_t sz, size_t at, size_t *len)
{
	uint32_t word = word_at(bytes, sz, at);

	*len = 4;
	if ((word & 0xfc000000) == 0x14000000)
		return (int64_t)((int32_t)(word << 6) >> 6) * 4;
	if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		return (int64_t)((int32_t)(word << 8) >> 13) * 4;
	if ((word & 0x7e000000) == 0x36000000)
		return (int64_t)((int32_t)(word << 13) >> 18) * 4;
	return 0;
}

#else

#define STEP    1
#define HINT_SZ 2

static bool is_hint(const uint8_t *bytes, size_t sz, size_t at)
{
	return at + 2 <= sz && bytes[at] == 0xf3 && bytes[at + 1] == 0x90;
}

/* How far the jump at `at` leads, from its own first byte; 0: it is none. */
static int64_t jump_at(const uint8_t *bytes, size_t sz, size_t at, size_t *len)
{
	size_t opcode = bytes[at] == 0x0f ? 2 : 1;
	bool is_near = bytes[at] == 0xe9 || (opcode == 2 && at + 1 < sz && bytes[at + 1] >> 4 == 8);
	int32_t by;

	*len = opcode + (is_near ? 4 : 1);
	if (at + *len > sz || (!is_near && bytes[at] >> 4 != 7 && bytes[at] != 0xeb))
		return 0;
	if (!is_near)
		return (int64_t)(int8_t)bytes[at + 1] + 2;
	memcpy(&by, bytes + at + opcode, sizeof(by));
	return (int64_t)by + (int64_t)*len;
}

#endif

bool code_spins(const uint8_t *bytes, size_t sz, size_t at)
{
	size_t first = at > SPIN_LOOP_MAX ? at - SPIN_LOOP_MAX : 0, len;

	for (size_t hint = first; hint < sz && hint <= at + SPIN_LOOP_MAX; hint += STEP) {
		if (!is_hint(bytes, sz, hint))
			continue;
		for (size_t jump = hint + HINT_SZ; jump < sz && jump <= hint + SPIN_LOOP_MAX; jump += STEP) {
			int64_t by = jump_at(bytes, sz, jump, &len);
			size_t back = by < 0 && (size_t)-by <= jump ? (size_t)-by : 0;

			if (back && back <= SPIN_LOOP_MAX && jump - back <= hint && jump - back <= at &&
			    at < jump + len)
				return true;
		}
	}
	return false;
}
