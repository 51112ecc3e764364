// SPDX-License-Identifier: GPL-2.0-or-later
#include "elf_fixture.h"
#include "target/elf_file.h"
#include "unit.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- synthetic files -------------------------------------------------------------------------------------------- */

static struct elf_file *open_bytes(const void *bytes, size_t sz)
{
	struct elf_file *file;
	char path[64];
	int fd = elf_make_file(bytes, sz, path), saved;

	file = elf_file__open(path);
	saved = errno;
	close(fd);
	errno = saved;
	return file;
}

static void expect_refused(const struct made_elf *made, int err)
{
	struct elf_file *file = open_bytes(made->bytes, made->sz);

	CU_ASSERT_PTR_NULL(file);
	CU_ASSERT_EQUAL(errno, err);
	elf_file__free(file);
}

/* Whatever was opened keeps its promises. */
static void check_promises(const struct elf_file *file, uint64_t file_sz)
{
	const struct elf_function *functions;
	size_t cnt = elf_file__functions(file, &functions);
	bool holds = true;

	for (size_t i = 0; i < cnt; i++)
		if ((i && strcmp(functions[i - 1].name, functions[i].name) >= 0) || functions[i].file_off >= file_sz ||
		    functions[i].size > file_sz - functions[i].file_off || !functions[i].name[0] ||
		    elf_file__find(file, functions[i].name) != &functions[i])
			holds = false;
	CU_ASSERT(holds);
	CU_ASSERT(strlen(elf_file__build_id(file)) % 2 == 0);
	elf_file__is_go(file);
}

/* --- real files ------------------------------------------------------------------------------------------------- */

static const char *libc_path(void)
{
	static char path[4096];
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	void *function = libc ? dlsym(libc, "gnu_get_libc_version") : NULL;
	Dl_info symbol;

	CU_ASSERT_FATAL(function && dladdr(function, &symbol));
	CU_ASSERT_PTR_NOT_NULL_FATAL(realpath(symbol.dli_fname, path));
	dlclose(libc);
	return path;
}

static void this_program_s_functions_are_where_it_runs_them(void)
{
	struct elf_file *file = elf_file__open("/proc/self/exe");
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct elf_function *function;
	char code[16];
	struct stat stat;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fstat(fd, &stat);
	check_promises(file, stat.st_size);
	function = elf_file__find(file, "suite_elf_file");
	CU_ASSERT_PTR_NOT_NULL_FATAL(function);
	CU_ASSERT_EQUAL(pread(fd, code, sizeof(code), function->file_off), sizeof(code));
	CU_ASSERT_EQUAL(memcmp(code, (void *)suite_elf_file, sizeof(code)), 0);
	CU_ASSERT(function->size > 0);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "suite_elf_file"), ELF_SYMBOL_FUNCTION);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "environ_that_is_none"), ELF_SYMBOL_NONE);
	CU_ASSERT_FALSE(elf_file__is_go(file));
	close(fd);
	elf_file__free(file);
}

static void libc_gives_default_versions_and_kinds(void)
{
	struct elf_file *file = elf_file__open(libc_path());
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	const struct elf_function *function;
	const char *build_id;
	Dl_info symbol;
	void *addr;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	/* Two versions at two addresses; programs of today are bound to the newer. */
	addr = dlsym(libc, "pthread_cond_signal");
	function = elf_file__find(file, "pthread_cond_signal");
	CU_ASSERT_FATAL(function && addr && dladdr(addr, &symbol));
	CU_ASSERT_EQUAL(function->addr, (uint64_t)addr - (uint64_t)symbol.dli_fbase);
	CU_ASSERT_FALSE(function->ambiguous);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "environ"), ELF_SYMBOL_DATA);
#ifdef __x86_64__
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "memcpy"), ELF_SYMBOL_IFUNC);
#endif
	build_id = elf_file__build_id(file);
	for (size_t i = 0; build_id[i]; i++)
		CU_ASSERT(isxdigit((unsigned char)build_id[i]));
	dlclose(libc);
	elf_file__free(file);
}

/* Also of a file whose symbols are not read. */
static void build_ids_are_the_same(void)
{
	const char *const paths[] = {"/proc/self/exe", libc_path()};

	for (size_t i = 0; i < ARRAY_CNT(paths); i++) {
		struct elf_file *file = elf_file__open(paths[i]);
		char build_id[ELF_ROWS_BUILD_ID_HEX];

		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		elf_file_build_id(paths[i], build_id);
		CU_ASSERT_STRING_EQUAL(build_id, elf_file__build_id(file));
		CU_ASSERT(i == 0 || strlen(build_id) == 40);
		elf_file_build_id("/nonexistent/file", build_id);
		CU_ASSERT_STRING_EQUAL(build_id, "");
		elf_file__free(file);
	}
}

static void what_is_no_elf_file_is_refused(void)
{
	char dir[] = "/tmp/whylate-test-XXXXXX", fifo[64];

	CU_ASSERT_PTR_NULL(elf_file__open("/nonexistent/file"));
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_PTR_NULL(elf_file__open("/"));
	CU_ASSERT_EQUAL(errno, ENOEXEC);
	CU_ASSERT_PTR_NULL(elf_file__open("/proc/self/status"));
	CU_ASSERT_EQUAL(errno, ENOEXEC);
	CU_ASSERT_PTR_NULL(elf_file__open("/dev/zero"));
	CU_ASSERT_EQUAL(errno, ENOEXEC);
	CU_ASSERT_PTR_NULL(open_bytes("", 0));
	CU_ASSERT_EQUAL(errno, ENOEXEC);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
	CU_ASSERT_PTR_NULL(elf_file__open(fifo));
	CU_ASSERT_EQUAL(errno, ENOEXEC);
	unlink(fifo);
	rmdir(dir);
	elf_file__free(NULL);
}

static void one_function_is_kept_of_every_name(void)
{
	static const struct made_symbol symbols[] = {
		{"plain", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16},
		{"plain", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16},
		{"versioned@OLD", CODE_ADDR + 0x10, STT_FUNC, STB_GLOBAL, 16},
		{"versioned@@NEW", CODE_ADDR + 0x20, STT_FUNC, STB_GLOBAL, 16},
		{"twice", CODE_ADDR + 0x40, STT_FUNC, STB_LOCAL, 16},
		{"twice", CODE_ADDR + 0x30, STT_FUNC, STB_LOCAL, 16},
		{"global_wins", CODE_ADDR + 0x50, STT_FUNC, STB_LOCAL, 16},
		{"global_wins", CODE_ADDR + 0x60, STT_FUNC, STB_GLOBAL, 16},
		{"variable", CODE_ADDR, STT_OBJECT, STB_GLOBAL, 16},
		{"chosen", CODE_ADDR, STT_GNU_IFUNC, STB_GLOBAL, 16},
		{"both", CODE_ADDR, STT_OBJECT, STB_GLOBAL, 16},
		{"both", CODE_ADDR + 0x70, STT_FUNC, STB_LOCAL, 16},
		{"outside", 0x1000, STT_FUNC, STB_GLOBAL, 16},
		{"\033[2Jhostile", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16},
		{"@", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16},
		{"last", CODE_ADDR + CODE_SZ - 1, STT_FUNC, STB_WEAK, 16},
	};
	static const char *const names[] = {"both", "global_wins", "last", "plain", "twice", "versioned"};
	static const uint64_t offsets[] = {0x70, 0x60, CODE_SZ - 1, 0, 0x30, 0x20};
	const struct elf_function *functions;
	struct made_elf made;
	struct elf_file *file;

	elf_make(&made, symbols, ARRAY_CNT(symbols), ".text");
	file = open_bytes(made.bytes, made.sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	check_promises(file, made.sz);
	CU_ASSERT_EQUAL_FATAL(elf_file__functions(file, &functions), ARRAY_CNT(names));
	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		CU_ASSERT_STRING_EQUAL(functions[i].name, names[i]);
		CU_ASSERT_EQUAL(functions[i].addr, CODE_ADDR + offsets[i]);
		CU_ASSERT_EQUAL(functions[i].file_off, CODE_OFF + offsets[i]);
		CU_ASSERT_EQUAL(functions[i].ambiguous, !strcmp(names[i], "twice"));
	}
	CU_ASSERT_EQUAL(elf_file__find(file, "last")->size, 1);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "variable"), ELF_SYMBOL_DATA);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "chosen"), ELF_SYMBOL_IFUNC);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "both"), ELF_SYMBOL_FUNCTION);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "outside"), ELF_SYMBOL_NONE);
	CU_ASSERT_STRING_EQUAL(elf_file__build_id(file), "");
	elf_file__free(file);
}

static void go_programs_are_recognised(void)
{
	static const struct made_symbol main_symbol = {"main", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16};
	static const struct {
		const char *section;
		bool is_go;
	} cases[] = {
		{".go.buildinfo", true},
		{".gopclntab", true},
		{".data.rel.ro.gopclntab", true},
		{".note.go.buildid", true},
		{".note.gnu.build-id", false},
		{".go", false},
		{"", false},
	};
	struct made_elf made;

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct elf_file *file;

		elf_make(&made, &main_symbol, 1, cases[i].section);
		file = open_bytes(made.bytes, made.sz);
		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		CU_ASSERT_EQUAL(elf_file__is_go(file), cases[i].is_go);
		elf_file__free(file);
	}
}

static void notes_are_read(void)
{
	static const struct made_symbol main_symbol = {"main", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16};
	struct made_elf made;
	struct elf_file *file;
	struct {
		Elf64_Nhdr note;
		char name[4];
		uint8_t desc[4];
	} id = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {0xde, 0xad, 0x00, 0x0f}};

	elf_make(&made, &main_symbol, 1, "");
	made_segment(&made)->p_type = PT_NOTE;
	made_segment(&made)->p_align = 4;
	memcpy(made.bytes + CODE_OFF, &id, sizeof(id));
	file = open_bytes(made.bytes, made.sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_STRING_EQUAL(elf_file__build_id(file), "dead000f");
	elf_file__free(file);
	id.note.n_descsz = UINT32_MAX;
	memcpy(made.bytes + CODE_OFF, &id, sizeof(id));
	file = open_bytes(made.bytes, made.sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_STRING_EQUAL(elf_file__build_id(file), "");
	elf_file__free(file);
}

static void forged_headers_are_refused(void)
{
	static const struct made_symbol main_symbol = {"main", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16};
	struct made_elf whole, forged;

	elf_make(&whole, &main_symbol, 1, ".text");
#define FORGE(err, place, value)                 \
	do {                                     \
		struct made_elf *made = &forged; \
		forged = whole;                  \
		place = (value);                 \
		expect_refused(&forged, err);    \
	} while (0)
	FORGE(ENOTSUP, made_header(made)->e_ident[EI_CLASS], ELFCLASS32);
	FORGE(ENOTSUP, made_header(made)->e_ident[EI_DATA], ELFDATA2MSB);
	FORGE(ENOTSUP, made_header(made)->e_machine, EM_68K);
	FORGE(ENOEXEC, made_header(made)->e_type, ET_REL);
	FORGE(ENOEXEC, made_header(made)->e_ident[EI_MAG0], 0);
	FORGE(ENOEXEC, made_header(made)->e_ident[EI_VERSION], 9);
	FORGE(ENOEXEC, made_header(made)->e_shoff, UINT64_MAX - 8);
	FORGE(ENOEXEC, made_header(made)->e_shoff, made->sz);
	FORGE(ENOEXEC, made_header(made)->e_shnum, 0);
	FORGE(ENOEXEC, made_header(made)->e_shnum, 0xfeff);
	FORGE(ENOEXEC, made_header(made)->e_shentsize, 1);
	FORGE(ENOEXEC, made_header(made)->e_phoff, UINT64_MAX);
	FORGE(ENOEXEC, made_header(made)->e_phnum, PN_XNUM);
	FORGE(ENOEXEC, made_header(made)->e_phentsize, 0);
	FORGE(ENOEXEC, made_segment(made)->p_filesz, UINT64_MAX);
	FORGE(ENOEXEC, made_segment(made)->p_offset, UINT64_MAX);
	FORGE(ENOEXEC, made_segment(made)->p_vaddr, UINT64_MAX);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_size, UINT64_MAX);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_size, made->sz);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_offset, UINT64_MAX - 4);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_link, MADE_SYMTAB);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_link, UINT32_MAX);
	FORGE(ENOEXEC, made_section(made, MADE_SYMTAB)->sh_flags, SHF_COMPRESSED);
	FORGE(ENOEXEC, made_section(made, MADE_STRTAB)->sh_size, UINT64_MAX);
	FORGE(ENOEXEC, made_section(made, MADE_STRTAB)->sh_size, made->sz);
	FORGE(ENOEXEC, made_section(made, MADE_STRTAB)->sh_type, SHT_NOBITS);
#undef FORGE
	/* Strings without an end are no names. */
	made_section(&whole, MADE_STRTAB)->sh_size = 3;
	struct elf_file *file = open_bytes(whole.bytes, whole.sz);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_PTR_NULL(elf_file__find(file, "main"));
	elf_file__free(file);
}

/* --- damage ----------------------------------------------------------------------------------------------------- */

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

struct copy {
	int fd;
	char path[64];
	unsigned char *bytes;
	size_t sz;
};

static void copy_open(struct copy *copy, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	CU_ASSERT_FATAL(fd >= 0 && !fstat(fd, &stat));
	copy->sz = stat.st_size;
	copy->bytes = malloc(copy->sz);
	CU_ASSERT_EQUAL_FATAL(read(fd, copy->bytes, copy->sz), (ssize_t)copy->sz);
	close(fd);
	copy->fd = memfd_create("copy", MFD_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(write(copy->fd, copy->bytes, copy->sz), (ssize_t)copy->sz);
	snprintf(copy->path, sizeof(copy->path), "/proc/self/fd/%d", copy->fd);
}

static void copy_close(struct copy *copy)
{
	close(copy->fd);
	free(copy->bytes);
}

static bool copy_try(const struct copy *copy, size_t sz)
{
	struct elf_file *file = elf_file__open(copy->path);

	if (!file)
		return false;
	check_promises(file, sz);
	elf_file__free(file);
	return true;
}

static void a_truncated_library_is_refused_at_every_size(void)
{
	struct copy copy;
	unsigned opened = 0;

	copy_open(&copy, libc_path());
	CU_ASSERT(copy_try(&copy, copy.sz));
	for (size_t sz = copy.sz - 1; sz > 4096; sz -= sz / 40 + 1) {
		CU_ASSERT_EQUAL_FATAL(ftruncate(copy.fd, sz), 0);
		opened += copy_try(&copy, sz);
	}
	for (int sz = 1024; sz >= 0; sz--) {
		CU_ASSERT_EQUAL_FATAL(ftruncate(copy.fd, sz), 0);
		opened += copy_try(&copy, sz);
	}
	/* Its section headers are at its end. */
	CU_ASSERT_EQUAL(opened, 0);
	copy_close(&copy);
}

static void a_corrupted_library_does_no_harm(void)
{
	uint64_t random = 1;
	struct copy copy;
	Elf64_Ehdr header;

	copy_open(&copy, libc_path());
	memcpy(&header, copy.bytes, sizeof(header));
	for (int round = 0; round < 250; round++) {
		struct {
			size_t off;
			unsigned char old;
		} edits[24];
		const size_t shdrs_sz = header.e_shnum * sizeof(Elf64_Shdr);

		for (size_t i = 0; i < ARRAY_CNT(edits); i++) {
			unsigned char byte = random_next(&random);

			/* A third each in the headers, in the section headers and anywhere (mostly code and symbols).
			 */
			edits[i].off = i % 3 == 0   ? 16 + random_next(&random) % 1008
				       : i % 3 == 1 ? header.e_shoff + random_next(&random) % shdrs_sz
						    : random_next(&random) % copy.sz;
			/* Most rounds leave the ELF header alone: it would end there every time. */
			if (round % 8 && edits[i].off < sizeof(header))
				edits[i].off += sizeof(header);
			edits[i].old = copy.bytes[edits[i].off];
			if ((size_t)round % ARRAY_CNT(edits) < i)
				byte = edits[i].old;
			CU_ASSERT_EQUAL_FATAL(pwrite(copy.fd, &byte, 1, edits[i].off), 1);
		}
		copy_try(&copy, copy.sz);
		for (size_t i = 0; i < ARRAY_CNT(edits); i++)
			CU_ASSERT_EQUAL_FATAL(pwrite(copy.fd, &copy.bytes[edits[i].off], 1, edits[i].off), 1);
	}
	CU_ASSERT(copy_try(&copy, copy.sz));
	copy_close(&copy);
}

/* By the path under which the loader found it. */
static struct elf_file *library_open(const char *name)
{
	void *handle = dlopen(name, RTLD_LAZY);
	struct link_map *map = NULL;

	CU_ASSERT_FATAL(handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map));
	return elf_file__open(map->l_name);
}

static void exceptions_are_recognised(void)
{
	struct elf_file *cxx = library_open("libstdc++.so.6"), *c = library_open("libz.so.1");

	CU_ASSERT_PTR_NOT_NULL_FATAL(cxx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT(elf_file__unwinds(cxx));
	CU_ASSERT(!elf_file__unwinds(c));
	elf_file__free(cxx);
	elf_file__free(c);
}

int suite_elf_file(void)
{
	static const struct unit_test tests[] = {
		{"this program's functions are where it runs them", this_program_s_functions_are_where_it_runs_them},
		{"libc gives default versions and kinds", libc_gives_default_versions_and_kinds},
		{"build ids are the same", build_ids_are_the_same},
		{"what is no ELF file is refused", what_is_no_elf_file_is_refused},
		{"one function is kept of every name", one_function_is_kept_of_every_name},
		{"Go programs are recognised", go_programs_are_recognised},
		{"exceptions are recognised", exceptions_are_recognised},
		{"notes are read", notes_are_read},
		{"forged headers are refused", forged_headers_are_refused},
		{"a truncated library is refused at every size", a_truncated_library_is_refused_at_every_size},
		{"a corrupted library does no harm", a_corrupted_library_does_no_harm},
	};

	return unit_suite("elf_file", tests, sizeof(tests) / sizeof(tests[0]));
}
