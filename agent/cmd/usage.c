// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int usage_error(const char *command, const char *fmt, ...)
{
	char prefix[64];
	va_list args;

	snprintf(prefix, sizeof(prefix), "whylate%s%s: ", command ? " " : "", command ? command : "");
	va_start(args, fmt);
	log_text(prefix, fmt, args);
	va_end(args);
	return EXIT_USAGE;
}

int option_error(const char *command, int option, char **argv)
{
	if (option == ':')
		return usage_error(command, "'%s' wants an argument: see whylate %s --help", argv[optind - 1], command);
	return usage_error(command, "there is no option '%s', or it is used wrongly: see whylate %s --help",
			   argv[optind - 1], command);
}

int usage_value(const char *command, const char *option, const char *arg, const char *example)
{
	usage_error(command, "%s '%s' is not understood: it wants something like %s", option, arg, example);
	return -EINVAL;
}

int usage_share(const char *command, const char *option, const char *arg, const char *example, double *share)
{
	int err = units_share(arg, share);
	double number = atof(arg);

	if (err == -EDOM && number > 0 && number <= 1)
		usage_error(command, "%s '%s' has no unit: write %s%% or %g%%", option, arg, arg, 100 * number);
	else if (err == -EDOM && number > 0 && number <= 100)
		usage_error(command, "%s '%s' has no unit: write %s%%", option, arg, arg);
	else if (err)
		usage_value(command, option, arg, example);
	return err ? -EINVAL : 0;
}

int usage_duration(const char *command, const char *option, const char *arg, const char *example, uint64_t *ns)
{
	int err = units_duration_ns(arg, ns);

	if (err == -EDOM && atof(arg) > 0)
		usage_error(command, "%s '%s' has no unit: write %ss, %sms or %sm", option, arg, arg, arg, arg);
	else if (err)
		usage_value(command, option, arg, example);
	return err ? -EINVAL : 0;
}

int usage_recording(const char *command, int argc)
{
	return optind < argc ? EXIT_DONE : usage_error(command, "which recording? Name a directory or shards");
}

int usage_no_words(const char *command, int argc, char **argv)
{
	return optind < argc ? usage_error(command, "'%s' is one argument too many", argv[optind]) : EXIT_DONE;
}

int usage_top(const char *command, const char *arg, uint32_t *top)
{
	uint64_t number = 0;

	if (strcmp(arg, "0") && strcmp(arg, "all") && units_number(arg, 1000000, &number))
		return usage_error(command, "--top '%s' is not understood: it wants a number, or all", arg);
	*top = (uint32_t)number;
	return 0;
}
