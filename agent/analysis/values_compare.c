// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/values.h"
#include "shard/open.h"

#include <errno.h>
#include <stdlib.h>

/* Marks the sessions of the recordings at these paths. 0 or -errno. */
static int mark_slow(const struct values *values, bool *is_slow, const char *const *paths, size_t cnt)
{
	static const char *const tables[] = {"session"};
	struct shard_reader *reader = shards_open(paths, cnt);
	const struct shard_block *block;
	uint32_t session;
	int err;

	if (!reader)
		return -ENOENT;
	err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		if (idmap__find(&values->session_of, block->session_id, 0, &session))
			is_slow[session] = true;
		err = 0;
	}
	shard_reader__free(reader);
	return err;
}

int values_compare_paths(struct value_report **report, const char *const *paths, size_t cnt, size_t slow_from,
			 struct arena *arena)
{
	struct shard_reader *reader = shards_open(paths, cnt);
	struct values values = {0};
	bool *is_slow = NULL;
	size_t slow = 0;
	int err = reader ? values_load(&values, reader) : -ENOENT;

	if (!err)
		is_slow = calloc(values.session_ids.cnt + 1, sizeof(*is_slow));
	if (!err && !is_slow)
		err = -ENOMEM;
	if (!err)
		err = mark_slow(&values, is_slow, paths + slow_from, cnt - slow_from);
	for (size_t s = 0; s < values.session_ids.cnt && !err; s++)
		slow += is_slow[s];
	if (!err && values.rows.cnt && slow && slow < values.session_ids.cnt)
		err = values_compare(report, &values, is_slow, arena) ?: 1;
	free(is_slow);
	values_free(&values);
	shard_reader__free(reader);
	return err;
}
