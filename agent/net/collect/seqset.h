/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of frame numbers as ranges: what arrived in order, however much, is one.  Bounded; one thread. */
#ifndef WHYLATE_NET_COLLECT_SEQSET_H
#define WHYLATE_NET_COLLECT_SEQSET_H

#include <stddef.h>
#include <stdint.h>

#define SEQSET_RANGES_MAX 4096

struct seqset_range {
	uint64_t first, last;
};

struct seqset {
	struct seqset_range *items; /* ascending, with gaps between them */
	size_t cnt;
	size_t room;
};

/* 1: it is in now; 0: it was before; -ENOSPC: that would be too many ranges; -ENOMEM. */
int seqset__add(struct seqset *set, uint64_t seq);
/* Takes back what seqset__add() has just put in; splitting a range needs no room that was not there then. */
void seqset__remove(struct seqset *set, uint64_t seq);
void seqset__clear(struct seqset *set);

#endif
