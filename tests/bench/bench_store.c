// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A collector's store as many hosts would have filled it, for the projection's kill test, benchmark and demo:
 *
 *   store DIR HOSTS SESSIONS ROWS BLOCK_ROWS [BAD_HOSTS [DAYS [RECORDING]]]
 *
 * HOSTS hosts with SESSIONS recordings each, of ROWS intervals in blocks of BLOCK_ROWS, the last of them ending now,
 * the others on the DAYS before.  The first BAD_HOSTS hosts have the setting `transparent_hugepage = always`, and one
 * request in 25 of theirs is 20 ms later for a page fault.  With RECORDING each request is one of its intervals, drawn
 * at random.  Equal arguments give equal rows but for the clock.
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/vec.h"
#include "shard/columns.h"
#include "shard/reader.h"
#include "shard/writer.h"

#include <whylate/record.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_NS 86400000000000ULL

/* An interval of a recording. */
struct sample {
	uint64_t latency_ns, length_ns[WL_STATE_CNT];
	double weight;
	const char *type;
};

struct store {
	VEC(struct sample) samples; /* none: rows are made up */
	const char *dir;
	unsigned host_cnt, session_cnt, row_cnt, block_rows, bad_cnt, day_cnt;
	uint64_t rng, wall_ns;
	struct shard_row row;
};

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "store: %s\n", strerror(err < 0 ? -err : err));
	exit(1);
}

static void begin_row(struct store *store, enum shard_table_id table)
{
	memset(&store->row, 0, sizeof(store->row));
	for (uint32_t c = 0; c < shard_tables[table].column_cnt; c++)
		if (shard_tables[table].columns[c].nullable)
			shard_row__set_null(&store->row, c);
		else if (shard_tables[table].columns[c].type == SHARD_STR)
			store->row.values[c].str = "";
}

static void put_fact(struct store *store, struct shard_writer *writer, const char *key, const char *value)
{
	begin_row(store, SHARD_TABLE_SESSION);
	store->row.values[SESSION_TS].u64 = 1000000000;
	store->row.values[SESSION_KEY].str = key;
	store->row.values[SESSION_VALUE].str = value;
	must(shard_writer__append(writer, SHARD_TABLE_SESSION, &store->row));
}

static void put_number(struct store *store, struct shard_writer *writer, const char *key, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	put_fact(store, writer, key, text);
}

static void put_facts(struct store *store, struct shard_writer *writer, unsigned host, const char *name,
		      uint64_t begin_wall_ns, uint64_t length_ns)
{
	bool bad = host < store->bad_cnt;

	put_fact(store, writer, "host", name);
	put_fact(store, writer, "kernel", host % 3 ? "6.12.41" : "6.1.0-37");
	put_fact(store, writer, "machine", host % 2 ? "x86_64, 8 CPUs" : "x86_64, 16 CPUs");
	put_fact(store, writer, "comm", "api-server");
	put_fact(store, writer, "cmdline", "api-server --listen :80");
	put_fact(store, writer, "setting.transparent_hugepage", bad ? "always" : "madvise");
	put_fact(store, writer, "setting.swappiness", host % 5 ? "60" : "10");
	put_number(store, writer, "mono_anchor_ns", 1000000000);
	put_number(store, writer, "wall_anchor_ns", begin_wall_ns);
	put_number(store, writer, "begin_ts", 1000000000);
	put_number(store, writer, "end_ts", 1000000000 + length_ns);
	put_number(store, writer, "intervals_seen", store->row_cnt);
}

static double random_share(struct store *store)
{
	return (double)(random_next(&store->rng) >> 11) * 0x1p-53;
}

static void take_samples(struct store *store, const struct shard_block *block)
{
	const struct interval_columns col = block_columns(block, INTERVAL, interval);

	for (uint32_t i = 0; col.begin_ts && col.end_ts && i < block->row_cnt; i++) {
		uint64_t begin_ts = col.begin_ts->values[i].u64, end_ts = col.end_ts->values[i].u64;
		struct sample sample = {.latency_ns = end_ts - begin_ts,
					.weight = column_f64_or(col.weight, i, 1),
					.type = strdup(column_text(col.type, i))};

		for (int s = 0; s < WL_STATE_CNT; s++) {
			const struct shard_block_column *length =
				block_column_at(block, SHARD_TABLE_INTERVAL, interval_column_length(s));

			sample.length_ns[s] = length && !column_is_null(length, i) ? length->values[i].u64 : 0;
		}
		if (end_ts >= begin_ts)
			must(vec_push(&store->samples, sample));
	}
}

static void read_recording(struct store *store, const char *path)
{
	static const char *const tables[] = {"interval"};
	const char *bad = path;
	struct shard_reader *reader = shard_reader__open(&path, 1, &bad);
	const struct shard_block *block;
	int found;

	if (!reader)
		must(errno);
	must(shard_reader__select(reader, tables, 1));
	while ((found = shard_reader__next(reader, &block)) > 0)
		take_samples(store, block);
	must(found);
	shard_reader__free(reader);
	if (!store->samples.cnt)
		must(ENODATA);
}

/* How long the request took and where; made up: log-normal about 200 µs, on the CPU. */
static uint64_t put_lengths(struct store *store, uint64_t sid)
{
	static const char *const types[] = {"tcp:80 GET /users", "tcp:80 POST /orders", "tcp:80 GET /health"};
	struct shard_row *row = &store->row;
	const struct sample *sample;
	double normal;
	uint64_t run_ns;

	if (store->samples.cnt) {
		sample = &store->samples.items[random_next(&store->rng) % store->samples.cnt];
		for (int s = 0; s < WL_STATE_CNT; s++)
			row->values[interval_column_length(s)].u64 = sample->length_ns[s];
		row->values[INTERVAL_TYPE].str = sample->type;
		row->values[INTERVAL_WEIGHT].f64 = sample->weight;
		return sample->latency_ns;
	}
	normal = sqrt(-2 * log(1 - random_share(store))) * cos(6.283185307179586 * random_share(store));
	run_ns = (uint64_t)(2e5 * exp(0.6 * normal));
	row->values[INTERVAL_TYPE].str = types[sid % 3];
	row->values[INTERVAL_WEIGHT].f64 = 1;
	row->values[interval_column_length(WL_STATE_RUNNING)].u64 = run_ns;
	return run_ns;
}

static void put_interval(struct store *store, struct shard_writer *writer, unsigned host, uint64_t sid,
			 uint64_t begin_ts)
{
	struct shard_row *row = &store->row;
	uint64_t length_ns, fault_ns;

	begin_row(store, SHARD_TABLE_INTERVAL);
	length_ns = put_lengths(store, sid);
	fault_ns = host < store->bad_cnt && random_next(&store->rng) % 25 == 0 ? 20000000 : 0;
	row->values[INTERVAL_SID].u64 = sid;
	row->values[INTERVAL_BEGIN_TS].u64 = row->values[INTERVAL_PICKUP_TS].u64 = begin_ts;
	row->values[INTERVAL_END_TS].u64 = begin_ts + length_ns + fault_ns;
	row->values[INTERVAL_PID].u64 = row->values[INTERVAL_TID].u64 = row->values[INTERVAL_END_TID].u64 = 1000 + host;
	row->values[interval_column_length(WL_STATE_FAULT_MAJOR)].u64 += fault_ns;
	must(shard_writer__append(writer, SHARD_TABLE_INTERVAL, row));
}

static void make_session(struct store *store, unsigned host, unsigned session)
{
	char dir[512], name[32], day[16];
	uint64_t length_ns = 60000000000ULL, step_ns = length_ns / store->row_cnt;
	uint64_t begin_wall_ns =
		store->wall_ns - length_ns -
		(store->session_cnt > 1 ? store->day_cnt * DAY_NS * session / (store->session_cnt - 1) : 0);
	time_t begin_s = (time_t)(begin_wall_ns / 1000000000);
	struct shard_writer_opts opts = {.dir = dir, .block_rows = store->block_rows, .host = name};
	struct shard_writer *writer;
	struct tm tm;

	gmtime_r(&begin_s, &tm);
	strftime(day, sizeof(day), "%Y-%m-%d", &tm);
	snprintf(name, sizeof(name), "host-%05u", host);
	snprintf(dir, sizeof(dir), "%s/%s/%s", store->dir, name, day);
	opts.session_id = random_mix((uint64_t)host << 32 | session);
	writer = shard_writer__new(&opts);
	if (!writer)
		must(-1);
	put_facts(store, writer, host, name, begin_wall_ns, length_ns);
	for (unsigned i = 0; i < store->row_cnt; i++)
		put_interval(store, writer, host, i + 1, 1000000000 + i * step_ns);
	must(shard_writer__free(writer));
}

int main(int argc, char **argv)
{
	struct store store = {.rng = 1};
	struct timespec now;

	if (argc < 6 || argc > 9) {
		fprintf(stderr, "usage: store DIR HOSTS SESSIONS ROWS BLOCK_ROWS [BAD_HOSTS [DAYS [RECORDING]]]\n");
		return 2;
	}
	store.dir = argv[1];
	store.host_cnt = (unsigned)strtoul(argv[2], NULL, 10);
	store.session_cnt = (unsigned)strtoul(argv[3], NULL, 10);
	store.row_cnt = (unsigned)strtoul(argv[4], NULL, 10);
	store.block_rows = (unsigned)strtoul(argv[5], NULL, 10);
	store.bad_cnt = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 10) : 0;
	store.day_cnt = argc > 7 ? (unsigned)strtoul(argv[7], NULL, 10) : 0;
	clock_gettime(CLOCK_REALTIME, &now);
	store.wall_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (!store.row_cnt || !store.block_rows)
		return 2;
	if (argc > 8)
		read_recording(&store, argv[8]);
	for (unsigned h = 0; h < store.host_cnt; h++)
		for (unsigned s = 0; s < store.session_cnt; s++)
			make_session(&store, h, s);
	return 0;
}
