/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * USDT markers: what `.note.stapsdt` of an ELF file says of the places where a program was prepared to be probed
 * (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).  whylate-symbols reads it, see elf_reader.h.
 */
#ifndef WHYLATE_PROBE_USDT_H
#define WHYLATE_PROBE_USDT_H

#include "base/vec.h"
#include "target/usdt_args.h"

#include <stdint.h>

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
 * ENOEXEC (no ELF file, or a damaged one), ENOTSUP (another machine's), ENOMEM, EAGAIN and
 * ENODATA as of elf_reader_read().
 */
int usdt_sites_read(const char *path, usdt_sites *sites);
void usdt_sites_free(usdt_sites *sites);

#endif
