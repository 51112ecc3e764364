// SPDX-License-Identifier: GPL-2.0-or-later
/* A process's arguments as one line, without the secrets that people put there. */
#include "target/cmdline.h"

#include "target/proc_file.h"
#include "target/target.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MASK        "***"
#define NAME_MAX_SZ 64
#define ARGS_SZ     16384

/* Parts of the names of what holds a secret; the names of some that hold none have them, too, and are masked as well.
 */
static const char *const secret_parts[] = {
	"password",   "passwd",      "passphrase",  "secret",        "token",      "credential",
	"apikey",     "api-key",     "api_key",     "accesskey",     "access-key", "access_key",
	"privatekey", "private-key", "private_key", "authorization", "cookie",     "requirepass",
};
/* Whole names, and ends of names behind - _ or a point. */
static const char *const secret_names[] = {"pass", "pwd", "pw", "auth", "key", "masterauth", "dsn"};

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static bool name_is_secret(const char *begin, size_t sz)
{
	char name[NAME_MAX_SZ];

	while (sz && (*begin == '-' || *begin == '.')) {
		begin++;
		sz--;
	}
	/* The end of a name says what it is. */
	if (sz >= sizeof(name)) {
		begin += sz - (sizeof(name) - 1);
		sz = sizeof(name) - 1;
	}
	for (size_t i = 0; i < sz; i++)
		name[i] = (char)tolower((unsigned char)begin[i]);
	name[sz] = 0;
	for (size_t i = 0; i < sizeof(secret_parts) / sizeof(secret_parts[0]); i++)
		if (strstr(name, secret_parts[i]))
			return true;
	for (size_t i = 0; i < sizeof(secret_names) / sizeof(secret_names[0]); i++) {
		size_t len = strlen(secret_names[i]);

		if (sz >= len && !strcmp(name + sz - len, secret_names[i]) &&
		    (sz == len || !isalnum((unsigned char)name[sz - len - 1])))
			return true;
	}
	return false;
}

/* Where a secret begins in the argument, or NULL: behind NAME=, NAME: or " --NAME ", or behind the user in a URL. */
static const char *find_secret(const char *arg)
{
	const char *scheme, *at, *colon;

	for (const char *sign = arg; (sign = strpbrk(sign, "=:")); sign++) {
		const char *begin = sign;

		while (begin > arg && is_of_name(begin[-1]))
			begin--;
		if (sign[1] && strncmp(sign, "://", 3) && name_is_secret(begin, (size_t)(sign - begin)))
			return sign + 1 + strspn(sign + 1, " ");
	}
	/* In what a shell is given, or a title that a program gave itself. */
	for (const char *word = arg; (word = strstr(word, " -")); word++) {
		size_t sz = strcspn(word + 1, " ");

		if (word[1 + sz] && name_is_secret(word + 1, sz))
			return word + 1 + sz + 1;
	}
	scheme = strstr(arg, "://");
	if (!scheme)
		return NULL;
	scheme += 3;
	at = scheme + strcspn(scheme, "/?#");
	at = memrchr(scheme, '@', (size_t)(at - scheme));
	colon = at ? memchr(scheme, ':', (size_t)(at - scheme)) : NULL;
	return colon && colon + 1 < at ? colon + 1 : NULL;
}

static bool next_is_secret(const char *arg)
{
	return arg[0] == '-' && !strpbrk(arg, "=:") && name_is_secret(arg, strlen(arg));
}

/* mysql and its kin take the password right behind -p. */
static bool is_mysql(const char *program)
{
	const char *slash = strrchr(program, '/');

	program = slash ? slash + 1 : program;
	return !strncmp(program, "mysql", 5) || !strncmp(program, "mariadb", 7);
}

struct line {
	char *text;
	size_t sz, room;
};

static void line__add(struct line *line, const char *text, size_t sz)
{
	if (sz > line->room - 1 - line->sz)
		sz = line->room - 1 - line->sz;
	memcpy(line->text + line->sz, text, sz);
	line->sz += sz;
	line->text[line->sz] = 0;
}

void cmdline_join(const char *args, size_t sz, char *text, size_t room)
{
	struct line line = {text, 0, room};
	bool secret = false, mysql = sz && is_mysql(args);

	text[0] = 0;
	while (sz && !args[sz - 1])
		sz--;
	for (const char *arg = args, *end = args + sz; arg < end; arg += strlen(arg) + 1) {
		const char *from = secret && *arg && (arg[0] != '-' || !arg[1]) ? arg : find_secret(arg);

		if (mysql && !from && !strncmp(arg, "-p", 2) && arg[2])
			from = arg + 2;
		if (arg != args)
			line__add(&line, " ", 1);
		line__add(&line, arg, from ? (size_t)(from - arg) : strlen(arg));
		if (from)
			line__add(&line, MASK, sizeof(MASK) - 1);
		secret = !from && next_is_secret(arg);
	}
}

int target_cmdline(pid_t pid, char *buf, size_t sz)
{
	char args[ARGS_SZ];
	ssize_t len;

	if (!sz)
		return -EINVAL;
	len = proc_read(args, sizeof(args), "/proc/%d/cmdline", pid);
	if (len < 0)
		return (int)len;
	cmdline_join(args, (size_t)len, buf, sz);
	proc_make_printable(buf);
	return 0;
}
