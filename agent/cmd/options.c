// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/options.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX  128
#define ROW_FIRST 256 /* above every letter */

static bool takes_arg(const struct option_row *row)
{
	return row->kind != OPTION_IS_FLAG && row->kind != OPTION_IS_CLEAR;
}

static int take_number(const struct option_row *row, void *field, const char *arg)
{
	uint64_t number = 0;

	if (!(row->zero && !strcmp(arg, "0")) && units_number(arg, row->max, &number))
		return -1;
	if (row->sz == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint64_t *)field = number;
	return 0;
}

static int take_time(const char *command, const char *option, const char *arg, uint64_t *wall_ns)
{
	if (!units_time_ns(arg, realtime_ns(), wall_ns))
		return 0;
	return usage_error(command, "%s '%s' is not understood: it wants something like 1h, or 2026-11-21T12:00 (UTC)",
			   option, arg);
}

/* The value is a duration or a size: is it within the row's limits? */
static int check_limits(const struct option_row *row, uint64_t value)
{
	return value < row->min || (row->max && value > row->max) ? -1 : 0;
}

int options_take_row(const struct option_group *group, const struct option_row *row, const char *command,
		     const char *arg)
{
	char option[40];
	void *field = (char *)group->options + row->off;
	int err = 0;

	if (row->letter)
		snprintf(option, sizeof(option), "-%c", row->letter);
	else
		snprintf(option, sizeof(option), "--%s", row->name);
	switch (row->kind) {
	case OPTION_IS_FLAG:
	case OPTION_IS_CLEAR:
		*(bool *)field = row->kind == OPTION_IS_FLAG;
		return 0;
	case OPTION_IS_TEXT:
		*(const char **)field = arg;
		return 0;
	case OPTION_IS_CALL:
		err = row->take ? row->take(group->options, command, arg)
				: row->take_tagged(row->tag, group->options, command, arg);
		return err ? EXIT_USAGE : 0;
	case OPTION_IS_TOP:
		return usage_top(command, arg, field);
	case OPTION_IS_TIME:
		return take_time(command, option, arg, field);
	case OPTION_IS_SHARE:
		if (!row->zero || (strcmp(arg, "0") && strcmp(arg, "0%")))
			return usage_share(command, option, arg, row->example, field) ? EXIT_USAGE : 0;
		*(double *)field = 0;
		return 0;
	case OPTION_IS_DURATION:
		if (usage_duration(command, option, arg, row->example, field))
			return EXIT_USAGE;
		err = check_limits(row, *(uint64_t *)field);
		break;
	case OPTION_IS_BYTES:
		err = units_bytes(arg, field) ? -1 : check_limits(row, *(uint64_t *)field);
		break;
	case OPTION_IS_NUMBER:
		err = take_number(row, field, arg);
		break;
	case OPTION_IS_PERCENTILE:
		err = units_percentile(arg, field);
		break;
	}
	if (err)
		usage_value(command, option, arg, row->example);
	return err ? EXIT_USAGE : 0;
}

int options_take_verbose(void *options, const char *command, const char *arg)
{
	(void)options, (void)command, (void)arg;
	log_set_verbose(1);
	return 0;
}

/* What getopt_long() wants, of all groups, and the group of each of its rows. */
struct option_list {
	struct option longs[ROWS_MAX + 2];
	const struct option_group *groups[ROWS_MAX];
	const struct option_row *rows[ROWS_MAX];
	char letters[3 * ROWS_MAX];
	size_t cnt;
};

static void add_row(struct option_list *list, const struct option_group *group, const struct option_row *row)
{
	int has_arg = row->kind == OPTION_IS_CALL ? row->has_arg : takes_arg(row) ? required_argument : no_argument;
	char letter[] = {row->letter, has_arg ? ':' : '\0', '\0'};

	list->groups[list->cnt] = group;
	list->rows[list->cnt] = row;
	list->longs[list->cnt] = (struct option){row->name, has_arg, NULL, ROW_FIRST + (int)list->cnt};
	strcat(list->letters, letter);
	list->cnt++;
}

int options_take(const char *command, const struct option_group *groups, size_t group_cnt, int argc, char **argv)
{
	struct option_list list = {.letters = ":h"};
	int option;

	for (size_t g = 0; g < group_cnt; g++)
		for (size_t r = 0; r < groups[g].row_cnt && list.cnt < ROWS_MAX; r++)
			add_row(&list, &groups[g], &groups[g].rows[r]);
	list.longs[list.cnt] = (struct option){"help", no_argument, NULL, 'h'};
	while ((option = getopt_long(argc, argv, list.letters, list.longs, NULL)) != -1) {
		size_t row = 0;

		if (option == 'h') {
			for (size_t g = 0; g < group_cnt; g++)
				fputs(groups[g].help ? groups[g].help : "", stdout);
			return EXIT_DONE;
		}
		if (option == '?' || option == ':')
			return option_error(command, option, argv);
		while (option < ROW_FIRST && list.rows[row]->letter != option)
			row++;
		if (option >= ROW_FIRST)
			row = (size_t)(option - ROW_FIRST);
		if (options_take_row(list.groups[row], list.rows[row], command, optarg))
			return EXIT_USAGE;
	}
	return OPTIONS_GO_ON;
}
