/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings as the tests make and read them: a `whylate record` under way, what its shards hold (read with the
 * product's reader, judged with arithmetic of our own), and its report.
 */
#ifndef WHYLATE_TESTS_SESSION_H
#define WHYLATE_TESTS_SESSION_H

#include "harness.h"

#include <json-c/json.h>
#include <whylate/record.h>

#include "shard/reader.h"

struct recording {
	struct process process;
	struct path dir;
};

/* Starts one with these further arguments and waits until it is attached. */
bool recording_start(struct recording *recording, const char *dir_name, pid_t pid, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Likewise of a target that is named in another way: "--port 80". */
bool recording_start_by(struct recording *recording, const char *dir_name, const char *target, const char *more);
/* Ctrl-C, and its exit code. */
int recording_stop(struct recording *recording);
void recording_end(struct recording *recording);

/* One row of `interval`. */
struct interval {
	uint64_t begin_ts, pickup_ts, end_ts, latency_ns, flags;
	uint64_t pid, tid;
	double weight;
	const char *type, *culprit_comm, *blocked_syscall, *lock_name, *lock_owner_comm; /* NULL: null */
	uint64_t ns[WL_STATE_CNT], n[WL_STATE_CNT];
	const struct shard_block *block;
	uint32_t row;
};

/* A nullable column of the row: false where it is null (or there is no such column). */
bool interval_value(const struct interval *interval, const char *column, uint64_t *value);

struct session {
	uint64_t row_cnt;
	uint64_t uneven_cnt; /* rows whose states do not sum to the latency */
	uint64_t torn_cnt, lossy_cnt, no_arrival_cnt, moved_cnt;
	uint64_t flagged_cnt; /* rows with any of the flags of a loss: torn, lossy, history */
	uint64_t thread_row_cnt, damage_cnt;
	uint64_t rows[SHARD_TABLE_CNT];
	double weight_sum, latency_sum_ns, weighted_latency_sum_ns;
	uint64_t ns[WL_STATE_CNT], n[WL_STATE_CNT]; /* sums over the rows, unweighted */
	uint64_t emitted[WL_LOSS_CNT], lost[WL_LOSS_CNT];
	struct {
		char key[64], value[512];
		uint64_t ts;
	} keys[128];
	size_t key_cnt;
};

typedef void (*interval_visitor)(void *owner, const struct interval *interval);

/* Reads all shards of a directory (or one file). A failure is a failed check, too. */
bool session_read(struct session *session, const char *dir, interval_visitor visit, void *owner);
const char *session_key(const struct session *session, const char *key);
/* UINT64_MAX where it is missing. */
uint64_t session_number(const struct session *session, const char *key);
/*
 * What holds for every recording: rows sum exactly, emitted = received + lost, kept rows are in the shard; nothing is
 * damaged.
 */
bool session_check(const struct session *session);
bool session_check_no_loss(const struct session *session);
/*
 * For loads that fill both CPUs: the agent may get none for longer than a ring holds. Loss is counted, and it is at
 * most this share of the intervals.
 */
#define LOSS_MAX    0.1
#define REFUSED_MAX 2 /* threads that the kernel had no memory for */
bool session_check_little_loss(const struct session *session);

typedef void (*row_visitor)(void *owner, json_object *row);
/* Every row of a table, as `export --format jsonl` gives it. */
void visit_rows(const char *dir, const char *table, row_visitor visit, void *owner);

/* The parsed report (json_object_put() it), or NULL after a failed check. */
json_object *report_read(const char *dir, const char *more_args);
/* A path like "causes.0.culprit.comm": NULL where there is no such thing, or where it is null. */
json_object *json_at(json_object *root, const char *path);
double json_number(json_object *root, const char *path);
const char *json_text(json_object *root, const char *path);
/* The line of a category; NULL if there is none. */
json_object *json_breakdown(json_object *root, const char *category);
/*
 * Of the tail, in lines of categories: what was done to threads from outside (CPUs that others had, interrupts), `but`
 * one.  It keeps its category wherever it happens, also in time that a workload took for its plant.
 */
double json_outside_share(json_object *lines, const char *but);
/* All keys of whylate.report/1. */
bool report_check_schema(json_object *root);

#endif
