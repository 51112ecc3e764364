// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/inlines.h"

#include "base/order.h"
#include "base/vec.h"
#include "target/debug_sz.h"
#include "target/demangle.h"
#include "target/dwarf_alone.h"
#include "target/elf_image.h"
#include "target/proc_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* DIEs that enclose functions: namespaces, classes. */
#define NESTING_MAX 16
/* A forged file shall not keep us. */
#define RANGES_MAX 4096
#define DIES_MAX   (1U << 20)

struct range {
	uint64_t lo, hi;
	Dwarf_Off die;
	uint32_t unit; /* of a compilation unit: its number */
};

typedef VEC(struct range) ranges;

struct unit {
	Dwarf_Off die;
	bool read;
	ranges functions; /* by address */
};

struct inlines {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	VEC(struct unit) units;
	ranges unit_ranges; /* by address */
	uint64_t held_sz;
	char names[INLINES_DEPTH_MAX][INLINES_NAME_SZ];
};

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* Of all files that are open, unpacked. */
static _Atomic uint64_t held_sz;

/* Takes its part of what all files may have; false: there is none, or too much. */
static bool take_room(Elf *elf, uint64_t most, uint64_t *taken)
{
	uint64_t sz;
	bool any;

	if (!debug_sz(elf, &sz, &any) || !any || sz > most)
		return false;
	*taken = sz;
	if (atomic_fetch_add(&held_sz, sz) + sz <= most)
		return true;
	atomic_fetch_sub(&held_sz, sz);
	*taken = 0;
	return false;
}

ORDER(compare_ranges, struct range, BY(a->lo, b->lo), BY(a->die, b->die));

static void sort_ranges(ranges *of)
{
	vec_sort(of, compare_ranges);
}

static int add_ranges(ranges *to, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	for (int i = 0; i < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0; i++) {
		struct range range = {lo, hi, dwarf_dieoffset(die), unit};

		if (lo && lo < hi && vec_push(to, range))
			return -ENOMEM;
	}
	return 0;
}

static int read_units(struct inlines *inlines)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	uint8_t type;

	while (!dwarf_get_units(inlines->dwarf, cu, &cu, NULL, &type, &die, &split)) {
		struct unit unit = {.die = dwarf_dieoffset(&die)};

		if (type != DW_UT_compile)
			continue;
		if (add_ranges(&inlines->unit_ranges, &die, (uint32_t)inlines->units.cnt) ||
		    vec_push(&inlines->units, unit))
			return -ENOMEM;
	}
	sort_ranges(&inlines->unit_ranges);
	return 0;
}

static struct inlines *open_dwarf(int fd, Elf_Cmd how, uint64_t most)
{
	struct inlines *inlines = calloc(1, sizeof(*inlines));
	struct stat st;

	if (!inlines) {
		close(fd);
		return NULL;
	}
	inlines->fd = fd;
	elf_version(EV_CURRENT);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !elf_header_check(fd, (uint64_t)st.st_size, true))
		inlines->elf = elf_begin(fd, how, NULL);
	if (inlines->elf && take_room(inlines->elf, most, &inlines->held_sz))
		inlines->dwarf = dwarf_begin_elf(inlines->elf, DWARF_C_READ, NULL);
	if (!inlines->dwarf || dwarf_alone(inlines->dwarf) || read_units(inlines)) {
		inlines__free(inlines);
		return NULL;
	}
	return inlines;
}

struct inlines *inlines__open(int fd)
{
	return open_dwarf(fd, ELF_C_READ, INLINES_SZ_MAX);
}

struct inlines *inlines__open_lines(int fd)
{
	return open_dwarf(fd, ELF_C_READ_MMAP, LINES_SZ_MAX);
}

void inlines__free(struct inlines *inlines)
{
	if (!inlines)
		return;
	for (size_t i = 0; i < inlines->units.cnt; i++)
		vec_free(&inlines->units.items[i].functions);
	vec_free(&inlines->units);
	vec_free(&inlines->unit_ranges);
	if (inlines->dwarf)
		dwarf_end(inlines->dwarf);
	if (inlines->elf)
		elf_end(inlines->elf);
	atomic_fetch_sub(&held_sz, inlines->held_sz);
	close(inlines->fd);
	free(inlines);
}

/* --- a function --------------------------------------------------------------------------------------------------- */

/* The functions of a unit, also those within namespaces and classes. */
static int read_functions(struct unit *unit, Dwarf_Die *parent, int depth, uint32_t *left)
{
	Dwarf_Die die;
	int err = 0;

	if (depth > NESTING_MAX || dwarf_child(parent, &die))
		return 0;
	do {
		if (!*left)
			return 0;
		--*left;
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			err = add_ranges(&unit->functions, &die, 0);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			err = read_functions(unit, &die, depth + 1, left);
			break;
		}
	} while (!err && !dwarf_siblingof(&die, &die));
	return err;
}

static const struct range *range_at(const ranges *of, uint64_t addr)
{
	size_t low = search_first(0, of->cnt, mid, of->items[mid].lo > addr);

	return low && addr < of->items[low - 1].hi ? &of->items[low - 1] : NULL;
}

static bool function_at(struct inlines *inlines, uint64_t addr, Dwarf_Die *die)
{
	const struct range *range = range_at(&inlines->unit_ranges, addr);
	uint32_t left = DIES_MAX;
	struct unit *unit;

	if (!range)
		return false;
	unit = &inlines->units.items[range->unit];
	if (!unit->read) {
		Dwarf_Die unit_die;

		unit->read = true;
		if (dwarf_offdie(inlines->dwarf, unit->die, &unit_die))
			(void)read_functions(unit, &unit_die, 0, &left);
		sort_ranges(&unit->functions);
	}
	range = range_at(&unit->functions, addr);
	return range && dwarf_offdie(inlines->dwarf, range->die, die);
}

/* --- what is inlined in it ---------------------------------------------------------------------------------------- */

static void name_of(Dwarf_Die *die, char name[INLINES_NAME_SZ])
{
	Dwarf_Attribute attr;
	const char *linkage = NULL, *plain = dwarf_diename(die);
	char *shown;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		linkage = dwarf_formstring(&attr);
	shown = linkage ? demangle(linkage) : NULL;
	demangle_fit(name, INLINES_NAME_SZ, shown ? shown : plain ? plain : linkage ? linkage : "");
	free(shown);
	if (!*name)
		strcpy(name, "[inlined]");
	proc_make_printable(name);
}

/* The child that has the address, of those that code can be in. */
static bool child_at(Dwarf_Die *parent, uint64_t addr, Dwarf_Die *found)
{
	uint32_t left = DIES_MAX;

	if (dwarf_child(parent, found))
		return false;
	do {
		switch (dwarf_tag(found)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(found, addr) > 0)
				return true;
		}
	} while (--left && !dwarf_siblingof(found, found));
	return false;
}

size_t inlines__at(struct inlines *inlines, uint64_t addr, const char *names[INLINES_DEPTH_MAX])
{
	Dwarf_Die die, child;
	size_t cnt = 0;

	if (!function_at(inlines, addr, &die))
		return 0;
	for (int depth = 0; depth < 64 && cnt < INLINES_DEPTH_MAX && child_at(&die, addr, &child); depth++) {
		die = child;
		if (dwarf_tag(&die) != DW_TAG_inlined_subroutine)
			continue;
		name_of(&die, inlines->names[cnt]);
		names[cnt] = inlines->names[cnt];
		cnt++;
	}
	return cnt;
}

/* --- source lines ------------------------------------------------------------------------------------------------- */

bool inlines__line_at(struct inlines *inlines, uint64_t addr, const char **file, uint32_t *line)
{
	const struct range *range = range_at(&inlines->unit_ranges, addr);
	Dwarf_Line *found;
	Dwarf_Die unit;
	int number;

	if (!range || !dwarf_offdie(inlines->dwarf, inlines->units.items[range->unit].die, &unit))
		return false;
	found = dwarf_getsrc_die(&unit, addr);
	*file = found ? dwarf_linesrc(found, NULL, NULL) : NULL;
	if (!*file || !**file || dwarf_lineno(found, &number) || number <= 0)
		return false;
	*line = (uint32_t)number;
	return true;
}
