// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent's side of the process that reads debugging information. */
#include "target/symbols.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/vec.h"
#include "bpf/go_layout.h"
#include "target/proc_file.h"
#include "target/symbols_child.h"
#include "target/symbols_wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* Addresses of a file that are remembered: direct-mapped, a power of two. */
#define KNOWN_CNT 2048
/* An answer is waited for this long; one that does not come at all ends the process. */
#define PATIENCE_MS 100
#define SILENCE_NS  (60 * SECOND_NS)
/* Of what is looked up in whole, before a recording begins; and bytes that a structure of Go's runtime may have. */
#define GO_PATIENCE_MS 10000
#define GO_OFF_MAX     65536
/* Of the registers of one that waits: sp and pc, bp as the last. */
#define GO_SCHED_MIN 24
#define GO_SCHED_MAX 256
/* Most of what is mapped for source lines is not read. */
#define LINES_MEMORY (LINES_SZ_MAX + (512UL << 20))
/* It does not begin again sooner than this, and a file that has ended it so often is given up. */
#define RESTART_NS SECOND_NS
#define DEATHS_MAX 3

struct known {
	uint64_t addr; /* 0: a free place */
	uint8_t cnt;
	uint32_t line;
	char *names; /* one behind the other, each with its NUL */
};

struct file {
	int fd; /* -1: it has no DWARF, or is given up */
	char name[64];
	uint32_t start; /* the process to which it was handed; 0: none yet */
	unsigned int deaths;
	uint64_t opened_ts, spent_ns;
	struct known known[KNOWN_CNT];
};

struct symbols {
	struct symbols_child child;
	bool of_lines; /* not of inlined functions */
	uint32_t starts;
	uint64_t at_once_ns;
	uint64_t started_ts;
	bool refused; /* it cannot be confined here */
	bool is_asked;
	struct symbols_question question; /* the last one */
	uint64_t asked_ts;
	VEC(struct file *) files;
};

struct symbols *symbols__new(uint64_t at_once_ns)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->child.socket_fd = -1;
	symbols->at_once_ns = at_once_ns;
	return symbols;
}

struct symbols *symbols__new_lines(uint64_t at_once_ns)
{
	struct symbols *symbols = symbols__new(at_once_ns);

	if (symbols)
		symbols->of_lines = true;
	return symbols;
}

void symbols__allow(struct symbols *symbols, uint64_t more_ns)
{
	symbols->at_once_ns += more_ns;
}

/* --- the process's life ------------------------------------------------------------------------------------------- */

static void forget_fd(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* It has ended, or does not keep to what was agreed. */
static void lost(struct symbols *symbols)
{
	struct file *file = symbols->is_asked ? symbols->files.items[symbols->question.file] : NULL;
	int status = symbols_child__end(&symbols->child);
	bool cpu = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;

	symbols->is_asked = false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SYMBOLS_EXIT_UNCONFINED) {
		symbols->refused = true;
		log_warn("%s: whylate-symbols, which would read them, cannot give up its privileges on this kernel or "
			 "in this container",
			 symbols->of_lines ? "source lines are not known" : "inlined functions have no names");
		return;
	}
	log_debug("whylate-symbols has ended (status 0x%x)", status);
	if (!file)
		return;
	file->deaths += cpu ? DEATHS_MAX : 1;
	if (file->deaths < DEATHS_MAX)
		return;
	forget_fd(file);
	log_warn("%s '%s' %s from now on: reading its debugging information %s",
		 symbols->of_lines ? "source lines of" : "functions inlined in", file->name,
		 symbols->of_lines ? "are not known" : "have no names",
		 cpu ? "takes too much CPU time" : "ends whylate-symbols");
}

static int start(struct symbols *symbols)
{
	const struct symbols_work work = {.memory = symbols->of_lines ? LINES_MEMORY : SYMBOLS_MEMORY};
	uint64_t now_ts = monotonic_ns();
	int err;

	if (symbols->refused || (symbols->starts && now_ts - symbols->started_ts < RESTART_NS))
		return -EAGAIN;
	symbols->started_ts = now_ts;
	err = symbols_child__start_work(&symbols->child, &work);
	symbols->starts += !err;
	return err;
}

/* --- questions and answers ---------------------------------------------------------------------------------------- */

ssize_t symbols_answer_check(struct symbols_answer *answer, size_t sz, const struct symbols_question *question)
{
	bool is_line = question->ask == SYMBOLS_ASK_LINE;
	size_t at = 0, names_sz = sz - SYMBOLS_ANSWER_HEAD, most = is_line ? sizeof(answer->names) : INLINES_NAME_SZ;

	if (sz < SYMBOLS_ANSWER_HEAD || sz > sizeof(*answer) || answer->seq != question->seq ||
	    answer->cnt > (is_line ? 1 : INLINES_DEPTH_MAX) ||
	    (answer->cnt && ((!is_line && question->ask != SYMBOLS_ASK_INLINED) || answer->err)))
		return -EBADMSG;
	if (is_line && answer->cnt && (!answer->line || answer->line > INT32_MAX))
		return -EBADMSG;
	for (uint32_t i = 0; i < answer->cnt; i++) {
		size_t len = strnlen(answer->names + at, names_sz - at);

		if (!len || len == names_sz - at || len >= most)
			return -EBADMSG;
		proc_make_printable(answer->names + at);
		at += len + 1;
	}
	return at == names_sz ? (ssize_t)at : -EBADMSG;
}

int symbols_go_check(const struct symbols_answer *answer, size_t sz, const struct symbols_question *question)
{
	const struct symbols_go *go = &answer->go;
	const uint32_t offs[] = {go->goid, go->status, go->wait_reason, go->start_pc, go->sched, go->stopping_off};

	if (sz != SYMBOLS_ANSWER_HEAD + sizeof(*go) || answer->seq != question->seq || answer->cnt)
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]) && !answer->err; i++)
		if (offs[i] > GO_OFF_MAX)
			return -EBADMSG;
	if (!answer->err && go->sched_sz && (go->sched_sz < GO_SCHED_MIN || go->sched_sz > GO_SCHED_MAX))
		return -EBADMSG;
	return !answer->err && go->stopping_sz != 0 && go->stopping_sz != 1 && go->stopping_sz != 4 ? -EBADMSG : 0;
}

static struct known *known_of(struct file *file, uint64_t addr)
{
	return &file->known[random_mix(addr) & (KNOWN_CNT - 1)];
}

static void remember(struct file *file, uint64_t addr, const struct symbols_answer *answer, size_t sz)
{
	struct known *known = known_of(file, addr);

	free(known->names);
	known->names = sz ? malloc(sz) : NULL;
	known->cnt = known->names ? (uint8_t)answer->cnt : 0;
	known->line = answer->line;
	known->addr = addr;
	if (known->names)
		memcpy(known->names, answer->names, sz);
}

static void take_answer(struct symbols *symbols)
{
	struct file *file = symbols->files.items[symbols->question.file];
	struct symbols_answer answer;
	ssize_t got = recv(symbols->child.socket_fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC), sz;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	sz = got > 0 ? symbols_answer_check(&answer, (size_t)got, &symbols->question) : -EPIPE;
	if (sz < 0) {
		lost(symbols);
		return;
	}
	symbols->is_asked = false;
	if (symbols->question.ask == SYMBOLS_ASK_INLINED || symbols->question.ask == SYMBOLS_ASK_LINE)
		remember(file, symbols->question.addr, &answer, (size_t)sz);
	else if (answer.err)
		forget_fd(file);
}

/* Is there an answer to the last question by now? */
static bool is_answered(struct symbols *symbols, int timeout_ms)
{
	uint64_t end_ts = monotonic_ns() + (uint64_t)timeout_ms * 1000000;

	while (symbols->is_asked) {
		struct pollfd pollfd = {.fd = symbols->child.socket_fd, .events = POLLIN};
		uint64_t now_ts = monotonic_ns();
		int ready = poll(&pollfd, 1, now_ts < end_ts ? (int)((end_ts - now_ts) / 1000000) + 1 : 0);

		if (ready > 0)
			take_answer(symbols);
		else if (!ready || monotonic_ns() >= end_ts)
			break;
	}
	if (symbols->is_asked && monotonic_ns() - symbols->asked_ts > SILENCE_NS)
		lost(symbols);
	return !symbols->is_asked;
}

int symbols_go_layout(int fd, struct go_layout *layout, uint32_t *stopping_off)
{
	struct symbols *symbols = symbols__new(0);
	int err = symbols ? start(symbols) : -ENOMEM;
	struct symbols_answer answer = {0};
	struct pollfd pollfd = {.events = POLLIN};
	ssize_t got = -1;

	if (!err) {
		symbols->question = (struct symbols_question){.ask = SYMBOLS_ASK_GO, .seq = 1};
		symbols_child__limit_cpu(&symbols->child);
		pollfd.fd = symbols->child.socket_fd;
		if (symbols_child__send(&symbols->child, &symbols->question, sizeof(symbols->question), fd) &&
		    poll(&pollfd, 1, GO_PATIENCE_MS) > 0)
			got = recv(symbols->child.socket_fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
		err = got > 0 ? symbols_go_check(&answer, (size_t)got, &symbols->question) : -EBADMSG;
		if (!err && answer.err)
			err = answer.err == EBADMSG ? -EBADMSG : -ENOENT;
	}
	if (!err) {
		layout->goid = answer.go.goid;
		layout->status = answer.go.status;
		layout->wait_reason = answer.go.wait_reason;
		layout->start_pc = answer.go.start_pc;
		layout->sched = answer.go.sched;
		layout->sched_sz = answer.go.sched_sz;
		layout->stopping_sz = answer.go.stopping_sz;
		*stopping_off = answer.go.stopping_off;
	}
	symbols__free(symbols);
	return err;
}

/* True: answered. */
static bool ask(struct symbols *symbols, enum symbols_ask what, uint32_t idx, uint64_t addr)
{
	bool opens = what == SYMBOLS_ASK_OPEN || what == SYMBOLS_ASK_OPEN_LINES;
	int fd = opens ? symbols->files.items[idx]->fd : -1;
	uint64_t seq = symbols->question.seq + 1;

	symbols->question = (struct symbols_question){.ask = what, .file = idx, .seq = seq, .addr = addr};
	symbols->asked_ts = monotonic_ns();
	symbols_child__limit_cpu(&symbols->child);
	if (!symbols_child__send(&symbols->child, &symbols->question, sizeof(symbols->question), fd)) {
		lost(symbols);
		return false;
	}
	symbols->is_asked = true;
	return is_answered(symbols, PATIENCE_MS);
}

/* The process has the file, or its answer to that is under way.  True: the file can be asked about. */
static bool hand_over(struct symbols *symbols, uint32_t idx)
{
	struct file *file = symbols->files.items[idx];

	if (symbols->child.socket_fd < 0 && start(symbols))
		return false;
	if (file->start != symbols->starts) {
		file->start = symbols->starts;
		if (!ask(symbols, symbols->of_lines ? SYMBOLS_ASK_OPEN_LINES : SYMBOLS_ASK_OPEN, idx, 0))
			return false;
	}
	return file->fd >= 0 && symbols->child.socket_fd >= 0;
}

static bool has_time(const struct symbols *symbols, const struct file *file, uint64_t now_ts)
{
	double share_ns = (double)(now_ts - file->opened_ts) * SYMBOLS_TIME_SHARE;

	return file->fd >= 0 && file->spent_ns <= symbols->at_once_ns + (uint64_t)share_ns;
}

uint32_t symbols__open(struct symbols *symbols, int fd, const char *name)
{
	struct file *file = symbols->files.cnt < SYMBOLS_FILES_MAX ? calloc(1, sizeof(*file)) : NULL;
	struct stat st;

	if (!file || fstat(fd, &st) || !S_ISREG(st.st_mode) || vec_push(&symbols->files, file)) {
		free(file);
		close(fd);
		return 0;
	}
	file->fd = fd;
	file->opened_ts = monotonic_ns();
	snprintf(file->name, sizeof(file->name), "%s", name);
	if (is_answered(symbols, 0))
		(void)hand_over(symbols, (uint32_t)symbols->files.cnt - 1);
	file->spent_ns = monotonic_ns() - file->opened_ts;
	return (uint32_t)symbols->files.cnt;
}

/* What is known of the address by now; NULL: nothing yet. */
static const struct known *look_up(struct symbols *symbols, enum symbols_ask what, uint32_t idx, uint64_t addr)
{
	struct file *file = symbols->files.items[idx];
	const struct known *known = known_of(file, addr);
	uint64_t begin_ts = monotonic_ns();

	if (known->addr == addr)
		return known;
	/* The answer to an earlier question may be that to this one. */
	if (is_answered(symbols, 0) && known->addr != addr && has_time(symbols, file, begin_ts) &&
	    hand_over(symbols, idx))
		(void)ask(symbols, what, idx, addr);
	file->spent_ns += monotonic_ns() - begin_ts;
	return known->addr == addr ? known : NULL;
}

size_t symbols__inlined_at(struct symbols *symbols, uint32_t file_id, uint64_t addr,
			   const char *names[INLINES_DEPTH_MAX])
{
	const struct known *known;
	const char *name;

	if (!file_id || file_id > symbols->files.cnt)
		return 0;
	known = look_up(symbols, SYMBOLS_ASK_INLINED, file_id - 1, addr);
	if (!known)
		return 0;
	name = known->names;
	for (size_t i = 0; i < known->cnt; i++, name += strlen(name) + 1)
		names[i] = name;
	return known->cnt;
}

int symbols__line_at(struct symbols *symbols, uint32_t file_id, uint64_t addr, const char **name, uint32_t *line)
{
	const struct known *known;

	*name = NULL;
	if (!file_id || file_id > symbols->files.cnt)
		return 0;
	known = look_up(symbols, SYMBOLS_ASK_LINE, file_id - 1, addr);
	if (!known)
		return symbols->files.items[file_id - 1]->fd < 0 || symbols->refused ? 0 : -EAGAIN;
	*name = known->cnt ? known->names : NULL;
	*line = known->line;
	return 0;
}

uint32_t symbols__starts(const struct symbols *symbols)
{
	return symbols->starts;
}

void symbols__end(struct symbols *symbols)
{
	symbols_child__end(&symbols->child);
	symbols->is_asked = false;
	for (size_t i = 0; i < symbols->files.cnt; i++) {
		struct file *file = symbols->files.items[i];

		forget_fd(file);
		for (int k = 0; k < KNOWN_CNT; k++)
			free(file->known[k].names);
		free(file);
	}
	vec_free(&symbols->files);
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	symbols__end(symbols);
	free(symbols);
}
