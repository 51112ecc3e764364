// SPDX-License-Identifier: GPL-2.0-or-later
// A wrong estimate: tables that were never counted pass for empty, and are joined row by row.
#include "serve.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

struct Rows {
	std::vector<uint32_t> keys;
	long estimate;
};

static __attribute__((noinline)) int join_by_hash(const Rows &left, const Rows &right)
{
	std::unordered_map<uint32_t, int> known;
	int pairs = 0;

	for (uint32_t key : left.keys)
		known[key]++;
	for (uint32_t key : right.keys) {
		auto found = known.find(key);

		pairs += found == known.end() ? 0 : found->second;
	}
	return pairs;
}

static __attribute__((noinline)) int join_by_row(const Rows &left, const Rows &right)
{
	int pairs = 0;

	for (uint32_t key : left.keys)
		for (uint32_t other : right.keys)
			pairs += key == other;
	return pairs;
}

static __attribute__((noinline)) int join(const Rows &left, const Rows &right)
{
	long estimate = left.estimate * right.estimate;
	int pairs = estimate < 10000 ? join_by_row(left, right) : join_by_hash(left, right);

	return pairs + (estimate < 0);
}

static Rows make(size_t cnt, long estimate)
{
	Rows rows{std::vector<uint32_t>(cnt), estimate};

	for (size_t i = 0; i < cnt; i++)
		rows.keys[i] = static_cast<uint32_t>(i * 7919 % 65536);
	return rows;
}

static Rows counted = make(6000, 6000), uncounted = make(6000, 0);

static size_t answer(const char *path, char *body)
{
	const Rows &rows = strncmp(path, "/new", 4) ? counted : uncounted;

	return (size_t)sprintf(body, "%d\n", join(rows, rows));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
