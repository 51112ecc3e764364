// SPDX-License-Identifier: GPL-2.0-or-later
// A check that is missing: a source that has ended is asked for more until nothing came very often.
#include "serve.h"

class Source
{
	int left_;
	bool ended_ = false;
	uint32_t state_ = 1;

      public:
	explicit Source(int left) : left_(left) {}
	__attribute__((noinline)) int next()
	{
		for (int i = 0; i < 300; i++)
			state_ = (state_ ^ state_ >> 9) * 2654435761u;
		if (ended_)
			return 0;
		ended_ = !--left_;
		return 64;
	}
};

static __attribute__((noinline)) int drain(Source &source, int wanted)
{
	int got = 0, idle = 0;

	while (got < wanted && idle < 8000) {
		int cnt = source.next();

		got += cnt;
		idle = cnt ? 0 : idle + 1;
	}
	return got;
}

static size_t answer(const char *path, char *body)
{
	Source source(strncmp(path, "/short", 6) ? 200 : 20);

	return (size_t)sprintf(body, "%d\n", drain(source, 64 * 50));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
