/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++ exceptions, a thousand a second, through chains of functions with objects to destroy: caught at the top, caught
 * and thrown again half way, kept and thrown elsewhere, thrown while another one unwinds.
 */
#include "safety.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

static thread_local long guards_alive;
static thread_local uint64_t trail;

struct Guard {
	uint64_t mark;

	KEPT explicit Guard(uint64_t what) : mark(what)
	{
		guards_alive++;
	}
	KEPT ~Guard()
	{
		guards_alive--;
		trail = safety_mix(trail ^ mark);
	}
};

struct Failure : std::runtime_error {
	uint64_t number;

	explicit Failure(uint64_t what) : std::runtime_error("failure " + std::to_string(what)), number(what) {}
};

/* Throws while the exception that destroys it is on its way, and swallows its own. */
struct Fussy {
	KEPT ~Fussy()
	{
		try {
			throw Failure(1);
		} catch (const Failure &) {
			trail = safety_mix(trail ^ 77);
		}
	}
};

enum { FATE_RETURN, FATE_THROW, FATE_RETHROW, FATE_FUSSY, FATE_CNT };

KEPT static uint64_t bottom(uint64_t x, int fate)
{
	Guard guard(x + 5);

	if (fate != FATE_RETURN)
		throw Failure(x);
	return safety_mix(x);
}

KEPT static uint64_t fourth(uint64_t x, int fate)
{
	Guard guard(x + 4);

	return bottom(x + 1, fate) + 4;
}

KEPT static uint64_t third(uint64_t x, int fate)
{
	Guard guard(x + 3);

	if (fate == FATE_FUSSY) {
		Fussy fussy;

		return fourth(x + 1, fate) + 3;
	}
	return fourth(x + 1, fate) + 3;
}

KEPT static uint64_t second(uint64_t x, int fate)
{
	Guard guard(x + 2);

	try {
		return third(x + 1, fate) + 2;
	} catch (const Failure &) {
		if (fate == FATE_RETHROW)
			trail = safety_mix(trail ^ 99);
		throw;
	}
}

KEPT static uint64_t first(uint64_t x, int fate)
{
	Guard guard(x + 1);

	return second(x + 1, fate) + 1;
}

/* What the trail must be, without a call of the above. */
static uint64_t expected_trail(uint64_t x, int fate)
{
	uint64_t is = safety_mix(0 ^ (x + 4 + 5));

	is = safety_mix(is ^ (x + 3 + 4));
	if (fate == FATE_FUSSY)
		is = safety_mix(is ^ 77);
	is = safety_mix(is ^ (x + 2 + 3));
	if (fate == FATE_RETHROW)
		is = safety_mix(is ^ 99);
	is = safety_mix(is ^ (x + 1 + 2));
	return safety_mix(is ^ (x + 1));
}

KEPT static std::exception_ptr keep(uint64_t x)
{
	try {
		first(x, FATE_THROW);
	} catch (...) {
		return std::current_exception();
	}
	return nullptr;
}

KEPT static uint64_t release(const std::exception_ptr &kept)
{
	try {
		std::rethrow_exception(kept);
	} catch (const Failure &failure) {
		return failure.number;
	}
	return 0;
}

KEPT static void one_round(uint64_t x)
{
	int fate = static_cast<int>(x % FATE_CNT);

	trail = 0;
	try {
		uint64_t is = first(x, fate);

		safety_check(fate == FATE_RETURN && is == safety_mix(x + 4) + 10, "a result of %llx",
			     (unsigned long long)x);
	} catch (const Failure &failure) {
		safety_check(fate != FATE_RETURN && failure.number == x + 4 &&
				     failure.what() == "failure " + std::to_string(x + 4),
			     "an exception of %llx", (unsigned long long)x);
	}
	safety_check(!guards_alive && trail == expected_trail(x, fate), "what was destroyed for %llx",
		     (unsigned long long)x);
	safety_check(release(keep(x)) == x + 4, "an exception that was kept");
}

static void thread_body(unsigned int seed)
{
	for (uint64_t i = seed; safety_goes_on(); i += 2) {
		one_round(safety_mix(i) >> 8);
		safety_sleep_us(300);
	}
}

int main(int argc, char **argv)
{
	safety_begin(argc, argv);
	std::thread other(thread_body, 1);
	thread_body(2);
	other.join();
	return safety_verdict();
}
