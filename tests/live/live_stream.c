// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Streaming: a real agent and a real collector with real certificates, and everything between them that can break.
 * Whatever happens, each block that the agent wrote is in the store exactly once, byte for byte.
 */
#include "base/vec.h"
#include "net.h"
#include "netns.h"
#include "servers.h"
#include "stream_kit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define IP "127.0.0.1"

struct setting {
	struct certs certs;
	struct stream_collector collector;
	struct redis redis;
	struct recording recording;
	struct process load;
	struct path spool;
};

static bool begin(struct setting *setting, const char *name)
{
	char store[64];

	memset(setting, 0, sizeof(*setting));
	setting->spool = temp_path("spool-%s", name);
	snprintf(store, sizeof(store), "store-%s", name);
	return certs_make(&setting->certs, IP) &&
	       stream_collector_start(&setting->collector, &setting->certs, NULL, IP, store) &&
	       redis_start(&setting->redis, ANY_CPU);
}

static void end(struct setting *setting)
{
	process_end(&setting->load);
	recording_end(&setting->recording);
	redis_end(&setting->redis);
	process_end(&setting->collector.process);
}

static bool record(struct setting *setting, const char *dir_name, const char *more)
{
	return recording_start(&setting->recording, dir_name, setting->redis.process.pid,
			       "--stream https://%s --spool %s %s %s", setting->collector.address, setting->spool.s,
			       setting->certs.client, more);
}

static bool load(struct setting *setting, unsigned int requests)
{
	bool good = redis_load_start(&setting->load, &setting->redis, ANY_CPU, requests, 10) &&
		    CHECK(process_wait(&setting->load, 90) == 0);

	process_end(&setting->load);
	return good;
}

static size_t store_cnt(const struct stream_collector *collector)
{
	struct raw_blocks stored = {0};
	size_t cnt;

	raw_blocks_read(&stored, collector->store.s);
	cnt = stored.cnt;
	vec_free(&stored);
	return cnt;
}

/* Until the store holds more than that many blocks. */
static bool store_grows(const struct stream_collector *collector, size_t cnt, unsigned int timeout_s)
{
	for (unsigned int i = 0; i < timeout_s * 10; i++) {
		if (store_cnt(collector) > cnt)
			return true;
		sleep_ms(100);
	}
	return CHECKF(false, "still %zu blocks", store_cnt(collector));
}

static const char *said(struct setting *setting)
{
	return process_err(&setting->recording.process);
}

/* What the sessions in the store say of the spool, against the rows that are there. */
static void check_balance(const char *store, bool any_lost)
{
	double emitted, lost, kept;
	struct process process;
	json_object *report;

	/* The store is its collector's; lost rows are said by the exit code, too. */
	whylate(&process, 60, "report --json %s", store);
	report = json_tokener_parse(process_out(&process));
	CHECKF(report != NULL, "%s", process_err(&process));
	process_end(&process);
	emitted = json_number(report, "loss.detail.spool.emitted");
	lost = json_number(report, "loss.detail.spool.lost");
	kept = json_number(report, "session.intervals_kept");
	CHECKF(kept > 0 && emitted == kept + lost, "emitted %.0f, stored %.0f, lost %.0f", emitted, kept, lost);
	CHECKF(any_lost == (lost > 0), "%.0f lost", lost);
	json_object_put(report);
}

/* Blocks arrive while it is recorded; in the end nothing is left in the spool. */
static void test_streams(void)
{
	struct setting setting;

	if (!begin(&setting, "streams") || !record(&setting, "streams", "-d 60s --duty 100%") ||
	    !load(&setting, 20000) || !store_grows(&setting.collector, 5, 20))
		goto cleanup;
	CHECK(process_runs(&setting.recording.process));
	CHECKF(recording_stop(&setting.recording) == 0, "%s", said(&setting));
	CHECKF(strstr(said(&setting), "streamed: ") != NULL, "%s", said(&setting));
	CHECKF(!strstr(said(&setting), "warning"), "%s", said(&setting));
	stored_once(setting.recording.dir.s, setting.collector.store.s, 0);
	check_balance(setting.collector.store.s, false);
	/* Whose name it goes by is whose certificate it has. */
	CHECKF(is_there(temp_path("store-streams/" STREAM_HOST).s), "no directory of the host");
	CHECK(!rmdir(setting.spool.s));
cleanup:
	end(&setting);
}

static void test_collector_killed(void)
{
	struct setting setting;
	size_t cnt;

	if (!begin(&setting, "killed") || !record(&setting, "collector-killed", "-d 120s"))
		goto cleanup;
	for (int i = 0; i < 2; i++) {
		if (!load(&setting, 20000) || !store_grows(&setting.collector, i ? cnt : 5, 30))
			goto cleanup;
		process_signal(&setting.collector.process, SIGKILL);
		process_wait(&setting.collector.process, 5);
		if (!load(&setting, 40000))
			goto cleanup;
		sleep_ms(2500);
		cnt = store_cnt(&setting.collector);
		if (!stream_collector_again(&setting.collector) || !store_grows(&setting.collector, cnt, 40))
			goto cleanup;
		cnt = store_cnt(&setting.collector);
	}
	CHECKF(recording_stop(&setting.recording) == 0, "%s", said(&setting));
	CHECKF(strstr(said(&setting), "takes blocks again") != NULL, "%s", said(&setting));
	stored_once(setting.recording.dir.s, setting.collector.store.s, 0);
	check_balance(setting.collector.store.s, false);
cleanup:
	end(&setting);
}

/* Killed with the network gone: the next recording sends what it left, each block once. */
static void test_agent_killed(void)
{
	struct path first = temp_path("first-written");
	struct setting setting;

	if (!begin(&setting, "agent-killed") || !record(&setting, "first-written", "-d 120s") ||
	    !load(&setting, 20000) || !store_grows(&setting.collector, 5, 20))
		goto cleanup;
	process_signal(&setting.collector.process, SIGKILL);
	process_wait(&setting.collector.process, 5);
	if (!load(&setting, 40000))
		goto cleanup;
	sleep_ms(2000);
	process_signal(&setting.recording.process, SIGKILL);
	process_wait(&setting.recording.process, 5);
	recording_end(&setting.recording);
	if (!stream_collector_again(&setting.collector) || !record(&setting, "second-written", "-d 3s") ||
	    !load(&setting, 5000))
		goto cleanup;
	CHECKF(process_wait(&setting.recording.process, 30) == 0, "%s", said(&setting));
	CHECKF(strstr(said(&setting), "1 earlier recording left ") != NULL, "%s", said(&setting));
	/* Both together; the spool gets a block before the file does, so one may have missed the latter. */
	CHECK(!rename(setting.recording.dir.s, temp_path("first-written/second").s));
	stored_once(first.s, setting.collector.store.s, 1);
	check_balance(setting.collector.store.s, false);
	CHECK(!rmdir(setting.spool.s));
cleanup:
	end(&setting);
}

/* Killed in the middle of sending, again and again: what had arrived already does not arrive a second time. */
static void test_agent_killed_sending(void)
{
	struct path all = temp_path("sending");
	struct setting setting;

	mkdir(all.s, 0755);
	if (!begin(&setting, "sending"))
		goto cleanup;
	for (int i = 0; i < 5; i++) {
		char name[32];

		snprintf(name, sizeof(name), "sending/%d", i);
		if (!record(&setting, name, "-d 60s --tail none --budget 100%") || !load(&setting, 30000))
			goto cleanup;
		sleep_ms((unsigned int)i * 30);
		process_signal(&setting.recording.process, SIGKILL);
		process_wait(&setting.recording.process, 5);
		recording_end(&setting.recording);
	}
	if (!record(&setting, "sending/last", "-d 1s"))
		goto cleanup;
	CHECKF(process_wait(&setting.recording.process, 30) == 0, "%s", said(&setting));
	stored_once(all.s, setting.collector.store.s, 5);
	check_balance(setting.collector.store.s, false);
	CHECK(!rmdir(setting.spool.s));
cleanup:
	end(&setting);
}

/* The uploader is a process without privilege, and when it dies another one takes its place. */
static void test_uploader_killed(void)
{
	char path[64], line[256];
	struct setting setting;
	pid_t first, second;
	char *text;

	if (!begin(&setting, "uploader") || !record(&setting, "uploader", "-d 60s") || !load(&setting, 20000) ||
	    !store_grows(&setting.collector, 5, 20))
		goto cleanup;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)setting.recording.process.pid,
		 (int)setting.recording.process.pid);
	text = file_read(path, NULL);
	first = text ? atoi(text) : 0;
	free(text);
	if (!CHECKF(first > 0, "no child"))
		goto cleanup;
	snprintf(line, sizeof(line), "/proc/%d/status", (int)first);
	text = file_read(line, NULL);
	CHECKF(text && strstr(text, "\nUid:\t65534\t65534\t65534\t65534\n") &&
		       strstr(text, "\nCapEff:\t0000000000000000\n") && strstr(text, "\nCapPrm:\t0000000000000000\n") &&
		       strstr(text, "\nNoNewPrivs:\t1\n") && (is_sanitized() || strstr(text, "\nSeccomp:\t2\n")),
	       "%s", text);
	free(text);
	kill(first, SIGKILL);
	CHECKF(process_says(&setting.recording.process, true, "another one is started", NULL, 20), "%s",
	       said(&setting));
	if (!load(&setting, 20000) || !store_grows(&setting.collector, store_cnt(&setting.collector) + 3, 30))
		goto cleanup;
	text = file_read(path, NULL);
	second = text ? atoi(text) : 0;
	free(text);
	CHECK(second > 0 && second != first);
	CHECKF(recording_stop(&setting.recording) == 0, "%s", said(&setting));
	/* And it does not outlive the recording. */
	CHECK(kill(second, 0) && errno == ESRCH);
	stored_once(setting.recording.dir.s, setting.collector.store.s, 0);
	check_balance(setting.collector.store.s, false);
cleanup:
	end(&setting);
}

/* By `whylate upload`, which comes later than the recording, and is killed meanwhile. */
static void test_apart(void)
{
	struct setting setting;
	struct process uploader = {0};
	char line[5000];

	if (!begin(&setting, "apart"))
		goto cleanup;
	snprintf(line, sizeof(line), "%s upload --stream https://%s --spool %s %s", whylate_path(),
		 setting.collector.address, setting.spool.s, setting.certs.client);
	if (!recording_start(&setting.recording, "apart", setting.redis.process.pid,
			     "--stream spool --spool %s --host " STREAM_HOST " -d 60s --duty 100%%", setting.spool.s) ||
	    !CHECKF(process_says(&setting.recording.process, true, "it waits for `whylate upload`", NULL, 20), "%s",
		    said(&setting)) ||
	    !load(&setting, 20000))
		goto cleanup;
	for (int i = 0; i < 2; i++) {
		size_t before = store_cnt(&setting.collector);

		process_start(&uploader, "%s", line);
		if (!CHECKF(process_says(&uploader, true, "sending what", NULL, 20), "%s", process_err(&uploader)) ||
		    !load(&setting, 20000) || !store_grows(&setting.collector, before + 3, 30))
			goto cleanup;
		if (!i) {
			process_signal(&uploader, SIGKILL);
			process_end(&uploader);
		}
	}
	CHECKF(recording_stop(&setting.recording) == 0, "%s", said(&setting));
	CHECKF(strstr(said(&setting), " were dropped; uploader "), "%s", said(&setting));
	process_signal(&uploader, SIGTERM);
	CHECKF(process_wait(&uploader, 10) == 0, "%s", process_err(&uploader));
	stored_once(setting.recording.dir.s, setting.collector.store.s, 0);
	check_balance(setting.collector.store.s, false);
cleanup:
	process_end(&uploader);
	end(&setting);
}

/* --- a network of our own ----------------------------------------------------------------------------------------- */

#define IP_AGENT     "10.213.77.1"
#define IP_COLLECTOR "10.213.77.2"

/* The cable is pulled in the middle of it: packets vanish, connections hang. */
static void test_network_cut(void)
{
	struct stream_collector collector = {0};
	struct netns_pair net = {0}; /* the agent left */
	static const char config_text[] = "save \"\"\nappendonly no\ndaemonize no\n";
	struct path spool = temp_path("spool-cut"), dir = temp_path("cut"), config = temp_path("cut.conf");
	struct process server = {0}, agent = {0}, load_process = {0};
	struct certs certs;
	int port = port_free();

	if (!netns_pair_make(&net, "stream_network_cut", IP_AGENT, IP_COLLECTOR) || !certs_make(&certs, IP_COLLECTOR) ||
	    !stream_collector_start(&collector, &certs, net.right, IP_COLLECTOR, "store-cut"))
		goto cleanup;
	CHECK(!file_write(config.s, config_text, strlen(config_text)));
	process_start(&server, "ip netns exec %s redis-server %s --port %d --dir %s", net.left, config.s, port,
		      temp_path(".").s);
	if (!CHECKF(process_says(&server, false, "Ready to accept connections", NULL, 20), "%s", process_err(&server)))
		goto cleanup;
	process_start(&agent, "ip netns exec %s %s record -p %d -o %s -d 120s --stream https://%s --spool %s %s",
		      net.left, whylate_path(), server.pid, dir.s, collector.address, spool.s, certs.client);
	if (!CHECKF(process_says(&agent, true, "whylate: recording ", NULL, 20), "%s", process_err(&agent)))
		goto cleanup;
	for (int round = 0; round < 3; round++) {
		process_start(&load_process, "ip netns exec %s redis-benchmark -p %d -t get -n 20000 -c 5 --csv",
			      net.left, port);
		CHECK(process_wait(&load_process, 60) == 0);
		process_end(&load_process);
		if (round == 0) {
			if (!store_grows(&collector, 5, 20))
				goto cleanup;
			netns_pair_set_cable(&net, false);
			sleep_ms(6000);
		} else if (round == 1) {
			sleep_ms(22500);
			netns_pair_set_cable(&net, true);
			CHECKF(process_says(&agent, true, "takes blocks again", NULL, 60), "%s", process_err(&agent));
		}
	}
	process_signal(&agent, SIGINT);
	CHECKF(process_wait(&agent, 30) == 0, "%s", process_err(&agent));
	CHECK(strstr(process_err(&agent), "waits in the spool") != NULL);
	stored_once(dir.s, collector.store.s, 0);
	check_balance(collector.store.s, false);
cleanup:
	process_end(&load_process);
	process_end(&agent);
	process_end(&server);
	process_end(&collector.process);
	netns_pair_remove(&net);
}

/* --- too little room ---------------------------------------------------------------------------------------------- */

struct tail_count {
	uint64_t tail_cnt, baseline_cnt;
};

static void count_tail(void *owner, const struct interval *interval)
{
	struct tail_count *count = owner;

	if (interval->flags & WL_INTERVAL_BASELINE)
		count->baseline_cnt++;
	else
		count->tail_cnt++;
}

/* The collector is away for too long: the baseline goes, all of the tail stays, and every row is accounted for. */
static void test_spool_full(void)
{
	struct tail_count written = {0}, stored = {0};
	struct session session;
	struct setting setting;

	if (!begin(&setting, "full"))
		goto cleanup;
	process_signal(&setting.collector.process, SIGKILL);
	process_wait(&setting.collector.process, 5);
	if (!record(&setting, "full", "-d 120s --spool-max 4M --baseline 100000 --budget 100% --ring-size 32M") ||
	    !load(&setting, 600000) ||
	    !CHECKF(process_says(&setting.recording.process, true, " is full: ", NULL, 20), "%s", said(&setting)) ||
	    !stream_collector_again(&setting.collector) || !store_grows(&setting.collector, 0, 40))
		goto cleanup;
	CHECKF(recording_stop(&setting.recording) == 3, "%s", said(&setting));
	if (!session_read(&session, setting.recording.dir.s, count_tail, &written) ||
	    !session_read(&session, setting.collector.store.s, count_tail, &stored))
		goto cleanup;
	CHECKF(stored.baseline_cnt < written.baseline_cnt, "%lu of %lu baseline rows", stored.baseline_cnt,
	       written.baseline_cnt);
	CHECKF(stored.tail_cnt == written.tail_cnt, "%lu of %lu tail rows", stored.tail_cnt, written.tail_cnt);
	check_balance(setting.collector.store.s, true);
cleanup:
	end(&setting);
}

/* The spool's disk is full: one line, the recording goes on and ends as always; what did not fit is counted. */
static void test_spool_disk_full(void)
{
	struct path mountpoint = temp_path("small-spool");
	struct setting setting;

	if (!begin(&setting, "disk"))
		return;
	if (!CHECK(!mkdir(mountpoint.s, 0755)) ||
	    mount("whylate-live", mountpoint.s, "tmpfs", 0, "size=256k,mode=0755,uid=65534,gid=65534")) {
		skip("spool_disk_full", "no tmpfs: %s", strerror(errno));
		end(&setting);
		return;
	}
	setting.spool = mountpoint;
	process_signal(&setting.collector.process, SIGKILL);
	process_wait(&setting.collector.process, 5);
	if (!record(&setting, "disk", "-d 120s --baseline 100000 --budget 100%") || !load(&setting, 200000) ||
	    !CHECKF(process_says(&setting.recording.process, true, " is full: ", "cannot write to the spool", 20), "%s",
		    said(&setting)) ||
	    !stream_collector_again(&setting.collector) || !store_grows(&setting.collector, 0, 40))
		goto cleanup;
	CHECKF(recording_stop(&setting.recording) == 3, "%s", said(&setting));
	check_balance(setting.collector.store.s, true);
cleanup:
	end(&setting);
	CHECK(!umount(mountpoint.s));
}

/* --- what people get wrong ---------------------------------------------------------------------------------------- */

static void test_bad_input(void)
{
	static const struct {
		const char *options, *says;
		int code;
	} bad[] = {
		{"--stream collector:7700", "https://HOST:PORT", 2},
		{"--stream ftp://collector", "only https", 2},
		{"--stream http://10.0.0.1:7700", "--stream-insecure", 2},
		{"--stream https://me:secret@collector", "no place in it", 2},
		{"--stream-token /etc/passwd", "--stream URL", 2},
		{"--stream https://localhost:1 --stream-key /etc/passwd", "--stream-cert", 2},
		{"--stream https://localhost:1 --spool-max 1K", "at least 1M", 2},
		{"--stream https://localhost:1 --host a/b", "--host", 2},
		{"--label zone", "zone=eu-1", 2},
		{"--label Zone=a", "zone=eu-1", 2},
		{"--label zone=", "zone=eu-1", 2},
		{"--stream https://localhost:1 --stream-token /nowhere/token", "/nowhere/token", 1},
		{"--stream https://localhost:1 --stream-token /etc/passwd", "everybody may read it", 1},
		{"--stream https://localhost:1 --stream-token /etc/shadow", "holds no token", 1},
		{"--stream https://localhost:1 --stream-ca /nowhere/ca", "/nowhere/ca", 1},
		{"--stream https://localhost:1 --spool /dev/null/spool", "/dev/null/spool", 1},
		{"--limits /nowhere/limits", "/nowhere/limits", 1},
	};
	struct process process;
	struct redis redis;
	struct stat st;

	if (!redis_start(&redis, ANY_CPU))
		goto cleanup;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int code = whylate(&process, 20, "record -p %d -d 1s %s", redis.process.pid, bad[i].options);

		CHECKF(code == bad[i].code, "%s: exit code %d", bad[i].options, code);
		said_one_line(&process, bad[i].says, NULL);
		process_end(&process);
	}
	/* A directory that root has filled is refused, an empty one gets an owner. */
	CHECK(!mkdir(temp_path("roots-spool").s, 0700) && !file_write(temp_path("roots-spool/x").s, "x", 1));
	CHECK(whylate(&process, 20, "record -p %d -d 1s --stream https://localhost:1 --spool %s", redis.process.pid,
		      temp_path("roots-spool").s) == 1);
	said_one_line(&process, "must not run as root", NULL);
	process_end(&process);
	CHECK(!unlink(temp_path("roots-spool/x").s));
	CHECK(whylate(&process, 20, "record -p %d -d 1s --stream https://localhost:1 --stream-linger 1s --spool %s",
		      redis.process.pid, temp_path("roots-spool").s) == 0);
	process_end(&process);
	CHECK(!stat(temp_path("roots-spool").s, &st) && st.st_uid);
	/* With a directory as well, a spool that cannot be is no reason not to record. */
	CHECK(whylate(&process, 20, "record -p %d -d 1s --stream https://localhost:1 --spool /dev/null/spool -o %s",
		      redis.process.pid, temp_path("no-spool").s) == 0);
	CHECKF(strstr(process_err(&process), "goes on in") != NULL, "%s", process_err(&process));
	process_end(&process);
cleanup:
	redis_end(&redis);
}

/* Nobody there, nobody we know, nobody who knows us: each is one line, and the recording goes on. */
static void test_refused(void)
{
	struct setting setting;
	struct certs *certs = &setting.certs;
	struct process process;
	char others[2200];

	if (!begin(&setting, "refused"))
		goto cleanup;
	snprintf(others, sizeof(others), "--stream-cert %s/other.crt --stream-key %s/other.key --stream-ca %s/ca.crt",
		 certs->dir.s, certs->dir.s, certs->dir.s);
	const struct {
		const char *address, *options, *says;
	} cases[] = {
		{"127.0.0.1:1", certs->client, "127.0.0.1"},
		{"nowhere.invalid:7700", certs->client, "nowhere.invalid"},
		{setting.collector.address, "", "certificate"},
		{setting.collector.address, others, "waits in the spool"},
		{setting.collector.address, NULL, "403"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char options[4096];
		const char *warning;
		int code;

		/* The certificate is web-1's. */
		snprintf(options, sizeof(options), "%s%s", cases[i].options ? cases[i].options : certs->client,
			 cases[i].options ? "" : " --host somebody-else");
		code = whylate(&process, 40,
			       "record -p %d -d 2s -o %s --stream https://%s --spool %s-%zu --stream-linger 1s %s",
			       setting.redis.process.pid, temp_path("refused-%zu", i).s, cases[i].address,
			       setting.spool.s, i, options);
		CHECKF(code == 0, "%s", process_err(&process));
		warning = strstr(process_err(&process), "warning: ");
		CHECKF(warning && strstr(warning, cases[i].says), "%zu: %s", i, process_err(&process));
		CHECKF(strstr(process_err(&process), "are not sent: they wait in") != NULL, "%s",
		       process_err(&process));
		process_end(&process);
	}
cleanup:
	end(&setting);
}

/* SIGHUP: what the file says holds from then on; a file that makes no sense changes nothing. */
static void test_limits(void)
{
	static const char first[] = "# limits\nrate 50%\nbaseline = 100\n", second[] = "rate 10%\ntail none\n",
			  wrong[] = "rate 20%\ncolour blue\n";
	struct path file = temp_path("limits");
	struct recording recording = {0};
	struct session session;
	struct redis redis = {0};

	if (!CHECK(!file_write(file.s, first, strlen(first))) || !redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "limits-recorded", redis.process.pid, "-d 60s --limits %s", file.s))
		goto cleanup;
	file_write(file.s, wrong, strlen(wrong));
	process_signal(&recording.process, SIGHUP);
	CHECKF(process_says(&recording.process, true, "stay as they were", NULL, 10), "%s",
	       process_err(&recording.process));
	CHECKF(strstr(process_err(&recording.process), ":2: 'colour'") != NULL, "%s", process_err(&recording.process));
	file_write(file.s, second, strlen(second));
	process_signal(&recording.process, SIGHUP);
	CHECKF(process_says(&recording.process, true, "rate 10 %, tail 0, baseline 100/s", NULL, 10), "%s",
	       process_err(&recording.process));
	CHECK(recording_stop(&recording) == 0);
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		CHECKF(!strcmp(session_key(&session, "rate"), "0.1"), "%s", session_key(&session, "rate"));
		CHECKF(!strcmp(session_key(&session, "tail"), "0"), "%s", session_key(&session, "tail"));
	}
cleanup:
	recording_end(&recording);
	redis_end(&redis);
}

static const struct live_test tests[] = {
	{"stream_bad_input", test_bad_input, SHORT},
	{"stream_limits", test_limits, SHORT},
	{"streams", test_streams, SHORT},
	{"stream_refused", test_refused, REST},
	{"stream_collector_killed", test_collector_killed, REST},
	{"stream_agent_killed", test_agent_killed, REST},
	{"stream_agent_killed_sending", test_agent_killed_sending, REST},
	{"stream_uploader_killed", test_uploader_killed, SHORT},
	{"stream_apart", test_apart, SHORT},
	{"stream_network_cut", test_network_cut, REST},
	{"stream_spool_full", test_spool_full, REST},
	{"stream_spool_disk_full", test_spool_disk_full, REST},
};

int suite_stream(void)
{
	return live_suite("stream", tests, sizeof(tests) / sizeof(tests[0]));
}
