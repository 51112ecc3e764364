/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stacks.c takes records, stacks_text.c says what is on a stack. */
#ifndef WHYLATE_SESSION_STACKS_INTERNAL_H
#define WHYLATE_SESSION_STACKS_INTERNAL_H

#include "session/images.h"
#include "session/stacks.h"
#include "target/symbols.h"
#include "target/unwind_rules.h"

/* Records of Python frames that wait for their stack, by CPU: a power of two. */
#define PYTHON_CPUS 64
/* Frames of a call path, of both kinds. */
#define PATH_MAX_CNT (UNWIND_FRAMES_MAX + WL_PYTHON_FRAMES_MAX)
/* Of one frame's name. */
#define NAME_SZ 256

struct stacks {
	struct stacks_opts opts;
	struct stack_texts *texts;
	struct stack_samples *samples;
	struct kernel_symbols *kernel;
	struct stack_beat beat;
	struct images *images;
	struct symbols *symbols; /* of the target's program */
	struct stacks_made made;
	bool ended;
	bool spins; /* the stack that was named last */
	struct shard_row row;
	uint64_t python_cnt, python_missed_cnt;
	struct wl_python_record pythons[PYTHON_CPUS];
	char name[NAME_SZ]; /* of a place */
	struct unwind_regs frame_regs[VALUES_DEPTH_MAX + 1];
	char line[PATH_MAX_CNT * (NAME_SZ + 1)];
	char path[PATH_MAX_CNT * (NAME_SZ + 1)]; /* of a hand-off */
};

/* Fills NAME_SZ bytes with the name of the place, at that time. */
void stacks__frame_name(struct stacks *stacks, struct image_process *process, uint64_t addr, uint64_t ts, char *name);
/*
 * The call path outside the kernel, by the names of its functions, and what variables hold at its frames, NULL: that is
 * not asked.  0 or -ENOMEM.
 */
int stacks__user_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text,
		      struct stack_values **values);
/* In the kernel, less what is the sampler's own; NULL: nothing.  0 or -ENOMEM. */
int stacks__kernel_text(struct stacks *stacks, const struct wl_stack_record *record, struct stack_text **text);

#endif
