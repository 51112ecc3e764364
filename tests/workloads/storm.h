/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts to order, for the workloads that plant them.  Both storms need privilege and belong to the process that
 * opened them.
 *
 * A timer storm is thousands of timerfds that nobody reads, armed for one instant: one local timer interrupt of
 * some milliseconds runs them all.  (Many short interrupts would be simpler, by perf's cpu-clock; but in a virtual
 * machine half of such an interrupt's length lies in its delivery, before the kernel's own entry, where no tracer sees
 * it.)
 *
 * A packet storm is multicast on the loopback device with many receivers that never read: each packet is one long run
 * of NET_RX on the CPU that receive packet steering names.
 */
#ifndef WORKLOADS_STORM_H
#define WORKLOADS_STORM_H

#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TIMER_STORM_MAX     100000
#define TIMER_STORM_TRIAL   4000
#define TIMER_STORM_ROUNDS  5
#define TIMER_STORM_WATCHES 6

struct timer_storm {
	uint64_t cost_ns; /* of one expiry */
	int timer_cnt;
	int fds[TIMER_STORM_MAX];
	int watch_fds[TIMER_STORM_WATCHES];
};

static inline int timer_storm_grow(struct timer_storm *storm, int timer_cnt)
{
	struct epoll_event event = {.events = EPOLLIN};

	while (storm->timer_cnt < timer_cnt) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

		if (fd < 0)
			return -errno;
		storm->fds[storm->timer_cnt++] = fd;
		for (int i = 0; i < TIMER_STORM_WATCHES; i++) {
			if (epoll_ctl(storm->watch_fds[i], EPOLL_CTL_ADD, fd, &event))
				return -errno;
		}
	}
	return 0;
}

/* They expire from `at_ts` on, `step_ns` apart (0: all in one interrupt), on the CPU on which this is called. */
static inline void timer_storm_arm(struct timer_storm *storm, uint64_t at_ts, uint64_t step_ns)
{
	for (int i = 0; i < storm->timer_cnt; i++, at_ts += step_ns) {
		struct itimerspec when = {
			.it_value.tv_sec = (time_t)(at_ts / NS_PER_SEC),
			.it_value.tv_nsec = (long)(at_ts % NS_PER_SEC),
		};

		timerfd_settime(storm->fds[i], TFD_TIMER_ABSTIME, &when, NULL);
	}
}

/* How many timers this process may have, having asked for as many open files as are granted. */
static inline int timer_storm_room(void)
{
	struct rlimit limit, many = {.rlim_cur = TIMER_STORM_MAX + 100, .rlim_max = TIMER_STORM_MAX + 100};

	if (!setrlimit(RLIMIT_NOFILE, &many))
		return TIMER_STORM_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < 100)
		return 0;
	return limit.rlim_max - 100 < TIMER_STORM_MAX ? (int)(limit.rlim_max - 100) : TIMER_STORM_MAX;
}

static inline int timer_storm_open(struct timer_storm *storm, int timer_cnt)
{
	/* Nobody waits for these, but each expiry has to tell them: the fewer timers are needed. */
	for (int i = 0; i < TIMER_STORM_WATCHES; i++) {
		storm->watch_fds[i] = epoll_create1(EPOLL_CLOEXEC);
		if (storm->watch_fds[i] < 0)
			return -errno;
	}
	return timer_storm_grow(storm, timer_cnt);
}

/* Timers for an interrupt of `storm_ns`, by the cost of an expiry as seen by the caller, who is pinned and urgent. */
static inline int timer_storm_open_for(struct timer_storm *storm, uint64_t storm_ns)
{
	int most = timer_storm_room(), err;

	err = timer_storm_open(storm, TIMER_STORM_TRIAL);
	if (err)
		return err;
	for (int round = 0; round < TIMER_STORM_ROUNDS; round++) {
		timer_storm_arm(storm, clock_now_ns() + 20 * NS_PER_MS, 0);
		storm->cost_ns +=
			spin_watching_gaps(20 * NS_PER_MS, NULL).within_ns / TIMER_STORM_TRIAL / TIMER_STORM_ROUNDS;
	}
	if (!storm->cost_ns)
		return -ERANGE;
	if (storm_ns / storm->cost_ns < (uint64_t)most)
		most = (int)(storm_ns / storm->cost_ns);
	return timer_storm_grow(storm, most);
}

#define PACKET_STORM_MAX_RECEIVERS 1024
#define PACKET_STORM_GROUP         0xefff0101 /* 239.255.1.1 */

struct packet_storm {
	struct sockaddr_in group;
	int send_fd;
	int receiver_cnt;
	int arrived_cnt[2];
	int fds[PACKET_STORM_MAX_RECEIVERS]; /* the first and the last are read */
};

static inline int packet_storm_receiver(struct packet_storm *storm, int is_read)
{
	struct ip_mreq membership = {
		.imr_multiaddr = storm->group.sin_addr,
		.imr_interface.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t addr_sz = sizeof(storm->group);
	int one = 1, least = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	/* A receiver is full after a packet or two, so that all packets cost the same. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    (!is_read && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least))) ||
	    bind(fd, (struct sockaddr *)&storm->group, sizeof(storm->group)) ||
	    getsockname(fd, (struct sockaddr *)&storm->group, &addr_sz) ||
	    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership))) {
		err = -errno;
		close(fd);
		return err;
	}
	storm->fds[storm->receiver_cnt++] = fd;
	return 0;
}

/* The sender and `receiver_cnt` receivers on a port of their own.  0 or -errno. */
static inline int packet_storm_open(struct packet_storm *storm, int receiver_cnt)
{
	struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
	int err = 0;

	memset(storm, 0, sizeof(*storm));
	storm->group.sin_family = AF_INET;
	storm->group.sin_addr.s_addr = htonl(PACKET_STORM_GROUP);
	storm->send_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (storm->send_fd < 0 || setsockopt(storm->send_fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof(loopback)))
		return -errno;
	while (!err && storm->receiver_cnt < receiver_cnt)
		err = packet_storm_receiver(storm, !storm->receiver_cnt || storm->receiver_cnt == receiver_cnt - 1);
	return err;
}

/* Empties the two receivers that are read; how many packets the one that has had fewer of them has had. */
static inline int packet_storm_arrived(struct packet_storm *storm)
{
	/* The receivers are served in the order of binding or in its reverse: when the outermost two have their packet,
	 * so have all. */
	int ends[2] = {storm->fds[0], storm->fds[storm->receiver_cnt - 1]};
	char scrap[8];

	for (int i = 0; i < 2; i++) {
		while (recv(ends[i], scrap, sizeof(scrap), MSG_DONTWAIT) >= 0)
			storm->arrived_cnt[i]++;
	}
	return storm->arrived_cnt[0] < storm->arrived_cnt[1] ? storm->arrived_cnt[0] : storm->arrived_cnt[1];
}

/* Sends a batch and waits until it is worked off: how long that took, which is at most `patience_ns`. */
static inline uint64_t packet_storm_send(struct packet_storm *storm, int packet_cnt, uint64_t patience_ns)
{
	uint64_t start_ts = clock_now_ns();

	packet_storm_arrived(storm);
	storm->arrived_cnt[0] = storm->arrived_cnt[1] = 0;
	for (int i = 0; i < packet_cnt; i++)
		sendto(storm->send_fd, "storm", 5, MSG_DONTWAIT, (struct sockaddr *)&storm->group,
		       sizeof(storm->group));
	while (packet_storm_arrived(storm) < packet_cnt && clock_now_ns() - start_ts < patience_ns)
		;
	return clock_now_ns() - start_ts;
}

static inline int loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		err = -errno;
	close(fd);
	return err;
}

static inline int steer_to_cpu(int cpu)
{
	char mask[64] = "";
	int fd, err = 0;

	/* Groups of 32 CPUs, the highest first. */
	snprintf(mask, sizeof(mask), "%x", 1U << (cpu % 32));
	for (int group = cpu / 32; group > 0 && strlen(mask) < sizeof(mask) - 10; group--)
		strcat(mask, ",00000000");
	fd = open("/sys/class/net/lo/queues/rx-0/rps_cpus", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, mask, strlen(mask)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * For workload.prepare: the driver moves into a network namespace where all receive work is done on the server's CPU,
 * and everything that it forks is born there.
 */
static inline int packet_storm_prepare(struct run *run)
{
	int err;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		return run_skip(run, "a network namespace of our own: %s", strerror(errno));
	/* sysfs shows the devices of the namespace in which it was mounted. */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		return run_skip(run, "a sysfs of our own: %s", strerror(errno));
	err = loopback_up();
	if (err)
		return run_skip(run, "the loopback device: %s", strerror(-err));
	err = steer_to_cpu(cpu_number(CPU_SERVER));
	return err ? run_skip(run, "receive packet steering: %s", strerror(-err)) : 0;
}

#endif
