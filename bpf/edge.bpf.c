// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode: bytes between threads through connections that the target opened itself, over TCP or Unix sockets, and
 * that its dependencies open in turn.  Both ends say which bytes they sent or got by position, so that the agent finds
 * out which send a receive waited for.
 *
 * A connection that the target accepted carries requests, whose senders are clients: not followed, but where they may
 * be on another host, what goes to and fro is told, so that recordings of both hosts can be joined.  Of the connections
 * of a thread outside the target, those on which it speaks first are its dependencies; the others are its own clients.
 * So is a connection that the target accepted and passes requests on by, to a client that answers them (nats.h).
 */
#include "follow.h"
#include "nats.h"

#define PORT_OF_NET(be) __builtin_bswap16(be)

/* Both ends of a TCP connection, in an order that is the same from either. */
struct flow_key {
	u64 low[2], high[2];
	u32 low_port, high_port;
};

enum flow {
	FLOW_NONE,
	FLOW_FOLLOWED,
	FLOW_CLIENT, /* the other end is none of this host's threads */
};

/*
 * What is known of one socket.  The bytes towards a Unix socket are counted whether its connection is followed or not:
 * a sender is asked only after its receiver has had them, so that counts which began with the one that asks first would
 * never agree with each other.
 */
struct flow_end {
	u32 generation; /* TCP: flow holds until this moves on */
	u32 flow;       /* enum flow */
	u64 conn;       /* Unix: number of what comes to this socket, 0: none yet; an address may be used again */
	u64 sent, received;
	/*
	 * How many bytes only the receiver counts, because they were on their way when counting began: between these.
	 * Which send a receive belongs to is certain where they are the same.
	 */
	s64 ahead_min, ahead_max;
	u32 has_max;
	u32 in_send; /* by a call that has not counted them yet, bytes were put into the queue */
	u32 window;  /* in which bytes were counted */
	u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct flow_key);
	__type(value, u32);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow_end);
} flow_ends SEC(".maps");

u64 unix_conns;

struct tcp_sock___positions {
	u32 write_seq;
	u32 copied_seq;
	u64 tcp_wstamp_ns; /* when the last segment left, by the clock of records */
} __attribute__((preserve_access_index));

/* NULL: it is not connected, or no longer. */
static __always_inline struct sock *peer_of(struct sock *sk)
{
	struct unix_sock *unix_sk = bpf_skc_to_unix_sock(sk);

	return unix_sk ? unix_sk->peer : NULL;
}

/* Between windows bytes pass uncounted: counts begin anew, under a new number. */
static __always_inline void flow_end_renew(struct flow_end *end)
{
	u32 window = end->window;

	if (window == controls.window || __sync_val_compare_and_swap(&end->window, window, controls.window) != window)
		return;
	end->conn = 0;
	end->sent = 0;
	end->received = 0;
	end->ahead_min = 0;
	end->ahead_max = 0;
	end->has_max = 0;
	end->in_send = 0;
}

static __always_inline struct flow_end *flow_end_make(struct sock *sk)
{
	struct flow_end *end = sk_storage_make(&flow_ends, sk);

	if (end && cfg_knobs.windows)
		flow_end_renew(end);
	return end;
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
	u32 local_port = sk->__sk_common.skc_num;
	u32 remote_port = PORT_OF_NET(sk->__sk_common.skc_dport);
	bool local_first;

	read_addresses(sk, family, local, remote);
	local_first =
		local[0] < remote[0] || (local[0] == remote[0] &&
					 (local[1] < remote[1] || (local[1] == remote[1] && local_port < remote_port)));
	__builtin_memcpy(key->low, local_first ? local : remote, sizeof(local));
	__builtin_memcpy(key->high, local_first ? remote : local, sizeof(local));
	key->low_port = local_first ? local_port : remote_port;
	key->high_port = local_first ? remote_port : local_port;
}

static __always_inline bool flow_is_followed(struct sock *sk, u16 family)
{
	struct flow_key key = {};

	flow_key_make(&key, sk, family);
	return bpf_map_lookup_elem(&flows, &key) != NULL;
}

/* Both ends may come here at a time, and it is the same to do it twice. */
static __always_inline void flow_begin(struct sock *sk, u16 family)
{
	struct flow_key key = {};
	struct flow_end *there;
	struct sock *peer;
	u32 one = 1;

	if (family == AF_UNIX) {
		peer = peer_of(sk);
		there = peer ? flow_end_make(peer) : NULL;
		if (there)
			there->flow = FLOW_FOLLOWED;
		return;
	}
	flow_key_make(&key, sk, family);
	bpf_map_update_elem(&flows, &key, &one, BPF_ANY);
	__sync_fetch_and_add(&flow_generation, 1);
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
		if (!(controls.tcp_ports[port / 64 & (KNOB_PORT_WORDS - 1)] >> (port % 64) & 1))
			return OPENED;
		conn = cfg_knobs.goroutines ? bpf_sk_storage_get(&conns, sk, 0, 0) : NULL;
		return conn && conn->nats & NATS_SERVES ? OPENED : ACCEPTED;
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

/* What the connection is that the running thread, followed or not, uses here; end: NULL where it is not known. */
static __always_inline enum flow flow_of(struct sock *sk, u16 family, struct flow_end *end, struct thread *thread,
					 bool sends)
{
	u32 generation = *(volatile u32 *)&flow_generation, known;
	enum accepted accepted = ACCEPTED;
	enum flow flow = FLOW_NONE;
	bool wanted;

	known = end ? *(volatile u32 *)&end->flow : FLOW_NONE;
	if (known == FLOW_FOLLOWED || (end && end->generation == generation))
		return known;
	wanted = family != AF_UNIX && flow_is_followed(sk, family);
	if (wanted) {
		flow = FLOW_FOLLOWED;
	} else if (thread) {
		if (thread->outside) {
			/* It speaks first: it is the one that asks. */
			wanted = sends && !(end && end->generation);
		} else {
			accepted = who_opened(sk, family);
			wanted = accepted == OPENED;
		}
		if (wanted) {
			flow_begin(sk, family);
			flow = FLOW_FOLLOWED;
		} else if (!thread->outside && accepted == ACCEPTED && is_elsewhere(sk, family)) {
			flow = FLOW_CLIENT;
		}
	}
	/* The other end of a Unix connection may have found it to be followed meanwhile. */
	if (thread && end && accepted != ACCEPTED_PERHAPS &&
	    __sync_val_compare_and_swap(&end->flow, known, flow) == known)
		end->generation = generation;
	return flow;
}

/* Where bytes are in a connection. */
struct position {
	u64 conn; /* as in struct wl_socket_record */
	u64 first;
	bool unsure;
};

#define AHEAD_UNKNOWN ((s64)(1ULL << 63))

/* Is this the first time that it is met? */
static __always_inline bool unix_conn_begins(struct flow_end *end)
{
	return !*(volatile u64 *)&end->conn &&
	       !__sync_val_compare_and_swap(&end->conn, 0, __sync_fetch_and_add(&unix_conns, 1) + 1);
}

/* What was taken for certain is not: sends and receives of before must not meet those from now on. */
static __always_inline void unix_conn_renew(struct flow_end *end)
{
	*(volatile u64 *)&end->conn = __sync_fetch_and_add(&unix_conns, 1) + 1;
}

static __always_inline void ahead_at_least(struct flow_end *end, s64 ahead)
{
	if (ahead <= end->ahead_min)
		return;
	end->ahead_min = ahead;
	if (end->has_max && ahead > end->ahead_max) {
		end->has_max = 0;
		unix_conn_renew(end);
	}
}

static __always_inline void ahead_at_most(struct flow_end *end, s64 ahead)
{
	if (end->has_max && ahead >= end->ahead_max)
		return;
	end->ahead_max = ahead;
	end->has_max = 1;
	if (ahead < end->ahead_min) {
		end->ahead_min = AHEAD_UNKNOWN;
		unix_conn_renew(end);
	}
}

static __always_inline u32 queued_cnt(struct sock *sk)
{
	return *(volatile u32 *)&sk->sk_receive_queue.qlen;
}

/*
 * Bytes were put into this socket's queue, by a call that has not counted them yet.  As long as the first of them are
 * there, all that was read came before them, and all that is counted as sent did.
 */
static __always_inline int unix_queued(struct sock *sk)
{
	struct flow_end *end;
	u64 received;
	u32 cnt;

	if (at_rest() || sk->__sk_common.skc_family != AF_UNIX || sk->__sk_common.skc_state != TCP_ESTABLISHED ||
	    sk->sk_type == SOCK_DGRAM)
		return 0;
	end = flow_end_make(sk);
	if (!end)
		return 0;
	received = *(volatile u64 *)&end->received;
	cnt = queued_cnt(sk);
	if (unix_conn_begins(end)) {
		/* It is new, or was empty. */
		if (cnt <= 1)
			ahead_at_most(end, 0);
	} else if (cnt && !end->in_send) {
		ahead_at_least(end, (s64)(received - *(volatile u64 *)&end->sent));
	}
	end->in_send = 1;
	return 0;
}

/* Where the len bytes are that have just passed through a Unix socket; false: there is no room to count them. */
static __always_inline bool unix_position(struct sock *sk, bool sends, u32 len, struct position *position)
{
	struct sock *receiver = sends ? peer_of(sk) : sk;
	struct flow_end *end = receiver ? flow_end_make(receiver) : NULL;

	if (!end)
		return false;
	unix_conn_begins(end);
	position->first = __sync_fetch_and_add(sends ? &end->sent : &end->received, len);
	if (sends) {
		end->in_send = 0;
	} else {
		/* Of what is in no queue any more, the sender has counted all, or is about to. */
		s64 ahead = (s64)(position->first + len - *(volatile u64 *)&end->sent);

		if (!queued_cnt(sk))
			ahead_at_most(end, ahead);
		position->unsure = !end->has_max || end->ahead_min != end->ahead_max;
		if (end->ahead_min != AHEAD_UNKNOWN)
			position->first -= end->ahead_min;
	}
	position->conn = *(volatile u64 *)&end->conn;
	return true;
}

/* The same for TCP, which counts by itself. */
static __always_inline void tcp_position(struct sock *sk, bool sends, u32 len, struct position *position)
{
	struct tcp_sock___positions *tcp = (void *)sk;

	position->conn = 0;
	position->first = (u32)((sends ? BPF_CORE_READ(tcp, write_seq) : BPF_CORE_READ(tcp, copied_seq)) - len);
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

static __noinline int socket__send(struct sock *sk, struct thread *thread, const struct position *position, u32 len,
				   u32 direction)
{
	bool sends = direction == WL_SENT || direction == WL_REPLIED;
	struct wl_socket_record *record;
	u16 family;
	u64 ts;

	if (!sk || !thread || !position)
		return 0;
	family = sk->__sk_common.skc_family;
	/* What the sender did until now is complete: a path may go on there. */
	if (sends)
		thread__cut(thread);
	ts = sends ? word_ts(thread->word) : bpf_ktime_get_ns();
	record = ring__reserve(WL_LOSS_EDGE, WL_RECORD_SOCKET, sizeof(*record));
	if (!record) {
		thread->lost_ts = ts;
		return 0;
	}
	record->ts = ts;
	record->sid = sends && thread->send_unsure ? 0 : thread->segment_sid;
	record->conn = position->conn;
	record->pos = position->first;
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
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	u16 family = sk->__sk_common.skc_family;
	struct position position = {};
	struct flow_end *end;
	struct thread *thread;
	enum flow flow;
	u32 direction;

	if (len <= 0 || !cpu || (family != AF_UNIX && family != AF_INET && family != AF_INET6))
		return 0;
	if (family == AF_UNIX ? sk->sk_type == SOCK_DGRAM : sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (family == AF_UNIX && !unix_position(sk, sends, len, &position))
		return 0;
	thread = current_thread(cpu);
	/* The whole machine's connections come by here, and none that goes over TCP is followed yet. */
	if (!thread && family != AF_UNIX && *(volatile u32 *)&flow_generation == FLOW_GENERATION_FIRST)
		return 0;
	end = thread ? flow_end_make(sk) : bpf_sk_storage_get(&flow_ends, sk, 0, 0);
	flow = flow_of(sk, family, end, thread, sends);
	if (flow == FLOW_NONE)
		return 0;
	if (!thread && flow == FLOW_FOLLOWED)
		thread = follow_current(cpu);
	if (flow == FLOW_CLIENT)
		direction = sends ? WL_REPLIED : WL_REQUESTED;
	else
		direction = sends ? WL_SENT : position.unsure ? WL_RECEIVED_UNSURE : WL_RECEIVED;
	if (family != AF_UNIX)
		tcp_position(sk, sends, len, &position);
	if (thread)
		socket__send(sk, thread, &position, len, direction);
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

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_edge_ready, struct sock *sk)
{
	return unix_queued(sk);
}

/* Tier 2: the same points by fentry and fexit. */
SEC("fentry/sock_def_readable")
int BPF_PROG(on_edge_def_readable, struct sock *sk)
{
	return unix_queued(sk);
}

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

/* Before 6.5, what sendfile() and splice() send. */
#define TRANSMIT_PAGE(function)                                                                                     \
	SEC("fexit/" #function)                                                                                     \
	int BPF_PROG(on_edge_##function, struct socket *sock, void *page, int offset, u64 size, int flags, s64 ret) \
	{                                                                                                           \
		return passed(sock->sk, ret, true);                                                                 \
	}
TRANSMIT_PAGE(inet_sendpage)
TRANSMIT_PAGE(unix_stream_sendpage)
