// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode: workloads whose requests are late because of somebody else, through up to three hops.  The report has to
 * name the planted culprit by pid, tid and name, with a share that agrees with what the workload measured by itself;
 * the steps of every path have to sum to the latency; and what was emitted is written, forgotten or lost.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "stall.h"
#include "walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE_TOLERANCE 0.15
/* Windows see a dozen late requests, each of which may be late for another reason: a standard error of 0.08. */
#define SHARE_TOLERANCE_WINDOWS 0.30
/* What is planted takes longer, everything else less. */
#define LATE_NS 4000000UL

/* emitted = taken out of the rings + lost; received = written + forgotten; written = in the shards. */
static void check_balance(const struct session *session)
{
	static const struct {
		enum wl_loss class;
		const char *key;
	} rings[] = {{WL_LOSS_SEGMENT, "segment_records"},
		     {WL_LOSS_WAKEUP, "wakeup_records"},
		     {WL_LOSS_EDGE, "edge_records"}};
	static const struct {
		const char *name;
		enum shard_table_id table;
	} tables[] = {
		{"segments", SHARD_TABLE_SEGMENT}, {"wakeups", SHARD_TABLE_WAKEUP}, {"handoffs", SHARD_TABLE_HANDOFF}};
	uint64_t received = 0, written = 0;

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		CHECKF(session->emitted[rings[i].class] ==
			       session_number(session, rings[i].key) + session->lost[rings[i].class],
		       "%s: emitted %lu, received %s, lost %lu", rings[i].key, session->emitted[rings[i].class],
		       session_key(session, rings[i].key), session->lost[rings[i].class]);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char key[64];

		snprintf(key, sizeof(key), "%s_written", tables[i].name);
		CHECKF(session_number(session, key) == session->rows[tables[i].table], "%s %s, %lu rows", key,
		       session_key(session, key), session->rows[tables[i].table]);
		written += session_number(session, key);
		snprintf(key, sizeof(key), "%s_received", tables[i].name);
		received += session_number(session, key);
	}
	CHECKF(received == written + session_number(session, "detail_forgotten"),
	       "%lu received, %lu written, %s forgotten", received, written, session_key(session, "detail_forgotten"));
	CHECKF(session_number(session, "segments_received") + session_number(session, "detail_impossible") >=
		       session_number(session, "segment_records"),
	       "%s of %s segments", session_key(session, "segments_received"), session_key(session, "segment_records"));
	CHECKF(session_number(session, "detail_impossible") == 0, "%s impossible records",
	       session_key(session, "detail_impossible"));
}

static void check_paths(const char *name, const char *dir, uint64_t row_cnt)
{
	struct paths_seen seen;

	if (!CHECKF(walk_all(dir, LATE_NS, NULL, &seen), "%s: no detail", name))
		return;
	CHECK(!seen.failed_cnt);
	CHECKF(seen.cnt == row_cnt, "%s: %lu paths of %lu intervals", name, seen.cnt, row_cnt);
	CHECKF(!seen.uneven_cnt, "%s: %lu of %lu paths do not sum to the latency", name, seen.uneven_cnt, seen.cnt);
	CHECKF(seen.late_gap_cnt * 10 <= seen.late_cnt, "%s: %lu of %lu late paths have a gap", name, seen.late_gap_cnt,
	       seen.late_cnt);
}

/*
 * Lines of one culprit are taken together where a workload has several threads of that name; where nobody is to blame,
 * all of the category.
 */
static double culprit_share(json_object *report, const struct workload *workload, bool by_comm)
{
	json_object *lines = json_at(report, "path.lines");
	double share = 0;

	for (size_t i = 0; lines && i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (strcmp(json_text(line, "category"), workload->category) ||
		    (*workload->culprit_comm && strcmp(json_text(line, "culprit.comm"), workload->culprit_comm)))
			continue;
		if (by_comm || json_number(line, "culprit.tid") == json_number(workload->result, "culprit_tid"))
			share += json_number(line, "tail_share");
	}
	return share;
}

/*
 * The part of a disk's category that is not the culprit's.  After the culprit has written much, a limiter of the host's
 * may hold the device for tens of milliseconds while it has nobody's request but the waiting thread's own: the planted
 * time counts that, and no event tells the report whose doing it is.
 */
static double disk_alone_share(json_object *report, const struct workload *workload, double culprit)
{
	struct workload anybody = *workload;

	if (strcmp(workload->category, "io.disk"))
		return 0;
	anybody.culprit_comm = "";
	return culprit_share(report, &anybody, true) - culprit;
}

static void check_report(const struct workload *workload, json_object *report, bool by_comm)
{
	bool in_windows = json_number(report, "session.windows.count") > 0;
	double share = culprit_share(report, workload, by_comm);
	double outside = json_outside_share(json_at(report, "path.lines"), workload->category);
	double alone = disk_alone_share(report, workload, share);
	double tolerance = in_windows ? SHARE_TOLERANCE_WINDOWS : SHARE_TOLERANCE;
	double least = workload->planted_share - tolerance;
	json_object *result = workload->result;
	bool good = true;

	good &= CHECKF(!strcmp(json_text(report, "causes.0.category"), workload->category),
		       "%s: the first cause is %s: %s", workload->name, json_text(report, "causes.0.category"),
		       json_text(report, "causes.0.what"));
	if (*workload->culprit_comm) {
		good &= CHECKF(!strcmp(json_text(report, "causes.0.culprit.comm"), workload->culprit_comm),
			       "%s: %s, not %s", workload->name, json_text(report, "causes.0.culprit.comm"),
			       workload->culprit_comm);
		good &= CHECKF(json_number(report, "causes.0.culprit.pid") == json_number(result, "culprit_pid"),
			       "%s: culprit's pid %.0f, not %.0f", workload->name,
			       json_number(report, "causes.0.culprit.pid"), json_number(result, "culprit_pid"));
	}
	if (!by_comm)
		good &= CHECKF(json_number(report, "causes.0.culprit.tid") == json_number(result, "culprit_tid"),
			       "%s: culprit's tid %.0f, not %.0f", workload->name,
			       json_number(report, "causes.0.culprit.tid"), json_number(result, "culprit_tid"));
	/* Where the workload knows what lock it is. */
	if (json_at(result, "lock"))
		good &= CHECKF(!strcmp(json_text(report, "path.lines.0.object"), json_text(result, "lock")),
			       "%s: the lock is %s, not %s", workload->name, json_text(report, "path.lines.0.object"),
			       json_text(result, "lock"));
	good &= CHECKF(share <= workload->planted_share + tolerance && share + alone + outside >= least &&
			       (!alone || share * 2 >= least),
		       "%s: planted %.3f, %.3f of it by %s, %.3f by the disk alone, %.3f from outside", workload->name,
		       workload->planted_share, share, workload->culprit_comm, alone, outside);
	if (!good)
		printf("\n    %s\n    causes: %.3000s\n", json_object_to_json_string(result),
		       json_object_to_json_string(json_at(report, "causes")));
}

struct stalled {
	const struct stall_watch *watch;
	uint64_t row_cnt, late_cnt, uncertain_cnt;
};

static void take_stalled(void *owner, const struct interval *interval)
{
	struct stalled *stalled = owner;

	stalled->row_cnt += stall_watch__touched(stalled->watch, interval->begin_ts, interval->end_ts);
	if (interval->latency_ns < LATE_NS)
		return;
	stalled->late_cnt++;
	stalled->uncertain_cnt += (interval->flags & WL_INTERVAL_LOSSY) != 0;
}

/* How hooks are attached: all the time, or in windows that begin while threads wait for each other. */
#define ALL_THE_TIME "-d 60s --mode trace --duty 100%"
#define IN_WINDOWS   "-d 60s --mode trace --rate 30% --duty 30% --tail none"

static void chain_case(const char *dir, const char *name, const char *args, unsigned int seconds, bool by_comm)
{
	struct stall_watch *watch = stall_watch__new();
	struct stalled stalled = {.watch = watch};
	struct recording recording = {0};
	struct workload workload;
	struct session session;
	json_object *report;

	/* What earlier tests have written is not to meet the disk of this one. */
	sync();
	if (!workload_start(&workload, name, seconds) ||
	    !recording_start(&recording, dir, workload.server_pid, "%s", args))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, seconds + 20))
		goto cleanup;
	stall_watch__stop(watch);
	CHECKF(process_wait(&recording.process, 10) == 0, "%s: %s", name, process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, take_stalled, &stalled))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	check_balance(&session);
	check_paths(name, recording.dir.s, session.row_cnt);
	report = report_read(recording.dir.s, NULL);
	if (stalled.row_cnt)
		skip(name, "no shares to compare: the whole machine stood still during %lu of its requests",
		     stalled.row_cnt);
	else if (stalled.uncertain_cnt * 20 > stalled.late_cnt)
		skip(name, "no shares to compare: the kernel left out events of %lu of %lu late requests",
		     stalled.uncertain_cnt, stalled.late_cnt);
	else
		check_report(&workload, report, by_comm);
	json_object_put(report);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
	stall_watch__free(watch);
}

#define CHAINS                            \
	CHAIN(mutex, 6, false, REST)      \
	CHAIN(heaplocks, 6, false, REST)  \
	CHAIN(holder, 6, false, SHORT)    \
	CHAIN(inversion, 6, false, REST)  \
	CHAIN(chain_tcp, 6, false, SHORT) \
	CHAIN(chain_unix, 6, false, REST) \
	CHAIN(stopworld, 6, false, REST)  \
	CHAIN(pool, 8, false, REST)       \
	CHAIN(relay, 6, false, REST)      \
	CHAIN(requeue, 6, false, REST)    \
	CHAIN(spurious, 6, false, REST)   \
	CHAIN(reused, 6, false, REST)     \
	CHAIN(message, 6, false, REST)    \
	CHAIN(splice, 6, false, REST)     \
	CHAIN(uring, 6, false, REST)      \
	CHAIN(ringdisk, 6, true, REST)    \
	CHAIN(neighbour, 8, true, REST)

#define CHAIN(name, seconds, by_comm, form)                                        \
	static void test_##name(void)                                              \
	{                                                                          \
		chain_case("trace-" #name, #name, ALL_THE_TIME, seconds, by_comm); \
	}
CHAINS
#undef CHAIN

struct waits {
	uint64_t cnt, unknown_cnt;
};

static void take_wait(void *owner, json_object *row)
{
	struct waits *waits = owner;

	if (strncmp(json_text(row, "state"), "blocked.", 8))
		return;
	waits->cnt++;
	waits->unknown_cnt += !json_at(row, "syscall");
}

/* What threads waited for before a window opened is known in it: for which call, and so behind whom. */
static void windows_case(const char *name, unsigned int seconds)
{
	struct waits waits = {0};
	char dir[64];

	snprintf(dir, sizeof(dir), "trace-windows-%s", name);
	chain_case(dir, name, IN_WINDOWS, seconds, false);
	visit_rows(temp_path("%s", dir).s, "segment", take_wait, &waits);
	CHECK(waits.cnt > 0);
	CHECKF(waits.unknown_cnt * 100 <= waits.cnt, "%lu of %lu waits are for nothing known", waits.unknown_cnt,
	       waits.cnt);
}

static void test_mutex_in_windows(void)
{
	windows_case("mutex", 8);
}

static void test_stopworld_in_windows(void)
{
	windows_case("stopworld", 8);
}

static void test_holder_in_windows(void)
{
	windows_case("holder", 8);
}

/*
 * Everything is in order although rings are far too small for it: a page has room for some fifty requests, which Redis
 * answers faster than the agent comes round.
 */
static void test_tiny_rings(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct session session;
	struct paths_seen seen;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "trace-tiny", redis.process.pid,
			     "--mode trace --budget 100%% --ring-size 4K --max-loss 100%%") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 50000, 20) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.lost[WL_LOSS_SEGMENT] > 0);
	check_balance(&session);
	CHECK(strstr(process_err(&recording.process), " segment") != NULL);
	if (CHECK(walk_all(recording.dir.s, LATE_NS, NULL, &seen)))
		CHECKF(!seen.uneven_cnt, "%lu of %lu paths do not sum to the latency", seen.uneven_cnt, seen.cnt);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

/* With a tail and hardly any baseline, most detail is forgotten, and what is kept is whole. */
static void test_tail(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "mutex", 30) ||
	    !recording_start(&recording, "trace-tail", workload.server_pid,
			     "-d 6s --mode trace --budget 100%% --tail p95 --baseline 5"))
		goto cleanup;
	workload_go(&workload);
	CHECKF(process_wait(&recording.process, 20) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	check_balance(&session);
	CHECKF(session_number(&session, "segments_written") * 10 < session_number(&session, "segments_received") * 9,
	       "%s of %s segments are written", session_key(&session, "segments_written"),
	       session_key(&session, "segments_received"));
	check_paths("tail", recording.dir.s, session.row_cnt);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* Nobody outside may be followed: said, counted, and the chain ends at the process. */
static void test_scope_limit(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "chain_tcp", 30) ||
	    !recording_start(&recording, "trace-scope", workload.server_pid,
			     "-d 2s --mode trace --budget 100%% --scope 0"))
		goto cleanup;
	workload_go(&workload);
	CHECKF(process_wait(&recording.process, 20) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.lost[WL_LOSS_SCOPE] > 0);
	CHECK(strstr(process_err(&recording.process), "--scope") != NULL);
	check_balance(&session);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* "NAME\n" on a connection is answered as soon as there is a file of that name. */
static const char gated_server[] =
	"import os,socket,sys,threading,time\n"
	"def serve(c):\n"
	"    while True:\n"
	"        name=c.recv(100).decode().strip()\n"
	"        if not name: return\n"
	"        print('at',name,'.',flush=True)\n"
	"        while not os.path.exists(sys.argv[2]+'/'+name): time.sleep(0.002)\n"
	"        c.send(b'done\\n')\n"
	"l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(9)\n"
	"while True: threading.Thread(target=serve,args=(l.accept()[0],),daemon=True).start()\n";

static bool gate_ask(int fd, const char *name)
{
	char question[32];
	int sz = snprintf(question, sizeof(question), "%s\n", name);

	return CHECK(send(fd, question, (size_t)sz, MSG_NOSIGNAL) == sz);
}

/* The server has read the question. */
static bool gate_reached(struct process *server, const char *name)
{
	char text[32];

	snprintf(text, sizeof(text), "at %s .", name);
	return CHECKF(process_says(server, false, text, NULL, 10), "%s: %s", name, process_err(server));
}

static bool gate_open(const char *name)
{
	return CHECK(!file_write(temp_path("gates/%s", name).s, "", 0));
}

static bool gate_answered(int fd)
{
	char answer[5];

	return CHECK(recv(fd, answer, sizeof(answer), MSG_WAITALL) == sizeof(answer));
}

struct midway {
	uint64_t begin_ts, end_ts; /* of the recording, from outside */
	uint64_t outside_cnt, longest_ns;
};

static void take_midway(void *owner, const struct interval *interval)
{
	struct midway *midway = owner;

	midway->outside_cnt += interval->begin_ts < midway->begin_ts || interval->end_ts > midway->end_ts;
	if (interval->latency_ns > midway->longest_ns)
		midway->longest_ns = interval->latency_ns;
}

#define AT_ONCE 20

/* What of four connections' requests lies within the recording, of which some began before it, or end after it. */
static bool midway_requests(struct process *server, const int fds[4], uint64_t *late_ns)
{
	uint64_t asked_ts;

	/* It was read before, and is answered now; the next one had arrived, too, and is read now. */
	if (!gate_open("before") || !gate_answered(fds[0]) || !gate_reached(server, "waiting") ||
	    !gate_open("waiting") || !gate_answered(fds[0]))
		return false;
	for (int i = 0; i < AT_ONCE; i++)
		if (!gate_ask(fds[2], "open") || !gate_answered(fds[2]))
			return false;
	asked_ts = now_ns();
	if (!gate_ask(fds[2], "late") || !gate_reached(server, "late"))
		return false;
	sleep_ms(300);
	if (!gate_open("late") || !gate_answered(fds[2]))
		return false;
	*late_ns = now_ns() - asked_ts;
	return gate_ask(fds[3], "after") && gate_reached(server, "after");
}

/* The server is at some requests when the recording begins, and at some when it ends: none of them has a number. */
static void test_midway(void)
{
	char port_text[16];
	struct path gates = temp_path("gates");
	const char *const argv[] = {"python3", "-c", gated_server, port_text, gates.s, NULL};
	struct recording recording = {0};
	struct process server = {0};
	struct midway midway = {0};
	struct session session;
	json_object *report;
	uint64_t late_ns = 0;
	int port = port_free(), fds[4] = {-1, -1, -1, -1};
	bool connected = true;

	if (program_missing("trace_midway", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (!CHECK(!mkdir(gates.s, 0755)) || !gate_open("open") || process_launch_argv(&server, NULL, argv) ||
	    !port_wait(&server, port, 10))
		goto cleanup;
	for (int i = 0; i < 4; i++)
		connected &= CHECK((fds[i] = port_connect(port)) >= 0);
	if (!connected || !gate_ask(fds[0], "before") || !gate_reached(&server, "before") ||
	    !gate_ask(fds[0], "waiting") || !gate_ask(fds[1], "across") || !gate_reached(&server, "across"))
		goto cleanup;
	midway.begin_ts = now_ns();
	if (!recording_start(&recording, "trace-midway", server.pid, "--mode trace --tail none --budget 100%%") ||
	    !midway_requests(&server, fds, &late_ns))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	midway.end_ts = now_ns();
	if (!session_read(&session, recording.dir.s, take_midway, &midway))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	check_balance(&session);
	check_paths("midway", recording.dir.s, session.row_cnt);
	CHECKF(session.row_cnt == AT_ONCE + 1, "%lu rows", session.row_cnt);
	CHECKF(session_number(&session, "intervals_seen") == AT_ONCE + 1, "%s seen",
	       session_key(&session, "intervals_seen"));
	CHECKF(!session.no_arrival_cnt, "%lu without an arrival", session.no_arrival_cnt);
	CHECKF(!midway.outside_cnt, "%lu begin before or end after the recording", midway.outside_cnt);
	CHECKF(midway.longest_ns >= 300 * NS_PER_MS && midway.longest_ns <= late_ns, "%.1f ms, and %.1f at the client",
	       midway.longest_ns / 1e6, late_ns / 1e6);
	report = report_read(recording.dir.s, NULL);
	CHECK(json_number(report, "latency.max_ns") == (double)midway.longest_ns);
	json_object_put(report);
cleanup:
	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	recording_end(&recording);
	process_end(&server);
}

/* Counters mode leaves the tables of trace mode alone. */
static void test_counters(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct session session;

	if (!workload_start(&workload, "chain_tcp", 30) ||
	    !recording_start(&recording, "trace-counters", workload.server_pid, "-d 2s"))
		goto cleanup;
	workload_go(&workload);
	CHECK(process_wait(&recording.process, 20) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(session.row_cnt > 0);
	CHECK(!session.rows[SHARD_TABLE_SEGMENT] && !session.rows[SHARD_TABLE_WAKEUP] &&
	      !session.rows[SHARD_TABLE_HANDOFF]);
	CHECK(!session.emitted[WL_LOSS_SEGMENT] && !session.emitted[WL_LOSS_WAKEUP] && !session.emitted[WL_LOSS_EDGE]);
	CHECK(!strcmp(session_key(&session, "mode"), "counters"));
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
#define CHAIN(name, seconds, by_comm, form) {"trace_" #name, test_##name, form},
	CHAINS
#undef CHAIN
	{"trace_windows_mutex", test_mutex_in_windows, REST},
	{"trace_windows_stopworld", test_stopworld_in_windows, REST},
	{"trace_windows_holder", test_holder_in_windows, REST},
	{"trace_tiny_rings", test_tiny_rings, SHORT},
	{"trace_tail", test_tail, REST},
	{"trace_scope_limit", test_scope_limit, SHORT},
	{"trace_midway", test_midway, SHORT},
	{"trace_counters", test_counters, SHORT},
};

int suite_trace(void)
{
	return live_suite("trace", tests, sizeof(tests) / sizeof(tests[0]));
}
