// SPDX-License-Identifier: GPL-2.0-or-later
/* What the main thread of the witness does. */
#include "base/clock.h"
#include "selftest/probed.h"
#include "selftest/scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE_CNT    256
#define DISK_SZ     (8 << 20)
#define DISK_STRIDE (128 << 10)
#define SPIN_NS     50000000ULL
#define PACKETS     32
#define SWITCHES    20

static void say_why(struct deed_report *report, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say_why(struct deed_report *report, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(report->why, sizeof(report->why), fmt, args);
	va_end(args);
}

static void spin_ns(uint64_t ns)
{
	uint64_t end_ts = monotonic_ns() + ns;

	while (monotonic_ns() < end_ts)
		;
}

/* The wait begins: whoever is to end it may start to count. */
static void call_begins(struct scene *scene)
{
	scene->begin_ts = monotonic_ns();
	atomic_store(&scene->called, true);
}

/* --- the deeds: set up, do it within the probed function, tidy up ------------------------------------------------- */

static void minor_set_up(struct scene *scene, struct deed_report *report)
{
	size_t sz = PAGE_CNT * (size_t)sysconf(_SC_PAGESIZE);

	scene->memory = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scene->memory == MAP_FAILED)
		say_why(report, "no memory: %s", strerror(errno));
	else
		madvise(scene->memory, sz, MADV_NOHUGEPAGE);
}

static void minor_do(struct scene *scene)
{
	size_t page_sz = sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < PAGE_CNT; i++)
		*(volatile char *)(scene->memory + i * page_sz) = 1;
}

static void minor_tidy(struct scene *scene)
{
	munmap(scene->memory, PAGE_CNT * (size_t)sysconf(_SC_PAGESIZE));
}

static void disk_set_up(struct scene *scene, struct deed_report *report)
{
	(void)scene;
	if (scene->disk_fd < 0)
		say_why(report, "no directory on a disk to write to: looked at $TMPDIR, /var/tmp, /tmp and .");
}

static void major_set_up(struct scene *scene, struct deed_report *report)
{
	disk_set_up(scene, report);
	if (report->why[0])
		return;
	if (!scene->disk_map) {
		char *map = mmap(NULL, DISK_SZ, PROT_READ, MAP_SHARED, scene->disk_fd, 0);

		if (map == MAP_FAILED) {
			say_why(report, "the file cannot be mapped: %s", strerror(errno));
			return;
		}
		scene->disk_map = map;
		madvise(map, DISK_SZ, MADV_RANDOM);
	}
	fdatasync(scene->disk_fd);
	madvise(scene->disk_map, DISK_SZ, MADV_DONTNEED);
	posix_fadvise(scene->disk_fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void major_do(struct scene *scene)
{
	for (size_t off = 0; off < DISK_SZ; off += DISK_STRIDE)
		(void)*(volatile char *)(scene->disk_map + off);
}

static void spin_do(struct scene *scene)
{
	(void)scene;
	spin_ns(SPIN_NS);
}

static void packets_set_up(struct scene *scene, struct deed_report *report)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t addr_sz = sizeof(addr);

	scene->udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (scene->udp_fd < 0 || bind(scene->udp_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockname(scene->udp_fd, (struct sockaddr *)&addr, &addr_sz) ||
	    connect(scene->udp_fd, (struct sockaddr *)&addr, sizeof(addr)) || send(scene->udp_fd, "p", 1, 0) != 1)
		say_why(report, "nothing can be sent over the loopback device: %s", strerror(errno));
}

static void packets_do(struct scene *scene)
{
	char buf[8];

	for (int i = 0; i < PACKETS; i++) {
		send(scene->udp_fd, "packet", 6, 0);
		while (recv(scene->udp_fd, buf, sizeof(buf), 0) > 0)
			;
	}
}

static void packets_tidy(struct scene *scene)
{
	if (scene->udp_fd >= 0)
		close(scene->udp_fd);
}

static void ipi_set_up(struct scene *scene, struct deed_report *report)
{
	if (scene->other_cpu < 0)
		say_why(report, "it takes a second CPU, and this process may use one only");
	else if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		say_why(report, "this kernel has no membarrier(): %s", strerror(errno));
	else
		peer_give(scene, PEER_INTERRUPT);
}

static void until_peer_done_do(struct scene *scene)
{
	uint64_t limit_ts;

	call_begins(scene);
	limit_ts = scene->begin_ts + 2000000000ULL;
	while (!atomic_load(&scene->peer_done) && monotonic_ns() < limit_ts)
		;
}

static void peer_tidy(struct scene *scene)
{
	peer_await(scene);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Begins to write without waiting for the disk: its interrupt comes while this thread spins. */
static void write_ahead(struct scene *scene)
{
	static char block[DISK_STRIDE];

	for (size_t off = 0; off < 4 * DISK_STRIDE; off += DISK_STRIDE) {
		memset(block, (int)monotonic_ns(), sizeof(block));
		if (pwrite(scene->disk_fd, block, sizeof(block), off) != sizeof(block))
			return;
		sync_file_range(scene->disk_fd, off, sizeof(block), SYNC_FILE_RANGE_WRITE);
		spin_ns(2000000);
	}
}

/* On the CPU that the disk interrupts, as far as that can be told. */
static void device_set_up(struct scene *scene, struct deed_report *report)
{
	uint64_t most = 0;

	disk_set_up(scene, report);
	if (report->why[0] || scene->device_cpu >= 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		uint64_t before;

		if (!CPU_ISSET(cpu, &scene->allowed))
			continue;
		/* A disk with a queue for each CPU interrupts the one that writes. */
		run_on(cpu);
		before = count_device_on(scene, cpu);
		write_ahead(scene);
		fdatasync(scene->disk_fd);
		before = count_device_on(scene, cpu) - before;
		if (before > most) {
			most = before;
			scene->device_cpu = cpu;
		}
	}
	sched_setaffinity(0, sizeof(scene->allowed), &scene->allowed);
	if (scene->device_cpu < 0)
		say_why(report, "the disk here interrupts no CPU that this process may use");
}

static void device_do(struct scene *scene)
{
	write_ahead(scene);
}

static void switches_do(struct scene *scene)
{
	struct timespec nap = {.tv_nsec = 300000};

	(void)scene;
	for (int i = 0; i < SWITCHES; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static void lock_set_up(struct scene *scene, struct deed_report *report)
{
	report->other_tid = scene->peer_tid;
	report->object = (uint64_t)(uintptr_t)&scene->lock;
	peer_give(scene, PEER_HOLD_LOCK);
}

static void lock_do(struct scene *scene)
{
	call_begins(scene);
	pthread_mutex_lock(&scene->lock);
	scene->end_ts = monotonic_ns();
	pthread_mutex_unlock(&scene->lock);
}

static void sleep_do(struct scene *scene)
{
	struct timespec nap = {.tv_nsec = DEED_WAIT_NS};

	call_begins(scene);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	scene->end_ts = monotonic_ns();
	scene->wake_ts = scene->begin_ts + DEED_WAIT_NS;
}

static void pipe_set_up(struct scene *scene, struct deed_report *report)
{
	(void)report;
	peer_give(scene, PEER_WRITE_PIPE);
}

static void pipe_do(struct scene *scene)
{
	char c;

	call_begins(scene);
	if (read(scene->pipe_fds[0], &c, 1) == 1)
		scene->end_ts = monotonic_ns();
}

static void poll_do(struct scene *scene)
{
	struct pollfd pollfd = {.fd = scene->pipe_fds[0], .events = POLLIN};
	char c;

	call_begins(scene);
	if (poll(&pollfd, 1, 5000) == 1 && read(scene->pipe_fds[0], &c, 1) == 1)
		scene->end_ts = monotonic_ns();
}

/* Every other time on a new connection: who of its two ends is seen first differs. */
static void net_set_up(struct scene *scene, struct deed_report *report)
{
	if (scene->net_deeds++ % 2) {
		close(scene->socket_fds[0]);
		close(scene->socket_fds[1]);
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, scene->socket_fds)) {
			scene->socket_fds[0] = scene->socket_fds[1] = -1;
			say_why(report, "no connection: %s", strerror(errno));
			return;
		}
	}
	peer_give(scene, PEER_WRITE_SOCKET);
}

static void receive_byte(struct scene *scene, int fd)
{
	char c;

	call_begins(scene);
	if (recv(fd, &c, 1, 0) == 1)
		scene->end_ts = monotonic_ns();
}

static void net_do(struct scene *scene)
{
	receive_byte(scene, scene->socket_fds[0]);
}

ssize_t scene_send_file(const struct scene *scene, int fd)
{
	off_t begin = 0;

	return sendfile(fd, scene->byte_fd, &begin, 1);
}

/* Over TCP and over a Unix socket by turns: what is sent out of a file may go its own way in each. */
static void sendfile_set_up(struct scene *scene, struct deed_report *report)
{
	int *fds = scene->file_socket_fds, err;

	if (scene->sendfile_deeds++ % 2)
		err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ? -errno : 0;
	else
		err = serve_pair(fds);
	if (err)
		say_why(report, "no connection: %s", strerror(-err));
	else
		peer_give(scene, PEER_SEND_FILE);
}

static void sendfile_do(struct scene *scene)
{
	receive_byte(scene, scene->file_socket_fds[0]);
}

static void sendfile_tidy(struct scene *scene)
{
	peer_await(scene);
	close(scene->file_socket_fds[0]);
	close(scene->file_socket_fds[1]);
}

static void fsync_do(struct scene *scene)
{
	static char block[DISK_STRIDE];

	memset(block, (int)monotonic_ns(), sizeof(block));
	if (pwrite(scene->disk_fd, block, sizeof(block), 0) != sizeof(block))
		return;
	call_begins(scene);
	fsync(scene->disk_fd);
	scene->wake_ts = scene->end_ts = monotonic_ns();
}

static void preempt_set_up(struct scene *scene, struct deed_report *report)
{
	struct sched_param param = {.sched_priority = 1}, normal = {};

	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		say_why(report, "no thread may have a real-time priority here: %s", strerror(errno));
		return;
	}
	sched_setscheduler(0, SCHED_OTHER, &normal);
	report->other_tid = scene->peer_tid;
	peer_give(scene, PEER_HOG_CPU);
}

static const struct deed {
	void (*set_up)(struct scene *scene, struct deed_report *report);
	void (*act)(struct scene *scene);
	void (*tidy)(struct scene *scene);
	uint64_t (*count)(struct scene *scene);
	bool pinned, alone; /* on one CPU; with nobody else there */
	const char *none;   /* what it means that the kernel counted nothing */
} deeds[DEED_CNT] = {
	[DEED_MINOR] = {minor_set_up, minor_do, minor_tidy, count_minor},
	[DEED_MAJOR] = {major_set_up, major_do, NULL, count_major, .none = "no page had to be read from that disk"},
	[DEED_TIMER] = {NULL, spin_do, NULL, count_timer, true, true, "no timer interrupted that CPU meanwhile"},
	[DEED_SOFTIRQ] = {NULL, spin_do, NULL, count_softirqs, true, true, "no softirq ran on that CPU meanwhile"},
	[DEED_NET_RX] = {packets_set_up, packets_do, packets_tidy, count_net_rx, true, true,
			 "this kernel receives loopback packets in no softirq of the sender's CPU"},
	[DEED_IPI] = {ipi_set_up, until_peer_done_do, peer_tidy, count_ipi, true, true,
		      "no other CPU interrupted that one"},
	[DEED_DEVICE] = {device_set_up, device_do, NULL, count_device, true, true,
			 "no device interrupted that CPU meanwhile"},
	[DEED_SWITCHES] = {NULL, switches_do, NULL, count_switches},
	[DEED_LOCK] = {lock_set_up, lock_do, peer_tidy, NULL},
	[DEED_SLEEP] = {NULL, sleep_do, NULL, NULL},
	[DEED_PIPE] = {pipe_set_up, pipe_do, peer_tidy, NULL},
	[DEED_POLL] = {pipe_set_up, poll_do, peer_tidy, NULL},
	[DEED_NET] = {net_set_up, net_do, peer_tidy, NULL},
	[DEED_SENDFILE] = {sendfile_set_up, sendfile_do, sendfile_tidy, NULL},
	[DEED_DISK] = {disk_set_up, fsync_do, NULL, count_switches, .none = "the disk answers without any wait"},
	[DEED_THROTTLED] = {throttle_set_up, throttle_do, throttle_tidy, count_throttled_ns,
			    .none = "its cgroup's CPU limit throttled nothing"},
	/* The hog has a higher priority yet; nobody else comes in between. */
	[DEED_PREEMPT] = {preempt_set_up, until_peer_done_do, peer_tidy, NULL, true, true},
};

/* The probed function: an interval. */
void whylate_selftest_deed(struct scene *scene, enum deed_kind kind, struct deed_report *report)
{
	const struct deed *deed = &deeds[kind];
	uint64_t before = deed->count ? deed->count(scene) : 0;

	deed->act(scene);
	if (deed->count)
		report->inner = deed->count(scene) - before;
	/* Where a call ends by a jump to another function, its interval ends, too: none of them is to end there. */
	asm volatile("" : : : "memory");
}

/* On one CPU, and with a priority that nobody there has: as far as that is allowed. */
static void settle(const struct scene *scene, const struct deed *deed)
{
	struct sched_param param = {.sched_priority = 1};

	if (!deed->pinned)
		return;
	run_on(scene->own_cpu);
	if (deed->alone)
		sched_setscheduler(0, SCHED_FIFO, &param);
}

static void unsettle(const struct scene *scene)
{
	struct sched_param param = {};

	sched_setscheduler(0, SCHED_OTHER, &param);
	sched_setaffinity(0, sizeof(scene->allowed), &scene->allowed);
}

void scene_do(struct scene *scene, enum deed_kind kind, struct deed_report *report)
{
	const struct deed *deed = &deeds[kind];
	int own_cpu = scene->own_cpu;
	uint64_t before;

	report->tid = scene->main_tid;
	atomic_store(&scene->called, false);
	scene->begin_ts = scene->wake_ts = scene->end_ts = 0;
	if (deed->set_up)
		deed->set_up(scene, report);
	if (report->why[0])
		return;
	if (kind == DEED_DEVICE)
		scene->own_cpu = scene->device_cpu;
	settle(scene, deed);
	before = deed->count ? deed->count(scene) : 0;
	report->before_ts = monotonic_ns();
	whylate_selftest_deed(scene, kind, report);
	report->after_ts = monotonic_ns();
	report->outer = deed->count ? deed->count(scene) - before : 0;
	unsettle(scene);
	if (deed->tidy)
		deed->tidy(scene);
	scene->own_cpu = own_cpu;
	report->begin_ts = scene->begin_ts;
	report->wake_ts = scene->wake_ts;
	report->end_ts = scene->end_ts;
	if (deed->count && deed->none && !report->inner)
		say_why(report, "%s", deed->none);
	else if (!deed->count && scene->end_ts < scene->wake_ts && kind != DEED_PREEMPT)
		say_why(report, "the wait was not ended by what should end it");
}

/* --- the scene ---------------------------------------------------------------------------------------------------- */

static int disk_file_in(const char *dir)
{
	static char block[DISK_STRIDE];
	char path[PATH_MAX];
	struct statfs fs;
	int fd;

	if (!dir || statfs(dir, &fs) || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
	    snprintf(path, sizeof(path), "%s/whylate-selftest-XXXXXX", dir) >= (int)sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -1;
	unlink(path);
	for (size_t off = 0; off < DISK_SZ; off += sizeof(block)) {
		if (pwrite(fd, block, sizeof(block), off) != sizeof(block) || (!off && fsync(fd))) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

static int disk_file_open(void)
{
	const char *const dirs[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "."};
	int fd = -1;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && fd < 0; i++)
		fd = disk_file_in(dirs[i]);
	return fd;
}

int scene_open(struct scene *scene)
{
	scene->own_cpu = scene->other_cpu = scene->device_cpu = -1;
	scene->main_tid = gettid();
	pthread_mutex_init(&scene->lock, NULL);
	if (sched_getaffinity(0, sizeof(scene->allowed), &scene->allowed))
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && scene->other_cpu < 0; cpu++) {
		if (!CPU_ISSET(cpu, &scene->allowed))
			continue;
		if (scene->own_cpu < 0)
			scene->own_cpu = cpu;
		else
			scene->other_cpu = cpu;
	}
	if (pipe2(scene->pipe_fds, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, scene->socket_fds))
		return -errno;
	scene->byte_fd = memfd_create("selftest.byte", MFD_CLOEXEC);
	if (scene->byte_fd < 0 || write(scene->byte_fd, "b", 1) != 1)
		return -errno;
	scene->disk_fd = disk_file_open();
	scene->interrupts = fopen("/proc/interrupts", "re");
	scene->softirqs = fopen("/proc/softirqs", "re");
	return peer_start(scene);
}
