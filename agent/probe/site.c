// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/site.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
/* A bit for each opcode, 16 of a row. */
static bool is_in(const uint16_t rows[16], uint8_t opcode)
{
	return rows[opcode >> 4] >> (opcode & 15) & 1;
}

/* Not valid in 64-bit mode, privileged, or traps by themselves; and pushf, which would save the trap flag. */
static const uint16_t refused[16] = {
	[0x0] = 0x40c0, [0x1] = 0xc0c0, [0x2] = 0x8080, [0x3] = 0x8080, [0x6] = 0xf007, [0x8] = 0x0004,
	[0x9] = 0x3400, [0xc] = 0xf000, [0xd] = 0x0070, [0xe] = 0xf4f0, [0xf] = 0x0c12,
};

/* After 0f: system instructions, syscall, ud2, and the group with fences and fsgsbase. */
static const uint16_t refused_0f[16] = {
	[0x0] = 0x1be3, [0x3] = 0x00b1, [0x7] = 0x0300, [0xa] = 0x4000, [0xb] = 0x0200, [0xf] = 0x8000,
};

static const uint8_t long_nops[][8] = {
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
};

struct prefixes {
	bool segment_or_lock, operand_size, repeated;
	uint8_t rex;
};

static const uint8_t *prefixes_read(const uint8_t *bytes, const uint8_t *last, struct prefixes *prefixes)
{
	for (; bytes < last; bytes++) {
		switch (*bytes) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0:
			prefixes->segment_or_lock = true;
			break;
		case 0x66:
			prefixes->operand_size = true;
			break;
		case 0xf2:
		case 0xf3:
			prefixes->repeated = true;
			break;
		case 0x64:
		case 0x65:
		case 0x67:
			break;
		case 0x40 ... 0x4f:
			prefixes->rex = *bytes;
			break;
		default:
			return bytes;
		}
	}
	return bytes;
}

static bool is_long_nop(const uint8_t *bytes, size_t len)
{
	return len >= 3 && len <= 8 && !memcmp(bytes, long_nops[len - 3], len);
}

static bool is_string(uint8_t opcode)
{
	return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

/* What needs more than its opcode to be known as bad. */
static const char *refuse_special(const uint8_t *opcode, const uint8_t *end, const struct prefixes *prefixes)
{
	uint8_t modrm = end - opcode > 1 ? opcode[1] : 0;

	if (prefixes->segment_or_lock)
		return "the kernel refuses to probe an instruction with a lock or segment prefix";
	if (opcode[0] == 0xc4 || opcode[0] == 0xc5 || opcode[0] == 0x62 || (opcode[0] == 0x8f && modrm & 0x38))
		return "the kernel takes some vector instructions for jumps, and skips them";
	if (prefixes->repeated && is_string(opcode[0]))
		return "each round of a repeated instruction would be a hit";
	if (opcode[0] == 0x90 && prefixes->rex & 1)
		return "the kernel takes this exchange of registers for a nop";
	if (opcode[0] == 0x8e && (modrm >> 3 & 7) == 2)
		return "the kernel refuses to probe an instruction that sets the stack segment";
	if ((opcode[0] == 0xc6 || opcode[0] == 0xc7) && modrm == 0xf8)
		return "a hit would end the transaction that it begins";
	return NULL;
}

static bool is_branch(const uint8_t *opcode)
{
	switch (opcode[0]) {
	case 0x70 ... 0x7f:
	case 0xe8:
	case 0xe9:
	case 0xeb:
		return true;
	case 0x0f:
		return (opcode[1] & 0xf0) == 0x80;
	default:
		return false;
	}
}

enum site_kind site_judge(const uint8_t *bytes, size_t len, const char **why)
{
	const uint8_t *end = bytes + len, *opcode;
	struct prefixes prefixes = {0};

	*why = NULL;
	if (is_long_nop(bytes, len))
		return len == 5 ? SITE_CALLABLE_NOP : SITE_LONG_NOP;
	opcode = prefixes_read(bytes, end - 1, &prefixes);
	*why = refuse_special(opcode, end, &prefixes);
	if (*why)
		return SITE_REFUSED;
	if (is_in(refused, opcode[0]) || (opcode[0] == 0x0f && (end - opcode < 2 || is_in(refused_0f, opcode[1])))) {
		*why = "the kernel refuses to probe this instruction";
		return SITE_REFUSED;
	}
	if (is_branch(opcode)) {
		if (!prefixes.operand_size)
			return SITE_EMULATED;
		*why = "the kernel refuses to probe a branch with an operand size";
		return SITE_REFUSED;
	}
	if (opcode[0] == 0x90 && !prefixes.repeated)
		return SITE_EMULATED;
	if (opcode[0] >= 0x50 && opcode[0] <= 0x57 && (len == 1 || (len == 2 && prefixes.rex == 0x41)))
		return SITE_EMULATED;
	return SITE_STEPPED;
}
#else
enum site_kind site_judge(const uint8_t *bytes, size_t len, const char **why)
{
	(void)bytes;
	(void)len;
	*why = NULL;
	return SITE_STEPPED;
}
#endif
