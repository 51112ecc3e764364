// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/stitch.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A message under way for longer is another one with the same number, or nobody can say. */
#define DELAY_MAX_NS 1000000000ULL
/* Larger ones leave the host in several segments, at different times. */
#define CLOCK_BYTES_MAX 1400
#define LOOKS_MAX       64
#define CANDIDATES_MAX  8

/* The sends of one direction of one connection, which lie together and by sequence number. */
struct flow {
	uint32_t first, cnt;
	uint32_t bytes_max;
};

/* What went to and fro between two sessions, a < b. */
struct pair {
	uint32_t a, b;
	VEC(struct clock_message) forth;
	VEC(struct clock_message) back;
};

struct join {
	struct stitch *stitch;
	stitch_host host;
	stitch_text text;
	const void *owner;
	struct idmap flow_ids; /* (from_addr, to_addr) → index into flows */
	VEC(struct flow) flows;
	struct idmap pair_ids; /* (a, b), a < b → index into pairs */
	VEC(struct pair) pairs;
};

ORDER(compare_sends, struct stitch_end, BY(a->from_addr, b->from_addr), BY(a->to_addr, b->to_addr), BY(a->seq, b->seq),
      BY(a->ts, b->ts), BY(a->session, b->session));

static int index_sends(struct join *join)
{
	struct stitch *stitch = join->stitch;
	uint32_t id;

	if (stitch->sends.cnt >= STITCH_NONE || stitch->receives.cnt >= STITCH_NONE)
		return -E2BIG;
	vec_sort(&stitch->sends, compare_sends);
	for (uint32_t i = 0; i < stitch->sends.cnt; i++) {
		const struct stitch_end *send = &stitch->sends.items[i];

		if (idmap__id(&join->flow_ids, send->from_addr, send->to_addr, &id))
			return -ENOMEM;
		if (id == join->flows.cnt && vec_push(&join->flows, ((struct flow){.first = i})))
			return -ENOMEM;
		join->flows.items[id].cnt++;
		if (send->bytes > join->flows.items[id].bytes_max)
			join->flows.items[id].bytes_max = send->bytes;
	}
	return 0;
}

/* Addresses that mean something else on every host. */
static bool is_loopback(const char *text)
{
	return !strncmp(text, "127.", 4) || !strncmp(text, "[::1]:", 6) || !strncmp(text, "[::ffff:127.", 12) ||
	       !strncmp(text, "[fe80:", 6);
}

static bool can_meet(const struct join *join, const struct stitch_end *send, const struct stitch_end *receive)
{
	if (send->session == receive->session)
		return false;
	if (!is_loopback(join->text(join->owner, send->from_addr)))
		return true;
	return !strcmp(join->host(join->owner, send->session), join->host(join->owner, receive->session));
}

/* Two recordings of one and the same call. */
static bool same_call(const struct join *join, const struct stitch_end *a, const struct stitch_end *b)
{
	return a->tid == b->tid && a->ts == b->ts && a->seq == b->seq && a->session != b->session &&
	       !strcmp(join->host(join->owner, a->session), join->host(join->owner, b->session));
}

struct candidates {
	uint32_t sends[CANDIDATES_MAX];
	size_t cnt; /* may be more than that */
	bool flow_is_known;
};

/* The sends that may have had the first byte received. */
static void find_candidates(const struct join *join, const struct stitch_end *receive, struct candidates *found)
{
	const struct stitch_end *sends = join->stitch->sends.items;
	const struct flow *flow;
	uint32_t id, low;

	*found = (struct candidates){0};
	if (!idmap__find(&join->flow_ids, receive->from_addr, receive->to_addr, &id))
		return;
	flow = &join->flows.items[id];
	low = search_first(flow->first, flow->first + flow->cnt, at, sends[at].seq > receive->seq);
	/* Backwards, and once round: sequence numbers begin again after the largest. */
	for (uint32_t looks = 0; looks < flow->cnt && looks < LOOKS_MAX; looks++) {
		uint32_t at;

		low = low == flow->first ? flow->first + flow->cnt - 1 : low - 1;
		at = low;
		if (receive->seq - sends[at].seq >= flow->bytes_max)
			break;
		if (!can_meet(join, &sends[at], receive))
			continue;
		found->flow_is_known = true;
		if (receive->seq - sends[at].seq >= sends[at].bytes)
			continue;
		for (size_t i = 0; i < found->cnt && i < CANDIDATES_MAX; i++)
			if (same_call(join, &sends[found->sends[i]], &sends[at]))
				goto next;
		if (found->cnt < CANDIDATES_MAX)
			found->sends[found->cnt] = at;
		found->cnt++;
	next:;
	}
	for (uint32_t i = 0; !found->flow_is_known && i < flow->cnt && i < LOOKS_MAX; i++)
		found->flow_is_known = can_meet(join, &sends[flow->first + i], receive);
}

static int pair_of(struct join *join, uint32_t a, uint32_t b, struct pair **pair)
{
	uint32_t id;

	if (idmap__id(&join->pair_ids, a < b ? a : b, a < b ? b : a, &id))
		return -ENOMEM;
	if (id == join->pairs.cnt && vec_push(&join->pairs, ((struct pair){.a = a < b ? a : b, .b = a < b ? b : a})))
		return -ENOMEM;
	*pair = &join->pairs.items[id];
	return 0;
}

/* Those that are beyond doubt tell the clocks. */
static int collect_messages(struct join *join)
{
	struct stitch *stitch = join->stitch;

	for (size_t i = 0; i < stitch->receives.cnt; i++) {
		const struct stitch_end *receive = &stitch->receives.items[i], *send;
		struct clock_message message = {.received_ts = receive->ts};
		struct candidates found;
		struct pair *pair;

		find_candidates(join, receive, &found);
		if (found.cnt != 1)
			continue;
		send = &stitch->sends.items[found.sends[0]];
		if (send->bytes > CLOCK_BYTES_MAX)
			continue;
		message.sent_ts = send->ts;
		if (pair_of(join, send->session, receive->session, &pair) ||
		    (send->session == pair->a ? vec_push(&pair->forth, message) : vec_push(&pair->back, message)))
			return -ENOMEM;
	}
	return 0;
}

static int make_links(struct join *join)
{
	for (size_t i = 0; i < join->pairs.cnt; i++) {
		struct pair *pair = &join->pairs.items[i];
		struct stitch_link link = {.a = pair->a, .b = pair->b};
		int err = clock_link__estimate(&link.clock, pair->forth.items, pair->forth.cnt, pair->back.items,
					       pair->back.cnt);

		if (!err && vec_push(&join->stitch->links, link)) {
			clock_link__free(&link.clock);
			err = -ENOMEM;
		}
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}

/* The surest link between a session that is placed and one that is not. */
static uint32_t next_link(const struct stitch *stitch, uint32_t group)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = STITCH_NONE;

	for (uint32_t i = 0; i < stitch->links.cnt; i++) {
		const struct stitch_link *link = &stitch->links.items[i];
		bool a = stitch->places[link->a].group == group, b = stitch->places[link->b].group == group;
		uint64_t uncertainty_ns;

		if (a == b)
			continue;
		uncertainty_ns = link->clock.uncertainty_ns + stitch->places[a ? link->a : link->b].uncertainty_ns;
		if (uncertainty_ns >= best_ns)
			continue;
		best_ns = uncertainty_ns;
		best = i;
	}
	return best;
}

/* A tree over the sessions that links lead to from this one (Prim). */
static void grow_group(struct stitch *stitch, uint32_t first)
{
	uint32_t slot = 1, idx;

	stitch->places[first] = (struct stitch_place){.group = first, .parent = first, .link = STITCH_NONE};
	while (slot < STITCH_SLOTS_MAX && (idx = next_link(stitch, first)) != STITCH_NONE) {
		const struct stitch_link *link = &stitch->links.items[idx];
		uint32_t parent = stitch->places[link->a].group == first ? link->a : link->b;
		uint32_t child = parent == link->a ? link->b : link->a;

		stitch->places[child] = (struct stitch_place){
			.group = first,
			.slot = slot,
			.parent = parent,
			.link = idx,
			.uncertainty_ns = stitch->places[parent].uncertainty_ns + link->clock.uncertainty_ns,
		};
		slot++;
	}
}

/* How far the session's clock is ahead of its group's, about. */
static int64_t ahead_ns(const struct stitch *stitch, uint32_t session)
{
	int64_t ahead = 0;

	while (stitch->places[session].slot) {
		const struct stitch_link *link = &stitch->links.items[stitch->places[session].link];

		/* Each is less than a quarter of what fits. */
		if (__builtin_add_overflow(ahead, link->b == session ? link->clock.offset_ns : -link->clock.offset_ns,
					   &ahead))
			return 0;
		session = stitch->places[session].parent;
	}
	return ahead;
}

/* All use the clock that is ahead of the others, by which no time lies before its beginning. */
static void place_group(struct stitch *stitch, uint32_t first)
{
	int64_t most_ns = 0;
	uint32_t root = first;

	grow_group(stitch, first);
	for (uint32_t s = 0; s < stitch->session_cnt; s++) {
		if (stitch->places[s].group != first || ahead_ns(stitch, s) <= most_ns)
			continue;
		most_ns = ahead_ns(stitch, s);
		root = s;
	}
	if (root == first)
		return;
	for (uint32_t s = 0; s < stitch->session_cnt; s++)
		if (stitch->places[s].group == first)
			stitch->places[s].group = STITCH_NONE;
	grow_group(stitch, root);
}

static int place_sessions(struct stitch *stitch)
{
	stitch->places = malloc((stitch->session_cnt + 1) * sizeof(*stitch->places));
	if (!stitch->places)
		return -ENOMEM;
	for (uint32_t s = 0; s < stitch->session_cnt; s++)
		stitch->places[s].group = STITCH_NONE;
	for (uint32_t s = 0; s < stitch->session_cnt; s++)
		if (stitch->places[s].group == STITCH_NONE)
			place_group(stitch, s);
	/* More than fit: they stay alone. */
	for (uint32_t s = 0; s < stitch->session_cnt; s++)
		if (stitch->places[s].group == STITCH_NONE)
			stitch->places[s] = (struct stitch_place){.group = s, .parent = s, .link = STITCH_NONE};
	return 0;
}

uint64_t stitch__common_ts(const struct stitch *stitch, uint32_t session, uint64_t ts)
{
	while (stitch->places[session].slot) {
		const struct stitch_place *place = &stitch->places[session];
		const struct stitch_link *link = &stitch->links.items[place->link];

		ts = link->a == session ? clock_link__to_b(&link->clock, ts) : clock_link__to_a(&link->clock, ts);
		session = place->parent;
	}
	return ts;
}

uint64_t stitch__own_ts(const struct stitch *stitch, uint32_t session, uint64_t ts)
{
	const struct stitch_place *place = &stitch->places[session];
	const struct stitch_link *link;

	if (!place->slot)
		return ts;
	/* The depth is that of the tree, which chains of hosts are long for only if their requests are. */
	ts = stitch__own_ts(stitch, place->parent, ts);
	link = &stitch->links.items[place->link];
	return link->a == session ? clock_link__to_a(&link->clock, ts) : clock_link__to_b(&link->clock, ts);
}

static struct stitch_link *link_between(struct stitch *stitch, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < stitch->links.cnt; i++) {
		struct stitch_link *link = &stitch->links.items[i];

		if ((link->a == a && link->b == b) || (link->a == b && link->b == a))
			return link;
	}
	return NULL;
}

enum verdict { PLAUSIBLE, TOO_LONG, TOO_EARLY, NO_CLOCK };

static enum verdict judge(const struct stitch *stitch, const struct stitch_end *send, const struct stitch_end *receive,
			  uint64_t *delay_ns)
{
	const struct stitch_place *from = &stitch->places[send->session], *to = &stitch->places[receive->session];
	uint64_t sent_ts, received_ts;

	*delay_ns = 0;
	if (from->group != to->group)
		return NO_CLOCK;
	sent_ts = stitch__common_ts(stitch, send->session, send->ts);
	received_ts = stitch__common_ts(stitch, receive->session, receive->ts);
	if (received_ts < sent_ts)
		return sent_ts - received_ts > from->uncertainty_ns + to->uncertainty_ns + 1 ? TOO_EARLY : PLAUSIBLE;
	*delay_ns = received_ts - sent_ts;
	return *delay_ns > DELAY_MAX_NS ? TOO_LONG : PLAUSIBLE;
}

/* The sends of a connection lie by sequence number. */
static bool is_mixed(const struct stitch *stitch, uint32_t first, const struct stitch_end *receive)
{
	const struct stitch_end *send = &stitch->sends.items[first], *next;
	uint32_t got = send->seq + send->bytes - receive->seq; /* bytes of the receive, so far */

	for (size_t at = first + 1; got < receive->bytes && at < stitch->sends.cnt && at - first < LOOKS_MAX; at++) {
		next = &stitch->sends.items[at];
		if (next->session != send->session)
			continue;
		if (next->from_addr != send->from_addr || next->to_addr != send->to_addr ||
		    next->seq - receive->seq != got || next->sid != send->sid)
			return true;
		got += next->bytes;
	}
	return got < receive->bytes;
}

static void match(struct join *join, size_t idx)
{
	struct stitch *stitch = join->stitch;
	const struct stitch_end *receive = &stitch->receives.items[idx];
	struct stitch_match *match = &stitch->matches[idx];
	size_t cnt[NO_CLOCK + 1] = {0};
	uint64_t best_ns = UINT64_MAX, delay_ns;
	struct candidates found;
	struct stitch_link *link;

	*match = (struct stitch_match){.send = STITCH_NONE, .certainty = WL_CERTAINTY_OBSERVED};
	find_candidates(join, receive, &found);
	for (size_t i = 0; i < found.cnt && i < CANDIDATES_MAX; i++) {
		enum verdict verdict = judge(stitch, &stitch->sends.items[found.sends[i]], receive, &delay_ns);

		cnt[verdict]++;
		if (verdict > TOO_LONG || delay_ns >= best_ns)
			continue;
		best_ns = delay_ns;
		match->send = found.sends[i];
	}
	if (match->send == STITCH_NONE) {
		stitch->contradicting += cnt[TOO_EARLY] > 0;
		stitch->clockless += !cnt[TOO_EARLY] && cnt[NO_CLOCK];
		stitch->not_kept += !found.cnt && found.flow_is_known;
		stitch->unknown_peer += !found.cnt && !found.flow_is_known;
		return;
	}
	match->mixed = is_mixed(stitch, match->send, receive);
	if (cnt[PLAUSIBLE] != 1 || found.cnt > CANDIDATES_MAX)
		match->certainty = WL_CERTAINTY_AMBIGUOUS;
	if (match->certainty == WL_CERTAINTY_AMBIGUOUS)
		stitch->ambiguous++;
	else
		stitch->joined++;
	link = link_between(stitch, stitch->sends.items[match->send].session, receive->session);
	if (link)
		link->joined_cnt++;
}

static int match_all(struct join *join)
{
	struct stitch *stitch = join->stitch;

	stitch->matches = malloc((stitch->receives.cnt + 1) * sizeof(*stitch->matches));
	if (!stitch->matches)
		return -ENOMEM;
	for (size_t i = 0; i < stitch->receives.cnt; i++)
		match(join, i);
	return 0;
}

int stitch__join(struct stitch *stitch, uint32_t session_cnt, stitch_host host, stitch_text text, const void *owner)
{
	struct join join = {.stitch = stitch, .host = host, .text = text, .owner = owner};
	int err;

	stitch->session_cnt = session_cnt;
	err = index_sends(&join);
	if (!err)
		err = collect_messages(&join);
	if (!err)
		err = make_links(&join);
	if (!err)
		err = place_sessions(stitch);
	if (!err)
		err = match_all(&join);
	for (size_t i = 0; i < join.pairs.cnt; i++) {
		vec_free(&join.pairs.items[i].forth);
		vec_free(&join.pairs.items[i].back);
	}
	vec_free(&join.pairs);
	vec_free(&join.flows);
	idmap__free(&join.flow_ids);
	idmap__free(&join.pair_ids);
	return err;
}

void stitch__free(struct stitch *stitch)
{
	for (size_t i = 0; i < stitch->links.cnt; i++)
		clock_link__free(&stitch->links.items[i].clock);
	vec_free(&stitch->links);
	vec_free(&stitch->sends);
	vec_free(&stitch->receives);
	free(stitch->matches);
	free(stitch->places);
	*stitch = (struct stitch){0};
}
