// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace mode: bytes between threads through connections that the target opened itself, over TCP or Unix sockets, and
 * that its dependencies open in turn.  Both ends say which bytes they sent or got by position, so that the agent finds
 * out which send a receive waited for.
 *
 * A connection that the target accepted carries requests, whose senders are clients: not followed, but where they may
 * be on another host, what goes to and fro is told, so that recordings of both hosts can be joined.  Of the connections
 * of a thread outside the target, those on which it speaks first are its dependencies; the others are its own clients.
 */
#include "follow.h"

#define AF_UNIX         1
#define AF_INET         2
#define AF_INET6        10
#define IPPROTO_TCP     6
#define SOCK_DGRAM      2
#define MSG_PEEK        2
#define PORT_OF_NET(be) __builtin_bswap16(be)

/* Both ends of a connection, in an order that is the same from either; Unix sockets by their addresses in memory. */
struct flow_key {
	u64 low[2], high[2];
	u32 low_port, high_port;
};

struct unix_flow {
	u64 sent, received; /* bytes towards the socket that is the key, since the connection is followed */
};

enum flow {
	FLOW_NONE,
	FLOW_FOLLOWED,
	FLOW_CLIENT, /* the other end is none of this host's threads */
};

/* What is known of one socket, until another connection is followed. */
struct flow_end {
	u32 generation;
	u32 flow; /* enum flow */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct flow_key);
	__type(value, u32);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct unix_flow);
} unix_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow_end);
} flow_ends SEC(".maps");

/* Moves on when another connection becomes followed; 0 is the generation of nothing. */
u32 flow_generation = 1;

struct tcp_sock___positions {
	u32 write_seq;
	u32 copied_seq;
	u64 tcp_wstamp_ns; /* when the last segment left, by the clock of records */
} __attribute__((preserve_access_index));

static __always_inline u64 peer_of(struct sock *sk)
{
	return (u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
}

static __always_inline void read_addresses(struct sock *sk, u16 family, u64 *local, u64 *remote)
{
	if (family == AF_INET) {
		local[0] = sk->__sk_common.skc_rcv_saddr;
		remote[0] = sk->__sk_common.skc_daddr;
	} else {
		BPF_CORE_READ_INTO(local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(remote, sk, __sk_common.skc_v6_daddr);
	}
}

static __always_inline void flow_key_make(struct flow_key *key, struct sock *sk, u16 family)
{
	u64 local[2] = {}, remote[2] = {};
	u32 local_port = 0, remote_port = 0;
	bool local_first;

	if (family == AF_UNIX) {
		local[0] = (u64)sk;
		remote[0] = peer_of(sk);
	} else {
		read_addresses(sk, family, local, remote);
		local_port = sk->__sk_common.skc_num;
		remote_port = PORT_OF_NET(sk->__sk_common.skc_dport);
	}
	local_first =
		local[0] < remote[0] || (local[0] == remote[0] &&
					 (local[1] < remote[1] || (local[1] == remote[1] && local_port < remote_port)));
	__builtin_memcpy(key->low, local_first ? local : remote, sizeof(local));
	__builtin_memcpy(key->high, local_first ? remote : local, sizeof(local));
	key->low_port = local_first ? local_port : remote_port;
	key->high_port = local_first ? remote_port : local_port;
}

static __always_inline void flow_begin(struct flow_key *key, struct sock *sk, u16 family)
{
	struct unix_flow none = {};
	u64 here = (u64)sk, there;
	u32 one = 1;

	bpf_map_update_elem(&flows, key, &one, BPF_ANY);
	__sync_fetch_and_add(&flow_generation, 1);
	if (family != AF_UNIX)
		return;
	there = peer_of(sk);
	bpf_map_update_elem(&unix_flows, &here, &none, BPF_ANY);
	bpf_map_update_elem(&unix_flows, &there, &none, BPF_ANY);
}

enum accepted {
	ACCEPTED,
	OPENED,
	ACCEPTED_PERHAPS,
};

/*
 * By the target?  A TCP socket's port tells; a Unix socket is known from the arrival of data on.  Where calls of
 * functions are the intervals, there are no clients to tell from others.
 */
static __always_inline enum accepted who_opened(struct sock *sk, u16 family)
{
	struct conn *conn;
	u16 port;

	if (!cfg_knobs.sockets)
		return OPENED;
	if (family != AF_UNIX) {
		port = sk->__sk_common.skc_num;
		return controls.tcp_ports[port / 64 & (KNOB_PORT_WORDS - 1)] >> (port % 64) & 1 ? ACCEPTED : OPENED;
	}
	conn = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!conn)
		return ACCEPTED_PERHAPS;
	return conn->foreign ? OPENED : ACCEPTED;
}

/* The other end has an address that none of this host's sockets would have. */
static __always_inline bool is_elsewhere(struct sock *sk, u16 family)
{
	u64 local[2] = {}, remote[2] = {};

	if (family == AF_UNIX)
		return false;
	read_addresses(sk, family, local, remote);
	if (family == AF_INET && *(u8 *)remote == 127)
		return false;
	return local[0] != remote[0] || local[1] != remote[1];
}

/* What the connection is that the running thread, followed or not, uses here. */
static __always_inline enum flow flow_of(struct sock *sk, u16 family, struct thread *thread, bool sends)
{
	u32 generation = *(volatile u32 *)&flow_generation;
	struct flow_end *end;
	struct flow_key key = {};
	enum accepted accepted = ACCEPTED;
	enum flow flow;
	bool wanted;

	end = bpf_sk_storage_get(&flow_ends, sk, 0, thread ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (end && (end->flow == FLOW_FOLLOWED || end->generation == generation))
		return end->flow;
	flow_key_make(&key, sk, family);
	wanted = bpf_map_lookup_elem(&flows, &key) != NULL;
	flow = wanted ? FLOW_FOLLOWED : FLOW_NONE;
	if (!wanted && thread) {
		if (thread->outside) {
			/* It speaks first: it is the one that asks. */
			wanted = sends && !(end && end->generation);
		} else {
			accepted = who_opened(sk, family);
			wanted = accepted == OPENED;
		}
		if (wanted) {
			flow_begin(&key, sk, family);
			flow = FLOW_FOLLOWED;
		} else if (!thread->outside && accepted == ACCEPTED && is_elsewhere(sk, family)) {
			flow = FLOW_CLIENT;
		}
	}
	if (end && accepted != ACCEPTED_PERHAPS) {
		end->flow = flow;
		end->generation = generation;
	}
	return flow;
}

/* Position of the first of the len bytes that have just been sent or received; false: not known. */
static __always_inline bool position_of(struct sock *sk, u16 family, bool sends, u32 len, u64 *conn, u64 *pos)
{
	struct tcp_sock___positions *tcp = (void *)sk;
	struct unix_flow *flow;

	if (family != AF_UNIX) {
		*conn = 0;
		*pos = (u32)((sends ? BPF_CORE_READ(tcp, write_seq) : BPF_CORE_READ(tcp, copied_seq)) - len);
		return true;
	}
	*conn = sends ? peer_of(sk) : (u64)sk;
	flow = bpf_map_lookup_elem(&unix_flows, conn);
	if (!flow)
		return false;
	*pos = __sync_fetch_and_add(sends ? &flow->sent : &flow->received, len);
	return true;
}

/*
 * How long ago the last segment left; the call that sent it may have gone on to deliver it, on a virtual network.  It
 * may also not have left at all, and this be the one before.
 */
static __always_inline u32 departed_ns(struct sock *sk, u64 ts)
{
	u64 left_ts = BPF_CORE_READ((struct tcp_sock___positions *)sk, tcp_wstamp_ns);

	return left_ts && left_ts < ts && ts - left_ts < 0xffffffff ? ts - left_ts : 0;
}

static __noinline int socket__send(struct sock *sk, struct thread *thread, u16 family, u32 len, u32 direction)
{
	bool sends = direction == WL_SENT || direction == WL_REPLIED;
	struct wl_socket_record *record;
	u64 conn, pos, ts;

	if (!sk || !thread || !position_of(sk, family, sends, len, &conn, &pos))
		return 0;
	/* What the sender did until now is complete: a path may go on there. */
	if (sends)
		thread__cut(thread);
	ts = sends ? word_ts(thread->word) : bpf_ktime_get_ns();
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_SOCKET, sizeof(*record));
	if (!record)
		return 0;
	record->ts = ts;
	record->sid = thread->segment_sid;
	record->conn = conn;
	record->pos = pos;
	record->len = len;
	record->pid = thread->pid;
	record->tid = thread->tid;
	record->family = family;
	record->direction = direction;
	record->local_port = 0;
	record->remote_port = 0;
	record->lag_ns = sends && family != AF_UNIX ? departed_ns(sk, ts) : 0;
	__builtin_memset(record->local_addr, 0, sizeof(record->local_addr));
	__builtin_memset(record->remote_addr, 0, sizeof(record->remote_addr));
	if (family != AF_UNIX) {
		record->local_port = sk->__sk_common.skc_num;
		record->remote_port = PORT_OF_NET(sk->__sk_common.skc_dport);
		read_addresses(sk, family, (u64 *)record->local_addr, (u64 *)record->remote_addr);
	}
	ring__submit(record);
	return 0;
}

static __always_inline int passed(struct sock *sk, long len, bool sends)
{
	u16 family = sk->__sk_common.skc_family;
	struct cpu_context *cpu = this_cpu();
	struct thread *thread;
	enum flow flow;
	u32 direction;

	if (len <= 0 || !cpu || (family != AF_UNIX && family != AF_INET && family != AF_INET6))
		return 0;
	if (family == AF_UNIX ? sk->sk_type == SOCK_DGRAM : sk->sk_protocol != IPPROTO_TCP)
		return 0;
	thread = current_thread(cpu);
	flow = flow_of(sk, family, thread, sends);
	if (flow == FLOW_NONE)
		return 0;
	if (!thread && flow == FLOW_FOLLOWED)
		thread = follow_current(cpu);
	if (flow == FLOW_CLIENT)
		direction = sends ? WL_REPLIED : WL_REQUESTED;
	else
		direction = sends ? WL_SENT : WL_RECEIVED;
	if (thread)
		socket__send(sk, thread, family, len, direction);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_edge_send, struct sock *sk, int ret, int flags)
{
	return passed(sk, ret, true);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_edge_receive, struct sock *sk, int ret, int flags)
{
	return flags & MSG_PEEK ? 0 : passed(sk, ret, false);
}

/* Tier 2: the same points by fexit. */
#define RECEIVE(function)                                                                              \
	SEC("fexit/" #function)                                                                        \
	int BPF_PROG(on_edge_##function, struct socket *sock, void *msg, u64 size, int flags, int ret) \
	{                                                                                              \
		return flags & MSG_PEEK ? 0 : passed(sock->sk, ret, false);                            \
	}
RECEIVE(inet_recvmsg)
RECEIVE(inet6_recvmsg)
RECEIVE(unix_stream_recvmsg)

#define TRANSMIT(function)                                                                  \
	SEC("fexit/" #function)                                                             \
	int BPF_PROG(on_edge_##function, struct socket *sock, void *msg, u64 size, int ret) \
	{                                                                                   \
		return passed(sock->sk, ret, true);                                         \
	}
TRANSMIT(inet_sendmsg)
TRANSMIT(inet6_sendmsg)
TRANSMIT(unix_stream_sendmsg)
