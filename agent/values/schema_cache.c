// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_cache.h"

#include "base/hash.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX      ".schema"
#define FILE_SZ_MAX (1ULL << 30)
#define NAME_SZ     200
#define NO_TEXT     UINT32_MAX

/* The file: the head, the variables, the locations, the texts.  It does not leave the machine. */
struct head {
	char magic[8];
	uint64_t checksum; /* of what follows */
	uint64_t variable_cnt, location_cnt, text_sz;
	uint64_t functions, units;
	uint64_t skipped[VALUE_SKIP_CNT];
	uint64_t no_code_tags;
};

/* To be changed with any of these structs, and with what a schema has. */
static const char magic[8] = "wlschem1";

struct kept_variable {
	uint32_t file, function, name, type, inlined; /* offsets into the texts */
	uint32_t line, first_location, location_cnt;
	int32_t member_off;
	uint8_t size, kind, tags, zero;
};

struct kept_location {
	uint64_t pc_begin, pc_end;
	int64_t off;
	uint8_t place, reg, zero[6];
};

_Static_assert(sizeof(struct kept_variable) == 40 && sizeof(struct kept_location) == 32, "no padding");

static uint64_t hash_text(uint64_t sum, const char *text)
{
	return fnv1a(sum, text ? text : "\n", text ? strlen(text) + 1 : 1);
}

/* By what decides what is in it, besides the build: the options. False: it has no build id to go by. */
static bool file_name(const struct value_schema *schema, const struct value_schema_opts *opts, char name[NAME_SZ])
{
	uint64_t sum = FNV1A_BEGIN, sz;
	struct stat st;

	if (strlen(schema->build_id) < 16 || stat(opts->path, &st))
		return false;
	sum = hash_text(hash_text(hash_text(sum, opts->file), opts->function), opts->either);
	sz = (uint64_t)st.st_size * 2 + opts->all_locals;
	sum = fnv1a(sum, &sz, sizeof(sz));
	return snprintf(name, NAME_SZ, "%s-%016llx" SUFFIX, schema->build_id, (unsigned long long)sum) < NAME_SZ;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

/* Nobody else can write there. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static int open_within(int at_fd, const char *name)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && !mkdirat(at_fd, name, 0700))
		fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_own(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* $XDG_CACHE_HOME/whylate or ~/.cache/whylate; -1: there is none that is the user's own. */
static int open_dir(const struct value_schema_opts *opts)
{
	const char *base = opts->cache_dir ? opts->cache_dir : secure_getenv("XDG_CACHE_HOME");
	bool in_home = !base || *base != '/';
	int fd, cache_fd, home_fd;

	if (in_home)
		base = secure_getenv("HOME");
	home_fd = base && *base == '/' ? open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (home_fd < 0)
		return -1;
	/* A home that is another user's (sudo) is none. */
	cache_fd = !is_own(home_fd) ? -1 : in_home ? open_within(home_fd, ".cache") : dup(home_fd);
	close(home_fd);
	if (cache_fd < 0)
		return -1;
	fd = open_within(cache_fd, "whylate");
	close(cache_fd);
	return fd;
}

static bool is_schema(const char *name)
{
	size_t len = strlen(name);

	return len > sizeof(SUFFIX) && !strcmp(name + len - (sizeof(SUFFIX) - 1), SUFFIX);
}

/* Leaves room for one more. */
static void make_room(int dir_fd)
{
	char oldest[NAME_MAX + 1] = "";
	time_t oldest_s = 0;
	struct dirent *entry;
	int own_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), cnt = 0;
	DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
	struct stat st;

	if (!dir && own_fd >= 0)
		close(own_fd);
	while (dir && (entry = readdir(dir))) {
		if (!is_schema(entry->d_name) || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		cnt++;
		if (!*oldest || st.st_mtime < oldest_s) {
			oldest_s = st.st_mtime;
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	}
	if (dir)
		closedir(dir);
	if (cnt >= SCHEMA_CACHE_FILES)
		unlinkat(dir_fd, oldest, 0);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The whole file, the caller's to free; NULL: none, or none that is to be believed. */
static uint8_t *read_file(int dir_fd, const char *name, size_t *sz)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t *bytes = NULL;
	struct stat st;
	size_t got = 0;

	if (fd >= 0 && is_own(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (size_t)st.st_size >= sizeof(struct head) && (uint64_t)st.st_size <= FILE_SZ_MAX)
		bytes = malloc((size_t)st.st_size);
	while (bytes && got < (size_t)st.st_size) {
		ssize_t more = read(fd, bytes + got, (size_t)st.st_size - got);

		if (more <= 0) {
			free(bytes);
			bytes = NULL;
		} else {
			got += (size_t)more;
		}
	}
	if (bytes)
		futimens(fd, NULL);
	if (fd >= 0)
		close(fd);
	*sz = got;
	return bytes;
}

static bool is_sound(const struct head *head, const uint8_t *bytes, size_t sz)
{
	const size_t begin = offsetof(struct head, variable_cnt);
	uint64_t expected = sizeof(*head);

	if (memcmp(head->magic, magic, sizeof(magic)) || head->variable_cnt > FILE_SZ_MAX ||
	    head->location_cnt > FILE_SZ_MAX || head->text_sz > FILE_SZ_MAX || !head->text_sz)
		return false;
	expected += head->variable_cnt * sizeof(struct kept_variable) +
		    head->location_cnt * sizeof(struct kept_location) + head->text_sz;
	return expected == sz && !bytes[sz - 1] && head->checksum == fnv1a(0, bytes + begin, sz - begin);
}

static bool take_location(struct value_schema *schema, const struct kept_location *kept)
{
	struct value_location location = {.pc_begin = kept->pc_begin,
					  .pc_end = kept->pc_end,
					  .off = kept->off,
					  .place = kept->place,
					  .reg = kept->reg};

	return kept->place <= VALUE_AT_ADDRESS && kept->pc_begin < kept->pc_end &&
	       !vec_push(&schema->locations, location);
}

static bool take_variable(struct value_schema *schema, const struct kept_variable *kept, const char *texts,
			  const struct head *head)
{
	struct value_variable variable = {.line = kept->line,
					  .first_location = kept->first_location,
					  .location_cnt = kept->location_cnt,
					  .member_off = kept->member_off,
					  .size = kept->size,
					  .kind = kept->kind,
					  .tags = kept->tags};

	if (kept->file >= head->text_sz || kept->function >= head->text_sz || kept->name >= head->text_sz ||
	    kept->type >= head->text_sz || (kept->inlined >= head->text_sz && kept->inlined != NO_TEXT))
		return false;
	if ((kept->size != 1 && kept->size != 2 && kept->size != 4 && kept->size != 8) ||
	    kept->kind >= VALUE_TYPE_CNT || (uint64_t)kept->first_location + kept->location_cnt > head->location_cnt)
		return false;
	variable.file = texts + kept->file;
	variable.function = texts + kept->function;
	variable.name = texts + kept->name;
	variable.type = texts + kept->type;
	variable.inlined = kept->inlined == NO_TEXT ? NULL : texts + kept->inlined;
	return !vec_push(&schema->variables, variable);
}

static bool take_bytes(struct value_schema *schema, const uint8_t *bytes, size_t sz)
{
	const struct head *head = (const struct head *)bytes;
	const struct kept_variable *variables;
	const struct kept_location *locations;
	char *texts;

	if (!is_sound(head, bytes, sz))
		return false;
	variables = (const struct kept_variable *)(bytes + sizeof(*head));
	locations = (const struct kept_location *)(variables + head->variable_cnt);
	texts = arena__alloc(schema->arena, head->text_sz, 1);
	if (!texts)
		return false;
	memcpy(texts, locations + head->location_cnt, head->text_sz);
	for (size_t l = 0; l < head->location_cnt; l++)
		if (!take_location(schema, &locations[l]))
			return false;
	for (size_t v = 0; v < head->variable_cnt; v++)
		if (!take_variable(schema, &variables[v], texts, head))
			return false;
	schema->functions = head->functions;
	schema->units = head->units;
	schema->no_code_tags = head->no_code_tags;
	for (int s = 0; s < VALUE_SKIP_CNT; s++)
		schema->skipped[s] = head->skipped[s];
	return true;
}

bool schema_cache_load(struct value_schema *schema, const struct value_schema_opts *opts)
{
	char name[NAME_SZ];
	int dir_fd = file_name(schema, opts, name) ? open_dir(opts) : -1;
	bool is_taken = false;
	uint8_t *bytes;
	size_t sz;

	if (dir_fd < 0)
		return false;
	bytes = read_file(dir_fd, name, &sz);
	if (bytes)
		is_taken = take_bytes(schema, bytes, sz);
	if (bytes && !is_taken) {
		vec_free(&schema->variables);
		vec_free(&schema->locations);
	}
	free(bytes);
	close(dir_fd);
	return is_taken;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct texts {
	VEC(char) bytes;
	struct idmap offs; /* (address of an interned text, 0) → number, by … */
	VEC(uint32_t) by_number;
	bool failed;
};

static uint32_t text_off(struct texts *texts, const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	uint32_t number = 0, off = (uint32_t)texts->bytes.cnt;

	if (!text || texts->failed)
		return NO_TEXT;
	texts->failed = idmap__id(&texts->offs, (uintptr_t)text, 0, &number);
	if (!texts->failed && number < texts->by_number.cnt)
		return texts->by_number.items[number];
	texts->failed = texts->failed || texts->bytes.cnt + len > FILE_SZ_MAX || vec_reserve(&texts->bytes, len) ||
			vec_push(&texts->by_number, off);
	if (texts->failed)
		return NO_TEXT;
	memcpy(texts->bytes.items + texts->bytes.cnt, text, len);
	texts->bytes.cnt += len;
	return off;
}

typedef VEC(uint8_t) byte_list;

static bool append(byte_list *file, const void *bytes, size_t sz)
{
	if (vec_reserve(file, sz))
		return false;
	memcpy(file->items + file->cnt, bytes, sz);
	file->cnt += sz;
	return true;
}

static bool put_rows(byte_list *file, struct texts *texts, const struct value_schema *schema)
{
	bool ok = true;

	for (size_t v = 0; v < schema->variables.cnt && ok; v++) {
		const struct value_variable *variable = &schema->variables.items[v];
		struct kept_variable kept = {.file = text_off(texts, variable->file),
					     .function = text_off(texts, variable->function),
					     .name = text_off(texts, variable->name),
					     .type = text_off(texts, variable->type),
					     .inlined = text_off(texts, variable->inlined),
					     .line = variable->line,
					     .first_location = variable->first_location,
					     .location_cnt = variable->location_cnt,
					     .member_off = variable->member_off,
					     .size = variable->size,
					     .kind = variable->kind,
					     .tags = variable->tags};

		ok = !texts->failed && append(file, &kept, sizeof(kept));
	}
	for (size_t l = 0; l < schema->locations.cnt && ok; l++) {
		const struct value_location *location = &schema->locations.items[l];
		struct kept_location kept = {.pc_begin = location->pc_begin,
					     .pc_end = location->pc_end,
					     .off = location->off,
					     .place = location->place,
					     .reg = location->reg};

		ok = append(file, &kept, sizeof(kept));
	}
	return ok && append(file, texts->bytes.items, texts->bytes.cnt);
}

static void write_file(int dir_fd, const char *name, const byte_list *file)
{
	char fresh[NAME_SZ + 32];
	size_t put = 0;
	ssize_t more = 0;
	int fd;

	snprintf(fresh, sizeof(fresh), ".%s.%d", name, (int)getpid());
	fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (fd >= 0 && put < file->cnt && (more = write(fd, file->items + put, file->cnt - put)) > 0)
		put += (size_t)more;
	if (fd >= 0 && (close(fd) || put < file->cnt || renameat(dir_fd, fresh, dir_fd, name))) {
		log_debug("the schema cannot be kept: %s", strerror(errno));
		unlinkat(dir_fd, fresh, 0);
	}
}

void schema_cache_store(const struct value_schema *schema, const struct value_schema_opts *opts)
{
	struct head head = {.variable_cnt = schema->variables.cnt,
			    .location_cnt = schema->locations.cnt,
			    .functions = schema->functions,
			    .units = schema->units,
			    .no_code_tags = schema->no_code_tags};
	struct texts texts = {.failed = false};
	byte_list file = {0};
	char name[NAME_SZ];
	int dir_fd = schema->variables.cnt && file_name(schema, opts, name) ? open_dir(opts) : -1;

	if (dir_fd < 0)
		return;
	for (int s = 0; s < VALUE_SKIP_CNT; s++)
		head.skipped[s] = schema->skipped[s];
	if (append(&file, &head, sizeof(head)) && put_rows(&file, &texts, schema) && file.cnt <= FILE_SZ_MAX) {
		const size_t begin = offsetof(struct head, variable_cnt);
		struct head *whole = (struct head *)file.items;

		whole->text_sz = texts.bytes.cnt;
		memcpy(whole->magic, magic, sizeof(magic));
		whole->checksum = fnv1a(0, file.items + begin, file.cnt - begin);
		make_room(dir_fd);
		write_file(dir_fd, name, &file);
	}
	vec_free(&file);
	vec_free(&texts.bytes);
	vec_free(&texts.by_number);
	idmap__free(&texts.offs);
	close(dir_fd);
}
