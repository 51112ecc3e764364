// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/ask.h"

#include "base/loghist.h"
#include "base/order.h"
#include "base/vec.h"

#include <math.h>
#include <string.h>

#define ROOTS_MAX  100
#define STEP_CNT   200
#define SECOND_NS  1000000000ULL
#define DAY_S      86400.0
#define GROUPS_MAX 100000
#define HEAT_MAX   100 /* hosts, the worst ones */
#define HEAT_STEPS 96
#define LATE_MAX   500 /* groups whose late requests are looked into: the worst ones */

/* A copy that lives as long as the answer; NULL: no memory. */
static const char *keep(struct fleet_ask *ask, const char *text)
{
	return arena__strdup(ask->arena, text);
}

static bool read_class(const char *cell, uint32_t *class_no)
{
	uint64_t number;

	if (!clickhouse_u64(cell, &number) || number >= LOGHIST_CLASS_CNT)
		return false;
	*class_no = (uint32_t)number;
	return true;
}

/* The requests of all together: their figures, and the class of their tail. */
static int ask_whole(struct fleet_ask *ask, struct fleet_answer *answer, uint32_t *tail_class)
{
	VEC(struct fleet_bin) bins = {0};
	struct clickhouse_rows rows = {0};
	int err = question_histogram(ask->server, &ask->filter, &rows);

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + QUESTION_HISTOGRAM_COLUMNS * i;
		uint64_t begin_ns, end_ns;
		struct fleet_bin bin = {0};

		if (!read_class(cells[0], &bin.class_no) || !clickhouse_f64(cells[1], &bin.weight) ||
		    !clickhouse_u64(cells[2], &begin_ns) || !clickhouse_u64(cells[3], &end_ns))
			err = -EBADMSG;
		else
			err = vec_push(&bins, bin);
		if (err)
			break;
		answer->requests += bin.weight;
		answer->begin_ns = !i || begin_ns < answer->begin_ns ? begin_ns : answer->begin_ns;
		answer->end_ns = end_ns > answer->end_ns ? end_ns : answer->end_ns;
	}
	clickhouse_rows__free(&rows);
	answer->tail_ns = fleet_quantile(bins.items, bins.cnt, answer->tail);
	if (!err && bins.cnt && !isnan(answer->tail_ns))
		*tail_class = loghist_class((uint64_t)answer->tail_ns);
	vec_free(&bins);
	return err;
}

static void free_groups(struct fleet_answer *answer)
{
	for (size_t i = 0; i < answer->group_cnt; i++)
		vec_free(&answer->groups[i].bins);
	free(answer->groups);
	answer->groups = NULL;
	answer->group_cnt = 0;
}

static int take_group(struct fleet_ask *ask, struct fleet_group *group, const char *const *cells)
{
	uint32_t median, tail, low, high;
	double weight2;

	*group = (struct fleet_group){.name = keep(ask, cells[0]), .summed = true, .late_requests = NAN, .rank_p = NAN};
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		group->late_ns[c] = NAN;
	if (!clickhouse_f64(cells[1], &group->requests) || !clickhouse_f64(cells[2], &weight2) ||
	    !read_class(cells[4], &median) || !read_class(cells[5], &tail) || !read_class(cells[6], &low) ||
	    !read_class(cells[7], &high) || !(group->requests > 0) || !(weight2 > 0))
		return -EBADMSG;
	group->effective = group->requests * group->requests / weight2;
	group->median_ns = loghist_middle(median);
	group->tail_ns = loghist_middle(tail);
	group->tail_ci = (struct ci){.lo = loghist_middle(low), .hi = loghist_middle(high)};
	return group->name ? 0 : -ENOMEM;
}

static int ask_groups(struct fleet_ask *ask, struct fleet_answer *answer)
{
	VEC(struct fleet_group) groups = {0};
	struct clickhouse_rows rows = {0};
	int err = question_groups(ask->server, &ask->filter, answer->fact, answer->tail, &rows);

	if (!err && rows.row_cnt > GROUPS_MAX)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		struct fleet_group group;

		err = take_group(ask, &group, rows.cells + QUESTION_GROUPS_COLUMNS * i) ?: vec_push(&groups, group);
	}
	clickhouse_rows__free(&rows);
	answer->groups = groups.items;
	answer->group_cnt = groups.cnt;
	if (!err)
		err = fleet_compare(answer->groups, answer->group_cnt, answer->tail);
	for (size_t i = 0; !err && i < answer->group_cnt; i++) {
		answer->late_host_cnt += answer->groups[i].stands_out;
		answer->other_host_cnt += !answer->groups[i].stands_out;
	}
	return err;
}

/* Of so many groups the places, by name. */
struct group_names {
	const struct fleet_group **items;
	size_t cnt;
};

ORDER(by_name, struct fleet_group *, strcmp((*a)->name, (*b)->name));

static int group_names__sort(struct group_names *names, const struct fleet_group *groups, size_t cnt)
{
	names->items = calloc(cnt + 1, sizeof(*names->items));
	if (!names->items)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		names->items[i] = &groups[i];
	names->cnt = cnt;
	qsort(names->items, cnt, sizeof(*names->items), by_name);
	return 0;
}

static const struct fleet_group *group_names__find(const struct group_names *names, const char *name)
{
	size_t found = search_first((size_t)0, names->cnt, at, strcmp(names->items[at]->name, name) >= 0);

	return found < names->cnt && !strcmp(names->items[found]->name, name) ? names->items[found] : NULL;
}

/* Groups of hosts stand out by their hosts: the groups are there, `hosts` has each host's tail. */
static int ask_members(struct fleet_ask *ask, struct fleet_answer *answer, const struct fleet_answer *hosts)
{
	struct group_names of_hosts = {0}, of_groups = {0};
	VEC(struct fleet_host_tail) tails = {0};
	struct clickhouse_rows rows = {0};
	int err = group_names__sort(&of_hosts, hosts->groups, hosts->group_cnt)
			  ?: group_names__sort(&of_groups, answer->groups, answer->group_cnt)
			  ?: question_fact_hosts(ask->server, &ask->filter, answer->fact, &rows);

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const struct fleet_group *host = group_names__find(&of_hosts, rows.cells[2 * i]);
		const struct fleet_group *group = group_names__find(&of_groups, rows.cells[2 * i + 1]);

		if (host && !isnan(host->tail_ns))
			err = vec_push(&tails, ((struct fleet_host_tail){
						       .tail_ns = host->tail_ns,
						       .group = group ? (uint32_t)(group - answer->groups) : UINT32_MAX,
					       }));
	}
	clickhouse_rows__free(&rows);
	if (!err)
		err = fleet_compare_hosts(answer->groups, answer->group_cnt, tails.items, tails.cnt);
	vec_free(&tails);
	free(of_hosts.items);
	free(of_groups.items);
	return err;
}

static int ask_fact(struct fleet_ask *ask, struct fleet_answer *answer)
{
	struct fleet_answer hosts = {.question = FLEET_HOSTS, .tail = answer->tail};
	int err = ask_groups(ask, &hosts) ?: ask_groups(ask, answer);

	if (!err)
		err = ask_members(ask, answer, &hosts);
	answer->late_host_cnt = hosts.late_host_cnt;
	answer->other_host_cnt = hosts.other_host_cnt;
	free_groups(&hosts);
	return err;
}

static struct fleet_group *group_of(const struct fleet_answer *answer, const char *name)
{
	for (size_t i = 0; i < answer->group_cnt; i++)
		if (answer->groups[i].stands_out && !strcmp(answer->groups[i].name, name))
			return &answer->groups[i];
	return NULL;
}

/* What the first of those that stand out spend their late requests with. */
static int ask_late(struct fleet_ask *ask, struct fleet_answer *answer, uint32_t tail_class)
{
	struct clickhouse_rows rows = {0};
	const char *names[LATE_MAX];
	size_t cnt = 0;
	int err = 0;

	for (size_t i = 0; i < answer->group_cnt && cnt < LATE_MAX; i++)
		if (answer->groups[i].stands_out)
			names[cnt++] = answer->groups[i].name;
	if (cnt)
		err = question_late(ask->server, &ask->filter, answer->fact, names, cnt, tail_class, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + (2 + WL_CATEGORY_CNT) * i;
		struct fleet_group *group = group_of(answer, cells[0]);

		if (!group)
			continue;
		if (!clickhouse_f64(cells[1], &group->late_requests))
			err = -EBADMSG;
		for (int c = 0; c < WL_CATEGORY_CNT; c++)
			if (!clickhouse_f64(cells[2 + c], &group->late_ns[c]))
				err = -EBADMSG;
	}
	clickhouse_rows__free(&rows);
	return err;
}

static int take_recording(struct fleet_ask *ask, struct fleet_recording *recording, const char *session,
			  const char *sid, const char *host, const char *path)
{
	if (!clickhouse_u64(session, &recording->session_id) || !clickhouse_u64(sid, &recording->sid))
		return -EBADMSG;
	recording->host = keep(ask, host);
	recording->path = keep(ask, path);
	return recording->host && recording->path ? 0 : -ENOMEM;
}

/* Those that stand out: into `names`, which has room for all groups.  How many. */
static size_t list_late(const struct fleet_answer *answer, const char **names)
{
	size_t cnt = 0;

	for (size_t i = 0; i < answer->group_cnt; i++)
		if (answer->groups[i].stands_out)
			names[cnt++] = answer->groups[i].name;
	return cnt;
}

/* The recordings behind the hosts that stand out, and what they are late by. */
static int ask_first_causes(struct fleet_ask *ask, struct fleet_answer *answer)
{
	const char **late = calloc(answer->group_cnt + 1, sizeof(*late));
	struct clickhouse_rows rows = {0};
	int err =
		late ? question_first_causes(ask->server, &ask->filter, late, list_late(answer, late), &rows) : -ENOMEM;

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + QUESTION_FIRST_COLUMNS * i;
		struct fleet_group *group = group_of(answer, cells[0]);

		if (!group || group->recording_cnt >= FLEET_RECORDINGS_MAX)
			continue;
		if (!group->cause) {
			group->cause = keep(ask, cells[1]);
			if (!clickhouse_f64(cells[2], &group->cause_share))
				err = -EBADMSG;
			if (!group->cause)
				err = -ENOMEM;
		}
		if (!err)
			err = take_recording(ask, &group->recordings[group->recording_cnt++], cells[3], cells[4],
					     cells[0], cells[5]);
	}
	free(late);
	clickhouse_rows__free(&rows);
	return err;
}

static int ask_facts(struct fleet_ask *ask, struct fleet_answer *answer)
{
	const char **late = calloc(answer->group_cnt + 1, sizeof(*late));
	size_t late_cnt = late ? list_late(answer, late) : 0;
	VEC(struct fleet_fact) facts = {0};
	struct clickhouse_rows rows = {0};
	int err = late ? 0 : -ENOMEM;

	if (late_cnt)
		err = question_facts(ask->server, &ask->filter, late, late_cnt, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + 4 * i;
		struct fleet_fact fact = {.key = keep(ask, cells[0]), .value = keep(ask, cells[1])};
		uint64_t having_cnt, other_cnt;

		if (!clickhouse_u64(cells[2], &having_cnt) || !clickhouse_u64(cells[3], &other_cnt))
			err = -EBADMSG;
		/* A host without requests in the time has facts all the same. */
		fact.late = err || having_cnt > late_cnt ? (uint32_t)late_cnt : (uint32_t)having_cnt;
		fact.other = err || other_cnt > answer->other_host_cnt ? (uint32_t)answer->other_host_cnt
								       : (uint32_t)other_cnt;
		if (!err)
			err = fact.key && fact.value ? vec_push(&facts, fact) : -ENOMEM;
	}
	clickhouse_rows__free(&rows);
	fleet_rank_facts(facts.items, facts.cnt, (uint32_t)answer->late_host_cnt, (uint32_t)answer->other_host_cnt);
	answer->facts = facts.items;
	answer->fact_cnt = facts.cnt;
	free(late);
	return err;
}

static int take_root(struct fleet_ask *ask, struct fleet_root *root, const char *const *cells)
{
	const char **texts[] = {&root->category, &root->kind,   &root->role,
				&root->function, &root->object, &root->culprit};
	double recorded_s;

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		if (!(*texts[t] = keep(ask, cells[t])))
			return -ENOMEM;
	if (!clickhouse_u64(cells[6], &root->host_cnt) || !clickhouse_f64(cells[7], &root->late_requests) ||
	    !clickhouse_f64(cells[8], &recorded_s))
		return -EBADMSG;
	root->late_per_day = recorded_s > 0 ? root->late_requests / recorded_s * DAY_S : NAN;
	root->what = keep(ask, cells[9]);
	return root->what ? take_recording(ask, &root->recording, cells[10], cells[11], cells[12], cells[13]) : -ENOMEM;
}

static int ask_roots(struct fleet_ask *ask, struct fleet_answer *answer)
{
	VEC(struct fleet_root) roots = {0};
	struct clickhouse_rows rows = {0};
	int err = question_roots(ask->server, &ask->filter, ROOTS_MAX, &rows);

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		struct fleet_root root = {0};

		err = take_root(ask, &root, rows.cells + QUESTION_ROOTS_COLUMNS * i);
		if (!err)
			err = vec_push(&roots, root);
	}
	clickhouse_rows__free(&rows);
	answer->roots = roots.items;
	answer->root_cnt = roots.cnt;
	return err;
}

static int ask_change(struct fleet_ask *ask, struct fleet_answer *answer, uint32_t tail_class)
{
	uint64_t span_ns = answer->end_ns - answer->begin_ns, unit_ns;
	VEC(struct fleet_step) steps = {0};
	struct clickhouse_rows rows = {0};
	int err;

	unit_ns = span_ns / STEP_CNT >= QUESTION_STEP_NS ? QUESTION_STEP_NS : SECOND_NS;
	answer->step_ns = (span_ns / STEP_CNT / unit_ns + 1) * unit_ns;
	err = question_steps(ask->server, &ask->filter, answer->step_ns, tail_class, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *const *cells = rows.cells + 4 * i;
		struct fleet_step step;

		if (!clickhouse_u64(cells[0], &step.begin_ns) || !clickhouse_f64(cells[1], &step.weight) ||
		    !clickhouse_f64(cells[2], &step.weight2) || !clickhouse_f64(cells[3], &step.late))
			err = -EBADMSG;
		else
			err = vec_push(&steps, step);
	}
	clickhouse_rows__free(&rows);
	if (!err)
		answer->change = fleet_find_change(steps.items, steps.cnt);
	vec_free(&steps);
	return err;
}

static int take_heat(struct fleet_heat *cell, const struct fleet_answer *answer, const struct group_names *of_groups,
		     const char *const *cells)
{
	const struct fleet_group *group = group_names__find(of_groups, cells[0]);

	if (!group || !clickhouse_u64(cells[1], &cell->begin_ns) || !clickhouse_f64(cells[2], &cell->weight) ||
	    !clickhouse_f64(cells[3], &cell->late))
		return -EBADMSG;
	cell->group = (uint32_t)(group - answer->groups);
	return 0;
}

/* By days where these are enough of them, since their sums are there. */
static int ask_heat(struct fleet_ask *ask, struct fleet_answer *answer, uint32_t tail_class)
{
	uint64_t span_ns = answer->end_ns - answer->begin_ns, minutes = span_ns / HEAT_STEPS / QUESTION_STEP_NS + 1;
	struct group_names of_groups = {0};
	VEC(struct fleet_heat) heat = {0};
	struct clickhouse_rows rows = {0};
	const char *names[HEAT_MAX];
	int err;

	answer->heat_step_ns = span_ns >= 6 * QUESTION_DAY_NS ? QUESTION_DAY_NS : minutes * QUESTION_STEP_NS;
	answer->heat_group_cnt = answer->group_cnt < HEAT_MAX ? answer->group_cnt : HEAT_MAX;
	for (size_t i = 0; i < answer->heat_group_cnt; i++)
		names[i] = answer->groups[i].name;
	err = group_names__sort(&of_groups, answer->groups, answer->heat_group_cnt)
		      ?: question_heat(ask->server, &ask->filter, names, answer->heat_group_cnt, answer->heat_step_ns,
				       tail_class, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		struct fleet_heat cell;

		err = take_heat(&cell, answer, &of_groups, rows.cells + QUESTION_HEAT_COLUMNS * i);
		if (err)
			break;
		if (!i || cell.begin_ns < answer->heat_begin_ns)
			answer->heat_begin_ns = cell.begin_ns;
		if (cell.begin_ns + answer->heat_step_ns > answer->heat_end_ns)
			answer->heat_end_ns = cell.begin_ns + answer->heat_step_ns;
		err = vec_push(&heat, cell);
	}
	free(of_groups.items);
	clickhouse_rows__free(&rows);
	answer->heat = heat.items;
	answer->heat_cnt = heat.cnt;
	return err;
}

static int ask_it(struct fleet_ask *ask, struct fleet_answer *answer)
{
	bool by_host = answer->question == FLEET_HOSTS || answer->question == FLEET_COMMON;
	uint32_t tail_class = 0;
	int err = ask_whole(ask, answer, &tail_class);

	if (err || !(answer->requests > 0))
		return err;
	if (answer->question == FLEET_ROOTS)
		return ask_roots(ask, answer);
	if (answer->question == FLEET_SINCE)
		return ask_change(ask, answer, tail_class);
	err = by_host ? ask_groups(ask, answer) : ask_fact(ask, answer);
	if (!err && !answer->group_cnt)
		err = -ENOENT;
	if (!err)
		err = ask_late(ask, answer, tail_class);
	if (!err && answer->late_host_cnt && by_host)
		err = ask_first_causes(ask, answer) ?: ask_facts(ask, answer);
	if (!err && ask->heat && by_host)
		err = ask_heat(ask, answer, tail_class);
	return err;
}

int fleet_ask(struct fleet_ask *ask, struct fleet_answer *answer)
{
	struct project_days days = {0};
	int err = ask->from_rows ? 0 : project_days__load(&days, ask->server);

	if (!err) {
		ask->filter.days = ask->from_rows ? NULL : &days;
		err = ask_it(ask, answer);
		ask->filter.days = NULL;
	}
	project_days__free(&days);
	return err;
}

void fleet_answer_free(struct fleet_answer *answer)
{
	free_groups(answer);
	free(answer->roots);
	free(answer->facts);
	free(answer->heat);
}
