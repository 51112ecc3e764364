/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup throttling: the server has a cgroup with 8 ms of CPU time in 40 ms, of which its requests need a small part;
 * three times a second its background thread `batch` uses up the rest.  Planted: what the cgroup's cpu.stat says it was
 * throttled since the thread's previous request, as far as the request did not run meanwhile.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD_US 40000
#define QUOTA_US  8000
#define WORK_NS   (100 * NS_PER_US)
#define BATCH_NS  (12 * NS_PER_MS)

/* Found in prepare(), before the fork. */
static char cgroup_dir[96];
static int is_v2;

struct own {
	int stat_fd;
	uint64_t throttled_ns;
};

static int cgroup_write(const char *file, const char *fmt, long value, long other)
{
	char path[160], text[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", cgroup_dir, file);
	snprintf(text, sizeof(text), fmt, value, other);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* What a killed run has left behind; a cgroup in use cannot be removed. */
static void cgroups_remove_stale(const char *root)
{
	char pattern[96];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/whylate-throttle-*", root);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		rmdir(found.gl_pathv[i]);
	globfree(&found);
}

static int cgroup_create(const char *root)
{
	int err;

	cgroups_remove_stale(root);
	snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/whylate-throttle-%d", root, (int)getpid());
	if (mkdir(cgroup_dir, 0755)) {
		err = -errno;
		cgroup_dir[0] = '\0';
		return err;
	}
	if (is_v2) {
		cgroup_write("cpu.weight", "%ld", 10000, 0);
		return cgroup_write("cpu.max", "%ld %ld", QUOTA_US, PERIOD_US);
	}
	cgroup_write("cpu.shares", "%ld", 262144, 0);
	err = cgroup_write("cpu.cfs_period_us", "%ld", PERIOD_US, 0);
	return err ? err : cgroup_write("cpu.cfs_quota_us", "%ld", QUOTA_US, 0);
}

static void cleanup(struct run *run)
{
	(void)run;
	/* The last member may take a moment to leave. */
	for (int i = 0; i < 100 && cgroup_dir[0] && rmdir(cgroup_dir) && errno == EBUSY; i++)
		sleep_for_ns(10 * NS_PER_MS);
}

static int prepare(struct run *run)
{
	static const char *const roots_v1[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
	int err = -ENOENT;

	for (size_t i = 0; i < 2; i++) {
		char quota_path[96];

		snprintf(quota_path, sizeof(quota_path), "%s/cpu.cfs_quota_us", roots_v1[i]);
		if (!access(quota_path, F_OK))
			err = cgroup_create(roots_v1[i]);
		if (!err)
			return 0;
	}
	if (!access("/sys/fs/cgroup/cgroup.subtree_control", F_OK)) {
		is_v2 = 1;
		snprintf(cgroup_dir, sizeof(cgroup_dir), "/sys/fs/cgroup");
		cgroup_write("cgroup.subtree_control", "+cpu", 0, 0);
		err = cgroup_create("/sys/fs/cgroup");
	}
	return err ? run_skip(run, "no cgroup with a CPU bandwidth limit: %s", strerror(-err)) : 0;
}

static void *batch_body(void *arg)
{
	struct run *run = arg;
	struct sched_param param = {0};
	uint64_t random_state = clock_now_ns();

	thread_name("batch");
	thread_pin(CPU_SERVER);
	/* The requests never wait for it, only for what it has used up. */
	sched_setscheduler(0, SCHED_IDLE, &param);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 200 * NS_PER_MS, 400 * NS_PER_MS));
		spin_work(BATCH_NS);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;
	int err = cgroup_write("cgroup.procs", "%ld", getpid(), 0);

	return err ? err : thread_start_named(&thread, batch_body, run);
}

static uint64_t throttled_read_ns(int fd)
{
	char text[512], *found;
	ssize_t text_sz = pread(fd, text, sizeof(text) - 1, 0);

	if (text_sz <= 0)
		return 0;
	text[text_sz] = '\0';
	found = strstr(text, is_v2 ? "throttled_usec " : "throttled_time ");
	return found ? strtoull(found + 15, NULL, 10) * (is_v2 ? NS_PER_US : 1) : 0;
}

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];
	char path[160];

	worker->own = own;
	snprintf(path, sizeof(path), "%s/cpu.stat", cgroup_dir);
	own->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	return own->stat_fd < 0 ? -errno : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct own *own = worker->own;
	uint64_t before_ns = own->throttled_ns, throttled_ns, waited_ns;

	spin_work(WORK_NS);
	own->throttled_ns = throttled_read_ns(own->stat_fd);
	throttled_ns = own->throttled_ns - before_ns;
	waited_ns = clock_now_ns() - request->sent_ts;
	waited_ns = waited_ns > WORK_NS ? waited_ns - WORK_NS : 0;
	return throttled_ns < waited_ns ? throttled_ns : waited_ns;
}

static const struct workload workload = {
	.name = "throttle",
	.category = "throttled",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 8,
	.plain_scheduling = 1,
	.prepare = prepare,
	.cleanup = cleanup,
	.server_start = server_start,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
