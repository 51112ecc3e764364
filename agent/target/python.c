// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/python.h"

#include "base/clock.h"
#include "base/random.h"
#include "target/elf_image.h"
#include "target/elf_reader.h"
#include "target/proc_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names that are kept: a power of two. */
#define NAMES_CNT 4096
#define NAME_SZ   192
/* A code object's place may be another one's by now. */
#define RENEW_NS 1000000000ULL
/* Of a string that is read. */
#define TEXT_MAX 256

/* What a version has where; PyUnicodeObject's data lies behind `ascii_sz` or `compact_sz` bytes. */
struct python_offsets {
	struct python_layout layout;
	uint32_t code_name, code_qualname, code_filename, code_line;
	uint32_t ascii_sz, compact_sz;
	uint32_t gil;         /* in _PyRuntime, or, from 3.12 on, in an interpreter: a pointer to it */
	uint32_t main_interp; /* in _PyRuntime: a pointer; 0: the lock lies in _PyRuntime itself */
};

struct known_name {
	uint64_t code;
	uint64_t read_ts;
	uint64_t name, filename; /* the strings' addresses, by which a code object is known */
	uint32_t line;
	char text[NAME_SZ];
};

struct python {
	pid_t pid;
	int mem_fd;
	uint16_t version;
	struct python_offsets offsets;
	struct known_name *names[NAMES_CNT];
};

/* From CPython's own headers of each version; the unit test holds them against the interpreters that are there. */
static const struct python_offsets offsets_3_9 = {
	.layout = {.first_interp = 32,
		   .next_interp = 0,
		   .first_thread = 8,
		   .next_thread = 8,
		   .thread_interp = 16,
		   .thread_id = 176,
		   .thread_frame = 24,
		   .cframe_frame = PYTHON_NO_OFF,
		   .frame_back = 24,
		   .frame_code = 32,
		   .frame_mark = PYTHON_NO_OFF},
	.code_name = 112,
	.code_qualname = 112, /* it has none */
	.code_filename = 104,
	.code_line = 40,
	.ascii_sz = 48,
	.compact_sz = 72,
	.gil = 352,
};

static const struct python_offsets offsets_3_11 = {
	.layout = {.first_interp = 40,
		   .next_interp = 0,
		   .first_thread = 16,
		   .next_thread = 8,
		   .thread_interp = 16,
		   .thread_id = 152,
		   .thread_frame = 56,
		   .cframe_frame = 8,
		   .frame_back = 48,
		   .frame_code = 32,
		   .frame_mark = 68},
	.code_name = 120,
	.code_qualname = 128,
	.code_filename = 112,
	.code_line = 72,
	.ascii_sz = 48,
	.compact_sz = 72,
	.gil = 360,
};

static const struct python_offsets offsets_3_12 = {
	.layout = {.first_interp = 40,
		   .next_interp = 0,
		   .first_thread = 72,
		   .next_thread = 8,
		   .thread_interp = 16,
		   .thread_id = 136,
		   .thread_frame = 56,
		   .cframe_frame = 0,
		   .frame_back = 8,
		   .frame_code = 0,
		   .frame_mark = 70,
		   .mark_shim = 3},
	.code_name = 120,
	.code_qualname = 128,
	.code_filename = 112,
	.code_line = 68,
	.ascii_sz = 40,
	.compact_sz = 56,
	.gil = 384,
	.main_interp = 48,
};

/* --- the interpreter's file --------------------------------------------------------------------------------------- */

/* As the file says it itself, which it does from 3.11 on, or as it is called; 0: not known.  0 or -errno. */
static int version_of(const struct elf_image *image, const struct target_mapping *mapping, uint16_t *version)
{
	struct elf_variable variable;
	int err = elf_reader_variable(elf_image__fd(image), "Py_Version", STT_OBJECT, &variable);
	char base[NAME_MAX + 1];
	const char *python;
	unsigned minor;
	uint32_t word;

	if (err && err != -ENOENT)
		return err;
	if (!err && elf_image__read_addr(image, variable.value, &word, sizeof(word)) == sizeof(word)) {
		*version = (uint16_t)(word >> 16);
		return 0;
	}
	target_mapping_basename(mapping, base, sizeof(base));
	python = strstr(base, "python3.");
	*version = python && sscanf(python, "python3.%u", &minor) == 1 && minor < 11 ? (uint16_t)(0x0300 | minor) : 0;
	return 0;
}

/* --- where things lie --------------------------------------------------------------------------------------------- */

static bool read_memory(const struct python *python, uint64_t addr, void *buf, size_t sz)
{
	return proc_mem_read(python->mem_fd, addr, buf, sz);
}

static uint64_t read_word(const struct python *python, uint64_t addr)
{
	uint64_t word;

	return read_memory(python, addr, &word, sizeof(word)) ? word : 0;
}

/* How _PyRuntime begins from 3.13 on: struct _Py_DebugOffsets, as far as it is of interest. */
struct debug_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t runtime_sz, finalizing, interpreters_head;
	uint64_t interp_sz, interp_id, interp_next, interp_threads, interp_rest[4], interp_gil, gil_rest[4];
	uint64_t thread_sz, thread_prev, thread_next, thread_interp, thread_frame, thread_id, thread_rest[3];
	uint64_t frame_sz, frame_back, frame_code, frame_instr, frame_locals, frame_owner;
	uint64_t code_sz, code_filename, code_name, code_qualname, code_lines, code_line;
};

static int read_debug_offsets(struct python *python, uint64_t runtime)
{
	struct python_offsets *offsets = &python->offsets;
	struct debug_offsets from;

	if (!read_memory(python, runtime, &from, sizeof(from)))
		return -EAGAIN;
	if (memcmp(from.cookie, "xdebugpy", 8) || from.version >> 16 != python->version)
		return -EAGAIN;
	if (from.free_threaded)
		return -ENOTSUP;
	const struct {
		uint64_t from;
		uint32_t *to;
	} each[] = {
		{from.interpreters_head, &offsets->layout.first_interp},
		{from.interp_next, &offsets->layout.next_interp},
		{from.interp_threads, &offsets->layout.first_thread},
		{from.thread_next, &offsets->layout.next_thread},
		{from.thread_interp, &offsets->layout.thread_interp},
		{from.thread_id, &offsets->layout.thread_id},
		{from.thread_frame, &offsets->layout.thread_frame},
		{from.frame_back, &offsets->layout.frame_back},
		{from.frame_code, &offsets->layout.frame_code},
		{from.frame_owner, &offsets->layout.frame_mark},
		{from.code_filename, &offsets->code_filename},
		{from.code_name, &offsets->code_name},
		{from.code_qualname, &offsets->code_qualname},
		{from.code_line, &offsets->code_line},
		{from.interp_gil, &offsets->gil},
	};

	/* Unicode strings and the marks of frames are as in 3.12. */
	*offsets = offsets_3_12;
	offsets->layout.cframe_frame = PYTHON_NO_OFF;
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		if (each[i].from > 1 << 20)
			return -ENOTSUP;
		*each[i].to = (uint32_t)each[i].from;
	}
	/* It lies behind the pointer to the first one. */
	offsets->main_interp = offsets->layout.first_interp + sizeof(uint64_t);
	return 0;
}

static int choose_offsets(struct python *python, uint64_t runtime)
{
	uint64_t interp, thread;
	int err = 0;

	switch (python->version) {
	case 0x0309:
	case 0x030a:
		python->offsets = offsets_3_9;
		break;
	case 0x030b:
		python->offsets = offsets_3_11;
		break;
	case 0x030c:
		python->offsets = offsets_3_12;
		break;
	case 0x030d:
		err = read_debug_offsets(python, runtime);
		break;
	default:
		err = -ENOTSUP;
	}
	if (err)
		return err;
	python->offsets.layout.runtime = runtime;
	/* What it says must fit: the first thread of an interpreter names that interpreter. */
	interp = read_word(python, runtime + python->offsets.layout.first_interp);
	thread = interp ? read_word(python, interp + python->offsets.layout.first_thread) : 0;
	if (!thread)
		return -EAGAIN;
	return read_word(python, thread + python->offsets.layout.thread_interp) == interp ? 0 : -ENOTSUP;
}

/* -ENOENT: the file is none that has the interpreter. */
static int open_in(struct python *python, const struct target_mapping *mapping)
{
	struct elf_image *image;
	struct elf_variable runtime;
	uint64_t bias;
	char path[PATH_MAX];
	int err = -ENOENT;

	if (target_mapping_file(python->pid, mapping, path, sizeof(path)))
		return -ENOENT;
	image = elf_image__open(path);
	if (!image)
		return -ENOENT;
	err = elf_reader_variable(elf_image__fd(image), "_PyRuntime", STT_OBJECT, &runtime);
	if (!err && !elf_image__bias(image, mapping->start, mapping->end, mapping->file_off, &bias))
		err = -ENOENT;
	if (!err)
		err = version_of(image, mapping, &python->version);
	if (!err)
		err = choose_offsets(python, runtime.value + bias);
	elf_image__free(image);
	return err;
}

/* The executable, of which another program may be made, and what is called so. */
static bool may_have_it(const target_mappings *mappings, size_t idx, bool first)
{
	char base[NAME_MAX + 1];

	target_mapping_basename(&mappings->items[idx], base, sizeof(base));
	return first || strstr(base, "python3");
}

int python__open(pid_t pid, const target_mappings *mappings, struct python **opened)
{
	struct python *python = calloc(1, sizeof(*python));
	bool first = true;
	int err = -ENOENT;

	if (!python)
		return -ENOMEM;
	python->pid = pid;
	python->mem_fd = proc_mem_open(pid);
	if (python->mem_fd < 0)
		err = python->mem_fd;
	for (size_t i = 0; i < mappings->cnt && err == -ENOENT; i++) {
		if (!mappings->items[i].exec || mappings->items[i].path[0] != '/')
			continue;
		if (may_have_it(mappings, i, first))
			err = open_in(python, &mappings->items[i]);
		first = false;
	}
	if (err) {
		python__free(python);
		return err;
	}
	*opened = python;
	return 0;
}

static bool is_called_python(pid_t pid)
{
	char file[PATH_MAX];
	const char *base;

	proc_exe(pid, file, sizeof(file));
	base = strrchr(file, '/');
	return base && !strncmp(base + 1, "python3", 7);
}

size_t python_processes(pid_t *pids, size_t max)
{
	DIR *dir = proc_dir(".");
	size_t cnt = 0;
	pid_t pid;

	/* The directory has them by their numbers: those that began last come last. */
	while (dir && max && (pid = proc_next(dir)))
		if (is_called_python(pid))
			pids[cnt++ % max] = pid;
	dir_close(dir, 0);
	return cnt < max ? cnt : max;
}

void python__free(struct python *python)
{
	if (!python)
		return;
	if (python->mem_fd >= 0)
		close(python->mem_fd);
	for (int i = 0; i < NAMES_CNT; i++)
		free(python->names[i]);
	free(python);
}

const struct python_layout *python__layout(const struct python *python)
{
	return &python->offsets.layout;
}

uint16_t python__version(const struct python *python)
{
	return python->version;
}

/* Of its mutexes, condition variables and state, in all versions so far. */
#define GIL_SZ 208

bool python__is_gil(const struct python *python, uint64_t addr)
{
	const struct python_offsets *offsets = &python->offsets;
	uint64_t runtime = offsets->layout.runtime, gil = runtime + offsets->gil;

	if (offsets->main_interp) {
		uint64_t interp = read_word(python, runtime + offsets->main_interp);

		gil = interp ? read_word(python, interp + offsets->gil) : 0;
	}
	return gil && addr >= gil && addr - gil < GIL_SZ;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* A code point as UTF-8; what is none becomes '?'. */
static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = c < ' ' || c == 0x7f ? '?' : (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000 && (c < 0xd800 || c > 0xdfff)) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = '?';
	return 1;
}

/* PyASCIIObject's length and state; the characters lie behind it, one, two or four bytes each. */
#define UNICODE_LENGTH 16
#define UNICODE_STATE  32

/* The end of a string, at most TEXT_MAX characters of it. */
static bool read_text(const struct python *python, uint64_t addr, char *buf, size_t sz)
{
	uint32_t kind, state, skip;
	uint8_t bytes[TEXT_MAX * 4];
	size_t len = 0;
	uint64_t cnt;

	if (!read_memory(python, addr + UNICODE_LENGTH, &cnt, sizeof(cnt)) ||
	    !read_memory(python, addr + UNICODE_STATE, &state, sizeof(state)))
		return false;
	kind = state >> 2 & 7;
	if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4) || !cnt || cnt > PATH_MAX)
		return false;
	addr += state >> 6 & 1 ? python->offsets.ascii_sz : python->offsets.compact_sz;
	skip = cnt > TEXT_MAX ? (uint32_t)(cnt - TEXT_MAX) : 0;
	cnt -= skip;
	if (!read_memory(python, addr + (uint64_t)skip * kind, bytes, cnt * kind))
		return false;
	for (size_t i = 0; i < cnt && len + 5 < sz; i++) {
		uint32_t c = kind == 1   ? bytes[i]
			     : kind == 2 ? ((const uint16_t *)(const void *)bytes)[i]
					 : ((const uint32_t *)(const void *)bytes)[i];

		len += put_utf8(buf + len, c);
	}
	buf[len] = '\0';
	return true;
}

static bool read_name(const struct python *python, struct known_name *known)
{
	char name[128], filename[TEXT_MAX * 3 + 8], *base;

	if (!read_text(python, known->name, name, sizeof(name)) ||
	    !read_text(python, known->filename, filename, sizeof(filename)))
		return false;
	base = strrchr(filename, '/');
	snprintf(known->text, sizeof(known->text), "%s (%.48s:%u)", name, base ? base + 1 : filename, known->line);
	return true;
}

const char *python__name(struct python *python, uint64_t code)
{
	struct known_name **place = &python->names[random_mix(code) & (NAMES_CNT - 1)], now = {.code = code};
	uint64_t ts = monotonic_ns();

	if (*place && (*place)->code == code && ts - (*place)->read_ts < RENEW_NS)
		return (*place)->text;
	if (!read_memory(python, code + python->offsets.code_qualname, &now.name, sizeof(now.name)) ||
	    !read_memory(python, code + python->offsets.code_filename, &now.filename, sizeof(now.filename)) ||
	    !read_memory(python, code + python->offsets.code_line, &now.line, sizeof(now.line)))
		/* The process has ended, perhaps: what was known of it holds. */
		return *place && (*place)->code == code ? (*place)->text : NULL;
	if (*place && (*place)->code == code && (*place)->name == now.name && (*place)->filename == now.filename &&
	    (*place)->line == now.line) {
		(*place)->read_ts = ts;
		return (*place)->text;
	}
	if (!read_name(python, &now))
		return NULL;
	if (!*place)
		*place = malloc(sizeof(**place));
	if (!*place)
		return NULL;
	now.read_ts = ts;
	**place = now;
	return (*place)->text;
}

/* --- with the C stack --------------------------------------------------------------------------------------------- */

bool python_is_loop(const char *function)
{
	static const char loop[] = "_PyEval_EvalFrameDefault";

	/* Parts of it have further letters behind a dot. */
	return !strncmp(function, loop, sizeof(loop) - 1) && strchr(".", function[sizeof(loop) - 1]);
}

struct merge {
	const uint64_t *code;
	size_t code_cnt, at;
	struct python_merged *merged;
	size_t cnt, max;
};

static void merge_add(struct merge *merge, uint64_t code, size_t idx)
{
	if (merge->cnt < merge->max)
		merge->merged[merge->cnt++] = (struct python_merged){code, idx};
}

/* The frames of one call of the loop. */
static void merge_call(struct merge *merge)
{
	bool any = false;

	while (merge->at < merge->code_cnt) {
		uint64_t word = merge->code[merge->at++], code = word & ~(uint64_t)WL_PYTHON_CALL_ENDS;

		if (code)
			merge_add(merge, code, 0);
		any |= code != 0;
		/* The shim of a call that has only just begun has nothing inside of it. */
		if (any && word & WL_PYTHON_CALL_ENDS)
			return;
	}
}

size_t python_merge(const enum python_frame *frames, size_t frame_cnt, const uint64_t *code, size_t code_cnt,
		    struct python_merged *merged, size_t max)
{
	struct merge merge = {.code = code, .code_cnt = code_cnt, .merged = merged, .max = max};
	bool inside = true; /* of all Python frames, so far */

	for (size_t i = 0; i < frame_cnt; i++) {
		if (frames[i] == PYTHON_FRAME_EVAL) {
			merge_call(&merge);
			inside = false;
		} else if (inside || frames[i] == PYTHON_FRAME_OTHER) {
			merge_add(&merge, 0, i);
		}
	}
	/* The C stack was cut before. */
	while (merge.at < code_cnt)
		merge_call(&merge);
	return merge.cnt;
}
