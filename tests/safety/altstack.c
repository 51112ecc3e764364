/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals on alternate stacks, a thousand a second, in the midst of chains of functions: the handler calls the same
 * functions on its own stack, and every so often does not return but jumps back to where the round began.
 */
#include "safety.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { ALT_STACK_SZ = 256 * 1024 };

static __thread sigjmp_buf home;
static __thread volatile sig_atomic_t may_jump, handled_cnt;

KEPT static uint64_t leaf(uint64_t x)
{
	for (int i = 0; i < 50; i++)
		x = safety_mix(x + (uint64_t)i);
	return x;
}

KEPT static uint64_t branch(uint64_t x)
{
	uint64_t sum = leaf(x);

	return sum ^ leaf(x + 1);
}

KEPT static uint64_t trunk(uint64_t x, int depth)
{
	uint64_t sum = depth ? trunk(x + 2, depth - 1) : 0;

	return sum + branch(x);
}

static uint64_t plain_leaf(uint64_t x)
{
	for (int i = 0; i < 50; i++)
		x = safety_mix(x + (uint64_t)i);
	return x;
}

static uint64_t expected(uint64_t x, int depth)
{
	uint64_t sum = 0;

	for (; depth >= 0; depth--, x += 2)
		sum += plain_leaf(x) ^ plain_leaf(x + 1);
	return sum;
}

KEPT static void on_tick(int signal_no)
{
	uint64_t x = (uint64_t)++handled_cnt;

	(void)signal_no;
	safety_check(trunk(x, 3) == expected(x, 3), "a result in the handler");
	if (may_jump && handled_cnt % 7 == 0) {
		may_jump = 0;
		siglongjmp(home, 1);
	}
}

KEPT static void one_round(uint64_t x)
{
	if (sigsetjmp(home, 1)) {
		safety_check(!may_jump, "a jump that was not allowed");
		return;
	}
	may_jump = 1;
	for (uint64_t i = 0; i < 20; i++)
		safety_check(trunk(x + i, 8) == expected(x + i, 8), "a result of %llx", (unsigned long long)(x + i));
	may_jump = 0;
}

static void *thread_body(void *seed)
{
	struct itimerspec every_ms = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
	stack_t stack = {.ss_sp = malloc(ALT_STACK_SZ), .ss_size = ALT_STACK_SZ};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	timer_t timer;

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &every_ms, NULL)) {
		safety_check(false, "no timer: %s", strerror(errno));
		return NULL;
	}
	for (uint64_t i = (uintptr_t)seed; safety_goes_on(); i += 64) {
		one_round(i);
		safety_sleep_us(500);
	}
	timer_delete(timer);
	safety_check(handled_cnt > 10, "only %d signals", (int)handled_cnt);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
	pthread_t other;

	sigaction(SIGUSR1, &action, NULL);
	safety_begin(argc, argv);
	if (pthread_create(&other, NULL, thread_body, (void *)1))
		return 1;
	thread_body((void *)2);
	pthread_join(other, NULL);
	return safety_verdict();
}
