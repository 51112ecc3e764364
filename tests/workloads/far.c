// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A lock on another host:
 *
 *   far back IP PORT           `store`, as in chain.h, listens there; prints `ready {"pid":…}`
 *   far front IP PORT […]      the workload, which asks it
 */
#include "chain.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static struct sockaddr_in back = {.sin_family = AF_INET};

static int listens(struct run *run)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	(void)run;
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&back, sizeof(back)) || listen(fd, CONNECTION_CNT))
		return -errno;
	printf("ready {\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	return fd;
}

static int connects(struct run *run)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)run;
	if (fd < 0 || connect(fd, (struct sockaddr *)&back, sizeof(back)))
		return -errno;
	return fd;
}

static int accepts(int listen_fd)
{
	return accept(listen_fd, NULL, NULL);
}

const struct chain_link chain_link = {listens, connects, accepts};

static const struct workload workload = {
	.name = "far",
	.category = "lock",
	.culprit_comm = "vacuum",
	.connection_cnt = CONNECTION_CNT,
	.rate_hz = 150,
	.default_duration_s = 6,
	.thread_start = chain_thread_start,
	.handle = chain_handle,
	.report = chain_report,
};

int main(int argc, char **argv)
{
	static struct board board;
	struct run run = {.workload = &workload, .board = &board};

	if (argc < 4 || (strcmp(argv[1], "back") && strcmp(argv[1], "front")) ||
	    inet_pton(AF_INET, argv[2], &back.sin_addr) != 1) {
		fprintf(stderr, "Usage: far back|front IP PORT\n");
		return 2;
	}
	back.sin_port = htons((uint16_t)atoi(argv[3]));
	if (!strcmp(argv[1], "front")) {
		argv[3] = argv[0];
		return workload_main(argc - 3, argv + 3, &workload);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return store_body(&run) ? 1 : 0;
}
