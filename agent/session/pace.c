// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/pace.h"

#include "base/capabilities.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/priority.h"
#include "session/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS     25000000ULL
#define BACKLOG_MAX 0.25
/* From here on records are about to be lost, and the main thread does not wait for its turn. */
#define BACKLOG_URGENT 0.5

struct pace {
	struct pace_opts opts;
	pid_t main_tid;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t ending;
	bool end;
	_Atomic uint64_t due_ts;
	_Atomic uint64_t raised_cnt;
	/*
	 * The main thread's.  Never under the mutex: who lowers itself loses the CPU before it can unlock, and the
	 * second thread would wait for the one that it is there to raise.
	 */
	_Atomic enum pace_class class;
};

bool pace_is_late(uint64_t now, uint64_t due_ts, uint64_t patience_ns, double backlog)
{
	return (now > due_ts && now - due_ts >= patience_ns) || backlog > BACKLOG_MAX;
}

uint64_t pace_next_look(uint64_t now, uint64_t due_ts, uint64_t patience_ns)
{
	uint64_t late_ts = due_ts > UINT64_MAX - patience_ns ? UINT64_MAX : due_ts + patience_ns;

	return late_ts > now && late_ts - now < LOOK_NS ? late_ts : now + LOOK_NS;
}

/*
 * The main thread stores its class before it takes it, so a raise may come too early for it: it is repeated for as long
 * as the thread is late.  And one that comes too late takes a timed thread's class: PACE_RAISED makes it take it again.
 */
static void look(struct pace *pace)
{
	enum pace_class class = pace->class;
	double backlog = pace->opts.backlog(pace->opts.ctx);

	if (class == PACE_TIMED || !pace_is_late(monotonic_ns(), pace->due_ts, pace->opts.patience_ns, backlog))
		return;
	if ((backlog <= BACKLOG_URGENT || priority_prefer(pace->main_tid)) && priority_raise(pace->main_tid))
		return;
	pace->class = PACE_RAISED;
	if (class == PACE_IDLE)
		pace->raised_cnt++;
}

static void *watch(void *ctx)
{
	static const cap_value_t needed[] = {CAP_SYS_NICE};
	struct pace *pace = ctx;
	pid_t guard_pid;

	prctl(PR_SET_NAME, "whylate-pace");
	(void)capabilities_keep(needed, 1);
	/* It needs next to nothing, and that at once. */
	(void)priority_prefer(0);
	guard_pid = guard_start();
	if (guard_pid < 0)
		log_debug("a killed agent will take its hooks away as an idle task: %s", strerror(-guard_pid));
	pthread_mutex_lock(&pace->mutex);
	while (!pace->end) {
		uint64_t next = pace_next_look(monotonic_ns(), pace->due_ts, pace->opts.patience_ns);
		const struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};

		pthread_cond_timedwait(&pace->ending, &pace->mutex, &until);
		look(pace);
	}
	pthread_mutex_unlock(&pace->mutex);
	guard_end(guard_pid);
	return NULL;
}

static int start(struct pace *pace)
{
	pthread_condattr_t attr;
	int err;

	pthread_mutex_init(&pace->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pace->ending, &attr);
	pthread_condattr_destroy(&attr);
	/* Before this thread is lowered: the new one has its class. */
	err = pthread_create(&pace->thread, NULL, watch, pace);
	if (!err)
		return 0;
	pthread_cond_destroy(&pace->ending);
	pthread_mutex_destroy(&pace->mutex);
	return -err;
}

struct pace *pace__new(const struct pace_opts *opts)
{
	struct pace *pace = priority_can_return() ? calloc(1, sizeof(*pace)) : NULL;
	int err;

	if (!pace) {
		log_debug("the agent does not become an idle task: it could not stop being one");
		return NULL;
	}
	pace->opts = *opts;
	pace->main_tid = (pid_t)syscall(SYS_gettid);
	pace->due_ts = monotonic_ns();
	err = start(pace);
	if (err) {
		log_debug("the agent does not become an idle task: %s", strerror(-err));
		free(pace);
		return NULL;
	}
	err = priority_lower(0);
	if (!err)
		return pace;
	log_debug("cannot become an idle task: %s", strerror(-err));
	pace__free(pace);
	return NULL;
}

void pace__free(struct pace *pace)
{
	if (!pace)
		return;
	priority_raise(0);
	pthread_mutex_lock(&pace->mutex);
	pace->end = true;
	pthread_cond_signal(&pace->ending);
	pthread_mutex_unlock(&pace->mutex);
	pthread_join(pace->thread, NULL);
	pthread_cond_destroy(&pace->ending);
	pthread_mutex_destroy(&pace->mutex);
	free(pace);
}

void pace__rest(struct pace *pace, uint64_t due_ts, enum pace_class class)
{
	static int (*const take[])(pid_t tid) = {
		[PACE_IDLE] = priority_lower,
		[PACE_RAISED] = priority_raise,
		[PACE_TIMED] = priority_prefer,
	};

	if (!pace)
		return;
	pace->due_ts = due_ts;
	if (pace->class == class)
		return;
	pace->class = class;
	if (take[class](0))
		pace->class = PACE_RAISED;
}

void pace__allow(struct pace *pace, uint64_t until_ts)
{
	if (pace)
		pace->due_ts = until_ts;
}

uint64_t pace__raised(const struct pace *pace)
{
	return pace ? pace->raised_cnt : 0;
}
