// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_sz.h"

#include <gelf.h>
#include <string.h>

bool debug_sz(Elf *elf, uint64_t *sz, bool *has_info)
{
	Elf_Scn *section = NULL;
	size_t names;

	*sz = 0;
	*has_info = false;
	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Chdr packed;
		const char *name;

		if (!gelf_getshdr(section, &header))
			return false;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_", 7) || header.sh_type == SHT_NOBITS)
			continue;
		*has_info |= !strcmp(name, ".debug_info");
		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed))
			header.sh_size = packed.ch_size;
		if (__builtin_add_overflow(*sz, header.sh_size, sz))
			return false;
	}
	return true;
}
