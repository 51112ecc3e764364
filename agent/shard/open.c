// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/open.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

struct shard_reader *shards_open(const char *const *paths, size_t path_cnt)
{
	const char *bad_path = NULL;
	struct shard_reader *reader = shard_reader__open(paths, path_cnt, &bad_path);

	if (!reader)
		log_error("cannot read '%s': %s", bad_path ? bad_path : paths[0],
			  errno == ENODATA  ? "no shard (*.wls) there"
			  : errno == EINVAL ? "it is neither a file nor a directory"
					    : strerror(errno));
	return reader;
}
