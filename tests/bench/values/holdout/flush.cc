// SPDX-License-Identifier: GPL-2.0-or-later
// A check that is missing: streams without anything to send are packed and signed like the others.
#include "serve.h"

#include <memory>
#include <mutex>
#include <vector>

class Stream
{
      public:
	int pending = 0;
	unsigned sent = 0;

	unsigned pack()
	{
		unsigned sum = sent;

		for (int block = 0; block < 40; block++)
			sum = (sum << 5 | sum >> 27) + 0x9e3779b9u * (unsigned)(block + pending);
		return sum;
	}
};

class Hub
{
	std::vector<std::unique_ptr<Stream>> streams_;
	std::mutex lock_;

      public:
	explicit Hub(int idle)
	{
		for (int i = 0; i < 60 + idle; i++) {
			streams_.emplace_back(new Stream);
			streams_.back()->pending = i < 60 ? 1 + i % 9 : 0;
		}
	}
	unsigned flush_all()
	{
		std::lock_guard<std::mutex> guard(lock_);
		unsigned sum = 0;

		for (auto &stream : streams_) {
			int pending = stream->pending;

			sum ^= stream->pack();
			if (pending > 0)
				stream->sent++;
		}
		return sum;
	}
};

static Hub busy(0), idle(40000);

static size_t answer(const char *path, char *body)
{
	Hub &hub = strncmp(path, "/idle", 5) ? busy : idle;

	return (size_t)sprintf(body, "%u\n", hub.flush_all());
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
