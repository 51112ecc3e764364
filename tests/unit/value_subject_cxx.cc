// SPDX-License-Identifier: GPL-2.0-or-later
/* A method that tests members of its own class, of a base, and of a second base. */
namespace subject {

struct base {
	long pad;
	int depth;
};

struct counted {
	int level;
};

struct derived : base, counted {
	int own;
	int scan(int key) const;
};

__attribute__((noinline)) static int leaf(int number)
{
	__asm__ volatile("");
	return number * 3;
}

int __attribute__((noinline)) derived::scan(int key) const
{
	int found = 0;

	for (int i = 0; i < own; i++)
		found += leaf(i);
	if (depth > key)
		found += leaf(key);
	return level > key ? leaf(found) : found;
}

} // namespace subject

extern "C" int subject_cxx_scan(int key);

extern "C" int subject_cxx_scan(int key)
{
	subject::derived object = {};

	object.own = key;
	return object.scan(key);
}
