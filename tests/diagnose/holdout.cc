// SPDX-License-Identifier: GPL-2.0-or-later
/* As holdout.c, in C++: a writer among readers, the allocator's lock, a part of a request that is late. */
#include "lines.hh"

#include <condition_variable>
#include <deque>
#include <functional>
#include <malloc.h>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace
{

WORK(reprice)
WORK(merge_shard)

/* Readers take their time; a writer keeps them all out. */
class Prices
{
      public:
	void read()
	{
		std::shared_lock<std::shared_mutex> guard(lock);

		sink = sink + 1;
	}
	__attribute__((noinline)) void update()
	{
		std::unique_lock<std::shared_mutex> guard(lock);

		reprice(SLOW_NS);
	}

      private:
	std::shared_mutex lock;
};

/* Free memory between pieces that are kept: giving it back takes a while, with the allocator's lock. */
class Heap
{
      public:
	Heap()
	{
		mallopt(M_ARENA_MAX, 1);
		mallopt(M_MMAP_THRESHOLD, 1 << 30);
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
		for (int i = 0; i < 6000; i++) {
			gaps.push_back(nullptr);
			kept.push_back(std::make_unique<char[]>(64));
		}
	}
	__attribute__((noinline)) void trim()
	{
		for (auto &gap : gaps) {
			gap.reset(new char[12000]);
			for (int at = 0; at < 12000; at += 4000)
				gap[at] = 1;
			kept.push_back(std::make_unique<char[]>(64));
		}
		for (auto &gap : gaps)
			gap.reset();
		kept.clear();
		malloc_trim(0);
		sink = sink + 1;
	}

      private:
	std::vector<std::unique_ptr<char[]>> gaps, kept;
};

/* Three shards of each request, by three threads; the last one ends it. */
class Shards
{
      public:
	Shards()
	{
		for (int i = 0; i < 3; i++)
			std::thread([this] { work(); }).detach();
	}
	void ask_all(bool slow)
	{
		std::mutex done_lock;
		std::condition_variable done;
		int left = 3;

		for (int i = 0; i < 3; i++)
			push([&, i] {
				merge_shard(slow && i == 1 ? SLOW_NS : MS / 50);
				std::lock_guard<std::mutex> guard(done_lock);
				if (!--left)
					done.notify_one();
			});
		std::unique_lock<std::mutex> guard(done_lock);
		done.wait(guard, [&] { return !left; });
	}

      private:
	void push(std::function<void()> job)
	{
		std::lock_guard<std::mutex> guard(lock);

		jobs.push_back(std::move(job));
		there.notify_one();
	}
	void work()
	{
		name_thread("shard");
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

Prices prices;
std::unique_ptr<Heap> heap;
std::unique_ptr<Shards> shards;

__attribute__((noinline)) void copy_order()
{
	/* Too large for a thread's own store of pieces. */
	std::vector<std::unique_ptr<char[]>> order;

	for (int i = 0; i < 4; i++)
		order.push_back(std::make_unique<char[]>(2000));
	sink = sink + order.size();
}

void serve(bool slow)
{
	answer_get(GET_NS);
	if (is("ho-cxx-writer") && slow)
		prices.update();
	else if (is("ho-cxx-writer"))
		prices.read();
	else if (is("ho-cxx-heap"))
		copy_order();
	else if (is("ho-cxx-shards"))
		shards->ask_all(slow);
}

} // namespace

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3)
		return 2;
	begin_planted(argv);
	fd = listen_at(atoi(argv[2]));
	if (is("ho-cxx-heap")) {
		heap = std::make_unique<Heap>();
		std::thread([] {
			name_thread("auditor");
			for (;;) {
				nap(100 * MS);
				if (!is_off())
					heap->trim();
			}
		}).detach();
	}
	shards = std::make_unique<Shards>();
	serve_lines(fd, serve);
}
