// SPDX-License-Identifier: GPL-2.0-or-later
// An inlined helper: deleted entries stay in an open hash table, and every look-up steps over them.
#include "serve.h"

#include <cstdint>
#include <vector>

struct Slot {
	enum State : uint8_t { FREE, USED, DELETED } state = FREE;
	uint32_t key = 0, value = 0;
};

struct Table {
	std::vector<Slot> slots;
	size_t mask, deleted = 0;

	explicit Table(size_t size) : slots(size), mask(size - 1) {}
	void insert(uint32_t key, uint32_t value)
	{
		size_t at = key & mask;

		while (slots[at].state != Slot::FREE)
			at = (at + 1) & mask;
		slots[at].state = Slot::USED;
		slots[at].key = key;
		slots[at].value = value;
	}
	void erase(size_t at)
	{
		slots[at].state = Slot::DELETED;
		deleted++;
	}
};

static inline const Slot *probe(const Table &table, uint32_t key, size_t &steps)
{
	for (size_t at = key & table.mask;; at = (at + 1) & table.mask, steps++) {
		const Slot &slot = table.slots[at];

		if (slot.state == Slot::FREE)
			return nullptr;
		if (slot.state == Slot::USED && slot.key == key)
			return &slot;
	}
}

static __attribute__((noinline)) size_t lookup_all(const Table &table, uint32_t from, int cnt)
{
	size_t found = 0, steps = 0;

	for (int i = 0; i < cnt; i++) {
		const Slot *slot = probe(table, from + (uint32_t)i, steps);

		found += slot ? slot->value : 0;
	}
	return found + steps / 1000000;
}

static Table fresh(1 << 16), worn(1 << 16);

static size_t answer(const char *path, char *body)
{
	const Table &table = strncmp(path, "/worn", 5) ? fresh : worn;

	return (size_t)sprintf(body, "%zu\n", lookup_all(table, 100, 400));
}

int main(int argc, char **argv)
{
	for (uint32_t i = 0; i < 40000; i++) {
		fresh.insert(i * 3 % 65536, i);
		worn.insert(i * 3 % 65536, i);
	}
	for (uint32_t i = 0; i < 20000; i++)
		worn.insert(65536 + i, i);
	for (size_t at = 0; at < worn.slots.size(); at++)
		if (worn.slots[at].state == Slot::USED && at % 64)
			worn.erase(at);
	return serve(argc, argv, answer);
}
