// SPDX-License-Identifier: GPL-2.0-or-later
/* As nginx has it: an event loop reads and replies; a pool of threads works; what is done comes back by a second list
 * under a spin lock, and an eventfd wakes the loop. */
#include "staged.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static pthread_spinlock_t done_lock;
static struct job *done;
static int done_fd, loop_fd;

static void put(struct job *job)
{
	pthread_mutex_lock(&lock);
	job->next = NULL;
	*last = job;
	last = &job->next;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

static struct job *take(void)
{
	struct job *job;

	pthread_mutex_lock(&lock);
	while (!first)
		pthread_cond_wait(&filled, &lock);
	job = first;
	first = job->next;
	if (!first)
		last = &first;
	pthread_mutex_unlock(&lock);
	return job;
}

static void *pool_worker(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "worker");
	for (;;) {
		struct job *job = take();
		uint64_t one = 1;

		job_note(job, now_ns());
		job_do(job);
		if (note_of_job)
			note_of_job->done_ns = now_ns();
		pthread_spin_lock(&done_lock);
		job->next = done;
		done = job;
		pthread_spin_unlock(&done_lock);
		if (write(done_fd, &one, sizeof(one)) < 0)
			perror("eventfd");
	}
	return NULL;
}

static void replies_send(void)
{
	struct job *job, *next;
	uint64_t cnt;

	if (read(done_fd, &cnt, sizeof(cnt)) < 0)
		return;
	pthread_spin_lock(&done_lock);
	job = done;
	done = NULL;
	pthread_spin_unlock(&done_lock);
	for (; job; job = next) {
		next = job->next;
		job_reply(job);
		job_free(job);
	}
}

static void *loop(void *arg)
{
	struct epoll_event events[16];

	(void)arg;
	prctl(PR_SET_NAME, "loop");
	for (;;) {
		int cnt = epoll_wait(loop_fd, events, 16, -1);

		for (int i = 0; i < cnt; i++) {
			struct job *job;

			if (events[i].data.fd == done_fd) {
				replies_send();
				continue;
			}
			job = job_read(events[i].data.fd);
			if (!job) {
				epoll_ctl(loop_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
				close(events[i].data.fd);
				continue;
			}
			job->put_ns = now_ns();
			put(job);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int listener = listener_make(atoi(argv[1]));
	struct epoll_event event;

	(void)argc;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_path = argv[2];
	pthread_spin_init(&done_lock, 0);
	done_fd = eventfd(0, EFD_NONBLOCK);
	loop_fd = epoll_fds[0] = epoll_create1(0);
	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	event.data.fd = done_fd;
	epoll_ctl(loop_fd, EPOLL_CTL_ADD, done_fd, &event);
	thread_start(loop, NULL);
	for (int i = 0; i < WORKERS; i++)
		thread_start(pool_worker, NULL);
	connections_accept(listener, give_reader);
}
