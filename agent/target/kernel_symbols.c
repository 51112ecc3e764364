// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/kernel_symbols.h"

#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* No function of the kernel is longer; what lies farther behind the last symbol is none of it. */
#define FUNCTION_SZ_MAX (1 << 20)
#define NAMES_SZ_MAX    (64 << 20)

struct kernel_symbol {
	uint64_t addr;
	uint32_t name; /* in `names` */
};

struct kernel_symbols {
	VEC(struct kernel_symbol) symbols;
	VEC(char) names;
};

void kernel_symbols__free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	vec_free(&symbols->symbols);
	vec_free(&symbols->names);
	free(symbols);
}

static int add(struct kernel_symbols *symbols, uint64_t addr, const char *name)
{
	struct kernel_symbol symbol = {.addr = addr, .name = (uint32_t)symbols->names.cnt};
	size_t sz = strlen(name) + 1;

	if (symbols->names.cnt + sz > NAMES_SZ_MAX || vec_reserve(&symbols->names, sz))
		return -ENOMEM;
	memcpy(symbols->names.items + symbols->names.cnt, name, sz);
	symbols->names.cnt += sz;
	return vec_push(&symbols->symbols, symbol);
}

ORDER(compare, struct kernel_symbol, BY(a->addr, b->addr), BY(a->name, b->name));

/* "ADDRESS TYPE NAME[\t[MODULE]]"; without the privilege all addresses are 0. */
static int take_line(struct kernel_symbols *symbols, char *line)
{
	char *end, *name;
	uint64_t addr = strtoull(line, &end, 16);

	if (!addr || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return 0;
	name = end + 3;
	name[strcspn(name, " \t\n")] = '\0';
	return *name ? add(symbols, addr, name) : 0;
}

struct kernel_symbols *kernel_symbols__read(FILE *file)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));
	char line[512];

	while (symbols && file && fgets(line, sizeof(line), file))
		if (take_line(symbols, line))
			break;
	if (file)
		fclose(file);
	if (!symbols)
		return NULL;
	vec_shrink(&symbols->symbols);
	vec_shrink(&symbols->names);
	vec_sort(&symbols->symbols, compare);
	return symbols;
}

struct kernel_symbols *kernel_symbols__open(void)
{
	return kernel_symbols__read(fopen("/proc/kallsyms", "re"));
}

const char *kernel_symbols__name(const struct kernel_symbols *symbols, uint64_t addr)
{
	size_t low;

	low = search_first(0, symbols->symbols.cnt, mid, symbols->symbols.items[mid].addr > addr);
	if (!low || addr - symbols->symbols.items[low - 1].addr >= FUNCTION_SZ_MAX)
		return NULL;
	/* Of several names of one function the first. */
	while (low > 1 && symbols->symbols.items[low - 2].addr == symbols->symbols.items[low - 1].addr)
		low--;
	return symbols->names.items + symbols->symbols.items[low - 1].name;
}
