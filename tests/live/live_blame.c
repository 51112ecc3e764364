// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode: who is named, where it would be easy to name the wrong one.  Bytes whose sender was not seen, a CPU that
 * had no task, and a task whose name is another by now.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- bytes that were sent before -------------------------------------------------------------------------------- */

/*
 * Two children take turns to send 8 and 16 bytes into one Unix socket, and three of their messages are there before
 * anything is recorded.  Each request reads the oldest one (all to "a"), and another is sent before the next request is
 * picked up.
 */
static const char backlog_server[] = "import os,socket,sys\n"
				     "a,b=socket.socketpair(); bells=[]; sent=got=0; done=os.pipe()\n"
				     "for size in 8,16:\n"
				     "    r,w=os.pipe()\n"
				     "    pid=os.fork()\n"
				     "    if not pid:\n"
				     "        os.close(w)\n"
				     "        for x in bells: os.close(x)\n"
				     "        while os.read(r,1): a.send(bytes(size)); os.write(done[1],b'x')\n"
				     "        os._exit(0)\n"
				     "    print('sender',size,pid,flush=True); os.close(r); bells.append(w)\n"
				     "def send():\n"
				     "    global sent\n"
				     "    os.write(bells[sent%2],b'x'); os.read(done[0],1); sent+=1\n"
				     "def take():\n"
				     "    global got\n"
				     "    b.recv(16 if got%2 else 8,socket.MSG_WAITALL); got+=1\n"
				     "for i in range(3): send()\n"
				     "l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(9)\n"
				     "while True:\n"
				     "    c=l.accept()[0]\n"
				     "    for name in iter(lambda: c.recv(1),b''):\n"
				     "        take()\n"
				     "        while name==b'a' and got<sent: take()\n"
				     "        c.send(b'.'); send()\n";

#define BACKLOG_EACH 60

struct backlog {
	double emptied_ts, sender_pids[2];
	uint64_t observed_cnt, wrong_cnt, open_cnt;
};

static void take_backlog(void *owner, json_object *row)
{
	bool large = json_number(row, "bytes") == 16;
	struct backlog *backlog = owner;

	if (strcmp(json_text(row, "kind"), "unix"))
		return;
	if (strcmp(json_text(row, "certainty"), "observed")) {
		backlog->open_cnt += json_number(row, "to_ts") < backlog->emptied_ts;
		return;
	}
	backlog->observed_cnt++;
	backlog->wrong_cnt += json_number(row, "from_pid") != backlog->sender_pids[large];
}

static bool request(int fd, char name)
{
	char answer;

	return CHECK(send(fd, &name, 1, MSG_NOSIGNAL) == 1 && recv(fd, &answer, 1, 0) == 1);
}

/* Bytes that were on their way before counts of them began belong to no send that is seen, until that is sorted out. */
static void test_backlog(void)
{
	struct recording recording = {0};
	struct process server = {0};
	struct backlog backlog = {0};
	struct session session;
	char port_text[16];
	const char *const argv[] = {"python3", "-c", backlog_server, port_text, NULL};
	int port = port_free(), fd = -1;
	bool good = true;

	if (program_missing("trace_backlog", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10))
		goto cleanup;
	fd = port_connect(port);
	if (!CHECK(fd >= 0) ||
	    !CHECK(sscanf(process_out(&server), "sender 8 %lf sender 16 %lf", &backlog.sender_pids[0],
			  &backlog.sender_pids[1]) == 2) ||
	    !recording_start(&recording, "trace-backlog", server.pid, "--mode trace --tail none --budget 100%%"))
		goto cleanup;
	for (int i = 0; good && i < BACKLOG_EACH; i++)
		good = request(fd, 'o');
	if (!good || !request(fd, 'a'))
		goto cleanup;
	backlog.emptied_ts = (double)now_ns();
	for (int i = 0; good && i < BACKLOG_EACH; i++)
		good = request(fd, 'o');
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	visit_rows(recording.dir.s, "handoff", take_backlog, &backlog);
	CHECKF(!backlog.wrong_cnt, "%lu of %lu are laid at the door of the wrong sender", backlog.wrong_cnt,
	       backlog.observed_cnt);
	/* Nobody could know before the socket was empty, and everybody can since. */
	CHECKF(backlog.open_cnt * 2 >= BACKLOG_EACH, "%lu of %d are left open", backlog.open_cnt, BACKLOG_EACH);
	CHECKF(backlog.observed_cnt * 2 >= BACKLOG_EACH, "%lu of %d have a sender", backlog.observed_cnt, BACKLOG_EACH);
cleanup:
	if (fd >= 0)
		close(fd);
	recording_end(&recording);
	process_end(&server);
}

/* --- an idle CPU ------------------------------------------------------------------------------------------------ */

struct idle_waits {
	uint64_t cnt, idle_cnt, nobody_cnt;
};

/* Waits for a CPU that are long enough to ask who had it. */
static void take_runnable(void *owner, json_object *row)
{
	struct idle_waits *waits = owner;

	if (strncmp(json_text(row, "state"), "runq.", 5) ||
	    json_number(row, "end_ts") - json_number(row, "begin_ts") < 2000)
		return;
	waits->cnt++;
	if (!json_at(row, "by_comm")) {
		waits->nobody_cnt++;
	} else if (!strcmp(json_text(row, "by_comm"), "idle CPU (no task)")) {
		waits->idle_cnt++;
		CHECK(!json_at(row, "by_tid") && !json_at(row, "by_pid"));
	}
}

/* Where no task had the CPU that a thread waits for, that is said, so that nobody looks for one. */
static void test_idle_cpu(void)
{
	struct recording recording = {0};
	struct idle_waits waits = {0};
	struct workload workload;

	if (!workload_start(&workload, "chain_tcp", 30) ||
	    !recording_start(&recording, "trace-idle-cpu", workload.server_pid,
			     "-d 2s --mode trace --tail none --budget 100%%"))
		goto cleanup;
	workload_go(&workload);
	CHECK(process_wait(&recording.process, 20) == 0);
	visit_rows(recording.dir.s, "segment", take_runnable, &waits);
	CHECK(waits.cnt > 0);
	CHECKF(waits.nobody_cnt * 4 <= waits.cnt, "for %lu of %lu waits for a CPU nobody knows who had it",
	       waits.nobody_cnt, waits.cnt);
	if (!waits.idle_cnt)
		skip("trace_idle_cpu", "in none of %lu waits for a CPU it was idle", waits.cnt);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* --- a task that is not followed --------------------------------------------------------------------------------- */

/* The server answers each byte; the hog has its CPU for a while, first under the one name, then under the other. */
static const char pinned_server[] = "import os,socket,sys\n"
				    "os.sched_setaffinity(0,{min(os.sched_getaffinity(0))})\n"
				    "l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(9)\n"
				    "while True:\n"
				    "    c=l.accept()[0]\n"
				    "    while c.recv(1): sum(range(20000)); c.send(b'.')\n";
static const char renamed_hog[] = "import os,time\n"
				  "os.sched_setaffinity(0,{min(os.sched_getaffinity(0))})\n"
				  "for name in 'wl-name-one','wl-name-two':\n"
				  "    open('/proc/self/comm','w').write(name)\n"
				  "    end=time.monotonic()+0.5\n"
				  "    while time.monotonic()<end: pass\n";

struct named_waits {
	uint64_t one_cnt, two_cnt;
};

static void take_named(void *owner, json_object *row)
{
	struct named_waits *waits = owner;
	const char *comm = json_text(row, "by_comm");

	waits->one_cnt += !strcmp(comm, "wl-name-one");
	waits->two_cnt += !strcmp(comm, "wl-name-two");
}

/* What it was called when it was first met says nothing of later: a tid is used again, and names are changed. */
static void test_renamed(void)
{
	char port_text[16];
	const char *const server_argv[] = {"python3", "-c", pinned_server, port_text, NULL};
	const char *const hog_argv[] = {"python3", "-c", renamed_hog, NULL};
	struct process server = {0}, hog = {0};
	struct recording recording = {0};
	struct named_waits waits = {0};
	int port = port_free(), fd = -1;
	bool good = true;

	if (program_missing("trace_renamed", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, server_argv) || !port_wait(&server, port, 10) ||
	    !CHECK((fd = port_connect(port)) >= 0) ||
	    !recording_start(&recording, "trace-renamed", server.pid, "--mode trace --tail none --budget 100%%") ||
	    process_launch_argv(&hog, NULL, hog_argv))
		goto cleanup;
	while (good && process_runs(&hog))
		good = request(fd, 'x');
	CHECK(process_wait(&hog, 10) == 0);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	visit_rows(recording.dir.s, "segment", take_named, &waits);
	CHECKF(waits.one_cnt > 0 && waits.two_cnt > 0, "%lu waits for the first name, %lu for the second",
	       waits.one_cnt, waits.two_cnt);
cleanup:
	if (fd >= 0)
		close(fd);
	recording_end(&recording);
	process_end(&hog);
	process_end(&server);
}

static const struct live_test tests[] = {
	{"trace_backlog", test_backlog, SHORT},
	{"trace_idle_cpu", test_idle_cpu, REST},
	{"trace_renamed", test_renamed, SHORT},
};

int suite_blame(void)
{
	return live_suite("blame", tests, sizeof(tests) / sizeof(tests[0]));
}
