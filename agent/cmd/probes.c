// SPDX-License-Identifier: GPL-2.0-or-later
/* What could be probed, where exactly, at what cost; what a symbol list means here. */
#include "view/probes.h"
#include "base/capabilities.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/target_options.h"
#include "rounds/queues.h"
#include "rounds/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COUNT_NS 2000000000ULL

static int suggest_queues(const struct probes_options *options, struct program *program,
			  const struct suggest_options *watched)
{
	struct queue_study study = {0};
	int code = queues_find(&study, watched, program) ? EXIT_FAILED : probes_queues(options, program, &study);

	queue_study_free(&study);
	return code;
}

static int suggest(const struct probes_options *options, struct program *program)
{
	int code = EXIT_FAILED;
	const struct suggest_options counted = {
		.target = &options->target,
		.children = options->children,
		.btf_path = options->btf_path,
		.duration_ns = options->duration_ns,
	};
	struct suggestion_study study = {0};
	int err;

	/* What follows tells itself what it is at. */
	progress_end();
	if (options->queues)
		return suggest_queues(options, program, &counted);
	err = suggest_count(&study, &counted, program);
	if (!err && study.found.cnt)
		code = probes_suggest(options, program, &study);
	else if (!err)
		log_error("no function of %s has a name that says what it is for: record without a symbol list",
			  probes_module_name(program, 0));
	vec_free(&study.found);
	return code;
}

static const struct {
	const char *name;
	int (*run)(const struct probes_options *options, struct program *program);
	bool wants_list; /* -s, or for `plan` symbols */
	bool wants_pid;
	bool takes_symbols;
} questions[] = {
	{"list", probes_list, false, false, true},
	{"plan", probes_plan, true, false, true},
	{"check", probes_check, true, false, false},
	{"suggest", suggest, false, true, false},
};

#define QUESTION_CNT (sizeof(questions) / sizeof(questions[0]))

static const char help[] =
	"Usage: whylate probes list    TARGET | -e FILE [[MODULE:]SYMBOL…] [--all] [--json]\n"
	"       whylate probes plan    TARGET | -e FILE -s LIST | [MODULE:]SYMBOL… [--json]\n"
	"       whylate probes check   TARGET | -e FILE -s LIST [--json]\n"
	"       whylate probes suggest TARGET [--queues] [-d 2s] [--json]\n"
	"What could be probed, where exactly, at what cost; what a symbol list means here.\n"
	"  list                   functions and markers: module, address, size, where the name is from\n"
	"  plan                   the exact sites of each probe, and what a hit costs there\n"
	"  check                  does every line of the list mean something here?  1 if not\n"
	"  suggest                a list for this process, by names and by how often functions fire (needs root)\n"
	"  TARGET                 a running process and its libraries\n"
	"  -e, --executable FILE  one file that need not run\n"
	"  -s, --symbols LIST     a file, or preset:NAME\n"
	"  -d, --duration TIME    suggest: count for so long (default 2s)\n"
	"      --queues           suggest: queues in shared memory, found by the values that cross them\n"
	"      --all              list: functions without a name, too\n"
	"      --debuginfo DIR    debug files are looked for there first\n"
	"      --no-children      suggest: do not count in the target's children\n"
	"      --btf FILE         suggest: types of the kernel, in place of its own BTF\n"
	"      --json             schema whylate.probes.QUESTION/1\n"
	"  -v, --verbose          what libbpf, the kernel and the search for queues say\n";

#define O struct probes_options
static const struct option_row rows[] = {
	OPTION_TEXT("executable", 'e', O, file),
	OPTION_TEXT("symbols", 's', O, symbols),
	OPTION_DURATION("duration", 'd', O, duration_ns, .example = "2s, up to 1h", .max = 3600000000000ULL),
	OPTION_FLAG("json", 0, O, json),
	OPTION_FLAG("all", 0, O, all),
	OPTION_FLAG("queues", 0, O, queues),
	OPTION_VERBOSE,
	OPTION_TEXT("debuginfo", 0, O, debuginfo_dir),
	OPTION_CLEAR("no-children", 0, O, children),
	OPTION_TEXT("btf", 0, O, btf_path),
};
#undef O

/* Is what was asked for complete, and nothing more? */
static int check_question(const struct probes_options *options, size_t question)
{
	const char *name = questions[question].name;

	bool is_live = options->query.kind != TARGET_NOT_NAMED;

	if (is_live == !!options->file)
		return usage_error("probes", "%s wants %s: see whylate probes --help", name,
				   is_live ? "one of -p and -e" : "-p PID or -e FILE");
	if (options->query.pidns_of && options->query.kind != TARGET_BY_PID)
		return usage_error("probes", "--pidns-of goes with -p");
	if (questions[question].wants_pid && !is_live)
		return usage_error("probes", "%s counts in a running process: it wants -p PID", name);
	if (options->queues && !questions[question].wants_pid)
		return usage_error("probes", "--queues goes with suggest");
	if (options->arg_cnt && !questions[question].takes_symbols)
		return usage_error("probes", "'%s' is one argument too many", options->args[0]);
	if (questions[question].wants_list && !options->symbols && !options->arg_cnt)
		return usage_error("probes", "%s wants -s LIST%s", name,
				   questions[question].takes_symbols ? " or a SYMBOL" : "");
	if (options->symbols && (options->arg_cnt || !questions[question].wants_list))
		return usage_error("probes", "%s takes no -s%s", name, options->arg_cnt ? " beside SYMBOLs" : "");
	return 0;
}

static int open_program(struct probes_options *options, struct program **program)
{
	const struct program_opts opts = {.debuginfo_dir = options->debuginfo_dir, .want_debuginfod = true};
	int err;

	if (options->file) {
		/* The user's file needs no more than the user's rights. */
		if (getuid() && capabilities_keep(NULL, 0))
			return -EPERM;
		progress_begin("reading the program");
		err = program__open_file(options->file, &opts, program);
		if (err == -ENOEXEC)
			log_error("'%s' is no ELF program or library, or a damaged one", options->file);
		else if (err == -ENOTSUP)
			log_error("'%s' is for another kind of machine: only this machine's 64-bit programs can be "
				  "probed",
				  options->file);
		else if (err)
			log_error("cannot read '%s': %s", options->file, strerror(-err));
		return err;
	}
	err = target_resolve(&options->query, &options->target);
	if (err)
		return err;
	target_set_say(&options->target);
	options->pid = options->target.pids.items[0];
	progress_begin("reading the program");
	err = program__open(options->pid, &opts, program);
	if (err)
		log_error("cannot read the code of process %d: %s%s", options->pid, strerror(-err),
			  err == -EACCES || err == -EPERM ? ": run whylate as root" : "");
	return err;
}

int cmd_probes(int argc, char **argv)
{
	struct probes_options options = {.children = true, .duration_ns = COUNT_NS};
	struct program *program = NULL;
	size_t question = 0;
	const struct option_group groups[] = {
		OPTION_GROUP(rows, &options, help),
		target_options_group(&options.query),
	};
	int code = OPTIONS_TAKE("probes", groups, argc, argv);

	if (code != OPTIONS_GO_ON)
		return code;
	if (optind == argc)
		return usage_error("probes", "there are the questions list, plan, check and suggest: see whylate "
					     "probes --help");
	while (question < QUESTION_CNT && strcmp(argv[optind], questions[question].name))
		question++;
	if (question == QUESTION_CNT)
		return usage_error("probes", "there is no question '%s': there are list, plan, check and suggest",
				   argv[optind]);
	options.args = argv + optind + 1;
	options.arg_cnt = argc - optind - 1;
	code = check_question(&options, question);
	if (code)
		return code;
	code = open_program(&options, &program) ? EXIT_FAILED : questions[question].run(&options, program);
	progress_end();
	program__free(program);
	target_set_free(&options.target);
	target_options_free(&options.query);
	return code;
}
