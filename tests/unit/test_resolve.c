// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of targets, resolved in a tree made up in place of /proc and of the cgroups. */
#include "said.h"
#include "target/proc_file.h"
#include "target/resolve.h"
#include "unit.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/whylate-resolve-XXXXXX";

static const char *in_root(const char *fmt, ...)
{
	static char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/", root);
	va_list args;

	va_start(args, fmt);
	vsnprintf(path + len, sizeof(path) - len, fmt, args);
	va_end(args);
	return path;
}

/* With the directories above it. */
static void put(const char *path, const char *text)
{
	char dir[PATH_MAX];
	FILE *file;

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = dir + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(dir, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

struct fake {
	pid_t pid, ppid;
	const char *comm, *exe;
	unsigned int netns;
	unsigned int socket; /* inode, 0: none */
	const char *nspid;   /* after our own, "" */
	unsigned int pidns;
	const char *cgroup;
};

static void put_process(const struct fake *fake)
{
	char text[512], exe[PATH_MAX], link[PATH_MAX];

	snprintf(text, sizeof(text), "%d (%s) S %d 1 1 0 -1 4194304 0 0 0 0 5 5 0 0 20 0 1 0 100 0 0", fake->pid,
		 fake->comm, fake->ppid);
	put(in_root("%d/stat", fake->pid), text);
	snprintf(text, sizeof(text), "Name:\t%s\nTgid:\t%d\nNSpid:\t%d%s\n", fake->comm, fake->pid, fake->pid,
		 fake->nspid);
	put(in_root("%d/status", fake->pid), text);
	put(in_root("%d/task/%d/comm", fake->pid, fake->pid), fake->comm);
	put(in_root("%d/cmdline", fake->pid), fake->exe);
	snprintf(text, sizeof(text), "0::%s\n", fake->cgroup);
	put(in_root("%d/cgroup", fake->pid), text);
	/* The program is an ELF file of 64 bits, which target_check() wants. */
	snprintf(exe, sizeof(exe), "%s", in_root("bin/%s", fake->exe));
	put(exe, "\x7f"
		 "ELF\x02");
	truncate(exe, 64);
	snprintf(link, sizeof(link), "%s", in_root("%d/exe", fake->pid));
	CU_ASSERT_EQUAL(symlink(exe, link), 0);
	put(in_root("%d/ns/.keep", fake->pid), "");
	snprintf(text, sizeof(text), "net:[%u]", fake->netns);
	CU_ASSERT_EQUAL(symlink(text, in_root("%d/ns/net", fake->pid)), 0);
	snprintf(text, sizeof(text), "pid:[%u]", fake->pidns);
	CU_ASSERT_EQUAL(symlink(text, in_root("%d/ns/pid", fake->pid)), 0);
	put(in_root("%d/fd/.keep", fake->pid), "");
	snprintf(text, sizeof(text), "socket:[%u]", fake->socket);
	if (fake->socket)
		CU_ASSERT_EQUAL(symlink(text, in_root("%d/fd/3", fake->pid)), 0);
	put(in_root("%d/net/udp", fake->pid), "");
	/* Port 80 in two namespaces, 6379 and 6380 in one. */
	put(in_root("%d/net/tcp", fake->pid),
	    fake->netns == 1
		    ? "  sl  local_address rem_address   st\n"
		      "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 700 1\n"
		      "   1: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 701 1\n"
		      "   2: 00000000:18EC 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 702 1\n"
		      "   3: 0100007F:1F90 0100007F:1F91 01 00000000:00000000 00:00000000 00000000 0 0 703 1\n"
		    : "   0: 00000000:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 800 1\n"
		      "   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 801 1\n");
}

static const struct fake fakes[] = {
	/* Two that share a port of one namespace by inheritance, one of the other. */
	{4000100, 1, "nginx", "nginx", 1, 700, "", 1, "/system.slice/nginx.service"},
	{4000101, 4000100, "nginx", "nginx", 1, 700, "", 1, "/system.slice/nginx.service"},
	{4000102, 4000100, "nginx", "nginx", 1, 700, "", 1, "/system.slice/nginx.service"},
	{4000200, 1, "redis-server", "redis-server", 1, 701, "", 1, "/"},
	{4000201, 1, "redis-server", "redis-server", 1, 702, "", 1, "/"},
	{4000300, 1, "web", "web", 2, 800, "\t7", 2, "/docker/0123456789abcdef"},
	{4000301, 4000300, "a\033[2Jb", "evil", 2, 0, "\t8", 2, "/docker/0123456789abcdef"},
	/* As deep and of the same number, and in another PID namespace. */
	{4000400, 1, "other", "other", 2, 801, "\t7", 3, "/docker/fedcba9876543210"},
};

static void put_cgroup(const char *path, const char *pids)
{
	char file[256];

	snprintf(file, sizeof(file), "cg/%s/cgroup.procs", path);
	put(in_root("%s", file), pids);
}

static int setup(void)
{
	char line[4 * PATH_MAX];

	if (!mkdtemp(root))
		return -1;
	proc_set_root(root);
	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++)
		put_process(&fakes[i]);
	put_cgroup("system.slice/nginx.service", "4000100\n4000101\n4000102\n");
	put_cgroup("system.slice/empty.service", "");
	put_cgroup("docker/0123456789abcdef/sub", "4000301\n0\n");
	put_cgroup("docker/0123456789abcdef", "4000300\n");
	put_cgroup("docker/fedcba9876543210", "4000400\n");
	put_cgroup("../named/system.slice/legacy.service", "4000200\n");
	put_cgroup("../named/system.slice/both.service", "4000200\n");
	put_cgroup("../cpu/system.slice/both.service", "4000201\n");
	/* As systemd mounts them without version 2 but for the last: its own first. */
	snprintf(line, sizeof(line),
		 "28 20 0:2 / %s/named rw - cgroup cgroup rw,xattr,release_agent=/lib/cpu,name=systemd\n"
		 "29 20 0:3 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		 "30 20 0:1 / %s/cg rw,nosuid - cgroup2 cgroup2 rw\n",
		 root, root, root);
	put(in_root("self/mountinfo"), line);
	put(in_root("self/cgroup"), "12:cpu,cpuacct:/\n5:name=systemd:/\n0::/\n");
	return 0;
}

static int remove_one(const char *path, const struct stat *stat_buf, int kind, struct FTW *ftw)
{
	(void)stat_buf;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	proc_set_root(NULL);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	snprintf(root + strlen(root) - 6, 7, "XXXXXX");
}

/* The PIDs that it resolves to as "1,2", or an error as "-2"; what is said of it in *said. */
static const char *resolve_in(enum target_kind kind, const char *name, pid_t pidns_of, const char **said)
{
	struct target_query query = {.kind = kind, .pidns_of = pidns_of};
	static char text[256];
	struct target_set set;
	int err;

	CU_ASSERT_FATAL(!vec_push(&query.names, name));
	said_begin();
	err = target_resolve(&query, &set);
	*said = said_end();
	snprintf(text, sizeof(text), "%d", err);
	for (size_t i = 0, len = 0; !err && i < set.pids.cnt; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d", i ? "," : "", set.pids.items[i] - 4000000);
	if (!err)
		target_set_free(&set);
	vec_free(&query.names);
	return text;
}

#define RESOLVES(kind, name, result) CU_ASSERT_STRING_EQUAL(resolve_in(kind, name, 0, &said), result)
#define SAID(part)                   CU_ASSERT(strstr(said, part) != NULL)

static void by_name(void)
{
	const char *said;

	if (setup())
		return;
	/* A master and its workers are one target. */
	RESOLVES(TARGET_BY_COMM, "nginx", "100");
	RESOLVES(TARGET_BY_EXE, "nginx", "100");
	RESOLVES(TARGET_BY_EXE, in_root("bin/nginx"), "100");
	/* Two servers are not, and what to type is told. */
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_COMM, "redis-server", 0, &said)), -ENOTUNIQ);
	SAID("-p 4000200 ");
	SAID("-p 4000201 ");
	SAID("-p 4000200,4000201");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_COMM, "ngnix", 0, &said)), -ESRCH);
	SAID("did you mean nginx?");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_EXE, "/usr/bin/nginx", 0, &said)), -ESRCH);
	/* A name that would clear the screen does not. */
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_COMM, "a\033[2Jc", 0, &said)), -ESRCH);
	CU_ASSERT(!strchr(said, '\033'));
	teardown();
}

static void by_port(void)
{
	const char *said;

	if (setup())
		return;
	RESOLVES(TARGET_BY_PORT, "6379", "200");
	RESOLVES(TARGET_BY_PORT, "6380", "201");
	/* In another network namespace. */
	RESOLVES(TARGET_BY_PORT, "81", "300");
	/* In two of them: two servers. */
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_PORT, "80", 0, &said)), -ENOTUNIQ);
	SAID("-p 4000100 ");
	SAID("-p 4000400 ");
	/* 8080 is a connection, and nobody's port. */
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_PORT, "8080", 0, &said)), -ESRCH);
	SAID("6379 (redis-server)");
	teardown();
}

static void by_pid(void)
{
	const char *said;

	if (setup())
		return;
	RESOLVES(TARGET_BY_PID, "4000201,4000100 4000201", "201,100");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_PID, "4000999", 0, &said)), -ESRCH);
	SAID("no process 4000999");
	CU_ASSERT_STRING_EQUAL(resolve_in(TARGET_BY_PID, "7", 4000300, &said), "300");
	CU_ASSERT_STRING_EQUAL(resolve_in(TARGET_BY_PID, "8", 4000300, &said), "301");
	CU_ASSERT_STRING_EQUAL(resolve_in(TARGET_BY_PID, "7", 4000400, &said), "400");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_PID, "9", 4000300, &said)), -ESRCH);
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_PID, "7", 4000998, &said)), -ESRCH);
	teardown();
}

static void by_cgroup(void)
{
	struct target_query query = {.kind = TARGET_BY_CONTAINER};
	target_processes processes = {0};
	struct target_set set;
	struct stat stat_buf;
	const char *said;

	if (setup())
		return;
	RESOLVES(TARGET_BY_UNIT, "nginx", "100");
	RESOLVES(TARGET_BY_UNIT, "nginx.service", "100");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_UNIT, "nginxx", 0, &said)), -ESRCH);
	SAID("did you mean nginx.service?");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_UNIT, "empty", 0, &said)), -ESRCH);
	SAID("no process in it");
	RESOLVES(TARGET_BY_CGROUP, "/system.slice/nginx.service", "100");
	RESOLVES(TARGET_BY_CGROUP, in_root("cg/docker/fedcba9876543210"), "400");
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_CGROUP, "/nowhere", 0, &said)), -ENOENT);
	/* Nothing outside of the cgroups is one. */
	CU_ASSERT_EQUAL(atoi(resolve_in(TARGET_BY_CGROUP, "/../4000100", 0, &said)), -ENOENT);
	RESOLVES(TARGET_BY_CONTAINER, "fed", "400");
	CU_ASSERT_FATAL(!vec_push(&query.names, "0123456789ab"));
	CU_ASSERT_EQUAL_FATAL(target_resolve(&query, &set), 0);
	/* The subtree's processes, the cgroup's own inode, and nobody without a number here. */
	CU_ASSERT_EQUAL(set.pids.items[0], 4000300);
	CU_ASSERT(!stat(in_root("cg/docker/0123456789abcdef"), &stat_buf) && set.cgroup.id == stat_buf.st_ino);
	CU_ASSERT_EQUAL(set.cgroup.hierarchy, 0);
	CU_ASSERT_EQUAL(target_set_processes(&set, true, &processes), 0);
	CU_ASSERT_EQUAL(processes.cnt, 2);
	CU_ASSERT(target_cgroup_exists(&set.cgroup));
	/* A removed cgroup is gone, and so is one that was made anew in its place. */
	CU_ASSERT_EQUAL(rename(in_root("cg/docker/0123456789abcdef"), "/tmp/whylate-gone"), 0);
	CU_ASSERT(!target_cgroup_exists(&set.cgroup));
	mkdir(in_root("cg/docker/0123456789abcdef"), 0755);
	CU_ASSERT(!target_cgroup_exists(&set.cgroup));
	nftw("/tmp/whylate-gone", remove_one, 16, FTW_DEPTH | FTW_PHYS);
	vec_free(&processes);
	vec_free(&query.names);
	target_set_free(&set);
	teardown();
}

/* The hierarchy that the only process of the unit is found in; 0: of version 2, or none is. */
static uint32_t hierarchy_of(const char *unit, pid_t pid)
{
	struct target_query query = {.kind = TARGET_BY_UNIT};
	struct target_set set = {0};
	uint32_t hierarchy = 0;

	if (!vec_push(&query.names, unit) && !target_resolve(&query, &set) && set.pids.items[0] == pid)
		hierarchy = set.cgroup.hierarchy;
	vec_free(&query.names);
	target_set_free(&set);
	return hierarchy;
}

/* One with a controller is preferred to that which has a name only. */
static void by_cgroup_of_version_1(void)
{
	const char *said;

	if (setup())
		return;
	CU_ASSERT_EQUAL(hierarchy_of("legacy", 4000200), 5);
	CU_ASSERT_EQUAL(hierarchy_of("both", 4000201), 12);
	RESOLVES(TARGET_BY_CGROUP, in_root("named/system.slice/legacy.service"), "200");
	teardown();
}

static void names_of_cgroups(void)
{
	static const struct {
		enum cgroup_kind kind;
		const char *dir, *wanted;
		bool matches;
	} cases[] = {
		{CGROUP_UNIT, "nginx.service", "nginx", true},
		{CGROUP_UNIT, "nginx.service", "nginx.service", true},
		{CGROUP_UNIT, "nginx.service", "ngin", false},
		{CGROUP_UNIT, "getty@tty1.service", "getty@tty1", true},
		{CGROUP_UNIT, "user.slice", "user.slice", true},
		{CGROUP_UNIT, "user.slice", "user", false},
		{CGROUP_UNIT, "cgroup.procs", "cgroup", false},
		{CGROUP_UNIT, "nginx", "nginx", false},
		{CGROUP_UNIT, "nginx.service", "", false},
		{CGROUP_CONTAINER, "docker-0123abcd.scope", "0123", true},
		{CGROUP_CONTAINER, "cri-containerd-0123abcd.scope", "0123abcd", true},
		{CGROUP_CONTAINER, "libpod-0123abcd.scope", "0123abcde", false},
		{CGROUP_CONTAINER, "libpod-conmon-0123abcd.scope", "0123", false},
		{CGROUP_CONTAINER, "0123abcd", "0123", true},
		{CGROUP_CONTAINER, "0123abcd", "123", false},
		{CGROUP_CONTAINER, "0123abcd.service", "0123", false},
		{CGROUP_CONTAINER, "-.scope", "x", false},
		{CGROUP_POD, "pod1234-ab", "1234-ab", true},
		{CGROUP_POD, "kubepods-burstable-pod1234_ab.slice", "1234-ab", true},
		{CGROUP_POD, "kubepods-burstable-pod1234_ab.slice", "1234", false},
		{CGROUP_POD, "kubepods-burstable.slice", "1234", false},
		{CGROUP_POD, "pod", "pod", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(target_cgroup_matches(cases[i].kind, cases[i].dir, cases[i].wanted), cases[i].matches);
}

static const struct unit_test tests[] = {
	{"by name", by_name},
	{"by port", by_port},
	{"by pid", by_pid},
	{"by cgroup", by_cgroup},
	{"by cgroup of version 1", by_cgroup_of_version_1},
	{"names of cgroups", names_of_cgroups},
};

int suite_resolve(void)
{
	return unit_suite("resolve", tests, sizeof(tests) / sizeof(tests[0]));
}
