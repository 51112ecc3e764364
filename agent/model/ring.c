// SPDX-License-Identifier: GPL-2.0-or-later
/* The layout: Documentation/bpf/ringbuf.rst of the kernel. */
#include "model/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>

#define HEADER_SZ BPF_RINGBUF_HDR_SZ

/* Of a record of that many bytes, its header included. */
static size_t taken_sz(size_t sz)
{
	return (HEADER_SZ + sz + 7) & ~(size_t)7;
}

int ring__read(struct ring *ring, ring_handler handle, void *owner)
{
	unsigned long at = *ring->consumer, end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);

	while (at != end) {
		size_t off = at & (ring->sz - 1), sz;
		uint32_t len;
		int err = 0;

		if (end - at > ring->sz)
			return -EBADMSG;
		len = __atomic_load_n((const uint32_t *)(const void *)(ring->bytes + off), __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT)
			return 0;
		sz = len & ~BPF_RINGBUF_DISCARD_BIT;
		if (taken_sz(sz) > end - at || off + HEADER_SZ + sz > ring->sz + ring->beyond)
			return -EBADMSG;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			err = handle(owner, ring->bytes + off + HEADER_SZ, sz);
		at += taken_sz(sz);
		__atomic_store_n(ring->consumer, at, __ATOMIC_RELEASE);
		if (err < 0)
			return err;
	}
	return 0;
}
