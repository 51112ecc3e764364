// SPDX-License-Identifier: GPL-2.0-or-later
/* A cgroup with too little CPU time: made for one deed, left and removed after it. */
#include "base/clock.h"
#include "selftest/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUOTA_US  10000
#define PERIOD_US 50000
#define SPIN_NS   25000000ULL

static int write_file(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX];
	int fd, err;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static size_t read_file(const char *dir, const char *file, char *text, size_t sz)
{
	char path[PATH_MAX];
	ssize_t got = -1;
	int fd;

	*text = '\0';
	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		got = read(fd, text, sz - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? got : 0;
}

/* Where cgroups with a CPU limit are made: version 2 if the controller is enabled there, else version 1. */
static const char *find_root(bool *is_v2)
{
	static const char *const roots_v1[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
	char text[256];

	*is_v2 = read_file("/sys/fs/cgroup", "cgroup.subtree_control", text, sizeof(text)) > 0;
	for (char *save = NULL, *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
		if (!strcmp(word, "cpu"))
			return "/sys/fs/cgroup";
	*is_v2 = false;
	for (size_t i = 0; i < sizeof(roots_v1) / sizeof(roots_v1[0]); i++)
		if (read_file(roots_v1[i], "cpu.cfs_quota_us", text, sizeof(text)))
			return roots_v1[i];
	return NULL;
}

/* Where this process is now, to return there. */
static int find_home(const char *root, bool is_v2, char *home, size_t sz)
{
	char text[8192];

	read_file("/proc/self", "cgroup", text, sizeof(text));
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (is_v2 ? *controllers : strcmp(controllers, "cpu") && strcmp(controllers, "cpu,cpuacct"))
			continue;
		return snprintf(home, sz, "%s%s", root, path) < (int)sz ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}

static int enter(struct scene *scene, const char *root)
{
	struct throttle *throttle = &scene->throttle;
	char text[64];
	int err;

	snprintf(throttle->dir, sizeof(throttle->dir), "%s/whylate-selftest-%d", root, (int)getpid());
	if (mkdir(throttle->dir, 0755)) {
		err = -errno;
		throttle->dir[0] = '\0';
		return err;
	}
	snprintf(text, sizeof(text), "%d %d", QUOTA_US, PERIOD_US);
	if (throttle->is_v2) {
		err = write_file(throttle->dir, "cpu.max", text);
	} else {
		snprintf(text, sizeof(text), "%d", PERIOD_US);
		err = write_file(throttle->dir, "cpu.cfs_period_us", text);
		snprintf(text, sizeof(text), "%d", QUOTA_US);
		err = err ? err : write_file(throttle->dir, "cpu.cfs_quota_us", text);
	}
	return err ? err : write_file(throttle->dir, "cgroup.procs", "0");
}

void throttle_set_up(struct scene *scene, struct deed_report *report)
{
	struct throttle *throttle = &scene->throttle;
	const char *root = find_root(&throttle->is_v2);
	int err = root ? find_home(root, throttle->is_v2, throttle->home, sizeof(throttle->home)) : -ENOENT;

	if (!err)
		err = enter(scene, root);
	if (!err)
		return;
	throttle_tidy(scene);
	snprintf(report->why, sizeof(report->why), "no cgroup with a CPU limit can be made here: %s", strerror(-err));
}

/* Uses up more CPU time than it has. */
void throttle_do(struct scene *scene)
{
	uint64_t limit_ts = monotonic_ns() + 5000000000ULL, begin_ns = 0, cpu_ns = 0;

	(void)scene;
	while (cpu_ns - begin_ns < SPIN_NS && monotonic_ns() < limit_ts) {
		cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		begin_ns = begin_ns ? begin_ns : cpu_ns;
	}
}

void throttle_tidy(struct scene *scene)
{
	struct throttle *throttle = &scene->throttle;

	if (!throttle->dir[0])
		return;
	write_file(throttle->home, "cgroup.procs", "0");
	/* What left may take a moment to be gone. */
	for (int i = 0; i < 100 && rmdir(throttle->dir) && errno == EBUSY; i++)
		usleep(1000);
	throttle->dir[0] = '\0';
}

uint64_t count_throttled_ns(struct scene *scene)
{
	const struct throttle *throttle = &scene->throttle;
	const char *key = throttle->is_v2 ? "throttled_usec " : "throttled_time ";
	char text[1024], *found;

	read_file(throttle->dir, "cpu.stat", text, sizeof(text));
	found = strstr(text, key);
	return found ? strtoull(found + strlen(key), NULL, 10) * (throttle->is_v2 ? 1000 : 1) : 0;
}
