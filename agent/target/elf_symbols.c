// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file is read at once and copied out, by pread rather than mmap: a mapped library that another process truncates
 * meanwhile raises SIGBUS.  The header is checked here before libelf sees the file.
 */
#include "target/elf_symbols.h"

#include "base/order.h"
#include "target/elf_image.h"
#include "target/nearest.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Far above any real file; they bound what a forged one can make us allocate. */
#define SYMBOLS_SZ_MAX   (128ULL << 20) /* of all tables and their strings */
#define NOTES_SZ_MAX     (1ULL << 20)
#define GO_NOTE_BUILD_ID 4
#define VERSION_HIDDEN   0x8000 /* in .gnu.version: not the default one */

/*
 * Among symbols of one name the lowest wins.  The version weighs most: programs of today are bound to the default one,
 * be it an IFUNC, and never reach the plain function that stays for old programs (memcpy of glibc).
 */
enum symbol_rank { RANK_WEAK = 1, RANK_LOCAL = 2, RANK_IFUNC = 4, RANK_DATA = 8, RANK_OLD_VERSION = 16 };

struct symbol {
	char *name;
	uint64_t addr;
	uint64_t size;
	uint32_t rank;
	uint32_t name_off; /* of what symbols_sort_out() has kept of it */
};

typedef VEC(struct symbol) symbols;

/* A string table up to its last NUL: every offset below sz leads to a terminated string. */
struct strings {
	char *text;
	size_t sz;
};

struct loader {
	Elf *elf;
	uint64_t file_sz;
	struct elf_rows *rows;
	bool is_debug_file;     /* of another file, whose segments count */
	uint64_t *symbols_left; /* bytes of symbols that may still be read; NULL: no limit */
	uint64_t tables_sz;
	symbols symbols;
	Elf_Scn *versions;
};

static void note_read(struct elf_rows_head *head, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	static const char digits[] = "0123456789abcdef";

	if (note->n_namesz == 4 && !memcmp(name, "Go\0", 4) && note->n_type == GO_NOTE_BUILD_ID)
		head->is_go = true;
	if (note->n_namesz != 4 || memcmp(name, "GNU", 4) || note->n_type != NT_GNU_BUILD_ID || !note->n_descsz ||
	    note->n_descsz > ELF_ROWS_BUILD_ID_SZ || head->build_id[0])
		return;
	for (size_t i = 0; i < note->n_descsz; i++) {
		head->build_id[2 * i] = digits[desc[i] >> 4];
		head->build_id[2 * i + 1] = digits[desc[i] & 15];
	}
}

static void notes_read(struct loader *loader, const GElf_Phdr *segment)
{
	size_t pos = 0, next, name_off, desc_off;
	Elf_Data *notes;
	GElf_Nhdr note;

	if (segment->p_filesz > NOTES_SZ_MAX || segment->p_offset > INT64_MAX)
		return;
	notes = elf_getdata_rawchunk(loader->elf, segment->p_offset, segment->p_filesz,
				     segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	if (!notes || !notes->d_buf)
		return;
	while ((next = gelf_getnote(notes, pos, &note, &name_off, &desc_off)) > pos) {
		pos = next;
		if (name_off > notes->d_size || note.n_namesz > notes->d_size - name_off || desc_off > notes->d_size ||
		    note.n_descsz > notes->d_size - desc_off)
			return;
		note_read(&loader->rows->head, &note, (char *)notes->d_buf + name_off,
			  (uint8_t *)notes->d_buf + desc_off);
	}
}

static int segments_read(struct loader *loader)
{
	struct elf_rows_head *head = &loader->rows->head;
	size_t segment_cnt, note_cnt = 0;
	GElf_Phdr segment;

	if (elf_getphdrnum(loader->elf, &segment_cnt))
		return -ENOEXEC;
	for (size_t i = 0; i < segment_cnt; i++) {
		if (!gelf_getphdr(loader->elf, i, &segment))
			return -ENOEXEC;
		if (segment.p_type == PT_NOTE && note_cnt++ < ELF_ROWS_CODE_MAX)
			notes_read(loader, &segment);
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || loader->is_debug_file)
			continue;
		if (segment.p_offset > loader->file_sz || segment.p_filesz > loader->file_sz - segment.p_offset ||
		    segment.p_vaddr > UINT64_MAX - segment.p_filesz || head->code_cnt == ELF_ROWS_CODE_MAX)
			return -ENOEXEC;
		head->code[head->code_cnt++] = (struct elf_code){segment.p_vaddr, segment.p_offset, segment.p_filesz};
	}
	return 0;
}

/* The file's bytes as they are; -ENOEXEC when they are not all there. */
static int strings_read(struct loader *loader, size_t scn_idx, struct strings *strings)
{
	Elf_Scn *scn = elf_getscn(loader->elf, scn_idx);
	Elf_Data *bytes;
	GElf_Shdr shdr;
	char *last;

	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_STRTAB || shdr.sh_flags & SHF_COMPRESSED ||
	    shdr.sh_size > SYMBOLS_SZ_MAX || shdr.sh_offset > loader->file_sz ||
	    shdr.sh_size > loader->file_sz - shdr.sh_offset)
		return -ENOEXEC;
	bytes = elf_rawdata(scn, NULL);
	if (!bytes || (bytes->d_size && !bytes->d_buf))
		return -ENOEXEC;
	last = bytes->d_size ? memrchr(bytes->d_buf, '\0', bytes->d_size) : NULL;
	strings->text = bytes->d_buf;
	strings->sz = last ? last + 1 - strings->text : 0;
	return 0;
}

static char *strings_at(const struct strings *strings, uint64_t off)
{
	return off < strings->sz ? strings->text + off : NULL;
}

static bool name_is_usable(const char *name)
{
	return *name != '@' && elf_rows_is_name(name, strnlen(name, NEAREST_NAME_MAX + 1));
}

static const struct elf_code *code_at(const struct loader *loader, uint64_t addr)
{
	const struct elf_code *code = loader->rows->head.code;

	for (size_t i = 0; i < loader->rows->head.code_cnt; i++)
		if (addr >= code[i].addr && addr - code[i].addr < code[i].sz)
			return &code[i];
	return NULL;
}

/* What the code cannot do without: imported, or its own. */
static uint8_t marks_of(const char *name, bool is_import)
{
	static const struct {
		const char *name;
		uint8_t marks;
		bool when_own; /* libc has some for others to use */
	} known[] = {
		{"__cxa_throw", ELF_MARK_UNWINDS, true},
		{"__gxx_personality_v0", ELF_MARK_UNWINDS, true},
		{"__cxa_begin_catch", ELF_MARK_UNWINDS | ELF_MARK_CATCHES, true},
		{"_Unwind_RaiseException", ELF_MARK_UNWINDS | ELF_MARK_CATCHES, true}, /* Rust, Ada, D */
		{"__gcc_personality_v0", ELF_MARK_CLEANS_UP, true},
		{"pthread_cancel", ELF_MARK_CANCELS, false},
		{"pthread_exit", ELF_MARK_EXITS, false},
		{"sigaltstack", ELF_MARK_SIGNALS, false},
		{"dlopen", ELF_MARK_LOADS, false},
		{"dlmopen", ELF_MARK_LOADS, false},
		{"swapcontext", ELF_MARK_SWITCHES, false},
		{"setcontext", ELF_MARK_SWITCHES, false},
		{"makecontext", ELF_MARK_SWITCHES, false},
		{"ASYNC_start_job", ELF_MARK_SWITCHES, false},
		{"SSL_waiting_for_async", ELF_MARK_SWITCHES, false},
		{"jump_fcontext", ELF_MARK_SWITCHES, true},
		{"co_switch", ELF_MARK_SWITCHES, true},
		{"coro_transfer", ELF_MARK_SWITCHES, true},
	};
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((is_import || known[i].when_own) && strlen(known[i].name) == len &&
		    !memcmp(name, known[i].name, len))
			return known[i].marks;
	return 0;
}

/* 0 when added or of no interest, -ENOMEM. */
static int symbol_add(struct loader *loader, const GElf_Sym *sym, char *name, bool hidden)
{
	struct symbol symbol = {.name = name, .addr = sym->st_value, .size = sym->st_size};
	const struct elf_code *code = code_at(loader, sym->st_value);
	const char *version = strchr(name, '@');

	loader->rows->head.marks |= marks_of(name, sym->st_shndx == SHN_UNDEF);
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
		break;
	case STT_GNU_IFUNC:
		symbol.rank = RANK_IFUNC;
		break;
	case STT_OBJECT:
	case STT_TLS:
	case STT_COMMON:
		symbol.rank = RANK_DATA;
		break;
	default:
		return 0;
	}
	if (sym->st_shndx == SHN_UNDEF || (!(symbol.rank & RANK_DATA) && !code))
		return 0;
	if (code && symbol.size > code->sz - (symbol.addr - code->addr))
		symbol.size = code->sz - (symbol.addr - code->addr);
	if (GELF_ST_BIND(sym->st_info) == STB_LOCAL)
		symbol.rank |= RANK_LOCAL;
	if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		symbol.rank |= RANK_WEAK;
	/* .symtab says foo@OLD and foo@@DEFAULT, .dynsym has a table beside it. */
	if (hidden || (version && version[1] != '@'))
		symbol.rank |= RANK_OLD_VERSION;
	return vec_push(&loader->symbols, symbol);
}

static bool version_is_hidden(Elf_Data *versions, size_t symbol_idx)
{
	GElf_Versym version;

	return versions && symbol_idx <= INT32_MAX && gelf_getversym(versions, symbol_idx, &version) &&
	       version & VERSION_HIDDEN;
}

/* Before anything of the table is read. */
static int budget_take(struct loader *loader, const GElf_Shdr *table)
{
	Elf_Scn *names = elf_getscn(loader->elf, table->sh_link);
	uint64_t sz = table->sh_size;
	GElf_Shdr shdr;

	/* Each is within the file, or is refused later. */
	if (names && gelf_getshdr(names, &shdr) && shdr.sh_size <= loader->file_sz)
		sz += shdr.sh_size;
	if (sz > SYMBOLS_SZ_MAX - loader->tables_sz || (loader->symbols_left && sz > *loader->symbols_left))
		return -EFBIG;
	loader->tables_sz += sz;
	if (loader->symbols_left)
		*loader->symbols_left -= sz;
	return 0;
}

/* All of one symbol table; its names lie in the string table as libelf has it. */
static int symbols_read(struct loader *loader, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data, *versions = NULL;
	struct strings strings;
	int err;

	if (shdr->sh_flags & SHF_COMPRESSED || shdr->sh_offset > loader->file_sz ||
	    shdr->sh_size > loader->file_sz - shdr->sh_offset)
		return -ENOEXEC;
	err = budget_take(loader, shdr);
	if (!err)
		err = strings_read(loader, shdr->sh_link, &strings);
	if (err)
		return err;
	data = elf_getdata(scn, NULL);
	if (!data || data->d_type != ELF_T_SYM || (data->d_size && !data->d_buf))
		return -ENOEXEC;
	if (!strings.sz)
		return 0;
	if (shdr->sh_type == SHT_DYNSYM && loader->versions)
		versions = elf_getdata(loader->versions, NULL);
	for (size_t i = 1; i < data->d_size / sizeof(Elf64_Sym); i++) {
		char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, i, &sym))
			return -ENOEXEC;
		name = strings_at(&strings, sym.st_name);
		if (!name || !name_is_usable(name))
			continue;
		err = symbol_add(loader, &sym, name, version_is_hidden(versions, i));
		if (err)
			return err;
	}
	return 0;
}

/* Only when all are read: tables share tails between names, and symbol_add() needed the versions. */
static void versions_cut(struct loader *loader)
{
	for (size_t i = 0; i < loader->symbols.cnt; i++)
		loader->symbols.items[i].name[strcspn(loader->symbols.items[i].name, "@")] = '\0';
}

static bool is_go_section(const char *name)
{
	static const char lines_table[] = ".gopclntab"; /* .data.rel.ro.gopclntab in position-independent programs */
	size_t len = strlen(name), tail_len = sizeof(lines_table) - 1;

	return !strcmp(name, ".go.buildinfo") || !strcmp(name, ".note.go.buildid") ||
	       (len >= tail_len && !strcmp(name + len - tail_len, lines_table));
}

/* Where the symbols are that the file has not. */
static void links_read(struct loader *loader)
{
	struct elf_rows_head *head = &loader->rows->head;
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(loader->elf, &crc);

	if (!link || strchr(link, '/') || strlen(link) >= sizeof(head->link))
		return;
	strcpy(head->link, link);
	head->link_crc = crc;
}

static void packed_note(struct loader *loader, const GElf_Shdr *shdr)
{
	struct elf_rows_head *head = &loader->rows->head;

	if (head->packed_sz || shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED ||
	    shdr->sh_offset > loader->file_sz || shdr->sh_size > loader->file_sz - shdr->sh_offset)
		return;
	head->packed_off = shdr->sh_offset;
	head->packed_sz = shdr->sh_size;
}

static int sections_read(struct loader *loader)
{
	Elf_Scn *tables[2] = {0}, *scn = NULL;
	struct strings section_names = {0};
	GElf_Shdr shdr;
	size_t names_idx;
	int err = 0;

	if (!elf_getshdrstrndx(loader->elf, &names_idx) && names_idx)
		strings_read(loader, names_idx, &section_names);
	while ((scn = elf_nextscn(loader->elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			return -ENOEXEC;
		name = strings_at(&section_names, shdr.sh_name);
		if (name && is_go_section(name))
			loader->rows->head.is_go = true;
		if (name && !loader->is_debug_file && !strcmp(name, ".gnu_debugdata"))
			packed_note(loader, &shdr);
		if (shdr.sh_type == SHT_SYMTAB && !tables[0])
			tables[0] = scn;
		if (shdr.sh_type == SHT_DYNSYM && !tables[1])
			tables[1] = scn;
		if (shdr.sh_type == SHT_GNU_versym && !loader->versions && !(shdr.sh_flags & SHF_COMPRESSED) &&
		    shdr.sh_size <= SYMBOLS_SZ_MAX)
			loader->versions = scn;
	}
	if (!loader->is_debug_file)
		links_read(loader);
	for (size_t i = 0; i < 2 && !err; i++)
		if (tables[i])
			err = gelf_getshdr(tables[i], &shdr) ? symbols_read(loader, tables[i], &shdr) : -ENOEXEC;
	versions_cut(loader);
	return err;
}

ORDER(symbol_cmp, struct symbol, strcmp(a->name, b->name), BY(a->rank, b->rank), BY(a->addr, b->addr));

/* The best symbol of every name, to where its kind belongs. */
static int symbols_sort_out(struct loader *loader)
{
	struct elf_rows *rows = loader->rows;
	struct symbol *symbol, *end;
	int err = 0;

	if (!loader->symbols.cnt)
		return 0;
	vec_sort(&loader->symbols, symbol_cmp);
	end = loader->symbols.items + loader->symbols.cnt;
	for (symbol = loader->symbols.items; symbol < end && !err;) {
		const struct elf_code *code = code_at(loader, symbol->addr);
		struct elf_row row = {.addr = symbol->addr,
				      .size = symbol->size,
				      .name_off = elf_rows_add_name(rows, symbol->name, strlen(symbol->name))};
		const struct symbol *best = symbol;

		if (row.name_off == ELF_ROWS_NO_NAME)
			return -ENOMEM;
		symbol->name_off = row.name_off;
		while (++symbol < end && !strcmp(symbol->name, best->name)) {
			symbol->name_off = row.name_off;
			if (symbol->rank == best->rank && symbol->addr != best->addr)
				row.flags = ELF_ROW_AMBIGUOUS;
			if (symbol->addr == best->addr && !(symbol->rank & RANK_DATA) && symbol->size > row.size)
				row.size = symbol->size;
		}
		if (best->rank & (RANK_IFUNC | RANK_DATA)) {
			struct elf_other other = {row.name_off,
						  best->rank & RANK_DATA ? ELF_SYMBOL_DATA : ELF_SYMBOL_IFUNC};

			err = vec_push(&rows->others, other);
		} else {
			row.file_off = row.addr - code->addr + code->file_off;
			err = vec_push(&rows->functions, row);
		}
	}
	return err;
}

/* What people call a function that has several names: write, not __write or __GI___libc_write. */
static bool is_better_name(const struct symbol *symbol, const struct symbol *best)
{
	size_t marks = strspn(symbol->name, "_"), best_marks = strspn(best->name, "_");
	uint32_t rank = symbol->rank & ~RANK_WEAK, best_rank = best->rank & ~RANK_WEAK;

	if (rank != best_rank)
		return rank < best_rank;
	if (marks != best_marks)
		return marks < best_marks;
	return strlen(symbol->name) < strlen(best->name);
}

ORDER(symbol_addr_cmp, struct symbol, BY(a->addr, b->addr));

/* After symbols_sort_out(): the symbols are put into another order. */
static int symbols_by_addr(struct loader *loader)
{
	const struct symbol *symbol, *end;
	int err = 0;

	if (!loader->symbols.cnt)
		return 0;
	vec_sort(&loader->symbols, symbol_addr_cmp);
	end = loader->symbols.items + loader->symbols.cnt;
	for (symbol = loader->symbols.items; symbol < end && !err;) {
		const struct elf_code *code = code_at(loader, symbol->addr);
		const struct symbol *best = NULL;
		struct elf_row row = {.addr = symbol->addr};

		for (; symbol < end && symbol->addr == row.addr; symbol++) {
			if (symbol->rank & RANK_DATA)
				continue;
			if (symbol->size > row.size)
				row.size = symbol->size;
			if (!best || is_better_name(symbol, best))
				best = symbol;
		}
		if (!best)
			continue;
		row.name_off = best->name_off;
		row.file_off = row.addr - code->addr + code->file_off;
		row.flags = best->rank & RANK_IFUNC ? ELF_ROW_IFUNC : 0;
		err = vec_push(&loader->rows->addressed, row);
	}
	return err;
}

/* Of an ELF file whose header has been checked. */
static int load(struct loader *loader, const struct elf_symbols_source *source)
{
	struct elf_rows_head *head = &loader->rows->head;
	int err = 0;

	if (source->code) {
		memcpy(head->code, source->code, source->code_cnt * sizeof(*head->code));
		head->code_cnt = source->code_cnt;
	}
	if (!loader->elf || elf_kind(loader->elf) != ELF_K_ELF || gelf_getclass(loader->elf) != ELFCLASS64)
		err = -ENOEXEC;
	if (!err)
		err = segments_read(loader);
	if (!err && source->what == ELF_READ_SYMBOLS)
		err = sections_read(loader);
	if (!err)
		err = symbols_sort_out(loader);
	if (!err)
		err = symbols_by_addr(loader);
	elf_rows_count(loader->rows);
	return err;
}

int elf_symbols_read(const struct elf_symbols_source *source, struct elf_rows *rows)
{
	struct loader loader = {.rows = rows, .is_debug_file = source->code, .symbols_left = source->symbols_left};
	struct stat stat;
	int err;

	if (!source->image) {
		if (fstat(source->fd, &stat))
			return -errno;
		if (!S_ISREG(stat.st_mode))
			return -ENOEXEC;
	}
	loader.file_sz = source->image ? source->image_sz : (uint64_t)stat.st_size;
	err = source->image ? elf_bytes_check(source->image, loader.file_sz, source->code)
			    : elf_header_check(source->fd, loader.file_sz, source->code);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	loader.elf =
		source->image ? elf_memory(source->image, source->image_sz) : elf_begin(source->fd, ELF_C_READ, NULL);
	err = load(&loader, source);
	vec_free(&loader.symbols);
	elf_end(loader.elf);
	return err;
}
