// SPDX-License-Identifier: GPL-2.0-or-later
// A chain that grows: the names of one client all have the same hash.
#include "serve.h"

#include <cstdint>
#include <string>
#include <vector>

struct Entry {
	Entry *next;
	uint32_t hash;
	std::string name;
};

class Directory
{
	std::vector<Entry *> buckets_;

      public:
	unsigned longest = 0;

	Directory() : buckets_(4096) {}
	void add(uint32_t hash, const std::string &name)
	{
		Entry *&first = buckets_[hash % 4096];

		first = new Entry{first, hash, name};
	}
	__attribute__((noinline)) const Entry *find(uint32_t hash, const std::string &name)
	{
		unsigned steps = 0;
		const Entry *found = nullptr;

		for (const Entry *entry = buckets_[hash % 4096]; entry; entry = entry->next) {
			steps++;
			if (entry->hash == hash && entry->name == name) {
				found = entry;
				break;
			}
		}
		if (steps > longest)
			longest = steps;
		return found;
	}
};

static Directory directory;

static size_t answer(const char *path, char *body)
{
	bool bad = !strncmp(path, "/crafted", 8);
	int found = 0;

	for (uint32_t i = 0; i < 150; i++)
		found += directory.find(bad ? 77 : i * 97, (bad ? "x" : "n") + std::to_string(i * 97)) != nullptr;
	return (size_t)sprintf(body, "%d\n", found);
}

int main(int argc, char **argv)
{
	for (uint32_t i = 0; i < 20000; i++)
		directory.add(i, "n" + std::to_string(i));
	for (uint32_t i = 0; i < 15000; i++)
		directory.add(77, "x" + std::to_string(i));
	return serve(argc, argv, answer);
}
