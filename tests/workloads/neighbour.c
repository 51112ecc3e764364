/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk that somebody else uses: every request writes a page and syncs it, and the process `bulk` writes many
 * megabytes past the page cache, for a while, some twice a second.  Planted: the part of each sync for which it did so;
 * what the disk alone takes afterwards is the disk's.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_SZ        4096
#define FILE_SZ        (1 << 20)
#define BULK_SZ        (64 << 20)
#define CHUNK_SZ       (8 << 20)
#define WRITER_CNT     4
#define BURST_EVERY_NS (500 * NS_PER_MS)

enum {
	EXTRA_TURN,    /* odd while the others change */
	EXTRA_WRITERS, /* how many are at it */
	EXTRA_SINCE_TS,
	EXTRA_BUSY_NS, /* for how long any was, before that */
};

struct bulk {
	struct run *run;
	int fd, idx;
	void *data;
};

static void count_writer(struct run *run, int by)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	atomic_ulong *extra = run->board->extra;

	pthread_mutex_lock(&lock);
	atomic_fetch_add(&extra[EXTRA_TURN], 1);
	if (!atomic_load(&extra[EXTRA_WRITERS]))
		atomic_store(&extra[EXTRA_SINCE_TS], clock_now_ns());
	atomic_fetch_add(&extra[EXTRA_WRITERS], by);
	if (!atomic_load(&extra[EXTRA_WRITERS]))
		atomic_fetch_add(&extra[EXTRA_BUSY_NS], clock_now_ns() - atomic_load(&extra[EXTRA_SINCE_TS]));
	atomic_fetch_add(&extra[EXTRA_TURN], 1);
	pthread_mutex_unlock(&lock);
}

/* For how long the disk has been somebody else's until now. */
static uint64_t busy_ns(struct run *run)
{
	atomic_ulong *extra = run->board->extra;
	unsigned long turn;
	uint64_t ns;

	do {
		turn = atomic_load(&extra[EXTRA_TURN]);
		ns = atomic_load(&extra[EXTRA_BUSY_NS]);
		if (atomic_load(&extra[EXTRA_WRITERS]))
			ns += clock_now_ns() - atomic_load(&extra[EXTRA_SINCE_TS]);
	} while (turn % 2 || turn != atomic_load(&extra[EXTRA_TURN]));
	return ns;
}

static void *bulk_thread(void *arg)
{
	struct bulk *bulk = arg;
	struct run *run = bulk->run;

	thread_name("bulk");
	if (!bulk->idx)
		run_set_culprit(run);
	while (!run_stopped(run)) {
		uint64_t until_ts;
		off_t off = bulk->idx * (BULK_SZ / WRITER_CNT);

		/* All of them at once. */
		sleep_until_ns((clock_now_ns() / BURST_EVERY_NS + 1) * BURST_EVERY_NS);
		until_ts = clock_now_ns() + 60 * NS_PER_MS;
		count_writer(run, 1);
		do {
			if (pwrite(bulk->fd, bulk->data, CHUNK_SZ, off) < 0)
				break;
		} while (clock_now_ns() < until_ts);
		count_writer(run, -1);
	}
	return NULL;
}

static int bulk_body(struct run *run)
{
	static struct bulk bulks[WRITER_CNT];
	pthread_t threads[WRITER_CNT];
	int fd = disk_file_open(BULK_SZ), err;

	thread_name("bulk");
	thread_pin(CPU_LOAD);
	if (fd < 0)
		return fd;
	if (fcntl(fd, F_SETFL, O_DIRECT))
		return -errno;
	for (int i = 0; i < WRITER_CNT; i++) {
		bulks[i] = (struct bulk){.run = run, .fd = fd, .idx = i, .data = aligned_alloc(PAGE_SZ, CHUNK_SZ)};
		if (!bulks[i].data)
			return -ENOMEM;
		err = thread_start_named(&threads[i], bulk_thread, &bulks[i]);
		if (err)
			return err;
	}
	atomic_store(&run->board->helper_ready, 1);
	for (int i = 0; i < WRITER_CNT; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int thread_start(struct worker *worker)
{
	static int fds[64];

	worker->own = &fds[worker->idx];
	fds[worker->idx] = disk_file_open(FILE_SZ);
	return fds[worker->idx] < 0 ? fds[worker->idx] : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	static const char page[PAGE_SZ] = "page";
	int fd = *(int *)worker->own;
	uint64_t before_ns;

	spin_work(100 * NS_PER_US);
	before_ns = busy_ns(worker->run);
	if (pwrite(fd, page, sizeof(page), (off_t)(request->seq % (FILE_SZ / PAGE_SZ)) * PAGE_SZ) < 0 || fdatasync(fd))
		return 0;
	return busy_ns(worker->run) - before_ns;
}

static const struct workload workload = {
	.name = "neighbour",
	.category = "io.disk",
	.culprit_comm = "bulk",
	.connection_cnt = 4,
	.rate_hz = 60,
	.default_duration_s = 8,
	.helper = bulk_body,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
