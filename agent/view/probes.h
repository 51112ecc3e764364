/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `whylate probes`: what could be probed in a program, and what a symbol list means there. */
#ifndef WHYLATE_VIEW_PROBES_H
#define WHYLATE_VIEW_PROBES_H

#include "probe/queue_study.h"
#include "probe/resolve.h"
#include "probe/suggest.h"
#include "target/program.h"
#include "target/resolve.h"
#include "view/page.h"

struct json_doc;
struct json_object;

struct probes_options {
	pid_t pid; /* the main process of the target, 0: a file */
	struct target_query query;
	struct target_set target;
	const char *file; /* NULL: a process */
	const char *symbols;
	const char *debuginfo_dir;
	const char *btf_path;
	uint64_t duration_ns; /* suggest: how long to count */
	char *const *args;    /* SYMBOLs */
	size_t arg_cnt;
	bool json, all, children, queues;
};

/* Each prints its result and returns an exit code. */
int probes_list(const struct probes_options *options, struct program *program);
int probes_plan(const struct probes_options *options, struct program *program);
int probes_check(const struct probes_options *options, struct program *program);
int probes_suggest(const struct probes_options *options, struct program *program, const struct suggestion_study *study);
int probes_queues(const struct probes_options *options, struct program *program, const struct queue_study *study);

/* On standard output, in colour where that is a terminal; exit code of page__close(). */
void probes_page_open(struct page *page);
int probes_page_close(struct page *page, int code);
/* Prints and releases it; the exit code that results. */
int probes_json_close(struct json_doc *doc, struct json_object *root, int code);

/* "postgres", "libc.so.6": of the target's module. */
const char *probes_module_name(struct program *program, uint32_t module);

#endif
