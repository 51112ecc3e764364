/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a question about many hosts to its answer: statements to the database, statistics over what it says. */
#ifndef WHYLATE_FLEET_ASK_H
#define WHYLATE_FLEET_ASK_H

#include "analysis/fleet.h"
#include "base/arena.h"
#include "net/project/questions.h"

struct fleet_ask {
	struct clickhouse *server;
	struct question_filter filter; /* its days are fleet_ask()'s own */
	bool heat;                     /* FLEET_HOSTS: with the heatmap of the worst hosts */
	bool from_rows;                /* none from the sums of days: slower, the same answer */
	struct arena *arena;           /* owns what the answer points at */
};

/*
 * answer->question, fact, tail are set.  0; -ENOENT: no recording has such a fact (by); as clickhouse__ask().
 */
int fleet_ask(struct fleet_ask *ask, struct fleet_answer *answer);
/* What is not the arena's. */
void fleet_answer_free(struct fleet_answer *answer);

#endif
