// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_reader.h"

#include "base/clock.h"
#include "base/log.h"
#include "target/proc_file.h"
#include "target/symbols_child.h"
#include "target/symbols_wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* An answer that has not come in whole by then does not come. */
#define PATIENCE_NS (60 * SECOND_NS)
/* One may have been ended for want of memory elsewhere. */
#define TRIES 2

struct given_up {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	uint64_t packed_off;
	enum elf_what what;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	pid_t owner; /* a process that was forked leaves its parent's child alone */
	struct symbols_child child;
	uint64_t seq;
	uint64_t used_ts;
	uint64_t wasted_ns;
	bool refused; /* it cannot be confined, or has been tried too often */
	VEC(struct given_up) given_up;
} reader = {.child = SYMBOLS_CHILD_NONE};

static void end_child(void)
{
	if (reader.owner == getpid())
		symbols_child__end(&reader.child);
	else if (reader.child.socket_fd >= 0)
		close(reader.child.socket_fd);
	reader.child.socket_fd = -1;
}

/* --- what it cannot read ------------------------------------------------------------------------------------------ */

static bool is_given_up(const struct stat *st, const struct elf_read *read)
{
	for (size_t i = 0; i < reader.given_up.cnt; i++) {
		const struct given_up *file = &reader.given_up.items[i];

		if (file->dev == st->st_dev && file->ino == st->st_ino && file->changed.tv_sec == st->st_ctim.tv_sec &&
		    file->changed.tv_nsec == st->st_ctim.tv_nsec && file->packed_off == read->packed_off &&
		    file->what == read->what)
			return true;
	}
	return false;
}

static const char *const gone_without[] = {
	[ELF_READ_SYMBOLS] = "the functions of '%s' go without their symbols' names",
	[ELF_READ_HEAD] = "'%s' goes without its build id",
};

static void give_up(const struct elf_read *read, const struct stat *st, const char *why)
{
	struct given_up file = {st->st_dev, st->st_ino, st->st_ctim, read->packed_off, read->what};
	char link[64], path[PATH_MAX] = "", what[PATH_MAX + 64];
	ssize_t len;

	if (vec_push(&reader.given_up, file))
		reader.refused = true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", read->fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	proc_make_printable(path);
	snprintf(what, sizeof(what), gone_without[read->what], path);
	log_warn("%s: reading the file %s", what, why);
}

/* After the process has ended, or has answered what it may not: is the file the cause for good? */
static const char *cause(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == SYMBOLS_EXIT_UNCONFINED) {
		reader.refused = true;
		log_warn("symbol tables are not read, and functions have no names: whylate-symbols, which would read "
			 "them, cannot give up its privileges on this kernel or in this container");
		return NULL;
	}
	log_debug("whylate-symbols has ended (status 0x%x)", status);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "takes too much CPU time" : NULL;
}

static void count_waste(uint64_t since_ts)
{
	reader.wasted_ns += monotonic_ns() - since_ts;
	if (reader.refused || reader.wasted_ns < READER_WASTED_MAX_S * SECOND_NS)
		return;
	reader.refused = true;
	log_warn("no more symbol tables are read: files that could not be read have taken %d s", READER_WASTED_MAX_S);
}

/* --- question and answer ------------------------------------------------------------------------------------------ */

/* One packet of exactly that size: 0 or -errno. */
static int receive(void *buf, size_t sz, uint64_t end_ts)
{
	struct pollfd pollfd = {.fd = reader.child.socket_fd, .events = POLLIN};
	uint64_t now_ts;
	ssize_t got;

	for (;;) {
		got = recv(reader.child.socket_fd, buf, sz, MSG_DONTWAIT | MSG_TRUNC);
		if (got >= 0)
			return got == (ssize_t)sz ? 0 : got ? -EBADMSG : -EPIPE;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		now_ts = monotonic_ns();
		if (now_ts >= end_ts)
			return -ETIMEDOUT;
		poll(&pollfd, 1, (int)((end_ts - now_ts) / 1000000) + 1);
	}
}

static int receive_section(void **items, size_t *cnt, const struct elf_rows_head *head, int section, uint64_t end_ts)
{
	uint64_t left = elf_rows_section_sz(head, section);
	char *at = left ? malloc(left) : NULL;
	int err = left && !at ? -ENOMEM : 0;

	free(*items);
	*items = at;
	*cnt = err ? 0 : head->cnt[section];
	for (size_t part_sz; !err && left; at += part_sz, left -= part_sz) {
		part_sz = left < ELF_ROWS_PACKET ? left : ELF_ROWS_PACKET;
		err = receive(at, part_sz, end_ts);
	}
	return err;
}

/* 0; -errno: there is no right answer.  The head says what the process has found. */
static int receive_rows(const struct elf_read *read, const struct symbols_table_question *question, uint64_t file_sz,
			struct elf_rows *rows)
{
	uint64_t end_ts = monotonic_ns() + PATIENCE_NS;
	struct elf_rows_head *head = &rows->head;
	int err = receive(head, sizeof(*head), end_ts);

	if (!err && (head->seq != question->head.seq || head->symbols_taken > question->left || head->err > INT_MAX))
		err = -EBADMSG;
	if (!err && read->code) {
		memcpy(head->code, question->code, sizeof(head->code));
		head->code_cnt = question->code_cnt;
	}
	if (!err)
		err = elf_rows_check_head(head, read->code ? INT64_MAX : file_sz);
	if (!err)
		err = receive_section((void **)&rows->functions.items, &rows->functions.cnt, head, ELF_ROWS_FUNCTIONS,
				      end_ts);
	if (!err)
		err = receive_section((void **)&rows->addressed.items, &rows->addressed.cnt, head, ELF_ROWS_ADDRESSED,
				      end_ts);
	if (!err)
		err = receive_section((void **)&rows->others.items, &rows->others.cnt, head, ELF_ROWS_OTHERS, end_ts);
	if (!err)
		err = receive_section((void **)&rows->names.items, &rows->names.cnt, head, ELF_ROWS_NAMES, end_ts);
	return err ? err : elf_rows_check(rows);
}

static void make_question(const struct elf_read *read, struct symbols_table_question *question)
{
	*question = (struct symbols_table_question){
		.head = {.ask = SYMBOLS_ASK_TABLE, .seq = ++reader.seq},
		.packed_off = read->packed_off,
		.packed_sz = read->packed_sz,
		.left = read->left ? *read->left : UINT64_MAX,
		.is_debug = read->code != NULL,
		.what = read->what,
		.code_cnt = read->code_cnt,
	};
	if (read->code)
		memcpy(question->code, read->code, read->code_cnt * sizeof(*read->code));
}

/* The process that there is may have been ended since. */
static int send_question(const struct elf_read *read, const struct symbols_table_question *question)
{
	int err;

	for (int i = 0; i < TRIES; i++) {
		err = reader.child.socket_fd < 0 ? symbols_child__start(&reader.child) : 0;
		if (err)
			return err;
		symbols_child__limit_cpu(&reader.child);
		if (symbols_child__send(&reader.child, question, sizeof(*question), read->fd))
			return 0;
		end_child();
	}
	return -EPIPE;
}

/* 0: there is an answer; or -errno, of a failure that has nothing to do with the file; -ENODATA: it is given up. */
static int ask(const struct elf_read *read, const struct stat *st, struct elf_rows *rows)
{
	struct symbols_table_question question;
	const char *why = NULL;
	int err;

	for (int i = 0; i < TRIES && !why && !reader.refused; i++) {
		uint64_t begin_ts = monotonic_ns();

		make_question(read, &question);
		err = send_question(read, &question);
		if (err)
			return err;
		err = receive_rows(read, &question, st->st_size, rows);
		if (!err)
			return 0;
		elf_rows_free(rows);
		memset(&rows->head, 0, sizeof(rows->head));
		if (err == -ENOMEM)
			return err;
		why = cause(symbols_child__end(&reader.child));
		count_waste(begin_ts);
		if (err == -ETIMEDOUT)
			why = "takes too long";
	}
	if (!reader.refused)
		give_up(read, st, why ? why : "ends whylate-symbols");
	return -ENODATA;
}

int elf_reader_read(const struct elf_read *read, struct elf_rows *rows)
{
	struct stat st;
	int err;

	if (fstat(read->fd, &st))
		return -errno;
	pthread_mutex_lock(&mutex);
	if (reader.owner != getpid()) {
		end_child();
		reader.owner = getpid();
	}
	err = reader.refused || is_given_up(&st, read) ? -ENODATA : ask(read, &st, rows);
	reader.used_ts = monotonic_ns();
	if (!err && read->left)
		*read->left -= rows->head.symbols_taken;
	if (!err && (rows->head.err == ENOMEM || (rows->head.err == EFBIG && !read->left))) {
		give_up(read, &st, "takes more memory than there is for it");
		err = -ENODATA;
	}
	pthread_mutex_unlock(&mutex);
	return err ? err : -(int)rows->head.err;
}

void elf_reader_rest(uint64_t idle_ns)
{
	pthread_mutex_lock(&mutex);
	if (monotonic_ns() - reader.used_ts >= idle_ns)
		end_child();
	pthread_mutex_unlock(&mutex);
}
