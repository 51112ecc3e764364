/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine.h"

#include <memory>
#include <stdexcept>
#include <string>

#define KEPT __attribute__((noipa))

namespace store
{

struct Request {
	uint64_t dice;
	double steps_per_ns;
	uint64_t planted_ns;

	uint64_t roll()
	{
		dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
		return dice >> 33;
	}
};

static inline __attribute__((always_inline)) uint64_t work(const Request &request, uint64_t work_ns)
{
	uint64_t x = 1;

	for (uint64_t left = static_cast<uint64_t>(static_cast<double>(work_ns) * request.steps_per_ns); left; left--) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Thrown through three frames in 3 % of the requests: the call is made again. */
struct Conflict : std::runtime_error {
	Conflict() : std::runtime_error("somebody else has changed it") {}
};

template <typename Key> class Index
{
      public:
	KEPT uint64_t rebalance(Request &request)
	{
		uint64_t work_ns = 30000;

		if (request.roll() % 1000 < 40) {
			request.planted_ns = 2000000 + request.roll() % 3000000;
			work_ns += request.planted_ns;
		}
		return work(request, work_ns);
	}

	KEPT uint64_t insert(Request &request, Key key)
	{
		uint64_t sum = work(request, 40000) ^ static_cast<uint64_t>(key);

		return sum + rebalance(request);
	}
};

class Table
{
      public:
	virtual ~Table() = default;
	virtual uint64_t put(Request &request, bool may_conflict) = 0;
};

class SortedTable : public Table
{
	Index<unsigned long> index_;

	KEPT uint64_t check(Request &request, bool may_conflict)
	{
		if (may_conflict && request.roll() % 100 < 3)
			throw Conflict();
		return work(request, 50000);
	}

      public:
	KEPT uint64_t put(Request &request, bool may_conflict) override
	{
		uint64_t sum = check(request, may_conflict);

		return sum + index_.insert(request, sum);
	}
};

class Transaction
{
	Request &request_;
	std::unique_ptr<Table> table_;

      public:
	explicit Transaction(Request &request) : request_(request), table_(new SortedTable) {}

	KEPT uint64_t apply(bool may_conflict)
	{
		uint64_t sum = work(request_, 60000);

		return sum + table_->put(request_, may_conflict);
	}

	KEPT uint64_t commit()
	{
		return work(request_, 80000);
	}
};

KEPT static uint64_t execute(Request &request)
{
	Transaction transaction(request);
	uint64_t sum;

	try {
		sum = transaction.apply(true);
	} catch (const Conflict &) {
		sum = transaction.apply(false);
	}
	return sum + transaction.commit();
}

} // namespace store

uint64_t engine_answer(uint64_t dice, double steps_per_ns, uint64_t *planted_ns)
{
	store::Request request = {dice, steps_per_ns, 0};
	uint64_t sum = store::execute(request);

	*planted_ns += request.planted_ns;
	return sum;
}
