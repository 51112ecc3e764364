// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A staged web server as Haboob (Whodunit, figure 10): each stage is a thread with a queue.
 *
 *   ReadStage > HttpRecv > CacheStage > WriteStage                          a page in the cache
 *                          CacheStage > MissStage > FileIo > WriteStage     another one
 *
 *   server PORT LOG    prints `ready`; SIGTERM writes to LOG, for hits and misses, how many replies WriteStage wrote
 * and the CPU time in ns that it took for them
 *
 * GET /hit and GET /miss in any mix.  The page of a miss is larger, so WriteStage works longer for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STAGE  __attribute__((noinline, noclone))
#define HIT_B  4096
#define MISS_B 16384

struct event {
	STAILQ_ENTRY(event) link;
	int fd, is_miss;
	char text[256];
};

struct stage {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	STAILQ_HEAD(, event) events;
};

#define STAGE_INIT(name)                     \
	{.lock = PTHREAD_MUTEX_INITIALIZER,  \
	 .filled = PTHREAD_COND_INITIALIZER, \
	 .events = STAILQ_HEAD_INITIALIZER((name).events)}
static struct stage http_stage = STAGE_INIT(http_stage), cache_stage = STAGE_INIT(cache_stage),
		    miss_stage = STAGE_INIT(miss_stage), file_stage = STAGE_INIT(file_stage),
		    write_stage = STAGE_INIT(write_stage);
static uint64_t written_cnt[2], written_ns[2];
/* Each handler counts what it has handed on: a call in its last place would leave no frame of it on the stack. */
static __thread uint64_t handed_on;
static const char *log_path;

/* Not static: a symbol list finds them by name as well. */
void stage_enqueue(struct stage *stage, struct event *event);
struct event *stage_dequeue(struct stage *stage);

STAGE void stage_enqueue(struct stage *stage, struct event *event)
{
	pthread_mutex_lock(&stage->lock);
	STAILQ_INSERT_TAIL(&stage->events, event, link);
	pthread_cond_signal(&stage->filled);
	pthread_mutex_unlock(&stage->lock);
}

STAGE struct event *stage_dequeue(struct stage *stage)
{
	struct event *event;

	pthread_mutex_lock(&stage->lock);
	while (STAILQ_EMPTY(&stage->events))
		pthread_cond_wait(&stage->filled, &stage->lock);
	event = STAILQ_FIRST(&stage->events);
	STAILQ_REMOVE_HEAD(&stage->events, link);
	pthread_mutex_unlock(&stage->lock);
	return event;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* So many rounds of something that the compiler keeps. */
STAGE static uint32_t work(const char *text, unsigned int rounds)
{
	uint32_t sum = 2166136261u;

	for (unsigned int i = 0; i < rounds; i++)
		sum = (sum ^ (uint8_t)text[i % 64]) * 16777619u;
	__asm__ volatile("" : : "r"(sum));
	return sum;
}

STAGE static void http_recv(struct event *event)
{
	work(event->text, 5000);
	event->is_miss = strstr(event->text, "/miss") != NULL;
	stage_enqueue(&cache_stage, event);
	handed_on++;
}

STAGE static void cache_hit(struct event *event)
{
	stage_enqueue(&write_stage, event);
	handed_on++;
}

STAGE static void cache_miss(struct event *event)
{
	stage_enqueue(&miss_stage, event);
	handed_on++;
}

STAGE static void cache_look(struct event *event)
{
	work(event->text, 5000);
	if (event->is_miss)
		cache_miss(event);
	else
		cache_hit(event);
}

STAGE static void miss_schedule(struct event *event)
{
	work(event->text, 3000);
	stage_enqueue(&file_stage, event);
	handed_on++;
}

STAGE static void file_read(struct event *event)
{
	work(event->text, 20000);
	stage_enqueue(&write_stage, event);
	handed_on++;
}

STAGE static void write_reply(struct event *event)
{
	static __thread char page[MISS_B + 256];
	int length = event->is_miss ? MISS_B : HIT_B;
	uint64_t begin_ns = cpu_ns();
	int head = snprintf(page, 256, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length);

	work(event->text, 15 * (unsigned int)length);
	memset(page + head, 'x', (size_t)length);
	if (write(event->fd, page, (size_t)(head + length)) < 0)
		perror("write");
	written_ns[event->is_miss] += cpu_ns() - begin_ns;
	written_cnt[event->is_miss]++;
	free(event);
}

struct stage_thread {
	const char *name;
	struct stage *stage;
	void (*handle)(struct event *event);
};

static void *stage_run(void *arg)
{
	const struct stage_thread *self = arg;

	prctl(PR_SET_NAME, self->name);
	for (;;)
		self->handle(stage_dequeue(self->stage));
	return NULL;
}

STAGE static void read_stage(int fd, int poll)
{
	struct event *event = calloc(1, sizeof(*event));
	ssize_t got = event ? read(fd, event->text, sizeof(event->text) - 1) : -1;

	if (got <= 0) {
		epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL);
		close(fd);
		free(event);
		return;
	}
	event->fd = fd;
	work(event->text, 2000);
	stage_enqueue(&http_stage, event);
	handed_on++;
}

static void http_server(int listener)
{
	int poll = epoll_create1(0), one = 1;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};

	epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		if (epoll_wait(poll, &event, 1, -1) != 1)
			continue;
		if (event.data.fd != listener) {
			read_stage(event.data.fd, poll);
			continue;
		}
		event.data.fd = accept(listener, NULL, NULL);
		event.events = EPOLLIN;
		if (event.data.fd < 0)
			continue;
		setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}

static void *wait_for_end(void *arg)
{
	sigset_t *signals = arg;
	FILE *log;
	int got;

	sigwait(signals, &got);
	log = fopen(log_path, "w");
	if (log) {
		fprintf(log, "{\"hit\": [%lu, %lu], \"miss\": [%lu, %lu]}\n", written_cnt[0], written_ns[0],
			written_cnt[1], written_ns[1]);
		fclose(log);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	static const struct stage_thread stages[] = {
		{"HttpRecv", &http_stage, http_recv},      {"CacheStage", &cache_stage, cache_look},
		{"MissStage", &miss_stage, miss_schedule}, {"FileIo", &file_stage, file_read},
		{"WriteStage", &write_stage, write_reply},
	};
	struct sockaddr_in address = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	static sigset_t signals;
	pthread_t thread;

	if (argc != 3)
		return 2;
	log_path = argv[2];
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 64)) {
		perror("listen");
		return 1;
	}
	if (pthread_create(&thread, NULL, wait_for_end, &signals))
		return 1;
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (pthread_create(&thread, NULL, stage_run, (void *)&stages[i]))
			return 1;
	prctl(PR_SET_NAME, "ReadStage");
	puts("ready");
	fflush(stdout);
	http_server(listener);
	return 0;
}
