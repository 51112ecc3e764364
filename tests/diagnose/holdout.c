// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * As server.c: a hold-out, causes in shapes that server.c does not have.  Those of C++, Go and Python whose cause is in
 * another program find that program here, by `beside`.  What a report has to say of each is in `run`.
 */
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PERIOD_NS  (180 * MS)
#define JOURNAL_SZ (16UL << 20)
#define SHELVES_SZ (24UL << 20)

WORK(rasterize_label)
WORK(count_cars)
WORK(park_car)
WORK(sweep_ledger)
WORK(unseal_secret)
WORK(mix_audio)
WORK(advance_clock)
WORK(pack_archive)
WORK(sweep_sessions)
WORK(compute_tariff)
WORK(format_label)

/* A program or thread that answers lines of a socket pair. */
static int asked_fd[2];

static void pair(int fds[2], int type)
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds)) {
		perror("socketpair");
		exit(1);
	}
}

static bool child(const char *name)
{
	if (fork())
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread(name);
	return true;
}

static bool ask(int fd, bool slow)
{
	char reply[64];

	say(fd, slow ? "slow\n" : "get\n");
	return read_line(fd, reply, sizeof(reply));
}

/* --- ho-semaphore: two seats before a printer, which is another process ------------------------------------------- */

static sem_t seats;
static int printer_to[2], printer_from[2];

NOINLINE void print_label(bool slow)
{
	char reply[2];

	sem_wait(&seats);
	if (slow) {
		say(printer_to[1], "slow\n");
		read_line(printer_from[0], reply, sizeof(reply));
	}
	sem_post(&seats);
}

static void start_printer(void)
{
	char line[64];

	sem_init(&seats, 0, 2);
	if (pipe(printer_to) || pipe(printer_from))
		exit(1);
	if (!child("printer"))
		return;
	while (read_line(printer_to[0], line, sizeof(line)))
		for (const char *end = line; (end = strchr(end, '\n')); end++) {
			rasterize_label(SLOW_NS);
			say(printer_from[1], "+");
		}
	_exit(0);
}

/* --- ho-rotate: the log is synced and renamed with its lock taken ------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
#define LOG "/var/tmp/whylate-holdout.log"

NOINLINE void append_log(void)
{
	static const char entry[256];

	pthread_mutex_lock(&log_lock);
	if (pwrite(log_fd, entry, sizeof(entry), 0) < 0)
		perror("append_log");
	pthread_mutex_unlock(&log_lock);
}

NOINLINE void rotate_log(void)
{
	int next = open(LOG ".next", O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);

	pthread_mutex_lock(&log_lock);
	if (fdatasync(log_fd) || rename(LOG, LOG ".old") || rename(LOG ".next", LOG))
		perror("rotate_log");
	close(log_fd);
	log_fd = next;
	pthread_mutex_unlock(&log_lock);
}

static void fill_log(void)
{
	static char page[1 << 20];

	for (size_t at = 0; at < JOURNAL_SZ; at += sizeof(page))
		if (pwrite(log_fd, page, sizeof(page), (off_t)at) < 0)
			perror("fill_log");
}

/* --- ho-inversion: a patient valet, asked over a pair of sockets, shares its CPU with an eager counter ------------ */

static void *valet(void *arg)
{
	char line[64];

	(void)arg;
	name_thread("valet");
	pin(0);
	setpriority(PRIO_PROCESS, 0, 10);
	while (recv(asked_fd[1], line, sizeof(line), 0) > 0) {
		park_car(MS / 10);
		say(asked_fd[1], "ok\n");
	}
	return NULL;
}

static pthread_mutex_t valet_lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void ask_valet(void)
{
	pthread_mutex_lock(&valet_lock);
	ask(asked_fd[0], false);
	pthread_mutex_unlock(&valet_lock);
}

/* --- ho-trim: pages that a thread gives back, and requests touch again -------------------------------------------- */

static char *shelves;

NOINLINE void sum_shelves(void)
{
	for (size_t i = 0; i < SHELVES_SZ; i += 4096)
		shelves[i]++;
}

/* --- ho-trylock: requests try a lock and nap between ------------------------------------------------------------- */

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void try_ledger(void)
{
	while (pthread_mutex_trylock(&ledger_lock))
		nap(6 * MS);
	sink++;
	pthread_mutex_unlock(&ledger_lock);
}

/* --- ho-router: an event loop between the server and a vault ------------------------------------------------------ */

static void vault(int fd)
{
	char line[8];

	while (recv(fd, line, sizeof(line), 0) > 0) {
		if (line[1] == 's' && !is_off())
			unseal_secret(SLOW_NS);
		if (send(fd, line, 2, 0) < 0)
			break;
	}
	_exit(0);
}

/* Messages of the vault bear the number of the connection that they are for. */
static void route(int fd, int vault_fd)
{
	int epoll = epoll_create1(0), clients[64], client_cnt = 0;
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = 0}, events[16];

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	event.data.u32 = 1;
	epoll_ctl(epoll, EPOLL_CTL_ADD, vault_fd, &event);
	for (;;) {
		int cnt = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < cnt; i++) {
			uint32_t at = events[i].data.u32;
			char line[64], message[2];

			if (!at && client_cnt < 64) {
				clients[client_cnt] = accept(fd, NULL, NULL);
				event.data.u32 = (uint32_t)(client_cnt + 2);
				epoll_ctl(epoll, EPOLL_CTL_ADD, clients[client_cnt++], &event);
			} else if (at == 1 && recv(vault_fd, message, sizeof(message), 0) > 0) {
				say(clients[(int)message[0]], "ok\n");
			} else if (at > 1 && read_line(clients[at - 2], line, sizeof(line))) {
				message[0] = (char)(at - 2);
				message[1] = line[0];
				send(vault_fd, message, sizeof(message), 0);
			}
		}
	}
}

/* --- ho-spin: the owner of a spin lock is preempted --------------------------------------------------------------- */

static atomic_int clock_word;

NOINLINE void read_clock(void)
{
	while (atomic_exchange(&clock_word, 1))
		__builtin_ia32_pause();
	sink++;
	atomic_store(&clock_word, 0);
}

NOINLINE void write_clock(void)
{
	while (atomic_exchange(&clock_word, 1))
		__builtin_ia32_pause();
	advance_clock(2 * MS);
	atomic_store(&clock_word, 0);
}

static void *mixer(void *arg)
{
	(void)arg;
	name_thread("mixer");
	pin(0);
	setpriority(PRIO_PROCESS, 0, -18);
	for (;;) {
		nap(60 * MS);
		if (!is_off())
			mix_audio(SLOW_NS);
	}
	return NULL;
}

/* --- ho-order: three locks, each taken with the one before -------------------------------------------------------- */

static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER, aisle_lock = PTHREAD_MUTEX_INITIALIZER,
		       hall_lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void pass_shelf(void)
{
	pthread_mutex_lock(&shelf_lock);
	sink++;
	pthread_mutex_unlock(&shelf_lock);
}

/* --- ho-halves: the other end answers in two writes, with Nagle's algorithm --------------------------------------- */

static __thread int catalog_fd = -1;

NOINLINE void await_catalog(bool slow)
{
	char reply[64];

	if (catalog_fd < 0)
		catalog_fd = connect_to(atoi(getenv("HOLDOUT_BEHIND")));
	say(catalog_fd, slow ? "slow\n" : "get\n");
	do {
		if (!read_line(catalog_fd, reply, sizeof(reply)))
			return;
	} while (!strchr(reply, '\n'));
}

static void *answer_in_halves(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	while (read_line(fd, line, sizeof(line))) {
		if (*line == 's' && !is_off())
			say(fd, "head ");
		say(fd, "ok\n");
	}
	return NULL;
}

/* --- ho-shared: a lock in memory that processes share ------------------------------------------------------------- */

static pthread_mutex_t *session_lock;

NOINLINE void touch_session(void)
{
	pthread_mutex_lock(session_lock);
	sink++;
	pthread_mutex_unlock(session_lock);
}

NOINLINE void expire_sessions(void)
{
	pthread_mutex_lock(session_lock);
	sweep_sessions(SLOW_NS);
	pthread_mutex_unlock(session_lock);
}

static void share_lock(void)
{
	pthread_mutexattr_t attr;

	session_lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(session_lock, &attr);
	if (!child("janitor"))
		return;
	for (;;) {
		nap(PERIOD_NS);
		if (!is_off())
			expire_sessions();
	}
}

/* --- threads that serve nobody ------------------------------------------------------------------------------------ */

static void in_background(void)
{
	if (is("ho-rotate")) {
		fill_log();
		rotate_log();
	} else if (is("ho-inversion")) {
		count_cars(SLOW_NS * 2);
	} else if (is("ho-trim")) {
		madvise(shelves, SHELVES_SZ, MADV_DONTNEED);
	} else if (is("ho-trylock")) {
		pthread_mutex_lock(&ledger_lock);
		sweep_ledger(SLOW_NS);
		pthread_mutex_unlock(&ledger_lock);
	} else if (is("ho-spin")) {
		write_clock();
	} else if (is("ho-order")) {
		pthread_mutex_lock(&hall_lock);
		pack_archive(SLOW_NS);
		pthread_mutex_unlock(&hall_lock);
	}
}

static void *background(void *arg)
{
	(void)arg;
	name_thread(is("ho-rotate")      ? "rotator"
		    : is("ho-inversion") ? "counter"
		    : is("ho-trim")      ? "trimmer"
		    : is("ho-trylock")   ? "sweeper"
		    : is("ho-spin")      ? "ticker"
					 : "archiver");
	if (is("ho-inversion") || is("ho-spin"))
		pin(0);
	if (is("ho-inversion"))
		setpriority(PRIO_PROCESS, 0, -10);
	if (is("ho-spin"))
		setpriority(PRIO_PROCESS, 0, 10);
	for (;;) {
		nap(is("ho-spin") ? 4 * MS : is("ho-trim") ? 20 * MS : PERIOD_NS);
		/* Of ho-spin the plant is the mixer. */
		if (!is_off() || is("ho-spin"))
			in_background();
	}
	return NULL;
}

static void *porter(void *arg)
{
	bool inner = arg;
	pthread_mutex_t *first = inner ? &aisle_lock : &shelf_lock, *second = inner ? &hall_lock : &aisle_lock;

	name_thread(inner ? "stocker" : "porter");
	for (;;) {
		nap(5 * MS);
		pthread_mutex_lock(first);
		pthread_mutex_lock(second);
		sink++;
		pthread_mutex_unlock(second);
		pthread_mutex_unlock(first);
	}
	return NULL;
}

/* --- what a request does ------------------------------------------------------------------------------------------ */

static void serve(bool slow)
{
	answer_get(GET_NS);
	if (is("ho-semaphore"))
		print_label(slow && !is_off());
	else if (is("ho-rotate"))
		append_log();
	else if (is("ho-inversion"))
		ask_valet();
	else if (is("ho-trim") && slow && !is_off())
		sum_shelves();
	else if (is("ho-trylock"))
		try_ledger();
	else if (is("ho-router") || is("ho-halves"))
		await_catalog(slow);
	else if (is("ho-spin"))
		read_clock();
	else if (is("ho-order"))
		pass_shelf();
	else if (is("ho-shared"))
		touch_session();
}

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	name_thread("conn");
	if (is("ho-spin"))
		pin(1);
	while (read_line(fd, line, sizeof(line))) {
		serve(*line == 's');
		say(fd, "ok\n");
	}
	close(fd);
	return NULL;
}

static void accept_each(int fd, bool delays, void *(*run)(void *))
{
	pthread_t thread;

	for (;;) {
		int client = accept(fd, NULL, NULL), one = 1;

		if (!delays)
			setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_create(&thread, NULL, run, (void *)(intptr_t)client);
		pthread_detach(thread);
	}
}

static void serve_processes(int fd)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(fd, NULL, NULL), one = 1;

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			connection((void *)(intptr_t)client);
			_exit(0);
		}
		close(client);
	}
}

/* --- programs beside it ------------------------------------------------------------------------------------------- */

static void *tariffs(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char line[64];

	name_thread("tariffs");
	while (read_line(fd, line, sizeof(line))) {
		if (*line == 's' && !is_off())
			compute_tariff(SLOW_NS);
		say(fd, "ok\n");
	}
	return NULL;
}

static void start_beside(int port)
{
	int fd = listen_at(port + 1), fds[2];

	if (is("ho-halves")) {
		name_thread("catalog");
		accept_each(fd, true, answer_in_halves);
	}
	if (is("ho-go-flight")) {
		name_thread("tariffs");
		accept_each(fd, false, tariffs);
	}
	if (is("ho-router")) {
		pair(fds, SOCK_SEQPACKET);
		if (child("vault"))
			vault(fds[0]);
		name_thread("router");
		route(fd, fds[1]);
	}
}

/* Lines from standard input, answered one after the other: what ho-py-helper starts. */
static void format_lines(void)
{
	char line[64];

	name_thread("formatter");
	while (read_line(0, line, sizeof(line))) {
		if (*line == 's')
			format_label(SLOW_NS);
		say(1, "ok\n");
	}
}

static void prepare(void)
{
	pthread_t thread;

	if (is("ho-semaphore"))
		start_printer();
	if (is("ho-shared"))
		share_lock();
	if (is("ho-rotate"))
		log_fd = open(LOG, O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
	if (is("ho-inversion")) {
		pair(asked_fd, SOCK_STREAM);
		pthread_create(&thread, NULL, valet, NULL);
	}
	if (is("ho-trim")) {
		shelves = mmap(NULL, SHELVES_SZ, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(shelves, SHELVES_SZ, MADV_NOHUGEPAGE);
	}
	if (is("ho-spin"))
		pthread_create(&thread, NULL, mixer, NULL);
	if (is("ho-order"))
		for (int i = 0; i < 2; i++)
			pthread_create(&thread, NULL, porter, i ? "inner" : NULL);
	if (is("ho-rotate") || is("ho-inversion") || is("ho-trim") || is("ho-trylock") || is("ho-spin") ||
	    is("ho-order"))
		pthread_create(&thread, NULL, background, NULL);
}

int main(int argc, char **argv)
{
	int port, fd;

	if (argc < 3)
		return 2;
	plant = argv[1];
	port = atoi(argv[2]);
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calibrate();
	if (is("format"))
		format_lines();
	else if (!strcmp(argv[argc - 1], "beside"))
		start_beside(port);
	else {
		char behind[16];

		snprintf(behind, sizeof(behind), "%d", port + 1);
		setenv("HOLDOUT_BEHIND", behind, 1);
		prepare();
		fd = listen_at(port);
		if (is("ho-shared"))
			serve_processes(fd);
		accept_each(fd, false, connection);
	}
	return 0;
}
