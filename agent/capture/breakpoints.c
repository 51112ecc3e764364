// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/breakpoints.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As PERF_FORMAT_TOTAL_TIME_RUNNING lays it out. */
struct reading {
	uint64_t hits, running_ns;
};

/* It does not count before it is armed. */
static int open_breakpoint(pid_t tid, uint64_t addr, uint32_t hits)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = addr,
		.bp_len = sizeof(long),
		.sample_period = hits,
		.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* One overflow, then the kernel takes the register back by itself. */
static int arm(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) ? -errno : 0;
}

static int disarm(int fd, struct reading *reading)
{
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
		return -errno;
	return read(fd, reading, sizeof(*reading)) == sizeof(*reading) ? 0 : -EIO;
}

int breakpoints__watch(const struct breakpoint_thread *threads, size_t cnt, uint64_t window_ns,
		       struct breakpoint_count counts[BREAKPOINT_CNT])
{
	int *fds = calloc(cnt * BREAKPOINT_CNT + 1, sizeof(*fds)), err = -ESRCH;
	size_t armed = 0;

	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < cnt * BREAKPOINT_CNT; i++) {
		const struct breakpoint_thread *thread = &threads[i / BREAKPOINT_CNT];
		uint64_t addr = thread->addrs[i % BREAKPOINT_CNT];

		fds[i] = addr ? open_breakpoint(thread->tid, addr, BREAKPOINT_HITS) : -ENOENT;
		if (addr && fds[i] < 0)
			err = fds[i];
	}
	for (size_t i = 0; i < cnt * BREAKPOINT_CNT; i++)
		armed += fds[i] >= 0 && !arm(fds[i]);
	if (armed)
		sleep_ns(window_ns);
	for (size_t i = 0; i < cnt * BREAKPOINT_CNT; i++) {
		struct breakpoint_count *count = &counts[i % BREAKPOINT_CNT];
		struct reading reading;

		if (fds[i] < 0)
			continue;
		if (!disarm(fds[i], &reading)) {
			count->hits += reading.hits;
			count->running_ns += reading.running_ns;
		}
		close(fds[i]);
	}
	free(fds);
	return armed ? 0 : err;
}

static __attribute__((noinline, noclone)) void be_hit(void)
{
	__asm__ volatile("");
}

int breakpoints__measure(double *hit_ns, uint64_t *hits)
{
	int fd = open_breakpoint(0, (uintptr_t)be_hit, BREAKPOINT_MEASURED), err;
	struct reading reading = {0};

	if (fd < 0)
		return fd;
	err = arm(fd);
	for (int i = 0; !err && i < BREAKPOINT_MEASURED; i++)
		be_hit();
	if (!err)
		err = disarm(fd, &reading);
	close(fd);
	/* Some virtual machines take a breakpoint and never stop at it. */
	if (!err && !reading.hits)
		err = -EOPNOTSUPP;
	*hits = reading.hits;
	*hit_ns = reading.hits ? (double)reading.running_ns / (double)reading.hits : 0;
	return err;
}
