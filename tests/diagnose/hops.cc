// SPDX-License-Identifier: GPL-2.0-or-later
/* As hops.c, in C++: a promise whose keeper waits for a lock, a lock whose owner waits for an upstream. */
#include "lines.hh"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

namespace
{

int upstream_port;
std::mutex prices_lock, jobs_lock, session_lock;
std::condition_variable jobs_changed;
std::deque<std::promise<int>> jobs;

__attribute__((noinline)) void reprice_all(uint64_t ns)
{
	answer_get(ns);
	sink = sink + 1;
}

void pricer()
{
	name_thread("pricer");
	for (;;) {
		nap(180 * MS);
		if (is_off())
			continue;
		std::lock_guard<std::mutex> guard(prices_lock);
		reprice_all(SLOW_NS);
	}
}

void keeper()
{
	name_thread("keeper");
	for (;;) {
		std::unique_lock<std::mutex> guard(jobs_lock);
		jobs_changed.wait(guard, [] { return !jobs.empty(); });
		std::promise<int> promise = std::move(jobs.front());
		jobs.pop_front();
		guard.unlock();
		std::lock_guard<std::mutex> prices(prices_lock);
		promise.set_value(1);
	}
}

int await_price()
{
	std::promise<int> promise;
	std::future<int> price = promise.get_future();

	{
		std::lock_guard<std::mutex> guard(jobs_lock);
		jobs.push_back(std::move(promise));
	}
	jobs_changed.notify_one();
	return price.get();
}

/* All requests share one session with the upstream. */
void ask_upstream(bool slow)
{
	static int fd = connect_to(upstream_port);
	std::lock_guard<std::mutex> guard(session_lock);
	char reply[64];

	say(fd, slow ? "slow\n" : "get\n");
	if (!read_line(fd, reply, sizeof(reply)))
		exit(1);
}

void serve(bool slow)
{
	answer_get(GET_NS);
	if (is("hp-cxx-promise"))
		sink = sink + static_cast<uint64_t>(await_price());
	else
		ask_upstream(slow);
}

} // namespace

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3)
		return 2;
	begin_planted(argv);
	upstream_port = atoi(argv[2]) + 1;
	if (is("hp-cxx-promise")) {
		std::thread(pricer).detach();
		std::thread(keeper).detach();
	}
	fd = listen_at(atoi(argv[2]));
	serve_lines(fd, serve);
}
