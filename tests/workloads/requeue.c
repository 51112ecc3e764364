/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A condition whose waiters are moved to a lock: some four times a second, `keeper` shuts a gate for some milliseconds,
 * opens it with FUTEX_CMP_REQUEUE, which puts all who wait for it into the queue of `gate_lock`, and keeps that lock
 * for longer still.  They never see themselves that it is another futex that they wait for.  Planted: from the first
 * look at the gate until the lock is there.
 */
#include "common.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FREE      0
#define TAKEN     1
#define CONTENDED 2

/* Not static: a report may name it. */
extern atomic_uint gate_lock;
atomic_uint gate_lock;
static atomic_uint gate_shut, gate_turn;

static long futex(atomic_uint *word, int op, unsigned int value, unsigned long limit, atomic_uint *other,
		  unsigned int compared)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, other, compared);
}

static bool take_if_free(void)
{
	unsigned int was = FREE;

	return atomic_compare_exchange_strong(&gate_lock, &was, TAKEN);
}

/* As whoever was moved to the lock's queue has to: others may be in it. */
static void take_contended(void)
{
	while (atomic_exchange(&gate_lock, CONTENDED) != FREE)
		futex(&gate_lock, FUTEX_WAIT, CONTENDED, 0, NULL, 0);
}

static void give_back(void)
{
	if (atomic_exchange(&gate_lock, FREE) == CONTENDED)
		futex(&gate_lock, FUTEX_WAKE, 1, 0, NULL, 0);
}

static void *keeper_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();
	unsigned int turn;

	thread_name("keeper");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		atomic_store(&gate_shut, 1);
		sleep_for_ns(6 * NS_PER_MS);
		take_contended();
		atomic_store(&gate_shut, 0);
		turn = atomic_fetch_add(&gate_turn, 1) + 1;
		futex(&gate_turn, FUTEX_CMP_REQUEUE, 0, INT_MAX, &gate_lock, turn);
		sleep_for_ns(random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS));
		give_back();
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, keeper_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, waited_ns;
	unsigned int turn;

	(void)worker;
	(void)request;
	spin_work(100 * NS_PER_US);
	start_ts = clock_now_ns();
	for (;;) {
		turn = atomic_load(&gate_turn);
		if (!atomic_load(&gate_shut))
			break;
		futex(&gate_turn, FUTEX_WAIT, turn, 0, NULL, 0);
	}
	if (!take_if_free())
		take_contended();
	waited_ns = clock_now_ns() - start_ts;
	spin_work(2 * NS_PER_US);
	give_back();
	return waited_ns;
}

static void report(const struct run *run, FILE *out)
{
	(void)run;
	fprintf(out, ",\"lock\":\"requeue:gate_lock\"");
}

static const struct workload workload = {
	.name = "requeue",
	.category = "lock",
	.culprit_comm = "keeper",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.server_start = server_start,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
