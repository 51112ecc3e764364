// SPDX-License-Identifier: GPL-2.0-or-later
/* Socket requests by tracepoints (tier 1) and by fentry and fexit (tier 2). */
#include "socket.h"

/* Tier 1: the tracepoints, since 6.3. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_data_ready, struct sock *sk)
{
	return data_ready(sk);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_recv_length, struct sock *sk, int ret, int flags)
{
	return received(sk, ret, flags);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send_length, struct sock *sk, int ret, int flags)
{
	return sent(sk, ret);
}

/* Tier 2: the same points by fentry and fexit. */
SEC("fentry/sock_def_readable")
int BPF_PROG(on_def_readable, struct sock *sk)
{
	return data_ready(sk);
}

#define RECEIVE(function)                                                                         \
	SEC("fexit/" #function)                                                                   \
	int BPF_PROG(on_##function, struct socket *sock, void *msg, u64 size, int flags, int ret) \
	{                                                                                         \
		return received(sock->sk, ret, flags);                                            \
	}
RECEIVE(inet_recvmsg)
RECEIVE(inet6_recvmsg)
RECEIVE(unix_stream_recvmsg)

#define TRANSMIT(function)                                                             \
	SEC("fexit/" #function)                                                        \
	int BPF_PROG(on_##function, struct socket *sock, void *msg, u64 size, int ret) \
	{                                                                              \
		return sent(sock->sk, ret);                                            \
	}
TRANSMIT(inet_sendmsg)
TRANSMIT(inet6_sendmsg)
TRANSMIT(unix_stream_sendmsg)

/* Before 6.5, what sendfile() and splice() send. */
#define TRANSMIT_PAGE(function)                                                                                \
	SEC("fexit/" #function)                                                                                \
	int BPF_PROG(on_##function, struct socket *sock, void *page, int offset, u64 size, int flags, s64 ret) \
	{                                                                                                      \
		return sent(sock->sk, ret);                                                                    \
	}
TRANSMIT_PAGE(inet_sendpage)
TRANSMIT_PAGE(unix_stream_sendpage)

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock *sk)
{
	return resent(sk);
}

/* A connection that ends, and the target's new listeners. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_tcp_state, struct sock *sk, int old_state, int new_state)
{
	return state_changed(sk, new_state);
}
