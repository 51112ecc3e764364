// SPDX-License-Identifier: GPL-2.0-or-later
/* Each test confines a child process, which tries what is forbidden, and tells by its exit code what was not refused.
 */
#include "base/confine.h"
#include "base/sandbox.h"
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/whylate-confine-XXXXXX";
static char shard[64], output[64], outside[64], link_to_outside[64];

static int make_files(void)
{
	FILE *file;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(shard, sizeof(shard), "%s/in", dir);
	mkdir(shard, 0700);
	snprintf(shard, sizeof(shard), "%s/in/a.wls", dir);
	snprintf(output, sizeof(output), "%s/in/out", dir);
	snprintf(outside, sizeof(outside), "%s/b.wls", dir);
	snprintf(link_to_outside, sizeof(link_to_outside), "%s/in/link.wls", dir);
	for (int i = 0; i < 2; i++) {
		file = fopen(i ? outside : shard, "we");
		if (!file || fputs("bytes", file) < 0 || fclose(file))
			return -1;
	}
	return 0;
}

static void remove_files(void)
{
	char in[64];

	snprintf(in, sizeof(in), "%s/in", dir);
	unlink(link_to_outside);
	unlink(shard);
	unlink(output);
	unlink(outside);
	rmdir(in);
	rmdir(dir);
}

/* The exit code of the child that runs it; 255: it did not exit. */
static int in_child(int (*run)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(run());
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static bool can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static bool can_make_thread(void)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL);
}

static void confine_to_dir(const char *out_path, bool network)
{
	static char in[64];
	static const char *path = in;
	const struct confine_reader needs = {.paths = &path, .path_cnt = 1, .out_path = out_path, .network = network};

	snprintf(in, sizeof(in), "%s/in", dir);
	confine_reader(&needs);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static int read_around(void)
{
	confine_to_dir(NULL, false);
	if (!can_open(shard, O_RDONLY) || !can_open(link_to_outside, O_RDONLY))
		return 1;
	if (can_open("/etc/passwd", O_RDONLY))
		return 2;
	if (can_open(shard, O_WRONLY) || can_open(output, O_WRONLY | O_CREAT))
		return 3;
	if (!unlink(shard))
		return 4;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 5;
	return 0;
}

static void a_reader_opens_its_recordings_only(void)
{
	CU_ASSERT_FATAL(!make_files());
	CU_ASSERT(!symlink(outside, link_to_outside));
	if (has_landlock()) {
		CU_ASSERT_EQUAL(in_child(read_around), 0);
	} else {
		printf("SKIP a reader opens its recordings only: this kernel has no Landlock\n");
	}
	remove_files();
}

static int write_around(void)
{
	char beside[80];

	confine_to_dir(output, false);
	snprintf(beside, sizeof(beside), "%s/beside", dir);
	if (!can_open(output, O_WRONLY | O_CREAT | O_TRUNC) || unlink(output))
		return 1;
	if (can_open(beside, O_WRONLY | O_CREAT) || can_open(outside, O_WRONLY))
		return 2;
	return can_open("/etc/passwd", O_RDONLY) ? 3 : 0;
}

static void a_reader_writes_beside_its_output_only(void)
{
	CU_ASSERT_FATAL(!make_files());
	if (has_landlock()) {
		CU_ASSERT_EQUAL(in_child(write_around), 0);
	}
	remove_files();
}

static int keeps_capabilities(void)
{
	cap_t now, none = cap_init();

	confine_to_dir(NULL, false);
	now = cap_get_proc();
	return !now || !none || cap_compare(now, none) ? 1 : 0;
}

static void a_reader_of_own_files_has_no_capability(void)
{
	CU_ASSERT_FATAL(!make_files());
	CU_ASSERT_EQUAL(in_child(keeps_capabilities), 0);
	remove_files();
}

/* As the uploader and the collector: below their directory, what resolving and TLS open, and nothing else. */
static int serve_around(void)
{
	struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {-1, -1, -1}};
	char in[64];
	int err;

	snprintf(in, sizeof(in), "%s/in", dir);
	sandbox.writable_fds[0] = open(in, O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = confine_enter(&sandbox, NULL, 0);
	close(sandbox.writable_fds[0]);
	if (err)
		return 1;
	if (!can_open(shard, O_RDWR) || !can_open(output, O_WRONLY | O_CREAT) || !can_open("/etc/hosts", O_RDONLY))
		return 2;
	if (can_open(outside, O_RDONLY) || can_open(link_to_outside, O_RDONLY))
		return 3;
	return can_open("/etc/passwd", O_RDONLY) ? 4 : 0;
}

static int serve_with_a_file(void)
{
	struct sandbox sandbox = {.writable_fds = {-1, -1, -1}};
	const char *const paths[] = {NULL, outside};

	if (confine_enter(&sandbox, paths, 2))
		return 1;
	return can_open(outside, O_RDONLY) && !can_open(shard, O_RDONLY) && !can_open("/etc/hosts", O_RDONLY) ? 0 : 2;
}

static void who_serves_reads_what_it_names_only(void)
{
	CU_ASSERT_FATAL(!make_files());
	CU_ASSERT(!symlink(outside, link_to_outside));
	if (has_landlock()) {
		CU_ASSERT_EQUAL(in_child(serve_around), 0);
		CU_ASSERT_EQUAL(in_child(serve_with_a_file), 0);
	} else {
		printf("SKIP who serves reads what it names only: this kernel has no Landlock\n");
	}
	remove_files();
}

/* --- system calls --------------------------------------------------------------------------------------------------
 */

static int filtered(const struct sandbox *sandbox)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sandbox_filter_calls(sandbox) ? -1 : 0;
}

/* 0: all were refused with EPERM; otherwise which one was not. */
static int try_forbidden(bool writes)
{
	static const struct {
		long number, args[4];
		bool writes;
	} calls[] = {
		{SYS_execve, {(long)"/bin/true", 0, 0}, false},
		{SYS_ptrace, {PTRACE_TRACEME}, false},
		{SYS_kill, {1, 0}, false},
		{SYS_tgkill, {1, 1, 0}, false},
		{SYS_clone, {SIGCHLD}, false},
		{SYS_bpf, {5 /* BPF_PROG_LOAD */, 0, 0}, false},
		{SYS_perf_event_open, {0, 0, -1, -1}, false},
		{SYS_process_vm_readv, {1}, false},
		{SYS_mount, {0}, false},
		{SYS_setuid, {0}, false},
		{SYS_capset, {0}, false},
		{SYS_ioctl, {0, TIOCSTI, (long)"x"}, false},
		{SYS_prlimit64, {1, RLIMIT_NOFILE, 0, 0}, false},
		{SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDWR}, true},
		{SYS_openat, {AT_FDCWD, (long)"/dev/null", O_RDONLY | O_TRUNC}, true},
		{SYS_unlinkat, {AT_FDCWD, (long)"/nonexistent", 0}, true},
		{SYS_memfd_create, {(long)"x", 0}, true},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const long *args = calls[i].args;

		if (calls[i].writes && writes)
			continue;
		if (syscall(calls[i].number, args[0], args[1], args[2], args[3]) != -1 || errno != EPERM)
			return 100 + (int)i;
	}
	return 0;
}

static bool socket_is_refused(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 && errno == EPERM;
}

static int call_as_reader(void)
{
	const struct sandbox sandbox = {.threads = true, .read_only = true, .writable_fds = {-1, -1, -1}};

	if (filtered(&sandbox))
		return 1;
	if (!can_open("/dev/null", O_RDONLY) || !can_make_thread())
		return 2;
	return socket_is_refused() ? try_forbidden(false) : 3;
}

static int call_as_sender(void)
{
	const struct sandbox sandbox = {.threads = true, .network = true, .writable_fds = {-1, -1, -1}};

	if (filtered(&sandbox))
		return 1;
	if (!can_open("/dev/null", O_RDWR) || !can_make_thread())
		return 2;
	return socket_is_refused() ? 3 : try_forbidden(true);
}

/* connect() with a descriptor that is not open: the filter lets the kernel answer EBADF, or answers EPERM. */
static int errno_of_connect(bool accepts_only)
{
	const struct sandbox sandbox = {
		.network = true, .accepts_only = accepts_only, .threads = true, .writable_fds = {-1, -1, -1}};

	if (filtered(&sandbox) || socket_is_refused())
		return 0;
	return syscall(SYS_connect, -1, NULL, 0) ? errno : 0;
}

static int connect_as_collector(void)
{
	return errno_of_connect(true);
}

static int connect_as_sender(void)
{
	return errno_of_connect(false);
}

static void who_accepts_has_no_connect(void)
{
	CU_ASSERT_EQUAL(in_child(connect_as_collector), EPERM);
	CU_ASSERT_EQUAL(in_child(connect_as_sender), EBADF);
}

static void a_reader_makes_no_socket_process_or_signal(void)
{
	CU_ASSERT_EQUAL(in_child(call_as_reader), 0);
}

static int version_of_landlock(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

/* On loopback; the port is free or ours. */
static bool can_bind(void)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && !bind(fd, (const struct sockaddr *)&address, sizeof(address));

	close(fd);
	return bound;
}

static bool can_connect(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected = fd >= 0 && !connect(fd, (const struct sockaddr *)address, sizeof(*address));

	close(fd);
	return connected;
}

static int use_ports(bool accepts_only)
{
	const struct sandbox sandbox = {
		.network = true, .accepts_only = accepts_only, .threads = true, .writable_fds = {-1, -1, -1}};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t sz = sizeof(address);

	if (bind(fd, (struct sockaddr *)&address, sz) || listen(fd, 4) ||
	    getsockname(fd, (struct sockaddr *)&address, &sz) || !can_bind() || !can_connect(&address))
		return 1;
	if (sandbox_enter(&sandbox))
		return 2;
	if (can_bind())
		return 3;
	return can_connect(&address) == accepts_only ? 4 : 0;
}

static int use_ports_as_uploader(void)
{
	return use_ports(false);
}

static int use_ports_as_collector(void)
{
	return use_ports(true);
}

static void who_sends_has_no_port_and_who_accepts_connects_nowhere(void)
{
	if (version_of_landlock() < 4) {
		printf("SKIP ports: this kernel's Landlock knows no ports\n");
		return;
	}
	CU_ASSERT_EQUAL(in_child(use_ports_as_uploader), 0);
	CU_ASSERT_EQUAL(in_child(use_ports_as_collector), 0);
}

static int signal_the_parent(void)
{
	const struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {-1, -1, -1}};

	/* Landlock alone: under a sanitizer there is no filter. */
	if (kill(getppid(), 0) || sandbox_enter(&sandbox))
		return 1;
	return !kill(getppid(), 0) || errno != EPERM ? 2 : 0;
}

static void signals_stay_inside(void)
{
	if (version_of_landlock() >= 6) {
		CU_ASSERT_EQUAL(in_child(signal_the_parent), 0);
	}
}

static void a_sender_makes_no_process_or_signal(void)
{
	CU_ASSERT_EQUAL(in_child(call_as_sender), 0);
}

/* BPF_LINK_CREATE without attributes is the kernel's to refuse, not the filter's. */
static int call_as_attacher(void)
{
	const struct sandbox sandbox = {
		.threads = true, .links = true, .read_only = true, .writable_fds = {-1, -1, -1}};

	if (filtered(&sandbox))
		return 1;
	if (syscall(SYS_bpf, 28 /* BPF_LINK_CREATE */, NULL, 4096) != -1)
		return 2;
	if (syscall(SYS_bpf, 5 /* BPF_PROG_LOAD */, NULL, 4096) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_ioctl, -1, PERF_EVENT_IOC_ENABLE, 0) != -1 || errno != EBADF)
		return 4;
	if (syscall(SYS_ioctl, -1, PERF_EVENT_IOC_SET_FILTER, 0) != -1 || errno != EPERM)
		return 5;
	return socket_is_refused() && can_make_thread() ? 0 : 6;
}

static void the_attacher_makes_links_only(void)
{
	CU_ASSERT_EQUAL(in_child(call_as_attacher), 0);
}

/* --- where a part of it is refused ---------------------------------------------------------------------------------
 */

/* As a container's filter may be. */
static int refuse_filters(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = filter ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(seccomp), 0) : -ENOMEM;

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(prctl), 1,
				       SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
	return err ? err : seccomp_load(filter);
}

static int confine_in_container(void)
{
	const struct sandbox sandbox = {.threads = true, .read_only = true, .writable_fds = {-1, -1, -1}};

	if (refuse_filters() || sandbox_filter_calls(&sandbox) >= 0)
		return 1;
	confine_to_dir(NULL, false);
	return can_open(shard, O_RDONLY) ? 0 : 2;
}

static void what_is_refused_is_an_error_and_no_end(void)
{
	CU_ASSERT_FATAL(!make_files());
	CU_ASSERT_EQUAL(in_child(confine_in_container), 0);
	remove_files();
}

int suite_confine(void)
{
	static const struct unit_test tests[] = {
		{"a reader opens its recordings only", a_reader_opens_its_recordings_only},
		{"a reader writes beside its output only", a_reader_writes_beside_its_output_only},
		{"who serves reads what it names only", who_serves_reads_what_it_names_only},
		{"a reader of own files has no capability", a_reader_of_own_files_has_no_capability},
		{"a reader makes no socket, process or signal", a_reader_makes_no_socket_process_or_signal},
		{"a sender makes no process or signal", a_sender_makes_no_process_or_signal},
		{"who accepts has no connect()", who_accepts_has_no_connect},
		{"who sends has no port, and who accepts connects nowhere",
		 who_sends_has_no_port_and_who_accepts_connects_nowhere},
		{"signals stay inside", signals_stay_inside},
		{"the attacher makes links only", the_attacher_makes_links_only},
		{"what is refused is an error and no end", what_is_refused_is_an_error_and_no_end},
	};

	return unit_suite("confine", tests, sizeof(tests) / sizeof(tests[0]));
}
