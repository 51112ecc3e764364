// SPDX-License-Identifier: GPL-2.0-or-later
#include "collector.h"

#include "shard/crc32c.h"
#include "shard/pack.h"

#include <whylate/record.h>

#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool collector_launch(struct collector *collector, const char *more)
{
	static const struct launch as_nobody = {.user = "nobody", .cpu = ANY_CPU};
	const char *at;

	collector->tls = strstr(more, "--tls-cert") != NULL;
	process_launch(&collector->process, &as_nobody, "%s collect --listen 127.0.0.1:%d --store %s %s",
		       whylate_path(), collector->port, collector->store.s, more);
	if (!CHECKF(process_says(&collector->process, true, "listening on", NULL, 10), "%s",
		    process_err(&collector->process)))
		return false;
	at = strstr(process_err(&collector->process), "127.0.0.1:");
	collector->port = at ? atoi(at + strlen("127.0.0.1:")) : 0;
	return CHECK(collector->port > 0);
}

bool collector_start(struct collector *collector, const char *store_name, const char *fmt, ...)
{
	struct path stores = temp_path("stores");
	char more[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(more, sizeof(more), fmt, args);
	va_end(args);
	memset(collector, 0, sizeof(*collector));
	collector->store = temp_path("stores/%s", store_name);
	mkdir(stores.s, 0755);
	CHECK(!chown(stores.s, ID_NOBODY, ID_NOBODY));
	return collector_launch(collector, more);
}

bool collector_restart(struct collector *collector, const char *fmt, ...)
{
	char more[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(more, sizeof(more), fmt, args);
	va_end(args);
	process_end(&collector->process);
	return collector_launch(collector, more);
}

int collector_stop(struct collector *collector)
{
	process_signal(&collector->process, SIGTERM);
	return process_wait(&collector->process, 15);
}

void collector_end(struct collector *collector)
{
	process_end(&collector->process);
}

static int ask(struct collector *collector, char answer[ANSWER_SZ], const char *path, const char *more)
{
	struct path out = temp_path("answer");
	struct process curl;
	char *text = NULL;
	int status = 0;

	unlink(out.s);
	process_start(&curl, "curl -s -m 60 --path-as-is -o %s -w %%{http_code} %s %s://%s:%d%s", out.s, more,
		      collector->tls ? "https" : "http", collector->tls ? "localhost" : "127.0.0.1", collector->port,
		      path);
	process_wait(&curl, 70);
	status = atoi(process_out(&curl));
	process_end(&curl);
	text = file_read(out.s, NULL);
	snprintf(answer, ANSWER_SZ, "%s", text ? text : "");
	free(text);
	return status;
}

int collector_ask(struct collector *collector, char answer[ANSWER_SZ], const char *path, const char *fmt, ...)
{
	char more[4096];
	va_list args;

	va_start(args, fmt);
	vsnprintf(more, sizeof(more), fmt, args);
	va_end(args);
	return ask(collector, answer, path, more);
}

int collector_post(struct collector *collector, char answer[ANSWER_SZ], const char *host, const char *body_path,
		   const char *fmt, ...)
{
	char path[PROTOCOL_PATH_SZ], more[4096];
	va_list args;
	int len = snprintf(more, sizeof(more), "--data-binary @%s ", body_path);

	va_start(args, fmt);
	vsnprintf(more + len, sizeof(more) - (size_t)len, fmt, args);
	va_end(args);
	protocol_path__put(path, host, SESSION_ID);
	return ask(collector, answer, path, more);
}

void collector_expect(struct collector *collector, int status, int expected, const char *answer, const char *why)
{
	char line[64];

	snprintf(line, sizeof(line), "%d, ", expected);
	CHECKF(status == expected, "%d instead of %d for '%s': %s", status, expected, why, answer);
	CHECKF(strstr(answer, why) != NULL, "'%s' instead of '%s'", answer, why);
	CHECKF(expected == 200 || (strstr(process_err(&collector->process), why) &&
				   strstr(process_err(&collector->process), line)),
	       "'%s' is not in the log: %s", why, process_err(&collector->process));
}

bool collector_turns(struct collector *collector, int status, const char *text)
{
	uint64_t deadline_ts = now_ns() + 10 * NS_PER_SEC;
	char answer[ANSWER_SZ];

	do {
		if (collector_ask(collector, answer, "/healthz", " ") == status && strstr(answer, text))
			return true;
		sleep_ms(20);
	} while (now_ns() < deadline_ts);
	return false;
}

double collector_metric(struct collector *collector, const char *name)
{
	struct process curl;
	const char *at;
	double value = -1;
	char line[200];

	process_start(&curl, "curl -s -k -m 20 %s://127.0.0.1:%d/metrics", collector->tls ? "https" : "http",
		      collector->port);
	process_wait(&curl, 30);
	snprintf(line, sizeof(line), "\nwhylate_collect_%s ", name);
	at = strstr(process_out(&curl), line);
	if (at)
		value = strtod(at + strlen(line), NULL);
	process_end(&curl);
	return value;
}

/* Interval rows that no other block has. */
static void fill_row(struct shard_row *row, uint64_t seq, uint64_t i)
{
	uint64_t latency_ns = 1000 + (seq * ROWS_PER_BLOCK + i) * 0x9e3779b97f4a7c15ull % 1000000;

	memset(row, 0, sizeof(*row));
	for (uint32_t c = 0; c < shard_tables[SHARD_TABLE_INTERVAL].column_cnt; c++) {
		const struct shard_column *column = &shard_tables[SHARD_TABLE_INTERVAL].columns[c];

		if (column->type == SHARD_STR)
			row->values[c].str = "x";
		if (column->nullable)
			shard_row__set_null(row, c);
	}
	row->values[INTERVAL_SID].u64 = seq * ROWS_PER_BLOCK + i;
	row->values[INTERVAL_BEGIN_TS].u64 = row->values[INTERVAL_PICKUP_TS].u64 =
		1000000000 + (seq * ROWS_PER_BLOCK + i) * 1000000;
	row->values[INTERVAL_END_TS].u64 = row->values[INTERVAL_BEGIN_TS].u64 + latency_ns;
	row->values[INTERVAL_WEIGHT].f64 = 1;
	row->values[interval_column_length(WL_STATE_RUNNING)].u64 = latency_ns;
}

bool stream_make(struct stream *stream, size_t cnt)
{
	struct shard_stage *stage = shard_stage__new(&shard_tables[SHARD_TABLE_INTERVAL], ROWS_PER_BLOCK);
	struct shard_packer packer = {0};
	struct shard_row row;
	bool good = stage;

	stream->blocks = calloc(cnt, sizeof(*stream->blocks));
	stream->cnt = stream->blocks ? cnt : 0;
	for (size_t seq = 0; good && seq < stream->cnt; seq++) {
		struct shard_block_header header = {
			.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_ZSTD, .session_id = SESSION_ID};

		shard_stage__reset(stage);
		for (uint64_t i = 0; good && i < ROWS_PER_BLOCK; i++) {
			fill_row(&row, seq, i);
			good = !shard_stage__append(stage, &row);
		}
		good = good && !shard_packer__pack(&packer, stage, &header, &stream->blocks[seq]);
	}
	shard_packer__clear(&packer);
	shard_stage__free(stage);
	return CHECK(good && stream->cnt == cnt);
}

void stream_free(struct stream *stream)
{
	for (size_t i = 0; i < stream->cnt; i++)
		vec_free(&stream->blocks[i]);
	free(stream->blocks);
}

void body_put(struct shard_buf *body, uint8_t kind, uint64_t seq, const uint8_t *bytes, size_t sz)
{
	struct protocol_frame frame = {.kind = kind, .seq = seq, .sz = sz, .crc = sz ? crc32c(0, bytes, sz) : 0};

	if (!CHECK(!vec_reserve(body, PROTOCOL_FRAME_HEADER_SZ + sz)))
		return;
	protocol_frame__put(body->items + body->cnt, &frame);
	if (sz)
		memcpy(body->items + body->cnt + PROTOCOL_FRAME_HEADER_SZ, bytes, sz);
	body->cnt += PROTOCOL_FRAME_HEADER_SZ + sz;
}

struct path stream_body(const struct stream *stream, size_t from, size_t to, const char *name)
{
	struct path path = temp_path("%s", name);
	struct shard_buf body = {0};

	for (size_t i = from; i < to; i++)
		body_put(&body, PROTOCOL_BLOCK, i, stream->blocks[i].items, stream->blocks[i].cnt);
	CHECK(!file_write(path.s, body.items, body.cnt));
	vec_free(&body);
	return path;
}

static const struct stream *counted;
static unsigned *block_cnts;

static int count_in_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t sz, len = strlen(path);
	char *bytes;

	(void)st;
	(void)ftw;
	if (type != FTW_F || len < 4 || strcmp(path + len - 4, ".wls"))
		return 0;
	bytes = file_read(path, &sz);
	for (size_t i = 0; bytes && i < counted->cnt; i++)
		for (const char *at = bytes;
		     (at = memmem(at, (size_t)(bytes + sz - at), counted->blocks[i].items, counted->blocks[i].cnt));
		     at++)
			block_cnts[i]++;
	free(bytes);
	return 0;
}

bool stream_is_stored(const struct stream *stream, const char *store, const bool *wanted)
{
	unsigned wrong_cnt = 0;

	counted = stream;
	block_cnts = calloc(stream->cnt, sizeof(*block_cnts));
	if (!CHECK(block_cnts && !nftw(store, count_in_file, 16, FTW_PHYS))) {
		free(block_cnts);
		return false;
	}
	for (size_t i = 0; i < stream->cnt; i++)
		if (!wanted || wanted[i] ? block_cnts[i] != 1 : block_cnts[i] > 1)
			wrong_cnt++;
	free(block_cnts);
	return CHECKF(!wrong_cnt, "%u of %zu blocks are not in the store exactly once", wrong_cnt, stream->cnt);
}
