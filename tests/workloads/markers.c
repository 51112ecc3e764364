/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intervals by the markers of whylate/annotate.h, in a program without any socket: `producer` makes a task every two
 * milliseconds or so and puts it into a queue, one of three threads takes it out and works on it; 3 % of the tasks wait
 * for some milliseconds.  Planted: the clock around that wait.
 */
#include "common.h"

#include <whylate/annotate.h>

#include <errno.h>

#define WORKER_CNT 3
#define TASK_CNT   64

struct task {
	uint64_t made_ts;
	int is_slow;
	atomic_int open;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct task *tasks[TASK_CNT];
	unsigned int head, tail;
	int closed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static struct task *task_take(void)
{
	struct task *task = NULL;

	pthread_mutex_lock(&queue.lock);
	while (queue.head == queue.tail && !queue.closed)
		pthread_cond_wait(&queue.filled, &queue.lock);
	if (queue.head != queue.tail)
		task = queue.tasks[queue.head++ % TASK_CNT];
	pthread_mutex_unlock(&queue.lock);
	return task;
}

static void task_put(struct task *task)
{
	pthread_mutex_lock(&queue.lock);
	if (task)
		queue.tasks[queue.tail++ % TASK_CNT] = task;
	else
		queue.closed = 1;
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

static void *worker_body(void *arg)
{
	struct worker *worker = arg;
	struct task *task;

	thread_name("worker-%d", worker->idx);
	while ((task = task_take())) {
		uint64_t slept_ns = 0, start_ts;

		WHYLATE_WORK(task);
		burn(50 * NS_PER_US);
		if (task->is_slow) {
			start_ts = clock_now_ns();
			sleep_for_ns(random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS));
			slept_ns = clock_now_ns() - start_ts;
		}
		run_sample(worker->run, task->made_ts, clock_now_ns(), slept_ns);
		WHYLATE_END(task);
		atomic_store(&task->open, 0);
	}
	return NULL;
}

/*
 * A marker among variables that a leaf function keeps below the stack pointer, where the kernel must not write: the sum
 * of 0 to 13 and 14 times the number.
 */
static __attribute__((noinline)) unsigned int take_number(struct task *task, unsigned int number)
{
	volatile unsigned int kept[14];
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 14; i++)
		kept[i] = number + i;
	WHYLATE_BEGIN(task);
	for (unsigned int i = 0; i < 14; i++)
		sum += kept[i];
	return sum;
}

static int serve(struct run *run)
{
	static struct worker workers[WORKER_CNT];
	static struct task tasks[TASK_CNT];
	uint64_t random_state = clock_now_ns();

	thread_name("producer");
	for (int i = 0; i < WORKER_CNT; i++) {
		int err;

		workers[i].run = run;
		workers[i].idx = i;
		workers[i].random_state = clock_now_ns() * (uint64_t)(2 * i + 1);
		err = thread_start_named(&workers[i].thread, worker_body, &workers[i]);
		if (err)
			return err;
	}
	for (unsigned int i = 0; !run_stopped(run); i++) {
		struct task *task = &tasks[i % TASK_CNT];

		sleep_for_ns(random_between(&random_state, NS_PER_MS, 3 * NS_PER_MS));
		if (atomic_load(&task->open))
			continue;
		atomic_store(&task->open, 1);
		task->is_slow = random_next(&random_state) % 1000 < 30;
		task->made_ts = clock_now_ns();
		if (take_number(task, i) != 14 * i + 91) {
			fprintf(stderr, "a marker's probe has overwritten variables\n");
			return -EFAULT;
		}
		burn(20 * NS_PER_US);
		task_put(task);
	}
	task_put(NULL);
	for (int i = 0; i < WORKER_CNT; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

static const struct workload workload = {
	.name = "markers",
	.category = "sleep",
	.rate_hz = 500,
	.default_duration_s = 6,
	.serve = serve,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
