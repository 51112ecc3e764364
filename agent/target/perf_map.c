// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/perf_map.h"

#include "base/log.h"
#include "base/text.h"
#include "target/code_map.h"
#include "target/jitdump.h"
#include "target/proc_file.h"
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the file has grown is looked at not more often. */
#define LOOK_EVERY_NS 20000000ULL
/* Whether another file bears its name now: neither. */
#define REOPEN_EVERY_NS 1000000000ULL
/* So much is read at a time: rings wait meanwhile. */
#define PART_SZ (4U << 20)
#define READ_SZ (64U << 10)
/* Likewise, records of a jitdump. */
#define DUMP_RECORDS 8192
/* Bytes before the place that is read to, by which a file is known that was written anew. */
#define MARK_SZ 64
/* Names that are kept: a power of two. */
#define NAMES_CNT 512
#define NAME_SZ   200
/* Ranges that are added at once, at least. */
#define BATCH_MIN 16384

struct known_name {
	uint64_t tag; /* CODE_MAP_NONE: a free place */
	char text[NAME_SZ];
};

struct perf_map {
	pid_t pid;
	int fd; /* -1: none is open */
	dev_t dev;
	ino_t ino;
	uint64_t looked_ts, opened_ts;
	uint64_t read_sz; /* all lines up to there have been taken */
	bool in_line;     /* that place is within a line that is passed over */
	bool full;
	bool is_dump; /* jitdump: records in place of lines */
	size_t mark_sz;
	char mark[MARK_SZ];
	struct code_map *code;
	VEC(struct code_range) batch;
	struct known_name names[NAMES_CNT];
	char buf[READ_SZ];
};

/* --- a line ------------------------------------------------------------------------------------------------------- */

static bool parse_hex(const char **at, const char *end, uint64_t *number)
{
	const char *digits;

	while (*at < end && **at == ' ')
		++*at;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	*number = 0;
	for (digits = *at; *at < end && *at - digits < 16; ++*at) {
		char c = (char)(**at | 0x20);

		if (c >= '0' && c <= '9' && **at <= '9')
			*number = *number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*number = *number << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return *at > digits && *at < end && **at == ' ';
}

bool perf_map_parse(const char *line, size_t len, uint64_t *start, uint64_t *sz, const char **name, size_t *name_len)
{
	const char *at = line, *end = line + len;

	if (!parse_hex(&at, end, start) || !parse_hex(&at, end, sz) || !*start || !*sz || *start + *sz < *start)
		return false;
	while (at < end && *at == ' ')
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	*name = at;
	*name_len = (size_t)(end - at);
	return at < end;
}

/* --- a name ------------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path, size_t *len)
{
	for (size_t i = *len; i-- > 0;)
		if (path[i] == '/') {
			*len -= i + 1;
			return path + i + 1;
		}
	return path;
}

/* V8: a mark of the tier, the function's name, then the script with line and column. */
static bool show_js(const char *name, size_t len, char *buf, size_t sz)
{
	const char *script;
	size_t function_len, script_len;

	while (len && strchr("*~^+", *name)) {
		name++;
		len--;
	}
	script = memchr(name, ' ', len);
	if (!script)
		return false;
	function_len = (size_t)(script - name);
	script_len = len - function_len - 1;
	script = base_name(script + 1, &script_len);
	/* The column goes, where there is a line. */
	for (size_t i = script_len; i-- > 0;) {
		if (script[i] != ':')
			continue;
		if (memchr(script, ':', i))
			script_len = i;
		break;
	}
	if (!script_len)
		return false;
	snprintf(buf, sz, "%.*s (%.*s)", function_len ? (int)function_len : 11, function_len ? name : "(anonymous)",
		 (int)script_len, script);
	return true;
}

static bool show_python(const char *name, size_t len, char *buf, size_t sz)
{
	const char *colon = memchr(name, ':', len), *script;
	size_t script_len;

	if (!colon || colon == name)
		return false;
	script = colon + 1;
	script_len = len - (size_t)(script - name);
	script = base_name(script, &script_len);
	snprintf(buf, sz, "%.*s (%.*s)", (int)(colon - name), name, (int)script_len, script);
	return script_len > 0;
}

void perf_map_shown(const char *name, size_t len, char *buf, size_t sz)
{
	bool shown = false;

	/* A name's first byte must not be taken for the mark of a guess. */
	while (len > 1 && *name == '?') {
		name++;
		len--;
	}
	if (len > 4096)
		len = 4096;
	if (len > 3 && !memcmp(name, "JS:", 3))
		shown = show_js(name + 3, len - 3, buf, sz);
	else if (len > 4 && !memcmp(name, "py::", 4))
		shown = show_python(name + 4, len - 4, buf, sz);
	if (!shown)
		snprintf(buf, sz, "%.*s", (int)len, name);
	proc_make_printable(buf);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* Whose the process is, and its number where it counts its own processes.  0 or -errno. */
static int identify(pid_t pid, uid_t *uid, uid_t *euid, pid_t *own_pid)
{
	char text[256], *last;
	int err = proc_status(pid, "Uid", text, sizeof(text));

	if (err)
		return err;
	if (sscanf(text, "%u %u", uid, euid) != 2)
		return -ESRCH;
	*own_pid = pid;
	if (proc_status(pid, "NSpid", text, sizeof(text)))
		return 0;
	last = strrchr(text, '\t');
	return sscanf(last ?: text, "%d", own_pid) == 1 ? 0 : -ESRCH;
}

/* The path is resolved below the process's root, whatever links lie on it; the last part must be none. */
static int open_below(pid_t pid, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char root[64];
	int root_fd, fd;

	proc_path(root, sizeof(root), "%d/root", pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(root_fd);
	return fd;
}

static void forget(struct perf_map *map)
{
	code_map__clear(map->code);
	for (size_t i = 0; i < NAMES_CNT; i++)
		map->names[i].tag = CODE_MAP_NONE;
	map->read_sz = 0;
	map->mark_sz = 0;
	map->batch.cnt = 0;
	map->in_line = map->full = false;
}

static bool is_dump_name(const struct target_mapping *mapping)
{
	char name[NAME_MAX + 1];

	target_mapping_basename(mapping, name, sizeof(name));
	return mapping->path[0] == '/' && !strncmp(name, "jit-", 4) && text_ends(name + 4, ".dump");
}

/* The process maps a page of it, executable, so that it is found. */
static int open_dump(pid_t pid, char *path, size_t sz)
{
	target_mappings mappings = {0};
	int fd = -ENOENT;

	if (target_mappings_read(pid, &mappings))
		return -ENOENT;
	for (size_t i = 0; i < mappings.cnt && fd < 0; i++) {
		const struct target_mapping *mapping = &mappings.items[i];
		struct stat st;

		if (!mapping->exec || !is_dump_name(mapping) ||
		    (size_t)snprintf(path, sz, "%s", mapping->path + 1) >= sz)
			continue;
		fd = open_below(pid, path);
		if (fd >= 0 && (fstat(fd, &st) || st.st_ino != mapping->ino)) {
			close(fd);
			fd = -ENOENT;
		}
	}
	target_mappings_free(&mappings);
	return fd;
}

/* Another file than before is read from its beginning. */
static void reopen(struct perf_map *map)
{
	bool is_dump = false;
	char path[PATH_MAX];
	uid_t uid, euid;
	struct stat st;
	pid_t own_pid;
	int fd;

	if (identify(map->pid, &uid, &euid, &own_pid))
		return;
	snprintf(path, sizeof(path), "tmp/perf-%d.map", own_pid);
	fd = open_below(map->pid, path);
	if (fd < 0) {
		fd = open_dump(map->pid, path, sizeof(path));
		is_dump = true;
	}
	if (fd < 0)
		return;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != uid && st.st_uid != euid)) {
		if (map->fd < 0)
			log_debug("process %d: %s is not a file of its own, and is not read", map->pid, path);
		close(fd);
		return;
	}
	if (map->fd >= 0 && map->dev == st.st_dev && map->ino == st.st_ino) {
		close(fd);
		return;
	}
	if (map->fd >= 0)
		close(map->fd);
	forget(map);
	map->is_dump = is_dump;
	map->fd = fd;
	map->dev = st.st_dev;
	map->ino = st.st_ino;
}

/* Is what was read last still before the place that is read to? */
static bool is_same_text(const struct perf_map *map)
{
	char now[MARK_SZ];

	return pread(map->fd, now, map->mark_sz, (off_t)(map->read_sz - map->mark_sz)) == (ssize_t)map->mark_sz &&
	       !memcmp(now, map->mark, map->mark_sz);
}

static int flush(struct perf_map *map, uint64_t ts)
{
	int err = code_map__add(map->code, map->batch.items, map->batch.cnt, ts);

	map->batch.cnt = 0;
	if (err == -ENOSPC && !map->full) {
		map->full = true;
		log_warn("process %d: its perf map names more than %d pieces of code; the later ones have no names",
			 map->pid, CODE_MAP_PIECES_MAX);
	}
	return err == -ENOSPC ? 0 : err;
}

static int take_range(struct perf_map *map, uint64_t start, uint64_t sz, uint64_t tag, uint64_t ts)
{
	if (vec_push(&map->batch, ((struct code_range){.start = start, .end = start + sz, .tag = tag})))
		return -ENOMEM;
	/* Each time all that is known is copied: in batches of its size that takes n log n. */
	if (map->batch.cnt < BATCH_MIN || map->batch.cnt < code_map__cnt(map->code) / 2)
		return 0;
	return flush(map, ts);
}

static int take_line(struct perf_map *map, const char *line, size_t len, uint64_t off, uint64_t ts)
{
	size_t name_len;
	const char *name;
	uint64_t start, sz;

	return perf_map_parse(line, len, &start, &sz, &name, &name_len) ? take_range(map, start, sz, off, ts) : 0;
}

/* Takes the lines of the buffer.  How many bytes they are, or -ENOMEM. */
static ssize_t take_lines(struct perf_map *map, size_t got, uint64_t ts)
{
	size_t at = 0;

	while (at < got) {
		const char *line = map->buf + at, *end = memchr(line, '\n', got - at);
		size_t len = end ? (size_t)(end - line) : got - at;
		int err = 0;

		/* A line that is not whole is one only if there is no room for more of it. */
		if (!end && !map->in_line && (at || got < sizeof(map->buf)))
			break;
		if (!map->in_line)
			err = take_line(map, line, len, map->read_sz + at, ts);
		if (err)
			return err;
		map->in_line = !end;
		at += len + (end != NULL);
	}
	return (ssize_t)at;
}

static int read_part(struct perf_map *map, uint64_t until, uint64_t ts)
{
	uint64_t stop = map->read_sz + PART_SZ;

	while (map->read_sz < until && map->read_sz < stop && !map->full) {
		size_t want = until - map->read_sz < sizeof(map->buf) ? until - map->read_sz : sizeof(map->buf);
		ssize_t got = pread(map->fd, map->buf, want, (off_t)map->read_sz), taken;

		if (got <= 0)
			break;
		taken = take_lines(map, (size_t)got, ts);
		if (taken < 0)
			return (int)taken;
		if (!taken)
			break;
		map->mark_sz = taken < MARK_SZ ? (size_t)taken : MARK_SZ;
		memcpy(map->mark, map->buf + taken - map->mark_sz, map->mark_sz);
		map->read_sz += (uint64_t)taken;
	}
	return flush(map, ts);
}

/* Code that has moved keeps the name of the record that made it. */
static int take_record(struct perf_map *map, const struct jitdump_record *record, uint64_t ts)
{
	uint64_t tag = map->read_sz;
	int err = 0;

	if (record->kind == JITDUMP_OTHER)
		return 0;
	if (record->kind == JITDUMP_MOVE) {
		err = flush(map, ts);
		tag = code_map__find(map->code, record->moved_from, ts);
	}
	return err || tag == CODE_MAP_NONE ? err : take_range(map, record->addr, record->code_sz, tag, ts);
}

/* Each record is read by itself: most of a file is code. */
static int read_dump_part(struct perf_map *map, uint64_t until, uint64_t ts)
{
	struct jitdump_record record;
	int err = 0;

	if (!map->read_sz) {
		ssize_t got = pread(map->fd, map->buf, JITDUMP_READ_SZ, 0);

		map->read_sz = jitdump_begin(map->buf, got > 0 ? (size_t)got : 0);
		map->full = !map->read_sz;
	}
	for (int i = 0; i < DUMP_RECORDS && !err && map->read_sz < until && !map->full; i++) {
		ssize_t got = pread(map->fd, map->buf, JITDUMP_READ_SZ, (off_t)map->read_sz);

		if (got <= 0 || !jitdump_parse(map->buf, (size_t)got, &record) || record.sz > until - map->read_sz)
			break;
		err = take_record(map, &record, ts);
		map->read_sz += record.sz;
	}
	return err ?: flush(map, ts);
}

int perf_map__refresh(struct perf_map *map, uint64_t now_ts)
{
	struct stat st;
	uint64_t sz;

	if (map->looked_ts && now_ts - map->looked_ts < LOOK_EVERY_NS)
		return 0;
	map->looked_ts = now_ts;
	if (!map->opened_ts || now_ts - map->opened_ts >= REOPEN_EVERY_NS) {
		map->opened_ts = now_ts;
		reopen(map);
	}
	if (map->fd < 0 || fstat(map->fd, &st) || st.st_size < 0)
		return 0;
	sz = (uint64_t)st.st_size < PERF_MAP_SZ_MAX ? (uint64_t)st.st_size : PERF_MAP_SZ_MAX;
	if (map->is_dump)
		return sz > map->read_sz ? read_dump_part(map, sz, now_ts) : 0;
	if (map->read_sz && (sz < map->read_sz || (sz > map->read_sz && !is_same_text(map))))
		forget(map);
	return sz > map->read_sz ? read_part(map, sz, now_ts) : 0;
}

struct perf_map *perf_map__new(pid_t pid)
{
	struct perf_map *map = calloc(1, sizeof(*map));

	if (map)
		map->code = code_map__new();
	if (!map || !map->code) {
		free(map);
		return NULL;
	}
	map->pid = pid;
	map->fd = -1;
	forget(map);
	return map;
}

void perf_map__free(struct perf_map *map)
{
	if (!map)
		return;
	if (map->fd >= 0)
		close(map->fd);
	code_map__free(map->code);
	vec_free(&map->batch);
	free(map);
}

bool perf_map__is_there(const struct perf_map *map)
{
	return code_map__cnt(map->code) > 0;
}

const char *perf_map__find(struct perf_map *map, uint64_t addr, uint64_t ts)
{
	uint64_t tag = code_map__find(map->code, addr, ts), start, sz;
	struct jitdump_record record;
	struct known_name *known;
	size_t name_len, len;
	const char *name;
	ssize_t got;

	if (tag == CODE_MAP_NONE)
		return NULL;
	known = &map->names[tag * 0x9e3779b97f4a7c15ULL >> 32 & (NAMES_CNT - 1)];
	if (known->tag == tag)
		return known->text;
	got = pread(map->fd, map->buf, 4096, (off_t)tag);
	len = got > 0 ? (size_t)got : 0;
	if (map->is_dump) {
		if (!jitdump_parse(map->buf, len, &record) || record.kind != JITDUMP_LOAD)
			return NULL;
		known->tag = tag;
		perf_map_shown(record.name, record.name_len, known->text, sizeof(known->text));
		return known->text;
	}
	if (memchr(map->buf, '\n', len))
		len = (size_t)((char *)memchr(map->buf, '\n', len) - map->buf);
	/* The line is there no longer: the file is being written anew. */
	if (!perf_map_parse(map->buf, len, &start, &sz, &name, &name_len))
		return NULL;
	known->tag = tag;
	perf_map_shown(name, name_len, known->text, sizeof(known->text));
	return known->text;
}
