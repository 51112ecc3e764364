/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections and datagram queues of the target, and the request that has arrived at one.
 *
 * The file that includes this says before where a connection is kept: with its socket, or (SOCKET_BY_ADDRESS, for
 * kprobes, whose arguments the verifier takes for numbers) in a table by the socket's address.
 */
#ifndef WHYLATE_BPF_CONN_H
#define WHYLATE_BPF_CONN_H

#include "interval.h"

#ifdef SOCKET_BY_ADDRESS
/* LRU, because a socket whose end was missed would stay for ever. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct conn);
} conns_by_address SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct datagrams);
} datagram_queues_by_address SEC(".maps");

static const volatile struct conn zero_conn;
static const volatile struct datagrams zero_datagrams;

#define sock_get(sk, field) BPF_CORE_READ(sk, field)
#define tcp_get(tcp, field) BPF_CORE_READ(tcp, field)
#define tcp_of(sk)          ((void *)(sk))

static __always_inline struct conn *conn_find(struct sock *sk)
{
	u64 key = (u64)sk;

	return bpf_map_lookup_elem(&conns_by_address, &key);
}

static __always_inline struct conn *conn_make(struct sock *sk)
{
	u64 key = (u64)sk;

	bpf_map_update_elem(&conns_by_address, &key, (const void *)&zero_conn, BPF_NOEXIST);
	return bpf_map_lookup_elem(&conns_by_address, &key);
}

static __always_inline struct datagrams *datagrams_find(struct sock *sk)
{
	u64 key = (u64)sk;

	return bpf_map_lookup_elem(&datagram_queues_by_address, &key);
}

static __always_inline struct datagrams *datagrams_make(struct sock *sk)
{
	u64 key = (u64)sk;

	bpf_map_update_elem(&datagram_queues_by_address, &key, (const void *)&zero_datagrams, BPF_NOEXIST);
	return bpf_map_lookup_elem(&datagram_queues_by_address, &key);
}
#else
#define sock_get(sk, field) ((sk)->field)
#define tcp_get(tcp, field) ((tcp)->field)
#define tcp_of(sk)          ((void *)bpf_skc_to_tcp_sock(sk))

static __always_inline struct conn *conn_find(struct sock *sk)
{
	return bpf_sk_storage_get(&conns, sk, 0, 0);
}

static __always_inline struct conn *conn_make(struct sock *sk)
{
	return sk_storage_make(&conns, sk);
}

static __always_inline struct datagrams *datagrams_find(struct sock *sk)
{
	return bpf_sk_storage_get(&datagram_queues, sk, 0, 0);
}

static __always_inline struct datagrams *datagrams_make(struct sock *sk)
{
	return sk_storage_make(&datagram_queues, sk);
}
#endif

static __always_inline bool port_listens(const u64 *ports, u16 port)
{
	return ports[port / 64 & (KNOB_PORT_WORDS - 1)] >> (port % 64) & 1;
}

static __always_inline bool in_target_netns(struct sock *sk)
{
	u32 netns;

	if (!controls.netns[0])
		return true;
	netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	for (int i = 0; i < KNOB_NETNS_MAX && controls.netns[i]; i++)
		if (controls.netns[i] == netns)
			return true;
	return false;
}

/*
 * An accepted Unix socket shares its listener's address, which is one of the target's; its peer has none or its own.
 * 0: not one of the target's.
 */
static __always_inline u32 unix_type(struct sock *sk)
{
	struct unix_sock *unix_sk = (struct unix_sock *)sk;
	struct unix_address *addr = BPF_CORE_READ(unix_sk, addr);
	struct unix_name name = {};
	u32 *index, len;

	if (!addr)
		return 0;
	len = BPF_CORE_READ(addr, len);
	if (len <= sizeof(u16) || len > sizeof(u16) + sizeof(name.path))
		return 0;
	name.len = len - sizeof(u16);
	/* A path counts up to its NUL; an abstract name begins with one and counts whole. */
	if (bpf_probe_read_kernel(name.path, name.len & 0x7f, (void *)addr->name + sizeof(u16)))
		return 0;
	if (name.path[0])
		name.len = 0;
	index = bpf_map_lookup_elem(&unix_listeners, &name);
	return index ? WL_SOURCE_UNIX << 16 | (*index & 0xffff) : 0;
}

/* Type of the intervals on a socket, 0 if the target did not accept it. */
static __always_inline u32 stream_type(struct sock *sk, u16 family)
{
	u16 port = sock_get(sk, __sk_common.skc_num);

	if (family == AF_UNIX)
		return unix_type(sk);
	if (sock_get(sk, sk_protocol) != IPPROTO_TCP || !port_listens(controls.tcp_ports, port) || !in_target_netns(sk))
		return 0;
	return WL_SOURCE_TCP << 16 | port;
}

static __always_inline struct conn *conn_of(struct sock *sk, u16 family)
{
	struct conn *conn;
	u32 type;

	/* Strangers on TCP are told by their port, which is cheap; on Unix sockets they are remembered. */
	if (family != AF_UNIX && !port_listens(controls.tcp_ports, sock_get(sk, __sk_common.skc_num)))
		return NULL;
	conn = conn_find(sk);
	if (conn)
		return conn;
	type = stream_type(sk, family);
	if (!type && family != AF_UNIX)
		return NULL;
	conn = conn_make(sk);
	if (!conn) {
		struct cpu_context *cpu = this_cpu();

		if (cpu && type)
			count_loss(cpu, WL_LOSS_NO_CONN);
		return NULL;
	}
	conn->type = type;
	conn->foreign = !type;
	return conn;
}

struct udp_sock___queue {
	struct sk_buff_head reader_queue;
} __attribute__((preserve_access_index));

/* Read and not yet said to be, a datagram is gone from the queue for less than this. */
#define DATAGRAM_READ_NS 1000000

/*
 * A reader that is awake may take a datagram before its arrival is told, and then finds no arrival: what is told
 * afterwards must not be taken for that of the next one, and so on for ever.
 */
static __always_inline void datagrams_resync(struct datagrams *queue, struct sock *sk, u64 now)
{
	struct udp_sock___queue *udp = (void *)sk;
	u32 there = BPF_CORE_READ(sk, sk_receive_queue.qlen) + BPF_CORE_READ(udp, reader_queue.qlen);

	if (queue->tail - queue->head > there &&
	    now - queue->arrival_ts[queue->head & (DATAGRAMS_MAX - 1)] > DATAGRAM_READ_NS)
		queue->head = queue->tail - there;
}

static __always_inline void datagram_arrived(struct sock *sk)
{
	struct datagrams *queue = datagrams_find(sk);
	u16 port = sock_get(sk, __sk_common.skc_num);
	u64 now = bpf_ktime_get_ns();

	if (!queue) {
		if (!port_listens(controls.udp_ports, port) || !in_target_netns(sk))
			return;
		queue = datagrams_make(sk);
		if (!queue)
			return;
		queue->type = WL_SOURCE_UDP << 16 | port;
		queue->window = controls.window;
	}
	if (queue->window != controls.window) {
		queue->head = queue->tail;
		queue->window = controls.window;
	}
	/* A longer backlog loses the arrival times of its last ones, and those say so (NO_ARRIVAL). */
	if (queue->tail - queue->head < DATAGRAMS_MAX)
		queue->arrival_ts[queue->tail++ & (DATAGRAMS_MAX - 1)] = now;
	datagrams_resync(queue, sk, now);
}

/* From the arrival of a selected request on, what happens to its thread counts: see interrupt_begins(). */
static __always_inline void request_make(struct request *request, u64 *sid)
{
	struct cpu_context *cpu = this_cpu();

	*sid = cpu ? sid__next(cpu) : 0;
	request->window = controls.window;
	request->selected = *sid && sid__selected(*sid, &request->rate);
	if (!request->selected)
		return;
	request->begin_ts = bpf_ktime_get_ns();
	__sync_fetch_and_add(&controls.expected, 1);
	__sync_fetch_and_add(&controls.expected_weight, WEIGHT_OF((u64)request->rate));
}

/* It is picked up, or will never be. */
static __always_inline void request_expected_no_more(struct request *request)
{
	if (!request->selected)
		return;
	__sync_fetch_and_add(&controls.expected, -1);
	__sync_fetch_and_add(&controls.expected_weight, -WEIGHT_OF((u64)request->rate));
}

static __always_inline void request_unselect(struct request *request)
{
	request_expected_no_more(request);
	request->selected = 0;
}

/* What was seen in an earlier window has gone its way since. */
static __always_inline bool request_is_current(const struct request *request)
{
	return request->sid && request->window == controls.window;
}

static __always_inline bool conn_in_request(const struct conn *conn)
{
	return conn->in_request && request_is_current(&conn->request);
}

/* Takes what has arrived and was not read, if anything: its sid. */
static __always_inline u64 conn_take_next(struct conn *conn)
{
	return request_is_current(&conn->next) ? __sync_lock_test_and_set(&conn->next.sid, 0) : 0;
}

static __always_inline void conn_drop_next(struct conn *conn)
{
	if (conn_take_next(conn))
		request_expected_no_more(&conn->next);
}

#endif
