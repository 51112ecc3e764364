// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues as C++ has them: std::deque under std::lock_guard and std::unique_lock, of pointers (threads `raw-in` and
 * `raw-out`) and of std::unique_ptr (`unique-in`, `unique-out`).
 *
 *   queues-cplusplus [SECONDS]      prints `ready`
 */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace
{

constexpr int seconds_default = 60;
constexpr int pause_us = 1500;

struct job {
	long key, work;
};

template <typename Item> class queue
{
	std::mutex lock;
	std::condition_variable filled;
	std::deque<Item> items;

      public:
	void put(Item item)
	{
		{
			std::lock_guard<std::mutex> held(lock);

			items.push_back(std::move(item));
		}
		filled.notify_one();
	}

	Item take()
	{
		std::unique_lock<std::mutex> held(lock);

		filled.wait(held, [this] { return !items.empty(); });
		Item item = std::move(items.front());
		items.pop_front();
		return item;
	}
};

queue<job *> raw;
queue<std::unique_ptr<job>> owned;
std::atomic<long> done;

void thread_start(const char *name, void (*once)())
{
	std::thread([=] {
		prctl(PR_SET_NAME, name);
		for (;;)
			once();
	}).detach();
}

} // namespace

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : seconds_default;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	thread_start("raw-in", [] {
		raw.put(new job{1, 2});
		usleep(pause_us);
	});
	thread_start("raw-out", [] {
		job *taken = raw.take();

		done += taken->work;
		delete taken;
	});
	thread_start("unique-in", [] {
		owned.put(std::make_unique<job>());
		usleep(pause_us);
	});
	thread_start("unique-out", [] { done += owned.take()->work; });
	puts("ready");
	fflush(stdout);
	sleep(seconds);
	_exit(0);
}
