// SPDX-License-Identifier: GPL-2.0-or-later
/* Debug files that a debuginfod server has: a small one of our own, which serves by build id. */
#include "elf_fixture.h"
#include "target/debug_server.h"
#include "target/elf_reader.h"
#include "target/program.h"
#include "unit.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUILD_ID_SZ   20
#define BUILD_ID_TEXT "0102030405060708090a0b0c0d0e0f1011121314"

static const struct made_symbol named[] = {{"found_far_away", CODE_ADDR + 0x100, STT_FUNC, STB_GLOBAL, 16}};

/* A build id is found by a segment: behind the note lies a table of segments which has one more. */
static void elf_make_with_id(struct made_elf *made, const struct made_symbol *symbols, size_t cnt)
{
	struct {
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[BUILD_ID_SZ];
		Elf64_Phdr segments[2];
	} extra = {.note = {4, BUILD_ID_SZ, NT_GNU_BUILD_ID}, .name = "GNU"};
	uint64_t off;

	for (uint8_t i = 0; i < BUILD_ID_SZ; i++)
		extra.id[i] = i + 1;
	elf_make(made, symbols, cnt, ".more");
	elf_make_extra(made, &extra, sizeof(extra));
	off = made_section(made, MADE_EXTRA)->sh_offset;
	extra.segments[0] = *made_segment(made);
	extra.segments[1] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = off, .p_filesz = offsetof(__typeof__(extra), segments), .p_align = 4};
	memcpy(made->bytes + off, &extra, sizeof(extra));
	made_header(made)->e_phoff = off + offsetof(__typeof__(extra), segments);
	made_header(made)->e_phnum = 2;
}

/* The server answers when something can be read from it; -1: at once. */
static int gate_fd = -1;

static void answer(int client, const struct made_elf *debug)
{
	static const char wanted[] = "GET /buildid/" BUILD_ID_TEXT "/debuginfo ";
	char request[4096] = "", head[128];
	size_t len = 0;
	ssize_t got;
	bool known;
	char go;

	if (gate_fd >= 0 && read(gate_fd, &go, 1) != 1)
		_exit(1);
	while (len < sizeof(request) - 1 && !strstr(request, "\r\n\r\n") &&
	       (got = read(client, request + len, sizeof(request) - 1 - len)) > 0)
		len += got;
	known = debug && !strncmp(request, wanted, strlen(wanted));
	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		 known ? "200 OK" : "404 Not Found", known ? debug->sz : 0);
	if (write(client, head, strlen(head)) < 0 || (known && write(client, debug->bytes, debug->sz) < 0))
		_exit(1);
	close(client);
}

/* A server on a port of its own, in a process of its own, which knows this file or (NULL) none.  Its pid, or -1. */
static pid_t server_start(const struct made_elf *debug, char *url, size_t url_sz)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t addr_sz = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;
	pid_t pid;

	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&addr, &addr_sz))
		return -1;
	snprintf(url, url_sz, "http://127.0.0.1:%d/", ntohs(addr.sin_port));
	pid = fork();
	if (!pid) {
		alarm(60);
		while ((client = accept(listener, NULL, NULL)) >= 0)
			answer(client, debug);
		_exit(0);
	}
	close(listener);
	return pid;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
	(void)stat;
	(void)kind;
	(void)ftw;
	return remove(path);
}

/* Where the name of the function comes from when these servers are asked for it; -1: they have none. */
static int source_at(const char *urls, const struct program_opts *opts)
{
	static struct made_elf stripped;
	char cache[] = "/tmp/whylate-test-XXXXXX", path[64];
	struct program *program = NULL;
	uint32_t function;
	int fd, source;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(cache));
	setenv("DEBUGINFOD_URLS", urls, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("no_proxy", "*", 1);
	elf_make_with_id(&stripped, NULL, 0);
	made_section(&stripped, MADE_SYMTAB)->sh_type = SHT_PROGBITS;
	fd = elf_make_file(stripped.bytes, stripped.sz, path);
	CU_ASSERT_EQUAL_FATAL(program__open_file(path, opts, &program), 0);
	function = program__function_find(program, 0, named[0].name);
	source = function == PROGRAM_NONE ? -1 : (int)program__function(program, function)->source;
	program__free(program);
	close(fd);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("no_proxy");
	nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return source;
}

/* As source_at(), of a server that has this file; `before`: URLs that are named before it. */
static int source_with(const struct made_elf *served, const char *before, const struct program_opts *opts)
{
	char url[64], urls[256];
	pid_t server = server_start(served, url, sizeof(url));
	int source;

	CU_ASSERT_FATAL(server > 0);
	snprintf(urls, sizeof(urls), "%s%s", before, url);
	source = source_at(urls, opts);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return source;
}

static void a_server_is_asked_by_build_id(void)
{
	const struct program_opts asking = {.want_debuginfod = true};
	void *library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	static struct made_elf debug, foreign;

	if (!library) {
		printf("\n    skipped: libdebuginfod.so.1 is not installed ");
		return;
	}
	elf_make_with_id(&debug, named, 1);
	CU_ASSERT_EQUAL(source_with(&debug, "", &asking), FUNCTION_DEBUGFILE);
	CU_ASSERT_EQUAL(source_with(&debug, "", NULL), -1);
	CU_ASSERT_EQUAL(source_with(NULL, "", &asking), -1);
	/* A server that sends what belongs to another build is not believed. */
	elf_make(&foreign, named, 1, "");
	CU_ASSERT_EQUAL(source_with(&foreign, "", &asking), -1);
}

/* The server answers only after the thread that may not wait has asked. */
static void a_recording_does_not_wait(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	char cache[] = "/tmp/whylate-test-XXXXXX", url[64];
	static struct made_elf debug;
	int fds[2], fd = -EAGAIN;
	struct stat st;
	pid_t server;

	if (!dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL)) {
		printf("\n    skipped: libdebuginfod.so.1 is not installed ");
		return;
	}
	elf_make_with_id(&debug, named, 1);
	CU_ASSERT_FATAL(mkdtemp(cache) && !pipe(fds));
	gate_fd = fds[0];
	server = server_start(&debug, url, sizeof(url));
	CU_ASSERT_FATAL(server > 0);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("DEBUGINFOD_TIMEOUT", "60", 1);
	setenv("DEBUGINFOD_MAXTIME", "60", 1);
	setenv("no_proxy", "*", 1);
	elf_reader_patience(1000000);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(debug_server_find(BUILD_ID_TEXT), -EAGAIN);
	/* One at a time. */
	CU_ASSERT_EQUAL(debug_server_find("00112233"), -EAGAIN);
	CU_ASSERT_EQUAL(write(fds[1], "gg", 2), 2);
	for (int i = 0; i < 3000 && fd == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		fd = debug_server_find(BUILD_ID_TEXT);
	}
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	/* It is kept for what is to be read of it. */
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	fd = debug_server_find(BUILD_ID_TEXT);
	elf_reader_patience(0);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT(!fstat(fd, &st) && (size_t)st.st_size == debug.sz);
	close(fd);
	gate_fd = -1;
	close(fds[0]);
	close(fds[1]);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("DEBUGINFOD_TIMEOUT");
	unsetenv("DEBUGINFOD_MAXTIME");
	unsetenv("no_proxy");
	nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A directory as a file:// URL takes it for a server: it has what the build id asks for. */
static void a_file_is_no_server(void)
{
	const struct program_opts asking = {.want_debuginfod = true};
	static const char *const schemes[] = {"file://", "FILE://", "file:"};
	char dir[] = "/tmp/whylate-test-XXXXXX", path[128], url[64];
	static struct made_elf debug;
	FILE *file;

	elf_make_with_id(&debug, named, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/buildid", dir);
	CU_ASSERT_FATAL(!mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/buildid/" BUILD_ID_TEXT, dir);
	CU_ASSERT_FATAL(!mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/buildid/" BUILD_ID_TEXT "/debuginfo", dir);
	file = fopen(path, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(debug.bytes, 1, debug.sz, file), debug.sz);
	fclose(file);
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		snprintf(url, sizeof(url), "%s%s ", schemes[i], dir);
		CU_ASSERT_EQUAL(source_at(url, &asking), -1);
		CU_ASSERT_EQUAL(source_with(NULL, url, &asking), -1);
		/* A server beside it is asked all the same. */
		if (dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL))
			CU_ASSERT_EQUAL(source_with(&debug, url, &asking), FUNCTION_DEBUGFILE);
	}
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int suite_debug_file(void)
{
	static const struct unit_test tests[] = {
		{"a server is asked by build id", a_server_is_asked_by_build_id},
		{"a recording does not wait for one", a_recording_does_not_wait},
		{"a file:// URL is no server", a_file_is_no_server},
	};

	return unit_suite("debug_file", tests, sizeof(tests) / sizeof(tests[0]));
}
