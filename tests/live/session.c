// SPDX-License-Identifier: GPL-2.0-or-later
#include "session.h"

#include "base/names.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX (2 * WL_STATE_CNT)

/* The columns of one block, looked up once. */
struct columns {
	const struct shard_block_column *begin_ts, *pickup_ts, *end_ts, *flags, *pid, *tid, *weight, *type;
	const struct shard_block_column *culprit_comm, *blocked_syscall, *lock_name, *lock_owner_comm;
	const struct shard_block_column *ns[WL_STATE_CNT], *n[WL_STATE_CNT];
};

bool recording_start(struct recording *recording, const char *dir_name, pid_t pid, const char *fmt, ...)
{
	char more[4096], target[32];
	va_list args;

	va_start(args, fmt);
	vsnprintf(more, sizeof(more), fmt, args);
	va_end(args);
	snprintf(target, sizeof(target), "-p %d", (int)pid);
	return recording_start_by(recording, dir_name, target, more);
}

bool recording_start_by(struct recording *recording, const char *dir_name, const char *target, const char *more)
{
	memset(recording, 0, sizeof(*recording));
	recording->dir = temp_unused(dir_name);
	if (process_start(&recording->process, "%s record %s -o %s %s", whylate_path(), target, recording->dir.s, more))
		return false;
	return CHECKF(process_says(&recording->process, true, "whylate: recording ", NULL, 20), "it said: %s",
		      process_err(&recording->process));
}

int recording_stop(struct recording *recording)
{
	process_signal(&recording->process, SIGINT);
	return process_wait(&recording->process, 20);
}

void recording_end(struct recording *recording)
{
	process_end(&recording->process);
}

static bool is_null(const struct shard_block_column *column, uint32_t row)
{
	return !column || (column->nulls && column->nulls[row / 64] >> (row % 64) & 1);
}

static uint64_t u64_at(const struct shard_block_column *column, uint32_t row)
{
	return is_null(column, row) || column->type != SHARD_U64 ? 0 : column->values[row].u64;
}

static const char *str_at(const struct shard_block_column *column, uint32_t row)
{
	return is_null(column, row) || column->type != SHARD_STR ? NULL : column->values[row].str;
}

bool interval_value(const struct interval *interval, const char *column_name, uint64_t *value)
{
	const struct shard_block_column *column = shard_block__column(interval->block, column_name);

	*value = u64_at(column, interval->row);
	return !is_null(column, interval->row);
}

static void columns_find(struct columns *columns, const struct shard_block *block)
{
	char name[64];

	columns->begin_ts = shard_block__column(block, "begin_ts");
	columns->pickup_ts = shard_block__column(block, "pickup_ts");
	columns->end_ts = shard_block__column(block, "end_ts");
	columns->flags = shard_block__column(block, "flags");
	columns->pid = shard_block__column(block, "pid");
	columns->tid = shard_block__column(block, "tid");
	columns->weight = shard_block__column(block, "weight");
	columns->type = shard_block__column(block, "type");
	columns->culprit_comm = shard_block__column(block, "culprit_comm");
	columns->blocked_syscall = shard_block__column(block, "blocked_syscall");
	columns->lock_name = shard_block__column(block, "lock_name");
	columns->lock_owner_comm = shard_block__column(block, "lock_owner_comm");
	for (int state = 0; state < WL_STATE_CNT; state++) {
		snprintf(name, sizeof(name), "ns.%s", state_name(state));
		columns->ns[state] = shard_block__column(block, name);
		snprintf(name, sizeof(name), "n.%s", state_name(state));
		columns->n[state] = shard_block__column(block, name);
	}
}

static void interval_fill(struct interval *interval, const struct columns *columns, const struct shard_block *block,
			  uint32_t row)
{
	interval->block = block;
	interval->row = row;
	interval->begin_ts = u64_at(columns->begin_ts, row);
	interval->pickup_ts = u64_at(columns->pickup_ts, row);
	interval->end_ts = u64_at(columns->end_ts, row);
	interval->latency_ns = interval->end_ts - interval->begin_ts;
	interval->flags = u64_at(columns->flags, row);
	interval->pid = u64_at(columns->pid, row);
	interval->tid = u64_at(columns->tid, row);
	interval->weight = is_null(columns->weight, row) ? 0 : columns->weight->values[row].f64;
	interval->type = str_at(columns->type, row);
	interval->culprit_comm = str_at(columns->culprit_comm, row);
	interval->blocked_syscall = str_at(columns->blocked_syscall, row);
	interval->lock_name = str_at(columns->lock_name, row);
	interval->lock_owner_comm = str_at(columns->lock_owner_comm, row);
	for (int state = 0; state < WL_STATE_CNT; state++) {
		interval->ns[state] = u64_at(columns->ns[state], row);
		interval->n[state] = u64_at(columns->n[state], row);
	}
}

static void take_interval(struct session *session, const struct interval *interval)
{
	uint64_t sum_ns = 0;

	for (int state = 0; state < WL_STATE_CNT; state++) {
		sum_ns += interval->ns[state];
		session->ns[state] += interval->ns[state];
		session->n[state] += interval->n[state];
	}
	session->row_cnt++;
	session->uneven_cnt += sum_ns != interval->latency_ns || interval->end_ts < interval->begin_ts;
	session->torn_cnt += (interval->flags & WL_INTERVAL_TORN) != 0;
	session->lossy_cnt += (interval->flags & WL_INTERVAL_LOSSY) != 0;
	session->flagged_cnt += (interval->flags & (WL_INTERVAL_TORN | WL_INTERVAL_LOSSY | WL_INTERVAL_HISTORY)) != 0;
	session->no_arrival_cnt += (interval->flags & WL_INTERVAL_NO_ARRIVAL) != 0;
	session->moved_cnt += (interval->flags & WL_INTERVAL_MOVED) != 0;
	session->weight_sum += interval->weight;
	session->latency_sum_ns += (double)interval->latency_ns;
	session->weighted_latency_sum_ns += interval->weight * (double)interval->latency_ns;
}

static void take_keys(struct session *session, const struct shard_block *block)
{
	const struct shard_block_column *ts = shard_block__column(block, "ts");
	const struct shard_block_column *keys = shard_block__column(block, "key");
	const struct shard_block_column *values = shard_block__column(block, "value");

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		const char *key = str_at(keys, row), *value = str_at(values, row);
		size_t i = 0;

		if (!key || !value)
			continue;
		while (i < session->key_cnt && strcmp(session->keys[i].key, key))
			i++;
		if (i == sizeof(session->keys) / sizeof(session->keys[0]) ||
		    (i < session->key_cnt && session->keys[i].ts > u64_at(ts, row)))
			continue;
		session->key_cnt += i == session->key_cnt;
		session->keys[i].ts = u64_at(ts, row);
		snprintf(session->keys[i].key, sizeof(session->keys[i].key), "%s", key);
		snprintf(session->keys[i].value, sizeof(session->keys[i].value), "%s", value);
	}
}

/* Running totals per class and CPU: the newest holds, which is the last one of its shard. */
struct losses {
	struct {
		uint64_t ts, emitted, lost;
	} newest[WL_LOSS_CNT][512];
};

static void take_losses(struct losses *losses, const struct shard_block *block)
{
	const struct shard_block_column *ts = shard_block__column(block, "ts");
	const struct shard_block_column *classes = shard_block__column(block, "class");
	const struct shard_block_column *cpus = shard_block__column(block, "cpu");
	const struct shard_block_column *emitted = shard_block__column(block, "emitted");
	const struct shard_block_column *lost = shard_block__column(block, "lost");

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		const char *class = str_at(classes, row);
		uint64_t cpu = u64_at(cpus, row);

		for (int i = 0; class && i < WL_LOSS_CNT && cpu < 512; i++) {
			if (strcmp(class, loss_name(i)) || losses->newest[i][cpu].ts > u64_at(ts, row))
				continue;
			losses->newest[i][cpu].ts = u64_at(ts, row);
			losses->newest[i][cpu].emitted = u64_at(emitted, row);
			losses->newest[i][cpu].lost = u64_at(lost, row);
		}
	}
}

static void take_block(struct session *session, struct losses *losses, const struct shard_block *block,
		       interval_visitor visit, void *owner)
{
	struct interval interval;
	struct columns columns;

	for (int table = 0; table < SHARD_TABLE_CNT; table++)
		if (!strcmp(block->table, shard_tables[table].name))
			session->rows[table] += block->row_cnt;
	if (!strcmp(block->table, "session"))
		take_keys(session, block);
	if (!strcmp(block->table, "loss"))
		take_losses(losses, block);
	if (!strcmp(block->table, "thread"))
		session->thread_row_cnt += block->row_cnt;
	if (strcmp(block->table, "interval"))
		return;
	columns_find(&columns, block);
	for (uint32_t row = 0; row < block->row_cnt; row++) {
		interval_fill(&interval, &columns, block, row);
		take_interval(session, &interval);
		if (visit)
			visit(owner, &interval);
	}
}

bool session_read(struct session *session, const char *dir, interval_visitor visit, void *owner)
{
	const char *bad_path = NULL;
	struct shard_reader *reader = shard_reader__open(&dir, 1, &bad_path);
	struct losses *losses = calloc(1, sizeof(*losses));
	const struct shard_damage *damage;
	const struct shard_block *block;
	int err = reader && losses ? 0 : -ENOENT;

	memset(session, 0, sizeof(*session));
	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		take_block(session, losses, block, visit, owner);
		err = 0;
	}
	for (int class = 0; losses && class < WL_LOSS_CNT; class ++) {
		for (int cpu = 0; cpu < 512; cpu++) {
			session->emitted[class] += losses->newest[class][cpu].emitted;
			session->lost[class] += losses->newest[class][cpu].lost;
		}
	}
	if (reader)
		session->damage_cnt = shard_reader__damage(reader, &damage);
	free(losses);
	shard_reader__free(reader);
	return CHECKF(!err, "%s cannot be read: %s", dir, strerror(-err));
}

const char *session_key(const struct session *session, const char *key)
{
	for (size_t i = 0; i < session->key_cnt; i++)
		if (!strcmp(session->keys[i].key, key))
			return session->keys[i].value;
	return "";
}

uint64_t session_number(const struct session *session, const char *key)
{
	const char *value = session_key(session, key);

	return *value ? strtoull(value, NULL, 10) : UINT64_MAX;
}

bool session_check(const struct session *session)
{
	uint64_t received = session_number(session, "records_received"), kept = session_number(session, "rows_kept");
	bool good = true;

	good &= CHECKF(!session->uneven_cnt, "%lu of %lu rows", session->uneven_cnt, session->row_cnt);
	/* A row that had to be made to sum is a measurement that failed. One of a thousand may, or two of a short
	 * recording. */
	good &= CHECKF(session->torn_cnt <= 2 + session->row_cnt / 1000, "%lu of %lu rows are torn", session->torn_cnt,
		       session->row_cnt);
	good &= CHECKF(session->emitted[WL_LOSS_INTERVAL] == received + session->lost[WL_LOSS_INTERVAL],
		       "emitted %lu, received %lu, lost %lu", session->emitted[WL_LOSS_INTERVAL], received,
		       session->lost[WL_LOSS_INTERVAL]);
	good &= CHECKF(session->row_cnt == kept, "%lu rows, %lu kept", session->row_cnt, kept);
	good &= CHECKF(!session->damage_cnt, "%lu places are damaged", session->damage_cnt);
	return good;
}

bool session_check_no_loss(const struct session *session)
{
	bool good = true;

	/*
	 * What the kernel leaves out is not ours to lose, only to notice: a context switch that its tracepoint does not
	 * report (some virtual machines), a program that it does not run on top of itself, memory for a thread that it
	 * has none of at that moment (now and then; the thread's next event asks again).
	 */
	for (int class = 0; class < WL_LOSS_CNT; class ++)
		if (class != WL_LOSS_MISSED_SWITCH && class != WL_LOSS_MISSED_RUN &&
		    (class != WL_LOSS_NO_CONTEXT || session->lost[class] > REFUSED_MAX))
			good &= CHECKF(!session->lost[class], "%lu %s", session->lost[class], loss_name(class));
	return good & CHECKF(!session->lossy_cnt || session->lost[WL_LOSS_MISSED_SWITCH],
			     "%lu rows are flagged for no reason", session->lossy_cnt);
}

bool session_check_little_loss(const struct session *session)
{
	uint64_t lost = session->lost[WL_LOSS_INTERVAL], emitted = session->emitted[WL_LOSS_INTERVAL];

	return CHECKF((double)lost <= LOSS_MAX * (double)emitted, "%lu of %lu intervals are lost", lost, emitted);
}

void visit_rows(const char *dir, const char *table, row_visitor visit, void *owner)
{
	struct process process;
	const char *text;

	if (!CHECK(whylate(&process, 60, "export %s --format jsonl --table %s", dir, table) == 0))
		goto cleanup;
	text = process_out(&process);
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);
		json_object *row = json_tokener_parse(line);

		if (row)
			visit(owner, row);
		json_object_put(row);
		free(line);
		text += len + (text[len] == '\n');
	}
cleanup:
	process_end(&process);
}
