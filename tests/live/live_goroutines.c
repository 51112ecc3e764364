// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests of a Go server by goroutine (tests/goroutines/server.go): all are seen, each as long as its client says,
 * none of them moved although they change threads, and each waits for what its handler waits for.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KINDS 6
#define CHAN  3 /* of kinds[] */

struct kind {
	const char *path;
	enum wl_state state; /* of what is planted */
	double planted_ms;   /* at least so long on average, of which some may be another state's */
	const char *wait;    /* the longest wait of most of its requests; NULL: none is planted */
};

/* A millisecond of calculation is what it was calibrated to be: less where the machine was busy then. */
static const struct kind kinds[KINDS] = {
	{"/fast", WL_STATE_RUNNING, 0, NULL},
	{"/burn", WL_STATE_RUNNING, 0.3, NULL},
	{"/mutex", WL_STATE_RUNNING, 0.3, NULL},
	{"/chan", WL_STATE_BLOCKED_FUTEX, 3.9, "chan receive"},
	{"/sleep", WL_STATE_BLOCKED_SLEEP, 4.9, "sleep"},
	{"/upstream", WL_STATE_BLOCKED_NET, 5.9, "IO wait"},
};

/* What is recorded, and what the clients say. */
struct seen {
	uint64_t cnt[KINDS], waits_cnt[KINDS], strangers;
	double latency_ms[KINDS], state_ms[KINDS];
	uint64_t mutex_waits;
	uint64_t client_cnt[KINDS];
	double client_ms[KINDS];
};

static void add(void *owner, const struct interval *interval)
{
	struct seen *seen = owner;
	const char *path = strrchr(interval->type, '/');

	for (size_t i = 0; path && i < KINDS; i++) {
		const char *lock, *wait;

		if (strcmp(path, kinds[i].path) != 0)
			continue;
		lock = interval->lock_name;
		wait = kinds[i].state == WL_STATE_BLOCKED_FUTEX ? lock : interval->blocked_syscall;
		seen->cnt[i]++;
		seen->latency_ms[i] += (double)interval->latency_ns / NS_PER_MS;
		seen->state_ms[i] += (double)interval->ns[kinds[i].state] / NS_PER_MS;
		seen->waits_cnt[i] += kinds[i].wait && wait && !strcmp(wait, kinds[i].wait);
		seen->mutex_waits += !strcmp(path, "/mutex") && lock &&
				     (!strcmp(lock, "semacquire") || !strcmp(lock, "sync.Mutex.Lock"));
		return;
	}
	seen->strangers++;
}

/* "PATH COUNT MEAN_NS P50_NS P99_NS" a line. */
static void read_client(struct seen *seen, const char *text)
{
	char path[32];
	unsigned long long cnt, mean_ns;
	int len;

	for (; sscanf(text, "%31s %llu %llu%*[^\n]%n", path, &cnt, &mean_ns, &len) == 3; text += len)
		for (size_t i = 0; i < KINDS; i++)
			if (!strcmp(path, kinds[i].path)) {
				seen->client_cnt[i] = cnt;
				seen->client_ms[i] = (double)mean_ns / NS_PER_MS;
			}
}

static void check_kinds(const struct seen *seen)
{
	for (size_t i = 0; i < KINDS; i++) {
		const char *path = kinds[i].path;
		double cnt = (double)seen->cnt[i], ms = seen->latency_ms[i] / cnt, state_ms = seen->state_ms[i] / cnt;

		CHECKF(seen->cnt[i] == seen->client_cnt[i] && seen->cnt[i] > 50, "%s: %llu seen, the clients had %llu",
		       path, (unsigned long long)seen->cnt[i], (unsigned long long)seen->client_cnt[i]);
		/* The clients' own waiting for a CPU is in theirs: two CPUs are not much for all. */
		CHECKF(ms < seen->client_ms[i] + 0.1 && ms > 0.6 * seen->client_ms[i] - 1,
		       "%s: %.2f ms on average, the clients say %.2f", path, ms, seen->client_ms[i]);
		CHECKF(state_ms >= kinds[i].planted_ms && state_ms <= ms, "%s: %.2f ms of what is planted, of %.2f",
		       path, state_ms, ms);
		CHECKF(!kinds[i].wait || seen->waits_cnt[i] > 0.8 * cnt, "%s: %llu of %.0f wait for '%s'", path,
		       (unsigned long long)seen->waits_cnt[i], cnt, kinds[i].wait);
	}
	CHECKF(seen->strangers == 0, "%llu requests that nobody sent", (unsigned long long)seen->strangers);
	CHECK(seen->mutex_waits > 0);
}

struct server {
	struct process server, upstream;
	int port;
};

static void server_end(struct server *server)
{
	process_end(&server->server);
	process_end(&server->upstream);
}

/* The port that it says it listens at, which is a free one; 0: it does not, and a check has failed. */
static int listening(struct process *process)
{
	const char *said;

	if (!CHECKF(process_says(process, true, "\n", NULL, 10), "%s", process_err(process)))
		return 0;
	said = strstr(process_err(process), "port ");
	return CHECKF(said != NULL, "%s", process_err(process)) ? atoi(said + 5) : 0;
}

static bool server_start(struct server *server, const char *program)
{
	struct path path = built_path("goroutines/%s", program);
	int upstream_port;

	if (!CHECK(!process_start(&server->upstream, "%s upstream 0", path.s)))
		return false;
	upstream_port = listening(&server->upstream);
	if (!upstream_port || !CHECK(!process_start(&server->server, "%s server 0 %d", path.s, upstream_port)))
		return false;
	server->port = listening(&server->server);
	return server->port > 0;
}

/* What that recording of these seconds has seen of each kind. */
static bool record(struct server *server, const char *dir, const char *options, double seconds, struct session *session,
		   struct seen *seen)
{
	struct recording recording = {0};
	struct process client = {0};
	bool good;

	memset(seen, 0, sizeof(*seen));
	good = recording_start(&recording, dir, server->server.pid, "-d 60s --budget 100%% --tail none %s", options) &&
	       CHECK(!process_start(&client, "%s client %d %g", built_path("goroutines/server").s, server->port,
				    seconds)) &&
	       CHECKF(process_wait(&client, 30) == 0, "%s", process_err(&client)) &&
	       CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process)) &&
	       session_read(session, recording.dir.s, add, seen);
	if (good)
		read_client(seen, process_out(&client));
	process_end(&client);
	recording_end(&recording);
	return good;
}

static bool no_go(const char *test)
{
	if (is_there(built_path("goroutines/server").s))
		return false;
	skip(test, "no go in PATH when the tests were built");
	return true;
}

/*
 * net/http reads on in a goroutine of its own until the next request is wanted, which reads that one's first byte if
 * the connection's goroutine loses its CPU right after a reply.
 */
static void few_moved(const struct session *session, const char *program)
{
	CHECKF(session->moved_cnt * 20 <= session->row_cnt, "%s: %llu of %llu moved", program,
	       (unsigned long long)session->moved_cnt, (unsigned long long)session->row_cnt);
}

static void wakeup_row(void *owner, json_object *row)
{
	const char *comm = json_text(row, "waker_comm");

	*(uint64_t *)owner += comm && !strcmp(comm, "go:worker");
}

static void requests_belong_to_goroutines(void)
{
	struct server server = {0};
	struct session session;
	struct seen seen;
	uint64_t by_worker = 0;

	if (no_go("requests_belong_to_goroutines"))
		return;
	if (server_start(&server, "server") && record(&server, "goroutines", "--mode trace", 2.5, &session, &seen)) {
		session_check(&session);
		session_check_no_loss(&session);
		check_kinds(&seen);
		few_moved(&session, "server");
		/*
		 * By its function's name, of each that waits for a worker: now and then one loses its thread before it
		 * waits, and finds the answer there.
		 */
		visit_rows(temp_path("goroutines").s, "wakeup", wakeup_row, &by_worker);
		CHECKF(by_worker * 20 >= seen.cnt[CHAN] * 19, "%llu wake-ups by workers, of %llu requests",
		       (unsigned long long)by_worker, (unsigned long long)seen.cnt[CHAN]);
	}
	/* The same requests do change threads. */
	if (server.port && record(&server, "go-threads", "--no-goroutines", 1, &session, &seen))
		CHECKF(session.moved_cnt > 0, "of %llu by thread none moved", (unsigned long long)session.row_cnt);
	server_end(&server);
}

static void follow(const char *program, double seconds)
{
	struct server server = {0};
	struct session session;
	struct seen seen;

	if (server_start(&server, program) && record(&server, program, "", seconds, &session, &seen)) {
		session_check(&session);
		check_kinds(&seen);
		few_moved(&session, program);
	}
	server_end(&server);
}

static void a_stripped_server_is_followed(void)
{
	if (!no_go("a_stripped_server_is_followed"))
		follow("server-stripped", 2);
}

/* Of which the release has a package beside its own, or its backports have: with symbols and without. */
static void servers_by_other_versions_are_followed(void)
{
	static const char *const versions[] = {"1.21", "1.22", "1.23", "1.24"};
	unsigned int cnt = 0;

	if (no_go("servers_by_other_versions_are_followed"))
		return;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		char plain[32], stripped[64];

		snprintf(plain, sizeof(plain), "server-go-%s", versions[i]);
		snprintf(stripped, sizeof(stripped), "%s-stripped", plain);
		if (!is_there(built_path("goroutines/%s", plain).s))
			continue;
		cnt++;
		follow(plain, 1.5);
		follow(stripped, 1.5);
	}
	if (!cnt)
		skip("servers_by_other_versions_are_followed",
		     "no golang-1.2x-go was installed when the tests were built");
}

struct wait_paths {
	uint64_t all, lock, asleep, net, mutex, of_runtime, guessed;
};

static bool ends_in(const char *frames, const char *end)
{
	size_t len = strlen(frames), end_len = strlen(end);

	return len >= end_len && !strcmp(frames + len - end_len, end);
}

static void take_wait_path(void *owner, const struct stack_row *row)
{
	const char *innermost = strrchr(row->frames, ';');
	struct wait_paths *paths = owner;

	if (row->tid < WL_GOROUTINE_TID || !row->sid || strncmp(row->state, "blocked.", 8))
		return;
	paths->all++;
	paths->lock += !strcmp(row->state, "blocked.futex") && ends_in(row->frames, ";main.handle");
	paths->asleep += !strcmp(row->state, "blocked.sleep") && ends_in(row->frames, ";main.handle;time.Sleep");
	paths->net += !strcmp(row->state, "blocked.net") && strstr(row->frames, ";main.askUpstream;");
	paths->mutex += strstr(row->frames, ";main.holdLedger;sync.(*Mutex)") != NULL;
	paths->of_runtime += innermost && !strncmp(innermost, ";runtime.", 9);
	paths->guessed += row->guessed > 0;
}

/* The function that waits, in each of the ways. */
static void waits_have_call_paths(void)
{
	struct wait_paths paths = {0};
	struct server server = {0};
	struct session session;
	struct stacks_seen stacks;
	struct seen seen;

	if (no_go("waits_have_call_paths"))
		return;
	if (server_start(&server, "server") && record(&server, "go-waits", "--stacks", 2, &session, &seen) &&
	    stacks_read(&stacks, temp_path("go-waits").s, take_wait_path, &paths)) {
		CHECKF(paths.lock > 10 && paths.asleep > 10 && paths.net > 10 && paths.mutex > 0,
		       "%lu at channels, %lu asleep, %lu for the upstream, %lu at a mutex", paths.lock, paths.asleep,
		       paths.net, paths.mutex);
		/* None on a quiet machine. */
		CHECKF(!paths.of_runtime && paths.guessed * 50 <= paths.all, "%lu in the runtime, %lu guessed of %lu",
		       paths.of_runtime, paths.guessed, paths.all);
	}
	server_end(&server);
}

/* --- requests that a server passes on ----------------------------------------------------------------------------- */

#define RESPONDER_MS 4

/* Of a batch the first message is a request. */
#define BATCH_CNT 3

/* "request COUNT MEAN_NS", "publish …" and "batch …", by the client's clock; what is recorded of them. */
struct messages {
	uint64_t request_cnt, publish_cnt, batch_cnt, strangers;
	double request_ms, publish_ms, net_ms;
};

static void add_message(void *owner, const struct interval *interval)
{
	struct messages *messages = owner;
	double ms = (double)interval->latency_ns / NS_PER_MS;

	if (strstr(interval->type, " PUB price reply-to")) {
		messages->request_cnt++;
		messages->request_ms += ms;
		messages->net_ms += (double)interval->ns[WL_STATE_BLOCKED_NET] / NS_PER_MS;
	} else if (strstr(interval->type, " PUB orders.new")) {
		messages->publish_cnt++;
		messages->publish_ms += ms;
	} else if (strstr(interval->type, " PUB orders.batch")) {
		messages->batch_cnt++;
	} else if (!strstr(interval->type, " PING")) {
		messages->strangers++;
	}
}

static void check_messages(const struct messages *seen, const struct session *session, const char *client)
{
	static const char *const names[] = {"request ", "publish ", "batch "};
	uint64_t emitted = session->emitted[WL_LOSS_MESSAGE], lost = session->lost[WL_LOSS_MESSAGE];
	double ms = seen->request_ms / (double)seen->request_cnt;
	unsigned long long cnt[3], mean_ns[3];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *line = strstr(client, names[i]);

		if (!CHECKF(line && sscanf(line + strlen(names[i]), "%llu %llu", &cnt[i], &mean_ns[i]) == 2, "%s",
			    client))
			return;
	}
	CHECKF(seen->request_cnt == cnt[0] && cnt[0] > 20, "%llu requests, the client had %llu",
	       (unsigned long long)seen->request_cnt, cnt[0]);
	CHECKF(seen->publish_cnt == cnt[1] && cnt[1] > 20, "%llu messages, the client had %llu",
	       (unsigned long long)seen->publish_cnt, cnt[1]);
	CHECKF(ms >= RESPONDER_MS && ms < (double)mean_ns[0] / NS_PER_MS + 0.1, "%.2f ms, the client says %.2f", ms,
	       (double)mean_ns[0] / NS_PER_MS);
	CHECKF(seen->net_ms / (double)seen->request_cnt >= RESPONDER_MS - 0.2, "%.2f ms for the responder, of %.2f",
	       seen->net_ms / (double)seen->request_cnt, ms);
	CHECKF(seen->publish_ms / (double)seen->publish_cnt < (double)mean_ns[1] / NS_PER_MS + 0.1,
	       "%.2f ms a message, the client says %.2f", seen->publish_ms / (double)seen->publish_cnt,
	       (double)mean_ns[1] / NS_PER_MS);
	CHECKF(seen->batch_cnt == cnt[2] && lost == (BATCH_CNT - 1) * cnt[2] && emitted - lost == session->row_cnt,
	       "%llu of %llu batches; of %llu messages %llu are no requests, %llu are",
	       (unsigned long long)seen->batch_cnt, cnt[2], (unsigned long long)emitted, (unsigned long long)lost,
	       (unsigned long long)session->row_cnt);
	/* The responder's answers are no requests. */
	CHECKF(!seen->strangers, "%llu requests that nobody sent", (unsigned long long)seen->strangers);
}

static void find_responder(void *owner, json_object *row)
{
	const char *from = json_text(row, "from_comm"), *kind = json_text(row, "kind");

	*(uint64_t *)owner += kind && from && !strcmp(kind, "socket") && !strcmp(from, "broker");
}

/* A request goes on to a client that answers it, and its answer comes back by another goroutine. */
static void messages_are_passed_on(void)
{
	struct process server = {0}, responder = {0}, client = {0};
	struct recording recording = {0};
	struct path path = built_path("goroutines/broker");
	struct messages seen = {0};
	struct session session;
	uint64_t answers = 0;
	int port;

	if (no_go("messages_are_passed_on"))
		return;
	if (CHECK(!process_start(&server, "%s server 0", path.s)) && (port = listening(&server)) &&
	    CHECK(!process_start(&responder, "%s responder %d %d", path.s, port, RESPONDER_MS)) &&
	    CHECK(process_says(&responder, true, "ready", NULL, 10)) &&
	    recording_start(&recording, "broker", server.pid,
			    "-d 60s --budget 100%% --duty 100%% --tail none --mode trace") &&
	    CHECK(!process_start(&client, "%s client %d 1.5", path.s, port)) &&
	    CHECKF(process_wait(&client, 30) == 0, "%s", process_err(&client)) &&
	    CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process)) &&
	    session_read(&session, recording.dir.s, add_message, &seen)) {
		check_messages(&seen, &session, process_out(&client));
		/* One that another goroutine answers has not moved. */
		few_moved(&session, "broker");
		/* Whom they waited for is known. */
		visit_rows(recording.dir.s, "handoff", find_responder, &answers);
		CHECKF(answers * 2 > seen.request_cnt, "%llu answers, of %llu requests", (unsigned long long)answers,
		       (unsigned long long)seen.request_cnt);
	}
	recording_end(&recording);
	process_end(&client);
	process_end(&responder);
	process_end(&server);
}

int suite_goroutines(void)
{
	static const struct live_test tests[] = {
		{"requests_belong_to_goroutines", requests_belong_to_goroutines, SHORT},
		{"a_stripped_server_is_followed", a_stripped_server_is_followed, SHORT},
		{"waits_have_call_paths", waits_have_call_paths, REST},
		{"messages_are_passed_on", messages_are_passed_on, SHORT},
		{"servers_by_other_versions_are_followed", servers_by_other_versions_are_followed, REST},
	};

	return live_suite("goroutines", tests, sizeof(tests) / sizeof(tests[0]));
}
