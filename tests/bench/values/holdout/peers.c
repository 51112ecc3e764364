// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: peers that have gone are asked like the others, and each of them is waited for. */
#include "serve.h"

#include <poll.h>

#define PEERS 40

struct peer {
	int fd, far_fd;
	int gone;
	unsigned asked;
};

struct group {
	struct peer peers[PEERS];
	pthread_mutex_t lock;
};

static struct group groups[2];

static __attribute__((noinline)) int ask_peer(struct peer *peer)
{
	struct pollfd pollfd = {peer->fd, POLLIN, 0};
	char byte = 'p';

	peer->asked++;
	if (write(peer->fd, &byte, 1) != 1)
		return -1;
	/* The peer, played by this process. */
	if (read(peer->far_fd, &byte, 1) == 1 && !peer->gone && write(peer->far_fd, &byte, 1) != 1)
		return -1;
	if (poll(&pollfd, 1, 1) < 1)
		return -1;
	return read(peer->fd, &byte, 1) == 1 ? 0 : -1;
}

static __attribute__((noinline)) int tell_peers(struct group *group)
{
	int told = 0;

	for (int i = 0; i < PEERS; i++) {
		int err = ask_peer(&group->peers[i]);

		if (!err)
			told++;
	}
	return told;
}

static size_t answer(const char *path, char *body)
{
	struct group *group = &groups[!strncmp(path, "/left", 5)];
	int told;

	pthread_mutex_lock(&group->lock);
	told = tell_peers(group);
	pthread_mutex_unlock(&group->lock);
	return (size_t)sprintf(body, "%d\n", told);
}

int main(int argc, char **argv)
{
	for (int g = 0; g < 2; g++) {
		pthread_mutex_init(&groups[g].lock, NULL);
		for (int i = 0; i < PEERS; i++) {
			int fds[2];

			if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
				return 1;
			groups[g].peers[i] = (struct peer){fds[0], fds[1], g && i >= 10, 0};
		}
	}
	return serve(argc, argv, answer);
}
