// SPDX-License-Identifier: GPL-2.0-or-later
/* As holdout.c: the fifth hold-out, causes that an engineer on call meets.  What a report has to say of each is in
 * `run`. */
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PERIOD_NS (180 * MS)
#define CONFIG    "/var/tmp/whylate-oncall.conf"

WORK(scan_catalog)
WORK(convert_image)
WORK(load_zone)
WORK(parse_config)
WORK(export_orders)
WORK(merge_runs)

/* --- oc-rehash: one insert of some hundreds moves all entries of a table; an event loop --------------------------- */

#define ENTRIES (1UL << 19)

static uint32_t *table;
static unsigned int insert_cnt;

NOINLINE void grow_table(void)
{
	uint32_t *larger = calloc(ENTRIES * 2, sizeof(*larger));

	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint32_t at = table[i] * 2654435761U % (ENTRIES * 2);

		while (larger[at])
			at = (at + 1) % (ENTRIES * 2);
		larger[at] = table[i];
	}
	sink += larger[ENTRIES];
	free(larger);
}

NOINLINE void insert_entry(void)
{
	if (++insert_cnt % 200 == 0 && !is_off())
		grow_table();
}

/* --- oc-starve: readers that overlap keep a writer out ------------------------------------------------------------ */

static pthread_rwlock_t catalog_lock = PTHREAD_RWLOCK_INITIALIZER;

NOINLINE void read_catalog(void)
{
	pthread_rwlock_rdlock(&catalog_lock);
	scan_catalog(10 * MS);
	pthread_rwlock_unlock(&catalog_lock);
}

static void *scanner(void *arg)
{
	name_thread("scanner");
	for (;;) {
		/* Both by one clock: the second begins before the first ends. */
		nap(PERIOD_NS - now_ns() % PERIOD_NS + (arg ? 7 * MS : 0));
		if (!is_off())
			read_catalog();
	}
	return NULL;
}

NOINLINE void change_catalog(void)
{
	pthread_rwlock_wrlock(&catalog_lock);
	sink++;
	pthread_rwlock_unlock(&catalog_lock);
}

/* --- oc-batch: a batch that is not full is sent when its time is over --------------------------------------------- */

static pthread_mutex_t batch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t batch_full = PTHREAD_COND_INITIALIZER;

NOINLINE void await_batch(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)SLOW_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&batch_lock);
	while (!pthread_cond_timedwait(&batch_full, &batch_lock, &until))
		sink++;
	pthread_mutex_unlock(&batch_lock);
}

/* --- oc-exec: a program for each rare request --------------------------------------------------------------------- */

NOINLINE void run_converter(void)
{
	char turns[32], *args[] = {"converter", "convert", turns, NULL};
	extern char **environ;
	pid_t pid;

	snprintf(turns, sizeof(turns), "%llu", (unsigned long long)turns_per_ms);
	if (!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ))
		waitpid(pid, NULL, 0);
}

/* --- oc-dns: a resolver, asked over UDP, loads its zone between two questions ------------------------------------- */

static int resolver_port;

NOINLINE void resolve(void)
{
	static __thread int fd = -1;
	struct sockaddr_in at = loopback(resolver_port);
	char reply[64];

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
			exit(1);
	}
	if (send(fd, "a?", 2, 0) < 0 || recv(fd, reply, sizeof(reply), 0) < 0)
		perror("resolve");
}

static void answer_questions(int port)
{
	struct sockaddr_in at = loopback(port), from;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t load_ts = now_ns();
	char question[64];

	if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
		exit(1);
	name_thread("resolver");
	for (;;) {
		socklen_t len = sizeof(from);
		ssize_t sz = recvfrom(fd, question, sizeof(question), 0, (struct sockaddr *)&from, &len);

		if (now_ns() > load_ts) {
			load_ts = now_ns() + PERIOD_NS;
			if (!is_off())
				load_zone(SLOW_NS);
		}
		if (sz > 0 && sendto(fd, question, (size_t)sz, 0, (struct sockaddr *)&from, len) < 0)
			perror("answer");
	}
}

/* --- oc-conns: a pool of two connections, of which a report takes both -------------------------------------------- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_changed = PTHREAD_COND_INITIALIZER;
static int free_cnt = 2;

NOINLINE void take_connections(int cnt)
{
	pthread_mutex_lock(&pool_lock);
	while (free_cnt < cnt)
		pthread_cond_wait(&pool_changed, &pool_lock);
	free_cnt -= cnt;
	pthread_mutex_unlock(&pool_lock);
}

NOINLINE void give_connections(int cnt)
{
	pthread_mutex_lock(&pool_lock);
	free_cnt += cnt;
	pthread_cond_broadcast(&pool_changed);
	pthread_mutex_unlock(&pool_lock);
}

static void *reporter(void *arg)
{
	(void)arg;
	name_thread("reporter");
	for (;;) {
		nap(PERIOD_NS);
		if (is_off())
			continue;
		take_connections(2);
		export_orders(SLOW_NS);
		give_connections(2);
	}
	return NULL;
}

/* --- oc-phases: a planner behind a pipe, a pricer behind an eventfd, a lock behind both --------------------------- */

static int plan_fd[2], ask_fd, price_fd, planned_fd;
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER, runs_lock = PTHREAD_MUTEX_INITIALIZER;

static void *planner(void *arg)
{
	char order;

	(void)arg;
	name_thread("planner");
	while (read(plan_fd[0], &order, 1) == 1) {
		eventfd_t prices;

		eventfd_write(ask_fd, 1);
		eventfd_read(price_fd, &prices);
		eventfd_write(planned_fd, 1);
	}
	return NULL;
}

static void *pricer(void *arg)
{
	eventfd_t orders;

	(void)arg;
	name_thread("pricer");
	while (!eventfd_read(ask_fd, &orders)) {
		pthread_mutex_lock(&runs_lock);
		sink++;
		pthread_mutex_unlock(&runs_lock);
		eventfd_write(price_fd, 1);
	}
	return NULL;
}

static void *merger(void *arg)
{
	(void)arg;
	name_thread("merger");
	for (;;) {
		nap(PERIOD_NS);
		if (is_off())
			continue;
		pthread_mutex_lock(&runs_lock);
		merge_runs(SLOW_NS);
		pthread_mutex_unlock(&runs_lock);
	}
	return NULL;
}

NOINLINE void plan_order(void)
{
	eventfd_t planned;

	pthread_mutex_lock(&plan_lock);
	if (write(plan_fd[1], "o", 1) == 1)
		eventfd_read(planned_fd, &planned);
	pthread_mutex_unlock(&plan_lock);
}

/* --- oc-reload: a file that something writes again and again, read anew by the event loop ------------------------- */

static void *deployer(void *arg)
{
	(void)arg;
	name_thread("deployer");
	for (;;) {
		int fd;

		nap(PERIOD_NS);
		fd = open(CONFIG, O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
		say(fd, "depth 3\n");
		close(fd);
	}
	return NULL;
}

NOINLINE void reload(int inotify)
{
	char events[4096];

	if (read(inotify, events, sizeof(events)) > 0 && !is_off())
		parse_config(SLOW_NS);
}

/* --- serving ------------------------------------------------------------------------------------------------------ */

static void serve(bool slow)
{
	answer_get(GET_NS);
	if (is("oc-rehash"))
		insert_entry();
	else if (is("oc-starve"))
		change_catalog();
	else if (is("oc-batch") && slow && !is_off())
		await_batch();
	else if (is("oc-exec") && slow && !is_off())
		run_converter();
	else if (is("oc-dns"))
		resolve();
	else if (is("oc-conns")) {
		take_connections(1);
		give_connections(1);
	} else if (is("oc-phases"))
		plan_order();
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

static int accept_client(int fd)
{
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC), one = 1;

	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return client;
}

static void serve_events(int fd, int inotify)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd}, events[16];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	event.data.fd = inotify;
	if (inotify >= 0)
		epoll_ctl(epoll, EPOLL_CTL_ADD, inotify, &event);
	for (;;) {
		int cnt = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < cnt; i++) {
			int at = events[i].data.fd;
			char line[64];

			if (at == fd) {
				event.data.fd = accept_client(fd);
				epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
			} else if (at == inotify) {
				reload(inotify);
			} else if (read_line(at, line, sizeof(line))) {
				serve(*line == 's');
				say(at, "ok\n");
			} else {
				close(at);
			}
		}
	}
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, arg);
	pthread_detach(thread);
}

/* The inotify descriptor of oc-reload, or -1. */
static int prepare(void)
{
	int inotify = -1;

	if (is("oc-rehash")) {
		table = malloc(ENTRIES * sizeof(*table));
		for (uint32_t i = 0; i < ENTRIES; i++)
			table[i] = i * 40503 + 1;
	} else if (is("oc-starve")) {
		start(scanner, NULL);
		start(scanner, "late");
	} else if (is("oc-conns")) {
		start(reporter, NULL);
	} else if (is("oc-phases")) {
		if (pipe(plan_fd))
			exit(1);
		ask_fd = eventfd(0, 0);
		price_fd = eventfd(0, 0);
		planned_fd = eventfd(0, 0);
		start(planner, NULL);
		start(pricer, NULL);
		start(merger, NULL);
	} else if (is("oc-reload")) {
		close(open(CONFIG, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		inotify = inotify_init1(IN_CLOEXEC);
		inotify_add_watch(inotify, CONFIG, IN_CLOSE_WRITE);
		start(deployer, NULL);
	}
	return inotify;
}

int main(int argc, char **argv)
{
	int inotify, fd;

	if (argc < 3)
		return 2;
	plant = argv[1];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (is("convert")) {
		name_thread("converter");
		turns_per_ms = strtoull(argv[2], NULL, 10);
		convert_image(SLOW_NS);
		return 0;
	}
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	calibrate();
	resolver_port = atoi(argv[2]) + 1;
	if (!strcmp(argv[argc - 1], "beside"))
		answer_questions(resolver_port);
	inotify = prepare();
	fd = listen_at(atoi(argv[2]));
	if (is("oc-rehash") || is("oc-reload"))
		serve_events(fd, inotify);
	for (;;)
		start(connection, (void *)(intptr_t)accept_client(fd));
}
