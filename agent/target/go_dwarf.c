// SPDX-License-Identifier: GPL-2.0-or-later
/* Offsets in the Go runtime's structures, by DWARF. */
#include "target/go_dwarf.h"
#include "target/debug_sz.h"
#include "target/dwarf_alone.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

/* A forged file shall not keep us: debugging information beyond this is not read. */
#define DEBUG_SZ_MAX (256ULL << 20)
#define DIES_MAX     (1U << 22)
/* No structure of the runtime's is larger. */
#define STRUCT_SZ_MAX (64 << 10)

struct wanted_member {
	const char *name;
	uint32_t sz_min, sz_max; /* that it may have */
	uint32_t *off, *sz;      /* sz: NULL or where its own goes */
	bool found;
};

/* Unpacked, all of it is not too much. */
static bool has_room(Elf *elf)
{
	bool has_info;
	uint64_t sz;

	return debug_sz(elf, &sz, &has_info) && sz <= DEBUG_SZ_MAX;
}

/* The type behind typedefs. */
static bool plain_type(Dwarf_Die *of, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	*type = *of;
	for (int depth = 0; depth < 8; depth++) {
		if (!dwarf_formref_die(dwarf_attr_integrate(type, DW_AT_type, &attr), type))
			return false;
		if (dwarf_tag(type) != DW_TAG_typedef)
			return true;
	}
	return false;
}

static bool read_member(Dwarf_Die *die, uint64_t struct_sz, struct wanted_member *member)
{
	Dwarf_Attribute attr;
	Dwarf_Die type;
	Dwarf_Word off, sz;

	if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_data_member_location, &attr), &off) ||
	    !plain_type(die, &type) || dwarf_aggregate_size(&type, &sz) || sz < member->sz_min || sz > member->sz_max ||
	    sz > struct_sz || off > struct_sz - sz || off % (sz < 8 ? sz : 8))
		return false;
	*member->off = (uint32_t)off;
	if (member->sz)
		*member->sz = (uint32_t)sz;
	member->found = true;
	return true;
}

/* Those of a structure; false: one that is there is none that can be. */
static bool read_members(Dwarf_Die *die, struct wanted_member *members, size_t cnt)
{
	int struct_sz = dwarf_bytesize(die);
	Dwarf_Die child;

	if (struct_sz <= 0 || struct_sz > STRUCT_SZ_MAX || dwarf_child(die, &child))
		return false;
	do {
		const char *name = dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;

		for (size_t i = 0; name && i < cnt; i++)
			if (!strcmp(name, members[i].name) && !read_member(&child, struct_sz, &members[i]))
				return false;
	} while (!dwarf_siblingof(&child, &child));
	return true;
}

struct wanted_struct {
	const char *name;
	struct wanted_member *members;
	size_t cnt;
	bool found;
};

static int read_unit(Dwarf_Die *unit, struct wanted_struct *structs, size_t cnt, uint32_t *die_cnt)
{
	Dwarf_Die die;

	if (dwarf_child(unit, &die))
		return 0;
	do {
		const char *name;

		if (++*die_cnt > DIES_MAX)
			return -EBADMSG;
		name = dwarf_tag(&die) == DW_TAG_structure_type ? dwarf_diename(&die) : NULL;
		for (size_t i = 0; name && i < cnt; i++) {
			if (structs[i].found || strcmp(name, structs[i].name))
				continue;
			if (!read_members(&die, structs[i].members, structs[i].cnt))
				return -EBADMSG;
			structs[i].found = true;
		}
	} while (!dwarf_siblingof(&die, &die));
	return 0;
}

static int read_units(Dwarf *dwarf, struct wanted_struct *structs, size_t cnt)
{
	Dwarf_Off off = 0, next;
	uint32_t die_cnt = 0;
	size_t header_sz;
	int err = 0;

	while (!err && !dwarf_nextcu(dwarf, off, &next, &header_sz, NULL, NULL, NULL)) {
		bool missing = false;
		Dwarf_Die unit;

		for (size_t i = 0; i < cnt; i++)
			missing |= !structs[i].found;
		if (!missing)
			break;
		if (dwarf_offdie(dwarf, off + header_sz, &unit))
			err = read_unit(&unit, structs, cnt, &die_cnt);
		off = next;
	}
	return err;
}

int go_layout_by_dwarf(int fd, struct go_layout *layout, uint32_t *stopping_off)
{
	struct wanted_member of_g[] = {
		{"goid", 8, 8, &layout->goid, NULL, false},
		{"atomicstatus", 4, 4, &layout->status, NULL, false},
		{"waitreason", 1, 1, &layout->wait_reason, NULL, false},
		{"startpc", 8, 8, &layout->start_pc, NULL, false},
		{"sched", 48, 56, &layout->sched, &layout->sched_sz, false},
	};
	struct wanted_member of_schedt[] = {{"gcwaiting", 1, 4, stopping_off, &layout->stopping_sz, false}};
	struct wanted_struct structs[] = {
		{"runtime.g", of_g, sizeof(of_g) / sizeof(of_g[0]), false},
		{"runtime.schedt", of_schedt, 1, false},
	};
	Elf *elf;
	Dwarf *dwarf = NULL;
	int err = -ENOENT;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && has_room(elf))
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (dwarf)
		err = dwarf_alone(dwarf);
	if (dwarf && !err)
		err = read_units(dwarf, structs, 2);
	if (!err && !structs[0].found)
		err = -ENOENT;
	for (size_t i = 0; !err && i < sizeof(of_g) / sizeof(of_g[0]); i++)
		if (!of_g[i].found)
			err = -EBADMSG;
	if (!of_schedt[0].found || (layout->stopping_sz != 1 && layout->stopping_sz != 4))
		layout->stopping_sz = 0;
	if (dwarf)
		dwarf_end(dwarf);
	if (elf)
		elf_end(elf);
	return err;
}
