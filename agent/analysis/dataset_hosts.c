// SPDX-License-Identifier: GPL-2.0-or-later
/* The hosts that the recordings come from: tables module and received, and what the sessions of each add up to. */
#include "analysis/dataset_build.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int dataset_build__module_block(struct dataset_build *build, const struct shard_block *block)
{
	const struct module_columns col = block_columns(block, MODULE, module);
	struct build_module module;
	uint32_t path, build_id;

	if (dataset_build__session_of(build, block, &module.session))
		return -ENOMEM;
	for (uint32_t row = 0; col.path && row < block->row_cnt; row++) {
		if (column_is_null(col.build_id, row))
			continue;
		if (intern__id(&build->strings, column_text(col.path, row), &path) ||
		    intern__id(&build->strings, column_text(col.build_id, row), &build_id))
			return -ENOMEM;
		module.path = build->strings.strings[path];
		module.build_id = build->strings.strings[build_id];
		if (vec_push(&build->modules, module))
			return -ENOMEM;
	}
	return 0;
}

int dataset_build__received_block(struct dataset_build *build, const struct shard_block *block)
{
	const struct shard_block_column *seqs = block_column(block, "seq", SHARD_U64);
	struct build_session *session;
	size_t idx;

	if (dataset_build__session_of(build, block, &idx))
		return -ENOMEM;
	session = &build->sessions.items[idx];
	for (uint32_t row = 0; seqs && row < block->row_cnt; row++) {
		session->frame_cnt++;
		if (column_u64(seqs, row) >= session->frame_end)
			session->frame_end = column_u64(seqs, row) + 1;
	}
	return 0;
}

static const char *host_name(const struct build_session *session)
{
	const char *name = session->name_host;

	if (!*name)
		build_session__text(session, "host", &name);
	return name;
}

ORDER(compare_hosts, struct dataset_host, strcmp(a->name, b->name));

static size_t host_of(const struct dataset *dataset, const char *name)
{
	struct dataset_host wanted = {.name = name};
	struct dataset_host *hit =
		bsearch(&wanted, dataset->hosts, dataset->host_cnt, sizeof(*dataset->hosts), compare_hosts);

	return hit ? (size_t)(hit - dataset->hosts) : 0;
}

/* Each name once, in order. */
static int list_hosts(struct dataset_build *build)
{
	struct dataset *dataset = build->dataset;
	size_t cnt = 0;

	dataset->hosts = arena__alloc(build->arena, build->sessions.cnt + 1, sizeof(*dataset->hosts));
	if (!dataset->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < build->sessions.cnt; i++)
		if (!build->sessions.items[i].unwanted)
			dataset->hosts[cnt++].name = host_name(&build->sessions.items[i]);
	qsort(dataset->hosts, cnt, sizeof(*dataset->hosts), compare_hosts);
	for (size_t i = 0; i < cnt; i++)
		if (!i || strcmp(dataset->hosts[i].name, dataset->hosts[dataset->host_cnt - 1].name))
			dataset->hosts[dataset->host_cnt++].name = dataset->hosts[i].name;
	return 0;
}

static void add_span(struct dataset_host *host, const struct build_session *session)
{
	uint64_t begin_ts = session->first_ts, end_ts = session->last_ts;

	if (!session->clock_known)
		return;
	build_session__number(session, "begin_ts", &begin_ts);
	build_session__number(session, "end_ts", &end_ts);
	if (begin_ts > end_ts)
		return;
	begin_ts += (uint64_t)session->clock_ns;
	end_ts += (uint64_t)session->clock_ns;
	if (!host->begin_wall_ns || begin_ts < host->begin_wall_ns)
		host->begin_wall_ns = begin_ts;
	if (end_ts >= host->end_wall_ns) {
		host->end_wall_ns = end_ts;
		build_session__text(session, "kernel", &host->kernel);
	}
}

static void add_session(const struct dataset_build *build, struct dataset_host *host,
			const struct build_session *session)
{
	uint64_t seen = build_session__seen(build, session);

	host->session_cnt++;
	host->row_cnt += session->row_cnt;
	host->frames_missing += session->frame_end - session->frame_cnt;
	if (__builtin_add_overflow(host->intervals_seen, seen, &host->intervals_seen))
		host->intervals_seen = UINT64_MAX;
	if (!host->kernel)
		build_session__text(session, "kernel", &host->kernel);
	add_span(host, session);
}

static int fill_hosts(struct dataset_build *build, uint32_t *session_hosts)
{
	struct dataset *dataset = build->dataset;

	for (size_t i = 0; i < build->sessions.cnt; i++) {
		const struct build_session *session = &build->sessions.items[i];

		if (session->unwanted)
			continue;
		session_hosts[i] = host_of(dataset, host_name(session));
		add_session(build, &dataset->hosts[session_hosts[i]], session);
	}
	for (size_t i = 0; i < build->losses.cnt; i++) {
		const struct build_loss *loss = &build->losses.items[i];
		struct dataset_host *host = &dataset->hosts[session_hosts[loss->session]];

		if (build->sessions.items[loss->session].unwanted)
			continue;
		if (loss->class == WL_LOSS_SPOOL)
			host->spool_lost += loss->lost;
		else if (loss->class == WL_LOSS_INTERVAL || loss->class == WL_LOSS_TASK)
			host->records_lost += loss->lost;
	}
	return 0;
}

ORDER(compare_modules, struct dataset_module, strcmp(a->path, b->path), strcmp(a->build_id, b->build_id),
      BY(a->host, b->host));

static int fill_modules(struct dataset_build *build, const uint32_t *session_hosts)
{
	struct dataset *dataset = build->dataset;
	struct dataset_module *modules = arena__alloc(build->arena, build->modules.cnt + 1, sizeof(*modules));
	size_t cnt = 0;

	if (!modules)
		return -ENOMEM;
	for (size_t i = 0; i < build->modules.cnt; i++) {
		const struct build_module *from = &build->modules.items[i];

		if (!build->sessions.items[from->session].unwanted)
			modules[cnt++] =
				(struct dataset_module){session_hosts[from->session], from->path, from->build_id};
	}
	qsort(modules, cnt, sizeof(*modules), compare_modules);
	for (size_t i = 0; i < cnt; i++)
		if (!i || compare_modules(&modules[i], &modules[dataset->module_cnt - 1]))
			modules[dataset->module_cnt++] = modules[i];
	dataset->modules = modules;
	return 0;
}

int dataset_build__hosts_end(struct dataset_build *build)
{
	uint32_t *session_hosts = arena__alloc(build->arena, build->sessions.cnt + 1, sizeof(*session_hosts));
	struct dataset *dataset = build->dataset;
	int err = session_hosts ? list_hosts(build) : -ENOMEM;

	if (!err)
		err = fill_hosts(build, session_hosts);
	if (!err)
		err = fill_modules(build, session_hosts);
	if (err || dataset->host_cnt < 2)
		return err;
	dataset->host_idx = arena__alloc(build->arena, dataset->row_cnt + 1, sizeof(*dataset->host_idx));
	if (!dataset->host_idx)
		return -ENOMEM;
	for (size_t row = 0; row < dataset->row_cnt; row++)
		dataset->host_idx[row] = session_hosts[dataset->session[row]];
	return 0;
}
