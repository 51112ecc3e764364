// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_file.h"

#include "base/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#define PACKED_MAX      (256ULL << 20)
#define UNPACKED_MAX    (1ULL << 30)
#define LZMA_MEMORY_MAX (256ULL << 20)
#define LINK_SZ_MAX     4096
#define SYSTEM_DIR      "/usr/lib/debug"

/* --- .gnu_debugdata -------------------------------------------------------------------------------------------------
 */

/* A memory file of what the section unpacks to, or -errno. */
static int unpack(const uint8_t *packed, size_t packed_sz)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t chunk[65536];
	uint64_t total = 0;
	lzma_ret ret;
	int fd, err = 0;

	if (lzma_stream_decoder(&stream, LZMA_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	fd = memfd_create("debugdata", MFD_CLOEXEC);
	if (fd < 0)
		err = -errno;
	stream.next_in = packed;
	stream.avail_in = packed_sz;
	for (ret = LZMA_OK; !err && ret == LZMA_OK;) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		ret = lzma_code(&stream, LZMA_FINISH);
		size_t sz = sizeof(chunk) - stream.avail_out;

		total += sz;
		if ((ret != LZMA_OK && ret != LZMA_STREAM_END) || total > UNPACKED_MAX || (ret == LZMA_OK && !sz))
			err = -ENOEXEC;
		else if (write(fd, chunk, sz) != (ssize_t)sz)
			err = -EIO;
	}
	lzma_end(&stream);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

struct elf_file *debug_data__open(const struct elf_image *image, const struct elf_file *of)
{
	const struct elf_section *section = elf_image__section(image, ".gnu_debugdata");
	struct elf_file *file = NULL;
	uint8_t *packed;
	char path[64];
	int fd;

	if (!section)
		return NULL;
	packed = elf_image__copy(image, section->file_off, section->size, PACKED_MAX);
	if (!packed)
		return NULL;
	fd = unpack(packed, section->size);
	free(packed);
	if (fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		file = elf_file__open_debug(path, of);
		close(fd);
	}
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
	struct elf_file *file = elf_file__open_debug(path, finder->of);
	const char *build_id = file ? elf_file__build_id(file) : "";

	if (!file)
		return NULL;
	if (finder->build_id[0] && build_id[0] ? !strcmp(finder->build_id, build_id)
					       : finder->link[0] && crc_matches(path, finder->link_crc))
		return file;
	elf_file__free(file);
	return NULL;
}

static struct elf_file *try_build_id(const struct finder *finder, const char *root, const char *dir)
{
	char path[PATH_MAX];

	if (strlen(finder->build_id) < 4)
		return NULL;
	if (snprintf(path, sizeof(path), "%s%s/.build-id/%.2s/%s.debug", root, dir, finder->build_id,
		     finder->build_id + 2) >= (int)sizeof(path))
		return NULL;
	return try_path(finder, path);
}

static struct elf_file *try_link(const struct finder *finder, const char *fmt_dir, const char *target_dir,
				 const char *sub)
{
	char path[PATH_MAX];

	if (!finder->link[0] ||
	    snprintf(path, sizeof(path), "%s%s%s/%s", fmt_dir, target_dir, sub, finder->link) >= (int)sizeof(path))
		return NULL;
	/* A link that leads to the stripped file itself. */
	if (!strcmp(path, finder->search->file))
		return NULL;
	return try_path(finder, path);
}

static struct elf_file *search_root(const struct finder *finder, const char *root, const char *target_dir)
{
	static const char *const subs[] = {"", "/.debug"};
	char system_dir[PATH_MAX];
	struct elf_file *file = try_build_id(finder, root, SYSTEM_DIR);

	for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]) && !file; i++)
		file = try_link(finder, root, target_dir, subs[i]);
	if (!file && snprintf(system_dir, sizeof(system_dir), "%s%s", root, SYSTEM_DIR) < (int)sizeof(system_dir))
		file = try_link(finder, system_dir, target_dir, "");
	return file;
}

/* --- debuginfod -----------------------------------------------------------------------------------------------------
 */

/* The library is opened by name: few have it, and the servers are asked only where the user has named them. */
static struct elf_file *ask_servers(const struct finder *finder)
{
	void *(*begin)(void);
	int (*find)(void *, const unsigned char *, int, char **);
	void (*end)(void *);
	struct elf_file *file = NULL;
	char *path = NULL;
	void *library, *client;
	int fd;

	if (!getenv("DEBUGINFOD_URLS") || !getenv("DEBUGINFOD_URLS")[0] || !finder->build_id[0])
		return NULL;
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		log_debug("DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not installed: no server is asked");
		return NULL;
	}
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&end = dlsym(library, "debuginfod_end");
	client = begin && find && end ? begin() : NULL;
	if (client) {
		/* A length of 0 says that the build id is hexadecimal text. */
		fd = find(client, (const unsigned char *)finder->build_id, 0, &path);
		if (fd >= 0) {
			file = try_path(finder, path);
			free(path);
			close(fd);
		}
		end(client);
	}
	/* Not closed again: it has begun to use libcurl, which does not like to be unloaded. */
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
		*slash = '\0';
	else
		snprintf(target_dir, sizeof(target_dir), ".");
	if (search->debuginfo_dir) {
		file = try_build_id(&finder, "", search->debuginfo_dir);
		if (!file)
			file = try_link(&finder, search->debuginfo_dir, slash ? target_dir : "", "");
		if (!file)
			file = try_link(&finder, search->debuginfo_dir, "", "");
	}
	if (!file && search->root[0])
		file = search_root(&finder, search->root, target_dir);
	if (!file)
		file = search_root(&finder, "", target_dir);
	if (!file && search->want_debuginfod)
		file = ask_servers(&finder);
	return file;
}
