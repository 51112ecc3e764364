/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions with critical sections, as one optimisation leaves them; they are read, and never run. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define NAME__(level, name) subject_##level##_##name
#define NAME_(level, name)  NAME__(level, name)
#define NAME(name)          NAME_(SUBJECT, name)

struct subject_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	void *slots[64];
	int numbers[64];
	unsigned int head, tail;
	uint64_t count;
	void *spare;
};

struct subject_node {
	struct subject_node *next;
	uint64_t key;
};

void subject_keep(struct subject_queue *queue, void *const *job);

void NAME(push)(struct subject_queue *queue, void *job);
void NAME(push_reference)(struct subject_queue *queue, void *job);
void NAME(pop_moved)(struct subject_queue *queue);
void *NAME(pop_inner)(struct subject_queue *queue);
void *NAME(pop_or_end)(struct subject_queue *queue, struct subject_queue *inner);
void *NAME(pop)(struct subject_queue *queue);
int NAME(pop_to)(struct subject_queue *queue, void **job);
void NAME(push_number)(struct subject_queue *queue, int number);
uint64_t NAME(add)(struct subject_queue *queue, uint64_t by);
void NAME(clear)(struct subject_queue *queue);
int NAME(is_empty)(struct subject_queue *queue);
int NAME(push_checked)(struct subject_queue *queue, void *job);
void NAME(push_nested)(struct subject_queue *queue, struct subject_queue *inner, void *job);
void NAME(unlocked)(struct subject_queue *queue, void *job);
void *NAME(pop_flagged)(struct subject_queue *queue);
int NAME(lock)(struct subject_queue *queue);
void NAME(push_lockless)(struct subject_node **top, struct subject_node *node);
struct subject_node *NAME(pop_lockless)(struct subject_node **top);
void NAME(push_spinning)(struct subject_queue *queue, void *job);
void NAME(push_recycled)(struct subject_queue *pool, struct subject_queue *queue);
void NAME(pop_object)(struct subject_queue *queue);
void NAME(push_events)(struct subject_queue *queue, int fd);
void *NAME(pop_spinning)(struct subject_queue *queue);
uint64_t NAME(count_lockless)(struct subject_queue *queue);
void NAME(unlock)(struct subject_queue *queue);

void NAME(push)(struct subject_queue *queue, void *job)
{
	pthread_mutex_lock(&queue->lock);
	queue->slots[queue->tail++ % 64] = job;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&queue->lock);
}

void *NAME(pop)(struct subject_queue *queue)
{
	void *job;

	pthread_mutex_lock(&queue->lock);
	while (queue->head == queue->tail)
		pthread_cond_wait(&queue->filled, &queue->lock);
	job = queue->slots[queue->head++ % 64];
	pthread_mutex_unlock(&queue->lock);
	return job;
}

int NAME(pop_to)(struct subject_queue *queue, void **job)
{
	int there;

	pthread_mutex_lock(&queue->lock);
	there = queue->head != queue->tail;
	if (there)
		*job = queue->slots[queue->head++ % 64];
	pthread_mutex_unlock(&queue->lock);
	return there;
}

void NAME(push_number)(struct subject_queue *queue, int number)
{
	pthread_mutex_lock(&queue->lock);
	queue->numbers[queue->tail++ % 64] = number;
	pthread_mutex_unlock(&queue->lock);
}

/* What is computed does not count. */
uint64_t NAME(add)(struct subject_queue *queue, uint64_t by)
{
	pthread_mutex_lock(&queue->lock);
	queue->count += by;
	pthread_mutex_unlock(&queue->lock);
	return by;
}

/* Nor do constants. */
void NAME(clear)(struct subject_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->head = queue->tail = 0;
	queue->spare = NULL;
	pthread_mutex_unlock(&queue->lock);
}

/* A look is no use. */
int NAME(is_empty)(struct subject_queue *queue)
{
	int empty;

	pthread_mutex_lock(&queue->lock);
	empty = queue->spare == NULL;
	pthread_mutex_unlock(&queue->lock);
	return empty;
}

/* The lock that is not got is no section. */
int NAME(push_checked)(struct subject_queue *queue, void *job)
{
	int err = pthread_mutex_lock(&queue->lock);

	if (err) {
		queue->spare = queue;
		return err;
	}
	queue->slots[queue->tail++ % 64] = job;
	return pthread_mutex_unlock(&queue->lock);
}

/* Behind the inner section it is still the outer one. */
void NAME(push_nested)(struct subject_queue *queue, struct subject_queue *inner, void *job)
{
	pthread_mutex_lock(&queue->lock);
	pthread_mutex_lock(&inner->lock);
	inner->count++;
	pthread_mutex_unlock(&inner->lock);
	queue->slots[queue->tail++ % 64] = job;
	pthread_mutex_unlock(&queue->lock);
}

void NAME(unlocked)(struct subject_queue *queue, void *job)
{
	pthread_mutex_lock(&queue->lock);
	queue->count++;
	pthread_mutex_unlock(&queue->lock);
	queue->spare = job;
}

/* As std::unique_lock: a flag in the frame says that it holds the lock. */
void *NAME(pop_flagged)(struct subject_queue *queue)
{
	struct {
		pthread_mutex_t *lock;
		char held;
	} guard = {&queue->lock, 0};
	void *job;

	if (pthread_mutex_lock(guard.lock))
		abort();
	guard.held = 1;
	job = queue->slots[queue->head++ % 64];
	if (guard.held)
		pthread_mutex_unlock(guard.lock);
	return job;
}

int NAME(lock)(struct subject_queue *queue)
{
	return pthread_mutex_lock(&queue->lock);
}

void NAME(unlock)(struct subject_queue *queue)
{
	pthread_mutex_unlock(&queue->lock);
}

/* Without a lock, or with one that is its own. */
void NAME(push_lockless)(struct subject_node **top, struct subject_node *node)
{
	node->next = __atomic_load_n(top, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(top, &node->next, node, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

struct subject_node *NAME(pop_lockless)(struct subject_node **top)
{
	struct subject_node *node = __atomic_load_n(top, __ATOMIC_ACQUIRE);

	while (node && !__atomic_compare_exchange_n(top, &node, node->next, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		;
	return node;
}

void NAME(push_spinning)(struct subject_queue *queue, void *job)
{
	while (__atomic_exchange_n(&queue->head, 1, __ATOMIC_ACQUIRE))
		;
	queue->slots[queue->tail++ % 64] = job;
	__atomic_store_n(&queue->head, 0, __ATOMIC_RELEASE);
}

void *NAME(pop_spinning)(struct subject_queue *queue)
{
	void *job;

	while (__atomic_exchange_n(&queue->head, 1, __ATOMIC_ACQUIRE))
		;
	job = queue->slots[--queue->tail % 64];
	__atomic_store_n(&queue->head, 0, __ATOMIC_RELEASE);
	return job;
}

uint64_t NAME(count_lockless)(struct subject_queue *queue)
{
	return __atomic_add_fetch(&queue->count, 1, __ATOMIC_RELAXED);
}

/* What goes in comes from an array on the stack. */
void NAME(push_events)(struct subject_queue *queue, int fd)
{
	struct epoll_event events[16];
	int cnt = epoll_wait(fd, events, 16, 0);

	pthread_mutex_lock(&queue->lock);
	for (int i = 0; i < cnt; i++)
		queue->slots[queue->tail++ % 64] = events[i].data.ptr;
	pthread_mutex_unlock(&queue->lock);
}

/* The value that comes out is stored in an object of the frame, whose address is passed to a call. */
void NAME(pop_object)(struct subject_queue *queue)
{
	void *object[2];

	pthread_mutex_lock(&queue->lock);
	object[0] = queue->slots[0];
	object[1] = queue->slots[1];
	queue->head++;
	pthread_mutex_unlock(&queue->lock);
	(void)!write(0, object, sizeof(object));
}

/* As a container of C++ that is not inlined: it is passed where the value lies. */
void NAME(push_reference)(struct subject_queue *queue, void *job)
{
	pthread_mutex_lock(&queue->lock);
	subject_keep(queue, &job);
	pthread_mutex_unlock(&queue->lock);
}

/* An object of the frame that is empty where nothing comes out. */
void NAME(pop_moved)(struct subject_queue *queue)
{
	void *object[2] = {NULL, NULL};

	pthread_mutex_lock(&queue->lock);
	if (queue->count) {
		object[0] = queue->slots[0];
		object[1] = queue->slots[1];
	}
	queue->head++;
	pthread_mutex_unlock(&queue->lock);
	(void)!write(0, object, sizeof(object));
}

/* As std::condition_variable_any: a lock within the lock, which is given back where it is not NULL. */
void *NAME(pop_inner)(struct subject_queue *queue)
{
	pthread_mutex_t *inner;
	void *job;

	pthread_mutex_lock(&queue->lock);
	inner = queue->spare;
	pthread_mutex_lock(inner);
	queue->count++;
	if (inner)
		pthread_mutex_unlock(inner);
	job = queue->slots[queue->head++ % 64];
	pthread_mutex_unlock(&queue->lock);
	return job;
}

/* What lies behind a call that does not return is not reached by it. */
void *NAME(pop_or_end)(struct subject_queue *queue, struct subject_queue *inner)
{
	void *job;

	pthread_mutex_lock(&queue->lock);
	if (queue->head > 64) {
		pthread_mutex_lock(&inner->lock);
		abort();
	}
	job = queue->slots[queue->head++ % 64];
	pthread_mutex_unlock(&queue->lock);
	return job;
}

/* What goes in came out of another section, or is new. */
void NAME(push_recycled)(struct subject_queue *pool, struct subject_queue *queue)
{
	struct subject_node *node;

	pthread_mutex_lock(&pool->lock);
	node = pool->spare;
	if (node)
		pool->spare = node->next;
	pthread_mutex_unlock(&pool->lock);
	if (!node)
		node = calloc(1, sizeof(*node));
	pthread_mutex_lock(&queue->lock);
	queue->slots[queue->tail++ % 64] = node;
	pthread_mutex_unlock(&queue->lock);
}
