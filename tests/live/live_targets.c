// SPDX-License-Identifier: GPL-2.0-or-later
/* Targets by name: every request of theirs is recorded, and none of others. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUESTS 2000
/* redis-benchmark asks for some settings first. */
#define MORE_MAX 20

#define EVERY_ONE "--rate 100% --duty 100% --budget 100% --tail none"

struct tally {
	char type[2][32];
	unsigned int cnt[2], other_cnt;
};

/* "tcp:6379 GET" is of tcp:6379. */
static bool is_of(const char *type, const char *listener)
{
	size_t len = strlen(listener);

	return type && len && !strncmp(type, listener, len) && (!type[len] || type[len] == ' ');
}

static void take(void *owner, const struct interval *interval)
{
	struct tally *tally = owner;

	for (int i = 0; i < 2; i++) {
		if (is_of(interval->type, tally->type[i])) {
			tally->cnt[i]++;
			return;
		}
	}
	tally->other_cnt++;
}

static bool is_about(unsigned int cnt, unsigned int loads)
{
	return cnt >= loads * REQUESTS && cnt <= loads * (REQUESTS + MORE_MAX);
}

/* Ends the recording: so many loads of each were recorded, and nothing else. */
static void expect_loads(struct recording *recording, int port, unsigned int loads, int other_port,
			 unsigned int other_loads)
{
	struct tally tally = {0};
	struct session session;

	CHECK(recording_stop(recording) == 0);
	snprintf(tally.type[0], sizeof(tally.type[0]), "tcp:%d", port);
	snprintf(tally.type[1], sizeof(tally.type[1]), "tcp:%d", other_port);
	if (!session_read(&session, recording->dir.s, take, &tally))
		return;
	session_check(&session);
	CHECKF(is_about(tally.cnt[0], loads), "%u requests of the first, of %u", tally.cnt[0], loads * REQUESTS);
	CHECKF(is_about(tally.cnt[1], other_loads), "%u requests of the second, of %u", tally.cnt[1],
	       other_loads * REQUESTS);
	CHECKF(!tally.other_cnt, "%u others", tally.other_cnt);
}

static bool load_both(const struct redis *one, const struct redis *two)
{
	const struct redis *servers[] = {one, two};
	bool good = true;

	for (int i = 0; good && i < 2; i++) {
		struct process load = {0};

		good = redis_load_start(&load, servers[i], ANY_CPU, REQUESTS, 5) && CHECK(!process_wait(&load, 20));
		process_end(&load);
	}
	return good;
}

static void test_several_pids(void)
{
	struct recording recording = {0};
	struct redis one = {0}, two = {0};
	char target[64];

	if (!redis_start(&one, ANY_CPU) || !redis_start(&two, ANY_CPU))
		goto cleanup;
	snprintf(target, sizeof(target), "-p %d,%d", one.process.pid, two.process.pid);
	if (recording_start_by(&recording, "several", target, EVERY_ONE) && load_both(&one, &two))
		expect_loads(&recording, one.port, 1, two.port, 1);
cleanup:
	recording_end(&recording);
	redis_end(&one);
	redis_end(&two);
}

static void test_port_elsewhere(void)
{
	struct recording recording = {0};
	struct process server, load = {0};
	int port = port_free();
	char script[256], target[64];
	const char *const argv[] = {"unshare", "-n", "sh", "-c", script, NULL};

	snprintf(script, sizeof(script), "ip link set lo up && exec redis-server --port %d --save ''", port);
	snprintf(target, sizeof(target), "--port %d", port);
	if (program_missing("port_elsewhere", "redis-server") || program_missing("port_elsewhere", "unshare") ||
	    process_launch_argv(&server, NULL, argv))
		return;
	if (process_says(&server, false, "Ready to accept", NULL, 10) &&
	    recording_start_by(&recording, "elsewhere", target, EVERY_ONE) &&
	    !process_start(&load, "nsenter -t %d -n redis-benchmark -p %d -t get -n %u -c 5 --csv", server.pid, port,
			   REQUESTS)) {
		CHECK(!process_wait(&load, 20));
		expect_loads(&recording, port, 1, 0, 0);
	}
	process_end(&load);
	recording_end(&recording);
	process_end(&server);
}

#define VERSION2       {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}
#define CONTAINER      "5e0c61f2a87d4b9390d6aa11c2b7f48e03d5967c1f8be24a6d7305b9ce48f1a2"
#define CONTAINER_PART "5e0c61f2a87d"
#define POD            "8d1c2f9e-5b47-4d3a-9c60-e17a4fb20d35"
#define POD_IN_PATH    "8d1c2f9e_5b47_4d3a_9c60_e17a4fb20d35"

/* As they are mounted, where they are: the first directory of each. */
static const struct hierarchy {
	const char *test, *roots[3];
	const char *name;   /* of the control group; NULL: one of this run's own */
	const char *target; /* NULL: --cgroup and its path */
} version2 = {"target_cgroup", VERSION2, NULL, NULL},
  version1 = {"target_cgroup_v1", {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu"}, NULL, NULL},
  of_systemd = {"target_unit", {"/sys/fs/cgroup/systemd"}, "whylate-test-unit.service", "--unit whylate-test-unit"},
  unit_v2 = {"target_unit_v2", VERSION2, "whylate-test-unit2.service", "--unit whylate-test-unit2"},
  container = {"target_container", VERSION2, "docker-" CONTAINER ".scope", "--container " CONTAINER_PART},
  pod = {"target_pod", VERSION2, "kubepods-burstable-pod" POD_IN_PATH ".slice", "--pod " POD};

/* A control group there; false: none can be made, and the test is skipped. */
static bool cgroup_make(const struct hierarchy *hierarchy, char *dir, size_t sz)
{
	char procs[512];
	struct stat top, root;

	for (size_t i = 0; i < 3 && hierarchy->roots[i]; i++) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", hierarchy->roots[i]);
		if (hierarchy->name)
			snprintf(dir, sz, "%s/%s", hierarchy->roots[i], hierarchy->name);
		else
			snprintf(dir, sz, "%s/whylate-test-%d", hierarchy->roots[i], getpid());
		/* Part of another one where nothing is mounted. */
		if (stat("/sys/fs/cgroup", &top) || stat(hierarchy->roots[i], &root) ||
		    (strcmp(hierarchy->roots[i], "/sys/fs/cgroup") && top.st_dev == root.st_dev))
			continue;
		/* What a run that was killed has left. */
		rmdir(dir);
		if (is_there(procs) && !mkdir(dir, 0755))
			return true;
	}
	*dir = '\0';
	skip(hierarchy->test, "no control group can be made in a hierarchy of that kind: %s", strerror(errno));
	return false;
}

static void cgroup_join(const char *dir, const char *below, pid_t pid)
{
	char path[512], text[16];

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", dir, below);
	snprintf(text, sizeof(text), "%d", pid);
	CHECKF(!file_write(path, text, strlen(text)), "%s: %s", path, strerror(errno));
	/* The agent looks every tenth of a second where those that have joined listen. */
	sleep_ms(500);
}

/* Who joins is recorded, who leaves no longer. */
static void follow_cgroup(const struct hierarchy *hierarchy)
{
	struct recording recording = {0};
	struct redis one = {0}, two = {0};
	char dir[256] = "", target[300];

	if (!cgroup_make(hierarchy, dir, sizeof(dir)))
		return;
	if (!redis_start(&one, ANY_CPU) || !redis_start(&two, ANY_CPU))
		goto cleanup;
	cgroup_join(dir, "", one.process.pid);
	if (hierarchy->target)
		snprintf(target, sizeof(target), "%s", hierarchy->target);
	else
		snprintf(target, sizeof(target), "--cgroup %s", dir);
	if (!recording_start_by(&recording, hierarchy->test, target, EVERY_ONE) || !load_both(&one, &two))
		goto cleanup;
	cgroup_join(dir, "", two.process.pid);
	if (!load_both(&one, &two))
		goto cleanup;
	cgroup_join(dir, "/..", one.process.pid);
	if (load_both(&one, &two))
		expect_loads(&recording, one.port, 2, two.port, 2);
cleanup:
	recording_end(&recording);
	redis_end(&one);
	redis_end(&two);
	for (int i = 0; i < 20 && rmdir(dir) && errno == EBUSY; i++)
		sleep_ms(100);
}

static void test_cgroup(void)
{
	follow_cgroup(&version2);
}

static void test_cgroup_v1(void)
{
	follow_cgroup(&version1);
}

/* systemd without version 2 keeps its units there, and in no other hierarchy. */
static void test_unit(void)
{
	follow_cgroup(&of_systemd);
}

static void test_unit_v2(void)
{
	follow_cgroup(&unit_v2);
}

/* As Docker names it under systemd, by the first twelve of its digits. */
static void test_container(void)
{
	follow_cgroup(&container);
}

/* As the kubelet names it under systemd. */
static void test_pod(void)
{
	follow_cgroup(&pod);
}

#define BUNDLE                                                                                                  \
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/"                     \
	"\",\"noNewPrivileges\":true,"                                                                          \
	"\"args\":[\"redis-server\",\"--port\",\"%d\",\"--save\",\"\"],\"env\":[\"PATH=/usr/bin:/bin\"]},"      \
	"\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"mounts\":["                                         \
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"                                    \
	"{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/usr\",\"options\":[\"rbind\",\"ro\"]},"      \
	"{\"destination\":\"/lib\",\"type\":\"bind\",\"source\":\"/lib\",\"options\":[\"rbind\",\"ro\"]},"      \
	"{\"destination\":\"/lib64\",\"type\":\"bind\",\"source\":\"/lib64\",\"options\":[\"rbind\",\"ro\"]}]," \
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]}}"

static bool bundle_make(const char *dir, int port)
{
	static const char *const below[] = {
		"", "/rootfs", "/rootfs/proc", "/rootfs/usr", "/rootfs/lib", "/rootfs/lib64"};
	char path[600], text[2048];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%.500s%s", dir, below[i]);
		if (!CHECKF(!mkdir(path, 0755), "%s: %s", path, strerror(errno)))
			return false;
	}
	snprintf(path, sizeof(path), "%.500s/config.json", dir);
	snprintf(text, sizeof(text), BUNDLE, port);
	return CHECK(!file_write(path, text, strlen(text)));
}

/* In namespaces and control groups that a container runtime made; its symbols are in files of another root. */
static void test_runc(void)
{
	struct path bundle = temp_path("bundle"), state = temp_path("runc");
	struct recording recording = {0};
	struct process server = {0}, load = {0}, removed = {0};
	int port = port_free();

	if (program_missing("target_runc", "runc") || program_missing("target_runc", "redis-server") ||
	    !bundle_make(bundle.s, port) ||
	    process_start(&server, "runc --root %s run --bundle %s " CONTAINER, state.s, bundle.s))
		return;
	if (!process_says(&server, false, "Ready to accept", NULL, 10)) {
		skip("target_runc", "runc cannot run a container here: %.200s", process_err(&server));
	} else if (recording_start_by(&recording, "runc", "--container " CONTAINER_PART, EVERY_ONE) &&
		   !process_start(&load, "redis-benchmark -p %d -t get -n %u -c 5 --csv", port, REQUESTS)) {
		CHECK(!process_wait(&load, 20));
		expect_loads(&recording, port, 1, 0, 0);
	}
	process_end(&load);
	recording_end(&recording);
	if (!process_start(&removed, "runc --root %s delete --force " CONTAINER, state.s))
		process_wait(&removed, 10);
	process_end(&removed);
	process_end(&server);
}

/* Its last process ends and the cgroup is removed: so does the recording, with all that was recorded. */
static void test_cgroup_removed(void)
{
	const struct hierarchy removed = {"target_cgroup_removed", VERSION2, NULL, NULL};
	struct recording recording = {0};
	struct process load = {0};
	struct redis redis = {0};
	char dir[256] = "", target[300];
	int err = -1;

	if (!cgroup_make(&removed, dir, sizeof(dir)) || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	cgroup_join(dir, "", redis.process.pid);
	snprintf(target, sizeof(target), "--cgroup %s", dir);
	if (!recording_start_by(&recording, removed.test, target, EVERY_ONE) ||
	    !redis_load_start(&load, &redis, ANY_CPU, REQUESTS, 5) || !CHECK(!process_wait(&load, 20)))
		goto cleanup;
	process_end(&redis.process);
	for (int i = 0; i < 50 && (err = rmdir(dir)) && errno == EBUSY; i++)
		sleep_ms(20);
	CHECKF(!err, "%s: %s", dir, strerror(errno));
	CHECKF(process_wait(&recording.process, 15) == 0, "%s", process_err(&recording.process));
	expect_loads(&recording, redis.port, 1, 0, 0);
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
	if (*dir)
		rmdir(dir);
}

/* The target ends while the agent attaches: whenever that is, the agent ends as well. */
static void test_ends_while_attached(void)
{
	static const unsigned int after_ms[] = {0, 50, 150, 300, 500, 800, 1200};
	char dir[32];

	for (size_t i = 0; i < sizeof(after_ms) / sizeof(after_ms[0]); i++) {
		struct process target, agent;
		int status;

		snprintf(dir, sizeof(dir), "ends-%u", after_ms[i]);
		if (process_start(&target, "sleep 60"))
			return;
		if (!process_start(&agent, "%s record -p %d --mode trace --stacks -d 3s -o %s", whylate_path(),
				   target.pid, temp_path(dir).s)) {
			sleep_ms(after_ms[i]);
			process_end(&target);
			status = process_wait(&agent, 20);
			CHECKF(status == 0 || status == 1, "after %u ms: %d: %s", after_ms[i], status,
			       process_err(&agent));
			CHECKF(status == 0 || strstr(process_err(&agent), "whylate: "), "after %u ms: no message",
			       after_ms[i]);
			process_end(&agent);
		}
		process_end(&target);
	}
}

/* The first child; 0: it has none. */
static pid_t child_of(pid_t pid)
{
	char path[64], *text;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	text = file_read(path, NULL);
	child = text ? atoi(text) : 0;
	free(text);
	return child;
}

/* In a PID namespace of its own it is number 1, and its neighbour there tells which namespace that is. */
static void test_pidns(void)
{
	struct recording recording = {0};
	struct process server, load = {0};
	int port = port_free();
	char script[256], target[64];
	const char *const argv[] = {"unshare", "-pf", "--kill-child", "sh", "-c", script, NULL};
	pid_t neighbour;

	snprintf(script, sizeof(script), "sleep 60 & exec redis-server --port %d --save ''", port);
	if (program_missing("target_pidns", "redis-server") || program_missing("target_pidns", "unshare") ||
	    process_launch_argv(&server, NULL, argv))
		return;
	if (process_says(&server, false, "Ready to accept", NULL, 10)) {
		neighbour = child_of(child_of(server.pid));
		snprintf(target, sizeof(target), "-p 1 --pidns-of %d", neighbour);
		if (CHECK(neighbour > 0) && recording_start_by(&recording, "pidns", target, EVERY_ONE) &&
		    !process_start(&load, "redis-benchmark -p %d -t get -n %u -c 5 --csv", port, REQUESTS)) {
			CHECK(!process_wait(&load, 20));
			expect_loads(&recording, port, 1, 0, 0);
		}
	}
	process_end(&load);
	recording_end(&recording);
	process_end(&server);
}

static const struct live_test tests[] = {
	{"several_pids", test_several_pids, SHORT},
	{"port_elsewhere", test_port_elsewhere, SHORT},
	{"target_cgroup", test_cgroup, SHORT},
	{"target_cgroup_v1", test_cgroup_v1, SHORT},
	{"target_unit", test_unit, SHORT},
	{"target_pidns", test_pidns, SHORT},
	{"target_unit_v2", test_unit_v2, REST},
	{"target_container", test_container, REST},
	{"target_pod", test_pod, REST},
	{"target_runc", test_runc, REST},
	{"target_cgroup_removed", test_cgroup_removed, REST},
	{"target_ends_while_attached", test_ends_while_attached, REST},
};

int suite_targets(void)
{
	return live_suite("targets", tests, sizeof(tests) / sizeof(tests[0]));
}
