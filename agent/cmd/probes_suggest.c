// SPDX-License-Identifier: GPL-2.0-only
#include "cmd/cmd.h"
#include "cmd/probes.h"
int probes_suggest(const struct probes_options *options, struct program *program)
{
	(void)options;
	(void)program;
	return EXIT_FAILED;
}
