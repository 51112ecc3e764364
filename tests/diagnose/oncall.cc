// SPDX-License-Identifier: GPL-2.0-or-later
/* As oncall.c, in C++: text that is put before text. */
#include "planted.h"

#include <csignal>
#include <string>
#include <thread>

namespace
{

__attribute__((noinline)) void build_path()
{
	std::string path;

	for (int i = 0; i < 2500; i++)
		path = "/segment-of-a-path-that-is-long-enough/" + path;
	sink = sink + path.size();
}

void connection(int fd)
{
	char line[64];

	name_thread("conn");
	while (read_line(fd, line, sizeof(line))) {
		answer_get(GET_NS);
		if (*line == 's' && !is_off())
			build_path();
		say(fd, "ok\n");
	}
	close(fd);
}

} // namespace

int main(int argc, char **argv)
{
	int fd, one = 1;

	if (argc < 3)
		return 2;
	plant = argv[1];
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	calibrate();
	fd = listen_at(atoi(argv[2]));
	for (;;) {
		int client = accept(fd, nullptr, nullptr);

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		std::thread(connection, client).detach();
	}
}
