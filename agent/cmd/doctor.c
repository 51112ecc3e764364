// SPDX-License-Identifier: GPL-2.0-or-later
/* What this machine can and cannot measure, and why. */
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "selftest/selftest.h"
#include "selftest/survey.h"
#include "selftest/witness.h"

#include <stdio.h>
#include <string.h>

static const char help[] = "Usage: whylate doctor [--json] [--btf FILE]\n"
			   "       whylate doctor --self-test [--json] [--btf FILE] [--force-tier FEATURE=N]…\n"
			   "What this machine can and cannot measure, and why.\n"
			   "      --self-test        make one event of every kind and check that it is seen\n"
			   "      --force-tier F=N   … with tier N of the hooks of feature F\n"
			   "      --btf FILE         types of the kernel, in place of its own BTF\n"
			   "      --json             schema whylate.doctor/1, or whylate.selftest/1\n";

struct doctor_options {
	struct selftest_options selftest;
	bool test, witness, forced;
};

/* "FEATURE=N" */
static int take_force_tier(void *ctx, const char *command, const char *arg)
{
	struct doctor_options *options = ctx;
	const char *equals = strchr(arg, '=');
	uint32_t tier = 0, best = 0;

	options->forced = true;
	for (int f = 0; equals && f < HOOK_FEATURE_CNT; f++) {
		if (strlen(features[f].name) != (size_t)(equals - arg) || strncmp(features[f].name, arg, equals - arg))
			continue;
		for (size_t i = 0; i < hook_cnt; i++) {
			if ((int)hooks[i].feature != f)
				continue;
			best = hooks[i].tier > best ? hooks[i].tier : best;
			if (equals[1] && !equals[2] && hooks[i].tier == (uint32_t)(equals[1] - '0'))
				tier = hooks[i].tier;
		}
		if (!tier)
			return usage_error(command, "--force-tier '%s': the tiers of %s are 1 to %u", arg,
					   features[f].name, best);
		options->selftest.force_tier[f] = tier;
		return 0;
	}
	return usage_error(command,
			   "--force-tier '%s' is not understood: it wants something like fault=2 (whylate doctor "
			   "names the features)",
			   arg);
}

#define O struct doctor_options
static const struct option_row rows[] = {
	OPTION_FLAG("json", 0, O, selftest.json),
	OPTION_FLAG("self-test", 0, O, test),
	OPTION_CALL("force-tier", take_force_tier, .has_arg = required_argument),
	OPTION_TEXT("btf", 0, O, selftest.btf_path),
	/* What the self-test starts: nothing that a user would ask for. */
	OPTION_FLAG("witness", 0, O, witness),
};
#undef O

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options options = {0};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code = OPTIONS_TAKE("doctor", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	if (options.witness)
		witness_run();
	if (usage_no_words("doctor", argc, argv))
		return EXIT_USAGE;
	if (options.forced && !options.test)
		return usage_error("doctor", "--force-tier is for --self-test only");
	return options.test ? selftest_run(&options.selftest)
			    : survey_machine(options.selftest.json, options.selftest.btf_path);
}
