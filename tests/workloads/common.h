/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all workloads share.  A workload is a server with ONE planted cause of lateness, and its own load:
 *
 *   NAME [--seconds N] [--warmup-file PATH]
 *
 * The driver (the process that was started) forks the helper, if the workload has one, then the server, then the load
 * generator, and prints `ready {"server_pid":…,"port":…}` once every connection has had its first reply.  With
 * --warmup-file it then waits until PATH exists.  From that moment it counts requests for N seconds (0: until told to
 * stop), stops the load, and prints one JSON line with what the server threads measured by themselves.  SIGTERM, SIGINT
 * or the end of stdin (where stdin is a pipe, a socket or a terminal) end it early, with the same line.  Exit codes:
 * 0 done, 1 failed, 2 usage, 77 skipped (`skip REASON` is printed).
 *
 * Load and server run under SCHED_FIFO where they may, so that the builds of other people on the machine are not a
 * second cause of lateness.  Clients think between a reply and the next request, so a connection never has two requests
 * open.  All processes live in one shared `struct board`; every child dies with the driver.
 */
#ifndef WORKLOADS_COMMON_H
#define WORKLOADS_COMMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define NS_PER_US  1000ULL
#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL

#define EXIT_SKIPPED 77
#define AIM_AHEAD_NS (60 * NS_PER_MS)

/* SCHED_FIFO priorities: a client must never wait for the server, a hog must win against the server. */
enum { PRIO_SERVER = 10, PRIO_HOG = 20, PRIO_CLIENT = 30 };

/* The CPUs by role: the server has one, the load the other; with a single CPU both are the same. */
enum { CPU_SERVER = 0, CPU_LOAD = 1 };

/* One message each way, of one size. */
struct request {
	uint64_t sent_ts; /* CLOCK_MONOTONIC at the client, just before its send */
	uint32_t dice;    /* random, decides whether the request meets the planted cause */
	uint32_t seq;
	char filler[48];
};

struct reply {
	uint64_t sent_ts; /* of the request */
	char filler[56];
};

struct sample {
	uint64_t latency_ns;
	uint64_t planted_ns;
	uint64_t unclear_ns; /* the machine's own pauses: the guest's kernel takes them for whatever it was at */
};

/* Shared by all processes of a workload. */
/* Moved on by one thread, read by others.  `from_ts` 0: not yet; `to_ts` 0: nobody knows yet when it ends. */
struct span {
	atomic_ulong from_ts, to_ts;
};

struct board {
	atomic_uint server_ready;
	atomic_uint helper_ready;
	atomic_uint clients_ready;
	atomic_uint stop;
	atomic_int server_port;
	atomic_int helper_port;
	atomic_int culprit_pid;
	atomic_int culprit_tid;
	atomic_ulong count_from_ts; /* requests that began earlier are warm-up */
	atomic_ulong sample_cnt;    /* may exceed sample_room: the oldest are overwritten */
	atomic_ulong aim_ts;        /* if set, the next request of the first connection is sent at that moment */
	struct span storm;          /* of interrupts, the latest */
	atomic_ulong extra[8];      /* the workload's own */
	uint64_t sample_room;
	struct sample samples[];
};

struct workload;

struct run {
	const struct workload *workload;
	struct board *board;
	unsigned int duration_s; /* 0: until told to stop */
	const char *warmup_path;
	pid_t server_pid, helper_pid, load_pid;
	int listen_fd;
	char skip_reason[160];
};

/* One server thread, or what stands for it in a server of another shape. */
struct worker {
	struct run *run;
	int idx;
	int fd; /* its connection */
	uint64_t random_state;
	void *own;           /* the workload's */
	uint64_t unclear_ns; /* of the request that it handles */
	pthread_t thread;
};

struct workload {
	const char *name;     /* the server's comm is wl-NAME */
	const char *category; /* of category.def: what must rank first */
	const char *culprit_comm;
	const char *planted; /* functions, one a line: the factor that must come first (two of them: their
				covariance) */
	const char *beneath; /* functions that the planted one spends its varying time in: as good an answer */
	int connection_cnt;
	int rate_hz; /* per connection, on average */
	int default_duration_s;
	int cpu_cnt_needed;
	int spread;           /* server threads alternate between the CPUs instead of sharing CPU_SERVER */
	int plain_scheduling; /* no SCHED_FIFO for the server */
	/* In the driver, before anything is forked, and after everything is gone.  Return 0, -errno or run_skip(). */
	int (*prepare)(struct run *run);
	void (*cleanup)(struct run *run);
	/* A process beside the server: sets helper_ready, returns when board->stop is set. */
	int (*helper)(struct run *run);
	/* In the server process, before the first connection is accepted; starts background threads. */
	int (*server_start)(struct run *run);
	/* Instead of a thread per connection: returns when all connections are closed. */
	int (*serve)(struct run *run);
	/* In the server thread: before its first request; the request itself, returns the planted nanoseconds in it;
	 * and after each reply, outside of any request. */
	int (*thread_start)(struct worker *worker);
	uint64_t (*handle)(struct worker *worker, const struct request *request);
	/* Optional: what was planted and can only be told when the reply has been sent, in ns. */
	uint64_t (*planted_when_sent)(struct worker *worker);
	void (*after_reply)(struct worker *worker);
	/* Adds `,"key":value` to the JSON line. */
	void (*report)(const struct run *run, FILE *out);
};

/* The whole program; the exit code. */
int workload_main(int argc, char **argv, const struct workload *workload);
/* Notes why this machine cannot run the workload and returns -EOPNOTSUPP. */
int run_skip(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int run_stopped(const struct run *run);
/* Counts one request that ended now, unless it began in the warm-up. */
void run_sample(struct run *run, uint64_t begin_ts, uint64_t end_ts, uint64_t planted_ns);
/* Makes the load send a request at `at_ts`, which must be at least AIM_AHEAD_NS away. */
void run_aim(struct run *run, uint64_t at_ts);
/* The calling thread is who makes requests late. */
void run_set_culprit(struct run *run);
/* Reads one request and answers it as `worker`: 0, or -errno (-EPIPE at the end of the connection). */
int worker_serve_one(struct worker *worker);
/* True for `per_mille` out of 1000 requests. */
int request_chosen(const struct request *request, unsigned int per_mille);

uint64_t clock_now_ns(void);
/* The file that an environment variable names, written line by line; NULL: there is none. */
FILE *log_open(const char *variable);
uint64_t thread_cpu_ns(void);
void sleep_for_ns(uint64_t duration_ns);
void sleep_until_ns(uint64_t wake_ts);
uint64_t random_next(uint64_t *state);
uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high);

/* A function of its own in the machine code, whatever the optimiser would rather do. */
#define KEPT __attribute__((noipa))

/* Work of a fixed amount, `work_ns` long when undisturbed: being preempted makes it last longer, not do less. */
void spin_calibrate(void);
void spin_work(uint64_t work_ns);
/* The same inside the caller: no function of that work can be blamed but the caller itself. */
extern double spin_steps_per_ns;
static inline __attribute__((always_inline)) void burn_steps(uint64_t step_cnt)
{
	uint64_t x = 1;

	while (step_cnt--) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(x));
	}
}

static inline __attribute__((always_inline)) void burn(uint64_t work_ns)
{
	burn_steps((uint64_t)((double)work_ns * spin_steps_per_ns));
}

struct gaps {
	uint64_t cnt, within_ns, outside_ns;
};

/*
 * Reads the clock until `work_ns` have passed, gaps of more than a microsecond not counted.  Gaps that overlap `within`
 * (NULL: all) are told apart from others.
 */
struct gaps spin_watching_gaps(uint64_t work_ns, const struct span *within);

int cpu_usable_cnt(void);
/* Pins the calling thread to the usable CPU of that role (modulo how many there are) and returns its number. */
int cpu_number(int role);
int thread_pin(int role);
void thread_name(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* SCHED_FIFO, or the highest ordinary priority where that is refused. */
void thread_urgent(int fifo_prio);
/* Ordinary scheduling again, at that nice value. */
void thread_ordinary(int nice_value);
int thread_start_named(pthread_t *thread, void *(*body)(void *), void *arg);

int tcp_listen(int *port);
int tcp_connect(int port);
/* The whole buffer: 0, -EPIPE when the other side has closed, or -errno. */
int message_recv(int fd, void *buf, size_t buf_sz);
int message_send(int fd, const void *buf, size_t buf_sz);

/* A file without a name on a real disk, `size` bytes of data written and synced: a descriptor or -errno. */
int disk_file_open(size_t size);
/* The third word of /proc/thread-self/schedstat's second: nanoseconds the thread was runnable and did not run. */
int run_delay_open(void);
uint64_t run_delay_read(int fd);

/* Of a library in lib/ beside the program, which is loaded; the program ends where there is none. */
void *library_symbol(const char *library, const char *symbol);

#endif
