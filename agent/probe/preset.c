// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/preset.h"

#include "base/log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".symbols"

bool preset_is(const char *list)
{
	return !strncmp(list, PRESET_PREFIX, strlen(PRESET_PREFIX));
}

static bool is_preset_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			return false;
	return *name;
}

/* The directory of the running program. */
static bool program_dir(char *dir, size_t sz)
{
	ssize_t len = readlink("/proc/self/exe", dir, sz - 1);

	if (len <= 0)
		return false;
	dir[len] = '\0';
	*strrchr(dir, '/') = '\0';
	return true;
}

/* The first of the places that exists; false where none does. */
static bool preset_dir(char *dir, size_t sz)
{
	static const char *const places[] = {"%s/../share/whylate/presets", "%s/presets"};
	const char *said = secure_getenv("WHYLATE_PRESETS");
	char program[PATH_MAX];

	if (said)
		return (size_t)snprintf(dir, sz, "%s", said) < sz;
	if (!program_dir(program, sizeof(program)))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if ((size_t)snprintf(dir, sz, places[i], program) < sz && !access(dir, R_OK | X_OK))
			return true;
	return false;
}

static int name_cmp(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_preset_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), tail = strlen(SUFFIX);

	return len > tail && !strcmp(entry->d_name + len - tail, SUFFIX);
}

static int refuse_unknown(const char *name, const char *dir)
{
	struct dirent **entries = NULL;
	char there[256] = "";
	int cnt = scandir(dir, &entries, is_preset_file, name_cmp);

	for (int i = 0; i < cnt; i++) {
		size_t len = strlen(there), name_len = strlen(entries[i]->d_name) - strlen(SUFFIX);

		snprintf(there + len, sizeof(there) - len, "%s%.*s", i ? ", " : "", (int)name_len, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (cnt <= 0)
		log_error("there is no preset '%.64s': there are none in %s", name, dir);
	else
		log_error("there is no preset '%.64s': there are %s", name, there);
	return -ENOENT;
}

int preset_path(const char *list, char *path, size_t sz)
{
	const char *name = list + strlen(PRESET_PREFIX);
	char dir[PATH_MAX];

	if (!preset_is(list)) {
		if ((size_t)snprintf(path, sz, "%s", list) < sz)
			return 0;
		log_error("the name of symbol list %.64s… is too long", list);
		return -ENAMETOOLONG;
	}
	if (!preset_dir(dir, sizeof(dir))) {
		log_error("the presets are not beside this program: WHYLATE_PRESETS=DIR says where, -s FILE does "
			  "without");
		return -ENOENT;
	}
	if (!is_preset_name(name) || (size_t)snprintf(path, sz, "%s/%s" SUFFIX, dir, name) >= sz || access(path, R_OK))
		return refuse_unknown(name, dir);
	return 0;
}
