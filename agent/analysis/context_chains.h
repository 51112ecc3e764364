/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table `context` of one or more recordings (DESIGN §12): chains of hand-offs, each with the call path of the
 * thread that asked.  Equal chains of different recordings are one.  A hand-off that a chain has already leads back to
 * where it was (Whodunit §4.1).
 *
 * Ids and parents come from files: a parent that is missing, or behind its own child, is taken for none and counted.
 */
#ifndef WHYLATE_ANALYSIS_CONTEXT_CHAINS_H
#define WHYLATE_ANALYSIS_CONTEXT_CHAINS_H

#include "base/idmap.h"
#include "base/vec.h"
#include "shard/reader.h"

#define CONTEXT_CHAIN_NONE  0 /* a request as it came in */
#define CONTEXT_CHAIN_OTHER 1 /* one whose context found no room, or is not in the recording */
#define CONTEXT_ROWS_MAX    65536

struct context_chain {
	uint64_t id;        /* the same in all recordings of the same programs */
	uint64_t step;      /* of its last hand-off: kind and call path */
	uint32_t parent;    /* a smaller index */
	uint32_t kind;      /* enum wl_handoff */
	const char *frames; /* of the call that asked: root;…;leaf; "" where it is not known */
};

struct context_row;

struct context_chains {
	struct arena *arena;
	VEC(struct context_chain) items;
	VEC(struct context_row) rows;
	struct idmap ids;     /* of chains */
	struct idmap row_ids; /* (session, id in that recording) → row */
	size_t prefix;        /* so many bytes all frames begin with: whole frames */
	size_t broken;        /* rows without the parent that they name, and those beyond CONTEXT_ROWS_MAX */
};

/* Reads from the beginning.  0 or -ENOMEM, -EIO; context_chains__free() in any case. */
int context_chains__load(struct context_chains *chains, struct shard_reader *reader);
void context_chains__free(struct context_chains *chains);
/* The chain of an id in that recording, 0: none. */
uint32_t context_chains__find(const struct context_chains *chains, uint64_t session_id, uint64_t id);

#endif
