// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* Memory, time, open descriptors, reading files, and ending. */
static const int common[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(close_range),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(fcntl),
	SCMP_SYS(stat),
	SCMP_SYS(fstat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(fstatfs),
	SCMP_SYS(statfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getcwd),
	SCMP_SYS(getdents64),
	SCMP_SYS(flock),
	SCMP_SYS(fadvise64),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getresuid),
	SCMP_SYS(getresgid),
	SCMP_SYS(getgroups),
	SCMP_SYS(getrandom),
	SCMP_SYS(getrusage),
	SCMP_SYS(times),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getpriority),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	SCMP_SYS(eventfd2),
	SCMP_SYS(prctl),
	SCMP_SYS(capget),
	SCMP_SYS(membarrier),
	SCMP_SYS(rseq),
};
static const int writing[] = {
	SCMP_SYS(open),      SCMP_SYS(openat),          SCMP_SYS(openat2),      SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),   SCMP_SYS(unlink),          SCMP_SYS(unlinkat),     SCMP_SYS(rmdir),
	SCMP_SYS(rename),    SCMP_SYS(renameat),        SCMP_SYS(renameat2),    SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate), SCMP_SYS(fsync),           SCMP_SYS(fdatasync),    SCMP_SYS(syncfs),
	SCMP_SYS(umask),     SCMP_SYS(sync_file_range), SCMP_SYS(memfd_create),
};
static const int network[] = {
	SCMP_SYS(socket),      SCMP_SYS(socketpair),  SCMP_SYS(bind),          SCMP_SYS(listen),
	SCMP_SYS(accept),      SCMP_SYS(accept4),     SCMP_SYS(shutdown),      SCMP_SYS(getsockname),
	SCMP_SYS(getpeername), SCMP_SYS(getsockopt),  SCMP_SYS(setsockopt),    SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),    SCMP_SYS(sendmsg),     SCMP_SYS(recvmsg),       SCMP_SYS(sendmmsg),
	SCMP_SYS(recvmmsg),    SCMP_SYS(sendfile),    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),  SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_create),
};
static const int connecting[] = {SCMP_SYS(connect)};
static const int threads[] = {
	SCMP_SYS(set_robust_list),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(sched_getparam),
	SCMP_SYS(sched_getscheduler),
};

/* For a process that gets its files as descriptors. */
static const int computing[] = {
	SCMP_SYS(read),    SCMP_SYS(pread64),        SCMP_SYS(lseek),         SCMP_SYS(fstat),
	SCMP_SYS(close),   SCMP_SYS(munmap),         SCMP_SYS(mremap),        SCMP_SYS(madvise),
	SCMP_SYS(brk),     SCMP_SYS(futex),          SCMP_SYS(clock_gettime), SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),  SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),  SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),    SCMP_SYS(exit_group),     SCMP_SYS(getpid),        SCMP_SYS(gettid),
	SCMP_SYS(sysinfo),
};

/* TIOCSTI types into the terminal: none of a terminal's requests that change anything. */
static const unsigned long requests[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIOCLEX};
static const unsigned long network_requests[] = {SIOCGIFINDEX, SIOCGIFNAME, SIOCGIFFLAGS, SIOCGIFCONF};

/* A sanitizer looks around by calls of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTERED false
#else
#define FILTERED true
#endif

/* One that this architecture does not have cannot be called either. */
int sandbox_filter_add(void *filter, uint32_t action, const int *calls, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		err = seccomp_rule_add(filter, action, calls[i], 0);
		if (err == -EDOM || err == -EINVAL)
			err = 0;
	}
	return err;
}

int sandbox_filter_load(void *filter, int err)
{
	/* The kernel's own error. */
	if (!err)
		err = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

#define ALLOW(filter, calls) sandbox_filter_add(filter, SCMP_ACT_ALLOW, calls, ARRAY_CNT(calls))

static int allow_requests(scmp_filter_ctx filter, const unsigned long *numbers, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, numbers[i]));
	return err;
}

/* Without O_CREAT, O_TRUNC and a mode of writing.  openat2() has its flags in memory, out of the filter's sight. */
static int allow_reading(scmp_filter_ctx filter)
{
	const scmp_datum_t flags = O_ACCMODE | O_CREAT | O_TRUNC;
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, flags, 0));

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
				       SCMP_A1(SCMP_CMP_MASKED_EQ, flags, 0));
	return err == -EDOM || err == -EINVAL ? 0 : err;
}

static int allow_threads(scmp_filter_ctx filter)
{
	int err = ALLOW(filter, threads);

	/* Its flags are in memory, too: glibc falls back on clone(). */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	return err;
}

static int allow_links(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(perf_event_open), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(sendto),
				    SCMP_SYS(shutdown)};
	static const unsigned long enable[] = {PERF_EVENT_IOC_ENABLE};
	int err = ALLOW(filter, calls);

	if (!err)
		err = allow_requests(filter, enable, ARRAY_CNT(enable));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				       SCMP_A0_32(SCMP_CMP_EQ, BPF_LINK_CREATE));
	return err;
}

/* Memory that is no code, a file by its descriptor, and ending itself. */
static int allow_computing(scmp_filter_ctx filter)
{
	int err = ALLOW(filter, computing);

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				       SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				       SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
	return err;
}

static int allow_common(scmp_filter_ctx filter, const struct sandbox *sandbox)
{
	int err = ALLOW(filter, common);

	if (!err)
		err = allow_requests(filter, requests, ARRAY_CNT(requests));
	/* Signals to, and limits of, this process only. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				       SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0_32(SCMP_CMP_EQ, 0));
	if (!err)
		err = sandbox->read_only ? allow_reading(filter) : ALLOW(filter, writing);
	if (!err && sandbox->network)
		err = ALLOW(filter, network);
	if (!err && sandbox->network && !sandbox->accepts_only)
		err = ALLOW(filter, connecting);
	if (!err && sandbox->network)
		err = allow_requests(filter, network_requests, ARRAY_CNT(network_requests));
	if (!err && sandbox->threads)
		err = allow_threads(filter);
	if (!err && sandbox->links)
		err = allow_links(filter);
	return err;
}

int sandbox_filter_calls(const struct sandbox *sandbox)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = !filter ? -ENOMEM : sandbox->computes ? allow_computing(filter) : allow_common(filter, sandbox);

	return sandbox_filter_load(filter, err);
}

#define FILE_RIGHTS    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define READING_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING_RIGHTS                                                                                    \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |       \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |    \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* struct landlock_ruleset_attr of version 6; the headers may be older than the kernel. */
struct ruleset {
	uint64_t files, network, scopes;
};
/* LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP */
#define BIND_RIGHT    1
#define CONNECT_RIGHT 2
/* LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL */
#define ABSTRACT_SCOPE 1
#define SIGNAL_SCOPE   2

/* By the version of the kernel's Landlock: the size to hand over; 0: it has none. */
static size_t ruleset_of(struct ruleset *ruleset, const struct sandbox *sandbox)
{
	int version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	*ruleset = (struct ruleset){.files = WRITING_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE};
	if (sandbox->readable_cnt || sandbox->computes)
		ruleset->files |= READING_RIGHTS;
	if (version < 2)
		ruleset->files &= ~(uint64_t)LANDLOCK_ACCESS_FS_REFER;
	if (version < 3)
		ruleset->files &= ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
	if (version >= 4)
		ruleset->network = sandbox->network && !sandbox->accepts_only ? BIND_RIGHT : BIND_RIGHT | CONNECT_RIGHT;
	/* The system's resolver may have an abstract socket. */
	if (version >= 6)
		ruleset->scopes = sandbox->network ? SIGNAL_SCOPE : SIGNAL_SCOPE | ABSTRACT_SCOPE;
	return version < 1   ? 0
	       : version < 4 ? offsetof(struct ruleset, network)
	       : version < 6 ? offsetof(struct ruleset, scopes)
			     : sizeof(*ruleset);
}

/* A rule of a file has no rights of a directory. */
static int add_rule(int ruleset_fd, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr beneath = {.allowed_access = rights, .parent_fd = fd};
	struct stat st;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && !S_ISDIR(st.st_mode))
		beneath.allowed_access &= FILE_RIGHTS;
	if (!beneath.allowed_access)
		return 0;
	/* EBADFD: a pipe, which Landlock leaves alone. */
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) && errno != EBADFD
		       ? -errno
		       : 0;
}

static int confine_files(const struct sandbox *sandbox)
{
	struct ruleset ruleset;
	size_t sz = ruleset_of(&ruleset, sandbox);
	int fd, err = 0;

	if (!sz)
		return 0;
	fd = syscall(SYS_landlock_create_ruleset, &ruleset, sz, 0);
	/* Built in and not enabled at boot. */
	if (fd < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (size_t i = 0; i < ARRAY_CNT(sandbox->writable_fds) && !err; i++)
		err = add_rule(fd, sandbox->writable_fds[i], ruleset.files & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
	for (size_t i = 0; i < sandbox->readable_cnt && !err; i++)
		err = add_rule(fd, sandbox->readable_fds[i], READING_RIGHTS);
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0))
		err = -errno;
	close(fd);
	return err;
}

bool sandbox_is_sanitized(void)
{
	return !FILTERED;
}

int sandbox_enter(const struct sandbox *sandbox)
{
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0, files_err = confine_files(sandbox),
	    calls_err = FILTERED ? sandbox_filter_calls(sandbox) : 0;

	return err ?: files_err ?: calls_err;
}
