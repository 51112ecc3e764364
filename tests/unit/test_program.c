// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/function_code.h"
#include "target/program.h"

#include "base/random.h"
#include "elf_fixture.h"
#include "probe/plan.h"
#include "said.h"
#include "target/debug_file.h"
#include "target/elf_image.h"
#include "target/target.h"
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <lzma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- this very process ----------------------------------------------------------------------------------------------
 */

static volatile int sink;

__attribute__((noinline, used)) static void program_leaf(void)
{
	sink++;
}

__attribute__((noinline, used)) static void program_middle(void)
{
	program_leaf();
	sink++;
	program_leaf();
	sink++;
}

__attribute__((noinline, used)) static void program_top(const char *text)
{
	program_middle();
	sink += strtol(text, NULL, 10);
}

static struct program *own_program(void)
{
	struct program *program = NULL;

	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &program), 0);
	return program;
}

static uint32_t find(struct program *program, const char *name)
{
	uint32_t id = program__function_find(program, 0, name);

	CU_ASSERT_NOT_EQUAL_FATAL(id, PROGRAM_NONE);
	return id;
}

static size_t edge_cnt(struct program *program, uint32_t caller, uint32_t callee, enum call_kind kind)
{
	const struct call_edge *edges;
	size_t cnt, found = 0;

	CU_ASSERT_EQUAL_FATAL(program__callees(program, caller, &edges, &cnt), 0);
	for (size_t i = 0; i < cnt; i++)
		found += edges[i].callee == callee && edges[i].kind == kind;
	return found;
}

static void functions_are_found_by_name_and_by_address(void)
{
	struct program *program = own_program();
	uint32_t id = find(program, "program_top"), module, first, cnt;
	const struct program_function *function = program__function(program, id);
	char code[16];

	CU_ASSERT_STRING_EQUAL(function->name, "program_top");
	CU_ASSERT_STRING_EQUAL(function->shown, "program_top");
	CU_ASSERT_EQUAL(function->source, FUNCTION_SYMTAB);
	CU_ASSERT_EQUAL(program__function_at_runtime(program, (uint64_t)program_top, &module), id);
	CU_ASSERT_EQUAL(module, 0);
	CU_ASSERT_EQUAL(program__function_at_runtime(program, (uint64_t)program_top + function->size - 1, NULL), id);
	CU_ASSERT_EQUAL(program__function_at(program, 0, function->addr), id);
	CU_ASSERT_EQUAL(program__function_at_runtime(program, (uint64_t)&sink, &module), PROGRAM_NONE);
	CU_ASSERT_EQUAL(module, PROGRAM_NONE);
	CU_ASSERT_EQUAL(program__read_code(program, 0, function->addr, code, sizeof(code)), sizeof(code));
	CU_ASSERT_EQUAL(memcmp(code, (void *)program_top, sizeof(code)), 0);
	CU_ASSERT_EQUAL(program__function_find(program, 0, "no_such_function_at_all"), PROGRAM_NONE);
	CU_ASSERT_PTR_NULL(program__function(program, PROGRAM_NONE));
	CU_ASSERT_EQUAL_FATAL(program__module_functions(program, 0, &first, &cnt), 0);
	CU_ASSERT(id >= first && id - first < cnt && cnt > 500);
	for (uint32_t i = first; i + 1 < first + cnt; i++)
		CU_ASSERT(program__function(program, i)->addr < program__function(program, i + 1)->addr);
	program__free(program);
}

static void modules_are_found_as_people_name_them(void)
{
	static const char *const names[] = {"libc.so.6", "libc.so", "libc"};
	struct program *program = own_program();
	uint32_t libc = program__module_find(program, "libc.so.6"), module;

	CU_ASSERT_NOT_EQUAL_FATAL(libc, PROGRAM_NONE);
	for (size_t i = 0; i < ARRAY_CNT(names); i++)
		CU_ASSERT_EQUAL(program__module_find(program, names[i]), libc);
	CU_ASSERT_EQUAL(program__module_find(program, program__module(program, libc)->path), libc);
	CU_ASSERT_EQUAL(program__module_find(program, "libnothing"), PROGRAM_NONE);
	CU_ASSERT_STRING_EQUAL(program__module(program, 0)->name, "run");
	CU_ASSERT(!program__module(program, libc)->is_go && !program__module(program, libc)->gone);
	CU_ASSERT_EQUAL(strlen(program__module(program, libc)->build_id), 40);
	CU_ASSERT_PTR_NULL(program__module(program, 100000));
	/* Where the loader put it. */
	CU_ASSERT_NOT_EQUAL(program__function_at_runtime(program, (uint64_t)dlsym(RTLD_DEFAULT, "getppid"), &module),
			    PROGRAM_NONE);
	CU_ASSERT_EQUAL(module, libc);
	program__free(program);
}

static void calls_are_edges(void)
{
	struct program *program = own_program();
	uint32_t top = find(program, "program_top"), middle = find(program, "program_middle");
	uint32_t leaf = find(program, "program_leaf"), strtol_id, libc = program__module_find(program, "libc");
	const struct program_name *names;
	const struct call_edge *edges;
	size_t cnt, before, name_cnt;
	int64_t depth = -1;

	CU_ASSERT_EQUAL(edge_cnt(program, top, middle, CALL_DIRECT), 1);
	/* Two call sites are two edges. */
	CU_ASSERT_EQUAL(edge_cnt(program, middle, leaf, CALL_DIRECT) + edge_cnt(program, middle, leaf, CALL_TAIL), 2);
	/* Through the linkage table into the library; with a sanitizer, perhaps into that. */
	CU_ASSERT_EQUAL_FATAL(program__callees(program, top, &edges, &cnt), 0);
	before = 0;
	for (size_t i = 0; i < cnt; i++)
		before += edges[i].kind == CALL_PLT &&
			  strstr(program__function(program, edges[i].callee)->name, "strtol");
	CU_ASSERT_EQUAL(before, 1);
	CU_ASSERT(program__height(program, top) > program__height(program, middle));
	CU_ASSERT(program__height(program, middle) > program__height(program, leaf));
	strtol_id = program__function_find(program, libc, "getppid");
	CU_ASSERT_EQUAL(program__add_dynamic_edge(program, leaf, strtol_id, 0x1234), 0);
	CU_ASSERT_EQUAL(program__add_dynamic_edge(program, leaf, strtol_id, 0x1234), 0);
	CU_ASSERT_EQUAL(edge_cnt(program, leaf, strtol_id, CALL_DYNAMIC), 1);
	CU_ASSERT(program__add_dynamic_edge(program, leaf, PROGRAM_NONE, 0) < 0);
	CU_ASSERT(program__callees(program, PROGRAM_NONE, &edges, &cnt) < 0);
	/* What was forgotten is found again, and what only sampling knows is not forgotten. */
	before = program__height(program, top);
	program__forget_callees(program);
	program__forget_tables(program);
	CU_ASSERT_EQUAL(program__height(program, top), before);
	CU_ASSERT_EQUAL(edge_cnt(program, top, middle, CALL_DIRECT), 1);
	CU_ASSERT_EQUAL(edge_cnt(program, leaf, strtol_id, CALL_DYNAMIC), 1);
	CU_ASSERT_EQUAL(program__module_names(program, libc, &names, &name_cnt), 0);
	CU_ASSERT(name_cnt > 1000);
	CU_ASSERT_EQUAL(program__depth(program, 0, program__function(program, top)->addr, &depth), 0);
	CU_ASSERT_EQUAL(depth, 0);
	/* A cycle counts once. */
	before = program__height(program, top);
	CU_ASSERT_EQUAL(program__add_dynamic_edge(program, leaf, top, 0), 0);
	CU_ASSERT_EQUAL(program__height(program, leaf), program__height(program, top));
	CU_ASSERT(program__height(program, top) < before);
	program__free(program);
}

/* That is not there yet; NULL. */
static void *load_library(void)
{
	static const char *const candidates[] = {"libanl.so.1", "libutil.so.1", "libBrokenLocale.so.1"};
	void *handle = NULL;

	for (size_t i = 0; i < ARRAY_CNT(candidates) && !handle; i++)
		handle = dlopen(candidates[i], RTLD_NOLOAD | RTLD_LAZY) ? NULL : dlopen(candidates[i], RTLD_LAZY);
	return handle;
}

static void libraries_come_and_go(void)
{
	struct program *program = own_program();
	uint32_t before = program__module_cnt(program), id = find(program, "program_top"), late = PROGRAM_NONE;
	void *handle;

	CU_ASSERT_EQUAL(program__refresh(program), 0);
	handle = load_library();
	CU_ASSERT_PTR_NOT_NULL_FATAL(handle);
	CU_ASSERT_EQUAL(program__refresh(program), 1);
	CU_ASSERT_EQUAL_FATAL(program__module_cnt(program), before + 1);
	CU_ASSERT(!program__module(program, before)->gone);
	/* The executable, and what was only loaded, are nobody's libraries. */
	CU_ASSERT(!program__is_linked(program, 0));
	CU_ASSERT(!program__is_linked(program, before));
	CU_ASSERT(program__is_linked(program, program__module_find(program, "libc.so.6")));
	CU_ASSERT(program__is_linked(program, program__module_find(program, "libelf")));
	CU_ASSERT(program__loads(program));
	late = program__function_at(program, before, 0);
	CU_ASSERT_EQUAL(late, PROGRAM_NONE);
	CU_ASSERT_EQUAL(program__function_find(program, 0, "program_top"), id);
	dlclose(handle);
	/* A library that the sanitizer keeps is still there. */
	if (program__refresh(program) == 1)
		CU_ASSERT(program__module(program, before)->gone);
	program__free(program);
}

/* Ends with its parent, at the latest. */
static pid_t start_loading_child(int pipe_ends[2])
{
	pid_t child = pipe(pipe_ends) ? -1 : fork();
	char byte = 'l';

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (load_library() && write(pipe_ends[1], &byte, 1) == 1)
		pause();
	_exit(1);
}

static void what_a_child_loads_is_learnt(void)
{
	struct program *program = own_program();
	uint32_t before = program__module_cnt(program);
	uint64_t own_kb = 0, child_kb = 0, again_kb = 0;
	int pipe_ends[2], status;
	char byte = 0;
	pid_t child;

	CU_ASSERT_EQUAL(program__learn_modules(program, getpid()), 0);
	CU_ASSERT_EQUAL(program__module_cnt(program), before);
	CU_ASSERT(!target_lib_kb(getpid(), &own_kb) && own_kb > 0);
	CU_ASSERT(!target_lib_kb(getpid(), &again_kb) && again_kb == own_kb);
	child = start_loading_child(pipe_ends);
	CU_ASSERT_FATAL(child > 0);
	close(pipe_ends[1]);
	CU_ASSERT_EQUAL_FATAL(read(pipe_ends[0], &byte, 1), 1);
	CU_ASSERT(!target_lib_kb(child, &child_kb) && child_kb > own_kb);
	CU_ASSERT_EQUAL(program__learn_modules(program, child), 0);
	CU_ASSERT_EQUAL_FATAL(program__module_cnt(program), before + 1);
	CU_ASSERT(program__module(program, before)->awaited);
	CU_ASSERT(!program__module(program, before)->gone);
	CU_ASSERT_EQUAL(program__learn_modules(program, child), 0);
	CU_ASSERT_EQUAL(program__module_cnt(program), before + 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	CU_ASSERT(program__learn_modules(program, child) < 0);
	CU_ASSERT(target_lib_kb(child, &child_kb) < 0);
	close(pipe_ends[0]);
	program__free(program);
}

/* --- names that were stripped off -----------------------------------------------------------------------------------
 */

static const struct made_symbol hidden[] = {
	{"_ZN4ring4pushEi", CODE_ADDR + 0x10, STT_FUNC, STB_LOCAL, 16},
	{"outer", CODE_ADDR + 0x20, STT_FUNC, STB_LOCAL, 16},
};

static void check_hidden(const char *path, const struct program_opts *opts, enum function_source source)
{
	struct program *program = NULL;
	uint32_t id;

	CU_ASSERT_EQUAL_FATAL(program__open_file(path, opts, &program), 0);
	id = program__function_find(program, 0, "_ZN4ring4pushEi");
	CU_ASSERT_NOT_EQUAL_FATAL(id, PROGRAM_NONE);
	CU_ASSERT_STRING_EQUAL(program__function(program, id)->shown, "ring::push(int)");
	CU_ASSERT_EQUAL(program__function(program, id)->source, source);
	CU_ASSERT_EQUAL(program__function(program, id)->addr, CODE_ADDR + 0x10);
	CU_ASSERT_EQUAL(program__function(program, id)->file_off, CODE_OFF + 0x10);
	program__free(program);
}

static void check_nothing_hidden(const char *path, const struct program_opts *opts)
{
	struct program *program = NULL;

	CU_ASSERT_EQUAL_FATAL(program__open_file(path, opts, &program), 0);
	CU_ASSERT_EQUAL(program__function_find(program, 0, "_ZN4ring4pushEi"), PROGRAM_NONE);
	program__free(program);
}

/* No .symtab: its section becomes one that nobody looks at. */
static void strip(struct made_elf *made)
{
	made_section(made, MADE_SYMTAB)->sh_type = SHT_PROGBITS;
}

static void compressed_names_are_unpacked(void)
{
	static struct made_elf inner, outer;
	uint8_t packed[8192];
	size_t packed_sz = 0;
	char path[64];
	int fd;

	elf_make(&inner, hidden, ARRAY_CNT(hidden), "");
	/* As in real ones, its segments lead nowhere. */
	made_segment(&inner)->p_filesz = UINT32_MAX;
	CU_ASSERT_EQUAL_FATAL(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, inner.bytes, inner.sz, packed,
						      &packed_sz, sizeof(packed)),
			      LZMA_OK);
	for (int damaged = 0; damaged < 3; damaged++) {
		elf_make(&outer, NULL, 0, ".gnu_debugdata");
		strip(&outer);
		elf_make_extra(&outer, packed, damaged == 1 ? packed_sz / 2 : packed_sz);
		if (damaged == 2)
			outer.bytes[made_section(&outer, MADE_EXTRA)->sh_offset + packed_sz / 2] ^= 0x55;
		fd = elf_make_file(outer.bytes, outer.sz, path);
		if (damaged)
			check_nothing_hidden(path, NULL);
		else
			check_hidden(path, NULL, FUNCTION_DEBUGDATA);
		close(fd);
	}
}

static void write_file(const char *path, const struct made_elf *made)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(made->bytes, 1, made->sz, file), made->sz);
	fclose(file);
}

static void debug_files_are_found_by_their_link(void)
{
	static struct made_elf stripped, debug;
	char dir[] = "/tmp/whylate-test-XXXXXX", path[64], debug_path[64], sub[64];
	uint8_t link[16] = "x.debug\0";
	const struct program_opts opts = {.debuginfo_dir = dir};
	uint32_t crc;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	elf_make(&debug, hidden, ARRAY_CNT(hidden), "");
	crc = crc32(0, debug.bytes, debug.sz);
	memcpy(link + 8, &crc, sizeof(crc));
	elf_make(&stripped, NULL, 0, ".gnu_debuglink");
	strip(&stripped);
	elf_make_extra(&stripped, link, 12);
	snprintf(path, sizeof(path), "%s/x", dir);
	snprintf(sub, sizeof(sub), "%s/.debug", dir);
	snprintf(debug_path, sizeof(debug_path), "%s/.debug/x.debug", dir);
	write_file(path, &stripped);
	check_nothing_hidden(path, NULL);
	CU_ASSERT_EQUAL(mkdir(sub, 0700), 0);
	write_file(debug_path, &debug);
	check_hidden(path, NULL, FUNCTION_DEBUGFILE);
	/* Of another build. */
	debug.bytes[CODE_OFF + 7] ^= 1;
	write_file(debug_path, &debug);
	check_nothing_hidden(path, NULL);
	debug.bytes[CODE_OFF + 7] ^= 1;
	unlink(debug_path);
	/* Where the user says. */
	snprintf(debug_path, sizeof(debug_path), "%s/x.debug", dir);
	write_file(debug_path, &debug);
	check_hidden(path, &opts, FUNCTION_DEBUGFILE);
	unlink(debug_path);
	unlink(path);
	rmdir(sub);
	rmdir(dir);
}

/* A link out of the directory, a device and a fifo: none of them is opened, which for a fifo would take for ever. */
static void debug_links_lead_nowhere_else(void)
{
	static struct made_elf stripped, debug;
	char dir[] = "/tmp/whylate-test-XXXXXX", other[] = "/tmp/whylate-test-XXXXXX", path[64], link_path[64], to[64];
	uint8_t link[16] = "x.debug\0";
	uint32_t crc;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(other));
	elf_make(&debug, hidden, ARRAY_CNT(hidden), "");
	crc = crc32(0, debug.bytes, debug.sz);
	memcpy(link + 8, &crc, sizeof(crc));
	elf_make(&stripped, NULL, 0, ".gnu_debuglink");
	strip(&stripped);
	elf_make_extra(&stripped, link, 12);
	snprintf(path, sizeof(path), "%s/x", dir);
	snprintf(link_path, sizeof(link_path), "%s/x.debug", dir);
	snprintf(to, sizeof(to), "%s/y", other);
	write_file(path, &stripped);
	write_file(to, &debug);
	CU_ASSERT_EQUAL(symlink(to, link_path), 0);
	check_nothing_hidden(path, NULL);
	unlink(link_path);
	/* Within the directory it may lead where it likes. */
	unlink(to);
	snprintf(to, sizeof(to), "%s/y", dir);
	write_file(to, &debug);
	CU_ASSERT_EQUAL(symlink("y", link_path), 0);
	check_hidden(path, NULL, FUNCTION_DEBUGFILE);
	unlink(link_path);
	unlink(to);
	CU_ASSERT_EQUAL(mkfifo(link_path, 0600), 0);
	check_nothing_hidden(path, NULL);
	unlink(link_path);
	unlink(path);
	rmdir(dir);
	rmdir(other);
}

/* As much as xz makes of so many zeros. */
static uint8_t *pack_zeros(uint64_t sz, size_t *packed_sz)
{
	static const uint8_t zeros[1 << 16];
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *packed = malloc(1 << 20);
	lzma_ret ret = LZMA_OK;

	CU_ASSERT_PTR_NOT_NULL_FATAL(packed);
	CU_ASSERT_EQUAL_FATAL(lzma_easy_encoder(&stream, 0, LZMA_CHECK_CRC32), LZMA_OK);
	stream.next_out = packed;
	stream.avail_out = 1 << 20;
	while (ret == LZMA_OK) {
		if (!stream.avail_in && sz) {
			stream.next_in = zeros;
			stream.avail_in = sz < sizeof(zeros) ? sz : sizeof(zeros);
			sz -= stream.avail_in;
		}
		ret = lzma_code(&stream, sz || stream.avail_in ? LZMA_RUN : LZMA_FINISH);
	}
	CU_ASSERT_EQUAL_FATAL(ret, LZMA_STREAM_END);
	*packed_sz = stream.total_out;
	lzma_end(&stream);
	return packed;
}

/* A small file that unpacks to 256 MiB: it is without symbols, one line says so, and the budget is the next one's. */
static void debug_data_has_a_budget(void)
{
	struct debug_budget budget = {0};
	struct debug_search search = {.path = "/usr/bin/bomb", .file = "", .root = "", .budget = &budget};
	static struct made_elf made;
	struct elf_file *of;
	size_t packed_sz;
	uint8_t *packed = pack_zeros(256 << 20, &packed_sz);
	char path[64];
	int fd;

	elf_make(&made, NULL, 0, ".gnu_debugdata");
	CU_ASSERT_FATAL(packed_sz < 100000);
	elf_make_extra(&made, packed, packed_sz);
	fd = elf_make_file(made.bytes, made.sz, path);
	of = elf_file__open(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(of);
	said_begin();
	CU_ASSERT_PTR_NULL(debug_data__open(fd, of, &search));
	CU_ASSERT_PTR_NULL(debug_data__open(fd, of, &search));
	CU_ASSERT(said_one_line(said_end(), "/usr/bin/bomb"));
	CU_ASSERT(budget.used <= DEBUG_BUDGET_TARGET + (1 << 20));
	debug_budget__return(&budget);
	CU_ASSERT_EQUAL(budget.used, 0);
	elf_file__free(of);
	close(fd);
	free(packed);
}

static void what_is_no_program_is_refused(void)
{
	struct program *program = NULL;
	struct made_elf made;
	char path[64];
	int fd;

	CU_ASSERT_EQUAL(program__open(4194303, NULL, &program), -ESRCH);
	CU_ASSERT_EQUAL(program__open_file("/nonexistent", NULL, &program), -ENOENT);
	CU_ASSERT_EQUAL(program__open_file("/etc/passwd", NULL, &program), -ENOEXEC);
	elf_make(&made, NULL, 0, "");
	made_header(&made)->e_ident[EI_CLASS] = ELFCLASS32;
	fd = elf_make_file(made.bytes, made.sz, path);
	CU_ASSERT_EQUAL(program__open_file(path, NULL, &program), -ENOTSUP);
	close(fd);
	CU_ASSERT_PTR_NULL(program);
}

/* --- damage ---------------------------------------------------------------------------------------------------------
 */

/* Whatever the file says: all questions are answered. */
static void ask_everything(const char *path)
{
	const struct plan_needs needs = {.args = 1, .exit = true};
	struct program *program = NULL;
	const struct call_edge *edges;
	uint32_t first, cnt;
	size_t edges_cnt;

	if (program__open_file(path, NULL, &program))
		return;
	if (!program__module_functions(program, 0, &first, &cnt))
		for (uint32_t i = 0; i < cnt; i += 1 + cnt / 40) {
			struct plan plan;

			CU_ASSERT(program__function(program, first + i)->shown[0]);
			program__callees(program, first + i, &edges, &edges_cnt);
			program__height(program, first + i);
			if (!plan_make(program, first + i, &needs, &plan))
				plan_free(&plan);
		}
	program__catches(program);
	program__switches_stacks(program);
	program__is_linked(program, 0);
	program__free(program);
}

static void a_damaged_library_does_no_harm(void)
{
	static const char *const sections[] = {".eh_frame", ".rela.dyn", ".rela.plt", ".text",
					       ".dynsym",   ".dynamic",  ".dynstr",   NULL};
	void *handle = dlopen("libz.so.1", RTLD_LAZY);
	struct link_map *map = NULL;
	struct elf_image *image;
	uint64_t random = 7;
	uint8_t *bytes;
	char path[64];
	struct stat stat_buf;
	int fd;

	CU_ASSERT_FATAL(handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map));
	image = elf_image__open(map->l_name);
	CU_ASSERT_FATAL(image && !stat(map->l_name, &stat_buf));
	bytes = elf_image__copy(image, 0, stat_buf.st_size, 1 << 24);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	fd = elf_make_file(bytes, stat_buf.st_size, path);
	ask_everything(path);
	for (int round = 0; round < 100; round++) {
		const char *name = sections[round % ARRAY_CNT(sections)];
		const struct elf_section *section = name ? elf_image__section(image, name) : NULL;
		uint64_t begin = section ? section->file_off : 16, sz = section ? section->size : 1000;

		for (int i = 0; i < 1 + round; i++) {
			uint8_t byte = random_next(&random);

			CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, begin + random_next(&random) % sz), 1);
		}
		ask_everything(path);
		CU_ASSERT_EQUAL(pwrite(fd, bytes, stat_buf.st_size, 0), stat_buf.st_size);
	}
	close(fd);
	free(bytes);
	elf_image__free(image);
	dlclose(handle);
}

int suite_program(void)
{
	static const struct unit_test tests[] = {
		{"functions are found by name and by address", functions_are_found_by_name_and_by_address},
		{"modules are found as people name them", modules_are_found_as_people_name_them},
		{"calls are edges", calls_are_edges},
		{"libraries come and go", libraries_come_and_go},
		{"what a child loads is learnt", what_a_child_loads_is_learnt},
		{"compressed names are unpacked", compressed_names_are_unpacked},
		{"debug files are found by their link", debug_files_are_found_by_their_link},
		{"debug links lead nowhere else", debug_links_lead_nowhere_else},
		{"debug data has a budget", debug_data_has_a_budget},
		{"what is no program is refused", what_is_no_program_is_refused},
		{"a damaged library does no harm", a_damaged_library_does_no_harm},
	};

	return unit_suite("program", tests, sizeof(tests) / sizeof(tests[0]));
}
