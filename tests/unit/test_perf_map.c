// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of code that JIT compilers made: which ranges hold when, and the files that say so. */
#include "base/random.h"
#include "target/code_map.h"
#include "target/jitdump.h"
#include "target/perf_map.h"
#include "target/proc_file.h"
#include "target/runtime.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- ranges ------------------------------------------------------------------------------------------------------- */

struct told {
	struct code_range range;
	uint64_t ts;
	int batch;
};

/* What code_map__find() says in words. */
static uint64_t find_by_force(const struct told *told, size_t cnt, uint64_t addr, uint64_t ts)
{
	for (size_t i = cnt; i-- > 0;)
		if (told[i].ts <= ts && addr >= told[i].range.start && addr < told[i].range.end)
			return told[i].range.tag;
	for (size_t i = 0; i < cnt; i++) {
		if (addr < told[i].range.start || addr >= told[i].range.end)
			continue;
		for (size_t later = i; later < cnt && told[later].batch == told[i].batch; later++)
			if (addr >= told[later].range.start && addr < told[later].range.end)
				i = later;
		return told[i].range.tag;
	}
	return CODE_MAP_NONE;
}

#define SPACE 200

static void one_random_history(uint64_t *seed)
{
	struct code_map *map = code_map__new();
	struct told told[400];
	uint64_t ts = 1;
	size_t cnt = 0;
	int batches = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(map);
	while (cnt + 16 < ARRAY_CNT(told)) {
		struct code_range batch[16];
		size_t batch_cnt = random_next(seed) % ARRAY_CNT(batch);

		ts += random_next(seed) % 3;
		batches++;
		for (size_t i = 0; i < batch_cnt; i++) {
			uint64_t start = 1 + random_next(seed) % SPACE, end = start + 1 + random_next(seed) % 40;

			batch[i] = (struct code_range){start, end, cnt};
			told[cnt] = (struct told){batch[i], ts, batches};
			cnt++;
		}
		CU_ASSERT_EQUAL_FATAL(code_map__add(map, batch, batch_cnt, ts), 0);
		for (int i = 0; i < 40; i++) {
			uint64_t addr = random_next(seed) % (SPACE + 50), at = random_next(seed) % (ts + 3);

			CU_ASSERT_EQUAL_FATAL(code_map__find(map, addr, at), find_by_force(told, cnt, addr, at));
		}
	}
	code_map__clear(map);
	CU_ASSERT_EQUAL(code_map__find(map, SPACE / 2, ts), CODE_MAP_NONE);
	code_map__free(map);
}

static void ranges_hold_as_brute_force_finds(void)
{
	uint64_t seed = 1;

	for (int i = 0; i < 300; i++)
		one_random_history(&seed);
	code_map__free(NULL);
}

static void too_many_ranges_leave_those_that_there_are(void)
{
	size_t cnt = CODE_MAP_PIECES_MAX;
	struct code_range *ranges = calloc(cnt, sizeof(*ranges)), one = {1, 2, 7};
	struct code_map *map = code_map__new();

	CU_ASSERT_FATAL(ranges && map);
	CU_ASSERT_EQUAL(code_map__add(map, &one, 1, 1), 0);
	for (size_t i = 0; i < cnt; i++)
		ranges[i] = (struct code_range){16 * (i + 1), 16 * (i + 1) + 8, i};
	CU_ASSERT_EQUAL(code_map__add(map, ranges, cnt, 2), -ENOSPC);
	CU_ASSERT_EQUAL(code_map__find(map, 1, 2), 7);
	CU_ASSERT_EQUAL(code_map__find(map, 16, 2), CODE_MAP_NONE);
	CU_ASSERT_EQUAL(code_map__add(map, ranges, cnt - 1, 2), 0);
	CU_ASSERT_EQUAL(code_map__cnt(map), CODE_MAP_PIECES_MAX);
	code_map__free(map);
	free(ranges);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void lines_are_parsed(void)
{
	static const struct {
		const char *line;
		uint64_t start, sz;
		const char *name; /* NULL: no sense */
	} lines[] = {
		{"7f00 20 JS:*f /a.js:1:2", 0x7f00, 0x20, "JS:*f /a.js:1:2"},
		{"0x00007f3c 0x20  java.lang.String x.y()", 0x7f3c, 0x20, "java.lang.String x.y()"},
		{"ABC 1 x\r", 0xabc, 1, "x"},
		{"7f00 0 nothing", 0, 0, NULL},
		{"0 20 null", 0, 0, NULL},
		{"ffffffffffffffff 20 wraps", 0, 0, NULL},
		{"fffffffffffffffff 20 too_long", 0, 0, NULL},
		{"7f00 20", 0, 0, NULL},
		{"7f00 20 ", 0, 0, NULL},
		{"7f00", 0, 0, NULL},
		{"", 0, 0, NULL},
		{"x 20 y", 0, 0, NULL},
		{"7g 20 y", 0, 0, NULL},
		{"-7 20 y", 0, 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_CNT(lines); i++) {
		size_t len = strlen(lines[i].line), name_len;
		char *exact = malloc(len + 1);
		const char *name;
		uint64_t start, sz;

		/* Nothing behind it is read. */
		CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
		exact = realloc(exact, len ? len : 1);
		memcpy(exact, lines[i].line, len);
		CU_ASSERT_EQUAL(perf_map_parse(exact, len, &start, &sz, &name, &name_len), lines[i].name != NULL);
		if (lines[i].name) {
			CU_ASSERT_EQUAL(start, lines[i].start);
			CU_ASSERT_EQUAL(sz, lines[i].sz);
			CU_ASSERT_EQUAL_FATAL(name_len, strlen(lines[i].name));
			CU_ASSERT_EQUAL(memcmp(name, lines[i].name, name_len), 0);
		}
		free(exact);
	}
}

static void names_are_shown_as_people_write_them(void)
{
	static const char *const names[][2] = {
		{"JS:*buildReport /srv/app.js:12:20", "buildReport (app.js:12)"},
		{"JS:~buildReport /srv/app.js:12:20", "buildReport (app.js:12)"},
		{"JS:buildReport app.js:12", "buildReport (app.js:12)"},
		{"JS:^ /srv/app.js:3:1", "(anonymous) (app.js:3)"},
		{"JS:*run node:internal/timers:520:3", "run (timers:520)"},
		{"JS:~Weird", "JS:~Weird"},
		{"JS:*", "JS:*"},
		{"py::build:/srv/app.py", "build (app.py)"},
		{"py::<module>:<string>", "<module> (<string>)"},
		{"py::", "py::"},
		{"void com.foo.Bar.baz(int)", "void com.foo.Bar.baz(int)"},
		{"?guess", "guess"},
		{"?", "?"},
		{"bad\033[2Jname", "bad?[2Jname"},
	};

	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		char shown[64], tight[4];

		perf_map_shown(names[i][0], strlen(names[i][0]), shown, sizeof(shown));
		CU_ASSERT_STRING_EQUAL(shown, names[i][1]);
		perf_map_shown(names[i][0], strlen(names[i][0]), tight, sizeof(tight));
		CU_ASSERT_EQUAL(strlen(tight), strlen(names[i][1]) < 3 ? strlen(names[i][1]) : 3);
		CU_ASSERT_EQUAL(strncmp(tight, names[i][1], 3), 0);
	}
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* What stands for /proc and for the root of process 77, which is number 5 in its own namespace. */
struct place {
	char dir[64], map[128];
	uint64_t ts;
	struct perf_map *perf_map;
};

static void write_text(const char *path, const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

static void place_init(struct place *place)
{
	char path[128], status[128];

	*place = (struct place){.dir = "/tmp/whylate-perf-map-XXXXXX", .ts = 1};
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(place->dir));
	snprintf(path, sizeof(path), "%s/77", place->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/77/root", place->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/77/root/tmp", place->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/77/status", place->dir);
	snprintf(status, sizeof(status), "Name:\tx\nUid:\t%u\t%u\t0\t0\nNSpid:\t77\t5\nKthread:\t0\n", geteuid(),
		 geteuid());
	write_text(path, "w", status);
	snprintf(place->map, sizeof(place->map), "%s/77/root/tmp/perf-5.map", place->dir);
	proc_set_root(place->dir);
	place->perf_map = perf_map__new(77);
	CU_ASSERT_PTR_NOT_NULL_FATAL(place->perf_map);
}

static void place_free(struct place *place)
{
	char command[96];

	perf_map__free(place->perf_map);
	proc_set_root(NULL);
	snprintf(command, sizeof(command), "rm -rf %s", place->dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Long after the last look. */
static void look(struct place *place)
{
	place->ts += 2000000000ULL;
	CU_ASSERT_EQUAL(perf_map__refresh(place->perf_map, place->ts), 0);
}

static void is_named(struct place *place, uint64_t addr, uint64_t ts, const char *expected)
{
	const char *name = perf_map__find(place->perf_map, addr, ts);

	CU_ASSERT_EQUAL_FATAL(name != NULL, expected != NULL);
	if (expected)
		CU_ASSERT_STRING_EQUAL(name, expected);
}

static void a_map_is_read_as_it_grows(void)
{
	struct place place;
	uint64_t before;

	place_init(&place);
	look(&place);
	CU_ASSERT_FALSE(perf_map__is_there(place.perf_map));
	is_named(&place, 0x1000, place.ts, NULL);
	write_text(place.map, "w", "1000 10 first\nnonsense\n2000 10 sec");
	look(&place);
	before = place.ts;
	CU_ASSERT_TRUE(perf_map__is_there(place.perf_map));
	is_named(&place, 0x100f, place.ts, "first");
	is_named(&place, 0x1010, place.ts, NULL);
	/* A line is taken when it is whole. */
	is_named(&place, 0x2000, place.ts, NULL);
	write_text(place.map, "a", "ond\n1008 10 moved here\n");
	look(&place);
	is_named(&place, 0x2000, place.ts, "second");
	is_named(&place, 0x1007, place.ts, "first");
	is_named(&place, 0x1008, place.ts, "moved here");
	is_named(&place, 0x1008, before, "first");
	is_named(&place, 0x1011, before, "moved here");
	/* Written anew, longer than before and shorter. */
	write_text(place.map, "w", "3000 10 quite another beginning of the file, and a long one\n4000 10 more of it\n");
	look(&place);
	is_named(&place, 0x1000, place.ts, NULL);
	is_named(&place, 0x4000, place.ts, "more of it");
	write_text(place.map, "w", "5000 10 short\n");
	look(&place);
	is_named(&place, 0x4000, place.ts, NULL);
	is_named(&place, 0x5000, place.ts, "short");
	/* Another file of that name. */
	unlink(place.map);
	write_text(place.map, "w", "6000 10 other\n");
	look(&place);
	is_named(&place, 0x5000, place.ts, NULL);
	is_named(&place, 0x6000, place.ts, "other");
	place_free(&place);
}

/* A file of that size, of which most is a hole: lines at its beginning, one near its end and one beyond what is read.
 */
static void write_huge(const char *path, unsigned int line_cnt)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (unsigned int i = 0; i < line_cnt; i++)
		fprintf(file, "%x 10 LazyCompile:~function_%u /srv/app/some/module.js:%u:1\n", 0x10000000 + i * 0x20, i,
			i);
	fseek(file, PERF_MAP_SZ_MAX - 64, SEEK_SET);
	fputs("\n1000 10 late\n", file);
	fseek(file, PERF_MAP_SZ_MAX + 64, SEEK_SET);
	fputs("\n2000 10 too late\n", file);
	fclose(file);
}

/* <sanitizer/allocator_interface.h>, which not every package of a compiler has. */
size_t __sanitizer_get_current_allocated_bytes(void);

#define HUGE_LINES 300000U
#define PART_SZ    (4U << 20)

/* Each look reads at most a part, and what is kept does not grow with the file. */
static void a_map_of_500_mb_is_read_a_part_at_a_time(void)
{
	struct place place;
	size_t before_sz, most_sz = 0;
	unsigned int look_cnt = 0;

	place_init(&place);
	write_huge(place.map, HUGE_LINES);
	before_sz = __sanitizer_get_current_allocated_bytes();
	while (look_cnt < 2 * PERF_MAP_SZ_MAX / PART_SZ && !perf_map__find(place.perf_map, 0x1000, place.ts)) {
		size_t sz;

		look(&place);
		look_cnt++;
		sz = __sanitizer_get_current_allocated_bytes() - before_sz;
		most_sz = sz > most_sz ? sz : most_sz;
	}
	CU_ASSERT(look_cnt >= PERF_MAP_SZ_MAX / PART_SZ && look_cnt <= PERF_MAP_SZ_MAX / PART_SZ + 2);
	CU_ASSERT(most_sz < 32 << 20);
	is_named(&place, 0x10000000, place.ts, "LazyCompile:~function_0 /srv/app/some/module.js:0:1");
	is_named(&place, 0x10000000 + (HUGE_LINES - 1) * 0x20, place.ts,
		 "LazyCompile:~function_299999 /srv/app/some/module.js:299999:1");
	look(&place);
	is_named(&place, 0x2000, place.ts, NULL);
	place_free(&place);
}

/* A record of a jitdump: of `id`, with three numbers and a name. */
static void write_record(FILE *file, uint32_t id, uint64_t from, uint64_t addr, uint64_t sz, const char *name)
{
	const uint64_t load[] = {0, 0, addr, sz, 0}, move[] = {0, 0, from, addr, sz, 0};
	const uint32_t body_sz = (uint32_t)(id ? sizeof(move) : sizeof(load) + strlen(name) + 1 + 8);
	const struct {
		uint32_t id, sz;
		uint64_t ts;
	} header = {id, (uint32_t)sizeof(header) + body_sz, 1};

	fwrite(&header, sizeof(header), 1, file);
	if (id) {
		fwrite(move, sizeof(move), 1, file);
		return;
	}
	fwrite(load, sizeof(load), 1, file);
	fwrite(name, strlen(name) + 1, 1, file);
	fwrite("thecode!", 8, 1, file);
}

static void a_jitdump_is_read_as_it_grows(void)
{
	const uint32_t header[10] = {0x4a695444, 1, 40, 62, 0, 5};
	char path[128], maps[256];
	struct place place;
	struct stat st;
	FILE *file;

	place_init(&place);
	snprintf(path, sizeof(path), "%s/77/root/tmp/jit-5.dump", place.dir);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	snprintf(maps, sizeof(maps), "7f0000000000-7f0000001000 r-xp 00000000 00:01 %lu /tmp/jit-5.dump\n", st.st_ino);
	snprintf(path, sizeof(path), "%s/77/maps", place.dir);
	write_text(path, "w", maps);
	fwrite(header, sizeof(header), 1, file);
	write_record(file, 0, 0, 0x1000, 0x10, "JS:*build /srv/app.js:3:12");
	write_record(file, 9, 0, 0x9000, 0x10, NULL);
	write_record(file, 0, 0, 0x2000, 0x10, "other");
	fflush(file);
	look(&place);
	CU_ASSERT_TRUE(perf_map__is_there(place.perf_map));
	is_named(&place, 0x100f, place.ts, "build (app.js:3)");
	is_named(&place, 0x2000, place.ts, "other");
	is_named(&place, 0x9000, place.ts, NULL);
	/* Moved: a record that is not whole waits. */
	write_record(file, 1, 0x1000, 0x5000, 0x10, NULL);
	fwrite("\0\0\0\0\xff\0\0", 7, 1, file);
	fflush(file);
	look(&place);
	is_named(&place, 0x5004, place.ts, "build (app.js:3)");
	CU_ASSERT_EQUAL(ftruncate(fileno(file), ftell(file) - 7), 0);
	fseek(file, 0, SEEK_END);
	write_record(file, 0, 0, 0x6000, 0x10, "third");
	fflush(file);
	look(&place);
	is_named(&place, 0x6000, place.ts, "third");
	fclose(file);
	place_free(&place);
}

static void what_is_no_jitdump_has_no_names(void)
{
	char bytes[200] = {0};
	struct jitdump_record record;
	const uint32_t sizes[] = {0, 15, 16, 20, 56, 200, UINT32_MAX};

	CU_ASSERT_EQUAL(jitdump_begin(bytes, sizeof(bytes)), 0);
	memcpy(bytes, "DTiJ", 4);
	CU_ASSERT_EQUAL(jitdump_begin(bytes, sizeof(bytes)), 0);
	for (size_t i = 0; i < ARRAY_CNT(sizes); i++)
		for (uint32_t id = 0; id < 3; id++)
			for (size_t len = 0; len <= sizeof(bytes); len++) {
				memset(bytes, 0xff, sizeof(bytes));
				memcpy(bytes, &id, sizeof(id));
				memcpy(bytes + 4, &sizes[i], sizeof(sizes[i]));
				if (jitdump_parse(bytes, len, &record))
					CU_ASSERT_EQUAL(record.kind, JITDUMP_OTHER);
			}
}

/* Lines beyond all buffers, and without an end. */
static void long_lines_are_passed_over(void)
{
	size_t sz = 300000;
	char *line = malloc(sz + 32);
	struct place place;

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	place_init(&place);
	memset(line, 'x', sz);
	memcpy(line, "1000 10 ", 8);
	memcpy(line + sz, "\n2000 10 after\n", 16);
	write_text(place.map, "w", line);
	look(&place);
	is_named(&place, 0x2000, place.ts, "after");
	CU_ASSERT_PTR_NOT_NULL(perf_map__find(place.perf_map, 0x1000, place.ts));
	line[sz] = '\0';
	write_text(place.map, "w", line);
	look(&place);
	is_named(&place, 0x2000, place.ts, NULL);
	place_free(&place);
	free(line);
}

static void what_is_no_file_of_the_process_is_not_read(void)
{
	char elsewhere[160], path[160];
	struct place place;

	place_init(&place);
	snprintf(elsewhere, sizeof(elsewhere), "%s/secret", place.dir);
	write_text(elsewhere, "w", "1000 10 secret\n");
	CU_ASSERT_EQUAL(symlink(elsewhere, place.map), 0);
	look(&place);
	CU_ASSERT_FALSE(perf_map__is_there(place.perf_map));
	unlink(place.map);
	/* Not even a look at a pipe may wait. */
	CU_ASSERT_EQUAL(mkfifo(place.map, 0600), 0);
	look(&place);
	CU_ASSERT_FALSE(perf_map__is_there(place.perf_map));
	unlink(place.map);
	CU_ASSERT_EQUAL(mkdir(place.map, 0700), 0);
	look(&place);
	CU_ASSERT_FALSE(perf_map__is_there(place.perf_map));
	rmdir(place.map);
	/* A directory that is a link leads where it would lead the process, below its root. */
	snprintf(path, sizeof(path), "%s/77/root/tmp", place.dir);
	rmdir(path);
	CU_ASSERT_EQUAL(symlink("/var", path), 0);
	snprintf(path, sizeof(path), "%s/77/root/var", place.dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/77/root/var/perf-5.map", place.dir);
	write_text(path, "w", "1000 10 below\n");
	look(&place);
	is_named(&place, 0x1000, place.ts, "below");
	/* Of a third user only where this one may give files away. */
	if (!chown(path, 12345, (gid_t)-1) && geteuid() == 0) {
		perf_map__free(place.perf_map);
		place.perf_map = perf_map__new(77);
		look(&place);
		CU_ASSERT_FALSE(perf_map__is_there(place.perf_map));
	}
	place_free(&place);
}

static void runtimes_are_recognised(void)
{
	static const struct {
		const char *path, *name;
	} paths[] = {
		{"/usr/bin/node", "node"},         {"/opt/nodejs", "node"},
		{"/usr/bin/nodelay", ""},          {"/usr/lib/jvm/lib/server/libjvm.so", "java"},
		{"/usr/bin/python3.11", "python"}, {"/usr/lib/libpython3.12.so.1.0", "python"},
		{"/usr/bin/pythonic", ""},         {"node", ""},
		{"/opt/node20 (deleted)", "node"},
	};

	for (size_t i = 0; i < ARRAY_CNT(paths); i++) {
		struct target_mapping mapping = {.start = 1, .end = 2, .exec = true, .path = paths[i].path};
		target_mappings mappings = {.items = &mapping, .cnt = 1};
		enum runtime runtime = runtime_of(&mappings, NULL);

		CU_ASSERT_STRING_EQUAL(runtime_name(runtime), paths[i].name);
		CU_ASSERT_EQUAL(runtime_advice(runtime, false)[0] != '\0', paths[i].name[0] != '\0');
	}
	/* Node.js adds to its map what it compiles, a virtual machine of Java does not. */
	CU_ASSERT_PTR_NOT_NULL(strstr(runtime_advice(RUNTIME_JAVA, true), "again"));
	CU_ASSERT_PTR_NULL(strstr(runtime_advice(RUNTIME_JAVA, false), "again"));
	CU_ASSERT_STRING_EQUAL(runtime_advice(RUNTIME_NODE, true), runtime_advice(RUNTIME_NODE, false));
}

int suite_perf_map(void)
{
	static const struct unit_test tests[] = {
		{"ranges hold as brute force finds", ranges_hold_as_brute_force_finds},
		{"too many ranges leave those that there are", too_many_ranges_leave_those_that_there_are},
		{"lines are parsed", lines_are_parsed},
		{"names are shown as people write them", names_are_shown_as_people_write_them},
		{"a map is read as it grows", a_map_is_read_as_it_grows},
		{"a map of 500 MB is read a part at a time", a_map_of_500_mb_is_read_a_part_at_a_time},
		{"a jitdump is read as it grows", a_jitdump_is_read_as_it_grows},
		{"what is no jitdump has no names", what_is_no_jitdump_has_no_names},
		{"long lines are passed over", long_lines_are_passed_over},
		{"what is no file of the process is not read", what_is_no_file_of_the_process_is_not_read},
		{"runtimes are recognised", runtimes_are_recognised},
	};

	return unit_suite("perf map", tests, sizeof(tests) / sizeof(tests[0]));
}
