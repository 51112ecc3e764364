// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_file.h"

#include "base/log.h"
#include "base/user_file.h"

#include <dlfcn.h>
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

#define LINK_SZ_MAX 4096
#define SYSTEM_DIR  "/usr/lib/debug"

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
static void take(const struct debug_search *search, const struct elf_file *file, uint64_t sz)
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

	take(search, file, before - left);
	return file;
}

struct elf_file *debug_data__open(const struct elf_image *image, const struct elf_file *of,
				  const struct debug_search *search)
{
	const struct elf_section *section = elf_image__section(image, ".gnu_debugdata");
	uint64_t before = debug_budget__left(search->budget), left = before;
	struct elf_file *file;

	if (!section || !section->size)
		return NULL;
	file = elf_file__open_packed(elf_image__fd(image), section->file_off, section->size, of, &left);
	take(search, file, before - left);
	return file;
}

/* --- separate files -------------------------------------------------------------------------------------------------
 */

struct finder {
	const struct debug_search *search;
	const struct elf_file *of;
	const char *build_id;
	char link[NAME_MAX + 1]; /* "" when there is none */
	uint32_t link_crc;
};

/* .gnu_debuglink: a name, padding to four bytes, the checksum of the file. */
static void link_read(const struct elf_image *image, struct finder *finder)
{
	const struct elf_section *section = elf_image__section(image, ".gnu_debuglink");
	char *bytes = section ? elf_image__copy(image, section->file_off, section->size, LINK_SZ_MAX) : NULL;
	size_t len = bytes ? strlen(bytes) : 0, crc_off = (len + 4) & ~3UL;

	if (len && len < sizeof(finder->link) && !strchr(bytes, '/') && crc_off + 4 <= section->size) {
		memcpy(finder->link, bytes, len + 1);
		memcpy(&finder->link_crc, bytes + crc_off, 4);
	}
	free(bytes);
}

static bool crc_matches(const char *path, uint32_t wanted)
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

/* Of this very build, or NULL: the build id decides where both have one, and otherwise the link's checksum. */
static struct elf_file *try_path(const struct finder *finder, const char *path)
{
	struct elf_file *file = open_debug(path, finder->of, finder->search);
	const char *build_id = file ? elf_file__build_id(file) : "";

	if (!file)
		return NULL;
	if (finder->build_id[0] && build_id[0] ? !strcmp(finder->build_id, build_id)
					       : finder->link[0] && crc_matches(path, finder->link_crc)) {
		if (finder->search->fd)
			*finder->search->fd = open(path, O_RDONLY | O_CLOEXEC);
		return file;
	}
	elf_file__free(file);
	return NULL;
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
static struct elf_file *try_beneath(const struct finder *finder, const char *root, const char *dir, const char *name)
{
	int dir_fd = open_dir(root, dir), fd = dir_fd < 0 ? -1 : open_at(dir_fd, name, 0, RESOLVE_BENEATH);
	struct elf_file *file = NULL;
	struct stat st, own;
	char path[64];

	/* Not what leads to the stripped file itself. */
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (stat(finder->search->file, &own) || st.st_dev != own.st_dev || st.st_ino != own.st_ino)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		file = try_path(finder, path);
	}
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
	return file;
}

static struct elf_file *try_build_id(const struct finder *finder, const char *root, const char *dir)
{
	char name[PATH_MAX];

	if (strlen(finder->build_id) < 4)
		return NULL;
	snprintf(name, sizeof(name), ".build-id/%.2s/%s.debug", finder->build_id, finder->build_id + 2);
	return try_beneath(finder, root, dir, name);
}

/* `sub` is relative to the directory, "" or ends with a slash. */
static struct elf_file *try_link(const struct finder *finder, const char *root, const char *dir, const char *sub)
{
	char name[PATH_MAX];

	if (!finder->link[0] || snprintf(name, sizeof(name), "%s%s", sub, finder->link) >= (int)sizeof(name))
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

static struct elf_file *search_root(const struct finder *finder, const char *root, const char *target_dir)
{
	struct elf_file *file = try_build_id(finder, root, SYSTEM_DIR);
	char sub[PATH_MAX];

	if (!file)
		file = try_link(finder, root, target_dir, "");
	if (!file)
		file = try_link(finder, root, target_dir, ".debug/");
	as_sub(target_dir, sub);
	return file ? file : try_link(finder, root, SYSTEM_DIR, sub);
}

/* Where the user says, by the user's rights. */
static struct elf_file *search_user_dir(const struct finder *finder, const char *target_dir)
{
	const char *dir = finder->search->debuginfo_dir;
	struct user_rights rights;
	struct elf_file *file;
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

/* "ima:enforcing" and the like: not a server, but how its answers are checked. */
static bool is_web_url(const char *url)
{
	return !strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8) || !strncmp(url, "ima:", 4);
}

/*
 * Leaves only http and https in DEBUGINFOD_URLS: libcurl would copy a file:// URL from this machine.  False: no server
 * is left.
 */
static bool servers_named(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *all = urls ? strdup(urls) : NULL, *kept = urls ? calloc(1, strlen(urls) + 2) : NULL, *rest = NULL;
	bool named = false, dropped = false;

	for (char *url = all && kept ? strtok_r(all, " ", &rest) : NULL; url; url = strtok_r(NULL, " ", &rest)) {
		if (is_web_url(url)) {
			named |= strncmp(url, "ima:", 4) != 0;
			strcat(strcat(kept, url), " ");
			continue;
		}
		log_warn("DEBUGINFOD_URLS: '%s' is neither http:// nor https://: this server is not asked", url);
		dropped = true;
	}
	if (dropped && setenv("DEBUGINFOD_URLS", kept, 1))
		named = false;
	free(kept);
	free(all);
	return named;
}

static struct elf_file *ask_library(const struct finder *finder, void *library)
{
	void *(*begin)(void);
	int (*find)(void *, const unsigned char *, int, char **);
	void (*end)(void *);
	struct elf_file *file = NULL;
	char *path = NULL;
	void *client;
	int fd;

	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&end = dlsym(library, "debuginfod_end");
	client = begin && find && end ? begin() : NULL;
	if (!client)
		return NULL;
	/* A length of 0 says that the build id is hexadecimal text. */
	fd = find(client, (const unsigned char *)finder->build_id, 0, &path);
	if (fd >= 0) {
		file = try_path(finder, path);
		free(path);
		close(fd);
	}
	end(client);
	return file;
}

/*
 * A server that answers slowly delays the names of one file by this: seconds without 100 kB, seconds in all.  The
 * user's own settings hold.  (With DEBUGINFOD_MAXSIZE the library of elfutils 0.188 loses 8 KiB a request.)
 */
static void bound_servers(void)
{
	setenv("DEBUGINFOD_TIMEOUT", "5", 0);
	setenv("DEBUGINFOD_MAXTIME", "10", 0);
}

/*
 * The library is opened by name: few have it, and the servers are asked only where the user has named them.  It reads
 * and writes files that the environment names, so it runs by the user's rights; its threads inherit them.
 */
static struct elf_file *ask_servers(const struct finder *finder)
{
	struct elf_file *file = NULL;
	struct user_rights rights;
	void *library;

	if (!finder->build_id[0] || !servers_named() || user_rights__begin(&rights))
		return NULL;
	bound_servers();
	/* Not closed again: it has begun to use libcurl, which does not like to be unloaded. */
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		file = ask_library(finder, library);
	else
		log_debug("DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not installed: no server is asked");
	user_rights__end(&rights);
	return file;
}

struct elf_file *debug_file__open(const struct elf_image *image, const struct elf_file *of,
				  const struct debug_search *search)
{
	struct finder finder = {.search = search, .of = of, .build_id = elf_file__build_id(of)};
	char target_dir[PATH_MAX], *slash;
	struct elf_file *file = NULL;

	link_read(image, &finder);
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
