// SPDX-License-Identifier: GPL-2.0-or-later
/* std::list of std::unique_ptr to tasks with a virtual run(). */
#include "staged.h"

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace
{
struct task {
	virtual ~task() = default;
	virtual struct job *run() = 0;
};

struct request final : task {
	explicit request(struct job *job) : job(job) {}
	struct job *run() override
	{
		return job;
	}
	struct job *job;
};

class executor
{
	std::mutex lock;
	std::condition_variable_any filled;
	std::list<std::unique_ptr<task>> tasks;

      public:
	void submit(std::unique_ptr<task> one)
	{
		{
			std::scoped_lock held(lock);

			tasks.emplace_back(std::move(one));
		}
		filled.notify_one();
	}
	std::unique_ptr<task> next()
	{
		std::unique_lock held(lock);

		filled.wait(held, [this] { return !tasks.empty(); });
		std::unique_ptr<task> one = std::move(tasks.front());

		tasks.pop_front();
		return one;
	}
};

executor pool;
} // namespace

static void put(struct job *job)
{
	pool.submit(std::make_unique<request>(job));
}

static struct job *take(void)
{
	return pool.next()->run();
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
