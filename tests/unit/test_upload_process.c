// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate upload` and recordings that find it: who may connect, who comes and goes.  Nothing is sent here. */
#include "base/clock.h"
#include "base/packet.h"
#include "net/send/stream.h"
#include "said.h"
#include "test_shard_util.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS 20000000000ULL
#define STEP_NS     10000000ULL

static struct test_dir dir;
static char socket_path[sizeof(dir.path) + sizeof("/" SPOOL_SOCKET)];
static pid_t uploader;

static int connect_to_it(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
	for (uint64_t begin_ts = monotonic_ns(); monotonic_ns() - begin_ts < PATIENCE_NS; sleep_ns(STEP_NS))
		if (!connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
			return fd;
	CU_FAIL("nobody listens");
	return fd;
}

static void start(void)
{
	const struct upload_opts opts = {.url = "http://127.0.0.1:1/", .host = "web-1"};

	unlink(socket_path);
	uploader = fork();
	if (!uploader) {
		struct upload_process *process = upload_process__new(&opts);
		int null_fd = open("/dev/null", O_WRONLY);

		dup2(null_fd, STDERR_FILENO);
		_exit(process && !upload_process__serve(process, dir.path) ? 0 : 1);
	}
	CU_ASSERT_FATAL(uploader > 0);
	close(connect_to_it());
}

static int stop(int signal_no)
{
	int status = -1;

	kill(uploader, signal_no);
	waitpid(uploader, &status, 0);
	return status;
}

static void begin(void)
{
	test_dir__make(&dir);
	snprintf(socket_path, sizeof(socket_path), "%s/" SPOOL_SOCKET, dir.path);
	start();
}

/* It hangs up. */
static bool is_refused(const void *bytes, size_t sz, const int *fds, size_t fd_cnt)
{
	int fd = connect_to_it();
	bool refused = packet_send(fd, bytes, sz, fds, fd_cnt, 0) == (ssize_t)sz && !recv(fd, (char[1]){0}, 1, 0);

	close(fd);
	return refused;
}

static void only_recordings_are_taken(void)
{
	const size_t sz = sizeof(struct spool_shared);
	struct spool_hello hello = {.magic = SPOOL_HELLO_MAGIC, .shared_sz = sz};
	int fds[2] = {memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING), -1};

	begin();
	fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	CU_ASSERT_FATAL(fds[1] >= 0 && !ftruncate(fds[0], (off_t)sz));
	CU_ASSERT(is_refused("x", 1, fds, 2));
	CU_ASSERT(is_refused(&hello, sizeof(hello), NULL, 0));
	CU_ASSERT(is_refused(&hello, sizeof(hello), fds, 1));
	/* It could be shortened. */
	CU_ASSERT(is_refused(&hello, sizeof(hello), fds, 2));
	CU_ASSERT_EQUAL(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK), 0);
	hello.shared_sz++;
	CU_ASSERT(is_refused(&hello, sizeof(hello), fds, 2));
	hello.shared_sz--;
	hello.magic[7]++;
	CU_ASSERT(is_refused(&hello, sizeof(hello), fds, 2));
	CU_ASSERT_EQUAL(stop(SIGTERM), 0);
	CU_ASSERT(access(socket_path, F_OK));
	close(fds[0]);
	close(fds[1]);
	test_dir__remove(&dir);
}

static void one_sends_from_a_spool(void)
{
	const struct upload_opts opts = {.url = "http://127.0.0.1:1/", .host = "web-1"};
	pid_t other;
	int status;

	begin();
	other = fork();
	if (!other) {
		struct upload_process *process = upload_process__new(&opts);

		close(STDERR_FILENO);
		_exit(process && upload_process__serve(process, dir.path) ? 7 : 1);
	}
	CU_ASSERT(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	close(connect_to_it());
	CU_ASSERT_EQUAL(stop(SIGTERM), 0);
	test_dir__remove(&dir);
}

static bool turns(struct stream *stream, pid_t pid)
{
	for (uint64_t begin_ts = monotonic_ns(); monotonic_ns() - begin_ts < PATIENCE_NS; sleep_ns(STEP_NS)) {
		stream__tick(stream);
		if (stream__pid(stream) == pid)
			return true;
	}
	return false;
}

static void a_recording_finds_the_next_one(void)
{
	const struct stream_opts opts = {
		.spool_dir = dir.path, .spool_max_bytes = 16 << 20, .spool_max_age_ns = UINT64_MAX / 2};
	struct stream *stream;
	const char *said;

	begin();
	said_begin();
	stream = stream__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
	CU_ASSERT_EQUAL(stream__pid(stream), uploader);
	CU_ASSERT_EQUAL(stop(SIGKILL), SIGKILL);
	CU_ASSERT(turns(stream, 0));
	start();
	CU_ASSERT(turns(stream, uploader));
	/* It goes at once, and is no error. */
	stream__finish(stream, PATIENCE_NS);
	CU_ASSERT_EQUAL(stream__pid(stream), 0);
	stream__free(stream);
	said = said_end();
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "(it has ended): it waits for `whylate upload`"));
	CU_ASSERT_EQUAL(stop(SIGTERM), 0);
	test_dir__remove(&dir);
}

int suite_upload_process(void)
{
	static const struct unit_test tests[] = {
		{"only recordings are taken", only_recordings_are_taken},
		{"one sends from a spool", one_sends_from_a_spool},
		{"a recording finds the next one", a_recording_finds_the_next_one},
	};

	return unit_suite("upload_process", tests, sizeof(tests) / sizeof(tests[0]));
}
