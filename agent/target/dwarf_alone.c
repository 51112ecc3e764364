// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/dwarf_alone.h"

#include <errno.h>
#include <pthread.h>

/* A file with DWARF of one byte. */
static struct {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[24];
	char info[8];
} image = {
	.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			       ELFDATA2LSB,
#else
			       ELFDATA2MSB,
#endif
			       EV_CURRENT},
		   .e_type = ET_REL,
		   .e_version = EV_CURRENT,
		   .e_shoff = sizeof(Elf64_Ehdr),
		   .e_ehsize = sizeof(Elf64_Ehdr),
		   .e_shentsize = sizeof(Elf64_Shdr),
		   .e_shnum = 3,
		   .e_shstrndx = 1},
	.sections = {{0},
		     {.sh_name = 1,
		      .sh_type = SHT_STRTAB,
		      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
		      .sh_size = 24,
		      .sh_addralign = 1},
		     {.sh_name = 11,
		      .sh_type = SHT_PROGBITS,
		      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 24,
		      .sh_size = 1,
		      .sh_addralign = 1}},
	.names = "\0.shstrtab\0.debug_info",
};
static Dwarf *nothing;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_nothing(void)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)&image, sizeof(image));
	nothing = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}

int dwarf_alone(Dwarf *dwarf)
{
	pthread_once(&once, make_nothing);
	if (!nothing)
		return -ENOMEM;
	dwarf_setalt(dwarf, nothing);
	return 0;
}
