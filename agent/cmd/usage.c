// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/cmd.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

int usage_error(const char *command, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "whylate%s%s: ", command ? " " : "", command ? command : "");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int option_error(const char *command, int option, char **argv)
{
	if (option == ':')
		return usage_error(command, "'%s' wants an argument: see whylate %s --help", argv[optind - 1], command);
	return usage_error(command, "there is no option '%s', or it is used wrongly: see whylate %s --help",
			   argv[optind - 1], command);
}
