/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The driver, the load generator, the thread-per-connection server and the statistics of all workloads. */
#include "common.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GAP_MIN_NS      1000
#define MAX_SAMPLES     (1UL << 20)
#define MAX_CONNECTIONS 128
#define MAX_WARMUP_NS   (120 * NS_PER_SEC)

/* --- time, randomness, work -------------------------------------------------------------------------------------- */

static uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_for_ns(uint64_t duration_ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(duration_ns / NS_PER_SEC),
		.tv_nsec = (long)(duration_ns % NS_PER_SEC),
	};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void sleep_until_ns(uint64_t wake_ts)
{
	struct timespec at = {.tv_sec = (time_t)(wake_ts / NS_PER_SEC), .tv_nsec = (long)(wake_ts % NS_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state ? *state : 88172645463325252ULL;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545F4914F6CDD1DULL;
}

uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + random_next(state) % (high - low + 1);
}

double spin_steps_per_ns = 1;

void spin_calibrate(void)
{
	const uint64_t step_cnt = 50000;
	uint64_t best_ns = UINT64_MAX;

	/* The fastest of many short rounds is the one that nothing disturbed. */
	for (int round = 0; round < 60; round++) {
		uint64_t start_ts = clock_now_ns(), took_ns;

		burn_steps(step_cnt);
		took_ns = clock_now_ns() - start_ts;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	spin_steps_per_ns = (double)step_cnt / (double)(best_ns ? best_ns : 1);
}

void spin_work(uint64_t work_ns)
{
	burn(work_ns);
}

static int span_overlaps(const struct span *span, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t span_to_ts = atomic_load(&span->to_ts), span_from_ts = atomic_load(&span->from_ts);

	return span_from_ts && to_ts > span_from_ts && (!span_to_ts || from_ts < span_to_ts);
}

struct gaps spin_watching_gaps(uint64_t work_ns, const struct span *within)
{
	uint64_t start_ts = clock_now_ns(), last_ts = start_ts;
	struct gaps gaps = {0};

	while (last_ts - start_ts - gaps.within_ns - gaps.outside_ns < work_ns) {
		uint64_t ts = clock_now_ns();

		if (ts - last_ts > GAP_MIN_NS) {
			if (!within || span_overlaps(within, last_ts, ts))
				gaps.within_ns += ts - last_ts;
			else
				gaps.outside_ns += ts - last_ts;
			gaps.cnt++;
		}
		last_ts = ts;
	}
	return gaps;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Pinned threads see only their own CPU, so the set is the one that the program was started with. */
static cpu_set_t usable_cpus;

static void cpus_note(void)
{
	if (sched_getaffinity(0, sizeof(usable_cpus), &usable_cpus))
		CPU_SET(0, &usable_cpus);
}

int cpu_usable_cnt(void)
{
	if (!CPU_COUNT(&usable_cpus))
		cpus_note();
	return CPU_COUNT(&usable_cpus);
}

int cpu_number(int role)
{
	int left = role % cpu_usable_cnt();

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &usable_cpus) && left-- == 0)
			return cpu;
	}
	return 0;
}

int thread_pin(int role)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu_number(role), &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

void thread_name(const char *fmt, ...)
{
	char name[16];
	va_list args;

	va_start(args, fmt);
	vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	prctl(PR_SET_NAME, name);
}

void thread_urgent(int fifo_prio)
{
	struct sched_param param = {.sched_priority = fifo_prio};

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		setpriority(PRIO_PROCESS, 0, fifo_prio > PRIO_SERVER ? -20 : -10);
}

void thread_ordinary(int nice_value)
{
	struct sched_param param = {0};

	sched_setscheduler(0, SCHED_OTHER, &param);
	setpriority(PRIO_PROCESS, 0, nice_value);
}

int thread_start_named(pthread_t *thread, void *(*body)(void *), void *arg)
{
	return -pthread_create(thread, NULL, body, arg);
}

/* --- sockets and files ------------------------------------------------------------------------------------------- */

int tcp_listen(int *port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t addr_sz = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, MAX_CONNECTIONS) ||
	    getsockname(fd, (struct sockaddr *)&addr, &addr_sz)) {
		err = -errno;
		close(fd);
		return err;
	}
	*port = ntohs(addr.sin_port);
	return fd;
}

static void socket_send_at_once(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int tcp_connect(int port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		close(fd);
		return err;
	}
	socket_send_at_once(fd);
	return fd;
}

int message_recv(int fd, void *buf, size_t buf_sz)
{
	size_t got = 0;

	while (got < buf_sz) {
		ssize_t part = recv(fd, (char *)buf + got, buf_sz - got, 0);

		if (part == 0)
			return -EPIPE;
		if (part < 0 && errno != EINTR)
			return -errno;
		got += part > 0 ? (size_t)part : 0;
	}
	return 0;
}

int message_send(int fd, const void *buf, size_t buf_sz)
{
	size_t put = 0;

	while (put < buf_sz) {
		ssize_t part = send(fd, (const char *)buf + put, buf_sz - put, MSG_NOSIGNAL);

		if (part < 0 && errno != EINTR)
			return -errno;
		put += part > 0 ? (size_t)part : 0;
	}
	return 0;
}

static int file_fill(int fd, size_t size)
{
	static const char block[65536] = "whylate";

	for (size_t put = 0; put < size; put += sizeof(block)) {
		size_t part = size - put < sizeof(block) ? size - put : sizeof(block);

		if (pwrite(fd, block, part, (off_t)put) != (ssize_t)part)
			return errno ? -errno : -EIO;
	}
	return fsync(fd) ? -errno : 0;
}

int disk_file_open(size_t size)
{
	static const char *const dirs[] = {"/var/tmp", "."};
	int err = -ENOENT;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char path[64];
		struct statfs fs;
		int fd;

		if (statfs(dirs[i], &fs) || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
			continue;
		snprintf(path, sizeof(path), "%s/whylate-workload-XXXXXX", dirs[i]);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		/* Without a name there is nothing to clean up, whatever kills the workload. */
		unlink(path);
		err = file_fill(fd, size);
		if (!err)
			return fd;
		close(fd);
	}
	return err;
}

int run_delay_open(void)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

uint64_t run_delay_read(int fd)
{
	unsigned long long ran_ns = 0, delay_ns = 0;
	char text[96];
	ssize_t text_sz = pread(fd, text, sizeof(text) - 1, 0);

	if (text_sz <= 0)
		return 0;
	text[text_sz] = '\0';
	return sscanf(text, "%llu %llu", &ran_ns, &delay_ns) == 2 ? delay_ns : 0;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

int run_skip(struct run *run, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(run->skip_reason, sizeof(run->skip_reason), fmt, args);
	va_end(args);
	return -EOPNOTSUPP;
}

int run_stopped(const struct run *run)
{
	return atomic_load(&run->board->stop) != 0;
}

static void sample_add(struct run *run, uint64_t begin_ts, uint64_t end_ts, uint64_t planted_ns, uint64_t unclear_ns)
{
	struct board *board = run->board;
	uint64_t count_from_ts = atomic_load(&board->count_from_ts), idx;

	if (!count_from_ts || begin_ts < count_from_ts)
		return;
	idx = atomic_fetch_add(&board->sample_cnt, 1) % board->sample_room;
	board->samples[idx].latency_ns = end_ts - begin_ts;
	board->samples[idx].planted_ns = planted_ns < end_ts - begin_ts ? planted_ns : end_ts - begin_ts;
	board->samples[idx].unclear_ns = unclear_ns;
}

void run_sample(struct run *run, uint64_t begin_ts, uint64_t end_ts, uint64_t planted_ns)
{
	sample_add(run, begin_ts, end_ts, planted_ns, 0);
}

void run_set_culprit(struct run *run)
{
	atomic_store(&run->board->culprit_pid, (int)getpid());
	atomic_store(&run->board->culprit_tid, (int)syscall(SYS_gettid));
}

void run_aim(struct run *run, uint64_t at_ts)
{
	atomic_store(&run->board->aim_ts, at_ts);
}

int request_chosen(const struct request *request, unsigned int per_mille)
{
	return request->dice % 1000 < per_mille;
}

/* --- the server --------------------------------------------------------------------------------------------------- */

/* From `from_ts` to `to_ts` the worker did not compute, so no gap was watched: what a storm took of it is not known. */
static uint64_t storm_unclear_ns(const struct run *run, uint64_t from_ts, uint64_t to_ts)
{
	return to_ts > from_ts && span_overlaps(&run->board->storm, from_ts, to_ts) ? to_ts - from_ts : 0;
}

int worker_serve_one(struct worker *worker)
{
	const struct workload *workload = worker->run->workload;
	struct request request;
	struct reply reply = {0};
	uint64_t planted_ns, begin_ts, end_ts, sent_ts;
	int err;

	err = message_recv(worker->fd, &request, sizeof(request));
	if (err)
		return err;
	worker->unclear_ns = 0;
	begin_ts = clock_now_ns();
	planted_ns = workload->handle(worker, &request);
	end_ts = clock_now_ns();
	reply.sent_ts = request.sent_ts;
	err = message_send(worker->fd, &reply, sizeof(reply));
	if (err)
		return err;
	sent_ts = clock_now_ns();
	if (workload->planted_when_sent)
		planted_ns += workload->planted_when_sent(worker);
	worker->unclear_ns += storm_unclear_ns(worker->run, request.sent_ts, begin_ts);
	worker->unclear_ns += storm_unclear_ns(worker->run, end_ts, sent_ts);
	sample_add(worker->run, request.sent_ts, sent_ts, planted_ns, worker->unclear_ns);
	if (workload->after_reply)
		workload->after_reply(worker);
	return 0;
}

static void *worker_body(void *arg)
{
	struct worker *worker = arg;
	const struct workload *workload = worker->run->workload;

	thread_name("worker-%d", worker->idx);
	thread_pin(workload->spread ? worker->idx : CPU_SERVER);
	if (workload->thread_start && workload->thread_start(worker)) {
		fprintf(stderr, "%s: a server thread could not start\n", workload->name);
		_exit(1);
	}
	while (!worker_serve_one(worker))
		;
	close(worker->fd);
	return NULL;
}

static int serve_threads(struct run *run)
{
	static struct worker workers[MAX_CONNECTIONS];
	int connection_cnt = run->workload->connection_cnt, err;

	for (int i = 0; i < connection_cnt; i++) {
		struct worker *worker = &workers[i];

		worker->run = run;
		worker->idx = i;
		worker->random_state = clock_now_ns() * (uint64_t)(2 * i + 1);
		worker->fd = accept4(run->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (worker->fd < 0)
			return -errno;
		socket_send_at_once(worker->fd);
		err = thread_start_named(&worker->thread, worker_body, worker);
		if (err)
			return err;
	}
	for (int i = 0; i < connection_cnt; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

static int server_body(struct run *run)
{
	const struct workload *workload = run->workload;
	struct board *board = run->board;
	int port = 0, err;

	thread_name("wl-%s", workload->name);
	/* Threads inherit the policy. */
	if (!workload->plain_scheduling)
		thread_urgent(PRIO_SERVER);
	spin_calibrate();
	madvise(board, sizeof(*board) + board->sample_room * sizeof(struct sample), MADV_POPULATE_WRITE);
	if (workload->connection_cnt) {
		run->listen_fd = tcp_listen(&port);
		if (run->listen_fd < 0)
			return run->listen_fd;
	}
	if (workload->server_start) {
		err = workload->server_start(run);
		if (err)
			return err;
	}
	atomic_store(&board->server_port, port);
	atomic_store(&board->server_ready, 1);
	return workload->serve ? workload->serve(run) : serve_threads(run);
}

/* --- the load ----------------------------------------------------------------------------------------------------- */

static void client_think(struct worker *client)
{
	struct run *run = client->run;
	uint64_t mean_ns = NS_PER_SEC / (uint64_t)run->workload->rate_hz;
	uint64_t wake_ts = clock_now_ns() + random_between(&client->random_state, mean_ns / 2, mean_ns * 3 / 2);
	uint64_t aim_ts = client->idx ? 0 : atomic_load(&run->board->aim_ts);

	/* A request that is sent shortly before that moment might still be open then. */
	if (aim_ts && wake_ts + AIM_AHEAD_NS / 2 > aim_ts) {
		wake_ts = aim_ts;
		atomic_store(&run->board->aim_ts, 0);
	}
	sleep_until_ns(wake_ts);
}

static void *client_body(void *arg)
{
	struct worker *client = arg;
	struct run *run = client->run;
	struct request request = {0};
	struct reply reply;
	int err = 0;

	thread_name("client-%d", client->idx);
	thread_urgent(PRIO_CLIENT);
	/* Never where its server thread is, if that can be. */
	thread_pin(run->workload->spread ? client->idx + 1 : CPU_LOAD);
	while (!err && !run_stopped(run)) {
		request.dice = (uint32_t)(random_next(&client->random_state) >> 32);
		request.seq++;
		request.sent_ts = clock_now_ns();
		err = message_send(client->fd, &request, sizeof(request));
		if (!err)
			err = message_recv(client->fd, &reply, sizeof(reply));
		if (request.seq == 1)
			atomic_fetch_add(&run->board->clients_ready, 1);
		client_think(client);
	}
	close(client->fd);
	return NULL;
}

static int load_body(struct run *run)
{
	static struct worker clients[MAX_CONNECTIONS];
	int connection_cnt = run->workload->connection_cnt, err;

	thread_name("loadgen");
	for (int i = 0; i < connection_cnt; i++) {
		struct worker *client = &clients[i];

		client->run = run;
		client->idx = i;
		client->random_state = clock_now_ns() * (uint64_t)(2 * i + 3);
		client->fd = tcp_connect(atomic_load(&run->board->server_port));
		if (client->fd < 0)
			return client->fd;
		err = thread_start_named(&client->thread, client_body, client);
		if (err)
			return err;
	}
	for (int i = 0; i < connection_cnt; i++)
		pthread_join(clients[i].thread, NULL);
	return 0;
}

/* --- the driver --------------------------------------------------------------------------------------------------- */

static pid_t child_start(struct run *run, const char *what, int (*body)(struct run *))
{
	pid_t parent = getpid(), pid;
	sigset_t none;
	int err;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid < 0 ? -errno : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	err = body(run);
	if (err)
		fprintf(stderr, "%s: the %s failed: %s\n", run->workload->name, what, strerror(-err));
	_exit(err ? 1 : 0);
}

/* Waits for a child to end by itself, kills it if it does not; true if it ended well. */
static int child_end(pid_t pid, uint64_t patience_ns)
{
	uint64_t deadline_ts = clock_now_ns() + patience_ns;
	int status = 0, killed = 0;

	if (pid <= 0)
		return 1;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return got == pid && !killed && WIFEXITED(status) && !WEXITSTATUS(status);
		if (!killed && clock_now_ns() > deadline_ts) {
			kill(pid, SIGKILL);
			killed = 1;
		}
		sleep_for_ns(NS_PER_MS);
	}
}

/* A child that is gone before it was told to stop: not reaped here, child_end() does. */
static int child_gone(pid_t pid)
{
	siginfo_t info = {0};

	return pid > 0 && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

static int wait_until(const struct run *run, const atomic_uint *flag, unsigned int wanted, pid_t pid)
{
	uint64_t deadline_ts = clock_now_ns() + 20 * NS_PER_SEC;

	while (atomic_load(flag) < wanted) {
		if (child_gone(pid) || child_gone(run->server_pid))
			return -ECHILD;
		if (clock_now_ns() > deadline_ts)
			return -ETIMEDOUT;
		sleep_for_ns(NS_PER_MS);
	}
	return 0;
}

static int run_start(struct run *run)
{
	const struct workload *workload = run->workload;
	struct board *board = run->board;
	int err;

	if (workload->helper) {
		run->helper_pid = child_start(run, "helper", workload->helper);
		if (run->helper_pid < 0)
			return run->helper_pid;
		err = wait_until(run, &board->helper_ready, 1, run->helper_pid);
		if (err)
			return err;
	}
	run->server_pid = child_start(run, "server", server_body);
	if (run->server_pid < 0)
		return run->server_pid;
	err = wait_until(run, &board->server_ready, 1, run->server_pid);
	if (err || !workload->connection_cnt)
		return err;
	run->load_pid = child_start(run, "load", load_body);
	if (run->load_pid < 0)
		return run->load_pid;
	return wait_until(run, &board->clients_ready, (unsigned int)workload->connection_cnt, run->load_pid);
}

/* True when somebody asked for an early end.  Waits for that up to `wait_ns`. */
static int asked_to_stop(int signal_fd, uint64_t wait_ns)
{
	struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	struct timespec timeout = {.tv_sec = (time_t)(wait_ns / NS_PER_SEC), .tv_nsec = (long)(wait_ns % NS_PER_SEC)};
	struct stat st;
	char scrap[256];

	/* /dev/null or a file is always at its end and says nothing about who started us. */
	if (fstat(STDIN_FILENO, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(STDIN_FILENO)))
		fds[1].fd = -1;
	if (ppoll(fds, 2, &timeout, NULL) <= 0)
		return 0;
	if (fds[0].revents)
		return 1;
	return fds[1].revents && read(STDIN_FILENO, scrap, sizeof(scrap)) <= 0;
}

/* From `ready` to the end of the counted part: 0 or -errno. */
static int run_watch(struct run *run, int signal_fd)
{
	struct board *board = run->board;
	uint64_t start_ts = clock_now_ns(), now_ts;
	int counting = !run->warmup_path;

	if (counting)
		atomic_store(&board->count_from_ts, start_ts);
	printf("ready {\"server_pid\":%d,\"port\":%d}\n", (int)run->server_pid, atomic_load(&board->server_port));
	fflush(stdout);
	while (!asked_to_stop(signal_fd, 2 * NS_PER_MS)) {
		if (child_gone(run->server_pid) || child_gone(run->load_pid))
			return -ECHILD;
		now_ts = clock_now_ns();
		if (!counting && !access(run->warmup_path, F_OK)) {
			counting = 1;
			start_ts = now_ts;
			atomic_store(&board->count_from_ts, start_ts);
		}
		if (!counting && now_ts - start_ts > MAX_WARMUP_NS)
			return -ETIMEDOUT;
		if (counting && run->duration_s && now_ts - start_ts >= run->duration_s * NS_PER_SEC)
			break;
	}
	return 0;
}

static int run_end(struct run *run)
{
	int well = 1;

	atomic_store(&run->board->stop, 1);
	/* The server ends when the load has closed the last connection. */
	well &= child_end(run->load_pid, 5 * NS_PER_SEC);
	well &= child_end(run->server_pid, 5 * NS_PER_SEC);
	well &= child_end(run->helper_pid, 2 * NS_PER_SEC);
	return well ? 0 : -ECHILD;
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static int by_latency(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	return a->latency_ns < b->latency_ns ? -1 : a->latency_ns > b->latency_ns;
}

struct means {
	double latency, planted, unclear;
};

/* Over samples[from..to). */
static struct means samples_mean(const struct sample *samples, uint64_t from, uint64_t to)
{
	struct means means = {0};

	for (uint64_t i = from; i < to; i++) {
		means.latency += (double)samples[i].latency_ns;
		means.planted += (double)samples[i].planted_ns;
		means.unclear += (double)samples[i].unclear_ns;
	}
	means.latency /= (double)(to - from);
	means.planted /= (double)(to - from);
	means.unclear /= (double)(to - from);
	return means;
}

static double samples_variance_share(const struct sample *samples, uint64_t cnt, double mean_latency,
				     double mean_planted)
{
	double variance = 0, covariance = 0;

	for (uint64_t i = 0; i < cnt; i++) {
		double latency = (double)samples[i].latency_ns - mean_latency;

		variance += latency * latency;
		covariance += latency * ((double)samples[i].planted_ns - mean_planted);
	}
	return variance > 0 ? covariance / variance : 0;
}

/* `,"key":["a","b"]` of the names in `names`, one a line. */
static void names_print(const char *key, const char *names)
{
	const char *before = "";

	printf(",\"%s\":[", key);
	while (*names) {
		size_t len = strcspn(names, "\n");

		printf("%s\"%.*s\"", before, (int)len, names);
		before = ",";
		names += len + (names[len] == '\n');
	}
	printf("]");
}

/* The rank of quantile q among cnt sorted values. */
static uint64_t quantile_idx(uint64_t cnt, double q)
{
	uint64_t idx = (uint64_t)(q * (double)cnt);

	return idx < cnt ? idx : cnt - 1;
}

static void result_print(const struct run *run)
{
	const struct workload *workload = run->workload;
	struct board *board = run->board;
	uint64_t all = atomic_load(&board->sample_cnt), cnt = all < board->sample_room ? all : board->sample_room;
	struct sample *samples = board->samples;
	double late, planted, unclear;
	struct means mean, tail, head;
	uint64_t p50_idx, p99_idx;

	qsort(samples, cnt, sizeof(*samples), by_latency);
	p50_idx = quantile_idx(cnt, 0.5);
	p99_idx = quantile_idx(cnt, 0.99);
	mean = samples_mean(samples, 0, cnt);
	head = samples_mean(samples, 0, p50_idx + 1);
	tail = samples_mean(samples, p99_idx, cnt);
	late = tail.latency - head.latency;
	planted = tail.planted - head.planted;
	unclear = tail.unclear - head.unclear;
	printf("{\"workload\":\"%s\",\"category\":\"%s\",\"server_pid\":%d,\"server_comm\":\"wl-%s\",\"intervals\":%"
	       "llu",
	       workload->name, workload->category, (int)run->server_pid, workload->name, (unsigned long long)all);
	printf(",\"planted_share\":%.4f,\"planted_share_most\":%.4f,\"variance_share\":%.4f",
	       late > 0 ? planted / late : 0, late > 0 ? (planted + unclear) / late : 0,
	       samples_variance_share(samples, cnt, mean.latency, mean.planted));
	printf(",\"mean_ns\":%.0f,\"p50_ns\":%llu,\"p99_ns\":%llu,\"max_ns\":%llu", mean.latency,
	       (unsigned long long)samples[p50_idx].latency_ns, (unsigned long long)samples[p99_idx].latency_ns,
	       (unsigned long long)samples[cnt - 1].latency_ns);
	printf(",\"tail_latency_ns\":%.0f,\"tail_planted_ns\":%.0f,\"head_planted_ns\":%.0f", tail.latency,
	       tail.planted, head.planted);
	if (workload->culprit_comm)
		printf(",\"culprit_comm\":\"%s\",\"culprit_pid\":%d,\"culprit_tid\":%d", workload->culprit_comm,
		       atomic_load(&board->culprit_pid), atomic_load(&board->culprit_tid));
	if (workload->planted)
		names_print("planted", workload->planted);
	if (workload->beneath)
		names_print("beneath", workload->beneath);
	if (workload->report)
		workload->report(run, stdout);
	printf("}\n");
	fflush(stdout);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static int options_parse(struct run *run, int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'},
		{"warmup-file", required_argument, NULL, 'w'},
		{0},
	};
	char *end;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'w') {
			run->warmup_path = optarg;
		} else if (opt == 's') {
			run->duration_s = (unsigned int)strtoul(optarg, &end, 10);
			if (*end || end == optarg || run->duration_s > 3600)
				return -EINVAL;
		} else {
			return -EINVAL;
		}
	}
	return optind == argc ? 0 : -EINVAL;
}

static int board_create(struct run *run)
{
	const struct workload *workload = run->workload;
	uint64_t rate_hz =
		(uint64_t)workload->rate_hz * (uint64_t)(workload->connection_cnt ? workload->connection_cnt : 1);
	uint64_t room = run->duration_s ? rate_hz * (run->duration_s + 2) * 2 : MAX_SAMPLES;

	if (room > MAX_SAMPLES)
		room = MAX_SAMPLES;
	run->board = mmap(NULL, sizeof(*run->board) + room * sizeof(struct sample), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run->board == MAP_FAILED)
		return -errno;
	run->board->sample_room = room;
	return 0;
}

static int signals_catch(void)
{
	sigset_t mask;
	int fd;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &mask, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int run_prepare(struct run *run)
{
	const struct workload *workload = run->workload;

	if (cpu_usable_cnt() < workload->cpu_cnt_needed)
		return run_skip(run, "needs %d CPUs, has %d", workload->cpu_cnt_needed, cpu_usable_cnt());
	return workload->prepare ? workload->prepare(run) : 0;
}

int workload_main(int argc, char **argv, const struct workload *workload)
{
	struct run run = {
		.workload = workload, .duration_s = (unsigned int)workload->default_duration_s, .listen_fd = -1};
	int signal_fd, err, end_err;

	if (options_parse(&run, argc, argv)) {
		fprintf(stderr, "usage: %s [--seconds N] [--warmup-file PATH]\n", argv[0]);
		return 2;
	}
	cpus_note();
	signal_fd = signals_catch();
	err = signal_fd < 0 ? signal_fd : board_create(&run);
	if (!err)
		err = run_prepare(&run);
	if (!err) {
		err = run_start(&run);
		if (!err)
			err = run_watch(&run, signal_fd);
		end_err = run_end(&run);
		if (!err)
			err = end_err;
	}
	if (workload->cleanup)
		workload->cleanup(&run);
	if (err == -EOPNOTSUPP && run.skip_reason[0]) {
		printf("skip %s\n", run.skip_reason);
		return EXIT_SKIPPED;
	}
	if (!err && !atomic_load(&run.board->sample_cnt))
		err = -ENODATA;
	if (err) {
		fprintf(stderr, "%s: failed: %s\n", workload->name, strerror(-err));
		return 1;
	}
	result_print(&run);
	return 0;
}

FILE *log_open(const char *variable)
{
	const char *path = getenv(variable);
	FILE *file = path ? fopen(path, "w") : NULL;

	if (file)
		setvbuf(file, NULL, _IOLBF, 0);
	return file;
}

void *library_symbol(const char *library, const char *symbol)
{
	char program[PATH_MAX], path[2 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	void *handle, *found;

	program[len > 0 ? len : 0] = '\0';
	snprintf(path, sizeof(path), "%s/lib/%s", dirname(program), library);
	handle = dlopen(path, RTLD_NOW);
	found = handle ? dlsym(handle, symbol) : NULL;
	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}
