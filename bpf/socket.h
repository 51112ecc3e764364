/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Socket requests: an interval begins when its first byte arrives at a socket that the target accepted and ends when
 * the reply is sent on it (DESIGN §7).
 *
 *   data arrives        conn.next has a sid, and the request's begin
 *   the target reads    it becomes conn.request; what is read on top of it, before the reply, is part of it
 *   the target sends    the interval of conn.request is done
 *
 * Data may arrive on one CPU while the target reads on another.  The side that takes conn.next.sid does so by an atomic
 * exchange, so that an arrival is used once; nothing here takes a lock.
 */
#ifndef WHYLATE_BPF_SOCKET_H
#define WHYLATE_BPF_SOCKET_H

#include "conn.h"
#include "goroutine.h"
#include "nats_conn.h"
#include "oncpu.h"

#define EAGAIN 11
#define EINTR  4

/* --- replies that are not delivered ------------------------------------------------------------------------------- */

struct tcp_sock___delivery {
	u32 write_seq, snd_nxt, snd_una, snd_wnd;
	u64 tcp_wstamp_ns; /* when the last segment left, by the clock of records */
} __attribute__((preserve_access_index));

/*
 * A part of the reply was sent, and bytes of it stay in the socket: the client's window is closed, or they are few and
 * wait for the acknowledgement of those before them (Nagle), which the client delays.
 */
static __always_inline void conn_note_held(struct sock *sk, struct conn *conn, struct cpu_context *cpu, bool ends)
{
	struct tcp_sock___delivery *tcp;
	u32 written, sent;

	if (!conn->recorded || conn->type >> 16 != WL_SOURCE_TCP)
		return;
	if (ends)
		cpu->replies++;
	tcp = tcp_of(sk);
	if (!tcp)
		return;
	written = tcp_get(tcp, write_seq);
	sent = tcp_get(tcp, snd_nxt);
	if (ends) {
		conn->replied_ts = bpf_ktime_get_ns();
		conn->replied_seq = written;
	}
	if (written == sent || conn->held_ts)
		return;
	conn->held_ts = bpf_ktime_get_ns();
	conn->held_window = controls.window;
	__sync_fetch_and_add(&controls.held_cnt, 1);
	if (sent - tcp_get(tcp, snd_una) + (written - sent) > tcp_get(tcp, snd_wnd))
		cpu->window_cnt++;
}

/* False: it was of an earlier window, and what came between is not known. */
static __always_inline bool conn_forget_held(struct conn *conn)
{
	conn->held_ts = 0;
	if (conn->held_window != controls.window)
		return false;
	__sync_fetch_and_sub(&controls.held_cnt, 1);
	return true;
}

/* By quarters of octaves from 2^HELD_OCTAVE ns on. */
static __always_inline u32 held_bucket(u64 ns)
{
	u32 octave = HELD_OCTAVE;

	for (int i = 0; i < HELD_BUCKETS / 4; i++)
		octave += ns >> (octave + 1) != 0;
	return (octave - HELD_OCTAVE) * 4 + (ns >> (octave - 2) & 3);
}

static __always_inline void count_held(struct cpu_context *cpu, u64 ns)
{
	cpu->held_ns += ns;
	cpu->held[held_bucket(ns) & (HELD_BUCKETS - 1)]++;
}

/* The client goes on: it has had the whole reply before, or gets the rest now. */
static __always_inline void conn_end_held(struct sock *sk, struct conn *conn)
{
	struct tcp_sock___delivery *tcp = (void *)sk;
	struct cpu_context *cpu = this_cpu();
	u64 left_ts, held_ns;

	left_ts = BPF_CORE_READ(tcp, write_seq) == BPF_CORE_READ(tcp, snd_nxt) ? BPF_CORE_READ(tcp, tcp_wstamp_ns)
									       : bpf_ktime_get_ns();
	held_ns = left_ts > conn->held_ts ? left_ts - conn->held_ts : 0;
	if (!conn_forget_held(conn) || !cpu || held_ns < 1 << HELD_OCTAVE)
		return;
	count_held(cpu, held_ns);
}

/*
 * A segment is sent again.  Of a recorded reply that is not acknowledged the client has had nothing so far, or not all;
 * one that is lost again counts as two shorter ones.  Windows are over by then: the reply, not the time, is selected.
 */
static __always_inline int resent(struct sock *sk)
{
	struct tcp_sock___delivery *tcp = (void *)sk;
	struct cpu_context *cpu = this_cpu();
	struct conn *conn = conn_find(sk);
	u64 now_ts = bpf_ktime_get_ns(), replied_ts;

	if (!cpu || !conn || conn->foreign || conn->held_ts || !conn->replied_ts)
		return 0;
	replied_ts = conn->replied_ts;
	if ((s32)(conn->replied_seq - BPF_CORE_READ(tcp, snd_una)) <= 0) {
		conn->replied_ts = 0;
		return 0;
	}
	conn->replied_ts = now_ts;
	if (now_ts - replied_ts < 1 << HELD_OCTAVE)
		return 0;
	cpu->resent_cnt++;
	count_held(cpu, now_ts - replied_ts);
	return 0;
}

static __always_inline bool nothing_to_read(struct sock *sk)
{
#ifdef SOCKET_BY_ADDRESS
	return BPF_CORE_READ(sk, sk_receive_queue.qlen) == 0;
#else
	return *(volatile u32 *)&sk->sk_receive_queue.qlen == 0;
#endif
}

/* --- arrivals ----------------------------------------------------------------------------------------------------- */

/* Bytes of a reply, or the connection itself, that the target opened: the goroutine that waits for them can go on. */
static __always_inline void opened_arrives(struct conn *conn)
{
	if (conn->next.begin_ts && conn->next.window == controls.window)
		return;
	conn->next.window = controls.window;
	conn->next.begin_ts = bpf_ktime_get_ns();
}

/* When those arrived that the thread has read, or tried to; 0: not known. */
static __always_inline u64 opened_take_arrival(struct conn *conn, long ret)
{
	u64 arrived_ts = conn->next.window == controls.window && ret >= 0 ? conn->next.begin_ts : 0;

	conn->next.begin_ts = 0;
	return arrived_ts;
}

static __always_inline int data_ready(struct sock *sk)
{
	u16 family = sock_get(sk, __sk_common.skc_family);
	struct conn *conn;
	u64 sid;

	if (at_rest() || (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
		return 0;
	if (sock_get(sk, __sk_common.skc_state) == TCP_LISTEN)
		return 0;
	if (sock_get(sk, sk_type) == SOCK_DGRAM) {
		if (family != AF_UNIX)
			datagram_arrived(sk);
		return 0;
	}
	conn = conn_of(sk, family);
	if (cfg_knobs.goroutines) {
		if (!conn)
			conn = conn_find(sk);
		if (conn && conn->foreign)
			opened_arrives(conn);
	}
	if (conn && conn->held_ts)
		conn_end_held(sk, conn);
	/* A Unix socket says so after its lock is gone: the target may have read the data by now. */
	if (!conn || conn->foreign || request_is_current(&conn->next) || nothing_to_read(sk))
		return 0;
	request_make(&conn->next, &sid);
	__sync_lock_test_and_set(&conn->next.sid, sid);
	request_arrives(sid);
	if (family == AF_UNIX && nothing_to_read(sk))
		conn_drop_next(conn);
	return 0;
}

/* The connection ended in the middle of whatever was under way. */
static __always_inline void conn_drop(struct conn *conn, struct thread *thread)
{
	conn_drop_next(conn);
	if (conn->held_ts)
		conn_forget_held(conn);
	if (conn_in_request(conn))
		interval__abandon(thread, conn->request.sid);
	conn->in_request = 0;
}

static __always_inline void datagram_received(struct sock *sk, struct thread *thread, u64 len)
{
	struct datagrams *queue = datagrams_find(sk);
	struct cpu_context *cpu = this_cpu();
	struct pickup pickup = {};

	if (!queue || !cpu)
		return;
	/* One thread, one datagram at a time: a request that was not answered before the next is read has no reply. */
	if (thread->datagram_sk)
		interval__abandon(thread, thread->datagram_sid);
	pickup.sid = sid__next(cpu);
	pickup.selected = sid__selected(pickup.sid, &pickup.rate);
	pickup.type = queue->type;
	if (queue->window != controls.window)
		pickup.selected = 0; /* it may have waited since before the window: nobody knows */
	else if (queue->head != queue->tail)
		pickup.begin_ts = queue->arrival_ts[queue->head++ & (DATAGRAMS_MAX - 1)];
	else
		pickup.flags = WL_INTERVAL_NO_ARRIVAL;
	pickup.read_len = len;
	thread->datagram_sk = (u64)sk;
	thread->datagram_sid = pickup.sid;
	thread->datagram_recorded = goroutine__pick_up(thread, &pickup);
}

/* More of a request was read. */
static __always_inline void conn_read_more(struct conn *conn, u64 len)
{
	u64 sid = conn->request.sid;
	struct open_interval *open = open_find(sid);

	conn->wants_first = open && open__add_first(open, len);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static __always_inline void stream_received(struct conn *conn, struct thread *thread, u64 len)
{
	struct nats_seen message = {.len = len};
	struct pickup pickup = {};
	bool seen;

	if (cfg_knobs.goroutines && thread->goroutine)
		nats_read(conn, &message);
	if (conn->nats & NATS_ONE_WAY && message.line != NATS_OTHER)
		nats_end_one_way(conn, thread);
	if (conn_in_request(conn)) {
		/* What arrived meanwhile is read before the reply: it is part of this request. */
		conn_drop_next(conn);
		nats_count(conn, &message, false);
		interval__resume(thread, conn->request.sid, conn->type, conn->recorded);
		if (cfg_knobs.first_bytes && conn->recorded && conn->wants_first)
			conn_read_more(conn, len);
		return;
	}
	nats_count(conn, &message, message.line == NATS_TELLS || message.line == NATS_ASKS);
	if (conn->nats & NATS_IS && nats_begins_none(conn, thread, &message))
		return;
	seen = conn->next.window == controls.window || conn->request.window == controls.window;
	conn->request = conn->next;
	conn->request.sid = conn_take_next(conn);
	if (!conn->request.sid) {
		/* The rest of a batch whose first part was answered, or its arrival was missed. */
		request_make(&conn->request, &conn->request.sid);
		pickup.flags = WL_INTERVAL_NO_ARRIVAL;
		/* Of what arrived before the window nobody knows when. */
		if (controls.rested && !seen)
			request_unselect(&conn->request);
	}
	conn->in_request = 1;
	pickup.sid = conn->request.sid;
	pickup.begin_ts = conn->request.begin_ts;
	pickup.type = conn->type;
	pickup.selected = conn->request.selected;
	pickup.rate = conn->request.rate;
	if (!conn->id)
		conn->id = pickup.sid;
	pickup.conn = conn->id;
	pickup.read_len = len;
	conn->recorded = goroutine__pick_up(thread, &pickup);
	if (conn->nats & NATS_IS)
		nats_begin(conn, &message);
	conn->wants_first = len <= WL_FIRST_ENOUGH;
	request_expected_no_more(&conn->request);
}

/* --- connections that the target opened -------------------------------------------------------------------------- */

/* One that the target opened, or that a stranger uses: NULL if it is one that the target accepted. */
static __always_inline struct conn *opened_conn(struct sock *sk)
{
	u16 family = sock_get(sk, __sk_common.skc_family);
	struct conn *conn = conn_find(sk);

	if (conn)
		return conn->foreign ? conn : NULL;
	if (family == AF_UNIX) {
		conn = conn_of(sk, family);
		return conn && conn->foreign ? conn : NULL;
	}
	if ((family != AF_INET && family != AF_INET6) || sock_get(sk, sk_protocol) != IPPROTO_TCP ||
	    port_listens(controls.tcp_ports, sock_get(sk, __sk_common.skc_num)))
		return NULL;
	conn = conn_make(sk);
	if (conn)
		conn->foreign = 1;
	return conn;
}

static __always_inline u32 handoff_kind(struct sock *sk)
{
	return sock_get(sk, __sk_common.skc_family) == AF_UNIX ? WL_HANDOFF_UNIX : WL_HANDOFF_SOCKET;
}

/* What is read, or can be written, is for the request that the connection is tied to. */
VERIFIED_ONCE bool tied_goes_on(struct conn *conn, struct thread *thread)
{
	struct open_interval *open = NULL;
	u64 sid;

	if (!conn || !thread)
		return false;
	sid = conn->request.sid;

	if (conn->recorded) {
		open = open_find(sid);
		if (!open) {
			conn->request.sid = 0;
			return false;
		}
	}
	/* It has worked for another one since it asked. */
	if (thread->current_sid != sid)
		thread->is_loop = 1;
	interval__resume(thread, sid, conn->type, conn->recorded);
	if (open && thread->is_loop)
		open->context = conn->context;
	return true;
}

/*
 * Of the requests that may ask, the one that does: the thread goes on with it.  False: it is not known, or it is the
 * one that the connection is tied to.
 */
VERIFIED_ONCE bool asking_goes_on(struct thread *thread, u64 tied)
{
	struct open_interval *open;
	u64 sid;

	if (!thread)
		return false;
	sid = thread__sends_on(thread, tied);
	open = sid && sid != tied ? open_find(sid) : NULL;
	if (!open)
		return false;
	interval__resume(thread, sid, open->type, true);
	return true;
}

/* The current request asks, or that of the bytes, with which the thread goes on.  False: it is not known. */
static __always_inline bool thread__may_ask(struct thread *thread, bool sends)
{
	u32 others = thread__others_ask(thread);

	return others == OTHERS_NONE || (sends && asking_goes_on(thread, 0)) || others == OTHERS_BEFORE;
}

/* The request that it is tied to may still get its reply. */
static __always_inline bool conn_is_asked(struct conn *conn)
{
	u64 sid = conn->request.sid;

	return sid && (!conn->recorded || open_find(sid));
}

/* The thread connects it, or writes to it.  True: it is tied to the request that asks. */
VERIFIED_ONCE bool conn_asked(struct conn *conn, struct thread *thread, bool sends)
{
	bool knows, ties = false;

	if (!conn || !thread)
		return false;
	thread->asks++;
	if (conn->is_shared && !sends)
		return false;
	if (conn->request.window != controls.window) {
		conn->request.sid = 0;
		conn->awaits = 0;
		conn->is_connecting = 0;
	}
	if (conn->is_connecting && conn->request.sid)
		/*
		 * An event loop was told that the connection is there.  It may have connected it for a request that it
		 * had put aside while it worked for another one: what it sends tells.
		 */
		knows = (sends && thread__others_ask(thread) != OTHERS_NONE &&
			 asking_goes_on(thread, conn->request.sid)) ||
			tied_goes_on(conn, thread);
	else
		knows = thread->goroutine || (conn->awaits && conn->request.sid == thread->current_sid) ||
			thread__may_ask(thread, sends);
	thread->send_unsure = sends && !knows;
	if (conn->is_shared) {
		/* It is tied to none; the thread may know for which one it writes. */
		if (knows)
			thread__asked(thread, thread->current_sid);
		conn_untie(conn);
		return false;
	}
	if (knows && conn->awaits && !conn->is_connecting && conn->request.sid != thread->current_sid &&
	    conn_is_asked(conn)) {
		conn->is_shared = 1;
		conn_untie(conn);
	} else if (knows && thread->current_sid) {
		conn_tie(conn, thread, sends);
		ties = true;
	} else if (sends && !knows) {
		conn_untie(conn);
	} else {
		conn->request.sid = 0;
	}
	conn->is_connecting = !sends;
	return ties;
}

static __always_inline int request_asks(struct sock *sk, struct thread *thread, bool sends)
{
	struct conn *conn;

	if (!cfg_knobs.sockets || thread->outside || sock_get(sk, sk_type) == SOCK_DGRAM)
		return 0;
	conn = opened_conn(sk);
	if (conn && conn_asked(conn, thread, sends) && sends)
		conn_hand_on(conn, thread, handoff_kind(sk));
	return 0;
}

static __always_inline int reply_received(struct conn *conn, struct thread *thread, long ret)
{
	if (ret == -EAGAIN || ret == -EINTR)
		return 0;
	if (ret > 0 && conn->request.sid && conn->request.window == controls.window && !conn->is_connecting)
		tied_goes_on(conn, thread);
	conn->awaits = 0;
	if (ret <= 0)
		conn->request.sid = 0;
	return 0;
}

static __always_inline int received(struct sock *sk, long ret, int flags)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;
	struct conn *conn;

	if (!cpu || flags & MSG_PEEK)
		return 0;
	thread = current_thread(cpu);
	if (thread)
		goroutine__sync(thread);
	/* What leaves the target ends the requests that it has, and picks up no more of them. */
	if (!thread || thread->outside == OUTSIDE_LEFT)
		return 0;
	if (sock_get(sk, sk_type) == SOCK_DGRAM) {
		if (ret > 0)
			datagram_received(sk, thread, ret);
		return 0;
	}
	conn = conn_find(sk);
	if (!conn)
		return 0;
	if (conn->foreign) {
		if (cfg_knobs.goroutines)
			goroutine__tell_bytes(thread, opened_take_arrival(conn, ret));
		return reply_received(conn, thread, ret);
	}
	if (ret > 0)
		stream_received(conn, thread, ret);
	else if (ret != -EAGAIN && ret != -EINTR)
		conn_drop(conn, thread);
	return 0;
}

static __always_inline int sent(struct sock *sk, long ret)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct thread *thread;
	struct conn *conn;
	bool recorded;
	u64 sid;

	if (!cpu || ret <= 0)
		return 0;
	thread = current_thread(cpu);
	if (!thread)
		return 0;
	thread->send_unsure = 0;
	goroutine__sync(thread);
	conn = conn_find(sk);
	if (cfg_knobs.goroutines)
		goroutine__tell_bytes(thread, conn && conn->foreign ? opened_take_arrival(conn, ret) : 0);
	if (thread->datagram_sk && thread->datagram_sk == (u64)sk) {
		thread->datagram_sk = 0;
		interval__finish(thread, thread->datagram_sid, thread->segment_type, thread->datagram_recorded);
		return 0;
	}
	if (!conn || conn->foreign)
		return request_asks(sk, thread, true);
	sid = conn_in_request(conn) ? conn->request.sid : 0;
	recorded = conn->recorded;
	if (conn->nats & NATS_IS) {
		sid = nats_ends(conn, thread, ret, sid != 0);
		recorded |= sid != conn->request.sid;
	}
	conn_note_held(sk, conn, cpu, sid && sid == conn->request.sid);
	if (!sid)
		return 0;
	if (sid == conn->request.sid)
		conn->in_request = 0;
	interval__finish(thread, sid, conn->type, recorded);
	return 0;
}

/* The target begins to listen while it is recorded, or a connection ends with a request under way. */
static __always_inline int state_changed(struct sock *sk, int new_state)
{
	if (at_rest())
		return 0;
	if (new_state == TCP_LISTEN) {
		u16 port = sock_get(sk, __sk_common.skc_num);

		struct cpu_context *cpu = this_cpu();
		struct thread *thread = cpu ? current_thread(cpu) : NULL;

		if (thread && !thread->outside && in_target_netns(sk))
			__sync_fetch_and_or(&controls.tcp_ports[port / 64 & (KNOB_PORT_WORDS - 1)],
					    1ULL << (port % 64));
	} else if (new_state == TCP_SYN_SENT) {
		struct cpu_context *cpu = this_cpu();
		struct thread *thread = cpu ? current_thread(cpu) : NULL;

		if (thread)
			request_asks(sk, thread, false);
	} else if (new_state == TCP_ESTABLISHED && cfg_knobs.goroutines) {
		struct conn *conn = conn_find(sk);

		if (conn && conn->foreign)
			opened_arrives(conn);
	} else if (new_state == TCP_CLOSE) {
		struct conn *conn = conn_find(sk);

		if (conn && !conn->foreign)
			conn_drop(conn, NULL);
	}
	return 0;
}

#endif
