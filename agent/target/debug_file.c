// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_file.h"

#include "base/log.h"
#include "base/user_file.h"
#include "target/debug_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#define SYSTEM_DIR "/usr/lib/debug"

/* --- .gnu_debugdata -------------------------------------------------------------------------------------------------
 */

static _Atomic uint64_t agent_used;

void debug_budget__return(struct debug_budget *budget)
{
	atomic_fetch_sub(&agent_used, budget->used);
	budget->used = 0;
}

static uint64_t debug_budget__left(const struct debug_budget *budget)
{
	uint64_t all = atomic_load(&agent_used);
	uint64_t of_target = budget->used < DEBUG_BUDGET_TARGET ? DEBUG_BUDGET_TARGET - budget->used : 0;
	uint64_t of_agent = all < DEBUG_BUDGET_AGENT ? DEBUG_BUDGET_AGENT - all : 0;

	return of_target < of_agent ? of_target : of_agent;
}

static void debug_budget__take(struct debug_budget *budget, uint64_t sz)
{
	atomic_fetch_add(&agent_used, sz);
	budget->used += sz;
}

static void say_beyond(const struct debug_search *search)
{
	if (!search->budget->said)
		log_warn("the debug data of '%s' is beyond %llu MiB of symbols: this file, and what comes after it, "
			 "goes "
			 "without",
			 search->path, DEBUG_BUDGET_TARGET >> 20);
	search->budget->said = true;
}

/* What has been read for the file, NULL: errno says why there is none. */
static void note_taken(const struct debug_search *search, const struct elf_file *file, uint64_t sz)
{
	if (!file && errno == EFBIG)
		say_beyond(search);
	if (!file && errno == EAGAIN)
		*search->is_late = true;
	debug_budget__take(search->budget, sz);
}

static struct elf_file *open_debug(const char *path, const struct elf_file *of, const struct debug_search *search)
{
	uint64_t before = debug_budget__left(search->budget), left = before;
	struct elf_file *file = elf_file__open_debug(path, of, &left);

	note_taken(search, file, before - left);
	return file;
}

struct elf_file *debug_data__open(int fd, const struct elf_file *of, const struct debug_search *search)
{
	const struct elf_rows_head *head = elf_file__head(of);
	uint64_t before = debug_budget__left(search->budget), left = before;
	struct elf_file *file;

	if (!head->packed_sz)
		return NULL;
	file = elf_file__open_packed(fd, head->packed_off, head->packed_sz, of, &left);
	note_taken(search, file, before - left);
	return file;
}

/* --- separate files -------------------------------------------------------------------------------------------------
 */

struct finder {
	const struct debug_search *search;
	const struct debug_wanted *wanted;
	debug_file_take take;
	void *owner;
};

bool debug_file_has_checksum(const char *path, uint32_t wanted)
{
	uint8_t chunk[65536];
	uLong crc = crc32(0, NULL, 0);
	ssize_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	while ((len = read(fd, chunk, sizeof(chunk))) > 0)
		crc = crc32(crc, chunk, len);
	close(fd);
	return !len && crc == wanted;
}

static int open_at(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags | O_PATH | O_CLOEXEC, .resolve = resolve | RESOLVE_NO_MAGICLINKS};

	return syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* The directory, by its links as the target has them where it is the target's. */
static int open_dir(const char *root, const char *dir)
{
	int root_fd, fd;

	if (!root[0])
		return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -1;
	fd = open_at(root_fd, dir, O_DIRECTORY, RESOLVE_IN_ROOT);
	close(root_fd);
	return fd;
}

/*
 * The file of that name below the directory, whatever links there are in it.  What is no regular file is not opened: to
 * open a device can do anything.
 */
static void *try_beneath(const struct finder *finder, const char *root, const char *dir, const char *name)
{
	int dir_fd = open_dir(root, dir), fd = dir_fd < 0 ? -1 : open_at(dir_fd, name, 0, RESOLVE_BENEATH);
	void *file = NULL;
	struct stat st, own;
	char path[64];

	/* Not what leads to the stripped file itself. */
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (stat(finder->search->file, &own) || st.st_dev != own.st_dev || st.st_ino != own.st_ino)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		file = finder->take(finder->owner, path);
	}
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
	return file;
}

static void *try_build_id(const struct finder *finder, const char *root, const char *dir)
{
	const char *build_id = finder->wanted->build_id;
	char name[PATH_MAX];

	if (strlen(build_id) < 4)
		return NULL;
	snprintf(name, sizeof(name), ".build-id/%.2s/%s.debug", build_id, build_id + 2);
	return try_beneath(finder, root, dir, name);
}

/* `sub` is relative to the directory, "" or ends with a slash. */
static void *try_link(const struct finder *finder, const char *root, const char *dir, const char *sub)
{
	const char *link = finder->wanted->link;
	char name[PATH_MAX];

	if (!*link || snprintf(name, sizeof(name), "%s%s", sub, link) >= (int)sizeof(name))
		return NULL;
	return try_beneath(finder, root, dir, name);
}

/* The target's directory as a part of another one: without the slash before it, with one behind it. */
static void as_sub(const char *dir, char sub[PATH_MAX])
{
	while (*dir == '/')
		dir++;
	if (snprintf(sub, PATH_MAX, "%s%s", dir, *dir ? "/" : "") >= PATH_MAX)
		sub[0] = 0;
}

static void *search_root(const struct finder *finder, const char *root, const char *target_dir)
{
	void *file = try_build_id(finder, root, SYSTEM_DIR);
	char sub[PATH_MAX];

	if (!file)
		file = try_link(finder, root, target_dir, "");
	if (!file)
		file = try_link(finder, root, target_dir, ".debug/");
	as_sub(target_dir, sub);
	return file ? file : try_link(finder, root, SYSTEM_DIR, sub);
}

/* Where the user says, by the user's rights. */
static void *search_user_dir(const struct finder *finder, const char *target_dir)
{
	const char *dir = finder->search->debuginfo_dir;
	struct user_rights rights;
	void *file;
	char sub[PATH_MAX];

	if (user_rights__begin(&rights))
		return NULL;
	file = try_build_id(finder, "", dir);
	as_sub(target_dir, sub);
	if (!file && target_dir[0] == '/')
		file = try_link(finder, "", dir, sub);
	if (!file)
		file = try_link(finder, "", dir, "");
	user_rights__end(&rights);
	return file;
}

/* --- debuginfod -----------------------------------------------------------------------------------------------------
 */

static void *ask_servers(const struct finder *finder)
{
	void *file = NULL;
	char path[64];
	int fd = debug_server_find(finder->wanted->build_id);

	if (fd == -EAGAIN)
		*finder->search->is_late = true;
	if (fd < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = finder->take(finder->owner, path);
	close(fd);
	return file;
}

void *debug_file_search(const struct debug_wanted *wanted, const struct debug_search *search, debug_file_take take,
			void *owner)
{
	const struct finder finder = {.search = search, .wanted = wanted, .take = take, .owner = owner};
	char target_dir[PATH_MAX], *slash;
	void *file = NULL;

	snprintf(target_dir, sizeof(target_dir), "%s", search->path);
	slash = strrchr(target_dir, '/');
	if (slash)
		slash[slash == target_dir] = '\0';
	else
		snprintf(target_dir, sizeof(target_dir), ".");
	if (search->debuginfo_dir)
		file = search_user_dir(&finder, target_dir);
	if (!file && search->root[0])
		file = search_root(&finder, search->root, target_dir);
	if (!file)
		file = search_root(&finder, "", target_dir);
	if (!file && search->want_debuginfod && !*search->is_late)
		file = ask_servers(&finder);
	return file;
}

/* --- symbols --------------------------------------------------------------------------------------------------------
 */

struct symbols_wanted {
	const struct debug_search *search;
	const struct elf_file *of;
	struct debug_wanted wanted;
};

/* Of this very build, or NULL: the build id decides where both have one, and otherwise the link's checksum. */
static void *take_symbols(void *owner, const char *path)
{
	const struct symbols_wanted *symbols = owner;
	const struct debug_wanted *wanted = &symbols->wanted;
	struct elf_file *file = open_debug(path, symbols->of, symbols->search);
	const char *build_id = file ? elf_file__build_id(file) : "";

	if (!file)
		return NULL;
	if (*wanted->build_id && *build_id ? !strcmp(wanted->build_id, build_id)
					   : *wanted->link && debug_file_has_checksum(path, wanted->link_crc)) {
		if (symbols->search->fd)
			*symbols->search->fd = open(path, O_RDONLY | O_CLOEXEC);
		return file;
	}
	elf_file__free(file);
	return NULL;
}

struct elf_file *debug_file__open(const struct elf_file *of, const struct debug_search *search)
{
	const struct elf_rows_head *head = elf_file__head(of);
	struct symbols_wanted symbols = {
		.search = search,
		.of = of,
		.wanted = {.build_id = head->build_id, .link = head->link, .link_crc = head->link_crc},
	};

	return debug_file_search(&symbols.wanted, search, take_symbols, &symbols);
}
