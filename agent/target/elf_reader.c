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
/* Where CPUs are short, the process gets the time that an impatient thread gives it within so many times that. */
#define STRETCH  10
#define SLICE_NS 5000000ULL
/* An answer that came too late is kept for so long.  Until it is whole, an impatient thread looks for so long at most,
 * and not more often than this. */
#define KEPT_NS       SECOND_NS
#define LOOK_NS       2000000ULL
#define LOOK_EVERY_NS 20000000ULL
/* Bytes of symbols that such a thread has time for. */
#define HASTE_SZ_MAX (16ULL << 20)

/* Of variables of files, the last so many answers. */
#define VARIABLES_MAX 64

/* So many times as large a file that is late gives way. */
#define GIVES_WAY_FACTOR 4

/* What is read of which file. */
struct subject {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	uint64_t packed_off;
	enum elf_what what;
	uint64_t at;
	char name[ELF_VARIABLE_NAME_SZ];
};

/* The one file that is read, and how much of the answer is there. */
struct job {
	bool is_open, is_sent, is_whole, is_late;
	struct subject subject;
	struct symbols_table_question question;
	uint64_t file_sz;
	char path[512];
	unsigned int tries;
	uint64_t begin_ts; /* of the last try */
	uint64_t whole_ts, look_ts;
	struct elf_rows rows;
	int section; /* that comes next; -1: the head */
	size_t at;   /* bytes of it that are there */
};

static _Thread_local uint64_t patience_ns;
static _Thread_local uint32_t read_cnt;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	pid_t owner; /* a process that was forked leaves its parent's child alone */
	struct symbols_child child;
	struct job job;
	uint64_t seq;
	uint64_t used_ts;
	uint64_t wasted_ns;
	uint32_t late_cnt;
	bool refused; /* it cannot be confined, or has been tried too often */
	VEC(struct subject) given_up;
	struct {
		struct subject subject;
		struct elf_variable variable;
	} variables[VARIABLES_MAX];
	uint32_t variable_cnt;
} reader = {.child = SYMBOLS_CHILD_NONE};

static void end_child(void)
{
	if (reader.owner == getpid())
		symbols_child__end(&reader.child);
	else if (reader.child.socket_fd >= 0)
		close(reader.child.socket_fd);
	reader.child.socket_fd = -1;
}

/* A process that still owes an answer ends. */
static void drop_job(void)
{
	struct job *job = &reader.job;

	if (job->is_sent && !job->is_whole)
		end_child();
	elf_rows_free(&job->rows);
	*job = (struct job){0};
}

void elf_reader_patience(uint64_t ns)
{
	patience_ns = ns;
}

bool elf_reader_may_wait(void)
{
	return !patience_ns;
}

/* --- what it cannot read ------------------------------------------------------------------------------------------ */

/* Read in the same way. */
static bool is_same_file(const struct subject *a, const struct subject *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec && a->packed_off == b->packed_off && a->what == b->what;
}

static bool is_same(const struct subject *a, const struct subject *b)
{
	return is_same_file(a, b) && a->at == b->at && !strcmp(a->name, b->name);
}

static bool is_given_up(const struct subject *subject)
{
	for (size_t i = 0; i < reader.given_up.cnt; i++)
		if (is_same_file(&reader.given_up.items[i], subject))
			return true;
	return false;
}

static const char *const gone_without[] = {
	[ELF_READ_SYMBOLS] = "the functions of '%s' go without their symbols' names",
	[ELF_READ_HEAD] = "'%s' goes without its build id",
	[ELF_READ_FUNCTIONS] = "functions of '%s' without symbols are not known",
	[ELF_READ_GO] = "the goroutines of '%s' are not known",
	[ELF_READ_FRAMES] = "the stacks of '%s' are unwound by guesses",
	[ELF_READ_VARIABLE] = "what a language's runtime keeps in '%s' is not known",
	[ELF_READ_RELOCS] = "calls from '%s' into other files are not known",
	[ELF_READ_MARKERS] = "the USDT markers of '%s' are not known",
	[ELF_READ_DATUM] = "locks in the data of '%s' go without their symbols' names",
};

static void give_up(const struct job *job, const char *why)
{
	char what[sizeof(job->path) + 64];

	if (vec_push(&reader.given_up, job->subject))
		reader.refused = true;
	snprintf(what, sizeof(what), gone_without[job->subject.what], job->path);
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

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* One packet of exactly that size: 0 or -errno; -EAGAIN: not by that time. */
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
			return -EAGAIN;
		poll(&pollfd, 1, (int)((end_ts - now_ts) / 1000000) + 1);
	}
}

/* To sort so many symbols takes the agent itself longer than this thread may wait. */
static bool is_too_much(const struct job *job)
{
	uint64_t sz = 0;

	for (int i = 0; i < ELF_ROWS_SECTION_CNT; i++)
		sz += elf_rows_section_sz(&job->rows.head, i);
	return patience_ns && job->subject.what == ELF_READ_SYMBOLS && sz > HASTE_SZ_MAX;
}

/* The head says what the process has found.  -EFBIG: it is too much. */
static int receive_head(struct job *job, uint64_t end_ts)
{
	const struct symbols_table_question *question = &job->question;
	struct elf_rows_head *head = &job->rows.head;
	int err = receive(head, sizeof(*head), end_ts);

	if (err)
		return err;
	if (head->seq != question->head.seq || head->symbols_taken > question->left || head->err > INT_MAX)
		return -EBADMSG;
	if (question->is_debug) {
		memcpy(head->code, question->code, sizeof(head->code));
		head->code_cnt = question->code_cnt;
	}
	job->section = 0;
	if (elf_rows_check_head(head, question->is_debug ? INT64_MAX : job->file_sz))
		return -EBADMSG;
	return is_too_much(job) ? -EFBIG : 0;
}

/* Of the section that comes next: 0, or -errno as receive(). */
static int receive_part(struct job *job, uint64_t end_ts)
{
	uint64_t left = elf_rows_section_sz(&job->rows.head, job->section) - job->at;
	size_t part_sz = left < ELF_ROWS_PACKET ? left : ELF_ROWS_PACKET, *cnt;
	void **items = elf_rows_section(&job->rows, job->section, &cnt);
	int err;

	if (left && !*items)
		*items = malloc(left);
	if (left && !*items)
		return -ENOMEM;
	err = part_sz ? receive((char *)*items + job->at, part_sz, end_ts) : 0;
	if (err)
		return err;
	job->at += part_sz;
	if (part_sz < left)
		return 0;
	*cnt = job->rows.head.cnt[job->section++];
	job->at = 0;
	return 0;
}

/* 0: it is there in whole, and right; -EAGAIN: not by that time. */
static int receive_rows(struct job *job, uint64_t end_ts)
{
	int err = job->section < 0 ? receive_head(job, end_ts) : 0;

	while (!err && job->section < ELF_ROWS_SECTION_CNT) {
		err = receive_part(job, end_ts);
		if (!err && job->section < ELF_ROWS_SECTION_CNT && monotonic_ns() >= end_ts)
			err = -EAGAIN;
	}
	return err ? err : elf_rows_check(&job->rows);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static void open_job(const struct elf_read *read, const struct subject *subject, const struct stat *st)
{
	struct job *job = &reader.job;
	char link[64];
	ssize_t len;

	*job = (struct job){.is_open = true, .subject = *subject, .file_sz = (uint64_t)st->st_size};
	job->question = (struct symbols_table_question){
		.head = {.ask = SYMBOLS_ASK_TABLE},
		.packed_off = read->packed_off,
		.packed_sz = read->packed_sz,
		.left = read->left ? *read->left : UINT64_MAX,
		.is_debug = read->code != NULL,
		.what = read->what,
		.at = read->at,
		.code_cnt = read->code_cnt,
	};
	memcpy(job->question.name, subject->name, sizeof(subject->name));
	if (read->code)
		memcpy(job->question.code, read->code, read->code_cnt * sizeof(*read->code));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", read->fd);
	len = readlink(link, job->path, sizeof(job->path) - 1);
	job->path[len > 0 ? len : 0] = '\0';
	proc_make_printable(job->path);
}

/* The process that there is may have been ended since. */
static int send_question(struct job *job, int fd)
{
	int err;

	job->tries++;
	job->section = -1;
	job->question.head.seq = ++reader.seq;
	for (int i = 0; i < TRIES; i++) {
		err = reader.child.socket_fd < 0 ? symbols_child__start(&reader.child) : 0;
		if (err)
			return err;
		symbols_child__limit_cpu(&reader.child);
		job->begin_ts = monotonic_ns();
		job->is_sent = symbols_child__send(&reader.child, &job->question, sizeof(job->question), fd);
		if (job->is_sent)
			return 0;
		end_child();
	}
	return -EPIPE;
}

/* It has ended, or answers what it may not, or nothing.  True: the file is tried again. */
static bool try_failed(struct job *job, bool is_too_long)
{
	const char *why = cause(symbols_child__end(&reader.child));

	count_waste(job->begin_ts);
	elf_rows_free(&job->rows);
	memset(&job->rows, 0, sizeof(job->rows));
	job->is_sent = false;
	job->at = 0;
	if (is_too_long)
		why = "takes too long";
	else if (!why && job->tries == TRIES)
		why = "ends whylate-symbols";
	if (why && !reader.refused)
		give_up(job, why);
	return !why && !reader.refused;
}

/*
 * 0: the answer is there; -EAGAIN: not by that time, or the file, of which fd is -1, has to be asked for again;
 * -ENODATA: the file is given up; another -errno of a failure that has nothing to do with the file.
 */
static int advance(struct job *job, int fd, uint64_t end_ts)
{
	uint64_t last_ts;
	int err = 0;

	while (!job->is_whole) {
		if (!job->is_sent)
			err = fd < 0 ? -EAGAIN : send_question(job, fd);
		if (err)
			return err;
		last_ts = job->begin_ts + PATIENCE_NS;
		err = receive_rows(job, end_ts < last_ts ? end_ts : last_ts);
		if (err == -ENOMEM || (err == -EAGAIN && monotonic_ns() < last_ts))
			return err;
		if (err == -EFBIG) {
			give_up(job, "takes longer than records can wait");
			return -ENODATA;
		}
		job->is_whole = !err;
		job->whole_ts = monotonic_ns();
		if (err && !try_failed(job, err == -EAGAIN))
			return -ENODATA;
		err = 0;
	}
	return 0;
}

/*
 * A compiler beside the target may take seconds to be read where CPUs are short.  A much smaller file is not kept
 * waiting for it: the large one is read anew afterwards, and gives way no more often than there are such files.
 */
static bool gives_way(const struct job *job, const struct stat *st)
{
	return (uint64_t)st->st_size < job->file_sz / GIVES_WAY_FACTOR;
}

/* 0: the subject is that of the job; -EAGAIN: another one is read. */
static int turn_to(const struct subject *subject, const struct elf_read *read, const struct stat *st)
{
	struct job *job = &reader.job;
	bool may_wait = !patience_ns;

	if (job->is_open && is_same(&job->subject, subject))
		return 0;
	if (job->is_sent && advance(job, -1, may_wait ? UINT64_MAX : 0) == -EAGAIN && job->is_sent) {
		if (!gives_way(job, st))
			return -EAGAIN;
		/* It is counted when it is late again. */
		reader.late_cnt -= job->is_late;
	}
	if (job->is_whole && !may_wait && monotonic_ns() - job->whole_ts < KEPT_NS)
		return -EAGAIN;
	drop_job();
	open_job(read, subject, st);
	return 0;
}

static bool is_silent(const struct job *job)
{
	struct pollfd pollfd = {.fd = reader.child.socket_fd, .events = POLLIN};

	return job->is_sent && !job->is_whole && !poll(&pollfd, 1, 0);
}

/* As advance(), for as long as this thread may wait. */
static int wait_for(struct job *job, int fd)
{
	uint64_t now_ts = monotonic_ns(), before_ns = symbols_child__cpu_ns(&reader.child), cpu_ns;
	int err;

	if (!patience_ns)
		return advance(job, fd, UINT64_MAX);
	if (job->is_late && (now_ts < job->look_ts || is_silent(job)))
		return -EAGAIN;
	do {
		err = advance(job, fd, monotonic_ns() + (job->is_late ? LOOK_NS : SLICE_NS));
		cpu_ns = symbols_child__cpu_ns(&reader.child);
		cpu_ns -= cpu_ns < before_ns ? 0 : before_ns;
	} while (err == -EAGAIN && !job->is_late && cpu_ns < patience_ns &&
		 monotonic_ns() - now_ts < STRETCH * patience_ns);
	job->look_ts = now_ts + LOOK_EVERY_NS;
	if (err == -EAGAIN && !job->is_late) {
		job->is_late = true;
		reader.late_cnt++;
		log_debug("reading '%s' takes longer than %.0f ms of CPU time", job->path, (double)patience_ns / 1e6);
	}
	return err;
}

/* Every process of the same files is asked for the same ones. */
static bool find_variable(const struct subject *subject, struct elf_variable *variable)
{
	for (uint32_t i = 0; i < reader.variable_cnt && i < VARIABLES_MAX; i++)
		if (is_same(&reader.variables[i].subject, subject)) {
			*variable = reader.variables[i].variable;
			return true;
		}
	return false;
}

static void keep_variable(const struct subject *subject, const struct elf_variable *variable)
{
	uint32_t i = reader.variable_cnt++ % VARIABLES_MAX;

	reader.variables[i].subject = *subject;
	reader.variables[i].variable = *variable;
}

static int read_now(const struct elf_read *read, const struct stat *st, struct elf_rows *rows)
{
	struct subject subject = {st->st_dev, st->st_ino, st->st_ctim, read->packed_off, read->what, read->at, ""};
	struct job *job = &reader.job;
	int err;

	snprintf(subject.name, sizeof(subject.name), "%s", read->name ?: "");
	if (read->what == ELF_READ_VARIABLE && find_variable(&subject, &rows->head.variable))
		return 0;
	if (reader.refused || is_given_up(&subject))
		return -ENODATA;
	err = turn_to(&subject, read, st);
	if (!err)
		err = wait_for(job, read->fd);
	if (err == -EAGAIN)
		return err;
	if (!err && read->left)
		*read->left -= job->rows.head.symbols_taken < *read->left ? job->rows.head.symbols_taken : *read->left;
	if (!err && (job->rows.head.err == ENOMEM || (job->rows.head.err == EFBIG && !read->left))) {
		give_up(job, "takes more memory than there is for it");
		err = -ENODATA;
	}
	if (!err) {
		read_cnt++;
		*rows = job->rows;
		memset(&job->rows, 0, sizeof(job->rows));
		if (read->what == ELF_READ_VARIABLE && !rows->head.err)
			keep_variable(&subject, &rows->head.variable);
	}
	drop_job();
	return err ? err : -(int)rows->head.err;
}

/* False: another thread has it, and this one may not wait. */
static bool lock(void)
{
	return !(patience_ns ? pthread_mutex_trylock(&mutex) : pthread_mutex_lock(&mutex));
}

int elf_reader_read(const struct elf_read *read, struct elf_rows *rows)
{
	struct stat st;
	int err;

	if (fstat(read->fd, &st))
		return -errno;
	if (!lock())
		return -EAGAIN;
	if (reader.owner != getpid()) {
		drop_job();
		end_child();
		reader.owner = getpid();
	}
	err = read_now(read, &st, rows);
	reader.used_ts = monotonic_ns();
	pthread_mutex_unlock(&mutex);
	return err;
}

int elf_reader_variable(int fd, const char *name, unsigned kind, struct elf_variable *variable)
{
	const struct elf_read read = {.fd = fd, .what = ELF_READ_VARIABLE, .at = kind, .name = name};
	struct elf_rows rows = {0};
	int err = strlen(name) < ELF_VARIABLE_NAME_SZ ? elf_reader_read(&read, &rows) : -ENAMETOOLONG;

	*variable = rows.head.variable;
	elf_rows_free(&rows);
	return err == -ENODATA || (!err && !variable->is_there) ? -ENOENT : err;
}

uint32_t elf_reader_cnt(void)
{
	return read_cnt;
}

void elf_reader_rest(uint64_t idle_ns)
{
	if (!lock())
		return;
	if (monotonic_ns() - reader.used_ts >= idle_ns) {
		drop_job();
		end_child();
	}
	pthread_mutex_unlock(&mutex);
}

void elf_reader_counts(struct elf_reader_counts *counts)
{
	pthread_mutex_lock(&mutex);
	counts->given_up = (uint32_t)reader.given_up.cnt;
	counts->late = reader.late_cnt;
	pthread_mutex_unlock(&mutex);
}
