// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/sandbox.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* Memory, time, what is open, files, and ending. */
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
	SCMP_SYS(ioctl),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
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
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(rmdir),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(syncfs),
	SCMP_SYS(sync_file_range),
	SCMP_SYS(flock),
	SCMP_SYS(fadvise64),
	SCMP_SYS(memfd_create),
	SCMP_SYS(umask),
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
	SCMP_SYS(prlimit64),
	SCMP_SYS(getpriority),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(tgkill),
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
static const int network[] = {
	SCMP_SYS(socket),      SCMP_SYS(socketpair),  SCMP_SYS(connect),     SCMP_SYS(bind),
	SCMP_SYS(listen),      SCMP_SYS(accept),      SCMP_SYS(accept4),     SCMP_SYS(shutdown),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),  SCMP_SYS(setsockopt),
	SCMP_SYS(sendto),      SCMP_SYS(recvfrom),    SCMP_SYS(sendmsg),     SCMP_SYS(recvmsg),
	SCMP_SYS(sendmmsg),    SCMP_SYS(recvmmsg),    SCMP_SYS(sendfile),    SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),   SCMP_SYS(epoll_wait),  SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_create),
};
static const int threads[] = {
	SCMP_SYS(set_robust_list),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(sched_getparam),
	SCMP_SYS(sched_getscheduler),
};

/* A sanitizer looks around by calls of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FILTERED false
#else
#define FILTERED true
#endif

/* One that this architecture does not have cannot be called either. */
static int allow(scmp_filter_ctx filter, const int *calls, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
		if (err == -EDOM || err == -EINVAL)
			err = 0;
	}
	return err;
}

static int filter_calls(const struct sandbox *sandbox)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = filter ? allow(filter, common, ARRAY_CNT(common)) : -ENOMEM;

	if (!err && sandbox->network)
		err = allow(filter, network, ARRAY_CNT(network));
	if (!err && sandbox->threads) {
		err = allow(filter, threads, ARRAY_CNT(threads));
		/* Its flags are in memory, out of the filter's sight: glibc falls back on clone(). */
		if (!err)
			err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
		if (!err)
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
					       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	}
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

/* By the version of the kernel's Landlock; 0: it has none. */
static uint64_t writing_rights(void)
{
	int version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
			  LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
			  LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

	if (version < 1)
		return 0;
#ifdef LANDLOCK_ACCESS_FS_REFER
	if (version >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
#endif
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
	if (version >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
#endif
	return rights;
}

static int confine_files(const struct sandbox *sandbox)
{
	struct landlock_ruleset_attr ruleset = {.handled_access_fs = writing_rights()};
	int fd, err = 0;

	if (!ruleset.handled_access_fs)
		return 0;
	fd = syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
	/* Built in and not enabled at boot. */
	if (fd < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (size_t i = 0; i < ARRAY_CNT(sandbox->writable_fds) && !err; i++) {
		struct landlock_path_beneath_attr beneath = {
			.allowed_access = ruleset.handled_access_fs & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
			.parent_fd = sandbox->writable_fds[i],
		};

		if (beneath.parent_fd >= 0 &&
		    syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0))
			err = -errno;
	}
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0))
		err = -errno;
	close(fd);
	return err;
}

int sandbox_enter(const struct sandbox *sandbox)
{
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	if (!err)
		err = confine_files(sandbox);
	if (!err && FILTERED)
		err = filter_calls(sandbox);
	return err;
}
