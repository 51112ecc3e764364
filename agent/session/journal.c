// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/journal.h"

#include "base/clock.h"
#include "base/names.h"
#include "model/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int journal__append(struct journal *journal, enum shard_table_id table, const struct shard_row *row)
{
	if (!journal->err)
		journal->err = shard_writer__append(journal->writer, table, row);
	return journal->err;
}

int journal__flush(struct journal *journal)
{
	if (!journal->err)
		journal->err = shard_writer__flush(journal->writer, false);
	return journal->err;
}

static int say(struct journal *journal, const char *key, const char *fmt, va_list args)
{
	struct shard_row *row = &journal->row;
	char value[SESSION_TEXT_MAX];

	vsnprintf(value, sizeof(value), fmt, args);
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[SESSION_TS].u64 = monotonic_ns();
	row->values[SESSION_KEY].str = key;
	row->values[SESSION_VALUE].str = value;
	journal__append(journal, SHARD_TABLE_SESSION, row);
	row->values[SESSION_KEY].str = row->values[SESSION_VALUE].str = NULL;
	return journal->err;
}

int journal__say(struct journal *journal, const char *key, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(journal, key, fmt, args);
	va_end(args);
	return journal->err;
}

int journal__loss(struct journal *journal, uint64_t ts, enum wl_loss class, uint32_t cpu, uint64_t emitted,
		  uint64_t lost)
{
	struct shard_row *row = &journal->row;

	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[LOSS_TS].u64 = ts;
	row->values[LOSS_CLASS].str = loss_name(class);
	row->values[LOSS_CPU].u64 = cpu;
	row->values[LOSS_EMITTED].u64 = emitted;
	row->values[LOSS_LOST].u64 = lost;
	return journal__append(journal, SHARD_TABLE_LOSS, row);
}

int journal__note(struct journal *journal, const char *fmt, ...)
{
	char key[32];
	va_list args;

	snprintf(key, sizeof(key), "note.%u", journal->note_cnt++);
	va_start(args, fmt);
	say(journal, key, fmt, args);
	va_end(args);
	return journal->err;
}
