// SPDX-License-Identifier: GPL-2.0-or-later
/* std::queue of pointers under a mutex, with a condition. */
#include "staged.h"

#include <condition_variable>
#include <mutex>
#include <queue>

static std::mutex lock;
static std::condition_variable filled;
static std::queue<struct job *> jobs;

static void put(struct job *job)
{
	std::lock_guard<std::mutex> held(lock);

	jobs.push(job);
	filled.notify_one();
}

static struct job *take(void)
{
	std::unique_lock<std::mutex> held(lock);

	while (jobs.empty())
		filled.wait(held);
	struct job *job = jobs.front();

	jobs.pop();
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
