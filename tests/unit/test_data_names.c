// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/data_names.h"
#include "unit.h"

#include <whylate/record.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* More than what the last page of the file's own data has room for. */
#define LOCKS_SZ (256 << 10)

/* Not static, or they might have no symbols of their own. */
extern char locks_of_test[LOCKS_SZ];
char locks_of_test[LOCKS_SZ];
extern int filled_of_test;
int filled_of_test = 7;

/* By mappings that the caller has, and by those that are read. */
static void check_name(struct data_names *names, const void *addr, const char *end)
{
	target_mappings mappings = {0};
	char given[160] = "", read[160] = "";

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	CU_ASSERT_PTR_NOT_NULL(data_names__get(names, getpid(), &mappings, (uint64_t)addr, given, sizeof(given)));
	CU_ASSERT_PTR_NOT_NULL(data_names__get(names, getpid(), NULL, (uint64_t)addr, read, sizeof(read)));
	CU_ASSERT_STRING_EQUAL(given, read);
	if (strlen(given) < strlen(end) || strcmp(given + strlen(given) - strlen(end), end))
		fprintf(stderr, "\n%s, which does not end in %s\n", given, end);
	CU_ASSERT_FATAL(strlen(given) >= strlen(end));
	CU_ASSERT_STRING_EQUAL(given + strlen(given) - strlen(end), end);
	target_mappings_free(&mappings);
}

static void symbols_name_what_is_theirs(void)
{
	struct data_names *names = data_names__new();

	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	/* Twice: what was found is remembered. */
	for (int i = 0; i < 2; i++) {
		check_name(names, &filled_of_test, ":filled_of_test");
		check_name(names, locks_of_test, ":locks_of_test");
		check_name(names, locks_of_test + 40, ":locks_of_test+0x28");
		check_name(names, locks_of_test + LOCKS_SZ - 1, ":locks_of_test+0x3ffff");
	}
	/* More than is remembered. */
	for (int i = 0; i < 1000; i++)
		check_name(names, locks_of_test + i, i ? "" : ":locks_of_test");
	data_names__free(names);
}

static void what_is_no_files_has_the_name_of_its_mapping(void)
{
	struct data_names *names = data_names__new();
	char *anon = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[160];

	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	check_name(names, __builtin_frame_address(0), "[stack]");
	check_name(names, anon, "]");
	CU_ASSERT_PTR_NULL(data_names__get(names, getpid(), NULL, 16, name, sizeof(name)));
	/* A process that is gone. */
	CU_ASSERT_PTR_NULL(data_names__get(names, 1 << 22, NULL, (uint64_t)anon, name, sizeof(name)));
	munmap(anon, 4096);
	data_names__free(names);
	data_names__free(NULL);
}

static void name_is(struct data_names *names, const target_mappings *mappings, uint64_t addr, const char *expected)
{
	char name[160] = "";

	CU_ASSERT_PTR_NOT_NULL(data_names__get(names, getpid(), mappings, addr, name, sizeof(name)));
	if (strcmp(name, expected))
		fprintf(stderr, "\n%s, not %s\n", name, expected);
	CU_ASSERT_STRING_EQUAL(name, expected);
}

static uint64_t lock_of(int fd)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	return wl_file_lock(major(st.st_dev), minor(st.st_dev), st.st_ino);
}

/* An open file that ends in `name`, below a directory whose name is long. */
static int open_below(char *dir, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

static void a_lock_on_a_file_has_its_name(void)
{
	char dir[] = "/tmp/whylate-locked-XXXXXX", path[PATH_MAX], name[400], long_name[201];
	struct data_names *names = data_names__new();
	int fd, other, hostile;
	uint64_t object;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	memset(long_name, 'l', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	fd = open_below(dir, "a.lock");
	other = open_below(dir, long_name);
	hostile = open_below(dir, "\033[2J");
	snprintf(path, sizeof(path), "%s/a.lock", dir);
	name_is(names, NULL, lock_of(fd), path);
	/* The end of a long path tells more than its beginning. */
	CU_ASSERT_PTR_NOT_NULL(data_names__get(names, getpid(), NULL, lock_of(other), name, sizeof(name)));
	CU_ASSERT(!strncmp(name, "...lll", 6) && strlen(name) < 200);
	CU_ASSERT_PTR_NOT_NULL(data_names__get(names, getpid(), NULL, lock_of(hostile), name, sizeof(name)));
	CU_ASSERT_PTR_NULL(strchr(name, '\033'));
	/* No descriptor of that process has it. */
	name_is(names, NULL, wl_file_lock(3, 4, 5), "inode 3:4:5");
	/* What was found is known when no descriptor has it any more. */
	object = lock_of(fd);
	close(fd);
	name_is(names, NULL, object, path);
	unlink(path);
	close(other);
	close(hostile);
	snprintf(path, sizeof(path), "%s/%s", dir, long_name);
	unlink(path);
	snprintf(path, sizeof(path), "%s/\033[2J", dir);
	unlink(path);
	rmdir(dir);
	data_names__free(names);
}

static void two_locks_of_a_heap_are_two_objects(void)
{
	struct target_mapping items[] = {
		{.start = 0x10000, .end = 0x20000, .path = "[heap]"},
		{.start = 0x20000, .end = 0x30000, .path = "[heap]"},
		{.start = 0x70000000, .end = 0x80000000, .path = ""},
	};
	const target_mappings mappings = {.items = items, .cnt = 3};
	struct data_names *names = data_names__new();
	char name[160];
	uint32_t apart = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	for (int i = 0; i < 100; i++) {
		name_is(names, &mappings, 0x10040, "[heap]+0x40");
		name_is(names, &mappings, 0x20100, "[heap]+0x10100");
		name_is(names, &mappings, 0x70000010, "[anon 0x70000010]");
	}
	/* A lock for each request: most of them have no name of their own, and those that are used again keep theirs.
	 */
	for (uint64_t i = 0; i < 10000; i++) {
		data_names__get(names, getpid(), &mappings, 0x70001000 + i * 48, name, sizeof(name));
		apart += strcmp(name, "[anon]") != 0;
		if (i % 50 == 0)
			name_is(names, &mappings, 0x20100, "[heap]+0x10100");
	}
	CU_ASSERT(apart < 10000 / 3);
	data_names__free(names);
}

/* Code is in a file, but no data of it. */
static void functions_are_not_data(void)
{
	struct data_names *names = data_names__new();
	char name[160];

	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	CU_ASSERT_PTR_NOT_NULL(
		data_names__get(names, getpid(), NULL, (uint64_t)functions_are_not_data, name, sizeof(name)));
	CU_ASSERT_PTR_NOT_NULL(strstr(name, "+0x"));
	CU_ASSERT_PTR_NULL(strchr(name, ':'));
	data_names__free(names);
}

int suite_data_names(void)
{
	static const struct unit_test tests[] = {
		{"symbols name what is theirs", symbols_name_what_is_theirs},
		{"what is no file's has the name of its mapping", what_is_no_files_has_the_name_of_its_mapping},
		{"two locks of a heap are two objects", two_locks_of_a_heap_are_two_objects},
		{"functions are not data", functions_are_not_data},
		{"a lock on a file has its name", a_lock_on_a_file_has_its_name},
	};

	return unit_suite("data_names", tests, sizeof(tests) / sizeof(tests[0]));
}
