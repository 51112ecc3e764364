/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * USDT markers: what `.note.stapsdt` of an ELF file says of the places where a program was prepared to be probed
 * (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).  Everything in it is untrusted.
 */
#ifndef WHYLATE_PROBE_USDT_H
#define WHYLATE_PROBE_USDT_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define USDT_ARG_MAX 6 /* arg0…arg5; a marker may have more, which no expression can name */

enum usdt_arg_kind {
	USDT_ARG_UNREADABLE, /* floating point, %rip-relative by a symbol, a form that is not understood */
	USDT_ARG_CONST,      /* value */
	USDT_ARG_REG,        /* the register at reg_off */
	USDT_ARG_MEMORY,     /* sz bytes at register reg_off + register idx_off * scale + value */
};

#define USDT_NO_REG (-1)

/* One argument.  The result is cut to sz bytes and, if is_signed, sign-extended. */
struct usdt_arg {
	uint8_t kind; /* enum usdt_arg_kind */
	uint8_t sz;   /* 1, 2, 4 or 8 bytes */
	bool is_signed;
	uint8_t scale;   /* of the index register: 1, 2, 4, 8 */
	uint8_t shift;   /* bits to shift a register right before cutting it: 8 for %ah */
	int16_t reg_off; /* byte offset in this machine's struct pt_regs; USDT_NO_REG: none */
	int16_t idx_off; /* likewise */
	int64_t value;
};

struct usdt_site {
	char *provider, *name;
	uint64_t addr;          /* virtual address as linked, corrected for prelinking */
	uint64_t file_off;      /* of the instruction */
	uint64_t semaphore_off; /* file offset of the counter that turns the marker on; 0: always on */
	uint8_t arg_cnt;        /* what the marker has, at most USDT_ARG_MAX */
	struct usdt_arg args[USDT_ARG_MAX];
};

typedef VEC(struct usdt_site) usdt_sites;

/*
 * All sites of a file, by provider, name and offset; without a note section none.  0, or -errno: ENOENT, EACCES,
 * ENOEXEC (no ELF file, or a damaged one), ENOTSUP (another machine's), ENOMEM.  A damaged note ends the section there.
 */
int usdt_sites_read(const char *path, usdt_sites *sites);
void usdt_sites_free(usdt_sites *sites);

/*
 * The argument part of a note, `8@%rax -4@-20(%rbp) 4@$5 8@8(%rdi,%rcx,4)`: how many arguments it has, of which the
 * first USDT_ARG_MAX are in args.
 */
unsigned usdt_args_parse(const char *text, struct usdt_arg args[USDT_ARG_MAX]);

#endif
