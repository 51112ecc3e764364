// SPDX-License-Identifier: GPL-2.0-or-later
#include "harness.h"
#include "disturbed.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct path temp_root;
static unsigned int skips;
static struct {
	enum live_form only;
	bool chosen;
	unsigned int left_out[LIVE_FORM_CNT];
} forms;
static void (*check_sink)(bool held, const char *file, unsigned int line, const char *text);

void checks_go_to(void (*sink)(bool held, const char *file, unsigned int line, const char *text))
{
	check_sink = sink;
}

bool check_that(bool held, const char *file, unsigned int line, const char *what, const char *fmt, ...)
{
	char text[4096];
	va_list args;
	int len;

	len = snprintf(text, sizeof(text), "%s", what);
	if (!held && fmt && len > 0 && (size_t)len < sizeof(text) - 3) {
		va_start(args, fmt);
		strcpy(text + len, ": ");
		vsnprintf(text + len + 2, sizeof(text) - (size_t)len - 2, fmt, args);
		va_end(args);
	}
	if (check_sink)
		check_sink(held, file, line, held ? what : text);
	else
		CU_assertImplementation(held, line, held ? what : text, file, "", CU_FALSE);
	return held;
}

void skip(const char *name, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	printf("\n    SKIP %s: ", name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	skips++;
}

unsigned int skip_cnt(void)
{
	return skips;
}

void skips_add(unsigned int cnt)
{
	skips += cnt;
}

void live_choose(enum live_form form)
{
	forms.only = form;
	forms.chosen = true;
}

static bool is_chosen(enum live_form form)
{
	return forms.chosen ? form == forms.only : form != LONG || getenv("LONG");
}

int live_suite(const char *name, const struct live_test *tests, unsigned int test_cnt)
{
	CU_pSuite suite = CU_add_suite_with_setup_and_teardown(name, NULL, NULL, disturbed_begin, disturbed_end);
	unsigned int short_cnt = 0, active_cnt = 0;

	for (unsigned int i = 0; suite && i < test_cnt; i++) {
		CU_pTest test = CU_add_test(suite, tests[i].name, tests[i].run);

		if (!test)
			break;
		test->fActive = is_chosen(tests[i].form);
		active_cnt += test->fActive;
		forms.left_out[tests[i].form] += !test->fActive;
		short_cnt += tests[i].form == SHORT;
	}
	if (CU_get_error()) {
		fprintf(stderr, "suite %s: %s\n", name, CU_get_error_msg());
		return CU_get_error();
	}
	suite->fActive = active_cnt > 0;
	if (!short_cnt)
		fprintf(stderr, "suite %s: none of its tests is SHORT, so that make test would leave it out\n", name);
	return !short_cnt;
}

void live_print_left_out(void)
{
	static const char *const names[] = {[SHORT] = "short", [REST] = "rest", [LONG] = "long (LONG=1)"};

	for (int form = 0; form < LIVE_FORM_CNT; form++)
		if (forms.left_out[form])
			printf("%u live tests of form %s left out\n", forms.left_out[form], names[form]);
}

int temp_open(void)
{
	strcpy(temp_root.s, "/tmp/whylate-live-XXXXXX");
	if (!mkdtemp(temp_root.s))
		return -errno;
	/* Reports are made by somebody without privilege, too. */
	return chmod(temp_root.s, 0755) ? -errno : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void temp_remove(void)
{
	if (temp_root.s[0])
		nftw(temp_root.s, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

struct path temp_path(const char *fmt, ...)
{
	struct path path = temp_root;
	size_t len = strlen(path.s);
	va_list args;

	path.s[len++] = '/';
	va_start(args, fmt);
	vsnprintf(path.s + len, sizeof(path.s) - len, fmt, args);
	va_end(args);
	return path;
}

bool is_sanitized(void)
{
	return getenv("WHYLATE_SANITIZED");
}

static const struct passwd *shard_owner;

struct path temp_unused(const char *name)
{
	struct path path = temp_path("%s", name);

	for (int n = 2; is_there(path.s); n++)
		path = temp_path("%s-%d", name, n);
	return path;
}

static int give_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);

	(void)ftw;
	if (type == FTW_F && len > 4 && !strcmp(path + len - 4, ".wls") && st->st_uid != shard_owner->pw_uid)
		(void)!chown(path, shard_owner->pw_uid, shard_owner->pw_gid);
	return 0;
}

void temp_give_shards(const char *user)
{
	shard_owner = getpwnam(user);
	if (shard_owner && temp_root.s[0])
		nftw(temp_root.s, give_one, 32, FTW_PHYS);
}

int file_write(const char *path, const void *data, size_t sz)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), err = 0;

	if (fd < 0)
		return -errno;
	for (size_t put = 0; put < sz && !err;) {
		ssize_t part = write(fd, (const char *)data + put, sz - put);

		if (part < 0)
			err = -errno;
		else
			put += (size_t)part;
	}
	close(fd);
	return err;
}

int file_write_secret(const char *path, const void *data, size_t sz)
{
	int err = file_write(path, data, sz);

	if (!err && (chmod(path, 0600) || chown(path, 65534, 65534)))
		err = -errno;
	return err;
}

char *file_read(const char *path, size_t *sz)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0, room = 1 << 16;
	char *data = NULL, *grown;
	ssize_t got = 1;

	/* Files in /proc do not know how long they are. */
	while (fd >= 0 && got > 0) {
		room *= data ? 2 : 1;
		grown = realloc(data, room);
		if (!grown)
			break;
		data = grown;
		while (have < room - 1 && (got = read(fd, data + have, room - 1 - have)) > 0)
			have += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	if (!data)
		return NULL;
	data[have] = '\0';
	if (sz)
		*sz = have;
	return data;
}

bool is_there(const char *path)
{
	return !access(path, F_OK);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static struct path whylate_copied;

int whylate_copy(void)
{
	const char *path = getenv("WHYLATE");
	size_t sz = 0;
	char *data;
	int err;

	path = path ? path : "build/whylate";
	data = file_read(path, &sz);
	whylate_copied = temp_path("whylate");
	err = data ? file_write(whylate_copied.s, data, sz) : -errno;
	free(data);
	if (!err && chmod(whylate_copied.s, 0755))
		err = -errno;
	if (err)
		fprintf(stderr, "cannot copy %s: %s (WHYLATE names another one)\n", path, strerror(-err));
	return err;
}

const char *whylate_path(void)
{
	return whylate_copied.s;
}

const char *workloads_path(void)
{
	const char *path = getenv("WORKLOADS");

	return path ? path : "build/workloads";
}

struct path built_path(const char *fmt, ...)
{
	struct path path;
	int len = snprintf(path.s, sizeof(path.s), "%s/../", workloads_path());
	va_list args;

	va_start(args, fmt);
	if (len > 0 && (size_t)len < sizeof(path.s))
		vsnprintf(path.s + len, sizeof(path.s) - (size_t)len, fmt, args);
	va_end(args);
	return path;
}
