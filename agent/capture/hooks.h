/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hooks of hook.def: which of them this kernel bears (found by trying, never by version), and attaching them.
 */
#ifndef WHYLATE_CAPTURE_HOOKS_H
#define WHYLATE_CAPTURE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;
struct btf;

enum hook_need {
	HOOK_NEED_REQUIRED,
	HOOK_NEED_WANTED,
	HOOK_NEED_EXTRA,
	HOOK_NEED_SOCKETS,
	HOOK_NEED_SOCKETS_WANTED,
	HOOK_NEED_PROBES,
	HOOK_NEED_TRACE,
	HOOK_NEED_STACKS,
	HOOK_NEED_GOROUTINES,
};

/* How often the hooks of a feature fire. */
enum hook_often {
	HOOK_OFTEN,
	HOOK_RARE,
	HOOK_VARIES, /* by machine and load */
};

enum hook_kind {
	HOOK_TP_BTF,
	HOOK_RAW_TP, /* one program may have several */
	HOOK_ITER,
	HOOK_FENTRY,
	HOOK_FEXIT,
	HOOK_KPROBE,
	HOOK_KRETPROBE,
	HOOK_PERF_MINOR,
	HOOK_PERF_MAJOR,
	HOOK_PERF_CLOCK,
	HOOK_UPROBE_MULTI,
	HOOK_UPROBE,
};

enum hook_feature {
#define FEATURE(id, name, need, often, categories, what) HOOK_FEATURE_##id,
#include "capture/hook.def"
	HOOK_FEATURE_CNT
};

struct hook {
	enum hook_feature feature;
	uint32_t tier;
	enum hook_kind kind;
	const char *program;
	const char *hook;
	bool if_there; /* its tier works without it */
};

struct feature {
	const char *name;
	enum hook_need need;
	enum hook_often often;
	const char *categories; /* comma separated, "" for none */
	const char *what;
};

extern const struct hook hooks[];
extern const size_t hook_cnt;
extern const struct feature features[HOOK_FEATURE_CNT];

#define HOOK_TIER_MAX 3

/* What this kernel bears. tier[f]: the tier to take, 0: none works; missing[f]: why not (static text or NULL). */
struct hook_survey {
	uint32_t tier[HOOK_FEATURE_CNT];
	const char *missing[HOOK_FEATURE_CNT];
	bool works[128];      /* by index into hooks[] */
	const char *why[128]; /* why it does not, by the same index */
};

/*
 * By the kernel's own BTF, or by that of a file (NULL: none).  0, or -errno and in *why what is wrong with the kernel
 * or with the file.  Needs privilege: it loads and attaches small programs of its own.
 */
int hook_survey_make(struct hook_survey *survey, const char *btf_path, char *why, size_t why_sz);

/* What a recording is after. */
struct hook_purpose {
	bool sockets;    /* intervals are socket requests, not calls of functions */
	bool trace;      /* --mode trace */
	bool probes;     /* functions are probed */
	bool stacks;     /* user stacks are sampled */
	bool goroutines; /* the target has Go programs */
};

/* Is this feature to be attached for it? */
bool hook_feature_wanted(enum hook_feature feature, struct hook_purpose purpose);

/* Is hooks[idx] to be attached for it: of a feature that is wanted, of its tier, and there? */
bool hook_taken(const struct hook_survey *survey, size_t idx, struct hook_purpose purpose);

/* Name of the feature and tier as in "fault:perf", for the session table. */
const char *hook_kind_name(enum hook_kind kind);
/* The kinds of hooks that a tier needs, as in "tp_btf+perf". */
void hook_tier_name(enum hook_feature feature, uint32_t tier, char *text, size_t sz);

#endif
