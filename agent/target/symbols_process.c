// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that reads debugging information: see symbols.h. */
#include "base/capabilities.h"
#include "base/child.h"
#include "base/packet.h"
#include "base/priority.h"
#include "base/sandbox.h"
#include "target/data_symbol.h"
#include "target/debug_data.h"
#include "target/eh_frame_read.h"
#include "target/elf_relocs_read.h"
#include "target/elf_symbols.h"
#include "target/go_dwarf.h"
#include "target/go_frames.h"
#include "target/go_table.h"
#include "target/symbols_child.h"
#include "target/symbols_wire.h"
#include "target/usdt_notes.h"
#include "target/variable_read.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_FD CHILD_FIRST_FD

_Static_assert(SYMBOLS_FIRST_FD == CHILD_FIRST_FD + 1, "files come behind the socket");

static struct inlines *files[SYMBOLS_FILES_MAX];

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void put_names(struct symbols_answer *answer, const char *const names[], size_t cnt, size_t *sz)
{
	for (size_t i = 0; i < cnt; i++) {
		size_t len = strnlen(names[i], INLINES_NAME_SZ - 1);

		memcpy(answer->names + *sz, names[i], len);
		answer->names[*sz + len] = '\0';
		*sz += len + 1;
	}
	answer->cnt = (uint32_t)cnt;
}

static void find_go_layout(struct symbols_answer *answer, int fd, size_t *sz)
{
	struct go_layout layout = {0};
	struct symbols_go *go = &answer->go;
	int err = fd < 0 ? -EBADF : go_layout_by_dwarf(fd, &layout, &go->stopping_off);

	go->goid = layout.goid;
	go->status = layout.status;
	go->wait_reason = layout.wait_reason;
	go->start_pc = layout.start_pc;
	go->sched = layout.sched;
	go->sched_sz = layout.sched_sz;
	go->stopping_sz = layout.stopping_sz;
	answer->err = (uint32_t)-err;
	*sz = sizeof(*go);
}

/* False: the agent is gone. */
static bool send_section(const void *rows, uint64_t sz)
{
	const char *at = rows;

	for (uint64_t part_sz; sz; at += part_sz, sz -= part_sz) {
		part_sz = sz < ELF_ROWS_PACKET ? sz : ELF_ROWS_PACKET;
		if (send(SOCKET_FD, at, part_sz, MSG_NOSIGNAL) != (ssize_t)part_sz)
			return false;
	}
	return true;
}

/* Of what is compiled, and of what Go has compiled. */
static int frames_read(const struct elf_image *image, struct elf_rows *rows)
{
	int err = eh_frame_read(image, false, rows), go_err;

	if (err && err != -ENOENT)
		return err;
	go_err = go_frames_add(image, rows);
	return go_err ?: rows->steps.cnt ? 0 : err;
}

static int read_image(const struct symbols_table_question *question, const struct elf_image *image,
		      struct elf_rows *rows)
{
	switch (question->what) {
	case ELF_READ_SYMBOLS:
		return elf_dynamic_read(image, rows);
	case ELF_READ_FUNCTIONS:
		return eh_frame_read(image, true, rows);
	case ELF_READ_FRAMES:
		return frames_read(image, rows);
	case ELF_READ_GO:
		return go_table_read(image, rows);
	case ELF_READ_DATUM:
		return data_symbol_read(image, question->at, &rows->head.datum);
	case ELF_READ_VARIABLE:
		return variable_read(image, question->name, (unsigned)question->at, &rows->head.variable);
	case ELF_READ_RELOCS:
		return elf_relocs_read(image, rows);
	case ELF_READ_MARKERS:
		return usdt_notes_read(image, rows);
	default:
		return -EINVAL;
	}
}

/* What libelf does not read.  Closes the file. */
static int read_other(const struct symbols_table_question *question, int fd, struct elf_rows *rows)
{
	struct elf_image *image = elf_image__of(fd);
	int err = image ? read_image(question, image, rows) : -errno;

	elf_image__free(image);
	return err;
}

static int read_table(const struct symbols_table_question *question, int *fd, uint64_t *left, struct elf_rows *rows)
{
	struct elf_symbols_source source = {.fd = *fd, .symbols_left = left, .what = question->what};
	int err = question->code_cnt > ELF_ROWS_CODE_MAX ? -EINVAL : 0;
	bool others = true;

	if (question->is_debug) {
		source.code = question->code;
		source.code_cnt = question->code_cnt;
	}
	if (!err && question->packed_sz)
		err = debug_data_unpack(*fd, question->packed_off, question->packed_sz, left, &source.image,
					&source.image_sz);
	if (!err && (question->what == ELF_READ_SYMBOLS || question->what == ELF_READ_HEAD)) {
		err = elf_symbols_read(&source, rows);
		others = question->what == ELF_READ_SYMBOLS && !question->is_debug;
	}
	if (!err && others) {
		err = read_other(question, *fd, rows);
		*fd = -1;
	}
	free(source.image);
	return err;
}

static bool answer_table(const struct symbols_table_question *question, int fd)
{
	uint64_t left = question->left;
	struct elf_rows rows = {0};
	size_t *cnt;
	bool sent;

	rows.head.err = (uint32_t)-read_table(question, &fd, &left, &rows);
	rows.head.seq = question->head.seq;
	rows.head.symbols_taken = question->left - left;
	if (rows.head.err)
		memset(rows.head.cnt, 0, sizeof(rows.head.cnt));
	sent = send(SOCKET_FD, &rows.head, sizeof(rows.head), MSG_NOSIGNAL) == sizeof(rows.head);
	for (int i = 0; i < ELF_ROWS_SECTION_CNT && sent; i++)
		sent = send_section(*elf_rows_section(&rows, i, &cnt), elf_rows_section_sz(&rows.head, i));
	elf_rows_free(&rows);
	if (fd >= 0)
		close(fd);
	/* It waits for the next file with what it needs only. */
	malloc_trim(0);
	return sent;
}

static bool is_opening(uint32_t ask)
{
	return ask == SYMBOLS_ASK_OPEN || ask == SYMBOLS_ASK_OPEN_LINES;
}

static void put_line(struct symbols_answer *answer, struct inlines *file, uint64_t addr, size_t *sz)
{
	const char *name;

	if (!inlines__line_at(file, addr, &name, &answer->line) || strlen(name) >= sizeof(answer->names))
		return;
	*sz = strlen(name) + 1;
	memcpy(answer->names, name, *sz);
	answer->cnt = 1;
}

/* False: the agent is gone. */
static bool answer(const struct symbols_question *question, int fd)
{
	struct symbols_answer answer = {.seq = question->seq};
	const char *names[INLINES_DEPTH_MAX];
	struct inlines **file = question->file < SYMBOLS_FILES_MAX ? &files[question->file] : NULL;
	size_t sz = 0;

	if (file && is_opening(question->ask) && fd >= 0 && !*file) {
		*file = question->ask == SYMBOLS_ASK_OPEN ? inlines__open(fd) : inlines__open_lines(fd);
		fd = -1;
	}
	if (question->ask == SYMBOLS_ASK_GO)
		find_go_layout(&answer, fd, &sz);
	else if (!file || !*file)
		answer.err = ENODATA;
	else if (question->ask == SYMBOLS_ASK_INLINED)
		put_names(&answer, names, inlines__at(*file, question->addr, names), &sz);
	else if (question->ask == SYMBOLS_ASK_LINE)
		put_line(&answer, *file, question->addr, &sz);
	if (fd >= 0)
		close(fd);
	return send(SOCKET_FD, &answer, SYMBOLS_ANSWER_HEAD + sz, MSG_NOSIGNAL) >= 0;
}

/* A question and the descriptor that may come with it, -1: none.  False: the agent is gone. */
static bool receive(struct symbols_table_question *question, int *fd)
{
	ssize_t got = packet_receive(SOCKET_FD, question, sizeof(*question), fd, 1, 0);

	return got == sizeof(question->head) || (got == sizeof(*question) && question->head.ask == SYMBOLS_ASK_TABLE);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* A sanitizer maps terabytes that it does not use. */
static int limit_memory(uint64_t most)
{
	FILE *file = sandbox_is_sanitized() ? NULL : fopen("/proc/self/statm", "re");
	unsigned long pages = 0;
	struct rlimit limit;
	bool known;

	if (sandbox_is_sanitized())
		return 0;
	known = file && fscanf(file, "%lu", &pages) == 1;
	if (file)
		fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE) + most;
	return !known || setrlimit(RLIMIT_AS, &limit) ? -EPERM : 0;
}

/* Where memory is short, in the machine or in a unit with MemoryMax, this process goes: it begins again. */
static void volunteer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		(void)errno;
	if (fd >= 0)
		close(fd);
}

/* The thread that has begun it may have blocked all signals. */
static void limit_cpu(rlim_t cpu_s)
{
	const struct rlimit limit = {cpu_s, cpu_s + 1};
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGXCPU);
	sigprocmask(SIG_UNBLOCK, &ending, NULL);
	if (cpu_s)
		setrlimit(RLIMIT_CPU, &limit);
}

/* libdebuginfod keeps files wherever the environment says. */
static int enter_sandbox(bool fetches)
{
	const struct sandbox computing = {.computes = true, .read_only = true, .writable_fds = {-1, -1, -1}},
			     fetching = {.network = true, .threads = true};

	if (!fetches)
		return sandbox_enter(&computing);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return sandbox_is_sanitized() ? 0 : sandbox_filter_calls(&fetching);
}

static int confine(pid_t parent, const struct symbols_work *work)
{
	static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGXFSZ, SIGPIPE, SIGCHLD};
	const struct rlimit none = {0, 0};
	int err;

	/* What ends the recording ends it by the socket, not by the terminal. */
	setsid();
	prctl(PR_SET_NAME, work->fetches ? "whylate-fetch" : "whylate-symbols");
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		signal(handled[i], SIG_DFL);
	(void)priority_raise(0);
	volunteer();
	limit_cpu(work->cpu_s);
	setrlimit(RLIMIT_CORE, &none);
	if (!work->fetches)
		setrlimit(RLIMIT_FSIZE, &none);
	err = child_unmap_shared(NULL);
	if (!err)
		err = limit_memory(work->memory ? work->memory : SYMBOLS_MEMORY);
	if (!err)
		err = capabilities_keep(NULL, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	return err ? err : enter_sandbox(work->fetches);
}

static void answer_questions(void)
{
	static struct symbols_table_question question;
	int file_fd;

	while (receive(&question, &file_fd) &&
	       (question.head.ask == SYMBOLS_ASK_TABLE ? answer_table(&question, file_fd)
						       : answer(&question.head, file_fd)))
		;
}

_Noreturn void symbols_process(int fd, pid_t parent, const struct symbols_work *work)
{
	int fds[1 + SYMBOLS_FDS] = {fd};

	for (size_t i = 0; i < work->fd_cnt && i < SYMBOLS_FDS; i++)
		fds[1 + i] = work->fds[i];
	child_keep_fds(fds, 1 + work->fd_cnt);
	if (confine(parent, work))
		_exit(SYMBOLS_EXIT_UNCONFINED);
	if (work->run)
		work->run(SOCKET_FD, work->ctx);
	else
		answer_questions();
	_exit(0);
}
