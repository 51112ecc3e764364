/* SPDX-License-Identifier: GPL-2.0-only */
/* What `record` and `diagnose` take from the command line. */
#ifndef WHYLATE_CMD_RECORD_OPTIONS_H
#define WHYLATE_CMD_RECORD_OPTIONS_H

#include "cmd/stream_options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rounds_options;

struct record_options {
	pid_t pid;
	const char *symbols;  /* file of the symbol list, or NULL */
	const char *dir;      /* NULL: one is made up */
	const char *btf_path; /* NULL: the kernel's own */
	uint64_t duration_ns; /* 0: until a signal or the target's exit */
	double rate;
	double duty; /* share of the time in which hooks are attached; 0: by the rate */
	double tail; /* 0: keep everything */
	double baseline_per_s;
	double budget; /* share of the target's CPU time */
	double max_loss;
	uint64_t max_missing; /* hooks */
	uint64_t ring_sz;     /* 0: as the mode needs */
	uint64_t rotate_bytes, rotate_age_ns;
	uint32_t stacks_hz; /* user stacks are sampled so often; 0: not at all */
	bool stacks_all;    /* also of threads that work for no selected interval */
	bool trace;         /* --mode trace */
	uint64_t memory;    /* trace: bytes that wait for their intervals' end */
	uint64_t scope_max; /* trace: threads outside the target that may be followed */
	bool children;
	bool hw, hw_software;
	const char *host;          /* the name that it goes by; NULL: the node's */
	const char *debuginfo_dir; /* or NULL */
	const char *limits;        /* file that SIGHUP reads again, or NULL */
	struct stream_options stream;
	const struct rounds_options *rounds; /* diagnose: functions are probed in rounds; NULL: they are not */
	bool quiet, verbose;
	bool confine; /* nothing is loaded or attached after this recording */
};

#define RECORD_SHORT_OPTIONS "p:s:o:d:qv"
extern const struct option record_long_options[];
extern const size_t record_long_option_cnt;

void record_options_init(struct record_options *options);
/* One option as getopt_long returned it: 0, -ENOENT if it is none of these, or -EINVAL after a line that says why. */
int record_options_take(struct record_options *options, const char *command, int option, const char *arg);
/* When all are taken: 0, or -EINVAL after a line that says what does not go together. */
int record_options_check(const struct record_options *options, const char *command);
extern const char record_options_help[];

#endif
