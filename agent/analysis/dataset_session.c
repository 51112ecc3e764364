// SPDX-License-Identifier: GPL-2.0-or-later
/* What the recordings say of themselves: tables session and loss. */
#include "analysis/dataset_build.h"
#include "base/names.h"
#include "model/session.h"
#include "shard/inputs.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool host_is_wanted(const struct dataset_build *build, const char *host)
{
	const char *glob = build->filter ? build->filter->host : NULL;

	return !glob || !fnmatch(glob, host, 0);
}

int dataset_build__session_of(struct dataset_build *build, const struct shard_block *block, size_t *session)
{
	struct build_session added = {.first_ts = UINT64_MAX};
	char host[SHARD_HOST_MAX + 1] = "";
	uint32_t idx, host_id;

	shard_name_host(block->path, host);
	if (intern__id(&build->strings, host, &host_id) ||
	    idmap__id(&build->session_ids, block->session_id, host_id, &idx))
		return -ENOMEM;
	*session = idx;
	if (idx < build->sessions.cnt)
		return 0;
	added.id = block->session_id;
	added.name_host = build->strings.strings[host_id];
	added.unwanted = !host_is_wanted(build, host);
	return vec_push(&build->sessions, added);
}

static struct build_key *session_key(const struct build_session *session, const char *key)
{
	for (size_t i = 0; i < session->keys.cnt; i++)
		if (!strcmp(session->keys.items[i].key, key))
			return &session->keys.items[i];
	return NULL;
}

int dataset_build__session_block(struct dataset_build *build, const struct shard_block *block)
{
	const struct session_columns col = block_columns(block, SESSION, session);
	struct build_session *session;
	size_t idx;

	build->is_recording = true;
	if (dataset_build__session_of(build, block, &idx))
		return -ENOMEM;
	session = &build->sessions.items[idx];
	for (uint32_t row = 0; col.key && row < block->row_cnt; row++) {
		struct build_key *known = session_key(session, column_text(col.key, row));
		struct build_key key = {.ts = column_u64(col.ts, row)};

		if (known && known->ts > key.ts)
			continue;
		key.value = arena__strdup(build->arena, column_text(col.value, row));
		key.key = known ? known->key : arena__strdup(build->arena, column_text(col.key, row));
		if (!key.value || !key.key)
			return -ENOMEM;
		if (known)
			*known = key;
		else if (vec_push(&session->keys, key))
			return -ENOMEM;
	}
	return 0;
}

/* Once each. */
static int add_text(struct dataset_build *build, const char ***texts, size_t *cnt, const char *text)
{
	const char **more;

	for (size_t i = 0; i < *cnt; i++)
		if (!strcmp((*texts)[i], text))
			return 0;
	more = arena__alloc(build->arena, *cnt + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	if (*cnt)
		memcpy(more, *texts, *cnt * sizeof(*more));
	more[(*cnt)++] = text;
	*texts = more;
	return 0;
}

int dataset_build__note(struct dataset_build *build, const char *note)
{
	return add_text(build, &build->dataset->notes, &build->dataset->note_cnt, note);
}

/* false: the key is absent or no number. */
bool build_session__number(const struct build_session *session, const char *key, uint64_t *number)
{
	const struct build_key *found = session_key(session, key);
	char *end;

	if (!found || found->value[0] < '0' || found->value[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(found->value, &end, 10);
	return !*end && !errno;
}

void build_session__text(const struct build_session *session, const char *key, const char **text)
{
	const struct build_key *found = session_key(session, key);

	if (found && *found->value)
		*text = found->value;
}

/* What was not measured in one session was not measured in their union. */
static int session_lists(struct dataset_build *build, const struct build_session *session)
{
	const char *hooks = "", *categories = "";
	struct dataset *dataset = build->dataset;
	char *list, *word, *rest;
	int category;

	build_session__text(session, "hooks_missing", &hooks);
	build_session__text(session, "categories_unmeasured", &categories);
	list = arena__strdup(build->arena, hooks);
	if (!list)
		return -ENOMEM;
	for (word = strtok_r(list, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest))
		if (add_text(build, &dataset->hooks_missing, &dataset->hooks_missing_cnt, word))
			return -ENOMEM;
	list = arena__strdup(build->arena, categories);
	if (!list)
		return -ENOMEM;
	for (word = strtok_r(list, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		category = category_by_name(word);
		if (category >= 0)
			dataset->category_unmeasured[category] = true;
	}
	for (size_t i = 0; i < session->keys.cnt; i++)
		if (!strncmp(session->keys.items[i].key, "note.", 5) && *session->keys.items[i].value &&
		    dataset_build__note(build, session->keys.items[i].value))
			return -ENOMEM;
	return 0;
}

/* Its span on the wall, as far as it is known; open where it is not. */
static bool session_overlaps(const struct build_session *session, const struct dataset_filter *filter)
{
	uint64_t begin_ts, end_ts;

	if (!session->clock_known)
		return true;
	if (filter->until_wall_ns && build_session__number(session, "begin_ts", &begin_ts) &&
	    begin_ts + (uint64_t)session->clock_ns >= filter->until_wall_ns)
		return false;
	return !filter->since_wall_ns || !build_session__number(session, "end_ts", &end_ts) ||
	       end_ts + (uint64_t)session->clock_ns >= filter->since_wall_ns;
}

void dataset_build__choose_sessions(struct dataset_build *build)
{
	for (size_t i = 0; i < build->sessions.cnt; i++) {
		struct build_session *session = &build->sessions.items[i];
		const char *host = session->name_host;
		uint64_t mono_ns, wall_ns;

		if (build_session__number(session, "mono_anchor_ns", &mono_ns) &&
		    build_session__number(session, "wall_anchor_ns", &wall_ns)) {
			session->clock_known = true;
			session->clock_ns = (int64_t)(wall_ns - mono_ns);
		}
		/* Files that were renamed do not tell whose they are. */
		if (!*host)
			build_session__text(session, "host", &host);
		session->unwanted = !host_is_wanted(build, host);
		if (build->filter && !session_overlaps(session, build->filter))
			session->unwanted = true;
	}
}

#define OWN_PIDS_MAX 12 /* of one session */

int dataset_build__own(struct dataset_build *build)
{
	struct dataset *dataset = build->dataset;

	for (size_t i = 0; i < build->sessions.cnt; i++) {
		const char *pids = NULL;
		char *end;

		build_session__text(&build->sessions.items[i], "agent_pids", &pids);
		if (pids && !dataset->own)
			dataset->own =
				arena__alloc(build->arena, build->sessions.cnt * OWN_PIDS_MAX, sizeof(*dataset->own));
		if (pids && !dataset->own)
			return -ENOMEM;
		for (int k = 0; pids && k < OWN_PIDS_MAX; k++, pids = *end == ' ' ? end + 1 : NULL) {
			unsigned long pid = strtoul(pids, &end, 10);

			if (end == pids || pid > INT32_MAX)
				break;
			dataset->own[dataset->own_cnt++] = (struct dataset_own){(uint32_t)i, (uint32_t)pid};
		}
	}
	return 0;
}

/* The part of it that was asked for. */
static double session_duration_s(const struct dataset_build *build, const struct build_session *session)
{
	const struct dataset_filter *filter = build->filter;
	uint64_t begin_ts, end_ts;

	/* A recording that was killed has no end of its own; its intervals tell how far it got. */
	if (!build_session__number(session, "begin_ts", &begin_ts) ||
	    !build_session__number(session, "end_ts", &end_ts) || end_ts < begin_ts) {
		begin_ts = session->first_ts;
		end_ts = session->last_ts;
	}
	if (filter && session->clock_known) {
		uint64_t since_ts = filter->since_wall_ns - (uint64_t)session->clock_ns;
		uint64_t until_ts = filter->until_wall_ns - (uint64_t)session->clock_ns;

		if (filter->since_wall_ns && since_ts > begin_ts)
			begin_ts = since_ts;
		if (filter->until_wall_ns && until_ts < end_ts)
			end_ts = until_ts;
	}
	return end_ts > begin_ts ? (double)(end_ts - begin_ts) / 1e9 : 0;
}

static uint64_t whole(double number)
{
	return number < 0x1p63 ? (uint64_t)llrint(number) : UINT64_MAX;
}

/* Of a part of a recording, what the weights of its intervals sum to. */
uint64_t build_session__seen(const struct dataset_build *build, const struct build_session *session)
{
	const struct dataset_filter *filter = build->filter;
	double more = session->baseline_factor - 1;
	uint64_t number;

	if (filter && (filter->since_wall_ns || filter->until_wall_ns) && session->clock_known)
		return whole(session->asked_weight + session->asked_baseline_weight * more);
	if (build_session__number(session, "intervals_seen", &number))
		return number;
	return whole(session->weight + session->baseline_weight * more);
}

static void add_held(struct dataset *dataset, uint64_t ns, uint64_t cnt)
{
	size_t at = 0;

	while (at < dataset->held_cnt && dataset->held[at].ns < ns)
		at++;
	if (at < dataset->held_cnt && dataset->held[at].ns == ns) {
		dataset->held[at].cnt += cnt;
		return;
	}
	if (dataset->held_cnt == DATASET_HELD_MAX)
		return;
	memmove(dataset->held + at + 1, dataset->held + at, (dataset->held_cnt - at) * sizeof(*dataset->held));
	dataset->held[at] = (struct dataset_held){ns, cnt};
	dataset->held_cnt++;
}

/* "NS:COUNT …"; what is something else is passed over. */
static void session_held(struct dataset *dataset, const struct build_session *session)
{
	const char *text = "";
	uint64_t number;

	if (!build_session__number(session, SESSION_REPLIES, &number) || number > UINT32_MAX)
		return;
	dataset->replies += number;
	if (build_session__number(session, SESSION_HELD_BY_WINDOW, &number) && number <= UINT32_MAX)
		dataset->held_by_window += number;
	if (build_session__number(session, SESSION_RESENT, &number) && number <= UINT32_MAX) {
		dataset->resent += number;
		dataset->resent_known = true;
	}
	build_session__text(session, SESSION_REPLIES_HELD, &text);
	while (*text >= '0' && *text <= '9') {
		char *end;
		uint64_t ns = strtoull(text, &end, 10), cnt;

		if (*end != ':' || end[1] < '0' || end[1] > '9')
			return;
		cnt = strtoull(end + 1, &end, 10);
		if (ns && ns < UINT32_MAX * 1000ULL && cnt <= UINT32_MAX)
			add_held(dataset, ns, cnt);
		text = *end == ' ' ? end + 1 : end;
	}
}

static void session_censored(struct dataset *dataset, const struct build_session *session)
{
	uint64_t number;

	if (!build_session__number(session, "intervals_censored", &number))
		return;
	dataset->censored_known = true;
	if (__builtin_add_overflow(dataset->censored_cnt, number, &dataset->censored_cnt))
		dataset->censored_cnt = UINT64_MAX;
	if (build_session__number(session, "censored_weight", &number))
		dataset->censored_weight += (double)number;
	if (build_session__number(session, "censored_longest_ns", &number) && number > dataset->censored_longest_ns)
		dataset->censored_longest_ns = number;
}

static int session_end(struct dataset_build *build, const struct build_session *session)
{
	struct dataset *dataset = build->dataset;
	uint64_t number, cpu_ns;

	build_session__text(session, "host", &dataset->host);
	build_session__text(session, "kernel", &dataset->kernel);
	build_session__text(session, "comm", &dataset->comm);
	if (build_session__number(session, "pid", &number) && number <= INT32_MAX)
		dataset->pid = (int64_t)number;
	dataset->duration_s += session_duration_s(build, session);
	if (build_session__number(session, "target_cpu_ns", &cpu_ns)) {
		if (!(build->filter && (build->filter->since_wall_ns || build->filter->until_wall_ns)))
			dataset->target_cpu_ns += (double)cpu_ns;
		/* Of several recordings, the most expensive one. */
		if (cpu_ns && build_session__number(session, "cost_bpf_ns", &number))
			dataset->cost_share = fmax(dataset->cost_share, (double)number / (double)cpu_ns);
	}
	number = build_session__seen(build, session);
	if (__builtin_add_overflow(dataset->intervals_seen, number, &dataset->intervals_seen))
		dataset->intervals_seen = UINT64_MAX;
	if (build_session__number(session, "windows", &number) &&
	    __builtin_add_overflow(dataset->window_cnt, number, &dataset->window_cnt))
		dataset->window_cnt = UINT64_MAX;
	if (build_session__number(session, "windows_selecting_ns", &number))
		dataset->window_selecting_s += (double)number / 1e9;
	if (build_session__number(session, "windows_attached_ns", &number))
		dataset->window_attached_s += (double)number / 1e9;
	session_censored(dataset, session);
	session_held(dataset, session);
	return session_lists(build, session);
}

static void add_saturated(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

int dataset_build__session_end(struct dataset_build *build)
{
	struct dataset *dataset = build->dataset;
	size_t session_cnt = 0;

	dataset->pid = -1;
	dataset->cost_share = NAN;
	dataset->session_ids = arena__alloc(build->arena, build->sessions.cnt, sizeof(*dataset->session_ids));
	dataset->session_clock_ns = arena__alloc(build->arena, build->sessions.cnt, sizeof(*dataset->session_clock_ns));
	if (!dataset->session_ids || !dataset->session_clock_ns)
		return -ENOMEM;
	dataset->session_cnt = build->sessions.cnt;
	for (size_t i = 0; i < build->sessions.cnt; i++) {
		dataset->session_ids[i] = build->sessions.items[i].id;
		dataset->session_clock_ns[i] = build->sessions.items[i].clock_ns;
		if (build->sessions.items[i].unwanted)
			continue;
		session_cnt++;
		if (session_end(build, &build->sessions.items[i]))
			return -ENOMEM;
	}
	if (session_cnt > 1) {
		char *note = arena__printf(build->arena, "%zu recordings are taken together", session_cnt);

		if (!note || dataset_build__note(build, note))
			return -ENOMEM;
	}
	for (size_t i = 0; i < build->losses.cnt; i++) {
		if (build->sessions.items[build->losses.items[i].session].unwanted)
			continue;
		add_saturated(&dataset->loss[build->losses.items[i].class].emitted, build->losses.items[i].emitted);
		add_saturated(&dataset->loss[build->losses.items[i].class].lost, build->losses.items[i].lost);
	}
	dataset->records_lost = dataset->loss[WL_LOSS_INTERVAL].lost;
	add_saturated(&dataset->records_lost, dataset->loss[WL_LOSS_TASK].lost);
	add_saturated(&dataset->records_lost, dataset->loss[WL_LOSS_SPOOL].lost);
	return 0;
}
