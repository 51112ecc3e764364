// SPDX-License-Identifier: GPL-2.0-or-later
/* The markers of whylate/annotate.h, as compilers and linkers leave them in programs and libraries. */
#include "unit.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SITE_CNT  7
#define SITES_MAX 16

#if defined(__x86_64__)
static const unsigned char site_code[] = {0x90};
#elif defined(__aarch64__)
static const unsigned char site_code[] = {0x1f, 0x20, 0x03, 0xd5};
#endif

/* Several sites of one name, a pointer, a constant, a global, an inlined function that is there twice; C and C++. */
static const char source[] = "#ifdef WITHOUT\n"
			     "#define WHYLATE_BEGIN(key) ((void)(key))\n"
			     "#define WHYLATE_WORK(key) ((void)(key))\n"
			     "#define WHYLATE_END(key) ((void)(key))\n"
			     "#else\n"
			     "#include <whylate/annotate.h>\n"
			     "#endif\n"
			     "int counter;\n"
			     "void serve(void *request);\n"
			     "unsigned long same(unsigned long key);\n"
			     "static inline __attribute__((always_inline)) void both(unsigned int key)\n"
			     "{ WHYLATE_BEGIN(key); WHYLATE_END(key); }\n"
			     "void serve(void *request)\n"
			     "{ WHYLATE_BEGIN(request); WHYLATE_WORK(7); both(3); both((unsigned int)counter); }\n"
			     "unsigned long same(unsigned long key) { WHYLATE_WORK(key); return key; }\n"
			     "int main(void) { serve(&counter); return (int)same(0); }\n";

struct site {
	uint64_t addr, base, semaphore;
	char provider[16], name[16], args[32];
};

struct sites {
	struct site list[SITES_MAX];
	size_t cnt;
	uint64_t base_addr; /* of .stapsdt.base */
	uint64_t same_sz;   /* of same(), 0 if it has no symbol */
	size_t bad_code_cnt;
};

static char directory[] = "/tmp/whylate-annotate-XXXXXX";

/* Three strings, each with its NUL, fill the rest of the note. */
static bool take_note(struct sites *sites, const char *desc, size_t sz)
{
	struct site *site = &sites->list[sites->cnt];
	const char *text = desc + 24, *end = desc + sz;
	size_t provider_sz, name_sz, args_sz;

	if (sites->cnt == SITES_MAX || sz < 24 + 3 || end[-1])
		return false;
	memcpy(&site->addr, desc, 8);
	memcpy(&site->base, desc + 8, 8);
	memcpy(&site->semaphore, desc + 16, 8);
	provider_sz = strlen(text) + 1;
	if (text + provider_sz >= end)
		return false;
	name_sz = strlen(text + provider_sz) + 1;
	if (text + provider_sz + name_sz >= end)
		return false;
	args_sz = strlen(text + provider_sz + name_sz) + 1;
	if (text + provider_sz + name_sz + args_sz != end)
		return false;
	snprintf(site->provider, sizeof(site->provider), "%s", text);
	snprintf(site->name, sizeof(site->name), "%s", text + provider_sz);
	snprintf(site->args, sizeof(site->args), "%s", text + provider_sz + name_sz);
	sites->cnt++;
	return true;
}

static bool take_notes(struct sites *sites, Elf_Data *data)
{
	size_t off = 0, name_off, desc_off;
	GElf_Nhdr note;

	while ((off = gelf_getnote(data, off, &note, &name_off, &desc_off))) {
		if (note.n_type != 3 || note.n_namesz != sizeof("stapsdt") ||
		    strcmp((char *)data->d_buf + name_off, "stapsdt") ||
		    !take_note(sites, (char *)data->d_buf + desc_off, note.n_descsz))
			return false;
	}
	return true;
}

static void take_symbols(struct sites *sites, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name && strstr(name, "same") && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
			sites->same_sz = symbol.st_size;
	}
}

/* Sites whose code is not the one nop of its architecture. */
static size_t bad_code(const struct sites *sites, Elf *elf, int fd)
{
	size_t bad_cnt = 0, header_cnt = 0;

	elf_getphdrnum(elf, &header_cnt);
	for (size_t i = 0; i < sites->cnt; i++) {
		uint64_t addr = sites->list[i].addr;
		unsigned char code[sizeof(site_code)] = {0};
		GElf_Phdr header;

		for (int j = 0; j < (int)header_cnt && gelf_getphdr(elf, j, &header); j++)
			if (header.p_type == PT_LOAD && header.p_flags & PF_X && addr >= header.p_vaddr &&
			    addr - header.p_vaddr + sizeof(code) <= header.p_filesz &&
			    pread(fd, code, sizeof(code), (off_t)(header.p_offset + addr - header.p_vaddr)) !=
				    sizeof(code))
				memset(code, 0, sizeof(code));
		bad_cnt += memcmp(code, site_code, sizeof(code)) != 0;
	}
	return bad_cnt;
}

static bool sites_read(const char *path, struct sites *sites)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	size_t names = 0;
	bool good = true;
	Elf *elf;

	memset(sites, 0, sizeof(*sites));
	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	good = elf && !elf_getshdrstrndx(elf, &names);
	while (good && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		good = gelf_getshdr(section, &header) != NULL;
		name = good ? elf_strptr(elf, names, header.sh_name) : NULL;
		if (name && !strcmp(name, ".stapsdt.base"))
			sites->base_addr = header.sh_addr;
		else if (name && !strcmp(name, ".note.stapsdt"))
			good = !(header.sh_flags & SHF_ALLOC) && take_notes(sites, elf_getdata(section, NULL));
		else if (header.sh_type == SHT_SYMTAB)
			take_symbols(sites, elf, section, &header);
	}
	if (good)
		sites->bad_code_cnt = bad_code(sites, elf, fd);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return good;
}

/* The tests are run from the top of the source tree. */
static bool compile(const char *compiler, const char *flags, char *path, size_t path_sz)
{
	char command[1024];

	snprintf(path, path_sz, "%s/program", directory);
	snprintf(command, sizeof(command), "%s -Wall -Wextra -Werror -pedantic -Iinclude %s -o %s %s/source.c",
		 compiler, flags, path, directory);
	return !system(command);
}

static size_t sites_named(const struct sites *sites, const char *name)
{
	size_t cnt = 0;

	for (size_t i = 0; i < sites->cnt; i++)
		cnt += !strcmp(sites->list[i].name, name);
	return cnt;
}

static void check_sites(const struct sites *sites)
{
	CU_ASSERT_EQUAL(sites->cnt, SITE_CNT);
	CU_ASSERT_EQUAL(sites_named(sites, "begin"), 3);
	CU_ASSERT_EQUAL(sites_named(sites, "end"), 2);
	CU_ASSERT_EQUAL(sites_named(sites, "work"), 2);
	CU_ASSERT_EQUAL(sites->bad_code_cnt, 0);
	CU_ASSERT_NOT_EQUAL(sites->base_addr, 0);
	for (size_t i = 0; i < sites->cnt; i++) {
		const struct site *site = &sites->list[i];

		CU_ASSERT_STRING_EQUAL(site->provider, "whylate");
		CU_ASSERT_EQUAL(site->base, sites->base_addr);
		CU_ASSERT_EQUAL(site->semaphore, 0);
		/* A register or a constant: nothing to be fetched from memory. */
		CU_ASSERT(!strncmp(site->args, "8@", 2) && strlen(site->args) > 2 && !strpbrk(site->args, "([ "));
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(site->addr, sites->list[j].addr);
	}
}

static void setup(void)
{
	char path[64];
	FILE *file;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/source.c", directory);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(source, 1, sizeof(source) - 1, file), sizeof(source) - 1);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

static void teardown(void)
{
	static const char *const names[] = {"source.c", "program"};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	CU_ASSERT_EQUAL(rmdir(directory), 0);
	memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
}

static void every_site_has_its_note(void)
{
	static const char *const compilers[] = {"gcc -std=c99", "g++ -x c++ -std=c++11"};
	static const char *const kinds[] = {"-fPIE -pie", "-fno-pie -no-pie", "-fPIC -shared"};

	setup();
	for (int i = 0; i < 2 * 4 * 3; i++) {
		char flags[64], path[64];
		struct sites sites;

		snprintf(flags, sizeof(flags), "-O%d %s", i / 2 % 4, kinds[i / 8]);
		if (!compile(compilers[i % 2], flags, path, sizeof(path)) || !sites_read(path, &sites)) {
			fprintf(stderr, "%s %s: no readable program\n", compilers[i % 2], flags);
			CU_FAIL("a program with markers");
			continue;
		}
		check_sites(&sites);
	}
	teardown();
}

static void notes_follow_what_the_linker_moves(void)
{
	static const char *const flags[] = {"-O2 -flto", "-O2 -ffunction-sections -Wl,--gc-sections"};

	setup();
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct sites sites;
		char path[64];

		CU_ASSERT_FATAL(compile("gcc", flags[i], path, sizeof(path)));
		CU_ASSERT_FATAL(sites_read(path, &sites));
		check_sites(&sites);
	}
	teardown();
}

/* A key that is in a register already costs the nop and nothing else. */
static void a_marker_costs_one_nop(void)
{
	struct sites with, without;
	char path[64];

	setup();
	CU_ASSERT_FATAL(compile("gcc", "-O2", path, sizeof(path)));
	CU_ASSERT(sites_read(path, &with));
	CU_ASSERT_FATAL(compile("gcc", "-O2 -DWITHOUT", path, sizeof(path)));
	CU_ASSERT(sites_read(path, &without));
	CU_ASSERT_EQUAL(without.cnt, 0);
	CU_ASSERT(without.same_sz > 0);
	CU_ASSERT_EQUAL(with.same_sz, without.same_sz + sizeof(site_code));
	teardown();
}

static const struct unit_test tests[] = {
	{"every site has its note", every_site_has_its_note},
	{"notes follow what the linker moves", notes_follow_what_the_linker_moves},
	{"a marker costs one nop", a_marker_costs_one_nop},
};

int suite_annotate(void)
{
	return unit_suite("annotate", tests, sizeof(tests) / sizeof(tests[0]));
}
