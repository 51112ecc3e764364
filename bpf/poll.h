/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a thread that blocks in poll() or select() an event loop?  It is where it waits for clients, too: for a listening
 * socket, or for a connection that the target accepted.  A thread that waits for descriptors of its own alone (a
 * database's client library does) waits for a reply in the call itself.
 */
#ifndef WHYLATE_BPF_POLL_H
#define WHYLATE_BPF_POLL_H

#include "wait.h"

#define POLLED_MAX 256
#define POLL_READ  0x0001 /* POLLIN */

struct polled_entry {
	s32 fd;
	s16 events, revents;
};

/* What the call waits for, as user space has it. */
struct polled {
	u64 base; /* struct polled_entry[]; or fd_set, which is u64[] */
	u64 word; /* of an fd_set, the one under way */
	u32 is_set;
	u32 serves; /* clients are among it */
};

static __always_inline bool sock_serves(struct sock *sk)
{
	struct unix_sock *unix_sk = (struct unix_sock *)sk;
	u16 port;

	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		return true;
	switch (BPF_CORE_READ(sk, __sk_common.skc_family)) {
	case AF_UNIX:
		/* An accepted one has its listener's address. */
		return BPF_CORE_READ(unix_sk, addr) != NULL;
	case AF_INET:
	case AF_INET6:
		port = BPF_CORE_READ(sk, __sk_common.skc_num);
		return controls.tcp_ports[port / 64 & (KNOB_PORT_WORDS - 1)] >> (port % 64) & 1;
	}
	return false;
}

static __always_inline bool fd_serves(u32 fd)
{
	struct file *file = file_of(bpf_get_current_task_btf(), fd);
	struct file___opened *opened = (void *)file;
	struct socket *socket;
	struct sock *sk;

	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	socket = BPF_CORE_READ(opened, private_data);
	sk = socket ? BPF_CORE_READ(socket, sk) : NULL;
	return sk && sock_serves(sk);
}

static long look_at_polled(u32 idx, struct polled *polled)
{
	struct polled_entry entry;
	u64 at = polled->base;

	if (polled->is_set) {
		if (!(idx % 64) && bpf_probe_read_user(&polled->word, sizeof(polled->word), (void *)(at + idx / 8)))
			return 1;
		if (!(polled->word >> (idx % 64) & 1))
			return 0;
		entry.fd = idx;
	} else {
		if (bpf_probe_read_user(&entry, sizeof(entry), (void *)(at + idx * sizeof(entry))))
			return 1;
		if (entry.fd < 0 || !(entry.events & POLL_READ))
			return 0;
	}
	polled->serves = fd_serves(entry.fd);
	return polled->serves;
}

/* Among the first POLLED_MAX that the running task's call waits for. */
VERIFIED_ONCE bool polls_clients(u32 class)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct polled polled = {.is_set = class == WAIT_SELECT};
	u64 cnt;

	polled.base = syscall_arg(regs, polled.is_set ? 1 : 0);
	cnt = syscall_arg(regs, polled.is_set ? 0 : 1);
	if (polled.base)
		bpf_loop(cnt < POLLED_MAX ? cnt : POLLED_MAX, look_at_polled, &polled, 0);
	return polled.serves;
}

#endif
