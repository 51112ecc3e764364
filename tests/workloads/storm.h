/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts to order, for the workloads that plant them.  Both storms need privilege and belong to the process that
 * opened them.
 *
 * A timer storm is thousands of timerfds that nobody reads, armed for a few common instants: at each of them one local
 * timer interrupt runs all of its timers.  (Many short interrupts would be simpler, by perf's cpu-clock; but in a virtual
 * machine most of such an interrupt's length lies in its delivery, before the kernel's own entry, where no tracer sees it.)
 *
 * A packet storm is multicast on the loopback device with many receivers that never read: each packet is one long run
 * of NET_RX on the CPU that receive packet steering names.
 */
#ifndef WORKLOADS_STORM_H
#define WORKLOADS_STORM_H

#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TIMER_STORM_MAX	    100000
#define TIMER_STORM_TRIAL   4000
#define TIMER_STORM_ROUNDS  5
#define TIMER_STORM_TRAIN_NS (400 * NS_PER_US) /* one interrupt */
#define TIMER_STORM_PAUSE_NS (250 * NS_PER_US) /* and what it leaves until the next */

struct timer_storm {
	uint64_t cost_ns; /* of one expiry */
	int timer_cnt;
	int train_timer_cnt;
	int fds[TIMER_STORM_MAX];
};

static inline int timer_storm_grow(struct timer_storm *storm, int timer_cnt)
{
	while (storm->timer_cnt < timer_cnt) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

		if (fd < 0)
			return -errno;
		storm->fds[storm->timer_cnt++] = fd;
	}
	return 0;
}

static inline void timer_storm_arm_train(struct timer_storm *storm, int from, int to, uint64_t at_ts)
{
	struct itimerspec when = {
		.it_value.tv_sec = (time_t)(at_ts / NS_PER_SEC),
		.it_value.tv_nsec = (long)(at_ts % NS_PER_SEC),
	};

	for (int i = from; i < to; i++)
		timerfd_settime(storm->fds[i], TFD_TIMER_ABSTIME, &when, NULL);
}

/* Arms all timers, from `start_ts` on, one train after the other.  They expire on the CPU on which this is called. */
static inline void timer_storm_arm(struct timer_storm *storm, uint64_t start_ts)
{
	for (int from = 0; from < storm->timer_cnt; from += storm->train_timer_cnt) {
		int to = from + storm->train_timer_cnt;

		timer_storm_arm_train(storm, from, to < storm->timer_cnt ? to : storm->timer_cnt, start_ts);
		start_ts += TIMER_STORM_TRAIN_NS + TIMER_STORM_PAUSE_NS;
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

/* Timers for `storm_ns` of interrupts, by the cost of an expiry as seen by the caller, who is pinned and urgent. */
static inline int timer_storm_open(struct timer_storm *storm, uint64_t storm_ns)
{
	int most = timer_storm_room(), err;

	err = timer_storm_grow(storm, TIMER_STORM_TRIAL);
	if (err)
		return err;
	for (int round = 0; round < TIMER_STORM_ROUNDS; round++) {
		timer_storm_arm_train(storm, 0, TIMER_STORM_TRIAL, clock_now_ns() + 20 * NS_PER_MS);
		storm->cost_ns += spin_watching_gaps(20 * NS_PER_MS, NULL) / TIMER_STORM_TRIAL / TIMER_STORM_ROUNDS;
	}
	if (!storm->cost_ns)
		return -ERANGE;
	storm->train_timer_cnt = (int)(TIMER_STORM_TRAIN_NS / storm->cost_ns) + 1;
	if (storm_ns / storm->cost_ns < (uint64_t)most)
		most = (int)(storm_ns / storm->cost_ns);
	return timer_storm_grow(storm, most);
}

#define PACKET_STORM_MAX_RECEIVERS 1024
#define PACKET_STORM_GROUP	   0xefff0101 /* 239.255.1.1 */

struct packet_storm {
	struct sockaddr_in group;
	int send_fd;
	int receiver_cnt;
	int fds[PACKET_STORM_MAX_RECEIVERS];
};

static inline int packet_storm_receiver(struct packet_storm *storm)
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
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) ||
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
	if (storm->send_fd < 0 ||
	    setsockopt(storm->send_fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof(loopback)))
		return -errno;
	while (!err && storm->receiver_cnt < receiver_cnt)
		err = packet_storm_receiver(storm);
	return err;
}

/* One packet, sent and worked off: how long that took, which is at most `patience_ns`. */
static inline uint64_t packet_storm_send(struct packet_storm *storm, uint64_t patience_ns)
{
	/* The receivers are served in the order of binding or in its reverse: when the outermost two have their packet,
	 * so have all. */
	int ends[2] = {storm->fds[0], storm->fds[storm->receiver_cnt - 1]};
	uint64_t start_ts = clock_now_ns();
	char scrap[8];

	sendto(storm->send_fd, "storm", 5, MSG_DONTWAIT, (struct sockaddr *)&storm->group, sizeof(storm->group));
	for (int i = 0; i < 2; i++) {
		while (recv(ends[i], scrap, sizeof(scrap), MSG_DONTWAIT) < 0 && clock_now_ns() - start_ts < patience_ns)
			;
	}
	return clock_now_ns() - start_ts;
}

#endif
