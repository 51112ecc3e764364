/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one recording writes: rows of its tables, facts of the session, notes for the reader of the report.
 *
 * The first error stays, and nothing is written after it: a run of calls is looked at once, at its end.  All functions
 * return it, 0 or -errno.
 */
#ifndef WHYLATE_SESSION_JOURNAL_H
#define WHYLATE_SESSION_JOURNAL_H

#include "base/log.h"
#include "shard/writer.h"

#include <whylate/record.h>

struct journal {
	struct shard_writer *writer; /* NULL: nothing is written to yet, or any more */
	struct shard_row row;        /* the caller's, to fill */
	uint32_t note_cnt;
	int err;
};

int journal__append(struct journal *journal, enum shard_table_id table, const struct shard_row *row);
/* What has been appended can be read from now on. */
int journal__flush(struct journal *journal);
/* A row of the session table.  The newest one of a key holds. */
int journal__say(struct journal *journal, const char *key, const char *fmt, ...) WL_PRINTF(3, 4);
/* A row of the loss table. */
int journal__loss(struct journal *journal, uint64_t ts, enum wl_loss class, uint32_t cpu, uint64_t emitted,
		  uint64_t lost);
/* A sentence for the report, under a key of its own. */
int journal__note(struct journal *journal, const char *fmt, ...) WL_PRINTF(2, 3);

#endif
