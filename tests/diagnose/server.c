// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Servers with one planted cause of lateness each: server PLANT PORT [beside].  A request is a line: "get" is
 * typical, "slow" meets the plant; the reply is a line.  `beside`: not the server but the processes beside it.
 * What a report has to say of each plant is in `run`.
 */
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int upstream_port;

WORK(rebuild_index)
WORK(render_report)
WORK(merge_tables)
WORK(compact_segments)
WORK(index_documents)
WORK(burn_cycles)
WORK(price_item)
WORK(scan_store)
WORK(encode_frame)
WORK(reload_config)
WORK(copy_pages)
WORK(resize_image)
WORK(validate_order)

/* --- what a request does ------------------------------------------------------------------------------------------ */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER, segment_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t upstream_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int spin_word;
static __thread int upstream_fd = -1;
static int shared_upstream_fd = -1, log_pipe = -1, lock_fd = -1, data_fd = -1;
static char *snapshot_memory;
static char *cold_pages;
#define SNAPSHOT_SZ (48UL << 20)
#define COLD_SZ     (32UL << 20)
#define FIFO        "/tmp/whylate-planted.fifo"

NOINLINE void ask_upstream(int *fd, const char *line)
{
	char reply[64];

	if (*fd < 0)
		*fd = connect_to(upstream_port);
	say(*fd, line);
	read_line(*fd, reply, sizeof(reply));
}

NOINLINE void commit_log(void)
{
	static char page[65536];

	for (int i = 0; i < 6; i++)
		if (pwrite(data_fd, page, sizeof(page), (off_t)(now_ns() % 64) * 65536) < 0 || fdatasync(data_fd))
			perror("commit_log");
}

/* A row of its own, which is small. */
NOINLINE void commit_row(void)
{
	static const char row[4096];

	if (pwrite(data_fd, row, sizeof(row), 0) < 0 || fdatasync(data_fd))
		perror("commit_row");
}

/* All of it to another file of the same disk. */
NOINLINE void dump_state(int fd)
{
	static char state[48 << 20];

	state[sink % sizeof(state)]++;
	if (pwrite(fd, state, sizeof(state), 0) < 0 || fdatasync(fd))
		perror("dump_state");
	sink++;
}

NOINLINE void retry_backoff(void)
{
	nap(SLOW_NS);
}

NOINLINE void spin_acquire(void)
{
	while (atomic_exchange(&spin_word, 1))
		__builtin_ia32_pause();
}

NOINLINE void append_audit(void)
{
	static const char record[4096];

	if (write(log_pipe, record, sizeof(record)) < 0)
		perror("append_audit");
}

NOINLINE void run_helper(void)
{
	pid_t pid = fork();

	if (!pid) {
		name_thread("thumbnailer");
		resize_image(SLOW_NS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

NOINLINE void touch_pages(void)
{
	for (size_t i = 0; i < SNAPSHOT_SZ; i += 4096)
		snapshot_memory[i]++;
}

/* Pages of a mapped file, which are not in memory. */
NOINLINE void look_up_pages(void)
{
	static __thread unsigned int seed = 1;

	for (int i = 0; i < 120; i++)
		sink += (unsigned char)cold_pages[(unsigned long)rand_r(&seed) % (COLD_SZ / 4096) * 4096];
}

static void evict_pages(void)
{
	madvise(cold_pages, COLD_SZ, MADV_DONTNEED);
	posix_fadvise(data_fd, 0, COLD_SZ, POSIX_FADV_DONTNEED);
}

static void map_cold_pages(void)
{
	static char page[1 << 20];

	for (size_t i = 0; i < sizeof(page); i++)
		page[i] = (char)i;
	for (size_t at = 0; at < COLD_SZ; at += sizeof(page))
		if (pwrite(data_fd, page, sizeof(page), (off_t)at) < 0)
			perror("map_cold_pages");
	fsync(data_fd);
	cold_pages = mmap(NULL, COLD_SZ, PROT_READ, MAP_SHARED, data_fd, 0);
	madvise(cold_pages, COLD_SZ, MADV_RANDOM);
}

NOINLINE void take_buffer(void)
{
	char *buffer = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		return;
	buffer[0] = 1;
	munmap(buffer, 65536);
}

/* Every request, typical or slow. */
static void serve(bool slow)
{
	slow &= !is_off();
	answer_get(GET_NS);
	if (is("lock-cpu") || is("lock-timer") || is("lock-disk") || is("lock-chain") || is("lock-runq")) {
		pthread_mutex_lock(&table_lock);
		if (slow && is("lock-cpu"))
			merge_tables(SLOW_NS);
		if (is("lock-chain")) {
			pthread_mutex_lock(&segment_lock);
			pthread_mutex_unlock(&segment_lock);
		}
		pthread_mutex_unlock(&table_lock);
	} else if (is("rwlock")) {
		pthread_rwlock_rdlock(&config_lock);
		pthread_rwlock_unlock(&config_lock);
	} else if (is("spin") || is("spin-turns")) {
		spin_acquire();
		atomic_store(&spin_word, 0);
	} else if (is("file-lock")) {
		flock(lock_fd, LOCK_SH);
		flock(lock_fd, LOCK_UN);
	} else if (is("pipe")) {
		append_audit();
	} else if (is("disk-rival")) {
		commit_row();
	} else if (is("mmap-lock")) {
		take_buffer();
	} else if (is("upstream") || is("upstream-2")) {
		ask_upstream(&upstream_fd, slow ? "slow\n" : "get\n");
	} else if (is("upstream-pool")) {
		pthread_mutex_lock(&upstream_lock);
		ask_upstream(&shared_upstream_fd, slow ? "slow\n" : "get\n");
		pthread_mutex_unlock(&upstream_lock);
	} else if (!slow) {
		return;
	} else if (is("own") || is("two")) {
		rebuild_index(SLOW_NS);
	} else if (is("loop")) {
		render_report(SLOW_NS);
	} else if (is("prefork")) {
		validate_order(SLOW_NS);
	} else if (is("pool") || is("pool-offload")) {
		encode_frame(SLOW_NS);
	} else if (is("pool-sleep") || is("sleep")) {
		retry_backoff();
	} else if (is("fsync")) {
		commit_log();
	} else if (is("child")) {
		run_helper();
	} else if (is("fork-faults")) {
		touch_pages();
	} else if (is("cold-pages")) {
		look_up_pages();
	} else if (is("quota")) {
		rebuild_index(SLOW_NS);
	}
}

/* --- threads that serve nobody ------------------------------------------------------------------------------------ */

NOINLINE void flush_journal(void)
{
	pthread_mutex_lock(&table_lock);
	nap(SLOW_NS);
	pthread_mutex_unlock(&table_lock);
}

NOINLINE void sync_journal(void)
{
	pthread_mutex_lock(&table_lock);
	commit_log();
	pthread_mutex_unlock(&table_lock);
}

NOINLINE void hold_segment(void)
{
	pthread_mutex_lock(&segment_lock);
	compact_segments(SLOW_NS);
	pthread_mutex_unlock(&segment_lock);
}

/* Populates with the address space's lock held; faults and mmap() of the others wait for it. */
NOINLINE void load_pages(void)
{
	const size_t sz = 96UL << 20;
	void *memory = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise(memory, sz, MADV_NOHUGEPAGE);
	madvise(memory, sz, MADV_POPULATE_WRITE);
	munmap(memory, sz);
	/* No tail call: it would be background()'s. */
	sink++;
}

NOINLINE void take_snapshot(void)
{
	pid_t pid = fork();

	if (!pid) {
		nap(100 * MS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Not a thread of the server: it would stop itself. */
static void freeze(void)
{
	pid_t server = getpid();

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread("freezer");
	for (;;) {
		nap(40 * MS);
		if (is_off())
			continue;
		kill(server, SIGSTOP);
		nap(SLOW_NS);
		kill(server, SIGCONT);
	}
}

static void *background(void *arg)
{
	name_thread(arg                                              ? "flusher"
		    : is("lock-timer") || is("lock-disk")            ? "flusher"
		    : is("lock-chain") || !strncmp(plant, "spin", 4) ? "compactor"
		    : is("rwlock") || is("mmap-lock")                ? "loader"
		    : is("fork-faults")                              ? "snapshotter"
								     : "indexer");
	if (is("thread-hog") || is("two") || is("lock-runq"))
		pin(0);
	for (;;) {
		nap((is("fork-faults") ? 20 : 180) * MS);
		if (is_off())
			continue;
		if (is("lock-timer"))
			flush_journal();
		else if (is("lock-disk"))
			sync_journal();
		else if (is("lock-chain"))
			hold_segment();
		else if (is("rwlock")) {
			pthread_rwlock_wrlock(&config_lock);
			reload_config(SLOW_NS);
			pthread_rwlock_unlock(&config_lock);
		} else if (is("spin") || is("spin-turns")) {
			spin_acquire();
			nap(SLOW_NS);
			atomic_store(&spin_word, 0);
		} else if (is("mmap-lock"))
			load_pages();
		else if (is("fork-faults"))
			take_snapshot();
		else if (is("cold-pages"))
			evict_pages();
		else if (is("thread-hog") || is("two"))
			index_documents(SLOW_NS * 2);
	}
	return NULL;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	name_thread("conn");
	if (is("thread-hog") || is("stranger-hog") || is("two") || is("full"))
		pin(0);
	while (read_line(fd, line, sizeof(line))) {
		/* A client that sends its request in pieces. */
		while (!strchr(line, '\n') && read_line(fd, line + strlen(line), sizeof(line) - strlen(line)))
			;
		serve(*line == 's');
		if (is("nagle") && *line == 's' && !is_off())
			say(fd, "head ");
		say(fd, "ok\n");
	}
	close(fd);
	return NULL;
}

static void serve_threads(int fd)
{
	pthread_t thread;

	for (;;) {
		int client = accept(fd, NULL, NULL), one = 1;

		if (!is("nagle"))
			setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_create(&thread, NULL, connection, (void *)(intptr_t)client);
		pthread_detach(thread);
	}
}

static void serve_processes(int fd)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			connection((void *)(intptr_t)client);
			_exit(0);
		}
		close(client);
	}
}

/* An event loop; with workers it hands requests over. With pool-offload, workers hand them back, and it replies. */
struct job {
	int fd;
	bool slow;
};
static struct job jobs[1024];
static size_t job_first, job_cnt;
static int done_fds[1024], done_cnt, done_event; /* no more than connections */
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_there = PTHREAD_COND_INITIALIZER;

static void tell_loop(int fd)
{
	uint64_t one = 1;

	pthread_mutex_lock(&job_lock);
	done_fds[done_cnt++] = fd;
	pthread_mutex_unlock(&job_lock);
	if (write(done_event, &one, sizeof(one)) < 0)
		_exit(1);
}

static void *worker(void *arg)
{
	(void)arg;
	name_thread("worker");
	for (;;) {
		struct job job;

		pthread_mutex_lock(&job_lock);
		while (!job_cnt)
			pthread_cond_wait(&job_there, &job_lock);
		job = jobs[job_first++ % 1024];
		job_cnt--;
		pthread_mutex_unlock(&job_lock);
		serve(job.slow);
		if (is("pool-offload"))
			tell_loop(job.fd);
		else
			say(job.fd, "ok\n");
	}
	return NULL;
}

static void reply_to_done(void)
{
	int fds[1024], cnt;
	uint64_t times;

	if (read(done_event, &times, sizeof(times)) < 0)
		return;
	pthread_mutex_lock(&job_lock);
	cnt = done_cnt;
	memcpy(fds, done_fds, (size_t)cnt * sizeof(*fds));
	done_cnt = 0;
	pthread_mutex_unlock(&job_lock);
	for (int i = 0; i < cnt; i++)
		say(fds[i], "ok\n");
}

static void serve_loop(int fd, bool pool)
{
	int epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd}, events[16];
	pthread_t thread;

	for (int i = 0; pool && i < 2; i++)
		pthread_create(&thread, NULL, worker, NULL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	done_event = eventfd(0, EFD_NONBLOCK);
	event.data.fd = done_event;
	epoll_ctl(epoll, EPOLL_CTL_ADD, done_event, &event);
	for (;;) {
		int cnt = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < cnt; i++) {
			char line[64];

			if (events[i].data.fd == fd) {
				event.data.fd = accept(fd, NULL, NULL);
				epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
			} else if (events[i].data.fd == done_event) {
				reply_to_done();
			} else if (!read_line(events[i].data.fd, line, sizeof(line))) {
				close(events[i].data.fd);
			} else if (pool) {
				pthread_mutex_lock(&job_lock);
				jobs[(job_first + job_cnt++) % 1024] = (struct job){events[i].data.fd, *line == 's'};
				pthread_cond_signal(&job_there);
				pthread_mutex_unlock(&job_lock);
			} else {
				serve(*line == 's');
				say(events[i].data.fd, "ok\n");
			}
		}
	}
}

/* --- processes beside it ------------------------------------------------------------------------------------------ */

static bool beside(const char *name)
{
	if (fork())
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread(name);
	return true;
}

/* A service behind the server, or behind the service. */
static void upstream(int fd, const char *name, int next)
{
	if (!beside(name))
		return;
	plant = next ? "upstream-next" : "upstream-last";
	upstream_port = next;
	for (;;) {
		int client = accept(fd, NULL, NULL), one = 1, next_fd = -1;
		char line[64];

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (fork()) {
			close(client);
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read_line(client, line, sizeof(line))) {
			if (next)
				ask_upstream(&next_fd, line);
			else if (*line == 's' && strcmp(name, "store"))
				price_item(SLOW_NS);
			else if (*line == 's')
				scan_store(SLOW_NS);
			say(client, "ok\n");
		}
		_exit(0);
	}
}

static void start_beside(int port)
{
	signal(SIGCHLD, SIG_IGN);
	if (is("upstream") || is("upstream-pool") || is("upstream-2")) {
		upstream(listen_at(port + 1), "backend", is("upstream-2") ? port + 2 : 0);
	}
	if (is("upstream-2"))
		upstream(listen_at(port + 2), "store", 0);
	if (is("stranger-hog") && beside("batch")) {
		pin(0);
		for (;;) {
			nap(120 * MS);
			if (!is_off())
				burn_cycles(SLOW_NS * 2);
		}
	}
	if (is("full"))
		for (int i = 0; i < 10; i++)
			if (beside("crowd"))
				for (pin(0);;) {
					nap(10 * MS + (uint64_t)i * MS);
					if (!is_off())
						burn_cycles(2 * MS);
				}
	if (is("file-lock") && beside("backup")) {
		int fd = open("/tmp/whylate-planted.lock", O_RDWR | O_CREAT, 0600);

		for (;;) {
			nap(180 * MS);
			flock(fd, LOCK_EX);
			if (!is_off())
				copy_pages(SLOW_NS);
			flock(fd, LOCK_UN);
		}
	}
	if (is("disk-rival") && beside("dumper")) {
		int fd = open("/var/tmp/whylate-planted.dump", O_RDWR | O_CREAT, 0600);

		for (;;) {
			nap(180 * MS);
			if (!is_off())
				dump_state(fd);
		}
	}
	if (is("pipe") && beside("logger")) {
		static char page[65536];
		uint64_t next = now_ns() + 180 * MS;
		int pipe_fd = open(FIFO, O_RDONLY);

		while (read(pipe_fd, page, sizeof(page)) > 0) {
			if (now_ns() < next)
				continue;
			if (!is_off())
				encode_frame(SLOW_NS * 4);
			next = now_ns() + 180 * MS;
		}
		_exit(0);
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int port, fd;

	if (argc < 3)
		return 2;
	plant = argv[1];
	port = atoi(argv[2]);
	watch_switch();
	upstream_port = port + 1;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calibrate();
	if (is("pipe"))
		mkfifo(FIFO, 0600);
	if (argc > 3 && !strcmp(argv[argc - 1], "beside"))
		start_beside(port);
	if (is("pipe")) {
		log_pipe = open(FIFO, O_WRONLY | O_CLOEXEC);
		fcntl(log_pipe, F_SETPIPE_SZ, 65536);
	}
	lock_fd = open("/tmp/whylate-planted.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	data_fd = open("/var/tmp/whylate-planted.data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (is("cold-pages"))
		map_cold_pages();
	if (is("fork-faults")) {
		snapshot_memory = mmap(NULL, SNAPSHOT_SZ, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(snapshot_memory, SNAPSHOT_SZ, MADV_NOHUGEPAGE);
		touch_pages();
	}
	fd = listen_at(port);
	if (is("lock-timer") || is("lock-disk") || is("lock-chain") || is("rwlock") || is("spin") || is("spin-turns") ||
	    is("fork-faults") || is("thread-hog") || is("two") || is("mmap-lock") || is("cold-pages"))
		pthread_create(&thread, NULL, background, NULL);
	if (is("spin-turns"))
		pthread_create(&thread, NULL, background, "second");
	if (is("stopped"))
		freeze();
	if (is("loop"))
		serve_loop(fd, false);
	else if (!strncmp(plant, "pool", 4))
		serve_loop(fd, true);
	else if (is("prefork"))
		serve_processes(fd);
	else
		serve_threads(fd);
}
