// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes a recording with a planted episode: recording DIR REQUESTS [THREADS [GAP [HOST [VARIABLES]]]]
 *
 * With a GAP, the second half is another recording, so many seconds later.  The host is `planted` unless named.  There
 * is one variable, `items`, unless there are VARIABLES of them, whose values are the same.
 *
 * On each thread (1) a request each 10 ms runs for about 100 µs; some of those are of type tcp:81, which nothing makes
 * late.  Throughout, one in 130 runs rebuild_index() for 5 to 8 ms.  From 60 % to 68 % of the time, one in 12 waits 4
 * to 7 ms for a lock that `flusher` holds in fsync.  Requests that rebuild were handed on by a socket, and their
 * variable `items` is about 650, which is about 10 otherwise.  Names are what an enemy would choose: markup in a type,
 * a thread's name and a function.
 */
#include "row_writer.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US      1000ULL
#define MS      1000000ULL
#define PERIOD  (10 * MS)
#define SERVER  200
#define FLUSHER 201
#define THREADS 100  /* at most */
#define MORE    1000 /* further threads: a server's and its flusher's in turn */
#define HANDED  77   /* id of a context */
#define TYPE    "tcp:80</script><script>throw new Error('type')</script>"
#define FLUSHES "flusher<img src=x>"
#define REBUILD "rebuild_index<svg onload=throw(1)>"

struct server {
	struct row_writer to;
	uint64_t state, next_tick_ts[THREADS];
	uint64_t gap_ns, last_ts, variable_cnt;
	const char *host;
	uint64_t thread, thread_cnt; /* that runs the request under way, of so many */
	uint32_t tid, flusher_tid;
};

static double uniform(struct server *server)
{
	return (double)(random_next(&server->state) >> 11) * 0x1p-53;
}

static void put_stack(struct server *server, uint32_t tid, uint64_t ts, uint64_t end_ts, const char *state,
		      const char *frames)
{
	row_begin(&server->to, SHARD_TABLE_STACK);
	row_set_ts(&server->to, STACK_TS, ts);
	if (end_ts)
		row_set_ts(&server->to, STACK_END_TS, end_ts);
	row_set_u64(&server->to, STACK_PID, SERVER);
	row_set_u64(&server->to, STACK_TID, tid);
	row_set_str(&server->to, STACK_STATE, state);
	row_set_str(&server->to, STACK_FRAMES, frames);
	row_end(&server->to, SHARD_TABLE_STACK);
}

static void put_value(struct server *server, uint64_t ts, uint64_t sid, uint64_t variable, uint64_t items)
{
	row_begin(&server->to, SHARD_TABLE_VALUE);
	row_set_ts(&server->to, VALUE_TS, ts);
	row_set_u64(&server->to, VALUE_TID, server->tid);
	row_set_u64(&server->to, VALUE_SID, sid);
	row_set_u64(&server->to, VALUE_PLACE, 1);
	row_set_u64(&server->to, VALUE_VARIABLE, variable);
	row_set_u64(&server->to, VALUE_VALUE, items);
	row_end(&server->to, SHARD_TABLE_VALUE);
}

/* Ticks at 1 kHz, jittered. */
static void run(struct server *server, uint64_t begin_ts, uint64_t end_ts, uint64_t sid, const char *frames)
{
	uint64_t *tick_ts = &server->next_tick_ts[server->thread], items;
	bool rebuilds = strstr(frames, REBUILD) != NULL;

	row_put_segment(&server->to, server->tid, begin_ts, end_ts, "running", sid);
	while (*tick_ts < end_ts) {
		if (*tick_ts >= begin_ts) {
			put_stack(server, server->tid, *tick_ts, 0, "running", frames);
			items = (uint64_t)((rebuilds ? 600 : 8) + (rebuilds ? 100 : 6) * uniform(server));
			for (uint64_t v = 1; v <= server->variable_cnt; v++)
				put_value(server, *tick_ts, sid, v, items);
		}
		*tick_ts += 500 * US + (uint64_t)(1000 * US * uniform(server));
	}
}

/* The server waits for the lock, `flusher` holds it and waits for the disk. */
static void wait_for_lock(struct server *server, uint64_t begin_ts, uint64_t end_ts, uint64_t sid)
{
	row_begin_segment(&server->to, server->tid, begin_ts, end_ts, "blocked.futex", sid);
	row_set_u64(&server->to, SEGMENT_OBJECT, 0x5555);
	row_set_str(&server->to, SEGMENT_OBJECT_NAME, "web+0x40");
	row_set_u64(&server->to, SEGMENT_OWNER_TID, server->flusher_tid);
	row_set_str(&server->to, SEGMENT_SYSCALL, "futex");
	row_end(&server->to, SHARD_TABLE_SEGMENT);
	row_put_wakeup(&server->to, server->tid, end_ts, server->flusher_tid, FLUSHES);
	put_stack(server, server->tid, begin_ts, end_ts, "blocked.futex",
		  "_start;main;serve;lock_table;pthread_mutex_lock");

	row_begin_segment(&server->to, server->flusher_tid, begin_ts - 10 * US, end_ts - US, "blocked.disk", 0);
	row_set_str(&server->to, SEGMENT_SYSCALL, "fsync");
	row_end(&server->to, SHARD_TABLE_SEGMENT);
	row_put_segment(&server->to, server->flusher_tid, end_ts - US, end_ts + 20 * US, "running", 0);
	put_stack(server, server->flusher_tid, begin_ts - 10 * US, end_ts - US, "blocked.disk",
		  "start_thread;flush_log;fsync");
}

static void put_request(struct server *server, uint64_t number, uint64_t cnt)
{
	uint64_t thread = number % server->thread_cnt, begin_ts = (number / server->thread_cnt + 1) * PERIOD;
	uint64_t at, end_ts, sid = number + 1, lock_ns = 0;
	double done = (double)number / (double)cnt;
	bool rebuilds = false;

	begin_ts += thread * PERIOD / server->thread_cnt + (done < 0.5 ? 0 : server->gap_ns);
	at = begin_ts;
	server->thread = thread;
	server->tid = thread ? MORE + 2 * (uint32_t)thread : SERVER;
	server->flusher_tid = thread ? server->tid + 1 : FLUSHER;

	if (done >= 0.60 && done < 0.68 && uniform(server) < 1 / 12.0) {
		lock_ns = (uint64_t)((4 + 3 * uniform(server)) * MS);
		run(server, at, at + 40 * US, sid, "_start;main;serve;parse");
		wait_for_lock(server, at + 40 * US, at + 40 * US + lock_ns, sid);
		at += 40 * US + lock_ns;
	} else if (uniform(server) < 1 / 130.0) {
		uint64_t ns = (uint64_t)((5 + 3 * uniform(server)) * MS);

		run(server, at, at + ns, sid, "_start;main;serve;" REBUILD ";compare");
		at += ns;
		rebuilds = true;
	}
	end_ts = at + (uint64_t)((60 + 80 * uniform(server)) * US);
	run(server, at, end_ts, sid, "_start;main;serve;reply");
	row_begin_interval(&server->to, sid, server->tid, at == begin_ts && number % 5 == 0 ? "tcp:81" : TYPE, begin_ts,
			   end_ts, lock_ns, 0);
	server->last_ts = end_ts > server->last_ts ? end_ts : server->last_ts;
	if (rebuilds)
		row_set_u64(&server->to, INTERVAL_CONTEXT, HANDED);
	row_end(&server->to, SHARD_TABLE_INTERVAL);
}

static void put_variable(struct row_writer *to, uint64_t id)
{
	char name[32] = "items";

	if (id > 1)
		snprintf(name, sizeof(name), "items_%llu", (unsigned long long)id);
	row_begin(to, SHARD_TABLE_VARIABLE);
	row_set_u64(to, VARIABLE_ID, id);
	row_set_str(to, VARIABLE_MODULE, "web");
	row_set_str(to, VARIABLE_FILE, "web.c");
	row_set_str(to, VARIABLE_FUNCTION, "serve");
	row_set_str(to, VARIABLE_NAME, name);
	row_set_str(to, VARIABLE_TYPE, "unsigned int");
	row_set_str(to, VARIABLE_KIND, "unsigned");
	row_set_u64(to, VARIABLE_SIZE, 4);
	row_set_str(to, VARIABLE_TAGS, "loop");
	row_end(to, SHARD_TABLE_VARIABLE);
}

/* What values and contexts refer to. */
static void put_tables(struct row_writer *to, uint64_t variable_cnt)
{
	for (uint64_t v = 1; v <= variable_cnt; v++)
		put_variable(to, v);
	row_begin(to, SHARD_TABLE_PLACE);
	row_set_u64(to, PLACE_ID, 1);
	row_set_str(to, PLACE_FUNCTION, "serve");
	row_end(to, SHARD_TABLE_PLACE);
	row_begin(to, SHARD_TABLE_CONTEXT);
	row_set_ts(to, CONTEXT_TS, 1000);
	row_set_u64(to, CONTEXT_ID, HANDED);
	row_set_str(to, CONTEXT_KIND, "socket");
	row_set_u64(to, CONTEXT_PID, SERVER);
	row_set_u64(to, CONTEXT_TID, SERVER);
	row_set_str(to, CONTEXT_FRAMES, "_start;main;fetch<b>");
	row_end(to, SHARD_TABLE_CONTEXT);
}

static void put_time(struct server *server, const char *key, uint64_t ts)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)ts);
	row_put_session(&server->to, key, text);
}

static void close_recording(struct server *server)
{
	put_time(server, "end_ts", server->last_ts);
	row_writer_close(&server->to);
}

static void open_recording(struct server *server, const char *dir, uint64_t session_id)
{
	row_writer_open(&server->to, dir, server->host, session_id, SERVER);
	row_put_session(&server->to, "comm", "web</title>");
	row_put_session(&server->to, "host", server->host);
	row_put_session(&server->to, "mono_anchor_ns", "0");
	row_put_session(&server->to, "wall_anchor_ns", "1795219200000000000"); /* 2026-11-21T00:00 */
	row_put_thread(&server->to, SERVER, SERVER, "web");
	row_put_thread(&server->to, SERVER, FLUSHER, FLUSHES);
	for (uint32_t thread = 1; thread < server->thread_cnt; thread++) {
		row_put_thread(&server->to, SERVER, MORE + 2 * thread, "web");
		row_put_thread(&server->to, SERVER, MORE + 2 * thread + 1, FLUSHES);
	}
	put_time(server, "begin_ts", server->last_ts);
	put_tables(&server->to, server->variable_cnt);
}

int main(int argc, char **argv)
{
	struct server server = {.state = 7, .thread_cnt = 1, .variable_cnt = 1, .host = "planted"};
	uint64_t cnt, session_id = 0x99;

	if (argc >= 4)
		server.thread_cnt = strtoull(argv[3], NULL, 10);
	if (argc >= 5)
		server.gap_ns = strtoull(argv[4], NULL, 10) * 1000 * MS;
	if (argc >= 6) {
		server.host = argv[5];
		session_id += 0x10;
	}
	if (argc >= 7)
		server.variable_cnt = strtoull(argv[6], NULL, 10);
	if (argc < 3 || argc > 7 || !server.thread_cnt || server.thread_cnt > THREADS) {
		fprintf(stderr, "usage: recording DIR REQUESTS [THREADS [GAP [HOST [VARIABLES]]]]\n");
		return 2;
	}
	cnt = strtoull(argv[2], NULL, 10);
	open_recording(&server, argv[1], session_id);
	for (uint64_t i = 0; i < cnt; i++) {
		if (server.gap_ns && i == (cnt + 1) / 2) {
			close_recording(&server);
			server.last_ts += server.gap_ns;
			open_recording(&server, argv[1], session_id + 1);
		}
		put_request(&server, i, cnt);
	}
	close_recording(&server);
	return 0;
}
