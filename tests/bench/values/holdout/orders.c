// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: orders that were cancelled are priced like the others, and noticed when all is done. */
#include "serve.h"

#include <stdbool.h>

enum { ORDERS = 4000 };

struct order {
	bool cancelled;
	unsigned lines;
	uint32_t price;
};

static struct order books[2][ORDERS];

static __attribute__((noinline)) bool price_order(struct order *order)
{
	uint32_t price = order->lines;

	for (unsigned line = 0; line < order->lines * 120; line++)
		price = (price ^ price >> 11) * 2246822519u;
	if (order->cancelled)
		return false;
	order->price = price;
	return true;
}

static __attribute__((noinline)) int price_all(struct order *orders, int cnt)
{
	int priced = 0;

	for (int i = 0; i < cnt; i++)
		priced += price_order(&orders[i]);
	return priced;
}

static size_t answer(const char *path, char *body)
{
	bool is_old = !strncmp(path, "/old", 4);

	return (size_t)sprintf(body, "%d\n", price_all(books[is_old], is_old ? ORDERS : 40));
}

int main(int argc, char **argv)
{
	for (int i = 0; i < ORDERS; i++) {
		books[0][i] = (struct order){false, 3 + (unsigned)i % 5, 0};
		books[1][i] = (struct order){i >= 40, 3 + (unsigned)i % 5, 0};
	}
	return serve(argc, argv, answer);
}
