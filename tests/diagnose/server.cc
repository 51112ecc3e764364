// SPDX-License-Identifier: GPL-2.0-or-later
/* As server.c, in C++: templates, exceptions, the library's locks and queues. */
#include <arpa/inet.h>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "switch.h"

namespace shop {

static std::string plant;
static volatile uint64_t sink;

/* How often what takes about a microsecond is repeated in a slow request. */
static const int slow_turns = 16000;

struct Parse_error : std::runtime_error {
	using std::runtime_error::runtime_error;
};

template <typename Value> class Document {
public:
	__attribute__((noinline)) Value parse(int turns)
	{
		Value sum = 0;

		for (int i = 0; i < turns; i++)
			sum += token(i);
		return sum;
	}

private:
	__attribute__((noinline)) Value token(int i)
	{
		Value x = static_cast<Value>(i) + 1;

		for (int turn = 0; turn < 500; turn++)
			x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
		return x;
	}
};

class Cache {
public:
	void lookup()
	{
		std::lock_guard<std::mutex> guard(lock);

		sink = sink + 1;
	}
	__attribute__((noinline)) void evict()
	{
		std::lock_guard<std::mutex> guard(lock);

		for (int i = 0; i < 60; i++) {
			std::map<uint64_t, std::string> entries;

			for (uint64_t k = 0; k < 1000; k++)
				entries[k * 0x9e3779b9 % 65536] = "an entry that is not so short";
			sink = sink + entries.size();
		}
	}

private:
	std::mutex lock;
};

class Validator {
public:
	__attribute__((noinline)) void check_rules(int turns)
	{
		for (int i = 0; i < turns; i++) {
			try {
				rule(i);
			} catch (const Parse_error &error) {
				sink = sink + std::strlen(error.what());
			}
		}
	}

private:
	__attribute__((noinline)) void rule(int i)
	{
		if (i >= 0)
			throw Parse_error("a rule that does not hold");
	}
};

static Cache cache;

class Pool {
public:
	explicit Pool(int workers)
	{
		for (int i = 0; i < workers; i++)
			std::thread([this] { work(); }).detach();
	}
	void run(std::function<void()> job)
	{
		std::unique_lock<std::mutex> guard(lock);

		jobs.push_back(std::move(job));
		there.notify_one();
	}

private:
	void work()
	{
		prctl(PR_SET_NAME, "pool");
		for (;;) {
			std::function<void()> job;
			{
				std::unique_lock<std::mutex> guard(lock);

				there.wait(guard, [this] { return !jobs.empty(); });
				job = std::move(jobs.front());
				jobs.pop_front();
			}
			job();
		}
	}
	std::mutex lock;
	std::condition_variable there;
	std::deque<std::function<void()>> jobs;
};

static void serve(bool slow)
{
	Document<uint64_t> document;

	sink = sink + document.parse(50);
	if (plant == "cxx-mutex")
		cache.lookup();
	if (!slow || is_off())
		return;
	if (plant == "cxx-own" || plant == "cxx-pool")
		sink = sink + document.parse(slow_turns);
	else if (plant == "cxx-throw")
		Validator().check_rules(slow_turns);
	else if (plant == "cxx-mutex")
		cache.evict();
	else if (plant == "cxx-async")
		sink = sink + std::async(std::launch::async, [] {
			prctl(PR_SET_NAME, "task");
			return Document<uint64_t>().parse(slow_turns);
		}).get();
}

static void connection(int fd)
{
	char line[64];

	prctl(PR_SET_NAME, "conn");
	while (read(fd, line, sizeof(line)) > 0) {
		serve(*line == 's');
		if (write(fd, "ok\n", 3) < 0)
			break;
	}
	close(fd);
}

} // namespace shop

int main(int argc, char **argv)
{
	sockaddr_in at = {};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (argc < 3)
		return 2;
	shop::plant = argv[1];
	watch_switch();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	at.sin_family = AF_INET;
	at.sin_port = htons(static_cast<uint16_t>(atoi(argv[2])));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || listen(fd, 64))
		return 1;
	shop::Pool pool(1);
	for (;;) {
		int client = accept(fd, nullptr, nullptr);

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (shop::plant != "cxx-pool") {
			std::thread(shop::connection, client).detach();
			continue;
		}
		std::thread([client, &pool] {
			char line[64];

			prctl(PR_SET_NAME, "conn");
			while (read(client, line, sizeof(line)) > 0) {
				bool slow = *line == 's';

				pool.run([client, slow] {
					shop::serve(slow);
					if (write(client, "ok\n", 3) < 0)
						return;
				});
			}
		}).detach();
	}
}
