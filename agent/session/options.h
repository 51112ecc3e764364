/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one recording is told: filled in from the command line, constant from then on. */
#ifndef WHYLATE_SESSION_OPTIONS_H
#define WHYLATE_SESSION_OPTIONS_H

#include "model/request_parse.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Room for the name of the directory that the shards go to. */
#define RECORDED_DIR_SZ 4096

/* In place of a URL: `whylate upload` sends what is in the spool. */
#define STREAM_SPOOL "spool"

struct stream_options {
	const char *url; /* NULL: not streamed; STREAM_SPOOL */
	const char *cert, *key, *ca, *token;
	bool insecure; /* http is allowed to other machines, too */
	const char *spool;
	uint64_t spool_max_bytes, spool_age_ns;
	uint64_t delay_ns;  /* a row is under way no later than this after it was recorded */
	uint64_t linger_ns; /* how long the end of a recording may wait for the network */
};

struct record_options;
struct session_client;
struct target_set;

/* As often as the budget allows, at most CAPTURE_STACKS_HZ_BUDGETED. */
#define STACKS_HZ_BY_BUDGET UINT32_MAX

#define RECORD_LABELS_MAX 16

struct record_options {
	const struct target_set *target;
	pid_t pid;                /* its main process, whose program and memory are looked at */
	const char *symbols;      /* file of the symbol list, or NULL */
	const char *symbols_name; /* what the session table calls it; NULL: as the file */
	const char *dir;          /* NULL: one is made up */
	const char *btf_path;     /* NULL: the kernel's own */
	uint64_t duration_ns;     /* 0: until a signal or the target's exit */
	double rate;
	double duty; /* share of the time in which hooks are attached; 0: by the rate */
	double tail; /* 0: keep everything */
	double baseline_per_s;
	double budget; /* share of the target's CPU time */
	double max_loss;
	uint64_t max_missing; /* hooks */
	uint64_t ring_sz;     /* 0: as the mode needs */
	uint64_t rotate_bytes, rotate_age_ns;
	uint32_t stacks_hz;      /* stacks are sampled so often; 0: not at all */
	bool stacks_all;         /* also of threads that work for no selected interval */
	bool values;             /* variables are read at the stacks' frames */
	const char *values_glob; /* of files or functions; NULL: all */
	uint32_t values_depth;   /* callers whose variables are read */
	bool trace;              /* --mode trace */
	bool mode_given;         /* --mode */
	uint64_t memory;         /* trace: bytes that wait for their intervals' end */
	uint64_t scope_max;      /* trace: threads outside the target that may be followed */
	bool children;
	bool no_cmdline; /* the target's arguments are not stored */
	bool goroutines; /* requests of Go programs belong to goroutines */
	bool hw, hw_software;
	bool types;                    /* of requests, by their first bytes … */
	enum request_protocol type_by; /* … which are of that protocol; REQUEST_NONE: of whichever they look like */
	const char *host;              /* the name that it goes by; NULL: the node's */
	const char *labels[RECORD_LABELS_MAX]; /* KEY=VALUE, what the operator says of the host */
	uint32_t label_cnt;
	const char *debuginfo_dir; /* or NULL */
	const char *metrics;       /* where its metrics are asked for, ADDRESS:PORT; NULL: nowhere */
	bool metrics_insecure;     /* also elsewhere than on loopback */
	const char *limits;        /* file that SIGHUP reads again, or NULL */
	struct stream_options stream;
	const struct session_client *client; /* acts on the recording while it runs; NULL: none */
	const void *client_options;
	/* Reads `limits` into the options: 0, or -EINVAL after one line. */
	int (*read_limits)(const char *path, struct record_options *options);
	bool quiet, verbose;
	bool brief;         /* a report follows: the summary says the cost only, unless verbose */
	bool confine;       /* no program is loaded after this recording */
	const char *output; /* a file that is written after the recording; NULL, "-": none */
	/* The parent process reads the shards while they are written: it is the recorder's too, and wants to know the
	 * cost so far. */
	bool observed;
	bool armed; /* it stays for weeks: it begins in windows, as trace mode does */
};

#endif
