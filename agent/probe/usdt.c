// SPDX-License-Identifier: GPL-2.0-only
/* Read as elf_file.c reads: by pread through libelf, the header checked first, everything copied out. */
#include "probe/usdt.h"

#include "target/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far above any real file: QEMU has some 10,000 markers, each of them takes about 100 bytes. */
#define NOTES_SZ_MAX  (64ULL << 20)
#define SITE_CNT_MAX  1000000
#define NAME_LEN_MAX  256
#define SEGMENTS_MAX  64
#define NOTE_STAPSDT  3
#define NOTE_ADDR_CNT 3

struct segment {
	uint64_t addr, file_off, sz;
	bool code;
};

struct reader {
	Elf *elf;
	uint64_t file_sz;
	struct segment segments[SEGMENTS_MAX];
	size_t segment_cnt;
	uint64_t base_addr; /* of .stapsdt.base, by which prelinking is known; 0: none */
	usdt_sites *sites;
};

static int segments_read(struct reader *reader)
{
	size_t cnt;
	GElf_Phdr phdr;

	if (elf_getphdrnum(reader->elf, &cnt))
		return -ENOEXEC;
	for (size_t i = 0; i < cnt && reader->segment_cnt < SEGMENTS_MAX; i++) {
		if (!gelf_getphdr(reader->elf, i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type != PT_LOAD || phdr.p_offset > reader->file_sz ||
		    phdr.p_filesz > reader->file_sz - phdr.p_offset || phdr.p_vaddr > UINT64_MAX - phdr.p_filesz)
			continue;
		reader->segments[reader->segment_cnt++] =
			(struct segment){phdr.p_vaddr, phdr.p_offset, phdr.p_filesz, phdr.p_flags & PF_X};
	}
	return 0;
}

/* Where an address lies in the file: 0 or -ENOENT. */
static int file_off_at(const struct reader *reader, uint64_t addr, bool code, uint64_t *file_off)
{
	for (size_t i = 0; i < reader->segment_cnt; i++) {
		const struct segment *segment = &reader->segments[i];

		if (segment->code == code && addr >= segment->addr && addr - segment->addr < segment->sz) {
			*file_off = addr - segment->addr + segment->file_off;
			return 0;
		}
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
	uint64_t addrs[NOTE_ADDR_CNT]; /* the site, .stapsdt.base as linked, the semaphore */
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
	if (file_off_at(reader, site.addr, true, &site.file_off))
		return 0;
	/* A marker whose counter is nowhere would never be turned on. */
	if (addrs[2] && file_off_at(reader, addrs[2] + moved, false, &site.semaphore_off))
		return 0;
	cnt = usdt_args_parse(args, site.args);
	site.arg_cnt = cnt < USDT_ARG_MAX ? cnt : USDT_ARG_MAX;
	site.provider = strdup(provider);
	site.name = strdup(name);
	if (site.provider && site.name && !vec_push(reader->sites, site))
		return 0;
	free(site.provider);
	free(site.name);
	return -ENOMEM;
}

static int notes_read(struct reader *reader, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	size_t pos = 0, next, name_off, desc_off;
	Elf_Data *notes;
	GElf_Nhdr note;
	int err = 0;

	if (shdr->sh_type != SHT_NOTE || shdr->sh_flags & SHF_COMPRESSED || shdr->sh_size > NOTES_SZ_MAX ||
	    shdr->sh_offset > reader->file_sz || shdr->sh_size > reader->file_sz - shdr->sh_offset)
		return 0;
	notes = elf_getdata(scn, NULL);
	if (!notes || !notes->d_buf)
		return 0;
	while (!err && (next = gelf_getnote(notes, pos, &note, &name_off, &desc_off)) > pos) {
		pos = next;
		if (name_off > notes->d_size || note.n_namesz > notes->d_size - name_off || desc_off > notes->d_size ||
		    note.n_descsz > notes->d_size - desc_off)
			break;
		if (note.n_type == NOTE_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
		    !memcmp((char *)notes->d_buf + name_off, "stapsdt", sizeof("stapsdt")))
			err = site_add(reader, (char *)notes->d_buf + desc_off, note.n_descsz);
	}
	return err;
}

static int sections_read(struct reader *reader)
{
	Elf_Scn *scn = NULL;
	size_t names_idx;
	GElf_Shdr shdr;
	int err = 0;

	if (elf_getshdrstrndx(reader->elf, &names_idx) || !names_idx)
		return 0;
	/* Twice, as the base may come after the notes. */
	for (int round = 0; round < 2 && !err; round++) {
		while (!err && (scn = elf_nextscn(reader->elf, scn))) {
			const char *name =
				gelf_getshdr(scn, &shdr) ? elf_strptr(reader->elf, names_idx, shdr.sh_name) : NULL;

			if (name && !round && !strcmp(name, ".stapsdt.base"))
				reader->base_addr = shdr.sh_addr;
			if (name && round && !strcmp(name, ".note.stapsdt"))
				err = notes_read(reader, scn, &shdr);
		}
		scn = NULL;
	}
	return err;
}

static int site_cmp(const void *left, const void *right)
{
	const struct usdt_site *a = left, *b = right;
	int order = strcmp(a->provider, b->provider);

	if (!order)
		order = strcmp(a->name, b->name);
	if (order)
		return order;
	return a->file_off < b->file_off ? -1 : a->file_off > b->file_off;
}

static int load(int fd, usdt_sites *sites)
{
	struct reader reader = {.sites = sites};
	struct stat stat;
	int err;

	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -ENOEXEC;
	reader.file_sz = stat.st_size;
	err = elf_file_check(fd, reader.file_sz);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	reader.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!reader.elf || elf_kind(reader.elf) != ELF_K_ELF || gelf_getclass(reader.elf) != ELFCLASS64)
		err = -ENOEXEC;
	if (!err)
		err = segments_read(&reader);
	if (!err)
		err = sections_read(&reader);
	elf_end(reader.elf);
	return err;
}

int usdt_sites_read(const char *path, usdt_sites *sites)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	err = load(fd, sites);
	close(fd);
	if (err)
		usdt_sites_free(sites);
	else if (sites->cnt)
		qsort(sites->items, sites->cnt, sizeof(*sites->items), site_cmp);
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
