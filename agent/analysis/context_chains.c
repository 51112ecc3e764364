// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/context_chains.h"

#include <whylate/record.h>

#include "base/names.h"
#include "base/random.h"
#include "shard/columns.h"

#include <errno.h>
#include <string.h>

#define UNRESOLVED UINT32_MAX
#define RESOLVING  (UINT32_MAX - 1)
/* The kernel side makes shorter ones. */
#define DEPTH_MAX 32

struct context_row {
	uint64_t session_id, id, parent, step;
	uint32_t kind, chain;
	const char *frames;
};

static int add_row(struct context_chains *chains, const struct context_row *row)
{
	uint32_t id;

	if (chains->rows.cnt == CONTEXT_ROWS_MAX) {
		chains->broken++;
		return 0;
	}
	if (idmap__id(&chains->row_ids, row->session_id, row->id, &id))
		return -ENOMEM;
	/* Sent again after a ring was full, or by somebody who makes ids up: the first one holds. */
	return id < chains->rows.cnt ? 0 : vec_push(&chains->rows, *row);
}

static int add_block(struct context_chains *chains, const struct shard_block *block)
{
	const struct context_columns columns = block_columns(block, CONTEXT, context);
	int err = 0;

	for (uint32_t i = 0; i < block->row_cnt && !err; i++) {
		struct context_row row = {
			.session_id = block->session_id,
			.id = column_u64(columns.id, i),
			.parent = column_u64(columns.parent, i),
			.chain = UNRESOLVED,
			.frames = arena__strdup(chains->arena, column_text(columns.frames, i)),
		};
		int known = handoff_by_name(column_text(columns.kind, i));

		if (!row.frames)
			return -ENOMEM;
		if (row.id <= WL_CONTEXT_ID_OTHER || known < 0)
			continue;
		row.kind = (uint32_t)known;
		/* Without a call path, one hand-off is told from another in its own recording only. */
		row.step = random_mix((column_is_null(columns.path, i) ? row.id : column_u64(columns.path, i)) +
				      row.kind + 1);
		err = add_row(chains, &row);
	}
	return err;
}

/* The chain of `parent` and one more hand-off. */
static int chain_behind(struct context_chains *chains, uint32_t parent, struct context_row *row)
{
	struct context_chain chain = {.step = row->step, .parent = parent, .kind = row->kind, .frames = row->frames};
	uint32_t id;

	for (uint32_t at = parent; at != CONTEXT_CHAIN_NONE; at = chains->items.items[at].parent)
		if (chains->items.items[at].step == row->step) {
			row->chain = at;
			return 0;
		}
	chain.id = random_mix(chains->items.items[parent].id ^ row->step);
	if (idmap__id(&chains->ids, chain.id, 0, &id))
		return -ENOMEM;
	row->chain = id;
	return id < chains->items.cnt ? 0 : vec_push(&chains->items, chain);
}

static int resolve(struct context_chains *chains, uint32_t idx, int depth)
{
	struct context_row *row = &chains->rows.items[idx];
	uint32_t parent = CONTEXT_CHAIN_NONE, before;
	int err;

	if (row->chain != UNRESOLVED)
		return 0;
	row->chain = RESOLVING;
	if (row->parent == WL_CONTEXT_ID_OTHER) {
		parent = CONTEXT_CHAIN_OTHER;
	} else if (row->parent) {
		bool known = idmap__find(&chains->row_ids, row->session_id, row->parent, &before);

		err = known && depth < DEPTH_MAX ? resolve(chains, before, depth + 1) : 0;
		if (err)
			return err;
		if (known && depth < DEPTH_MAX && chains->rows.items[before].chain != RESOLVING)
			parent = chains->rows.items[before].chain;
		else
			chains->broken++;
	}
	return chain_behind(chains, parent, row);
}

/* Whole frames that all chains have in common: how the thread got into its loop. */
static void find_prefix(struct context_chains *chains)
{
	const char *first = NULL;
	size_t len = 0;

	for (size_t i = CONTEXT_CHAIN_OTHER + 1; i < chains->items.cnt; i++) {
		const char *frames = chains->items.items[i].frames;
		size_t same = 0;

		if (!first) {
			first = frames;
			len = strlen(frames);
		}
		while (same < len && frames[same] == first[same])
			same++;
		len = same;
	}
	while (len && first[len - 1] != ';')
		len--;
	chains->prefix = len;
}

int context_chains__load(struct context_chains *chains, struct shard_reader *reader)
{
	static const char *const tables[] = {"context"};
	const struct context_chain none = {.frames = ""}, other = {.id = 1, .frames = ""};
	const struct shard_block *block;
	uint32_t id;
	int err;

	*chains = (struct context_chains){.arena = arena__new()};
	if (!chains->arena || vec_push(&chains->items, none) || vec_push(&chains->items, other) ||
	    idmap__id(&chains->ids, none.id, 0, &id) || idmap__id(&chains->ids, other.id, 0, &id))
		return -ENOMEM;
	err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = add_block(chains, block);
	for (uint32_t i = 0; i < chains->rows.cnt && !err; i++)
		err = resolve(chains, i, 0);
	if (!err)
		find_prefix(chains);
	return err;
}

void context_chains__free(struct context_chains *chains)
{
	vec_free(&chains->items);
	vec_free(&chains->rows);
	idmap__free(&chains->ids);
	idmap__free(&chains->row_ids);
	arena__free(chains->arena);
}

uint32_t context_chains__find(const struct context_chains *chains, uint64_t session_id, uint64_t id)
{
	uint32_t row;

	if (id == WL_CONTEXT_ID_NONE)
		return CONTEXT_CHAIN_NONE;
	return idmap__find(&chains->row_ids, session_id, id, &row) ? chains->rows.items[row].chain
								   : CONTEXT_CHAIN_OTHER;
}
