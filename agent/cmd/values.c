// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate values schema -e FILE`: the variables that a value sampler can read (vProf section 3). */
#include "cmd/values.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "values/schema_make.h"
#include "view/values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate values report DIR | --normal DIR… --slow DIR…   (see `whylate values report --help`)\n"
	"       whylate values schema -e FILE [--file GLOB] [--function GLOB] [--locations] [--all] [--json]\n"
	"Lists the variables of a binary with DWARF whose values can be sampled: globals, and locals that the machine "
	"code\n"
	"uses in a loop's exit, a conditional jump or a call.\n"
	"  -e, --executable FILE  the binary; a separate debug file is found by its build id\n"
	"      --file GLOB        only variables declared in such source files\n"
	"      --function GLOB    only variables of such functions\n"
	"      --locations        where each variable is, by program counter\n"
	"      --all              locals without a tag, too\n"
	"      --debuginfo DIR    debug files are searched there first\n"
	"      --json             schema whylate.values.schema/1\n";

struct values_options {
	struct value_schema_opts schema;
	bool json, locations;
};

static int schema_run(const struct values_options *options)
{
	struct value_schema schema;
	int err;

	progress_begin("reading debugging information");
	err = value_schema_make(&schema, &options->schema);
	progress_end();
	if (err == -ENODATA)
		log_error("'%s' has no debugging information, and no separate debug file of its build id was found: "
			  "compile it with -g, or install its -dbgsym package",
			  options->schema.path);
	else if (err == -ENOEXEC)
		log_error("'%s' is not an ELF file of this machine", options->schema.path);
	else if (err)
		log_error("cannot read the variables of '%s': %s", options->schema.path,
			  value_schema_why(err) ? value_schema_why(err) : strerror(-err));
	if (!err && schema.skipped[VALUE_SKIP_SPLIT])
		log_warn("the variables of %zu of the %zu source files of '%s' are not listed: their debugging "
			 "information is in .dwo files (-gsplit-dwarf), which are not read. Compile it with -g alone",
			 schema.skipped[VALUE_SKIP_SPLIT], schema.skipped[VALUE_SKIP_SPLIT] + schema.units,
			 options->schema.path);
	if (!err) {
		err = options->json ? view_value_schema_json(stdout, &schema)
				    : view_value_schema_text(stdout, &schema, options->locations);
		if (err)
			log_error("cannot write the schema: %s", strerror(-err));
	}
	value_schema_free(&schema);
	return err ? EXIT_FAILED : EXIT_DONE;
}

#define O struct values_options
static const struct option_row rows[] = {
	OPTION_TEXT("executable", 'e', O, schema.path),
	OPTION_TEXT("exe", 0, O, schema.path), /* its name before it had that of `probes` */
	OPTION_TEXT("file", 0, O, schema.file),
	OPTION_TEXT("function", 0, O, schema.function),
	OPTION_FLAG("locations", 0, O, locations),
	OPTION_FLAG("all", 0, O, schema.all_locals),
	OPTION_TEXT("debuginfo", 0, O, schema.debuginfo_dir),
	OPTION_FLAG("json", 0, O, json),
};
#undef O

int cmd_values(int argc, char **argv)
{
	struct values_options options = {.schema.cached = true};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code;

	if (argc > 1 && !strcmp(argv[1], "report"))
		return values_report_run(argc - 1, argv + 1, "values");
	code = OPTIONS_TAKE("values", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind == argc || strcmp(argv[optind], "schema"))
		return usage_error("values", "%s%s%s: the questions are 'schema' and 'report'",
				   optind == argc ? "no question" : "'", optind == argc ? "" : argv[optind],
				   optind == argc ? "" : "'");
	if (optind + 1 < argc)
		return usage_error("values", "'%s' is one argument too many", argv[optind + 1]);
	if (!options.schema.path)
		return usage_error("values", "-e FILE is missing: the binary whose variables are listed");
	return schema_run(&options);
}
