// SPDX-License-Identifier: GPL-2.0-or-later
/* A thread for each connection, which answers its lines. */
#include "planted.h"

#include <csignal>
#include <thread>

/* What a server does first, `plant` included. */
static inline void begin_planted(char **argv)
{
	plant = argv[1];
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calibrate();
}

/* Calls serve(whether it is a line for the plant, which is on) for each line, for ever. */
static inline void serve_lines(int listener, void (*serve)(bool slow))
{
	for (;;) {
		int client = accept(listener, nullptr, nullptr), one = 1;

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		std::thread([client, serve] {
			char line[64];

			name_thread("conn");
			while (read_line(client, line, sizeof(line))) {
				serve(*line == 's' && !is_off());
				say(client, "ok\n");
			}
			close(client);
		}).detach();
	}
}
