/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the witness process: its main thread does the deeds, its peer thread does what they need done to them.
 */
#ifndef WHYLATE_SELFTEST_SCENE_H
#define WHYLATE_SELFTEST_SCENE_H

#include "selftest/witness.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum peer_job {
	PEER_NOTHING,
	PEER_HOLD_LOCK,    /* until DEED_WAIT_NS after the call */
	PEER_WRITE_PIPE,   /* DEED_WAIT_NS after the call */
	PEER_WRITE_SOCKET, /* DEED_WAIT_NS after the call */
	PEER_SEND_FILE,    /* the same, by sendfile() */
	PEER_HOG_CPU,      /* for DEED_WAIT_NS, on the main thread's CPU */
	PEER_INTERRUPT,    /* from another CPU */
	PEER_END,
};

/* A cgroup with a CPU limit, while the witness is in it. */
struct throttle {
	char dir[PATH_MAX]; /* "": it is in none */
	char home[PATH_MAX];
	bool is_v2;
};

struct scene {
	pthread_t peer;
	uint32_t main_tid, peer_tid;
	sem_t peer_wanted, peer_is_done;
	_Atomic int peer_job;
	_Atomic bool peer_ready, called, peer_done;

	pthread_mutex_t lock;
	int pipe_fds[2], socket_fds[2];
	uint32_t net_deeds;                 /* so many times the sockets were waited for */
	int file_socket_fds[2];             /* as long as what was sent out of a file is waited for */
	uint32_t sendfile_deeds;            /* so many times it was */
	int own_cpu, other_cpu, device_cpu; /* -1: none */
	cpu_set_t allowed;

	int disk_fd; /* -1: none */
	char *disk_map, *memory;
	FILE *interrupts, *softirqs;
	int udp_fd;
	int byte_fd; /* a file of one byte */
	uint64_t begin_ts, wake_ts, end_ts;

	struct throttle throttle;
	int child_go_fd;
	pid_t child_pid;
	int listen_fds[WITNESS_SOCKET_CNT];
};

/* deeds.c: sets the scene, and one deed with its report. */
int scene_open(struct scene *scene);
void scene_do(struct scene *scene, enum deed_kind kind, struct deed_report *report);

/* accounts.c: counts of the calling thread, and of own_cpu. */
uint64_t count_minor(struct scene *scene);
uint64_t count_major(struct scene *scene);
uint64_t count_switches(struct scene *scene);
uint64_t count_timer(struct scene *scene);
uint64_t count_ipi(struct scene *scene);
uint64_t count_softirqs(struct scene *scene);
uint64_t count_net_rx(struct scene *scene);
/* Calls of interrupt handlers on its own CPU, arm64's timer included; of devices alone on another. */
uint64_t count_device(struct scene *scene);
uint64_t count_device_on(struct scene *scene, int cpu);

/* throttle.c */
void throttle_set_up(struct scene *scene, struct deed_report *report);
void throttle_do(struct scene *scene);
void throttle_tidy(struct scene *scene);
uint64_t count_throttled_ns(struct scene *scene);

/* peer.c */
int peer_start(struct scene *scene);
void peer_give(struct scene *scene, enum peer_job job);
/* Waits until the job is done. */
void peer_await(struct scene *scene);

/* Sends it by sendfile(): 1, or -1 and errno. */
ssize_t scene_send_file(const struct scene *scene, int fd);

/* serve.c */
int serve_open(struct scene *scene, struct witness *witness);
int serve_listen_late(struct scene *scene, uint16_t *port);
/* One connection, with replies out of a file or not. 0 or -errno. */
int serve(struct scene *scene, enum witness_socket which, bool from_file, struct witness_answer *answer);
int serve_desert(struct scene *scene);
/* Both ends of a new TCP connection over the loopback device. 0 or -errno. */
int serve_pair(int *fds);

#endif
