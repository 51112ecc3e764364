// SPDX-License-Identifier: GPL-2.0-or-later
/* The second thread of the witness: holds locks, wakes, takes the CPU away, interrupts. */
#include "base/clock.h"
#include "selftest/scene.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INTERRUPTS 20

static void nap_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* The peer has done its part before the call, or five seconds are over. */
static bool scene_wait_for(_Atomic bool *flag)
{
	uint64_t limit_ts = monotonic_ns() + 5000000000ULL;

	while (!atomic_load(flag)) {
		if (monotonic_ns() > limit_ts)
			return false;
		nap_ns(200000);
	}
	return true;
}

static void run_on(int cpu, int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, policy, &param);
}

static void hog(struct scene *scene)
{
	run_on(scene->own_cpu, SCHED_FIFO, 2);
	atomic_store(&scene->peer_ready, true);
	scene_wait_for(&scene->called);
	scene->begin_ts = monotonic_ns();
	do {
		scene->wake_ts = monotonic_ns();
	} while (scene->wake_ts - scene->begin_ts < DEED_WAIT_NS);
}

static void interrupt(struct scene *scene)
{
	run_on(scene->other_cpu, SCHED_FIFO, 1);
	atomic_store(&scene->peer_ready, true);
	scene_wait_for(&scene->called);
	for (int i = 0; i < INTERRUPTS; i++) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		nap_ns(100000);
	}
}

static ssize_t write_byte(const struct scene *scene, int fd)
{
	(void)scene;
	return write(fd, "w", 1);
}

static void wake_by(struct scene *scene, ssize_t (*send_byte)(const struct scene *scene, int fd), int fd)
{
	atomic_store(&scene->peer_ready, true);
	scene_wait_for(&scene->called);
	nap_ns(DEED_WAIT_NS);
	scene->wake_ts = monotonic_ns();
	if (send_byte(scene, fd) != 1)
		scene->wake_ts = 0;
}

static void hold_lock(struct scene *scene)
{
	pthread_mutex_lock(&scene->lock);
	atomic_store(&scene->peer_ready, true);
	scene_wait_for(&scene->called);
	nap_ns(DEED_WAIT_NS);
	scene->wake_ts = monotonic_ns();
	pthread_mutex_unlock(&scene->lock);
}

static void *peer_body(void *arg)
{
	struct scene *scene = arg;
	struct sched_param param = {};

	scene->peer_tid = gettid();
	sem_post(&scene->peer_is_done);
	for (;;) {
		while (sem_wait(&scene->peer_wanted))
			;
		switch (atomic_load(&scene->peer_job)) {
		case PEER_HOLD_LOCK:
			hold_lock(scene);
			break;
		case PEER_WRITE_PIPE:
			wake_by(scene, write_byte, scene->pipe_fds[1]);
			break;
		case PEER_WRITE_SOCKET:
			wake_by(scene, write_byte, scene->socket_fds[1]);
			break;
		case PEER_SEND_FILE:
			wake_by(scene, scene_send_file, scene->file_socket_fds[1]);
			break;
		case PEER_HOG_CPU:
			hog(scene);
			break;
		case PEER_INTERRUPT:
			interrupt(scene);
			break;
		case PEER_END:
			return NULL;
		}
		atomic_store(&scene->peer_done, true);
		sched_setscheduler(0, SCHED_OTHER, &param);
		sched_setaffinity(0, sizeof(scene->allowed), &scene->allowed);
		sem_post(&scene->peer_is_done);
	}
}

int peer_start(struct scene *scene)
{
	int err;

	if (sem_init(&scene->peer_wanted, 0, 0) || sem_init(&scene->peer_is_done, 0, 0))
		return -errno;
	err = pthread_create(&scene->peer, NULL, peer_body, scene);
	if (err)
		return -err;
	while (sem_wait(&scene->peer_is_done))
		;
	return 0;
}

void peer_give(struct scene *scene, enum peer_job job)
{
	atomic_store(&scene->peer_ready, false);
	atomic_store(&scene->peer_done, false);
	atomic_store(&scene->peer_job, job);
	sem_post(&scene->peer_wanted);
	scene_wait_for(&scene->peer_ready);
}

void peer_await(struct scene *scene)
{
	while (sem_wait(&scene->peer_is_done))
		;
}
