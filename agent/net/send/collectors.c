// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/collectors.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
	const char *url;
	uint64_t weight;
};

ORDER(by_weight, struct ranked, BY(b->weight, a->weight));

int collectors__parse(struct collectors *collectors, const char *list, const char *host)
{
	struct ranked ranked[COLLECTORS_MAX];
	char *rest;
	int err = 0;

	*collectors = (struct collectors){.text = strdup(list)};
	if (!collectors->text)
		return -ENOMEM;
	rest = collectors->text;
	for (char *url; !err && (url = strsep(&rest, ","));) {
		if (!*url)
			err = -EINVAL;
		else if (collectors->cnt == COLLECTORS_MAX)
			err = -E2BIG;
		else
			ranked[collectors->cnt++] =
				(struct ranked){url, random_mix(fnv1a_text(fnv1a_text(FNV1A_BEGIN, host) ^ 0xff, url))};
	}
	if (err) {
		collectors__free(collectors);
		return err;
	}
	qsort(ranked, collectors->cnt, sizeof(ranked[0]), by_weight);
	for (size_t i = 0; i < collectors->cnt; i++)
		collectors->urls[i] = ranked[i].url;
	return 0;
}

void collectors__free(struct collectors *collectors)
{
	free(collectors->text);
	*collectors = (struct collectors){0};
}
