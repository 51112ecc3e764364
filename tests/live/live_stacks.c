// SPDX-License-Identifier: GPL-2.0-or-later
/* Sampled user stacks: a known chain of calls is found as it is, and real servers' stacks to the last frame. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "stacks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Every stack that was sampled is a row, or was counted: of waits, those whose end came. */
static void check_account(const struct session *session)
{
	uint64_t stacks = session_number(session, "stack_records"), waits = session_number(session, "stack_waits"),
		 python = session_number(session, "stack_python");

	CHECKF(stacks + waits + python + session->lost[WL_LOSS_STACK] == session->emitted[WL_LOSS_STACK],
	       "%lu stacks, %lu waits, %lu of Python, %lu lost of %lu", stacks, waits, python,
	       session->lost[WL_LOSS_STACK], session->emitted[WL_LOSS_STACK]);
}

/* --- a known chain ------------------------------------------------------------------------------------------------ */

struct chain {
	uint64_t answering, waiting, astray, own, complete;
	uint64_t pid;
	char *example; /* of those astray */
};

#define CHAIN_TOP "answer_request;answer_by_pointer;"

/*
 * Whatever is below the comparison is the clock and the work; between it and the function that sorts are the C
 * library's own functions.
 */
static void take_row(void *owner, const struct stack_row *row)
{
	bool answers = strstr(row->frames, "compare_slowly") != NULL;
	bool waits = strstr(row->frames, "wait_for_it") != NULL, runs = !strcmp(row->state, "running");
	const char *top = strstr(row->frames, CHAIN_TOP);
	struct chain *chain = owner;
	bool right = true;

	chain->own += row->pid == chain->pid;
	chain->complete += row->pid == chain->pid && row->complete;
	if (!row->complete || row->pid != chain->pid)
		return;
	if (answers)
		right = top && strstr(top, "qsort") && strstr(top, ";compare_slowly") > strstr(top, "qsort");
	if (waits)
		right = strstr(row->frames, "answer_request;wait_for_it") && !strstr(row->frames, "compare_slowly") &&
			(runs || strstr(row->frames, ";wait_for_it;sleep_for_ns;"));
	chain->answering += answers && right && runs;
	chain->waiting += waits && right && !strcmp(row->state, "blocked.sleep");
	if (!right && !chain->astray++)
		chain->example = strdup(row->frames);
}

static void test_chain(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct stacks_seen seen;
	struct session session;
	struct chain chain = {0};

	if (!workload_start(&workload, "callchain", 6) ||
	    !recording_start(&recording, "callchain", workload.server_pid, "--stacks=499 --budget 100%% -d 60s"))
		goto cleanup;
	chain.pid = workload.server_pid;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL) ||
	    !stacks_read(&seen, recording.dir.s, take_row, &chain))
		goto cleanup;
	session_check(&session);
	check_account(&session);
	CHECKF(chain.answering > 50 && chain.waiting > 5, "%lu answering, %lu waiting of %lu", chain.answering,
	       chain.waiting, seen.row_cnt);
	CHECKF(!chain.astray, "%lu, as in %s", chain.astray, chain.example);
	CHECKF(chain.complete >= 0.99 * chain.own, "%lu of %lu", chain.complete, chain.own);
	CHECKF(seen.in_interval_cnt + seen.delaying_cnt >= seen.row_cnt, "%lu in intervals, %lu delaying, of %lu",
	       seen.in_interval_cnt, seen.delaying_cnt, seen.row_cnt);
	/* Of the time at work nearly all goes into the sort: that much must the samples stand for. */
	CHECKF(seen.running_ns > 0.5 * session.ns[WL_STATE_RUNNING] &&
		       seen.running_ns < 2.0 * session.ns[WL_STATE_RUNNING],
	       "%.0f ns by samples, %lu by intervals", seen.running_ns, session.ns[WL_STATE_RUNNING]);
cleanup:
	free(chain.example);
	workload_end(&workload);
	recording_end(&recording);
}

/* --- a real server without frame pointers ------------------------------------------------------------------------- */

struct redis_rows {
	uint64_t pid, cnt, complete, guessed, from_main;
};

/* Whatever else has delayed it is not of this. */
static void take_redis_row(void *owner, const struct stack_row *row)
{
	struct redis_rows *rows = owner;

	if (row->pid != rows->pid || !row->sid)
		return;
	rows->cnt++;
	rows->complete += row->complete;
	rows->guessed += row->guessed > 0;
	rows->from_main += row->complete && !strncmp(row->frames, "_start;", 7) && strstr(row->frames, ";main;aeMain;");
}

static void test_redis(void)
{
	struct process load = {0}, export = {0};
	struct recording recording = {0};
	struct redis redis = {0};
	struct stacks_seen seen;
	struct session session;
	struct redis_rows rows = {0};
	struct path folded;
	char *text = NULL;

	if (program_missing("redis stacks", "redis-server") || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	if (!recording_start(&recording, "redis-stacks", redis.process.pid,
			     "--stacks=999 --budget 100%% --ring-size 32M") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 200000, 20))
		goto cleanup;
	CHECK(process_wait(&load, 60) == 0);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	rows.pid = redis.process.pid;
	if (!session_read(&session, recording.dir.s, NULL, NULL) ||
	    !stacks_read(&seen, recording.dir.s, take_redis_row, &rows))
		goto cleanup;
	check_account(&session);
	CHECKF(rows.cnt > 30, "%lu", rows.cnt);
	CHECKF(rows.complete >= 0.95 * rows.cnt && rows.from_main >= 0.95 * rows.cnt,
	       "%lu complete, %lu from main to the loop, of %lu", rows.complete, rows.from_main, rows.cnt);
	/* Where a file describes no frames, in a few hand-written functions, the unwinder has to guess and says so. */
	CHECKF(rows.guessed <= 0.02 * rows.cnt, "%lu with guesses, of %lu", rows.guessed, rows.cnt);
	folded = temp_path("redis.folded");
	CHECK(whylate(&export, 30, "export %s --format folded -o %s", recording.dir.s, folded.s) == 0);
	text = file_read(folded.s, NULL);
	CHECK(text && strstr(text, "stack;oncpu;_start;"));
cleanup:
	free(text);
	process_end(&export);
	process_end(&load);
	redis_end(&redis);
	recording_end(&recording);
}

/* --- a workload, recorded while it lasts -------------------------------------------------------------------------- */

struct rows {
	pid_t pid; /* of the server */
	uint64_t right, wrong, unknown, strangers, pointless;
	char *example; /* of what is wrong */
};

static void record_workload(const char *name, unsigned int seconds, const char *options, stack_visitor visit,
			    struct rows *rows, struct session *session)
{
	struct recording recording = {0};
	struct workload workload;
	struct stacks_seen seen;

	memset(session, 0, sizeof(*session));
	if (!workload_start(&workload, name, seconds) ||
	    !recording_start(&recording, name, workload.server_pid, "--stacks=499 --budget 100%% -d 60s %s", options))
		goto cleanup;
	rows->pid = workload.server_pid;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(session, recording.dir.s, NULL, NULL) || !stacks_read(&seen, recording.dir.s, visit, rows))
		goto cleanup;
	check_account(session);
	CHECK(!rows->pointless);
	printf("\n    %lu right, %lu wrong, %lu unknown, %lu of strangers; %lu keys, %lu checks, %lu wrong ...",
	       rows->right, rows->wrong, rows->unknown, rows->strangers, session_number(session, "stack_keys"),
	       session_number(session, "stack_checks"), session_number(session, "stack_checks_wrong"));
cleanup:
	workload_end(&workload);
	recording_end(&recording);
}

/* A row is there for an interval that it works for, or for those that it delays. */
static void note_row(struct rows *rows, const struct stack_row *row)
{
	rows->pointless += !row->sid && !row->delays;
	rows->strangers += row->pid != (uint64_t)rows->pid;
}

/* --- who has the CPU instead -------------------------------------------------------------------------------------- */

static void take_hog_row(void *owner, const struct stack_row *row)
{
	struct rows *rows = owner;

	note_row(rows, row);
	if (row->pid == (uint64_t)rows->pid || !strstr(row->frames, "backup_body"))
		return;
	rows->right += row->delays && !row->sid && row->complete && !strncmp(row->frames, "_start;", 7);
	rows->wrong += !row->delays || row->sid;
}

static void test_hog(void)
{
	struct rows rows = {0};
	struct session session;

	record_workload("preempt", 4, "", take_hog_row, &rows, &session);
	CHECKF(rows.right >= 20 && !rows.wrong, "%lu right, %lu wrong", rows.right, rows.wrong);
}

/* --- where in the kernel ------------------------------------------------------------------------------------------ */

static void take_disk_row(void *owner, const struct stack_row *row)
{
	struct rows *rows = owner;

	note_row(rows, row);
	if (row->pid != (uint64_t)rows->pid || strcmp(row->state, "blocked.disk") || !strstr(row->frames, ";fdatasync"))
		return;
	if (strstr(row->kernel_frames, "fdatasync;") && !strstr(row->kernel_frames, "bpf_"))
		rows->right++;
	else
		rows->wrong++;
}

static void test_kernel_frames(void)
{
	struct rows rows = {0};
	struct session session;

	record_workload("fsync", 4, "", take_disk_row, &rows, &session);
	CHECKF(rows.right >= 20 && rows.wrong <= rows.right / 50, "%lu right, %lu wrong", rows.right, rows.wrong);
}

/* --- keys of waits ------------------------------------------------------------------------------------------------ */

#define PATH_NS 2000000ULL /* see tests/workloads/callpaths.c */

static uint64_t count_calls(const char *frames, const char *name)
{
	uint64_t cnt = 0;

	for (const char *at = frames; (at = strstr(at, name)); at += strlen(name))
		cnt++;
	return cnt;
}

static bool path_is(uint64_t path, const char *frames)
{
	static const char *const names[] = {";twin_one;", ";twin_two;", ";with_room;", "in_coroutine;"};

	if (path < 4)
		return count_calls(frames, ";recurse") == path + 1;
	return strstr(frames, names[path - 4]) != NULL;
}

/* The length of the sleep tells below which path it was; not of one that woke up so late that it may be the next one's.
 */
static void take_path_row(void *owner, const struct stack_row *row)
{
	struct rows *rows = owner;
	uint64_t took_ns = row->end_ts - row->ts, path = took_ns / PATH_NS;

	note_row(rows, row);
	if (row->pid != (uint64_t)rows->pid || strcmp(row->state, "blocked.sleep") || path < 1 || path > 8 ||
	    took_ns % PATH_NS > PATH_NS / 4)
		return;
	if (!strcmp(row->frames, "[unknown]")) {
		rows->unknown++;
	} else if (path_is(path - 1, row->frames)) {
		rows->right++;
	} else if (!rows->wrong++) {
		rows->example = strdup(row->frames);
	}
}

static void test_keys(void)
{
	struct rows rows = {0};
	struct session session;
	uint64_t all;

	record_workload("callpaths", 5, "", take_path_row, &rows, &session);
	all = rows.right + rows.wrong + rows.unknown;
	CHECKF(all > 200 && rows.right >= 0.97 * all, "%lu of %lu right, %lu unknown; as in %s", rows.right, all,
	       rows.unknown, rows.example);
	CHECK(session_number(&session, "stack_keys") >= 8 && session_number(&session, "stack_checks") > 0);
	free(rows.example);
}

/* --- without, and what makes no sense ----------------------------------------------------------------------------- */

/* --- frames of Python code --------------------------------------------------------------------------------------- */

/* Two functions sleep by the same calls of C. */
static const char python_server[] = "import socket,sys,time\n"
				    "def burn():\n"
				    "    end=time.perf_counter()+.004\n"
				    "    while time.perf_counter()<end: pass\n"
				    "def nap(): time.sleep(.001)\n"
				    "def doze(): time.sleep(.001)\n"
				    "def answer(kind): {b'b':burn,b'n':nap,b'd':doze}[kind]()\n"
				    "print('known' if (3,9)<=sys.version_info<(3,14) else 'other',flush=True)\n"
				    "l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(9)\n"
				    "while True:\n"
				    "    c=l.accept()[0]\n"
				    "    for kind in iter(lambda: c.recv(1),b''):\n"
				    "        answer(kind)\n"
				    "        c.send(b'.')\n";

#define PYTHON_REQUESTS 240
#define PYTHON_OPTIONS  "--stacks=499 --tail none --budget 100%%"

struct python_rows {
	uint64_t pid, burning, napping, dozing, astray;
	char *example;
};

#define PYTHON_TOP "<module> (<string>:1);answer (<string>:7);"

static void take_python_row(void *owner, const struct stack_row *row)
{
	const char *top = strstr(row->frames, PYTHON_TOP), *below = top ? top + strlen(PYTHON_TOP) : "";
	struct python_rows *rows = owner;
	bool sleeps = !strcmp(row->state, "blocked.sleep");

	if (row->pid != rows->pid || !row->sid || !strstr(row->frames, "answer ("))
		return;
	rows->burning += !strcmp(row->state, "running") && !strncmp(below, "burn (<string>:2)", 17);
	rows->napping += sleeps && !strncmp(below, "nap (<string>:5);", 17);
	rows->dozing += sleeps && !strncmp(below, "doze (<string>:6);", 18);
	if ((!top || strstr(row->frames, "_PyEval_EvalFrameDefault")) && !rows->astray++)
		rows->example = strdup(row->frames);
}

/* Requests of that server, of each kind in turn; false: a failed check. */
static bool ask_python(int port, int request_cnt)
{
	int fd = port_connect(port);
	bool good = CHECK(fd >= 0);
	char answer;

	for (int i = 0; good && i < request_cnt; i++)
		good = CHECK(send(fd, &"bnd"[i % 3], 1, MSG_NOSIGNAL) == 1 && recv(fd, &answer, 1, 0) == 1);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Ends the recording of it. */
static void check_python(struct recording *recording, pid_t pid)
{
	struct python_rows rows = {.pid = (uint64_t)pid};
	struct stacks_seen seen;
	struct session session;

	CHECKF(recording_stop(recording) == 0, "%s", process_err(&recording->process));
	if (session_read(&session, recording->dir.s, NULL, NULL) &&
	    stacks_read(&seen, recording->dir.s, take_python_row, &rows)) {
		check_account(&session);
		CHECKF(rows.burning > 20 && rows.napping > 5 && rows.dozing > 5, "%lu burning, %lu napping, %lu dozing",
		       rows.burning, rows.napping, rows.dozing);
		/* A stack may be taken in the midst of a call. */
		CHECKF(rows.astray * 20 <= rows.burning + rows.napping + rows.dozing, "%lu, as in %s", rows.astray,
		       rows.example);
	}
	free(rows.example);
}

/* That server, run by these arguments at that port. */
static void record_python(const char *test, const char *const argv[], int port)
{
	struct recording recording = {0};
	struct process server = {0};

	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10))
		goto cleanup;
	if (!strstr(process_out(&server), "known")) {
		skip(test, "this version of python3 is not known");
		goto cleanup;
	}
	if (recording_start(&recording, test, server.pid, PYTHON_OPTIONS) && ask_python(port, PYTHON_REQUESTS))
		check_python(&recording, server.pid);
cleanup:
	recording_end(&recording);
	process_end(&server);
}

static void test_python(void)
{
	char port_text[16];
	const char *const argv[] = {"python3", "-c", python_server, port_text, NULL};
	int port = port_free();

	snprintf(port_text, sizeof(port_text), "%d", port);
	if (!program_missing("python_frames", "python3"))
		record_python("python_frames", argv, port);
}

/* The interpreter is a part of the program, as where it is linked with it, and nothing is called Python. */
static void test_linked_python(void)
{
	struct path program = temp_path("shop");
	char port_text[16];
	const char *const argv[] = {"env", "PYTHONHOME=/usr", program.s, "-c", python_server, port_text, NULL};
	struct process copy = {0};
	int port = port_free();

	snprintf(port_text, sizeof(port_text), "%d", port);
	if (!is_there("/usr/bin/python3"))
		skip("linked_python", "there is no /usr/bin/python3");
	else if (!process_start(&copy, "cp -L /usr/bin/python3 %s", program.s) && CHECK(!process_wait(&copy, 10)))
		record_python("linked_python", argv, port);
	process_end(&copy);
}

/* A C program that loads Python while it is recorded: it is looked at again a second later. */
static void test_embedded_python(void)
{
	char port_text[16];
	struct path program = {0};
	const char *const argv[] = {program.s, port_text, python_server, NULL};
	struct recording recording = {0};
	struct process server = {0};
	int port = port_free();

	snprintf(program.s, sizeof(program.s), "%s/embedding", workloads_path());
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv) || !CHECK(process_says(&server, false, "waiting", NULL, 10)) ||
	    !recording_start(&recording, "embedded", server.pid, PYTHON_OPTIONS))
		goto cleanup;
	process_signal(&server, SIGUSR1);
	if (!process_says(&server, false, "known", NULL, 10)) {
		if (CHECKF(server.code == 77 || strstr(process_out(&server), "other"), "%s", process_err(&server)))
			skip("embedded_python", "no libpython3 of a known version is installed");
		goto cleanup;
	}
	if (port_wait(&server, port, 10) && ask_python(port, 6 * PYTHON_REQUESTS))
		check_python(&recording, server.pid);
cleanup:
	recording_end(&recording);
	process_end(&server);
}

static void test_without(void)
{
	struct recording recording = {0};
	struct process process = {0};
	struct redis redis = {0};
	struct stacks_seen seen;
	struct session session;

	CHECK(whylate(&process, 10, "record -p 1 --stacks=0") == 2 && said_one_line(&process, "--stacks '0'", NULL));
	process_end(&process);
	CHECK(whylate(&process, 10, "record -p 1 --stacks=20000") == 2 && said_one_line(&process, "10000", NULL));
	process_end(&process);
	CHECK(whylate(&process, 10, "record -p 1 --stacks-all") == 2 && said_one_line(&process, "--stacks", NULL));
	process_end(&process);
	if (program_missing("no stacks", "redis-server") || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	if (!recording_start(&recording, "no-stacks", redis.process.pid, "--budget 100%%"))
		goto cleanup;
	CHECK(redis_answers(&redis));
	CHECK(recording_stop(&recording) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL) || !stacks_read(&seen, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(!seen.row_cnt && session_number(&session, "stacks_hz") == UINT64_MAX && !session.emitted[WL_LOSS_STACK]);
	CHECK(!strstr(session_key(&session, "hooks"), "cpu-clock"));
cleanup:
	redis_end(&redis);
	recording_end(&recording);
}

/* --- code that is made while it runs ------------------------------------------------------------------------------ */

/* The agent looks for what was added more often. */
#define READ_AGAIN_NS (500 * 1000000ULL)

struct jit_rows {
	uint64_t pid, early, late, first_late_ts, last_early_ts;
};

static void take_jit_row(void *owner, const struct stack_row *row)
{
	struct jit_rows *rows = owner;

	if (row->pid != rows->pid)
		return;
	if (strstr(row->frames, "early_code")) {
		rows->early++;
		if (row->ts > rows->last_early_ts)
			rows->last_early_ts = row->ts;
	} else if (strstr(row->frames, "late_code")) {
		if (!rows->late++ || row->ts < rows->first_late_ts)
			rows->first_late_ts = row->ts;
	}
}

/* The names are those that its code had when the stack was taken, in one and the same place. */
static void record_jitted(const char *name)
{
	struct recording recording = {0};
	struct jit_rows rows = {0};
	struct workload workload;
	struct stacks_seen seen;
	uint64_t changed_ts;

	if (!workload_start(&workload, name, 6) ||
	    !recording_start(&recording, name, workload.server_pid, "--stacks=499 --tail none --budget 100%%"))
		goto cleanup;
	rows.pid = (uint64_t)workload.server_pid;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	recording_stop(&recording);
	changed_ts = (uint64_t)json_object_get_int64(json_at(workload.result, "changed_ts"));
	if (!CHECK(changed_ts) || !stacks_read(&seen, recording.dir.s, take_jit_row, &rows))
		goto cleanup;
	CHECKF(rows.early > 20 && rows.late > 20, "%lu of early code, %lu of late code, of %lu", rows.early, rows.late,
	       seen.row_cnt);
	CHECKF(rows.last_early_ts < changed_ts + READ_AGAIN_NS, "%.3f s after it was gone",
	       (double)(int64_t)(rows.last_early_ts - changed_ts) / NS_PER_SEC);
	CHECKF(rows.first_late_ts >= changed_ts, "%.3f s before it was there",
	       (double)(int64_t)(changed_ts - rows.first_late_ts) / NS_PER_SEC);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static void test_perf_map(void)
{
	record_jitted("jitted");
}

static void test_jitdump(void)
{
	record_jitted("jitted_dump");
}

int suite_stacks(void)
{
	static const struct live_test tests[] = {
		{"chain_of_calls", test_chain, SHORT},
		{"redis_stacks", test_redis, REST},
		{"hog_of_another_process", test_hog, REST},
		{"kernel_frames", test_kernel_frames, SHORT},
		{"keys_of_waits", test_keys, REST},
		{"no_stacks", test_without, SHORT},
		{"python_frames", test_python, SHORT},
		{"linked_python", test_linked_python, REST},
		{"embedded_python", test_embedded_python, REST},
		{"perf_map_grows", test_perf_map, REST},
		{"jitdump_grows", test_jitdump, REST},
	};

	return live_suite("stacks", tests, sizeof(tests) / sizeof(tests[0]));
}
