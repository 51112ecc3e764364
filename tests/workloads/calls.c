/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No server: two threads call handle_call() some hundred times a second, for intervals and calls from a symbol list.
 * Every request does the same, so that each interval has known calls in it:
 *
 *   call_leaf      9 times: 3 from the request, 2 from each of two call_mid, 2 while call_coroutine is suspended
 *   call_mid       twice, and sleeps in it
 *   call_recursing 6 times, one within another
 *   call_jumping   3 times, one within another, all of them left by longjmp
 *   call_deep      80 times, one within another
 *   call_coroutine twice, suspended half-way: on a stack that is mapped by itself, and on one within the thread's own
 *   call_on_signal once, in a signal's handler on its own stack
 *
 * Planted: the clock around the sleeps.
 */
#include "common.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define THREAD_CNT 2
#define DEEP       80
#define STACK_SZ   (64 << 10)
#define PROBED     __attribute__((noinline, noclone, used))

/* Not static: they have to be found by name. */
void call_leaf(int number);
uint64_t call_mid(uint64_t *random_state);
int call_recursing(int left);
void call_jumping(int left);
int call_deep(int left);
void call_coroutine(void);
void call_on_signal(int signal_no);
uint64_t handle_call(uint64_t *random_state);

static volatile int stay; /* never set */
static __thread jmp_buf landing;
static __thread ucontext_t request_context, coroutine_context;
static __thread char inner_stack[STACK_SZ] __attribute__((aligned(4096)));
static __thread char *outer_stack;
static __thread char signal_stack[STACK_SZ] __attribute__((aligned(4096)));

PROBED void call_leaf(int number)
{
	spin_work(2 * NS_PER_US);
	asm volatile("" : : "r"(number));
}

PROBED uint64_t call_mid(uint64_t *random_state)
{
	uint64_t start_ts;

	call_leaf(1);
	start_ts = clock_now_ns();
	sleep_for_ns(random_between(random_state, 100 * NS_PER_US, 900 * NS_PER_US));
	start_ts = clock_now_ns() - start_ts;
	call_leaf(2);
	return start_ts;
}

PROBED int call_recursing(int left)
{
	int below = left > 1 ? call_recursing(left - 1) : 0;

	asm volatile("" : "+r"(below));
	return below + 1;
}

PROBED void call_jumping(int left)
{
	asm volatile("" : "+r"(left));
	if (left)
		call_jumping(left - 1);
	else if (!stay)
		longjmp(landing, 1);
	asm volatile("");
}

PROBED int call_deep(int left)
{
	int below = left > 1 ? call_deep(left - 1) : 0;

	asm volatile("" : "+r"(below));
	return below + 1;
}

PROBED void call_coroutine(void)
{
	swapcontext(&coroutine_context, &request_context);
	asm volatile("");
}

static void coroutine_body(void)
{
	call_coroutine();
}

PROBED void call_on_signal(int signal_no)
{
	asm volatile("" : : "r"(signal_no));
}

static void use_coroutine(void *stack)
{
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = stack;
	coroutine_context.uc_stack.ss_size = STACK_SZ;
	coroutine_context.uc_link = &request_context;
	makecontext(&coroutine_context, coroutine_body, 0);
	swapcontext(&request_context, &coroutine_context);
	call_leaf(3);
	swapcontext(&request_context, &coroutine_context);
}

PROBED uint64_t handle_call(uint64_t *random_state)
{
	uint64_t slept_ns = 0;

	for (int i = 0; i < 3; i++)
		call_leaf(0);
	for (int i = 0; i < 2; i++)
		slept_ns += call_mid(random_state);
	call_recursing(6);
	if (!setjmp(landing))
		call_jumping(2);
	call_deep(DEEP);
	use_coroutine(outer_stack);
	use_coroutine(inner_stack);
	raise(SIGUSR1);
	return slept_ns;
}

static void *caller_body(void *arg)
{
	struct worker *worker = arg;
	char *mapped = mmap(NULL, STACK_SZ + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};

	if (mapped == MAP_FAILED || mprotect(mapped + 4096, STACK_SZ, PROT_READ | PROT_WRITE))
		abort();
	outer_stack = mapped + 4096;
	sigaltstack(&stack, NULL);
	thread_name("worker-%d", worker->idx);
	while (!run_stopped(worker->run)) {
		uint64_t start_ts = clock_now_ns(), slept_ns;

		slept_ns = handle_call(&worker->random_state);
		run_sample(worker->run, start_ts, clock_now_ns(), slept_ns);
		sleep_for_ns(random_between(&worker->random_state, 2 * NS_PER_MS, 6 * NS_PER_MS));
	}
	return NULL;
}

static int serve(struct run *run)
{
	static struct worker workers[THREAD_CNT];
	struct sigaction action = {.sa_handler = call_on_signal, .sa_flags = SA_ONSTACK};
	int err;

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < THREAD_CNT; i++) {
		workers[i].run = run;
		workers[i].idx = i;
		workers[i].random_state = clock_now_ns() * (uint64_t)(2 * i + 1);
		err = thread_start_named(&workers[i].thread, caller_body, &workers[i]);
		if (err)
			return err;
	}
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

static const struct workload workload = {
	.name = "calls",
	.category = "sleep",
	.rate_hz = 400,
	.default_duration_s = 6,
	.serve = serve,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
