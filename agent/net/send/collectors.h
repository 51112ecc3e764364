/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The collectors of `--stream URL,URL…`, in the order in which a host prefers them: by rendezvous hashing (Thaler and
 * Ravishankar, 1998), so that the hosts spread over them and only those of a collector that is gone move.
 */
#ifndef WHYLATE_NET_SEND_COLLECTORS_H
#define WHYLATE_NET_SEND_COLLECTORS_H

#include <stddef.h>

#define COLLECTORS_MAX 8

struct collectors {
	char *text; /* owns the URLs */
	const char *urls[COLLECTORS_MAX];
	size_t cnt;
};

/* 0; -EINVAL: an empty one; -E2BIG: too many; -ENOMEM.  The order does not depend on that of the list. */
int collectors__parse(struct collectors *collectors, const char *list, const char *host);
void collectors__free(struct collectors *collectors);

#endif
