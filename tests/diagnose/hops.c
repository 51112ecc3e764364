// SPDX-License-Identifier: GPL-2.0-or-later
/* As holdout.c: the sixth hold-out, causes behind a second process or a second wait.  What a report has to say of each
 * is in `run`. */
#include "planted.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define PERIOD_NS (180 * MS)
#define LEDGER    "/var/tmp/whylate-hops.ledger"

WORK(price_tour)
WORK(sweep_tours)

/* --- what processes share ----------------------------------------------------------------------------------------- */

struct shared {
	atomic_uint spin_word;
	pthread_mutex_t ledger_lock;
};

static struct shared *shared;

/* `path` NULL: of this process and its children. */
static void share(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (path && ftruncate(fd, sizeof(*shared)))
		exit(1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (shared == MAP_FAILED)
		exit(1);
	close(fd);
}

static bool child(const char *name)
{
	if (fork())
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread(name);
	return true;
}

/* --- hp-spin, hp-spin-far: the holder of a spin lock is another process, and sleeps --------------------------------
 */

NOINLINE void spin_acquire(void)
{
	while (atomic_exchange(&shared->spin_word, 1))
		__builtin_ia32_pause();
}

static void hold_spin_lock(void)
{
	for (;;) {
		nap(PERIOD_NS);
		if (is_off())
			continue;
		spin_acquire();
		nap(SLOW_NS);
		atomic_store(&shared->spin_word, 0);
	}
}

/* --- hp-ledger: a mutex of two processes, whose owner waits for the disk -------------------------------------------
 */

static void make_ledger_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->ledger_lock, &attr);
}

NOINLINE void flush_ledger(int fd)
{
	static const char rows[1 << 20] = {1};
	uint64_t begin = now_ns();

	do {
		if (pwrite(fd, rows, sizeof(rows), 0) < 0 || fdatasync(fd))
			perror("flush_ledger");
	} while (now_ns() - begin < SLOW_NS);
}

static void keep_ledger(void)
{
	int fd = open(LEDGER, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	unlink(LEDGER);
	for (;;) {
		nap(PERIOD_NS);
		if (is_off())
			continue;
		pthread_mutex_lock(&shared->ledger_lock);
		flush_ledger(fd);
		pthread_mutex_unlock(&shared->ledger_lock);
	}
}

/* --- hp-pool: two workers, filled by jobs that ask a slow upstream -------------------------------------------------
 */

struct job {
	bool slow, done;
	struct job *next;
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_changed = PTHREAD_COND_INITIALIZER, job_done = PTHREAD_COND_INITIALIZER;
static struct job *jobs, **jobs_end = &jobs;
static int upstream_port;

NOINLINE void ask_upstream(int fd, bool slow)
{
	char reply[64];

	say(fd, slow ? "slow\n" : "get\n");
	if (!read_line(fd, reply, sizeof(reply)))
		exit(1);
}

static void *worker(void *arg)
{
	int fd = connect_to(upstream_port);

	(void)arg;
	name_thread("worker");
	pthread_mutex_lock(&jobs_lock);
	for (;;) {
		struct job *job;

		while (!jobs)
			pthread_cond_wait(&jobs_changed, &jobs_lock);
		job = jobs;
		jobs = job->next;
		if (!jobs)
			jobs_end = &jobs;
		pthread_mutex_unlock(&jobs_lock);
		ask_upstream(fd, job->slow);
		pthread_mutex_lock(&jobs_lock);
		job->done = true;
		pthread_cond_broadcast(&job_done);
	}
	return NULL;
}

NOINLINE void await_job(bool slow)
{
	struct job job = {.slow = slow};

	pthread_mutex_lock(&jobs_lock);
	*jobs_end = &job;
	jobs_end = &job.next;
	pthread_cond_signal(&jobs_changed);
	while (!job.done)
		pthread_cond_wait(&job_done, &jobs_lock);
	pthread_mutex_unlock(&jobs_lock);
}

static void *tours(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	name_thread("tours");
	while (read_line(fd, line, sizeof(line))) {
		if (*line == 's' && !is_off())
			price_tour(SLOW_NS);
		say(fd, "ok\n");
	}
	close(fd);
	return NULL;
}

/* --- hp-accept: a connection for each request, and who accepts them at the upstream does other things first ---------
 */

NOINLINE void ask_anew(void)
{
	int fd = connect_to(upstream_port);

	ask_upstream(fd, false);
	close(fd);
}

static void sweep_when_due(void)
{
	static uint64_t swept_ts;

	if (now_ns() - swept_ts < PERIOD_NS || is_off())
		return;
	sweep_tours(SLOW_NS);
	swept_ts = now_ns();
}

/* --- serving -------------------------------------------------------------------------------------------------------
 */

static void serve(bool slow)
{
	answer_get(GET_NS);
	if (is("hp-pool")) {
		await_job(slow);
	} else if (is("hp-accept")) {
		ask_anew();
	} else if (is("hp-ledger")) {
		pthread_mutex_lock(&shared->ledger_lock);
		sink++;
		pthread_mutex_unlock(&shared->ledger_lock);
	} else {
		spin_acquire();
		atomic_store(&shared->spin_word, 0);
	}
}

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	name_thread("conn");
	while (read_line(fd, line, sizeof(line))) {
		serve(*line == 's');
		say(fd, "ok\n");
	}
	close(fd);
	return NULL;
}

static void accept_each(int fd, void *(*run)(void *))
{
	for (;;) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC), one = 1;
		pthread_t thread;

		if (is("hp-accept") && run == tours)
			sweep_when_due();
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_create(&thread, NULL, run, (void *)(intptr_t)client);
		pthread_detach(thread);
	}
}

static void prepare(const char *far_path)
{
	pthread_t thread;

	if (is("hp-spin-far")) {
		share(far_path);
	} else if (is("hp-accept")) {
		return;
	} else if (is("hp-pool")) {
		for (int i = 0; i < 2; i++)
			pthread_create(&thread, NULL, worker, NULL);
	} else {
		share(NULL);
		make_ledger_lock();
		if (is("hp-spin") && child("stocker"))
			hold_spin_lock();
		if (is("hp-ledger") && child("ledger"))
			keep_ledger();
	}
}

int main(int argc, char **argv)
{
	char far_path[4096];

	if (argc < 3)
		return 2;
	plant = argv[1];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	calibrate();
	upstream_port = atoi(argv[2]) + 1;
	snprintf(far_path, sizeof(far_path), "%s.shared",
		 getenv("PLANTED_OFF") ? getenv("PLANTED_OFF") : "/dev/shm/hops");
	if (strcmp(argv[argc - 1], "beside") != 0) {
		prepare(far_path);
		accept_each(listen_at(atoi(argv[2])), connection);
	}
	if (is("hp-spin-far")) {
		name_thread("stocker");
		share(far_path);
		hold_spin_lock();
	}
	name_thread("tours");
	accept_each(listen_at(upstream_port), tours);
}
