// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The clients of a server with a planted cause: client PORT PLANT [FILE].  Six connections; each sends a line every 3
 * to 5 ms, or as soon as the reply to the one before is there.  Begin and latency of each request by this clock are
 * appended to FILE, as two 64-bit numbers of nanoseconds.
 */
#include "planted.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define CONNECTIONS 6

struct taken {
	uint64_t begin_ts, latency_ns;
};

static int port, taken_fd = -1;

static void *client(void *arg)
{
	static atomic_uint seeds;
	unsigned int seed = ++seeds;
	int fd = connect_to(port);
	char line[64];

	(void)arg;
	do {
		bool slow = rand_r(&seed) % 100 < 2;
		struct taken taken = {.begin_ts = now_ns()};
		uint64_t next_ts = taken.begin_ts + 3 * MS + (uint64_t)(rand_r(&seed) % 4) * MS / 2;

		if (slow && is("client-slow") && !is_off()) {
			say(fd, "slow");
			nap(SLOW_NS);
			say(fd, "\n");
		} else {
			say(fd, slow ? "slow\n" : "get\n");
		}
		do {
			if (!read_line(fd, line, sizeof(line)))
				exit(0);
		} while (!strchr(line, '\n'));
		taken.latency_ns = now_ns() - taken.begin_ts;
		if (taken_fd >= 0 && write(taken_fd, &taken, sizeof(taken)) < 0)
			perror("client");
		if (now_ns() < next_ts)
			nap(next_ts - now_ns());
	} while (true);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	port = atoi(argv[1]);
	plant = argv[2];
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc > 3)
		taken_fd = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 1; i < CONNECTIONS; i++)
		pthread_create(&thread, NULL, client, NULL);
	client(NULL);
}
