/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs that are recorded: tests/workloads by their protocol (workloads/common.h), and Redis. */
#ifndef WHYLATE_TESTS_SERVERS_H
#define WHYLATE_TESTS_SERVERS_H

#include "harness.h"

#include <json-c/json.h>

struct workload {
	struct process process;
	struct path go; /* it counts requests from the moment that this file exists */
	const char *name;
	pid_t server_pid;
	int port;
	json_object *result;
	const char *category, *culprit_comm; /* of the result; culprit_comm may be "" */
	double planted_share;
	uint64_t intervals;
	uint64_t go_ts; /* what was sent before is warm-up */
};

/* Started and ready, in its warm-up.  False: it failed (a failed check), or it is skipped (said with its reason). */
bool workload_start(struct workload *workload, const char *name, unsigned int seconds);
/*
 * Likewise, by a script of sh -e that ends in its exec: it has shifted away $1, where the workloads are, $2, `dir`, and
 * $3, its name; the rest are its arguments.
 */
bool workload_start_by(struct workload *workload, const char *name, unsigned int seconds, const char *script,
		       const char *dir);
/* From now on it counts. */
void workload_go(struct workload *workload);
/* Waits for its end and its result. */
bool workload_finish(struct workload *workload, unsigned int timeout_s);
void workload_end(struct workload *workload);

struct redis {
	struct process process;
	int port;
};

/* On a port of its own, pinned to a CPU or ANY_CPU, without persistence. */
bool redis_start(struct redis *redis, int cpu);
bool redis_answers(const struct redis *redis);
/* How many commands it has carried out since its start. */
bool redis_processed(const struct redis *redis, uint64_t *cnt);
void redis_end(struct redis *redis);
/* redis-benchmark with this many GETs over so many connections: starts it. */
bool redis_load_start(struct process *load, const struct redis *redis, int cpu, unsigned int requests,
		      unsigned int connections);
/* One child of eight threads, event MPM, and a page of six bytes, with its files below a directory of this name. */
bool apache_start(struct process *server, const char *name, int port);
/*
 * A master and two workers with their files below a directory of this name, index.html among them; the directives are
 * those of its one server.
 */
bool nginx_start(struct process *server, const char *name, int port, const char *directives);
void nginx_end(struct process *server);
/* A directory with all that is in it, and whose it is; `to` is not there yet. */
bool tree_copy(const char *from, const char *to);
/* A program is missing: says so as a skip. */
bool program_missing(const char *test, const char *program);

#endif
