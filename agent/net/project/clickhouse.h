/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ClickHouse server over HTTP: statements, answers as rows of text, inserts of RowBinary.  libcurl stays in here.
 * Answers are bounded and parsed strictly; nothing of them is trusted.  One thread per client.
 *
 *   clickhouse://HOST[:PORT]/DATABASE    HTTP, port 8123; to this machine only, unless `insecure`
 *   clickhouses://HOST[:PORT]/DATABASE   HTTPS, port 8443
 */
#ifndef WHYLATE_NET_PROJECT_CLICKHOUSE_H
#define WHYLATE_NET_PROJECT_CLICKHOUSE_H

#include "shard/format.h"

#include <stdbool.h>

#define CLICKHOUSE_ANSWER_MAX (64u << 20)
#define CLICKHOUSE_TEXT_SZ    512
/* Numbers of the server's errors (its ErrorCodes.cpp, the same in all versions). */
#define CLICKHOUSE_DUPLICATE_COLUMN 15
#define CLICKHOUSE_ILLEGAL_COLUMN   44
#define CLICKHOUSE_TABLE_EXISTS     57
#define CLICKHOUSE_NO_SUCH_TABLE    60
#define CLICKHOUSE_TOO_MANY_PARTS   252
#define CLICKHOUSE_NO_SUCH_DATABASE 81
#define CLICKHOUSE_TIMEOUT_EXCEEDED 159

/* The user may not do that: by users.xml, by a read-only profile, by GRANT. */
#define CLICKHOUSE_READONLY         164
#define CLICKHOUSE_DATABASE_DENIED  291
#define CLICKHOUSE_QUERY_PROHIBITED 392
#define CLICKHOUSE_ACCESS_DENIED    497

struct clickhouse_opts {
	const char *url;
	const char *credentials_path; /* a file with USER:PASSWORD; NULL: $CREDENTIALS_DIRECTORY/clickhouse if it is
					 there */
	const char *ca_path;          /* PEM: trust these only; NULL: the system's */
	bool insecure;
	/* Asked several times a second while a request is under way: true ends it. */
	bool (*should_stop)(void *owner);
	void *owner;
};

struct clickhouse;

/* NULL, or what is wrong with the URL. */
const char *clickhouse_url_check(const char *url, bool insecure);
/* NULL and errno; *what is then what could not be read or used. */
struct clickhouse *clickhouse__new(const struct clickhouse_opts *opts, const char **what);
void clickhouse__free(struct clickhouse *server);

const char *clickhouse__database(const struct clickhouse *server);

/* The answer to the last statement: rows of cells, unescaped, NUL-terminated. */
struct clickhouse_rows {
	char *bytes; /* owns the cells */
	const char **cells;
	size_t row_cnt;
	uint32_t column_cnt;
};

/*
 * A statement; %-free: the caller has quoted what goes into it (sql.h).  *rows (NULL: none are wanted) has column_cnt
 * columns, and is to be freed.  0; -EPROTO: the server refused it, clickhouse__code() and clickhouse__text() say why;
 * -EBADMSG: an answer of another form; -EFBIG; -EHOSTDOWN: no answer, and the statement may have been carried out or
 * not; -ECANCELED; -ENOMEM.
 */
int clickhouse__ask(struct clickhouse *server, const char *sql, uint32_t column_cnt, struct clickhouse_rows *rows);
int clickhouse__do(struct clickhouse *server, const char *sql);
/*
 * From now on statements are for a cluster: an INSERT ends when its shards have the rows, what is to be done ON CLUSTER
 * does not wait long for servers that are away (CLICKHOUSE_TIMEOUT_EXCEEDED).
 */
void clickhouse__on_cluster(struct clickhouse *server);
/* From now on an answer of servers that lag behind their shard's others is an error (clickhouse__was_away()). */
void clickhouse__no_lag(struct clickhouse *server);
/* It was that a server of the cluster, or its ZooKeeper, is away, or not ready yet. */
bool clickhouse__was_away(const struct clickhouse *server);
/*
 * INSERT: `sql` ends with FORMAT RowBinary, the body is compressed on its way, so that one that is cut short is no
 * body.  `token` NULL: none, else the server ignores a second insert with the same one; "": one of the same rows, on a
 * cluster.
 */
int clickhouse__insert(struct clickhouse *server, const char *sql, const struct shard_buf *body, const char *token);
void clickhouse_rows__free(struct clickhouse_rows *rows);

/* Of the last failure. */
int clickhouse__code(const struct clickhouse *server);
const char *clickhouse__text(const struct clickhouse *server);
/* It was that the user may not do it. */
bool clickhouse__was_denied(const struct clickhouse *server);

/* The answer's bytes, which are taken over, as rows; for clickhouse__ask() and tests.  0, -EBADMSG, -ENOMEM. */
int clickhouse_rows__parse(struct clickhouse_rows *rows, char *bytes, size_t sz, uint32_t column_cnt);

/* Cells as numbers: the whole of the text, or false. */
bool clickhouse_u64(const char *cell, uint64_t *value);
bool clickhouse_f64(const char *cell, double *value);

#endif
