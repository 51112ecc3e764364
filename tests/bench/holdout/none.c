// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * No queue: a thread for each connection.  They share a cache with an LRU list, a pool of buffers (a lock-free stack),
 * statistics, and a current configuration that one thread exchanges from time to time.
 */
#define JOB_NEW
#include "staged.h"

#include <sys/queue.h>

#define BUCKETS   64
#define CACHE_MAX 48

struct entry {
	TAILQ_ENTRY(entry) used;
	struct entry *next;
	uint64_t key;
	char *text;
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER, stats_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(used_list, entry) used = TAILQ_HEAD_INITIALIZER(used);
static struct entry *buckets[BUCKETS];
static unsigned int cached;
static struct job *pool;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t requests, slow, busy_ns;
	struct job *latest;
} stats;
static int *current;

static struct job *job_new(void)
{
	struct job *job;

	pthread_mutex_lock(&pool_lock);
	job = pool;
	if (job)
		pool = job->next;
	pthread_mutex_unlock(&pool_lock);
	return job ? job : calloc(1, sizeof(*job));
}

static void job_free(struct job *job)
{
	pthread_mutex_lock(&pool_lock);
	job->next = pool;
	pool = job;
	pthread_mutex_unlock(&pool_lock);
}

static void put(struct job *job)
{
	job_free(job);
}

static struct job *take(void)
{
	return job_new();
}

static struct entry **entry_at(uint64_t key)
{
	struct entry **at = &buckets[key % BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static char *cache_get(uint64_t key)
{
	struct entry *entry;
	char *text = NULL;

	pthread_mutex_lock(&cache_lock);
	entry = *entry_at(key);
	if (entry) {
		TAILQ_REMOVE(&used, entry, used);
		TAILQ_INSERT_HEAD(&used, entry, used);
		text = entry->text;
	}
	pthread_mutex_unlock(&cache_lock);
	return text;
}

static void cache_put(uint64_t key, char *text)
{
	struct entry *entry = calloc(1, sizeof(*entry)), *oldest = NULL;

	entry->key = key;
	entry->text = text;
	pthread_mutex_lock(&cache_lock);
	if (cached++ >= CACHE_MAX) {
		oldest = TAILQ_LAST(&used, used_list);
		TAILQ_REMOVE(&used, oldest, used);
		*entry_at(oldest->key) = oldest->next;
		cached--;
	}
	entry->next = buckets[key % BUCKETS];
	buckets[key % BUCKETS] = entry;
	TAILQ_INSERT_HEAD(&used, entry, used);
	pthread_mutex_unlock(&cache_lock);
	free(oldest);
}

static void *reconfigure(void *arg)
{
	(void)arg;
	for (;;) {
		int *next = malloc(sizeof(*next));

		*next = 1;
		(void)__atomic_exchange_n(&current, next, __ATOMIC_ACQ_REL);
		usleep(20000);
	}
	return NULL;
}

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;

	prctl(PR_SET_NAME, "connection");
	for (;;) {
		struct job *job = job_read(fd);
		uint64_t begin = now_ns();
		char *text;

		if (!job)
			break;
		job->put_ns = begin;
		job_note(job, begin);
		text = cache_get(job->key % 100);
		if (!text)
			cache_put(job->key % 100, strdup(job->text));
		job_do(job);
		pthread_mutex_lock(&stats_lock);
		stats.requests += *__atomic_load_n(&current, __ATOMIC_ACQUIRE);
		stats.slow += job->type == 's';
		stats.busy_ns += now_ns() - begin;
		stats.latest = job;
		pthread_mutex_unlock(&stats_lock);
		job_reply(job);
		if (note_of_job)
			note_of_job->done_ns = now_ns();
		job_free(job);
	}
	close(fd);
	return NULL;
}

static void give_thread(int fd)
{
	thread_start(connection, (void *)(intptr_t)fd);
}

int main(int argc, char **argv)
{
	int listener = listener_make(atoi(argv[1]));

	(void)argc;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_path = argv[2];
	current = calloc(1, sizeof(*current));
	thread_start(reconfigure, NULL);
	connections_accept(listener, give_thread);
}
