// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/limits.h"

#include "base/log.h"
#include "base/user_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_SZ 256

/* What may change while a recording is under way. */
static const char *const names[] = {"rate", "tail", "baseline", "budget", "max-loss", "spool-max", "spool-age"};

static const struct option_row *row_of(const struct option_group *group, const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t r = 0; !strcmp(names[i], name) && r < group->row_cnt; r++)
			if (!strcmp(group->rows[r].name, name))
				return &group->rows[r];
	return NULL;
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static int take_line(struct record_options *options, const char *path, unsigned int line_no, char *line)
{
	const struct option_group group = record_options_group(options);
	char *comment = strchr(line, '#'), *name, *value, where[512];
	const struct option_row *row;

	if (comment)
		*comment = '\0';
	name = trim(line);
	if (!*name)
		return 0;
	value = name + strcspn(name, " \t=");
	if (*value)
		*value++ = '\0';
	value += strspn(value, " \t=");
	row = row_of(&group, name);
	if (!row) {
		log_error("%s:%u: '%.64s' is no limit: rate, tail, baseline, budget, max-loss, spool-max and spool-age "
			  "are",
			  path, line_no, name);
		return -EINVAL;
	}
	if (!*value) {
		log_error("%s:%u: '%s' wants a value", path, line_no, name);
		return -EINVAL;
	}
	snprintf(where, sizeof(where), "%s:%u", path, line_no);
	return options_take_row(&group, row, where, value) ? -EINVAL : 0;
}

int limits_read(const char *path, struct record_options *options)
{
	struct record_options changed = *options;
	FILE *file = user_file_stream(path);
	char line[LINE_MAX_SZ];
	unsigned int line_no = 0;
	int err = 0;

	if (!file) {
		err = -errno;
		log_error("cannot read the limits in '%s': %s", path, strerror(errno));
		return err;
	}
	while (!err && fgets(line, sizeof(line), file)) {
		line_no++;
		if (!strchr(line, '\n') && !feof(file)) {
			log_error("%s:%u: the line is too long", path, line_no);
			err = -EINVAL;
		} else {
			err = take_line(&changed, path, line_no, line);
		}
	}
	if (!err && ferror(file)) {
		err = -EIO;
		log_error("cannot read the limits in '%s': %s", path, strerror(EIO));
	}
	fclose(file);
	if (!err)
		*options = changed;
	return err;
}
