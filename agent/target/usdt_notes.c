// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/usdt_notes.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far above any real file: QEMU has some 10,000 markers, each of them takes about 100 bytes. */
#define NOTES_SZ_MAX   (64ULL << 20)
#define MARKER_CNT_MAX 200000
#define NAME_LEN_MAX   256
#define NOTE_STAPSDT   3

struct reader {
	const struct elf_image *image;
	uint64_t base_addr; /* of .stapsdt.base, by which prelinking is known; 0: none */
	struct elf_rows *rows;
};

/* Where an address lies in the file: 0 or -ENOENT. */
static int file_off_at(const struct elf_image *image, uint64_t addr, bool exec, uint64_t *file_off)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);

	for (size_t i = 0; i < cnt; i++) {
		if (segments[i].type != PT_LOAD || segments[i].exec != exec || addr < segments[i].addr ||
		    addr - segments[i].addr >= segments[i].file_sz)
			continue;
		*file_off = addr - segments[i].addr + segments[i].file_off;
		return 0;
	}
	return -ENOENT;
}

/* The next of the strings in a note, NULL when it does not end before `end`. */
static const char *next_string(const char **cursor, const char *end)
{
	const char *text = *cursor, *nul = text < end ? memchr(text, '\0', end - text) : NULL;

	if (!nul)
		return NULL;
	*cursor = nul + 1;
	return text;
}

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len <= NAME_LEN_MAX && !strchr(text, ' ') && elf_rows_is_name(text, len);
}

/* One note's description: 0 when taken or of no use, -ENOMEM. */
static int marker_add(struct reader *reader, const char *desc, size_t sz)
{
	uint64_t addrs[3]; /* the site, .stapsdt.base as linked, the semaphore */
	const char *end = desc + sz, *provider, *name, *args;
	struct elf_marker marker = {0};
	uint64_t moved;

	if (sz < sizeof(addrs) || reader->rows->markers.cnt >= MARKER_CNT_MAX)
		return 0;
	memcpy(addrs, desc, sizeof(addrs));
	desc += sizeof(addrs);
	provider = next_string(&desc, end);
	name = provider ? next_string(&desc, end) : NULL;
	args = name ? next_string(&desc, end) : NULL;
	if (!args || !is_name(provider) || !is_name(name))
		return 0;
	moved = reader->base_addr ? reader->base_addr - addrs[1] : 0;
	marker.addr = addrs[0] + moved;
	if (file_off_at(reader->image, marker.addr, true, &marker.file_off))
		return 0;
	/* A marker whose counter is nowhere would never be turned on. */
	if (addrs[2] && file_off_at(reader->image, addrs[2] + moved, false, &marker.semaphore_off))
		return 0;
	marker.arg_cnt = usdt_args_parse(args, marker.args);
	if (marker.arg_cnt > USDT_ARG_MAX)
		marker.arg_cnt = USDT_ARG_MAX;
	marker.provider_off = elf_rows_add_name(reader->rows, provider, strlen(provider));
	marker.name_off = elf_rows_add_name(reader->rows, name, strlen(name));
	if (marker.provider_off == ELF_ROWS_NO_NAME || marker.name_off == ELF_ROWS_NO_NAME)
		return -ENOMEM;
	return vec_push(&reader->rows->markers, marker);
}

/* Names and descriptions are padded to four bytes; a note that goes beyond the section ends it. */
static int notes_read(struct reader *reader, const char *notes, size_t sz)
{
	static const char owner[] = "stapsdt";
	size_t pos = 0;
	int err = 0;

	while (!err && sz - pos >= sizeof(Elf64_Nhdr)) {
		size_t name_sz, desc_sz, left;
		Elf64_Nhdr note;

		memcpy(&note, notes + pos, sizeof(note));
		pos += sizeof(note);
		left = sz - pos;
		name_sz = ((size_t)note.n_namesz + 3) & ~3UL;
		desc_sz = ((size_t)note.n_descsz + 3) & ~3UL;
		if (name_sz > left || note.n_descsz > left - name_sz)
			return 0;
		if (note.n_type == NOTE_STAPSDT && note.n_namesz == sizeof(owner) &&
		    !memcmp(notes + pos, owner, sizeof(owner)))
			err = marker_add(reader, notes + pos + name_sz, note.n_descsz);
		if (desc_sz > left - name_sz)
			return err;
		pos += name_sz + desc_sz;
	}
	return err;
}

int usdt_notes_read(const struct elf_image *image, struct elf_rows *rows)
{
	const struct elf_section *notes = elf_image__section(image, ".note.stapsdt");
	const struct elf_section *base = elf_image__section(image, ".stapsdt.base");
	struct reader reader = {.image = image, .base_addr = base ? base->addr : 0, .rows = rows};
	char *bytes;
	int err;

	if (!notes || notes->type != SHT_NOTE || !notes->size || notes->size > NOTES_SZ_MAX)
		return 0;
	bytes = elf_image__copy(image, notes->file_off, notes->size, NOTES_SZ_MAX);
	if (!bytes)
		return errno == ENOMEM ? -ENOMEM : 0;
	err = notes_read(&reader, bytes, notes->size);
	free(bytes);
	elf_rows_count(rows);
	return err;
}
