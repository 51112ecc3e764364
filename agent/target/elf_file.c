// SPDX-License-Identifier: GPL-2.0-or-later
/* What whylate-symbols has read of the file, see elf_reader.h, and looking things up in it. */
#include "target/elf_file.h"

#include "base/vec.h"
#include "target/elf_image.h"
#include "target/elf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct other {
	const char *name;
	uint32_t kind; /* enum elf_symbol_kind */
};

struct elf_file {
	VEC(struct elf_function) functions;
	VEC(struct elf_function) addressed; /* by address, one of every address */
	VEC(struct other) others;           /* data and IFUNC, sorted by name */
	struct elf_rows rows;               /* the head, the names, and the libraries */
};

static int functions_take(struct elf_file *file, const struct elf_row *row, size_t cnt, bool by_addr)
{
	struct elf_function *functions = cnt ? calloc(cnt, sizeof(*functions)) : NULL;

	if (cnt && !functions)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++, row++)
		functions[i] = (struct elf_function){.name = file->rows.names.items + row->name_off,
						     .addr = row->addr,
						     .file_off = row->file_off,
						     .size = row->size,
						     .ambiguous = row->flags & ELF_ROW_AMBIGUOUS,
						     .is_ifunc = row->flags & ELF_ROW_IFUNC};
	if (by_addr) {
		file->addressed.items = functions;
		file->addressed.cnt = cnt;
	} else {
		file->functions.items = functions;
		file->functions.cnt = cnt;
	}
	return 0;
}

/* The names stay; the rows go. */
static int rows_take(struct elf_file *file)
{
	struct elf_rows *rows = &file->rows;
	int err = functions_take(file, rows->functions.items, rows->functions.cnt, false);

	vec_free(&rows->functions);
	if (!err)
		err = functions_take(file, rows->addressed.items, rows->addressed.cnt, true);
	vec_free(&rows->addressed);
	if (!err)
		err = vec_reserve(&file->others, rows->others.cnt);
	for (size_t i = 0; !err && i < rows->others.cnt; i++) {
		const struct elf_other *row = &rows->others.items[i];
		struct other other = {rows->names.items + row->name_off, row->kind};

		file->others.items[file->others.cnt++] = other;
	}
	vec_free(&rows->others);
	return err;
}

static int load(struct elf_file *file, const struct elf_read *read)
{
	struct stat stat;
	int err;

	if (fstat(read->fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENOEXEC;
	err = elf_header_check(read->fd, stat.st_size, read->code && !read->packed_sz);
	if (!err)
		err = elf_reader_read(read, &file->rows);
	/* A file that is given up has functions all the same, of which anything may be true. */
	if (err == -ENODATA && !read->code) {
		file->rows.head.marks = UINT8_MAX;
		return 0;
	}
	return err ? err : rows_take(file);
}

static struct elf_file *open_read(const struct elf_read *read)
{
	struct elf_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file) {
		errno = ENOMEM;
		return NULL;
	}
	err = load(file, read);
	if (err) {
		elf_file__free(file);
		errno = -err;
		return NULL;
	}
	return file;
}

/* Not blocking: what calls itself a library may be a pipe. */
static struct elf_file *open_path(const char *path, struct elf_read *read)
{
	struct elf_file *file;
	int saved;

	read->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (read->fd < 0)
		return NULL;
	file = open_read(read);
	saved = errno;
	close(read->fd);
	errno = saved;
	return file;
}

struct elf_file *elf_file__open(const char *path)
{
	struct elf_read read = {0};

	return open_path(path, &read);
}

struct elf_file *elf_file__open_debug(const char *path, const struct elf_file *of, uint64_t *symbols_left)
{
	struct elf_read read = {.code = of->rows.head.code, .code_cnt = of->rows.head.code_cnt, .left = symbols_left};

	return open_path(path, &read);
}

struct elf_file *elf_file__open_packed(int fd, uint64_t off, uint64_t sz, const struct elf_file *of,
				       uint64_t *symbols_left)
{
	struct elf_read read = {.fd = fd,
				.packed_off = off,
				.packed_sz = sz,
				.code = of->rows.head.code,
				.code_cnt = of->rows.head.code_cnt,
				.left = symbols_left};

	return open_read(&read);
}

void elf_file__free(struct elf_file *file)
{
	if (!file)
		return;
	vec_free(&file->functions);
	vec_free(&file->addressed);
	vec_free(&file->others);
	elf_rows_free(&file->rows);
	free(file);
}

size_t elf_file__sz(const struct elf_file *file)
{
	if (!file)
		return 0;
	return (file->functions.cnt + file->addressed.cnt) * sizeof(struct elf_function) +
	       file->others.cnt * sizeof(struct other) + elf_rows_sz(&file->rows);
}

size_t elf_file__functions(const struct elf_file *file, const struct elf_function **functions)
{
	*functions = file->functions.items;
	return file->functions.cnt;
}

size_t elf_file__by_addr(const struct elf_file *file, const struct elf_function **functions)
{
	*functions = file->addressed.items;
	return file->addressed.cnt;
}

void elf_file__drop_by_addr(struct elf_file *file)
{
	vec_free(&file->addressed);
}

static int function_name_cmp(const void *name, const void *function)
{
	return strcmp(name, ((const struct elf_function *)function)->name);
}

static int other_name_cmp(const void *name, const void *other)
{
	return strcmp(name, ((const struct other *)other)->name);
}

const struct elf_function *elf_file__find(const struct elf_file *file, const char *name)
{
	if (!file->functions.cnt)
		return NULL;
	return bsearch(name, file->functions.items, file->functions.cnt, sizeof(file->functions.items[0]),
		       function_name_cmp);
}

enum elf_symbol_kind elf_file__symbol_kind(const struct elf_file *file, const char *name)
{
	const struct other *other = NULL;

	if (elf_file__find(file, name))
		return ELF_SYMBOL_FUNCTION;
	if (file->others.cnt)
		other = bsearch(name, file->others.items, file->others.cnt, sizeof(*other), other_name_cmp);
	return other ? (enum elf_symbol_kind)other->kind : ELF_SYMBOL_NONE;
}

size_t elf_file__libraries(const struct elf_file *file, const struct elf_library **libraries)
{
	*libraries = file->rows.libraries.items;
	return file->rows.libraries.cnt;
}

const char *elf_file__library_name(const struct elf_file *file, const struct elf_library *library)
{
	return file->rows.names.items + library->name_off;
}

bool elf_file__unwinds(const struct elf_file *file)
{
	return file->rows.head.marks & ELF_MARK_UNWINDS;
}

uint8_t elf_file__marks(const struct elf_file *file)
{
	return file->rows.head.marks;
}

bool elf_file__is_go(const struct elf_file *file)
{
	return file->rows.head.is_go;
}

const struct elf_rows_head *elf_file__head(const struct elf_file *file)
{
	return &file->rows.head;
}

const char *elf_file__build_id(const struct elf_file *file)
{
	return file->rows.head.build_id;
}

void elf_file_build_id(const char *path, char build_id[ELF_ROWS_BUILD_ID_HEX])
{
	struct elf_read read = {.what = ELF_READ_HEAD};
	struct elf_file *file = open_path(path, &read);

	snprintf(build_id, ELF_ROWS_BUILD_ID_HEX, "%s", file ? elf_file__build_id(file) : "");
	elf_file__free(file);
}
