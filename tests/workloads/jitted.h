/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server that makes machine code, as JIT compilers do, and tells of it in /tmp/perf-PID.map, or, with JITTED_DUMP, in
 * a jitdump file.  After MOVED_AFTER_NS other code lies at the same address, of which it tells as well.  One request in
 * 25 runs the code for longer.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef JITTED_DUMP
#define JITTED_DUMP 0
#endif

#define MOVED_AFTER_NS (3 * NS_PER_SEC)
#define PAGE_SZ        4096
#define STEPS          1000000UL

#if defined(__x86_64__)
#define MACHINE 62 /* EM_X86_64 */
/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
static const unsigned char counts_down[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
#elif defined(__aarch64__)
#define MACHINE 183 /* EM_AARCH64 */
/* stp x29,x30,[sp,#-16]!; mov x29,sp; 1: subs x0,x0,#1; b.ne 1b; ldp x29,x30,[sp],#16; ret */
static const unsigned int counts_down[] = {0xa9bf7bfd, 0x910003fd, 0xf1000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
#endif

static struct {
	unsigned char *code;
	int fd; /* the map or the dump */
	uint64_t begun_ts;
} jit;

enum { CHANGED_TS }; /* of board->extra */

static void tell_path(char *path, size_t sz, pid_t pid)
{
	snprintf(path, sz, JITTED_DUMP ? "/tmp/jit-%d.dump" : "/tmp/perf-%d.map", (int)pid);
}

/* A record JIT_CODE_LOAD: its header, the code's place, its name and the code. */
static int tell_dump(const char *name)
{
	static uint64_t idx;
	const struct {
		uint32_t id, sz;
		uint64_t ts;
		uint32_t pid, tid;
		uint64_t vma, addr, code_sz, idx;
	} head = {.sz = (uint32_t)(sizeof(head) + strlen(name) + 1 + sizeof(counts_down)),
		  .ts = clock_now_ns(),
		  .pid = (uint32_t)getpid(),
		  .tid = (uint32_t)getpid(),
		  .vma = (uint64_t)(uintptr_t)jit.code,
		  .addr = (uint64_t)(uintptr_t)jit.code,
		  .code_sz = sizeof(counts_down),
		  .idx = idx++};
	char record[256];
	size_t at = sizeof(head);

	memcpy(record, &head, at);
	memcpy(record + at, name, strlen(name) + 1);
	at += strlen(name) + 1;
	memcpy(record + at, counts_down, sizeof(counts_down));
	return write(jit.fd, record, head.sz) == (ssize_t)head.sz ? 0 : -EIO;
}

static int tell(const char *name)
{
	if (JITTED_DUMP)
		return tell_dump(name);
	return dprintf(jit.fd, "%lx %lx %s\n", (unsigned long)(uintptr_t)jit.code, (unsigned long)sizeof(counts_down),
		       name) > 0
		       ? 0
		       : -EIO;
}

/* The header of a dump, mapped as executable: so perf finds the file. */
static int dump_begin(void)
{
	const struct {
		uint32_t magic, version, sz, machine, pad, pid;
		uint64_t ts, flags;
	} head = {0x4a695444, 1, sizeof(head), MACHINE, 0, (uint32_t)getpid(), clock_now_ns(), 0};

	if (write(jit.fd, &head, sizeof(head)) != sizeof(head))
		return -EIO;
	return mmap(NULL, PAGE_SZ, PROT_READ | PROT_EXEC, MAP_PRIVATE, jit.fd, 0) == MAP_FAILED ? -errno : 0;
}

static void make(void)
{
	memcpy(jit.code, counts_down, sizeof(counts_down));
	__builtin___clear_cache((char *)jit.code, (char *)jit.code + sizeof(counts_down));
}

static int server_start(struct run *run)
{
	char path[64];
	int err;

	(void)run;
	tell_path(path, sizeof(path), getpid());
	jit.fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	jit.code = mmap(NULL, PAGE_SZ, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (jit.fd < 0 || jit.code == MAP_FAILED)
		return -errno;
	make();
	err = JITTED_DUMP ? dump_begin() : 0;
	return err ? err : tell("early_code");
}

static void cleanup(struct run *run)
{
	char path[64];

	tell_path(path, sizeof(path), run->server_pid);
	unlink(path);
}

/* The only thread that serves. */
static void move_once(struct board *board)
{
	uint64_t now = clock_now_ns(), from_ts = atomic_load(&board->count_from_ts);

	if (!from_ts || now < from_ts + MOVED_AFTER_NS || atomic_load(&board->extra[CHANGED_TS]))
		return;
	memset(jit.code, 0, PAGE_SZ);
	make();
	if (!tell("late_code"))
		atomic_store(&board->extra[CHANGED_TS], now);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	void (*count_down)(unsigned long steps);
	uint64_t start_ts;

	move_once(worker->run->board);
	memcpy(&count_down, &jit.code, sizeof(count_down));
	count_down(STEPS);
	if (!request_chosen(request, 40))
		return 0;
	start_ts = clock_now_ns();
	count_down(20 * STEPS);
	return clock_now_ns() - start_ts;
}

static void report(const struct run *run, FILE *out)
{
	fprintf(out, ",\"changed_ts\":%lu", (unsigned long)atomic_load(&run->board->extra[CHANGED_TS]));
}

static const struct workload workload = {
	.name = JITTED_DUMP ? "jitted_dump" : "jitted",
	.category = "oncpu",
	.connection_cnt = 1,
	.rate_hz = 100,
	.default_duration_s = 6,
	.server_start = server_start,
	.cleanup = cleanup,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
