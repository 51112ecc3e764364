// SPDX-License-Identifier: GPL-2.0-or-later
/* As oncall.c, in C++: the last one who lets a snapshot go frees it; text that is put before text. */
#include "planted.h"

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace
{

using Snapshot = std::map<int, std::string>;

__attribute__((noinline)) std::shared_ptr<Snapshot> take_snapshot()
{
	auto snapshot = std::make_shared<Snapshot>();

	for (int i = 0; i < 100000; i++)
		snapshot->emplace_hint(snapshot->end(), i, std::string(40, 'x'));
	return snapshot;
}

/* A snapshot that a thread has made is in the hands of one request at last. */
std::shared_ptr<Snapshot> current;

__attribute__((noinline)) void drop_snapshot()
{
	auto last = std::atomic_exchange(&current, std::shared_ptr<Snapshot>());

	sink = sink + (last ? last->size() : 0);
}

__attribute__((noinline)) void build_path()
{
	std::string path;

	for (int i = 0; i < 2500; i++)
		path = "/segment-of-a-path-that-is-long-enough/" + path;
	sink = sink + path.size();
}

void snapshots()
{
	name_thread("saver");
	for (;;) {
		if (!is_off())
			std::atomic_store(&current, take_snapshot());
		nap(250 * MS);
	}
}

void connection(int fd)
{
	char line[64];

	name_thread("conn");
	while (read_line(fd, line, sizeof(line))) {
		answer_get(GET_NS);
		if (is("oc-cxx-drop"))
			drop_snapshot();
		else if (is("oc-cxx-path") && *line == 's' && !is_off())
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
	if (is("oc-cxx-drop"))
		std::thread(snapshots).detach();
	for (;;) {
		int client = accept(fd, nullptr, nullptr);

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		std::thread(connection, client).detach();
	}
}
