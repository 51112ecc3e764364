// SPDX-License-Identifier: GPL-2.0-or-later
/* std::deque of std::function, which is what passes, by value. */
#include "staged.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

static std::mutex lock;
static std::condition_variable filled;
static std::deque<std::function<struct job *()>> jobs;

static void put(struct job *job)
{
	{
		std::lock_guard<std::mutex> held(lock);

		jobs.push_back([job] { return job; });
	}
	filled.notify_one();
}

static struct job *take(void)
{
	std::function<struct job *()> one;
	{
		std::unique_lock<std::mutex> held(lock);

		filled.wait(held, [] { return !jobs.empty(); });
		one = std::move(jobs.front());
		jobs.pop_front();
	}
	return one();
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
