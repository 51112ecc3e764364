// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A month of minutes of many hosts, for `report --segments`:
 *
 *   month RECORDING DIR [HOSTS [MINUTES]]
 *
 * Each host records for MINUTES (43200) minutes and ends now.  A minute's row of the table `summary` is a row of
 * RECORDING, its latencies times the host's factor, the hour's and the minute's, its weights drawn anew.  From two
 * thirds of the time on all latencies of the first fifth of the hosts are 1.5 times as long.
 */
#include "base/clock.h"
#include "base/loghist.h"
#include "base/random.h"
#include "base/vec.h"
#include "model/sketch.h"
#include "shard/columns.h"
#include "shard/reader.h"
#include "shard/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MINUTE_NS 60000000000ULL

struct made_class {
	uint32_t class_no;
	double weight;
};

struct minute {
	char *type, *categories, *culprits;
	double count, sum_ns, category_count;
	uint64_t max_ns;
	VEC(struct made_class) classes;
};

static VEC(struct minute) minutes;
static uint64_t rng = 1;

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "month: %s\n", strerror(err < 0 ? -err : err));
	exit(1);
}

static double share(void)
{
	return ((double)(random_next(&rng) >> 11) + 0.5) * 0x1p-53;
}

static void take_sketch(struct minute *minute, const char *text)
{
	static struct sketch sketch;
	const double *weight = sketch.weights;

	must(sketch_read(&sketch, text));
	for (uint32_t r = 0; r < sketch.run_cnt; r++)
		for (uint32_t c = 0; c < sketch.runs[r].cnt; c++, weight++)
			if (*weight > 0)
				must(vec_push(&minute->classes,
					      ((struct made_class){sketch.runs[r].first + c, *weight})));
}

static void take_minutes(const char *path)
{
	const char *table = "summary", *bad;
	struct shard_reader *reader = shard_reader__open(&path, 1, &bad);
	const struct shard_block *block;

	must(reader ? shard_reader__select(reader, &table, 1) : -ENOENT);
	while (shard_reader__next(reader, &block) > 0)
		for (uint32_t row = 0; row < block->row_cnt; row++) {
			struct minute minute = {
				.type = strdup(column_text(block_column(block, "type", SHARD_STR), row)),
				.categories = strdup(column_text(block_column(block, "categories", SHARD_STR), row)),
				.culprits = strdup(column_text(block_column(block, "culprits", SHARD_STR), row)),
				.count = block_column(block, "count", SHARD_F64)->values[row].f64,
				.sum_ns = block_column(block, "sum_ns", SHARD_F64)->values[row].f64,
				.category_count = block_column(block, "category_count", SHARD_F64)->values[row].f64,
				.max_ns = column_u64(block_column(block, "max_ns", SHARD_U64), row),
			};

			take_sketch(&minute, column_text(block_column(block, "sketch", SHARD_STR), row));
			must(vec_push(&minutes, minute));
		}
	must(minutes.cnt ? 0 : -ENODATA);
	shard_reader__free(reader);
}

static void put_fact(struct shard_writer *writer, const char *key, uint64_t number)
{
	struct shard_row row = {0};
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	row.values[SESSION_TS].u64 = 1;
	row.values[SESSION_KEY].str = key;
	row.values[SESSION_VALUE].str = text;
	must(shard_writer__append(writer, SHARD_TABLE_SESSION, &row));
}

static void put_minute(struct shard_writer *writer, uint64_t begin_ts, double factor)
{
	const struct minute *from = &minutes.items[random_next(&rng) % minutes.cnt];
	int shift = (int)lrint(log2(factor) * LOGHIST_SUB_CNT);
	struct shard_row row = {0};
	float weights[LOGHIST_CLASS_CNT] = {0};
	char sketch[SKETCH_TEXT_SZ];
	double count = 0;

	for (size_t c = 0; c < from->classes.cnt; c++) {
		double weight = floor(from->classes.items[c].weight * (0.5 + share()) + share());
		int class_no = (int)from->classes.items[c].class_no + shift;

		if (weight < 1 || class_no < 0 || class_no >= (int)LOGHIST_CLASS_CNT)
			continue;
		count += weight;
		weights[class_no] = (float)weight;
	}
	sketch_text(sketch, weights);
	row.values[SUMMARY_BEGIN_TS].u64 = begin_ts;
	row.values[SUMMARY_END_TS].u64 = begin_ts + MINUTE_NS;
	row.values[SUMMARY_TYPE].str = from->type;
	row.values[SUMMARY_COUNT].f64 = count;
	row.values[SUMMARY_SUM_NS].f64 = from->sum_ns / from->count * count * factor;
	row.values[SUMMARY_MAX_NS].u64 = (uint64_t)((double)from->max_ns * factor);
	row.values[SUMMARY_SKETCH].str = sketch;
	row.values[SUMMARY_CATEGORY_COUNT].f64 = from->category_count;
	row.values[SUMMARY_CATEGORIES].str = from->categories;
	row.values[SUMMARY_CULPRITS].str = from->culprits;
	must(shard_writer__append(writer, SHARD_TABLE_SUMMARY, &row));
}

int main(int argc, char **argv)
{
	unsigned host_cnt = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 50;
	uint64_t minute_cnt = argc > 4 ? strtoull(argv[4], NULL, 10) : 43200, begin_wall_ns;
	struct timespec now;

	if (argc < 3 || argc > 5) {
		fprintf(stderr, "usage: month RECORDING DIR [HOSTS [MINUTES]]\n");
		return 2;
	}
	take_minutes(argv[1]);
	clock_gettime(CLOCK_REALTIME, &now);
	begin_wall_ns = ((uint64_t)now.tv_sec / 60 - minute_cnt) * MINUTE_NS;
	for (unsigned h = 0; h < host_cnt; h++) {
		char host[32], dir[512];
		struct shard_writer_opts opts = {.dir = dir, .host = host, .session_id = random_mix(h + 1)};
		struct shard_writer *writer;
		double of_host = 0.8 + 0.4 * share();

		snprintf(host, sizeof(host), "host-%03u", h);
		snprintf(dir, sizeof(dir), "%s/%s", argv[2], host);
		writer = shard_writer__new(&opts);
		must(writer ? 0 : -1);
		put_fact(writer, "mono_anchor_ns", 1);
		put_fact(writer, "wall_anchor_ns", begin_wall_ns);
		for (uint64_t m = 0; m < minute_cnt; m++)
			put_minute(writer, 1 + m * MINUTE_NS,
				   of_host * (1 + 0.2 * sin(6.283185 * (double)(m % 1440) / 1440)) *
					   (0.9 + 0.2 * share()) *
					   (h < host_cnt / 5 && m >= minute_cnt * 2 / 3 ? 1.5 : 1));
		must(shard_writer__free(writer));
	}
	return 0;
}
