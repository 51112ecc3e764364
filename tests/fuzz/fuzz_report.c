// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: well-formed shards whose rows lie.  Three bytes of the input make a row: its table, how much of it is
 * impossible, and a seed for its values.  Reports, comparisons and all exports are made of them.
 */
#include "analysis/compare_load.h"
#include "analysis/findings.h"
#include "analysis/story.h"
#include "analysis/timeline.h"
#include "base/limited.h"
#include "shard/open.h"
#include "shard/pack.h"
#include "view/analyse.h"
#include "view/contexts.h"
#include "view/export.h"
#include "view/text_story.h"
#include "view/top.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define BASE_TS      1000000000ULL
#define SPAN_NS      4000000000ULL
#define OUTPUT_MAX   (64ULL << 20)
#define RECORDINGS   2
#define ROW_BYTES    3
#define STORIES      4
#define ARRAY_CNT(a) (sizeof(a) / sizeof((a)[0]))
#define NEED(ok)                          \
	do {                              \
		if (!(ok))                \
			__builtin_trap(); \
	} while (0)

static FILE *nowhere;
static char paths[RECORDINGS][32];
static int fds[RECORDINGS];

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define NAME(id, name, ...) name,
static const char *const states[] = {
#define STATE NAME
#include <whylate/state.def>
};
static const char *const kinds[] = {
#define HANDOFF NAME
#include <whylate/handoff.def>
	"signed", "unsigned", "float", "bool", "enum", "pointer", "function", "usdt",
};
static const char *const certainties[] = {
#define CERTAINTY NAME
#include <whylate/certainty.def>
};
static const char *const contexts[] = {
#define CONTEXT NAME
#include <whylate/context.def>
};
static const char *const classes[] = {
#define LOSS NAME
#include <whylate/losstype.def>
};
static const char *const events[] = {"seen", "exec", "exit", "attached", "detached", "refused"};
static const char *const frames[] = {"a", "a;b", "a;b;c", "a;b;[spin]", "?a;;b", ";", "[kernel];b", "[jit]+0x10;c"};
static const char *const sketches[] = {"",
				       "1:1",
				       "64:2.5 70:1e300",
				       "5:-1 x",
				       "4294967295:1 0:nan",
				       "410=200310000001 419=123",
				       "1919=9pooooooooo",
				       "9=30/0"};
static const char *const sums[] = {"", "oncpu:10", "oncpu:1e308 lock:1e308", "runq:-5 nothing:1", "lock 5 `a`\nrunq 7"};
static const char *const keys[] = {
	"agent_pids",
	"begin_ts",
	"categories_unmeasured",
	"censored_longest_ns",
	"censored_weight",
	"comm",
	"cost_bpf_ns",
	"end_ts",
	"hooks_missing",
	"host",
	"intervals_seen",
	"kernel",
	"mono_anchor_ns",
	"note.1",
	"pid",
	"target_cpu_ns",
	"wall_anchor_ns",
	"windows",
	"windows_attached_ns",
	"windows_selecting_ns",
	"graph_height",
	"scope_max",
	"mode",
	"asks",
	"asks_unsure",
};
static const char *const names[] = {"", "a", "b", "tcp:80", "lib.so+0x10", "10.0.0.1:80", "[heap]"};
static const char *const hostile[] = {
	"\x1b]0;x\a",
	"\xc2\x9b"
	"31m",
	"\xe2\x80\xae"
	"evil",
	"\xff\xfe",
	"</script><b>",
	"a\nb\rc\td",
	"\"',;=\\",
	"18446744073709551615",
	"-1",
	"nan",
	"1e999",
	"0x10",
	"%s%n",
	":",
	"\xf4\x90\x80\x80",
	" ",
};

/* The names that a column of that name takes. */
static const struct {
	const char *column;
	const char *const *words;
	size_t cnt;
} vocabulary[] = {
	{"state", states, ARRAY_CNT(states)},
	{"blocked_state", states, ARRAY_CNT(states)},
	{"kind", kinds, ARRAY_CNT(kinds)},
	{"certainty", certainties, ARRAY_CNT(certainties)},
	{"context", contexts, ARRAY_CNT(contexts)},
	{"class", classes, ARRAY_CNT(classes)},
	{"event", events, ARRAY_CNT(events)},
	{"frames", frames, ARRAY_CNT(frames)},
	{"kernel_frames", frames, ARRAY_CNT(frames)},
	{"sketch", sketches, ARRAY_CNT(sketches)},
	{"categories", sums, ARRAY_CNT(sums)},
	{"culprits", sums, ARRAY_CNT(sums)},
	{"key", keys, ARRAY_CNT(keys)},
};

struct maker {
	unsigned seed;
	unsigned lies; /* one value in so many is impossible; 0: none */
	uint64_t sid;
};

static uint64_t dice(struct maker *maker)
{
	return (uint64_t)rand_r(&maker->seed) << 31 ^ (uint64_t)rand_r(&maker->seed);
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && !strcmp(name + len - end_len, end);
}

static const char *text_of(struct maker *maker, const char *column, bool lies)
{
	for (size_t i = 0; i < ARRAY_CNT(vocabulary) && !lies; i++)
		if (!strcmp(vocabulary[i].column, column))
			return vocabulary[i].words[dice(maker) % vocabulary[i].cnt];
	return lies ? hostile[dice(maker) % ARRAY_CNT(hostile)] : names[dice(maker) % ARRAY_CNT(names)];
}

static uint64_t number_of(struct maker *maker, const struct shard_column *column, bool lies)
{
	static const uint64_t extremes[] = {0,          1,          UINT64_MAX, INT64_MAX,
					    1ULL << 63, UINT32_MAX, 1ULL << 32, 1ULL << 53};

	if (lies)
		return dice(maker) % 4 ? extremes[dice(maker) % ARRAY_CNT(extremes)] : dice(maker) << dice(maker) % 8;
	if (column->unit == SHARD_UNIT_TS)
		return BASE_TS + dice(maker) % SPAN_NS;
	if (column->unit == SHARD_UNIT_NS)
		return dice(maker) % 100000000 >> dice(maker) % 24;
	if (ends_in(column->name, "sid"))
		return 1 + dice(maker) % 64;
	return 1 + dice(maker) % (ends_in(column->name, "pid") ? 2 : 5);
}

static double real_of(struct maker *maker, bool lies)
{
	static const double extremes[] = {0, -1, 1e308, -1e308, 5e-324, INFINITY, -INFINITY, NAN};

	return lies ? extremes[dice(maker) % ARRAY_CNT(extremes)] : (double)(1 + dice(maker) % 8);
}

/* What belongs together: an interval has its own number, ends come after begins. */
static void make_sense(struct maker *maker, enum shard_table_id table, struct shard_row *row)
{
	uint64_t length_ns = dice(maker) % 20000000 >> dice(maker) % 16;

	switch (table) {
	case SHARD_TABLE_INTERVAL:
		row->values[INTERVAL_SID].u64 = ++maker->sid;
		row->values[INTERVAL_PICKUP_TS].u64 = row->values[INTERVAL_BEGIN_TS].u64 + length_ns / 4;
		row->values[INTERVAL_END_TS].u64 = row->values[INTERVAL_BEGIN_TS].u64 + length_ns;
		row->values[INTERVAL_FLAGS].u64 &= 1 << 6;
		break;
	case SHARD_TABLE_SEGMENT:
		row->values[SEGMENT_END_TS].u64 = row->values[SEGMENT_BEGIN_TS].u64 + length_ns;
		break;
	case SHARD_TABLE_INVOCATION:
		row->values[INVOCATION_END_TS].u64 = row->values[INVOCATION_BEGIN_TS].u64 + length_ns;
		row->values[INVOCATION_RUNNING_NS].u64 = length_ns;
		row->values[INVOCATION_RUNNABLE_NS].u64 = row->values[INVOCATION_BLOCKED_NS].u64 = 0;
		row->values[INVOCATION_INTERRUPTED_NS].u64 = 0;
		break;
	case SHARD_TABLE_STACK:
		row->values[STACK_END_TS].u64 = row->values[STACK_TS].u64 + length_ns;
		break;
	default:
		break;
	}
}

static void make_row(struct maker *maker, enum shard_table_id id, struct shard_row *row)
{
	const struct shard_table *table = &shard_tables[id];

	memset(row, 0, sizeof(*row));
	for (uint32_t c = 0; c < table->column_cnt; c++) {
		const struct shard_column *column = &table->columns[c];
		bool lies = maker->lies && dice(maker) % maker->lies == 0;

		if (column->type == SHARD_STR)
			row->values[c].str = text_of(maker, column->name, lies);
		else if (column->type == SHARD_F64)
			row->values[c].f64 = real_of(maker, lies);
		else
			row->values[c].u64 = number_of(maker, column, lies);
		if (column->nullable && dice(maker) % 3 == 0)
			shard_row__set_null(row, c);
	}
	if (!maker->lies || dice(maker) % 2)
		make_sense(maker, id, row);
}

/* --- shards ------------------------------------------------------------------------------------------------------- */

struct shard {
	struct shard_buf out;
	struct shard_packer packer;
	struct shard_stage *stages[SHARD_TABLE_CNT];
	uint64_t session_id;
};

static void flush(struct shard *shard, enum shard_table_id table)
{
	struct shard_block_header header = {
		.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_NONE, .session_id = shard->session_id};

	if (!shard->stages[table] || !shard->stages[table]->row_cnt)
		return;
	NEED(!shard_packer__pack(&shard->packer, shard->stages[table], &header, &shard->out));
	shard_stage__reset(shard->stages[table]);
}

static void put(struct shard *shard, enum shard_table_id table, const struct shard_row *row)
{
	if (!shard->stages[table])
		NEED((shard->stages[table] = shard_stage__new(&shard_tables[table], 256)));
	NEED(!shard_stage__append(shard->stages[table], row));
	if (shard_stage__full(shard->stages[table]))
		flush(shard, table);
}

static void put_fact(struct shard *shard, const char *key, const char *value)
{
	struct shard_row row = {};

	row.values[SESSION_TS].u64 = BASE_TS;
	row.values[SESSION_KEY].str = key;
	row.values[SESSION_VALUE].str = value;
	put(shard, SHARD_TABLE_SESSION, &row);
}

static void put_facts(struct shard *shard, const char *host)
{
	put_fact(shard, "host", host);
	put_fact(shard, "pid", "1");
	put_fact(shard, "mono_anchor_ns", "0");
	put_fact(shard, "wall_anchor_ns", "1795219200000000000");
	put_fact(shard, "begin_ts", "1000000000");
	put_fact(shard, "end_ts", "5000000000");
}

/* Half of the tables' rows are requests and what they did. */
static enum shard_table_id table_of(uint8_t byte)
{
	static const enum shard_table_id often[] = {SHARD_TABLE_INTERVAL, SHARD_TABLE_SEGMENT, SHARD_TABLE_INTERVAL,
						    SHARD_TABLE_STACK};

	return byte < 128 ? often[byte % ARRAY_CNT(often)] : (enum shard_table_id)(byte % SHARD_TABLE_CNT);
}

static void make_shard(int fd, const uint8_t *bytes, size_t sz, uint64_t session_id, const char *host)
{
	struct shard_file_header header = {.major = SHARD_VERSION_MAJOR, .session_id = session_id};
	struct shard shard = {.session_id = session_id};
	struct maker maker = {0};
	struct shard_row row;

	NEED(!shard_file_header__put(&shard.out, &header, host));
	put_facts(&shard, host);
	for (; sz >= ROW_BYTES; bytes += ROW_BYTES, sz -= ROW_BYTES) {
		enum shard_table_id table = table_of(bytes[0]);

		maker.lies = bytes[1] < 160 ? 0 : 256 - bytes[1];
		maker.seed = bytes[2] + 1u + (unsigned)sz * 256;
		make_row(&maker, table, &row);
		put(&shard, table, &row);
	}
	for (int table = 0; table < SHARD_TABLE_CNT; table++) {
		flush(&shard, (enum shard_table_id)table);
		shard_stage__free(shard.stages[table]);
	}
	NEED(!ftruncate(fd, 0) && pwrite(fd, shard.out.items, shard.out.cnt, 0) == (ssize_t)shard.out.cnt);
	shard_packer__clear(&shard.packer);
	vec_free(&shard.out);
}

/* --- what is made of them ----------------------------------------------------------------------------------------- */

static void reports(const char *const *both)
{
	struct analyse_options options = {.tail = 0.99, .top = 10, .rule = FACTOR_RULE_DEFAULT};

	options.rule.understood = &options.understood;
	analyse_run(&options, both, 1);
	options.json = true;
	analyse_run(&options, both, RECORDINGS);
	options.json = false;
	options.html = "-";
	analyse_run(&options, both, RECORDINGS);
	options.html = NULL;
	options.segments_ns = 1000000000;
	analyse_run(&options, both, 1);
	options.json = true;
	analyse_run(&options, both, RECORDINGS);
}

static void exports(struct shard_reader *reader)
{
	static const char *const formats[] = {"perfetto",    "pprof",  "otlp", "otlp-metrics", "prometheus",
					      "openmetrics", "folded", "csv",  "jsonl"};

	for (size_t i = 0; i < ARRAY_CNT(formats); i++) {
		const struct export_format *format = export_format_of(formats[i]);
		const struct export_source source = {.path = "lies"};
		struct limited limited = {.to = nowhere, .left = OUTPUT_MAX};
		FILE *out = limited__open(&limited);

		NEED(format && out);
		format->run(out, reader, &source);
		fclose(out);
		limited__free(&limited);
	}
}

static void stories(struct shard_reader *reader)
{
	const struct view_opts view = {.top = 1};
	struct path path = {0};
	struct samples samples;
	struct traces traces;

	if (traces_load(&traces, reader) <= 0)
		return;
	NEED(!samples_load(&samples, &traces, reader));
	for (size_t i = 0; i < traces.intervals.cnt && i < STORIES; i++) {
		struct arena *arena = arena__new();
		struct story story;

		NEED(arena && !story_make(&story, &traces, &samples, &traces.intervals.items[i], &path, arena));
		NEED(!view_story(nowhere, &story, &view));
		arena__free(arena);
	}
	path__clear(&path);
	samples_free(&samples);
	traces_free(&traces);
}

static void screens(const struct findings *findings, const struct timeline *timeline)
{
	static const size_t sizes[][2] = {{0, 0}, {1, 1}, {24, 80}, {3, 500}, {200, 20}};

	for (size_t i = 0; i < ARRAY_CNT(sizes) * (TOP_HELP + 1); i++) {
		struct top_view view = {
			.findings = findings,
			.timeline = timeline,
			.rows = sizes[i / (TOP_HELP + 1)][0],
			.columns = sizes[i / (TOP_HELP + 1)][1],
			.screen = (enum top_screen)(i % (TOP_HELP + 1)),
			.sort = (enum top_sort)(i % TOP_SORT_CNT),
			.chosen = i,
			.speed = 1,
			.window_s = 60,
		};

		NEED(!view_top(nowhere, &view));
	}
}

static void look(struct shard_reader *reader)
{
	const struct findings_opts opts = {
		.tail = 0.99, .rule = FACTOR_RULE_DEFAULT, .bootstrap_cnt = 20, .keep_rows = true};
	const uint64_t begin_ns = 1795219200000000000ULL;
	const struct view_opts view = {.top = 10};
	struct findings *findings = calloc(1, sizeof(*findings));
	struct timeline timeline;
	struct contexts made;

	NEED(findings);
	if (!findings_make(findings, reader, &opts)) {
		NEED(!timeline_make(&timeline, &findings->report, begin_ns, begin_ns + 6 * SPAN_NS / 4, 60));
		screens(findings, &timeline);
		timeline_free(&timeline);
		NEED(!contexts_make(&made, &findings->dataset, findings->paths.traces ? &findings->paths : NULL, reader,
				    0.99));
		NEED(!view_contexts_text(nowhere, &made, &view) && !view_contexts_json(nowhere, &made) &&
		     !view_contexts_folded(nowhere, &made));
		contexts_free(&made);
		findings_free(findings);
	}
	free(findings);
}

static void compare_found(struct findings *findings, struct shard_reader *reader, const struct compare_loaded *loaded,
			  const struct side *sides)
{
	const struct compare_facts facts[] = {loaded[COMPARE_A].facts, loaded[COMPARE_B].facts};
	struct compare_opts opts = {.tail = 0.99, .seed = 1};
	const struct view_opts view = {.top = 10};
	struct comparison comparison;
	int followed = findings_follow(findings, reader, true);
	uint8_t *in = compare_sides_of(&findings->dataset, sides, loaded);

	NEED(followed >= 0 && in);
	opts.paths = followed ? &findings->paths : NULL;
	opts.roots = followed ? &findings->roots : NULL;
	if (!comparison_make(&comparison, &findings->dataset, in, &opts)) {
		NEED(!view_compare_text(nowhere, &comparison, facts, &view) &&
		     !view_compare_json(nowhere, &comparison, facts) &&
		     !view_compare_html(nowhere, &comparison, facts, &view));
		comparison_free(&comparison);
	}
	free(in);
	findings_unfollow(findings);
}

static void compare(const char *const *both)
{
	struct findings *findings = calloc(1, sizeof(*findings));
	struct compare_loaded loaded[COMPARE_SIDE_CNT] = {0};
	struct shard_reader *reader = shards_open(both, RECORDINGS);
	struct side sides[COMPARE_SIDE_CNT];
	const struct dataset_filter all = {};
	const char *bad;
	size_t good = 0;

	NEED(findings && reader);
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		struct shard_reader *one = shards_open(&both[s], 1);

		NEED(one && !side__parse(&sides[s], both[s], &bad));
		loaded[s].is_loaded = !compare_side__load(&loaded[s], &sides[s], NULL, one);
		if (loaded[s].is_loaded)
			compare_side__facts(&loaded[s].facts, &sides[s], &loaded[s].dataset);
		good += loaded[s].is_loaded && loaded[s].dataset.row_cnt;
		shard_reader__free(one);
	}
	if (good == COMPARE_SIDE_CNT && !dataset_load(&findings->dataset, reader, &all)) {
		compare_found(findings, reader, loaded, sides);
		dataset_free(&findings->dataset);
	}
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		if (loaded[s].is_loaded)
			dataset_free(&loaded[s].dataset);
		side__free(&sides[s]);
	}
	shard_reader__free(reader);
	free(findings);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	nowhere = fopen("/dev/null", "w");
	NEED(nowhere && freopen("/dev/null", "w", stdout));
	for (int i = 0; i < RECORDINGS; i++) {
		fds[i] = memfd_create("lies.wls", 0);
		NEED(fds[i] >= 0);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	const char *const both[] = {paths[0], paths[1]};
	struct shard_reader *reader;

	make_shard(fds[0], bytes, sz / 2, 1, "a");
	make_shard(fds[1], bytes + sz / 2, sz - sz / 2, 2, "b");
	reports(both);
	compare(both);
	reader = shards_open(both, RECORDINGS);
	NEED(reader);
	exports(reader);
	stories(reader);
	look(reader);
	shard_reader__free(reader);
	return 0;
}
