// SPDX-License-Identifier: GPL-2.0-or-later
/* whylate: why are some of my requests late?  Dispatch only. */
#include "base/log.h"
#include "base/privilege.h"
#include "cmd/cmd.h"
#include "target/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
	bool looks; /* at processes: it keeps the capabilities that the program's file gives (SETCAP=1) */
} commands[] = {
	{"diagnose", cmd_diagnose, "attach, record for a while, say what makes requests late", true},
	{"record", cmd_record, "attach and record into shards", true},
	{"report", cmd_report, "say what made requests late, from shards", false},
	{"compare", cmd_compare, "say what became slower from one recording, or part of one, to another", false},
	{"top", cmd_top, "live: roots of late requests, their trend, what they took; replays a recording", true},
	{"watch", cmd_watch, "stay armed: when requests become late, keep the minutes around it, and report", true},
	{"explain", cmd_explain, "tell one request step by step, from shards recorded with --mode trace", false},
	{"contexts", cmd_contexts, "requests by type: their time, their stages, which delay which, from shards", false},
	{"export", cmd_export,
	 "turn shards into what other tools read: perfetto, pprof, otlp, folded stacks, csv, jsonl", false},
	{"probes", cmd_probes, "what can be probed and what a symbol list means: list, plan, check, suggest", true},
	{"values", cmd_values, "which variables can be sampled, and which differ when it is slow: schema, report",
	 false},
	{"upload", cmd_upload, "send what recordings leave in a spool, as a service of its own", false},
	{"collect", cmd_collect, "keep what agents on other hosts stream", false},
	{"project", cmd_project, "bring a collector's store into a database, for questions over many hosts", false},
	{"fleet", cmd_fleet, "ask that database: which hosts, which root, since when, what late hosts have in common",
	 false},
	{"doctor", cmd_doctor, "what this machine can and cannot measure, and why", true},
};

#define COMMAND_CNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	fprintf(out, "Usage: whylate COMMAND [OPTIONS]\nWhy are some of my requests late?\n\n");
	for (size_t i = 0; i < COMMAND_CNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fprintf(out, "\n`whylate COMMAND --help` says more. Capture needs root, the rest does not.\n");
}

static int say_unknown(const char *name)
{
	struct nearest nearest;

	if (*name == '-')
		return usage_error(NULL, "'%s' comes after a command: whylate diagnose %s …", name, name);
	nearest_init(&nearest, name, 1);
	for (size_t i = 0; i < COMMAND_CNT; i++)
		nearest_offer(&nearest, commands[i].name);
	if (nearest.cnt)
		return usage_error(NULL, "there is no command '%s': did you mean %s?", name, nearest.names[0]);
	return usage_error(NULL, "there is no command '%s': see whylate --help", name);
}

/* A file that is opened must not become the standard error: messages would be written into it. */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* A result that did not get out is none, whichever command had it. */
static int finish(int code)
{
	if ((!fflush(stdout) && !ferror(stdout)) || code != EXIT_DONE)
		return code;
	log_error("cannot write to the standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	fill_standard_fds();
	/* Not LC_ALL: numbers are written and read with a point. */
	setlocale(LC_CTYPE, "");
	opterr = 0;
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return finish(EXIT_DONE);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("whylate %s\n", WHYLATE_VERSION);
		return finish(EXIT_DONE);
	}
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (!strcmp(argv[1], commands[i].name)) {
			if (!commands[i].looks && privilege_as_caller())
				return EXIT_FAILED;
			return finish(commands[i].run(argc - 1, argv + 1));
		}
	return say_unknown(argv[1]);
}
