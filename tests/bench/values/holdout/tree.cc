// SPDX-License-Identifier: GPL-2.0-or-later
// A tree that is never balanced: keys that come in order make a list of it.
#include "serve.h"

struct Node {
	uint32_t key, seen = 0;
	Node *child[2] = {nullptr, nullptr};
	explicit Node(uint32_t from) : key(from) {}
};

class Index
{
	Node *root_ = nullptr;

      public:
	void insert(uint32_t key)
	{
		Node **at = &root_;

		while (*at)
			at = &(*at)->child[key > (*at)->key];
		*at = new Node(key);
	}
	__attribute__((noinline)) int find(uint32_t key)
	{
		int depth = 0;

		for (Node *node = root_; node; node = node->child[key > node->key]) {
			depth++;
			if (node->key == key) {
				node->seen++;
				break;
			}
		}
		return depth;
	}
};

static Index mixed, ordered;

static size_t answer(const char *path, char *body)
{
	Index &index = strncmp(path, "/ordered", 8) ? mixed : ordered;
	int depth = 0;

	for (uint32_t i = 0; i < 300; i++)
		depth += index.find(i * 29 % 9000 + 1);
	return (size_t)sprintf(body, "%d\n", depth);
}

int main(int argc, char **argv)
{
	for (uint32_t i = 0; i < 9000; i++) {
		mixed.insert(i * 7919 % 9001);
		ordered.insert(i);
	}
	return serve(argc, argv, answer);
}
