/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The disassembler, for this architecture's own file beside code.c only. */
#ifndef WHYLATE_TARGET_CODE_INTERNAL_H
#define WHYLATE_TARGET_CODE_INTERNAL_H

#include <capstone/capstone.h>

#if defined(__x86_64__)
#define CODE_CAPSTONE_ARCH CS_ARCH_X86
#define CODE_CAPSTONE_MODE CS_MODE_64
#elif defined(__aarch64__)
#define CODE_CAPSTONE_ARCH CS_ARCH_ARM64
#define CODE_CAPSTONE_MODE CS_MODE_ARM
#else
#error "which of Capstone's architectures is this one?"
#endif

struct code {
	csh fast, detailed; /* without and with operands */
	cs_insn *fast_insn, *detailed_insn;
};

#endif
