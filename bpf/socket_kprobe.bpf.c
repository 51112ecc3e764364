// SPDX-License-Identifier: GPL-2.0-or-later
/* Socket requests by kprobes and kretprobes (tier 3): for kernels that have neither the tracepoints nor fentry. */
#define SOCKET_BY_ADDRESS
#include "socket.h"

/* What a call was made with: its return knows the result only. */
struct socket_call {
	u64 sk; /* 0: none under way */
	u32 flags;
	u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct socket_call);
} socket_calls SEC(".maps");

static __always_inline struct socket_call *call_of_current(u64 flags)
{
	struct cpu_context *cpu = this_cpu();

	if (!cpu || !current_thread(cpu))
		return NULL;
	return bpf_task_storage_get(&socket_calls, bpf_get_current_task_btf(), 0, flags);
}

static __always_inline int call_begins(struct socket *sock, int flags)
{
	struct socket_call *call = call_of_current(BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!call)
		return 0;
	call->sk = (u64)BPF_CORE_READ(sock, sk);
	call->flags = flags;
	return 0;
}

static __always_inline struct sock *call_ends(u32 *flags)
{
	struct socket_call *call = call_of_current(0);
	struct sock *sk;

	if (!call)
		return NULL;
	sk = (struct sock *)call->sk;
	*flags = call->flags;
	call->sk = 0;
	return sk;
}

SEC("kprobe/sock_def_readable")
int BPF_KPROBE(on_def_readable_call, struct sock *sk)
{
	return data_ready(sk);
}

#define RECEIVE_CALL(function)                                                                            \
	SEC("kprobe/" #function)                                                                          \
	int BPF_KPROBE(on_##function##_call, struct socket *sock, void *msg, unsigned long sz, int flags) \
	{                                                                                                 \
		return call_begins(sock, flags);                                                          \
	}                                                                                                 \
	SEC("kretprobe/" #function)                                                                       \
	int BPF_KRETPROBE(on_##function##_return, int ret)                                                \
	{                                                                                                 \
		u32 flags = 0;                                                                            \
		struct sock *sk = call_ends(&flags);                                                      \
                                                                                                          \
		return sk ? received(sk, ret, flags) : 0;                                                 \
	}
RECEIVE_CALL(inet_recvmsg)
RECEIVE_CALL(inet6_recvmsg)
RECEIVE_CALL(unix_stream_recvmsg)

#define TRANSMIT_CALL(function)                                   \
	SEC("kprobe/" #function)                                  \
	int BPF_KPROBE(on_##function##_call, struct socket *sock) \
	{                                                         \
		return call_begins(sock, 0);                      \
	}                                                         \
	SEC("kretprobe/" #function)                               \
	int BPF_KRETPROBE(on_##function##_return, int ret)        \
	{                                                         \
		u32 flags = 0;                                    \
		struct sock *sk = call_ends(&flags);              \
                                                                  \
		return sk ? sent(sk, ret) : 0;                    \
	}
TRANSMIT_CALL(inet_sendmsg)
TRANSMIT_CALL(inet6_sendmsg)
TRANSMIT_CALL(unix_stream_sendmsg)
TRANSMIT_CALL(inet_sendpage)
TRANSMIT_CALL(unix_stream_sendpage)

/* The address may belong to another socket from here on. */
SEC("kprobe/sk_destruct")
int BPF_KPROBE(on_sk_destruct, struct sock *sk)
{
	struct conn *conn = conn_find(sk);
	u64 key = (u64)sk;

	if (conn && !conn->foreign)
		conn_drop(conn, NULL);
	if (conn)
		bpf_map_delete_elem(&conns_by_address, &key);
	bpf_map_delete_elem(&datagram_queues_by_address, &key);
	return 0;
}
