// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/usdt.h"

#include "base/order.h"
#include "target/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far above any real file: QEMU has some 10,000 markers, each of them takes about 100 bytes. */
#define NOTES_SZ_MAX (64ULL << 20)
#define SITE_CNT_MAX 1000000
#define NAME_LEN_MAX 256
#define NOTE_STAPSDT 3

struct reader {
	const struct elf_image *image;
	uint64_t base_addr; /* of .stapsdt.base, by which prelinking is known; 0: none */
	usdt_sites *sites;
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

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	return len && len <= NAME_LEN_MAX;
}

/* One note's description: 0 when taken or of no use, -ENOMEM. */
static int site_add(struct reader *reader, const char *desc, size_t sz)
{
	uint64_t addrs[3]; /* the site, .stapsdt.base as linked, the semaphore */
	const char *end = desc + sz, *provider, *name, *args;
	struct usdt_site site = {0};
	uint64_t moved;
	unsigned cnt;

	if (sz < sizeof(addrs) || reader->sites->cnt >= SITE_CNT_MAX)
		return 0;
	memcpy(addrs, desc, sizeof(addrs));
	desc += sizeof(addrs);
	provider = next_string(&desc, end);
	name = provider ? next_string(&desc, end) : NULL;
	args = name ? next_string(&desc, end) : NULL;
	if (!args || !is_name(provider) || !is_name(name))
		return 0;
	moved = reader->base_addr ? reader->base_addr - addrs[1] : 0;
	site.addr = addrs[0] + moved;
	if (file_off_at(reader->image, site.addr, true, &site.file_off))
		return 0;
	/* A marker whose counter is nowhere would never be turned on. */
	if (addrs[2] && file_off_at(reader->image, addrs[2] + moved, false, &site.semaphore_off))
		return 0;
	cnt = usdt_args_parse(args, site.args);
	site.arg_cnt = cnt < USDT_ARG_MAX ? cnt : USDT_ARG_MAX;
	site.provider = strdup(provider);
	site.name = strdup(name);
	if (site.provider && site.name && !vec_push(reader->sites, site))
		// cppcheck-suppress memleak ; vec_push() has taken it
		return 0;
	free(site.provider);
	free(site.name);
	return -ENOMEM;
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
			err = site_add(reader, notes + pos + name_sz, note.n_descsz);
		if (desc_sz > left - name_sz)
			return err;
		pos += name_sz + desc_sz;
	}
	return err;
}

ORDER(site_cmp, struct usdt_site, strcmp(a->provider, b->provider), strcmp(a->name, b->name),
      BY(a->file_off, b->file_off));

static int sites_read(struct reader *reader)
{
	const struct elf_section *notes = elf_image__section(reader->image, ".note.stapsdt");
	const struct elf_section *base = elf_image__section(reader->image, ".stapsdt.base");
	char *bytes;
	int err;

	if (!notes || notes->type != SHT_NOTE || notes->flags & SHF_COMPRESSED || !notes->size ||
	    notes->size > NOTES_SZ_MAX)
		return 0;
	reader->base_addr = base ? base->addr : 0;
	bytes = elf_image__copy(reader->image, notes->file_off, notes->size, NOTES_SZ_MAX);
	if (!bytes)
		return errno == ENOMEM ? -ENOMEM : 0;
	err = notes_read(reader, bytes, notes->size);
	free(bytes);
	return err;
}

int usdt_sites_read(const char *path, usdt_sites *sites)
{
	struct elf_image *image = elf_image__open(path);
	struct reader reader = {.image = image, .sites = sites};
	int err;

	if (!image)
		return -errno;
	err = sites_read(&reader);
	elf_image__free(image);
	if (err)
		usdt_sites_free(sites);
	else if (sites->cnt)
		vec_sort(sites, site_cmp);
	return err;
}

void usdt_sites_free(usdt_sites *sites)
{
	for (size_t i = 0; i < sites->cnt; i++) {
		free(sites->items[i].provider);
		free(sites->items[i].name);
	}
	vec_free(sites);
}
