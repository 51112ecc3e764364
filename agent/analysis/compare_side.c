// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_side.h"

#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DAY_NS (86400 * 1000000000ull)

/* "14:00", "14:00:30" */
static bool time_of_day(const char *text, uint64_t *ns)
{
	static const char *const formats[] = {"%H:%M", "%H:%M:%S"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, formats[i], &tm);

		if (!end || *end)
			continue;
		*ns = (uint64_t)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec) * 1000000000;
		return true;
	}
	return false;
}

static bool plain_seconds(const char *text, uint64_t *ns)
{
	uint64_t seconds;

	if (!strcmp(text, "0") || !strcmp(text, "0s")) {
		*ns = 0;
		return true;
	}
	if (units_number(text, 100ull * 365 * 86400, &seconds))
		return false;
	*ns = seconds * 1000000000;
	return true;
}

/* 0 or -EINVAL: it is none of the four. */
static int side_time__parse(struct side_time *time, const char *text)
{
	*time = (struct side_time){SIDE_TIME_OPEN, 0};
	if (!*text)
		return 0;
	time->kind = SIDE_TIME_SINCE_BEGIN;
	if (plain_seconds(text, &time->ns) || !units_duration_ns(text, &time->ns))
		return 0;
	time->kind = SIDE_TIME_OF_DAY;
	if (isdigit((unsigned char)text[0]) && time_of_day(text, &time->ns))
		return 0;
	time->kind = SIDE_TIME_WALL;
	return units_time_ns(text, 0, &time->ns);
}

uint64_t side_time__wall_ns(const struct side_time *time, uint64_t begin_wall_ns, uint64_t end_wall_ns)
{
	uint64_t wall_ns;

	switch (time->kind) {
	case SIDE_TIME_OPEN:
		return 0;
	case SIDE_TIME_WALL:
		return time->ns;
	case SIDE_TIME_SINCE_BEGIN:
		return begin_wall_ns + time->ns;
	case SIDE_TIME_OF_DAY:
		break;
	}
	wall_ns = begin_wall_ns - begin_wall_ns % DAY_NS + time->ns;
	/* The recording went on past midnight. */
	return wall_ns < begin_wall_ns && wall_ns + DAY_NS <= end_wall_ns ? wall_ns + DAY_NS : wall_ns;
}

/* FROM-TO: dates have hyphens, too, so each is tried. */
static int parse_span(struct side *side, char *text)
{
	for (char *hyphen = strchr(text, '-'); hyphen; hyphen = strchr(hyphen + 1, '-')) {
		int err;

		*hyphen = '\0';
		err = side_time__parse(&side->from, text) ?: side_time__parse(&side->to, hyphen + 1);
		*hyphen = '-';
		if (err || (side->from.kind == SIDE_TIME_OPEN && side->to.kind == SIDE_TIME_OPEN))
			continue;
		if (side->from.kind == side->to.kind && side->from.ns >= side->to.ns)
			return -EINVAL;
		side->has_span = true;
		return 0;
	}
	return -EINVAL;
}

int side__parse(struct side *side, const char *text, const char **bad)
{
	struct stat st;
	char *at;

	*side = (struct side){.label = text, .memory = strdup(text)};
	if (!side->memory)
		return -ENOMEM;
	side->path = side->memory;
	while (lstat(side->path, &st) && (at = strrchr(side->path, '@')) && at > side->path && !strchr(at, '/')) {
		*at++ = '\0';
		*bad = text + (at - side->path);
		if (!strncmp(at, "host=", 5) && at[5] && !side->host)
			side->host = at + 5;
		else if (side->has_span || parse_span(side, at))
			return -EINVAL;
	}
	return 0;
}

void side__free(struct side *side)
{
	free(side->memory);
	*side = (struct side){0};
}
