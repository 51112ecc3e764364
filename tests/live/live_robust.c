// SPDX-License-Identifier: GPL-2.0-or-later
/* What can go wrong while recording: exits, kills, full disks, tiny rings, two recordings at once. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDS_MAX 1024

static void test_exits_before(void)
{
	struct path dir = temp_path("exits-before");
	struct process target, process;
	char pid_text[16];

	/* Ended and not yet reaped, by a parent that does not: then gone altogether. */
	if (process_start(&target, "sleep 0"))
		return;
	sleep_ms(200);
	snprintf(pid_text, sizeof(pid_text), "%d", target.pid);
	CHECK(whylate(&process, 20, "record -p %d -d 1s -o %s", target.pid, dir.s) == 1);
	said_one_line(&process, pid_text, "exited");
	process_end(&process);
	CHECK(process_wait(&target, 5) == 0);
	CHECK(whylate(&process, 20, "record -p %s -d 1s -o %s", pid_text, dir.s) == 1);
	said_one_line(&process, pid_text, "no process");
	process_end(&process);
	process_end(&target);
	CHECK(!is_there(dir.s));
}

static void test_exits_during(void)
{
	struct client client = {
		.question = "PING\r\n", .answer_end = "+PONG\r\n", .connection_cnt = 2, .requests_each = 500};
	struct recording recording = {0};
	struct session session;
	struct redis redis;
	json_object *report;

	if (!redis_start(&redis, ANY_CPU) || !client_open(&client, redis.port) ||
	    !recording_start(&recording, "exits-during", redis.process.pid, "-d 30s") || !client_run(&client))
		goto cleanup;
	process_signal(&redis.process, SIGKILL);
	process_wait(&redis.process, 5);
	CHECK(process_wait(&recording.process, 10) == 0);
	CHECKF(strstr(process_err(&recording.process), "target exited") != NULL, "%s", process_err(&recording.process));
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		session_check(&session);
		CHECKF(session.row_cnt == client.answer_cnt, "%lu rows", session.row_cnt);
	}
	report = report_read(recording.dir.s, NULL);
	CHECKF(strstr(json_object_to_json_string(json_at(report, "notes")), "exited") != NULL, "no note");
	json_object_put(report);
cleanup:
	client_close(&client);
	recording_end(&recording);
	redis_end(&redis);
}

/* The BPF objects that a process holds: they tell apart ours and those of others on this machine. */
struct bpf_ids {
	uint32_t progs[IDS_MAX], links[IDS_MAX];
	size_t prog_cnt, link_cnt;
};

static void bpf_ids_of(struct bpf_ids *ids, pid_t pid)
{
	char path[300], line[128];
	struct dirent *entry;
	unsigned int id;
	DIR *dir;

	memset(ids, 0, sizeof(*ids));
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "prog_id: %u", &id) == 1 && ids->prog_cnt < IDS_MAX)
				ids->progs[ids->prog_cnt++] = id;
			if (sscanf(line, "link_id: %u", &id) == 1 && ids->link_cnt < IDS_MAX)
				ids->links[ids->link_cnt++] = id;
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
}

static size_t bpf_ids_alive(const uint32_t *ids, size_t cnt, int by_id_command)
{
	size_t alive_cnt = 0;

	for (size_t i = 0; i < cnt; i++) {
		union bpf_attr attr = {.prog_id = ids[i]};
		int fd = (int)syscall(SYS_bpf, by_id_command, &attr, sizeof(attr));

		if (fd >= 0)
			close(fd);
		alive_cnt += fd >= 0 || errno != ENOENT;
	}
	return alive_cnt;
}

static void check_nothing_left(const struct bpf_ids *ids)
{
	size_t prog_cnt = 1, link_cnt = 1;

	CHECKF(ids->prog_cnt > 5 && ids->link_cnt > 5, "%zu programs and %zu links", ids->prog_cnt, ids->link_cnt);
	/* The kernel frees them behind an RCU grace period or two. */
	for (int i = 0; i < 300 && prog_cnt + link_cnt; i++) {
		prog_cnt = bpf_ids_alive(ids->progs, ids->prog_cnt, BPF_PROG_GET_FD_BY_ID);
		link_cnt = bpf_ids_alive(ids->links, ids->link_cnt, BPF_LINK_GET_FD_BY_ID);
		if (prog_cnt + link_cnt)
			sleep_ms(10);
	}
	CHECKF(!prog_cnt && !link_cnt, "%zu programs and %zu links are left", prog_cnt, link_cnt);
}

static void test_agent_killed(void)
{
	struct client client = {.question = "PING\r\n",
				.answer_end = "+PONG\r\n",
				.connection_cnt = 4,
				.requests_each = 1500,
				.pause_us = 1000};
	struct recording recording = {0};
	struct session session;
	struct bpf_ids ids;
	struct redis redis;
	json_object *report;

	if (!redis_start(&redis, ANY_CPU) || !client_open(&client, redis.port) ||
	    !recording_start(&recording, "killed", redis.process.pid, "--tail none --budget 100%% --ring-size 32M") ||
	    !client_run(&client))
		goto cleanup;
	bpf_ids_of(&ids, recording.process.pid);
	process_signal(&recording.process, SIGKILL);
	CHECK(process_wait(&recording.process, 5) == 128 + SIGKILL);
	CHECK(redis_answers(&redis));
	check_nothing_left(&ids);
	CHECK(client_run(&client));
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		CHECK(!session.uneven_cnt);
		/* It writes every second, and the load lasted one and a half at least. */
		CHECKF(session.row_cnt > 0, "of %lu requests", client.answer_cnt);
	}
	report = report_read(recording.dir.s, NULL);
	CHECK(json_number(report, "session.intervals_kept") > 0);
	json_object_put(report);
cleanup:
	client_close(&client);
	recording_end(&recording);
	redis_end(&redis);
}

static void test_interrupted(void)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct recording recording;
	struct session session;
	struct bpf_ids ids;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU))
		goto cleanup;
	for (size_t i = 0; i < 2; i++) {
		char name[32];

		snprintf(name, sizeof(name), "interrupted-%d", signals[i]);
		if (!recording_start(&recording, name, redis.process.pid, "-d 60s"))
			goto cleanup;
		CHECK(redis_answers(&redis));
		bpf_ids_of(&ids, recording.process.pid);
		process_signal(&recording.process, signals[i]);
		CHECK(process_wait(&recording.process, 10) == 0);
		CHECK(strstr(process_err(&recording.process), "1 intervals seen") != NULL);
		CHECK(strstr(process_err(&recording.process), "loss: none") != NULL);
		CHECK(strstr(process_err(&recording.process), "cost: ") != NULL);
		check_nothing_left(&ids);
		if (session_read(&session, recording.dir.s, NULL, NULL))
			session_check(&session);
		recording_end(&recording);
	}
cleanup:
	redis_end(&redis);
}

/* As a daemon may start it: no file that is opened becomes the standard error, to which messages go. */
static void test_closed_descriptors(void)
{
	static const char script[] = "exec \"$@\" <&- >&- 2>&-\n";
	struct path shell = temp_path("closed.sh"), dir = temp_path("closed-descriptors");
	struct process process = {0};
	struct session session;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) || !CHECK(!file_write(shell.s, script, sizeof(script) - 1)) ||
	    process_start(&process, "sh %s %s record -p %d -d 1s -o %s", shell.s, whylate_path(), redis.process.pid,
			  dir.s))
		goto cleanup;
	CHECK(process_wait(&process, 20) == 0);
	if (session_read(&session, dir.s, NULL, NULL))
		session_check(&session);
cleanup:
	process_end(&process);
	redis_end(&redis);
}

static void test_two_at_once(void)
{
	struct recording one = {0}, two = {0};
	struct process load = {0};
	struct session sessions[2];
	struct redis redis;
	double seen[2];

	if (!redis_start(&redis, ANY_CPU) || !recording_start(&one, "one", redis.process.pid, "-d 60s --duty 100%%") ||
	    !recording_start(&two, "two", redis.process.pid, "-d 60s --rate 10%% --duty 100%%") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 50000, 10) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECK(recording_stop(&one) == 0);
	CHECK(recording_stop(&two) == 0);
	if (session_read(&sessions[0], one.dir.s, NULL, NULL) && session_read(&sessions[1], two.dir.s, NULL, NULL)) {
		session_check(&sessions[0]);
		session_check(&sessions[1]);
		seen[0] = (double)session_number(&sessions[0], "intervals_seen");
		seen[1] = (double)session_number(&sessions[1], "intervals_seen");
		CHECKF(fabs(seen[0] - seen[1]) <= 0.01 * seen[0], "%.0f and %.0f", seen[0], seen[1]);
		CHECKF(fabs(seen[0] - 50000) <= 0.01 * 50000, "%.0f", seen[0]);
	}
cleanup:
	process_end(&load);
	recording_end(&one);
	recording_end(&two);
	redis_end(&redis);
}

/* What was written until the disk is full stays readable, and the target does not notice. */
static void test_full_disk(void)
{
	struct path mountpoint = temp_path("small"), dir = temp_path("small/recording");
	struct recording recording = {0};
	struct process load = {0};
	struct session session;
	struct redis redis = {0};
	json_object *report;

	if (!CHECK(!mkdir(mountpoint.s, 0755)))
		return;
	if (mount("whylate-live", mountpoint.s, "tmpfs", 0, "size=256k,mode=0755")) {
		skip("full_disk", "no tmpfs: %s", strerror(errno));
		return;
	}
	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "small/recording", redis.process.pid,
			     "--tail none --budget 100%% --ring-size 32M") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 200000, 10))
		goto cleanup;
	CHECK(process_wait(&recording.process, 60) == 1);
	CHECKF(strstr(process_err(&recording.process), dir.s) && strstr(process_err(&recording.process), "No space"),
	       "%s", process_err(&recording.process));
	CHECK(process_wait(&load, 60) == 0);
	CHECK(redis_answers(&redis));
	if (session_read(&session, dir.s, NULL, NULL)) {
		CHECKF(session.row_cnt > 0, "%lu rows", session.row_cnt);
		CHECK(!session.uneven_cnt);
	}
	report = report_read(dir.s, NULL);
	CHECK(json_number(report, "session.intervals_kept") == (double)session.row_cnt);
	json_object_put(report);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
	CHECK(!umount(mountpoint.s));
}

/* Nothing is lost silently: a ring of a page loses much, and every bit of it is counted. */
static void test_tiny_ring(void)
{
	struct recording recording = {0};
	struct process load = {0}, process;
	struct session session;
	struct redis redis;
	json_object *report;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "tiny-ring", redis.process.pid,
			     "--ring-size 4096 --tail none --budget 100%%") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 400000, 20) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 3, "%s", process_err(&recording.process));
	CHECK(strstr(process_err(&recording.process), "loss: none") == NULL);
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	CHECK(session.lost[WL_LOSS_INTERVAL] > 0);
	CHECKF(session.emitted[WL_LOSS_INTERVAL] ==
		       session_number(&session, "intervals_selected") - session_number(&session, "intervals_abandoned"),
	       "emitted %lu, selected %s, abandoned %s", session.emitted[WL_LOSS_INTERVAL],
	       session_key(&session, "intervals_selected"), session_key(&session, "intervals_abandoned"));
	/* Of what survived, whatever was open when the ring was emptied had losses beside it. */
	CHECKF(session.lossy_cnt > 0, "of %lu rows", session.row_cnt);
	printf("(%lu of %lu rows flagged) ", session.lossy_cnt, session.row_cnt);
	report = report_read(recording.dir.s, NULL);
	CHECK(json_number(report, "loss.by_class.interval") == (double)session.lost[WL_LOSS_INTERVAL]);
	CHECK(json_number(report, "session.records_lost") >= (double)session.lost[WL_LOSS_INTERVAL]);
	CHECKF(json_number(report, "loss.intervals_flagged") == (double)session.flagged_cnt,
	       "%f of %lu, %lu of them torn", json_number(report, "loss.intervals_flagged"), session.flagged_cnt,
	       session.torn_cnt);
	CHECKF(fabs(json_number(report, "session.intervals_seen") - 400000) <= 4000, "%f seen",
	       json_number(report, "session.intervals_seen"));
	json_object_put(report);
	CHECK(whylate_as(&process, "nobody", 20, "report %s", recording.dir.s) == 3);
	CHECKF(strstr(process_out(&process), "lost") != NULL, "%s", process_out(&process));
	process_end(&process);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

static const struct live_test tests[] = {
	{"exits_before", test_exits_before, REST},
	{"exits_during", test_exits_during, SHORT},
	{"agent_killed", test_agent_killed, SHORT},
	{"interrupted", test_interrupted, SHORT},
	{"closed_descriptors", test_closed_descriptors, REST},
	{"two_at_once", test_two_at_once, REST},
	{"full_disk", test_full_disk, REST},
	{"tiny_ring", test_tiny_ring, REST},
};

int suite_robust(void)
{
	return live_suite("robust", tests, sizeof(tests) / sizeof(tests[0]));
}
