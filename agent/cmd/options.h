/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One table of options for all subcommands: a row tells the option's name, what its value is, and the field of the
 * command's options that takes it.  Rows that commands share (a target, a recording, a stream) are a group of their
 * own.
 */
#ifndef WHYLATE_CMD_OPTIONS_H
#define WHYLATE_CMD_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_IS_FLAG,  /* bool: true */
	OPTION_IS_CLEAR, /* bool: false */
	OPTION_IS_TEXT,  /* const char * */
	OPTION_IS_DURATION,
	OPTION_IS_BYTES,
	OPTION_IS_NUMBER,
	OPTION_IS_SHARE, /* double */
	OPTION_IS_PERCENTILE,
	OPTION_IS_TOP,  /* uint32_t; 0: all */
	OPTION_IS_TIME, /* UTC, or so long ago, as nanoseconds of the wall clock */
	OPTION_IS_CALL, /* a function takes it */
};

/* 0, or any other number after a line that says what is wrong with the value, which is NULL where none was given. */
typedef int (*option_take)(void *options, const char *command, const char *arg);

struct option_row {
	const char *name;
	char letter; /* 0: none */
	enum option_kind kind;
	size_t off;          /* of the field */
	uint8_t sz;          /* of a number: 4 or 8 */
	bool zero;           /* 0 is a value, too */
	uint8_t has_arg;     /* of a call, as getopt_long() wants it */
	const char *example; /* of a value that is right */
	uint64_t min, max;   /* 0: any */
	option_take take;
	int (*take_tagged)(int tag, void *options, const char *command, const char *arg);
	int tag;
};

struct option_group {
	const struct option_row *rows; /* NULL: help only */
	size_t row_cnt;
	void *options;
	const char *help;
};

#define OPTION_GROUP(rows_, options_, help_) \
	{.rows = rows_, .row_cnt = sizeof(rows_) / sizeof(*(rows_)), .options = options_, .help = help_}

/* Where the field is; it must have that type. */
#define OPTION_AT(type, owner, field) \
	(offsetof(owner, field) +     \
	 0 * sizeof(char[__builtin_types_compatible_p(type, __typeof__(((owner *)0)->field)) ? 1 : -1]))
#define OPTION_ROW(name_, letter_, kind_, ...) {.name = name_, .letter = letter_, .kind = kind_, __VA_ARGS__}
#define OPTION_FIELD(name_, letter_, kind_, type, owner, field, ...) \
	OPTION_ROW(name_, letter_, OPTION_IS_##kind_, .off = OPTION_AT(type, owner, field), __VA_ARGS__)
#define OPTION_FLAG(name, letter, owner, field)  OPTION_FIELD(name, letter, FLAG, bool, owner, field, )
#define OPTION_CLEAR(name, letter, owner, field) OPTION_FIELD(name, letter, CLEAR, bool, owner, field, )
#define OPTION_TEXT(name, letter, owner, field)  OPTION_FIELD(name, letter, TEXT, const char *, owner, field, )
/* .example = "10m", and .min or .max where there are limits */
#define OPTION_DURATION(name, letter, owner, field, ...) \
	OPTION_FIELD(name, letter, DURATION, uint64_t, owner, field, __VA_ARGS__)
#define OPTION_BYTES(name, letter, owner, field, ...) \
	OPTION_FIELD(name, letter, BYTES, uint64_t, owner, field, __VA_ARGS__)
#define OPTION_SHARE(name, letter, owner, field, ...) \
	OPTION_FIELD(name, letter, SHARE, double, owner, field, __VA_ARGS__)
#define OPTION_NUMBER(name, letter, owner, field, ...)                                                               \
	OPTION_ROW(name, letter, OPTION_IS_NUMBER, .off = offsetof(owner, field), .sz = sizeof(((owner *)0)->field), \
		   __VA_ARGS__)
#define OPTION_PERCENTILE(name, owner, field) OPTION_FIELD(name, 0, PERCENTILE, double, owner, field, .example = "p99")
#define OPTION_TOP(owner, field)              OPTION_FIELD("top", 0, TOP, uint32_t, owner, field, )
#define OPTION_TIME(name, owner, field)       OPTION_FIELD(name, 0, TIME, uint64_t, owner, field, )
/* .has_arg = required_argument */
#define OPTION_CALL(name, take_, ...) OPTION_ROW(name, 0, OPTION_IS_CALL, .take = take_, __VA_ARGS__)
#define OPTION_VERBOSE                OPTION_ROW("verbose", 'v', OPTION_IS_CALL, .take = options_take_verbose)

#define OPTIONS_GO_ON (-1)

/*
 * Takes argv by the rows, and -h, --help, which prints what the groups say in their order: OPTIONS_GO_ON with the words
 * from argv[optind] on, or the exit code to end with.
 */
int options_take(const char *command, const struct option_group *groups, size_t group_cnt, int argc, char **argv);
/* One row's value, which `command` is named before what is wrong with: 0, or EXIT_USAGE after a line. */
int options_take_row(const struct option_group *group, const struct option_row *row, const char *command,
		     const char *arg);

/* More on stderr. */
int options_take_verbose(void *options, const char *command, const char *arg);

#define OPTIONS_TAKE(command, groups, argc, argv) \
	options_take(command, groups, sizeof(groups) / sizeof(*(groups)), argc, argv)

#endif
