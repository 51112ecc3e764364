// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/kernel_symbols.h"

#include "base/order.h"
#include "base/vec.h"

#include <inttypes.h>
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
	FILE *file; /* NULL: it has been read, or cannot be */
	VEC(struct kernel_symbol) symbols;
	VEC(char) names;
};

struct kernel_symbols *kernel_symbols__of(FILE *file)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols)
		symbols->file = file;
	else if (file)
		fclose(file);
	return symbols;
}

struct kernel_symbols *kernel_symbols__open(void)
{
	return kernel_symbols__of(fopen("/proc/kallsyms", "re"));
}

void kernel_symbols__free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->file)
		fclose(symbols->file);
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
static void load(struct kernel_symbols *symbols)
{
	char line[512], type, name[256];
	uint64_t addr;

	while (fgets(line, sizeof(line), symbols->file)) {
		if (sscanf(line, "%" SCNx64 " %c %255s", &addr, &type, name) != 3 || !addr || !strchr("tTwW", type))
			continue;
		if (add(symbols, addr, name))
			break;
	}
	fclose(symbols->file);
	symbols->file = NULL;
	vec_shrink(&symbols->symbols);
	vec_shrink(&symbols->names);
	vec_sort(&symbols->symbols, compare);
}

const char *kernel_symbols__name(struct kernel_symbols *symbols, uint64_t addr)
{
	size_t low;

	if (symbols->file)
		load(symbols);
	low = search_first(0, symbols->symbols.cnt, mid, symbols->symbols.items[mid].addr > addr);
	if (!low || addr - symbols->symbols.items[low - 1].addr >= FUNCTION_SZ_MAX)
		return NULL;
	/* Of several names of one function the first. */
	while (low > 1 && symbols->symbols.items[low - 2].addr == symbols->symbols.items[low - 1].addr)
		low--;
	return symbols->names.items + symbols->symbols.items[low - 1].name;
}
