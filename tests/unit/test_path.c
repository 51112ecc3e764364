// SPDX-License-Identifier: GPL-2.0-or-later
/* Hand-made schedules.  Thread 1 works for the interval unless told otherwise; times are small whole numbers. */
#include "graph_fixture.h"
#include "unit.h"

#include <errno.h>

#define SID  100
#define LOCK 0x1000

static void a_thread_of_its_own(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 20, 100, 1);

	fixture_segment(graph, 1, 0, 15, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 1, 15, 0);
	fixture_runnable(graph, 1, 15, 20, 0, 9, 90);
	fixture_segment(graph, 1, 20, 60, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 60, 70, WL_STATE_IRQ_TIMER, SID);
	fixture_runnable(graph, 1, 70, 90, SID, 9, 91);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, 0,
		       "queue@1<1 0-15; runq@1<90 15-20; oncpu@1 20-60; irq.timer@1 60-70; runq@1<91 70-90; "
		       "oncpu@1 90-100");
	graph__free(graph);
}

/*
 * VProfiler Figure 2: the interval begins on thread 1, but what it waits for in the end began before, elsewhere.  The
 * path is that of threads 2 and 3, and the segment in which the interval began is not on it.
 */
static void figure_2_leaves_out_the_first_segment(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 10, 10, 100, 1);

	interval.end_tid = 2;
	fixture_segment(graph, 1, 10, 40, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 40, 100, WL_STATE_BLOCKED_POLL, 0);
	fixture_lock_wait(graph, 2, 5, 70, 0, LOCK, 3);
	fixture_wakeup(graph, 2, 70, 3);
	fixture_segment(graph, 2, 70, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 3, 0, 80, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0, "lock@3<3#4096 10-70; oncpu@2 70-100");
	graph__free(graph);
}

/*
 * An event loop asks thread 5 for the interval, idles, works for another one, idles, gets the reply and goes on: all of
 * the time in between is thread 5's, whatever woke the loop meanwhile.
 */
static void an_event_loop_waits_for_the_reply(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 30, WL_STATE_BLOCKED_POLL, SID);
	fixture_wakeup(graph, 1, 30, 0);
	fixture_segment(graph, 1, 30, 40, WL_STATE_RUNNING, SID + 1);
	fixture_segment(graph, 1, 40, 80, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 1, 80, 0);
	fixture_segment(graph, 1, 80, 85, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 85, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 5, 0, 8, WL_STATE_BLOCKED_NET, 0);
	fixture_wakeup(graph, 5, 8, 0);
	fixture_segment(graph, 5, 8, 15, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 5, 15, 75, WL_STATE_BLOCKED_SLEEP, 0);
	fixture_segment(graph, 5, 75, 100, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 1, 8, 5, 9, SID);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 6, 29, 1, 31, SID + 1);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 5, 79, 1, 82, 0);
	fixture_expect(
		graph, &interval, 0,
		"oncpu@1 0-8; io.net@5<5 8-15; sleep@5<5 15-75; io.net@5<5 75-79; io.net@1 79-80; oncpu@1 80-85; "
		"oncpu@1 85-100");
	graph__free(graph);
}

/*
 * An event loop gives the interval to a worker, idles, works for another one, idles, is woken by the worker and goes
 * on: all of the time since it woke the worker is the worker's.
 */
static void an_event_loop_waits_for_its_worker(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 30, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 1, 30, 0);
	fixture_segment(graph, 1, 30, 40, WL_STATE_RUNNING, SID + 1);
	fixture_segment(graph, 1, 40, 80, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 1, 80, 5);
	fixture_segment(graph, 1, 80, 85, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 85, 100, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 5, 0, 9, 0, 0x40, 0);
	fixture_wakeup(graph, 5, 9, 1);
	fixture_segment(graph, 5, 9, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-10; io.net@5<5 10-80; oncpu@1 80-85; oncpu@1 85-100");
	graph__free(graph);
}

/*
 * The loop has others to serve, so that nobody wakes it while the worker is busy: the byte that the worker wrote to the
 * loop's pipe says that it was done.  What another worker wrote before the loop gave the interval away is older.
 */
static void a_busy_loop_reads_that_its_worker_is_done(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 90, WL_STATE_RUNNING, SID + 1);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 5, 0, 9, 0, 0x40, 0);
	fixture_wakeup(graph, 5, 9, 1);
	fixture_segment(graph, 5, 9, 70, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 6, 0, 100, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_UNIX, 6, 5, 1, 20, 0);
	fixture_handoff(graph, WL_HANDOFF_UNIX, 5, 70, 1, 89, 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-10; io.net@5<5 10-70; queue@1<1 70-90; oncpu@1 90-100");
	graph__free(graph);
}

/*
 * Another process, or the interrupt that its bytes came by, wakes the loop with another request: what this interval
 * waits for is not known.
 */
static void who_asks_for_another_explains_nothing(void)
{
	const struct graph_segment asks = {.end_ts = 100, .state = WL_STATE_RUNNING, .pid = 7};
	const struct graph_wakeup asked[] = {
		{.ts = 80, .waker_pid = 7, .waker_tid = 7},
		{.ts = 80, .context = WL_CONTEXT_SOFTIRQ},
	};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct graph *graph = graph__new();
		struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

		fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
		fixture_segment(graph, 1, 10, 80, WL_STATE_BLOCKED_POLL, 0);
		CU_ASSERT_EQUAL(graph__add_wakeup(graph, 1, &asked[i]), 0);
		fixture_segment(graph, 1, 80, 85, WL_STATE_RUNNING, SID + 1);
		fixture_segment(graph, 1, 85, 100, WL_STATE_RUNNING, SID);
		CU_ASSERT_EQUAL(graph__add_segment(graph, 7, &asks), 0);
		fixture_handoff(graph, WL_HANDOFF_SOCKET, 7, 79, 1, 81, SID + 1);
		fixture_expect(graph, &interval, 0, "oncpu@1 0-10; io.net@1 10-80; queue@1<1 80-85; oncpu@1 85-100");
		graph__free(graph);
	}
}

/* The same with a process that the loop forked for the interval (CGI); another one, forked for another, replies too. */
static void an_event_loop_waits_for_the_process_that_it_forked(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 30, WL_STATE_BLOCKED_POLL, SID);
	fixture_wakeup(graph, 1, 30, 6);
	fixture_segment(graph, 1, 30, 40, WL_STATE_RUNNING, SID + 1);
	fixture_segment(graph, 1, 40, 80, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 1, 80, 5);
	fixture_segment(graph, 1, 80, 85, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 85, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 5, 8, 15, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 5, 15, 75, WL_STATE_BLOCKED_SLEEP, 0);
	fixture_segment(graph, 5, 75, 100, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 6, 33, 60, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_FORK, 1, 8, 5, 8, 0);
	fixture_handoff(graph, WL_HANDOFF_FORK, 1, 33, 6, 33, 0);
	fixture_handoff(graph, WL_HANDOFF_PIPE, 6, 60, 1, 82, 0);
	fixture_handoff(graph, WL_HANDOFF_PIPE, 5, 79, 1, 82, 0);
	fixture_expect(
		graph, &interval, 0,
		"oncpu@1 0-8; io.net@5<5 8-15; sleep@5<5 15-75; io.net@5<5 75-79; io.net@1 79-80; oncpu@1 80-85; "
		"oncpu@1 85-100");
	graph__free(graph);
}

/*
 * A server behind it makes a thread for the connection, 5: what kept its creator, 6, is on the path; the history of
 * another thread that had the number before is not.
 */
static void what_a_thread_was_made_late_by_is_its_creators(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 90, WL_STATE_BLOCKED_NET, SID);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 5, 2, 4, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 5, 60, 95, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 6, 0, 20, WL_STATE_BLOCKED_SLEEP, 0);
	fixture_segment(graph, 6, 20, 100, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_FORK, 6, 60, 5, 60, 0);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 5, 88, 1, 91, 0);
	fixture_expect(graph, &interval, 0,
		       "oncpu@1 0-10; sleep@6<6 10-20; io.net@6<6 20-60; io.net@5<5 60-88; io.net@1 88-90; "
		       "oncpu@1 90-100");
	graph__free(graph);
}

/* Two threads that say to have made each other, at one moment. */
static void creators_in_circles_end(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 90, WL_STATE_BLOCKED_NET, SID);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 5, 60, 95, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 6, 60, 95, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_FORK, 6, 60, 5, 60, 0);
	fixture_handoff(graph, WL_HANDOFF_FORK, 5, 60, 6, 60, 0);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 5, 88, 1, 91, 0);
	fixture_expect(graph, &interval, PATH_GAP,
		       "oncpu@1 0-10; io.net@5<5 10-60; io.net@5<5 60-88; io.net@1 88-90; oncpu@1 90-100");
	graph__free(graph);
}

static void a_lock_is_blamed_on_its_holder(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 20, 80, SID, LOCK, 2);
	fixture_wakeup(graph, 1, 80, 2);
	fixture_runnable(graph, 1, 80, 85, SID, 7, 70);
	fixture_segment(graph, 1, 85, 100, WL_STATE_RUNNING, SID);
	/* The holder runs, is preempted, sleeps, runs: only what is done to it is not the lock's. */
	fixture_segment(graph, 2, 0, 30, WL_STATE_RUNNING, 0);
	fixture_runnable(graph, 2, 30, 50, 0, 8, 80);
	fixture_segment(graph, 2, 50, 60, WL_STATE_BLOCKED_SLEEP, 0);
	fixture_segment(graph, 2, 60, 90, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0,
		       "oncpu@1 0-20; lock@2<2#4096 20-30; runq@2<80#4096 30-50; lock@2<2#4096 50-60; "
		       "lock@2<2#4096 60-80; runq@1<70 80-85; oncpu@1 85-100");
	graph__free(graph);
}

/* 1 waits for a lock of 2, which waits for a lock of 3: each for its part. */
static void locks_behind_locks_are_followed(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 10, 90, SID, LOCK, 2);
	fixture_wakeup(graph, 1, 90, 2);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 0, 30, WL_STATE_RUNNING, 0);
	fixture_lock_wait(graph, 2, 30, 70, 0, LOCK + 1, 3);
	fixture_wakeup(graph, 2, 70, 3);
	fixture_segment(graph, 2, 70, 95, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 3, 0, 95, WL_STATE_RUNNING, 77);
	fixture_expect(graph, &interval, 0,
		       "oncpu@1 0-10; lock@2<2#4096 10-30; lock@3<3#4097 30-70; lock@2<2#4096 70-90; oncpu@1 90-100");
	graph__free(graph);
}

/* Thread 3 wakes it while 2 holds the lock and goes on holding it, until 4 has it. */
static void a_wakeup_in_vain_is_not_blamed(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_lock_wait(graph, 1, 0, 30, SID, LOCK, 2);
	fixture_wakeup(graph, 1, 30, 3);
	fixture_segment(graph, 1, 30, 32, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 32, 60, SID, LOCK, 2);
	fixture_wakeup(graph, 1, 60, 3);
	fixture_segment(graph, 1, 60, 62, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 62, 90, SID, LOCK, 4);
	fixture_wakeup(graph, 1, 90, 4);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 0, 100, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 3, 0, 100, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 4, 0, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0,
		       "lock@2<2#4096 0-30; oncpu@1 30-32; lock@3<3#4096 32-60; oncpu@1 60-62; lock@4<4#4096 62-90; "
		       "oncpu@1 90-100");
	graph__free(graph);
}

/* Thread 1 asks thread 5 of another process over a socket; that one waits for a lock of thread 6. */
static void a_request_is_followed_into_another_process(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 20, 90, WL_STATE_BLOCKED_NET, SID);
	fixture_wakeup(graph, 1, 90, 0);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 1, 18, 5, 26, 0);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 5, 85, 1, 92, 0);
	fixture_segment(graph, 5, 0, 22, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 5, 22, 0);
	fixture_runnable(graph, 5, 22, 25, 0, 9, 90);
	fixture_segment(graph, 5, 25, 40, WL_STATE_RUNNING, 0);
	fixture_lock_wait(graph, 5, 40, 80, 0, LOCK, 6);
	fixture_wakeup(graph, 5, 80, 6);
	fixture_segment(graph, 5, 80, 95, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 6, 0, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0,
		       "oncpu@1 0-20; io.net@5 20-22; runq@5<90 22-25; io.net@5<5 25-40; lock@6<6#4096 40-80; "
		       "io.net@5<5 80-85; io.net@1 85-90; oncpu@1 90-100");
	graph__free(graph);
}

/* It waits for a lock until thread 7, which polls for it, wakes it; then it reads what thread 5 has sent. */
static void a_thread_that_polls_for_others_is_not_blamed(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 20, 90, SID, LOCK, 0);
	fixture_wakeup(graph, 1, 90, 7);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 1, 18, 5, 26, 0);
	/* The call that sends it returns after it has arrived. */
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 5, 89, 1, 95, 0);
	fixture_segment(graph, 7, 0, 40, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 7, 40, 0);
	fixture_segment(graph, 7, 40, 45, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 7, 45, 88, WL_STATE_BLOCKED_POLL, 0);
	fixture_wakeup(graph, 7, 88, 0);
	fixture_segment(graph, 7, 88, 93, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 5, 0, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-20; io.net@5<5 20-88; lock@7<7#4096 88-90; oncpu@1 90-100");
	graph__free(graph);
}

static void a_queue_is_blamed_on_what_its_worker_did(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 5, 100, 1);

	interval.end_tid = 2;
	fixture_segment(graph, 1, 0, 5, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 5, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 100, WL_STATE_BLOCKED_POLL, 0);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 1, 9, 2, 70, SID);
	fixture_segment(graph, 2, 0, 30, WL_STATE_RUNNING, 55);
	fixture_runnable(graph, 2, 30, 40, 55, 9, 90);
	fixture_segment(graph, 2, 40, 70, WL_STATE_RUNNING, 55);
	fixture_segment(graph, 2, 70, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, 0,
		       "queue@1<1 0-5; oncpu@1 5-9; queue@2<2 9-30; runq@2<90 30-40; queue@2<2 40-70; oncpu@2 70-100");
	graph__free(graph);
}

/* A busy loop reads, a worker of its pool works, and the loop, which has served others meanwhile, replies. */
static void a_pool_gives_back_by_a_queue(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 5, 100, 1);

	fixture_segment(graph, 1, 0, 5, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 5, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 90, WL_STATE_RUNNING, 55);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 10, 70, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 1, 10, 2, 10, SID);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 2, 70, 1, 90, SID);
	fixture_expect(graph, &interval, 0,
		       "queue@1<1 0-5; oncpu@1 5-10; oncpu@2 10-70; queue@1<1 70-90; oncpu@1 90-100");
	graph__free(graph);
}

/* The loop takes a whole list of what is done: it is not known how it got most of them back. */
static void a_pool_gives_back_unseen(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 5, 100, 1);

	fixture_segment(graph, 1, 0, 5, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 1, 5, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 30, WL_STATE_BLOCKED_POLL, SID);
	fixture_segment(graph, 1, 30, 90, WL_STATE_RUNNING, 55);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 0, 15, WL_STATE_RUNNING, 44);
	fixture_segment(graph, 2, 15, 40, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 40, 80, WL_STATE_BLOCKED_FUTEX, SID);
	fixture_segment(graph, 3, 40, 70, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 1, 10, 2, 15, SID);
	fixture_expect(graph, &interval, 0,
		       "queue@1<1 0-5; oncpu@1 5-10; queue@2<2 10-15; oncpu@2 15-40; queue@1<1 40-90; oncpu@1 90-100");
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 2, 40, 3, 40, SID);
	fixture_expect(graph, &interval, 0,
		       "queue@1<1 0-5; oncpu@1 5-10; queue@2<2 10-15; oncpu@2 15-40; oncpu@3 40-70; "
		       "queue@1<1 70-90; oncpu@1 90-100");
	graph__free(graph);
}

/* An event loop puts the interval aside, serves another one, and comes back to it. */
static void another_interval_in_between_is_interference(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct path path = {0};

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 20, 80, WL_STATE_RUNNING, 55);
	fixture_segment(graph, 1, 80, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-20; queue@1<1 20-80; oncpu@1 80-100");
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	CU_ASSERT(path.steps.cnt == 3 && path.steps.items[1].sid == 55);
	path__clear(&path);
	graph__free(graph);
}

/* A wait for a lock runs into its timeout; the next wait is for `object`, and thread 5 ends it. */
static void expect_after_timeout(uint64_t object, const char *steps)
{
	const struct graph_wakeup timeout = {.ts = 50, .context = WL_CONTEXT_TIMER};
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 10, 50, SID, 0x4000, 0);
	CU_ASSERT_EQUAL(graph__add_wakeup(graph, 1, &timeout), 0);
	fixture_segment(graph, 1, 50, 52, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 52, 90, SID, object, 0);
	fixture_wakeup(graph, 1, 90, 5);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 5, 0, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0, steps);
	graph__free(graph);
}

static void a_wait_with_a_timeout_goes_on(void)
{
	/* For another word of the same condition variable: a retry. */
	expect_after_timeout(0x4008, "oncpu@1 0-10; lock@5<5#16384 10-50; oncpu@1 50-52; lock@5<5#16392 52-90; "
				     "oncpu@1 90-100");
	/* For another lock: what ended that wait did not end the first one. */
	expect_after_timeout(0x9000, "oncpu@1 0-10; lock@1#16384 10-50; oncpu@1 50-52; lock@5<5#36864 52-90; "
				     "oncpu@1 90-100");
}

static void pipes_wake_from_their_writer(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 10, 90, WL_STATE_BLOCKED_PIPE, SID);
	fixture_wakeup(graph, 1, 90, 4);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 4, 0, 50, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 4, 50, 80, WL_STATE_BLOCKED_DISK, 0);
	fixture_wakeup(graph, 4, 80, 0);
	fixture_segment(graph, 4, 80, 90, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0,
		       "oncpu@1 0-10; io.net@4<4 10-50; io.disk@4<4 50-80; io.net@4<4 80-90; oncpu@1 90-100");
	graph__free(graph);
}

static void a_disk_is_blamed_on_the_neighbour(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct graph_handoff request = {
		.from_ts = 10,
		.to_ts = 90,
		.queue_ns = 60,
		.service_ns = 20,
		.from_pid = FIXTURE_PID,
		.from_tid = 1,
		.to_pid = FIXTURE_PID,
		.to_tid = 1,
		.device = 8,
		.kind = WL_HANDOFF_BLOCK,
	};

	fixture_segment(graph, 1, 0, 12, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 12, 92, WL_STATE_BLOCKED_DISK, SID);
	fixture_wakeup(graph, 1, 92, 0);
	fixture_segment(graph, 1, 92, 100, WL_STATE_RUNNING, SID);
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &request), 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-12; io.disk@1 12-92; oncpu@1 92-100");
	/* Of somebody else, on another device, and on this one. */
	request = (struct graph_handoff){
		.from_ts = 0,
		.to_ts = 75,
		.service_ns = 65,
		.from_pid = 3,
		.from_tid = 33,
		.device = 9,
		.kind = WL_HANDOFF_BLOCK,
	};
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &request), 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-12; io.disk@1 12-92; oncpu@1 92-100");
	request.device = 8;
	CU_ASSERT_EQUAL(graph__add_handoff(graph, &request), 0);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-12; io.disk@1<33 12-92; oncpu@1 92-100");
	graph__free(graph);
}

/* Which request the thread waited for was not seen, only who had the disk meanwhile. */
static void a_disk_whose_request_nobody_saw(void)
{
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct graph *graph = graph__new();
	const struct graph_handoff bulk = {
		.to_ts = 70,
		.service_ns = 50,
		.device = 8,
		.from_pid = 33,
		.from_tid = 33,
		.kind = WL_HANDOFF_BLOCK,
	};
	const struct graph_handoff elsewhere = {
		.to_ts = 80,
		.service_ns = 5,
		.device = 9,
		.from_pid = 44,
		.from_tid = 44,
		.kind = WL_HANDOFF_BLOCK,
	};

	fixture_segment(graph, 1, 0, 12, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 12, 92, WL_STATE_BLOCKED_DISK, SID);
	fixture_segment(graph, 1, 92, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, PATH_NO_EDGE, "oncpu@1 0-12; io.disk@1 12-92; oncpu@1 92-100");
	CU_ASSERT(!graph__add_handoff(graph, &bulk));
	fixture_expect(graph, &interval, PATH_NO_EDGE, "oncpu@1 0-12; io.disk@1<33 12-92; oncpu@1 92-100");
	/* With a second disk in use it may have been either. */
	CU_ASSERT(!graph__add_handoff(graph, &elsewhere));
	fixture_expect(graph, &interval, PATH_NO_EDGE, "oncpu@1 0-12; io.disk@1 12-92; oncpu@1 92-100");
	graph__free(graph);
}

static void a_new_thread_is_followed_to_its_parent(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	interval.end_tid = 2;
	fixture_segment(graph, 1, 0, 40, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_FORK, 1, 40, 2, 45, 0);
	fixture_segment(graph, 2, 45, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, PATH_GAP, "oncpu@1 0-40; queue@2 40-45; oncpu@2 45-100");
	graph__free(graph);
}

static void a_moved_interval_without_an_edge_is_inferred(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct path path = {0};

	interval.end_tid = 2;
	fixture_segment(graph, 1, 0, 40, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 40, 100, WL_STATE_RUNNING, 55);
	fixture_segment(graph, 2, 0, 60, WL_STATE_RUNNING, 56);
	fixture_segment(graph, 2, 60, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-40; queue@2<2 40-60; oncpu@2 60-100");
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	CU_ASSERT_EQUAL(path.steps.items[0].certainty, WL_CERTAINTY_INFERRED);
	CU_ASSERT_EQUAL(path.steps.items[2].certainty, WL_CERTAINTY_OBSERVED);
	path__clear(&path);
	graph__free(graph);
}

/* Without a single sid: the thread that picked it up is taken to work for it from then on. */
static void segments_without_a_sid_belong_to_the_pickup(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 10, 30, 100, 1);

	fixture_segment(graph, 1, 0, 100, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, 0, "queue@1<1 10-30; oncpu@1 30-100");
	graph__free(graph);
}

/* A goroutine waits for the thread that another one has; what has that thread's CPU meanwhile is to blame. */
static void a_goroutine_waits_for_a_thread_that_is_preempted(void)
{
	enum { FIRST = WL_GOROUTINE_TID + 1, SECOND };
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, FIRST);

	interval.end_tid = SECOND;
	fixture_segment(graph, FIRST, 0, 10, WL_STATE_RUNNING, SID);
	fixture_segment(graph, FIRST, 10, 15, WL_STATE_RUNNING, 0);
	fixture_runnable(graph, FIRST, 15, 70, 0, 9, 90);
	fixture_segment(graph, FIRST, 70, 75, WL_STATE_RUNNING, 0);
	fixture_segment(graph, FIRST, 75, 80, WL_STATE_RUNNING, 0);
	fixture_segment(graph, FIRST, 80, 80, WL_STATE_RUNNING, 0);
	fixture_runnable(graph, SECOND, 10, 80, SID, FIXTURE_PID, FIRST);
	fixture_segment(graph, SECOND, 80, 100, WL_STATE_RUNNING, SID);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, FIRST, 10, SECOND, 10, SID);
	fixture_expect(graph, &interval, 0,
		       "oncpu@4194305 0-10; runq@4194306<4194305 10-15; runq@4194306<90 15-70; "
		       "runq@4194306<4194305 70-80; oncpu@4194306 80-100");
	graph__free(graph);
}

/* The goroutine that reads the answer waits for a thread since before the pickup, and until after it. */
static void a_goroutine_waits_to_read_an_answer_across_the_pickup(void)
{
	enum { FIRST = WL_GOROUTINE_TID + 1, SECOND };
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 30, 100, FIRST);

	interval.end_tid = SECOND;
	fixture_segment(graph, SECOND, 0, 20, WL_STATE_BLOCKED_NET, 0);
	fixture_wakeup(graph, SECOND, 20, 0);
	fixture_runnable(graph, SECOND, 20, 60, 0, 9, 90);
	fixture_segment(graph, SECOND, 60, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 7, 0, 15, WL_STATE_RUNNING, 0);
	fixture_handoff(graph, WL_HANDOFF_SOCKET, 7, 15, SECOND, 60, 0);
	fixture_expect(graph, &interval, 0,
		       "io.net@7<7 0-15; io.net@4194306 15-20; runq@4194306<90 20-60; "
		       "oncpu@4194306 60-100");
	graph__free(graph);
}

static void an_ambiguous_edge_taints_what_is_behind_it(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct graph_wakeup wakeup = {
		.ts = 80,
		.waker_pid = FIXTURE_PID,
		.waker_tid = 2,
		.context = WL_CONTEXT_TASK,
		.certainty = WL_CERTAINTY_AMBIGUOUS,
	};
	struct path path = {0};

	fixture_lock_wait(graph, 1, 0, 80, SID, LOCK, 0);
	CU_ASSERT_EQUAL(graph__add_wakeup(graph, 1, &wakeup), 0);
	fixture_segment(graph, 1, 80, 100, WL_STATE_RUNNING, SID);
	fixture_runnable(graph, 2, 0, 80, 0, 9, 90);
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	fixture_partitions(&path, &interval);
	CU_ASSERT_EQUAL(path.flags, PATH_AMBIGUOUS);
	CU_ASSERT(path.steps.cnt == 2 && path.steps.items[0].category == WL_CATEGORY_RUNQ);
	CU_ASSERT_EQUAL(path.steps.items[0].certainty, WL_CERTAINTY_AMBIGUOUS);
	CU_ASSERT_EQUAL(path.steps.items[0].sure, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(path.steps.items[0].wait, WL_CATEGORY_LOCK);
	CU_ASSERT_EQUAL(path.steps.items[1].certainty, WL_CERTAINTY_OBSERVED);
	path__clear(&path);
	graph__free(graph);
}

static void a_recording_that_begins_or_ends_meanwhile_says_so(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 10, 100, 1);
	struct path path = {0};

	/* Nothing at all. */
	fixture_expect(graph, &interval, PATH_GAP, "queue@1 0-10; other@1 10-100");
	interval.end_tid = 2;
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	CU_ASSERT(path.steps.cnt == 2 && path.steps.items[1].tid == 2 && path.steps.items[1].pid == FIXTURE_PID);
	path__clear(&path);
	interval.end_tid = 1;
	/* It begins at 40 and ends at 70. */
	fixture_segment(graph, 1, 40, 60, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 60, 70, WL_STATE_BLOCKED_NET, SID);
	fixture_expect(graph, &interval, PATH_GAP | PATH_NO_EDGE,
		       "queue@1 0-10; other@1 10-40; oncpu@1 40-60; io.net@1 60-70; other@1 70-100");
	graph__free(graph);
}

static void a_hole_in_the_middle_is_other(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 30, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 60, 80, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 80, 90, WL_STATE_UNKNOWN, SID);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, PATH_GAP,
		       "oncpu@1 0-30; other@1 30-60; oncpu@1 60-80; other@1 80-90; oncpu@1 90-100");
	interval.flags = WL_INTERVAL_LOSSY;
	fixture_expect(graph, &interval, PATH_GAP | PATH_LOSSY,
		       "oncpu@1 0-30; other@1 30-60; oncpu@1 60-80; other@1 80-90; oncpu@1 90-100");
	graph__free(graph);
}

/* The waker's history is missing: it is to blame, whatever it did. */
static void a_waker_without_a_history_is_still_the_culprit(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_lock_wait(graph, 1, 0, 80, SID, LOCK, 0);
	fixture_wakeup(graph, 1, 80, 2);
	fixture_segment(graph, 1, 80, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, 0, "lock@1<2#4096 0-80; oncpu@1 80-100");
	/* And where half of it is there: */
	fixture_segment(graph, 2, 40, 90, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, PATH_GAP, "lock@2<2#4096 0-40; lock@2<2#4096 40-80; oncpu@1 80-100");
	graph__free(graph);
}

static void a_tid_that_is_used_again_is_another_thread(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 50, 100, 1);
	struct graph_segment other = {.begin_ts = 0, .end_ts = 40, .pid = 999, .state = WL_STATE_RUNNING};

	/* Of another process. */
	CU_ASSERT_EQUAL(graph__add_segment(graph, 1, &other), 0);
	fixture_segment(graph, 1, 50, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, PATH_GAP, "queue@1 0-50; oncpu@1 50-100");
	graph__free(graph);

	/* Of the same process, in which one ended and another began at the very same time. */
	graph = graph__new();
	fixture_segment(graph, 1, 0, 50, WL_STATE_RUNNING, 7);
	fixture_segment(graph, 1, 50, 100, WL_STATE_RUNNING, SID);
	CU_ASSERT_EQUAL(graph__add_exit(graph, 1, 50), 0);
	fixture_expect(graph, &interval, PATH_GAP, "queue@1 0-50; oncpu@1 50-100");
	/* Its own exit, at the end of the interval, is none. */
	CU_ASSERT_EQUAL(graph__add_exit(graph, 1, 100), 0);
	fixture_expect(graph, &interval, PATH_GAP, "queue@1 0-50; oncpu@1 50-100");
	graph__free(graph);
}

/* Of the waker nothing is known but that it woke; what is known of its tid was another process's. */
static void what_a_former_tid_did_explains_nothing(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct graph_segment other = {.begin_ts = 0, .end_ts = 60, .pid = 999, .state = WL_STATE_RUNNING};

	fixture_lock_wait(graph, 1, 0, 80, SID, LOCK, 0);
	fixture_wakeup(graph, 1, 80, 2);
	fixture_segment(graph, 1, 80, 100, WL_STATE_RUNNING, SID);
	CU_ASSERT_EQUAL(graph__add_segment(graph, 2, &other), 0);
	fixture_expect(graph, &interval, 0, "lock@1<2#4096 0-80; oncpu@1 80-100");
	/* And where its own begins: */
	fixture_segment(graph, 2, 70, 90, WL_STATE_RUNNING, 0);
	fixture_expect(graph, &interval, PATH_GAP, "lock@2<2#4096 0-70; lock@2<2#4096 70-80; oncpu@1 80-100");
	graph__free(graph);
}

/* Two threads that woke each other at one and the same tick of the clock. */
static void a_loop_ends_the_walk(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);

	fixture_segment(graph, 1, 0, 10, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 10, 80, SID, LOCK, 0);
	fixture_wakeup(graph, 1, 80, 2);
	fixture_segment(graph, 1, 80, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 0, 30, WL_STATE_RUNNING, 0);
	fixture_lock_wait(graph, 2, 30, 80, 0, LOCK, 0);
	fixture_wakeup(graph, 2, 80, 1);
	fixture_expect(graph, &interval, PATH_LOOP,
		       "oncpu@1 0-10; lock@2<2#4096 10-30; other@2#4096 30-80; oncpu@1 80-100");
	graph__free(graph);

	/* Hand-offs in a circle, without any time in between. */
	graph = graph__new();
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 2, 50, 1, 50, SID);
	fixture_handoff(graph, WL_HANDOFF_QUEUE, 1, 50, 2, 50, SID);
	fixture_segment(graph, 1, 50, 100, WL_STATE_RUNNING, SID);
	fixture_expect(graph, &interval, PATH_LOOP, "other@1 0-50; oncpu@1 50-100");
	graph__free(graph);
}

static void a_chain_that_is_too_deep_ends_the_walk(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 1000, 1);
	struct path path = {0};

	/* Everybody waits for the next one all the time. */
	for (uint32_t tid = 1; tid <= 2 * PATH_DEPTH_MAX; tid++) {
		fixture_lock_wait(graph, tid, 0, 1000 - tid, tid == 1 ? SID : 0, LOCK + tid, 0);
		fixture_wakeup(graph, tid, 1000 - tid, tid + 1);
		fixture_segment(graph, tid, 1000 - tid, 1000, WL_STATE_RUNNING, tid == 1 ? SID : 0);
	}
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	fixture_partitions(&path, &interval);
	CU_ASSERT_EQUAL(path.flags, PATH_TOO_LONG);
	CU_ASSERT_EQUAL(path.steps.items[0].category, WL_CATEGORY_OTHER);
	CU_ASSERT_EQUAL(path.steps.cnt, PATH_DEPTH_MAX + 1);
	path__clear(&path);
	graph__free(graph);
}

static void a_path_that_is_too_long_ends_the_walk(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, PATH_STEPS_MAX + 5000, 1);
	struct path path = {0};

	for (uint64_t ts = 0; ts < interval.end_ts; ts++)
		fixture_segment(graph, 1, ts, ts + 1, ts % 2 ? WL_STATE_RUNNING : WL_STATE_IRQ_HARD, SID);
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	fixture_partitions(&path, &interval);
	CU_ASSERT_EQUAL(path.flags, PATH_TOO_LONG);
	CU_ASSERT(path.steps.cnt <= PATH_STEPS_MAX);
	CU_ASSERT_EQUAL(path.steps.items[0].category, WL_CATEGORY_OTHER);
	path__clear(&path);
	graph__free(graph);
}

static void clock_ties_lose_no_time(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 50, 50, 50, 1);

	/* Begun and ended within one tick. */
	fixture_expect(graph, &interval, 0, "");
	/* Segments that overlap, because two clocks disagree: the later one holds. */
	interval = fixture_interval(SID, 0, 0, 100, 1);
	fixture_segment(graph, 1, 0, 60, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 50, 100, WL_STATE_IRQ_HARD, SID);
	fixture_wakeup(graph, 1, 50, 2);
	fixture_expect(graph, &interval, 0, "oncpu@1 0-50; irq.hard@1 50-100");
	interval.pickup_ts = 200;
	CU_ASSERT_EQUAL(path_walk(&(struct path){0}, graph, &interval), -EINVAL);
	graph__free(graph);
}

/* One step per state, however long it lasted. */
static void minutes_of_waiting_are_one_step(void)
{
	struct graph *graph = graph__new();
	uint64_t minutes_ns = 5 * 60 * 1000000000ULL;
	struct graph_interval interval = fixture_interval(SID, 0, 10, minutes_ns, 1);
	struct path path = {0};

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 20, minutes_ns - 10, WL_STATE_BLOCKED_SLEEP, SID);
	fixture_wakeup(graph, 1, minutes_ns - 10, 0);
	fixture_segment(graph, 1, minutes_ns - 10, minutes_ns, WL_STATE_RUNNING, SID);
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	fixture_partitions(&path, &interval);
	CU_ASSERT(path.steps.cnt == 3 && path.steps.items[1].category == WL_CATEGORY_SLEEP && !path.flags);
	path__clear(&path);
	graph__free(graph);
}

static void the_edges_of_a_path_can_be_told(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(SID, 0, 0, 100, 1);
	struct path path = {0};

	fixture_segment(graph, 1, 0, 20, WL_STATE_RUNNING, SID);
	fixture_lock_wait(graph, 1, 20, 50, SID, LOCK, 2);
	fixture_wakeup(graph, 1, 50, 2);
	fixture_segment(graph, 1, 50, 60, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 1, 60, 90, WL_STATE_BLOCKED_NET, SID);
	fixture_wakeup(graph, 1, 90, 0);
	fixture_handoff(graph, WL_HANDOFF_UNIX, 3, 80, 1, 92, 0);
	fixture_segment(graph, 1, 90, 100, WL_STATE_RUNNING, SID);
	fixture_segment(graph, 2, 0, 100, WL_STATE_RUNNING, 0);
	fixture_segment(graph, 3, 0, 100, WL_STATE_RUNNING, 0);
	CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
	CU_ASSERT_EQUAL_FATAL(path.edges.cnt, 2);
	CU_ASSERT(path.edges.items[0].handoff && path.edges.items[0].handoff->from_tid == 3);
	CU_ASSERT(path.edges.items[1].wakeup && path.edges.items[1].wakeup->waker_tid == 2);
	CU_ASSERT(path.edges.items[1].tid == 1 && path.edges.items[1].depth == 0);
	path__clear(&path);
	graph__free(graph);
}

int suite_path(void)
{
	static const struct unit_test tests[] = {
		{"a thread of its own", a_thread_of_its_own},
		{"an event loop waits for the reply", an_event_loop_waits_for_the_reply},
		{"a wait with a timeout goes on", a_wait_with_a_timeout_goes_on},
		{"an event loop waits for its worker", an_event_loop_waits_for_its_worker},
		{"a busy loop reads that its worker is done", a_busy_loop_reads_that_its_worker_is_done},
		{"who asks for another explains nothing", who_asks_for_another_explains_nothing},
		{"an event loop waits for the process that it forked",
		 an_event_loop_waits_for_the_process_that_it_forked},
		{"what a thread was made late by is its creator's", what_a_thread_was_made_late_by_is_its_creators},
		{"creators in circles end", creators_in_circles_end},
		{"figure 2 leaves out the first segment", figure_2_leaves_out_the_first_segment},
		{"a lock is blamed on its holder", a_lock_is_blamed_on_its_holder},
		{"locks behind locks are followed", locks_behind_locks_are_followed},
		{"a wake-up in vain is not blamed", a_wakeup_in_vain_is_not_blamed},
		{"a request is followed into another process", a_request_is_followed_into_another_process},
		{"a thread that polls for others is not blamed", a_thread_that_polls_for_others_is_not_blamed},
		{"a pool gives back by a queue", a_pool_gives_back_by_a_queue},
		{"a pool gives back unseen", a_pool_gives_back_unseen},
		{"a queue is blamed on what its worker did", a_queue_is_blamed_on_what_its_worker_did},
		{"another interval in between is interference", another_interval_in_between_is_interference},
		{"pipes wake from their writer", pipes_wake_from_their_writer},
		{"a disk is blamed on the neighbour", a_disk_is_blamed_on_the_neighbour},
		{"a disk whose request nobody saw", a_disk_whose_request_nobody_saw},
		{"a new thread is followed to its parent", a_new_thread_is_followed_to_its_parent},
		{"a moved interval without an edge is inferred", a_moved_interval_without_an_edge_is_inferred},
		{"segments without a sid belong to the pick-up", segments_without_a_sid_belong_to_the_pickup},
		{"a goroutine waits for a thread that is preempted", a_goroutine_waits_for_a_thread_that_is_preempted},
		{"a goroutine waits to read an answer across the pickup",
		 a_goroutine_waits_to_read_an_answer_across_the_pickup},
		{"an ambiguous edge taints what is behind it", an_ambiguous_edge_taints_what_is_behind_it},
		{"a recording that begins or ends meanwhile says so",
		 a_recording_that_begins_or_ends_meanwhile_says_so},
		{"a hole in the middle is other", a_hole_in_the_middle_is_other},
		{"a waker without a history is still the culprit", a_waker_without_a_history_is_still_the_culprit},
		{"a tid that is used again is another thread", a_tid_that_is_used_again_is_another_thread},
		{"what a former tid did explains nothing", what_a_former_tid_did_explains_nothing},
		{"a loop ends the walk", a_loop_ends_the_walk},
		{"a chain that is too deep ends the walk", a_chain_that_is_too_deep_ends_the_walk},
		{"a path that is too long ends the walk", a_path_that_is_too_long_ends_the_walk},
		{"clock ties lose no time", clock_ties_lose_no_time},
		{"minutes of waiting are one step", minutes_of_waiting_are_one_step},
		{"the edges of a path can be told", the_edges_of_a_path_can_be_told},
	};

	return unit_suite("path", tests, sizeof(tests) / sizeof(tests[0]));
}
