/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A staged server around one kind of hand-off: READERS threads read requests from connections and put() them, WORKERS
 * threads take() them, work and reply.  What is included after it defines put() and take().  Each request has a key,
 * and both ends log it with their own clock; SIGTERM writes the log.
 *
 *   PROGRAM PORT LOG      prints `ready`
 *
 * GET /TYPE/KEY HTTP/1.1: `fast` works for 50 us, `slow` for 1 ms.
 */
#ifndef STAGED_H
#define STAGED_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef READERS
#define READERS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#define LOG_MAX 400000

struct job {
	struct job *next, *prev;
	int fd;
	int priority;
	int type; /* 's' or 'f' */
	uint64_t key, read_ns, put_ns;
	char text[64];
};

struct note {
	uint64_t key, in_ns, out_ns, done_ns;
	int in_tid, out_tid, type;
};

static void put(struct job *job);
static struct job *take(void);

static struct note notes[LOG_MAX];
static unsigned int note_cnt;
static __thread int reader_tid, worker_tid;
static const char *log_path;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void work_for(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

static void job_do(struct job *job)
{
	work_for(job->type == 's' ? 1000000 : 50000);
}

static void job_reply(struct job *job)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

	if (write(job->fd, reply, sizeof(reply) - 1) < 0)
		perror("write");
}

#ifndef JOB_NEW
static struct job *job_new(void)
{
	return (struct job *)calloc(1, sizeof(struct job));
}

static void job_free(struct job *job)
{
	free(job);
}
#else
static struct job *job_new(void);
static void job_free(struct job *job);
#endif

static __thread struct note *note_of_job;

static void job_note(struct job *job, uint64_t out_ns)
{
	unsigned int at = __atomic_fetch_add(&note_cnt, 1, __ATOMIC_RELAXED);

	if (!worker_tid)
		worker_tid = (int)syscall(SYS_gettid);
	note_of_job = at < LOG_MAX ? &notes[at] : NULL;
	if (!note_of_job)
		return;
	note_of_job->key = job->key;
	note_of_job->type = job->type;
	note_of_job->in_ns = job->put_ns;
	note_of_job->in_tid = job->priority >> 8;
	note_of_job->out_ns = out_ns;
	note_of_job->out_tid = worker_tid;
}

static __attribute__((unused)) void *worker(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "worker");
	for (;;) {
		struct job *job = take();

		if (!job) {
			usleep(100);
			continue;
		}
		job_note(job, now_ns());
		job_do(job);
		job_reply(job);
		if (note_of_job)
			note_of_job->done_ns = now_ns();
		job_free(job);
	}
	return NULL;
}

/* What was read of a connection.  Returns the job, or NULL at its end. */
static struct job *job_read(int fd)
{
	char bytes[1024];
	ssize_t len = read(fd, bytes, sizeof(bytes) - 1);
	struct job *job;
	char *slash;

	if (len <= 0)
		return NULL;
	bytes[len] = '\0';
	job = job_new();
	job->read_ns = now_ns();
	job->fd = fd;
	job->type = bytes[5];
	slash = strchr(bytes + 5, '/');
	job->key = slash ? strtoull(slash + 1, NULL, 10) : 0;
	if (!reader_tid)
		reader_tid = (int)syscall(SYS_gettid);
	job->priority = reader_tid << 8 | (job->type == 's');
	memcpy(job->text, bytes, sizeof(job->text) - 1);
	return job;
}

static int epoll_fds[READERS];

static __attribute__((unused)) void *reader(void *arg)
{
	int epoll = *(int *)arg;
	struct epoll_event events[16];

	prctl(PR_SET_NAME, "reader");
	for (;;) {
		int cnt = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < cnt; i++) {
			struct job *job = job_read(events[i].data.fd);

			if (!job) {
				epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
				close(events[i].data.fd);
				continue;
			}
			job->put_ns = now_ns();
			put(job);
		}
	}
	return NULL;
}

static void thread_start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		exit(1);
	pthread_detach(thread);
}

static void log_write(int signal)
{
	FILE *log = fopen(log_path, "w");

	(void)signal;
	for (unsigned int i = 0; log && i < note_cnt && i < LOG_MAX; i++)
		if (notes[i].done_ns)
			fprintf(log, "%lu %c %d %lu %d %lu %lu\n", notes[i].key, notes[i].type, notes[i].in_tid,
				notes[i].in_ns, notes[i].out_tid, notes[i].out_ns, notes[i].done_ns);
	if (log)
		fclose(log);
	_exit(0);
}

static int listener_make(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in address;

	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64)) {
		perror("listen");
		exit(1);
	}
	return fd;
}

static void connections_accept(int listener, void (*give)(int fd))
{
	signal(SIGTERM, log_write);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL), one = 1;

		if (fd < 0)
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		give(fd);
	}
}

static __attribute__((unused)) void give_reader(int fd)
{
	static unsigned int next;
	struct epoll_event event;

	memset(&event, 0, sizeof(event));
	event.events = EPOLLIN;
	event.data.fd = fd;
	epoll_ctl(epoll_fds[next++ % READERS], EPOLL_CTL_ADD, fd, &event);
}

static __attribute__((unused)) void staged_run(char **argv)
{
	int listener = listener_make(atoi(argv[1]));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_path = argv[2];
	for (int i = 0; i < READERS; i++) {
		epoll_fds[i] = epoll_create1(0);
		thread_start(reader, &epoll_fds[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		thread_start(worker, NULL);
	connections_accept(listener, give_reader);
}

#endif
