// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/dataset_build.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include "shard/writer.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX    8
#define COLUMNS_MAX 24

/* A block by hand, column after column. */
struct hand_block {
	struct shard_block block;
	struct shard_block_column columns[COLUMNS_MAX];
	union shard_value values[COLUMNS_MAX][ROWS_MAX];
	uint64_t nulls[COLUMNS_MAX];
};

static void hand_block_init(struct hand_block *hand, const char *table, uint32_t row_cnt)
{
	memset(hand, 0, sizeof(*hand));
	hand->block = (struct shard_block){.path = "hand", .table = table, .session_id = 1, .row_cnt = row_cnt};
	hand->block.columns = hand->columns;
}

static void add_column(struct hand_block *hand, const char *name, enum shard_type type, uint64_t nulls)
{
	uint32_t at = hand->block.column_cnt++;

	hand->nulls[at] = nulls;
	hand->columns[at] = (struct shard_block_column){
		.name = name,
		.type = type,
		.nullable = nulls != 0,
		.values = hand->values[at],
		.nulls = nulls ? &hand->nulls[at] : NULL,
	};
}

static void add_u64(struct hand_block *hand, const char *name, uint64_t nulls, const uint64_t *values)
{
	for (uint32_t i = 0; i < hand->block.row_cnt; i++)
		hand->values[hand->block.column_cnt][i].u64 = values[i];
	add_column(hand, name, SHARD_U64, nulls);
}

static void add_f64(struct hand_block *hand, const char *name, const double *values)
{
	for (uint32_t i = 0; i < hand->block.row_cnt; i++)
		hand->values[hand->block.column_cnt][i].f64 = values[i];
	add_column(hand, name, SHARD_F64, 0);
}

/* NULL is null. */
static void add_text(struct hand_block *hand, const char *name, const char *const *values)
{
	uint64_t nulls = 0;

	for (uint32_t i = 0; i < hand->block.row_cnt; i++) {
		hand->values[hand->block.column_cnt][i].str = values[i];
		nulls |= (uint64_t)!values[i] << i;
	}
	add_column(hand, name, SHARD_STR, nulls);
}

#define U64S(...)  ((const uint64_t[]){__VA_ARGS__})
#define F64S(...)  ((const double[]){__VA_ARGS__})
#define TEXTS(...) ((const char *const[]){__VA_ARGS__})

static void load(struct dataset *dataset, const struct dataset_filter *filter, struct hand_block *const *blocks)
{
	struct dataset_build build;

	CU_ASSERT_EQUAL_FATAL(dataset_build__init(&build, dataset, filter), 0);
	for (; *blocks; blocks++)
		CU_ASSERT_EQUAL_FATAL(dataset_build__block(&build, &(*blocks)->block), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__loss_begin(&build), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__end(&build), 0);
	dataset_build__free(&build, false);
}

static bool has_note(const struct dataset *dataset, const char *part)
{
	for (size_t i = 0; i < dataset->note_cnt; i++)
		if (strstr(dataset->notes[i], part))
			return true;
	return false;
}

static const struct dataset_event *event_of(const struct dataset *dataset, const char *name)
{
	for (size_t i = 0; i < dataset->event_cnt; i++)
		if (!strcmp(dataset->events[i].name, name))
			return &dataset->events[i];
	return NULL;
}

static void rows_become_columns(void)
{
	const struct dataset_event *event;
	struct dataset dataset;
	struct hand_block hand;

	hand_block_init(&hand, "interval", 3);
	add_u64(&hand, "begin_ts", 0, U64S(100, 200, 300));
	add_u64(&hand, "end_ts", 0, U64S(150, 270, 300));
	add_u64(&hand, "sid", 0, U64S(7, 8, 9));
	add_f64(&hand, "weight", F64S(1, 2.5, 1));
	add_text(&hand, "type", TEXTS("tcp:80", "tcp:81", "tcp:80"));
	add_u64(&hand, "flags", 0, U64S(WL_INTERVAL_TORN, WL_INTERVAL_MOVED, WL_INTERVAL_LOSSY | WL_INTERVAL_HISTORY));
	add_u64(&hand, "ns.running", 0, U64S(20, 70, 0));
	add_u64(&hand, "ns.runq.wakeup", 0, U64S(10, 0, 0));
	add_u64(&hand, "ns.runq.preempt", 0, U64S(15, 0, 0));
	add_u64(&hand, "n.runq.preempt", 0, U64S(2, 0, 0));
	add_u64(&hand, "n.migration", 0, U64S(0, 1, 0));
	add_u64(&hand, "hw.cycles", 0x5, U64S(0, 12345, 0));
	add_u64(&hand, "ns.softirq.rcu", 0, U64S(0, 0, 0));
	load(&dataset, NULL, (struct hand_block *[]){&hand, NULL});
	CU_ASSERT_EQUAL_FATAL(dataset.row_cnt, 3);
	CU_ASSERT_EQUAL(dataset.latency_ns[1], 70);
	CU_ASSERT_EQUAL(dataset.sid[2], 9);
	CU_ASSERT_EQUAL(dataset.weight[1], 2.5);
	CU_ASSERT_EQUAL(dataset.intervals_flagged, 2);
	CU_ASSERT_EQUAL(dataset.type[0], dataset.type[2]);
	CU_ASSERT_STRING_EQUAL(dataset.strings[dataset.type[1]], "tcp:81");
	CU_ASSERT_STRING_EQUAL(dataset.strings[0], "");
	CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_RUNQ][0], 25);
	CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_OTHER][0], 5); /* 50 - 20 - 25 */
	CU_ASSERT(has_note(&dataset, "1 intervals have time"));
	CU_ASSERT_PTR_NULL(dataset.category_ns[WL_CATEGORY_IRQ_SOFT]);
	CU_ASSERT_EQUAL(event_of(&dataset, "runq.preempt.ns")->values[0], 15);
	CU_ASSERT_TRUE(event_of(&dataset, "runq.preempt.ns")->is_length);
	CU_ASSERT_EQUAL(event_of(&dataset, "runq.preempt.count")->values[0], 2);
	CU_ASSERT_EQUAL(event_of(&dataset, "migration.count")->values[1], 1);
	/* Zero throughout takes no memory; a column that is not in the file is missing, not zero. */
	event = event_of(&dataset, "softirq.rcu.ns");
	CU_ASSERT(!event->values && !event->missing);
	event = event_of(&dataset, "throttled.ns");
	CU_ASSERT(!event->values && event->missing && event->missing[0] == 7);
	event = event_of(&dataset, "hw.cycles");
	CU_ASSERT(event->values[1] == 12345 && event->missing[0] == 5);
	CU_ASSERT_PTR_NULL(event_of(&dataset, "unknown.ns"));
	CU_ASSERT_PTR_NOT_NULL(event_of(&dataset, "running.ns"));
	CU_ASSERT_EQUAL(dataset.pid, -1);
	CU_ASSERT_EQUAL(dataset.intervals_seen, 4); /* 1 + 2.5 + 1, to a whole number */
	ASSERT_NEAR(dataset.duration_s, 200e-9);
	dataset_free(&dataset);
}

static void damaged_rows_are_left_out_and_counted(void)
{
	struct dataset dataset;
	struct hand_block hand;
	uint64_t huge = UINT64_MAX - 5;

	hand_block_init(&hand, "interval", 7);
	add_u64(&hand, "begin_ts", 0, U64S(100, 100, 100, 100, 100, 100, 0));
	add_u64(&hand, "end_ts", 0, U64S(200, 99, 200, 200, 200, 200, UINT64_MAX));
	add_f64(&hand, "weight", F64S(1, 1, 0, NAN, INFINITY, 1, 1));
	add_u64(&hand, "ns.running", 0, U64S(100, 1, 1, 1, 1, 60, huge));
	add_u64(&hand, "ns.runq.wakeup", 0, U64S(0, 0, 0, 0, 0, 41, huge));
	add_u64(&hand, "ns.runq.preempt", 0, U64S(0, 0, 0, 0, 0, 0, huge));
	load(&dataset, NULL, (struct hand_block *[]){&hand, NULL});
	CU_ASSERT_EQUAL(dataset.row_cnt, 1);
	CU_ASSERT(has_note(&dataset, "1 intervals were left out: they end before"));
	CU_ASSERT(has_note(&dataset, "3 intervals were left out: their weight"));
	CU_ASSERT(has_note(&dataset, "2 intervals were left out: their parts"));
	dataset_free(&dataset);

	/* Without times, or with times of another type, nothing can be used; other tables are no business of ours. */
	hand_block_init(&hand, "interval", 2);
	add_u64(&hand, "begin_ts", 0, U64S(1, 2));
	add_f64(&hand, "end_ts", F64S(1, 2));
	load(&dataset, NULL, (struct hand_block *[]){&hand, NULL});
	CU_ASSERT_EQUAL(dataset.row_cnt, 0);
	CU_ASSERT(has_note(&dataset, "2 intervals were left out: their times"));
	dataset_free(&dataset);
}

static void one_type_can_be_asked_for(void)
{
	const struct dataset_filter filter = {.type = "b"};
	struct dataset dataset;
	struct hand_block hand;

	hand_block_init(&hand, "interval", 3);
	add_u64(&hand, "begin_ts", 0, U64S(1, 9, 3));
	add_u64(&hand, "end_ts", 0, U64S(5, 8, 9));
	add_text(&hand, "type", TEXTS("a", "a", "b"));
	load(&dataset, &filter, (struct hand_block *[]){&hand, &hand, NULL});
	CU_ASSERT_EQUAL(dataset.row_cnt, 2);
	CU_ASSERT_EQUAL(dataset.latency_ns[0], 6);
	CU_ASSERT(!has_note(&dataset, "end before"));
	CU_ASSERT_EQUAL(dataset.intervals_seen, 4);
	dataset_free(&dataset);
}

static void one_round_can_be_asked_for(void)
{
	const struct dataset_filter filter = {.since_ts = 3, .without_events = true};
	struct dataset dataset;
	struct hand_block hand;

	hand_block_init(&hand, "interval", 3);
	add_u64(&hand, "begin_ts", 0, U64S(2, 3, 4));
	add_u64(&hand, "end_ts", 0, U64S(9, 8, 9));
	add_u64(&hand, "ns.running", 0, U64S(7, 4, 5));
	load(&dataset, &filter, (struct hand_block *[]){&hand, NULL});
	CU_ASSERT_EQUAL_FATAL(dataset.row_cnt, 2);
	CU_ASSERT_EQUAL(dataset.begin_ts[0], 3);
	CU_ASSERT_EQUAL(dataset.begin_ts[1], 4);
	CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_ONCPU][0], 4);
	CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_OTHER][0], 1);
	CU_ASSERT_EQUAL(dataset.event_cnt, 0);
	CU_ASSERT_EQUAL(dataset.intervals_seen, 3);
	dataset_free(&dataset);
}

static void add_times(struct hand_block *hand)
{
	add_u64(hand, "begin_ts", 0, U64S(0, 0, 0, 0));
	add_u64(hand, "end_ts", 0, U64S(1000, 1000, 1000, 1000));
}

static const char *who(const struct dataset *dataset, enum wl_category category, size_t row)
{
	return dataset->strings[dataset->blame[category][row].who];
}

static const char *object(const struct dataset *dataset, enum wl_category category, size_t row)
{
	return dataset->strings[dataset->blame[category][row].object];
}

static void blame_goes_to_whom_the_row_names(void)
{
	struct dataset dataset;
	struct hand_block hand;

	hand_block_init(&hand, "interval", 4);
	add_times(&hand);
	add_u64(&hand, "ns.runq.preempt", 0, U64S(0, 300, 0, 0));
	add_text(&hand, "culprit_comm", TEXTS("nobody", "backup", NULL, NULL));
	add_u64(&hand, "culprit_pid", 0xc, U64S(1, 812, 0, 0));
	add_u64(&hand, "culprit_tid", 0xc, U64S(1, 813, 0, 0));
	add_u64(&hand, "ns.blocked.futex", 0, U64S(5, 5, 5, 0));
	add_text(&hand, "lock_name", TEXTS("server+0x40", "", NULL, NULL));
	add_u64(&hand, "lock_addr", 0x4, U64S(1, 0x7f10, 3, 4));
	add_text(&hand, "lock_owner_comm", TEXTS("compactor", NULL, NULL, NULL));
	add_u64(&hand, "lock_owner_tid", 0xe, U64S(815, 0, 0, 0));
	add_u64(&hand, "ns.blocked.disk", 0, U64S(50, 50, 50, 50));
	add_u64(&hand, "ns.blocked.pipe", 0, U64S(60, 60, 60, 60));
	add_text(&hand, "blocked_state", TEXTS("blocked.disk", "blocked.pipe", "nonsense", NULL));
	add_text(&hand, "blocked_syscall", TEXTS("fsync", "read", "write", "open"));
	add_u64(&hand, "ns.fault.minor", 0, U64S(10, 10, 10, 10));
	add_u64(&hand, "ns.fault.major", 0, U64S(90, 0, 90, 0));
	add_u64(&hand, "fault_ns", 0, U64S(80, 8, 7, 0));
	add_text(&hand, "fault_name", TEXTS("data.bin", "[heap]", "data.bin", NULL));
	load(&dataset, NULL, (struct hand_block *[]){&hand, NULL});
	CU_ASSERT_EQUAL_FATAL(dataset.row_cnt, 4);
	/* Row 0 names somebody but did not wait for a CPU. */
	CU_ASSERT_STRING_EQUAL(who(&dataset, WL_CATEGORY_RUNQ, 0), "");
	CU_ASSERT_STRING_EQUAL(who(&dataset, WL_CATEGORY_RUNQ, 1), "backup");
	CU_ASSERT_EQUAL(dataset.blame[WL_CATEGORY_RUNQ][1].pid, 812);
	CU_ASSERT_EQUAL(dataset.blame[WL_CATEGORY_RUNQ][1].tid, 813);
	CU_ASSERT_STRING_EQUAL(who(&dataset, WL_CATEGORY_LOCK, 0), "compactor");
	CU_ASSERT_EQUAL(dataset.blame[WL_CATEGORY_LOCK][0].tid, 815);
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_LOCK, 0), "server+0x40");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_LOCK, 1), "0x7f10");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_LOCK, 2), "");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_IO_DISK, 0), "fsync");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_IO_DISK, 1), "");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_OTHER, 1), "read");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_OTHER, 2), "");
	/* A fault of 80 ns cannot be one of the minor ones, which took 10 in all. */
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_FAULT_MAJOR, 0), "data.bin");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_FAULT_MINOR, 0), "");
	CU_ASSERT_STRING_EQUAL(object(&dataset, WL_CATEGORY_FAULT_MINOR, 1), "[heap]");
	CU_ASSERT_PTR_NULL(dataset.blame[WL_CATEGORY_QUEUE]);
	CU_ASSERT_PTR_NULL(dataset.blame[WL_CATEGORY_SLEEP]);
	dataset_free(&dataset);
}

/* Of each session its own processes, and no other's of the same number. */
static void the_recorder_is_known_by_its_pids(void)
{
	static const char *const garbage[] = {
		"", "x", "12x", "99999999999", " 812", "1 2 3 4 5 6 7 8 9 10 11 12 13 14"};
	struct hand_block first, second, rows;
	struct dataset_build build;
	struct dataset dataset;

	hand_block_init(&first, "session", 1);
	add_u64(&first, "ts", 0, U64S(1));
	add_text(&first, "key", TEXTS("agent_pids"));
	add_text(&first, "value", TEXTS("812 813"));
	hand_block_init(&second, "session", 1);
	second.block.session_id = 2;
	add_u64(&second, "ts", 0, U64S(1));
	add_text(&second, "key", TEXTS("agent_pids"));
	add_text(&second, "value", TEXTS("900"));
	hand_block_init(&rows, "interval", 4);
	add_times(&rows);
	add_u64(&rows, "ns.runq.preempt", 0, U64S(1, 300, 1, 1));
	add_text(&rows, "culprit_comm", TEXTS("whylate", "backup", "whylate-attach", "whylate"));
	add_u64(&rows, "culprit_pid", 0, U64S(812, 811, 813, 900));
	CU_ASSERT_EQUAL_FATAL(dataset_build__init(&build, &dataset, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__block(&build, &first.block), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__block(&build, &second.block), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__own(&build), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__block(&build, &rows.block), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__end(&build), 0);
	dataset_build__free(&build, false);
	CU_ASSERT_EQUAL(dataset.own_cnt, 3);
	CU_ASSERT(dataset.blame[WL_CATEGORY_RUNQ][0].is_own && dataset.blame[WL_CATEGORY_RUNQ][2].is_own);
	CU_ASSERT_FALSE(dataset.blame[WL_CATEGORY_RUNQ][1].is_own || dataset.blame[WL_CATEGORY_RUNQ][3].is_own);
	CU_ASSERT(dataset_is_own(&dataset, 1, 900));
	dataset_free(&dataset);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		hand_block_init(&first, "session", 1);
		add_u64(&first, "ts", 0, U64S(1));
		add_text(&first, "key", TEXTS("agent_pids"));
		add_text(&first, "value", &garbage[i]);
		CU_ASSERT_EQUAL_FATAL(dataset_build__init(&build, &dataset, NULL), 0);
		CU_ASSERT_EQUAL_FATAL(dataset_build__block(&build, &first.block), 0);
		CU_ASSERT_EQUAL(dataset_build__own(&build), 0);
		CU_ASSERT(dataset.own_cnt <= 12);
		CU_ASSERT_EQUAL_FATAL(dataset_build__end(&build), 0);
		dataset_build__free(&build, false);
		dataset_free(&dataset);
	}
}

static void the_newest_word_of_a_session_holds(void)
{
	struct hand_block interval, session, other, loss;
	struct dataset dataset;

	hand_block_init(&interval, "interval", 1);
	add_times(&interval);
	hand_block_init(&session, "session", 8);
	add_u64(&session, "ts", 0, U64S(1, 5, 3, 1, 1, 1, 1, 1));
	add_text(&session, "key",
		 TEXTS("host", "intervals_seen", "intervals_seen", "begin_ts", "end_ts", "hooks_missing",
		       "categories_unmeasured", "note.1"));
	add_text(&session, "value",
		 TEXTS("h1", "500", "300", "1000000000", "3500000000", "a/b, c/d", "throttled,irq.ipi,nonsense",
		       "the clock was set"));
	hand_block_init(&other, "session", 4);
	other.block.session_id = 2;
	add_u64(&other, "ts", 0, U64S(9, 9, 9, 9));
	add_text(&other, "key", TEXTS("intervals_seen", "pid", "comm", "hooks_missing"));
	add_text(&other, "value", TEXTS("70", "4711", "redis-server", "c/d"));
	hand_block_init(&loss, "loss", 6);
	add_u64(&loss, "ts", 0, U64S(1, 2, 2, 1, 2, 2));
	add_text(&loss, "class", TEXTS("interval", "interval", "interval", "interval", "task", "nonsense"));
	add_u64(&loss, "cpu", 0, U64S(0, 0, 1, 1, 0, 0));
	add_u64(&loss, "emitted", 0, U64S(10, 20, 100, 50, 5, 1));
	add_u64(&loss, "lost", 0, U64S(1, 2, 7, 3, 1, 1));
	load(&dataset, NULL, (struct hand_block *[]){&session, &interval, &other, &loss, NULL});
	CU_ASSERT_STRING_EQUAL(dataset.host, "h1");
	CU_ASSERT_STRING_EQUAL(dataset.comm, "redis-server");
	CU_ASSERT_PTR_NULL(dataset.kernel);
	CU_ASSERT_EQUAL(dataset.pid, 4711);
	CU_ASSERT_EQUAL(dataset.intervals_seen, 570);
	ASSERT_NEAR(dataset.duration_s, 2.5);
	CU_ASSERT_EQUAL(dataset.hooks_missing_cnt, 2);
	CU_ASSERT_STRING_EQUAL(dataset.hooks_missing[1], "c/d");
	CU_ASSERT_TRUE(dataset.category_unmeasured[WL_CATEGORY_THROTTLED]);
	CU_ASSERT_TRUE(dataset.category_unmeasured[WL_CATEGORY_IRQ_IPI]);
	CU_ASSERT_FALSE(dataset.category_unmeasured[WL_CATEGORY_RUNQ]);
	CU_ASSERT(has_note(&dataset, "the clock was set"));
	CU_ASSERT(has_note(&dataset, "2 recordings"));
	/* CPU 0: 20/2 replaces 10/1; CPU 1: 100/7 came first and is newer. */
	CU_ASSERT_EQUAL(dataset.loss[WL_LOSS_INTERVAL].emitted, 120);
	CU_ASSERT_EQUAL(dataset.loss[WL_LOSS_INTERVAL].lost, 9);
	CU_ASSERT_EQUAL(dataset.records_lost, 10);
	dataset_free(&dataset);
}

static void types_are_listed_whole(void)
{
	struct hand_block interval;
	struct dataset dataset;
	char list[64], small[16];

	hand_block_init(&interval, "interval", 4);
	add_u64(&interval, "begin_ts", 0, U64S(0, 0, 0, 0));
	add_u64(&interval, "end_ts", 0, U64S(1, 1, 1, 1));
	add_text(&interval, "type", TEXTS("tcp:8080", "tcp:80", "tcp:8080", NULL));
	load(&dataset, NULL, (struct hand_block *[]){&interval, NULL});
	dataset_list_types(&dataset, list, sizeof(list));
	CU_ASSERT_STRING_EQUAL(list, "tcp:80, tcp:8080");
	dataset_list_types(&dataset, small, sizeof(small));
	CU_ASSERT_STRING_EQUAL(small, "tcp:80, …");
	dataset_free(&dataset);
}

static void columns_grow_with_the_blocks(void)
{
	struct dataset dataset;
	struct hand_block first, later;
	struct dataset_build build;

	hand_block_init(&first, "interval", 8);
	add_u64(&first, "begin_ts", 0, U64S(0, 0, 0, 0, 0, 0, 0, 0));
	add_u64(&first, "end_ts", 0, U64S(9, 9, 9, 9, 9, 9, 9, 9));
	memcpy(&later, &first, sizeof(first));
	later.block.columns = later.columns;
	for (uint32_t i = 0; i < later.block.column_cnt; i++)
		later.columns[i].values = later.values[i];
	add_u64(&later, "ns.runq.wakeup", 0, U64S(1, 2, 3, 4, 5, 6, 7, 8));
	add_text(&later, "culprit_comm", TEXTS("a", "b", "a", "b", "a", "b", "a", "b"));
	add_u64(&later, "hw.cycles", 0, U64S(1, 2, 3, 4, 5, 6, 7, 8));
	CU_ASSERT_EQUAL_FATAL(dataset_build__init(&build, &dataset, NULL), 0);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(dataset_build__block(&build, i < 500 ? &first.block : &later.block), 0);
	CU_ASSERT_EQUAL_FATAL(dataset_build__end(&build), 0);
	dataset_build__free(&build, false);
	CU_ASSERT_EQUAL_FATAL(dataset.row_cnt, 8000);
	for (size_t i = 0; i < 8000; i++) {
		uint64_t runq = i < 4000 ? 0 : i % 8 + 1;
		const struct dataset_event *cycles = event_of(&dataset, "hw.cycles");

		CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_RUNQ][i], runq);
		CU_ASSERT_EQUAL(dataset.category_ns[WL_CATEGORY_OTHER][i], 9 - runq);
		CU_ASSERT_STRING_EQUAL(who(&dataset, WL_CATEGORY_RUNQ, i), !runq ? "" : i % 2 ? "b" : "a");
		CU_ASSERT_EQUAL(cycles->missing[i / 64] >> (i % 64) & 1, i < 4000);
		CU_ASSERT_EQUAL(cycles->values[i], runq);
	}
	dataset_free(&dataset);

	/* Given up half-way, nothing leaks. */
	CU_ASSERT_EQUAL_FATAL(dataset_build__init(&build, &dataset, NULL), 0);
	CU_ASSERT_EQUAL(dataset_build__block(&build, &later.block), 0);
	dataset_build__free(&build, true);
}

static void remove_dir(const char *dir)
{
	char path[512];
	struct dirent *entry;
	DIR *open_dir = opendir(dir);

	CU_ASSERT_PTR_NOT_NULL_FATAL(open_dir);
	while ((entry = readdir(open_dir))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (entry->d_name[0] != '.')
			CU_ASSERT_EQUAL(unlink(path), 0);
	}
	closedir(open_dir);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void write_intervals(struct shard_writer *writer, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		struct shard_row row = {0};

		for (uint32_t c = 0; c < shard_tables[SHARD_TABLE_INTERVAL].column_cnt; c++) {
			if (shard_tables[SHARD_TABLE_INTERVAL].columns[c].nullable)
				shard_row__set_null(&row, c);
			else if (shard_tables[SHARD_TABLE_INTERVAL].columns[c].type == SHARD_STR)
				row.values[c].str = "";
		}
		row.values[INTERVAL_BEGIN_TS].u64 = 1000 * i;
		row.values[INTERVAL_END_TS].u64 = 1000 * i + 100 + i;
		row.values[INTERVAL_WEIGHT].f64 = 1 + i % 2;
		row.values[INTERVAL_TYPE].str = "tcp:6379";
		row.values[interval_column_length(WL_STATE_RUNNING)].u64 = 100;
		row.values[interval_column_length(WL_STATE_RUNQ_PREEMPT)].u64 = i;
		row.values[interval_column_count(WL_STATE_RUNQ_PREEMPT)].u64 = 1;
		row.values[interval_column_tally(WL_TALLY_MIGRATION)].u64 = i % 3;
		row.values[INTERVAL_CULPRIT_COMM].str = "backup";
		row.nulls[INTERVAL_CULPRIT_COMM / 64] &= ~(1ULL << INTERVAL_CULPRIT_COMM % 64);
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INTERVAL, &row), 0);
	}
}

static void what_was_written_is_loaded_and_reported(void)
{
	const struct report_opts opts = {.tail = 0.99, .bootstrap_cnt = 50, .seed = 1};
	char dir[] = "/tmp/whylate-unit-XXXXXX";
	struct shard_writer_opts writer_opts = {.host = "h", .session_id = 77, .block_rows = 100};
	struct shard_writer *writer;
	struct shard_reader *reader;
	const char *paths[] = {dir}, *bad_path;
	struct dataset dataset;
	struct report report;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	writer_opts.dir = dir;
	writer = shard_writer__new(&writer_opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	write_intervals(writer, 1000);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = shard_reader__open(paths, 1, &bad_path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&dataset, reader, NULL), 0);
	shard_reader__free(reader);
	CU_ASSERT_EQUAL_FATAL(dataset.row_cnt, 1000);
	CU_ASSERT_EQUAL(dataset.latency_ns[999], 1099);
	CU_ASSERT_EQUAL(dataset.intervals_seen, 1500);
	CU_ASSERT_EQUAL(dataset.note_cnt, 0);
	CU_ASSERT_EQUAL(dataset.damage_cnt, 0);
	CU_ASSERT_EQUAL(event_of(&dataset, "migration.count")->values[5], 2);
	CU_ASSERT_PTR_NULL(event_of(&dataset, "hw.cycles")->values);
	CU_ASSERT_EQUAL_FATAL(report_make(&report, &dataset, &opts), 0);
	CU_ASSERT_EQUAL(report.breakdown[0].category, WL_CATEGORY_RUNQ);
	ASSERT_NEAR(report.breakdown[0].variance_share, 1);
	CU_ASSERT_EQUAL_FATAL(report.cause_cnt, 1);
	CU_ASSERT_STRING_EQUAL(report.causes[0].what, "waiting for a CPU; `backup` ran instead");
	CU_ASSERT_EQUAL(report.type_cnt, 1);
	report_free(&report);
	dataset_free(&dataset);
	remove_dir(dir);
}

/* The recording of one row, loaded; the caller frees the dataset. */
static int load_row(struct dataset *dataset, enum shard_table_id table, const struct shard_row *row)
{
	char dir[] = "/tmp/whylate-unit-XXXXXX";
	struct shard_writer_opts writer_opts = {.host = "h", .session_id = 78};
	struct shard_writer *writer;
	struct shard_reader *reader;
	const char *paths[] = {dir}, *bad_path;
	int err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	writer_opts.dir = dir;
	writer = shard_writer__new(&writer_opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	CU_ASSERT_EQUAL(shard_writer__append(writer, table, row), 0);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	reader = shard_reader__open(paths, 1, &bad_path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	err = dataset_load(dataset, reader, NULL);
	shard_reader__free(reader);
	remove_dir(dir);
	return err;
}

static void a_recording_without_intervals_is_empty(void)
{
	struct shard_row session = {.values = {{.u64 = 1}, {.str = "host"}, {.str = "h"}}};
	struct shard_row module = {
		.values = {{.u64 = 1}, {.u64 = 4096}, {.u64 = 8192}, {.u64 = 0}, {.str = "/m"}, {.str = "b"}}};
	struct dataset dataset;

	CU_ASSERT_EQUAL_FATAL(load_row(&dataset, SHARD_TABLE_SESSION, &session), 0);
	CU_ASSERT_EQUAL(dataset.row_cnt, 0);
	CU_ASSERT_STRING_EQUAL(dataset.host, "h");
	dataset_free(&dataset);
	/* Rows of other tables alone are no recording. */
	CU_ASSERT_EQUAL(load_row(&dataset, SHARD_TABLE_MODULE, &module), -ENOENT);
}

int suite_dataset(void)
{
	static const struct unit_test tests[] = {
		{"rows become columns", rows_become_columns},
		{"damaged rows are left out and counted", damaged_rows_are_left_out_and_counted},
		{"one type can be asked for", one_type_can_be_asked_for},
		{"one round can be asked for", one_round_can_be_asked_for},
		{"blame goes to whom the row names", blame_goes_to_whom_the_row_names},
		{"the recorder is known by its pids", the_recorder_is_known_by_its_pids},
		{"the newest word of a session holds", the_newest_word_of_a_session_holds},
		{"types are listed whole", types_are_listed_whole},
		{"columns grow with the blocks", columns_grow_with_the_blocks},
		{"what was written is loaded and reported", what_was_written_is_loaded_and_reported},
		{"a recording without intervals is empty", a_recording_without_intervals_is_empty},
	};

	return unit_suite("analysis: dataset", tests, sizeof(tests) / sizeof(tests[0]));
}
