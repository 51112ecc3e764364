// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/file_tables.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Tables without a user that are kept. */
#define UNUSED_MAX 64
/* Rules that are kept: direct-mapped, a power of two. */
#define RULES_CNT 4096

struct kept_rule {
	const struct eh_frame *frame; /* NULL: none */
	uint64_t addr;
	struct unwind_rule rule;
};

struct file_tables {
	VEC(struct file_table *) items;
	uint64_t seq;
	struct kept_rule *rules; /* NULL: none was asked for */
};

struct file_tables *file_tables__new(void)
{
	return calloc(1, sizeof(struct file_tables));
}

static void table_free(struct file_tables *tables, struct file_table *table)
{
	/* Another table of frames may be allocated where this one was. */
	if (table->frame && tables->rules)
		memset(tables->rules, 0, RULES_CNT * sizeof(*tables->rules));
	for (size_t i = 0; i < SYMBOL_FILES_MAX; i++)
		elf_file__free(table->files[i]);
	vec_free(&table->functions);
	eh_frame__free(table->frame);
	free(table);
}

void file_tables__free(struct file_tables *tables)
{
	if (!tables)
		return;
	for (size_t i = 0; i < tables->items.cnt; i++)
		table_free(tables, tables->items.items[i]);
	vec_free(&tables->items);
	free(tables->rules);
	free(tables);
}

/* The index of the unused one that was used least recently, and how many there are. */
static size_t oldest_unused(const struct file_tables *tables, size_t *cnt)
{
	size_t oldest = tables->items.cnt;

	*cnt = 0;
	for (size_t i = 0; i < tables->items.cnt; i++) {
		const struct file_table *table = tables->items.items[i];

		if (table->users)
			continue;
		++*cnt;
		if (oldest == tables->items.cnt || table->used_seq < tables->items.items[oldest]->used_seq)
			oldest = i;
	}
	return oldest;
}

bool file_tables__drop(struct file_tables *tables)
{
	size_t cnt, oldest = oldest_unused(tables, &cnt);

	if (!cnt)
		return false;
	table_free(tables, tables->items.items[oldest]);
	tables->items.items[oldest] = tables->items.items[--tables->items.cnt];
	return true;
}

struct file_table *file_tables__take(struct file_tables *tables, const struct elf_image *image)
{
	struct file_table *table;
	struct stat stat;
	size_t unused_cnt;

	if (fstat(elf_image__fd(image), &stat))
		memset(&stat, 0, sizeof(stat));
	for (size_t i = 0; i < tables->items.cnt && stat.st_ino; i++) {
		table = tables->items.items[i];
		if (table->dev == stat.st_dev && table->ino == stat.st_ino &&
		    table->changed.tv_sec == stat.st_ctim.tv_sec && table->changed.tv_nsec == stat.st_ctim.tv_nsec) {
			table->users++;
			table->used_seq = ++tables->seq;
			return table;
		}
	}
	oldest_unused(tables, &unused_cnt);
	if (unused_cnt >= UNUSED_MAX)
		file_tables__drop(tables);
	table = calloc(1, sizeof(*table));
	if (!table || vec_push(&tables->items, table)) {
		free(table);
		return NULL;
	}
	table->dev = stat.st_dev;
	table->ino = stat.st_ino;
	table->changed = stat.st_ctim;
	table->users = 1;
	table->used_seq = ++tables->seq;
	return table;
}

void file_table__release(struct file_table *table)
{
	if (table)
		table->users--;
}

size_t file_tables__sz(const struct file_tables *tables)
{
	size_t sz = tables->rules ? RULES_CNT * sizeof(*tables->rules) : 0;

	for (size_t i = 0; i < tables->items.cnt; i++) {
		const struct file_table *table = tables->items.items[i];

		sz += sizeof(*table) + table->functions.cnt * sizeof(table->functions.items[0]);
		for (size_t f = 0; f < SYMBOL_FILES_MAX; f++)
			sz += elf_file__sz(table->files[f]);
		sz += eh_frame__sz(table->frame);
	}
	return sz;
}

const struct unwind_rule *file_tables__rule(struct file_tables *tables, const struct eh_frame *frame, uint64_t addr)
{
	struct kept_rule *kept;

	if (!tables->rules)
		tables->rules = calloc(RULES_CNT, sizeof(*tables->rules));
	if (!tables->rules)
		return NULL;
	kept = &tables->rules[random_mix(addr + (uintptr_t)frame) & (RULES_CNT - 1)];
	if (kept->frame != frame || kept->addr != addr) {
		kept->frame = frame;
		kept->addr = addr;
		unwind_rule__make(&kept->rule, frame, addr);
	}
	return kept->rule.known ? &kept->rule : NULL;
}
