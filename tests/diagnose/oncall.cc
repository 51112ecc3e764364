// SPDX-License-Identifier: GPL-2.0-or-later
/* As oncall.c, in C++: text that is put before text. */
#include "lines.hh"

#include <string>

namespace
{

__attribute__((noinline)) void build_path()
{
	std::string path;

	for (int i = 0; i < 2500; i++)
		path = "/segment-of-a-path-that-is-long-enough/" + path;
	sink = sink + path.size();
}

void serve(bool slow)
{
	answer_get(GET_NS);
	if (slow)
		build_path();
}

} // namespace

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3)
		return 2;
	begin_planted(argv);
	fd = listen_at(atoi(argv[2]));
	serve_lines(fd, serve);
}
