/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What sampled stacks say of a program: where its requests' own work begins, who calls whom, and how much time is spent
 * beneath which function.  Functions are numbers (struct program's); frames that belong to none are HOT_PATHS_NONE.
 * Pure: no I/O, one thread only.
 */
#ifndef WHYLATE_PROBE_HOT_PATHS_H
#define WHYLATE_PROBE_HOT_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program;

#define HOT_PATHS_NONE UINT32_MAX

struct hot_paths;

struct hot_frame {
	uint32_t function; /* HOT_PATHS_NONE: no function is known there */
	uint64_t
		call_addr; /* of the call in this frame that led to the one below it, the return address; 0: none did */
	bool guessed;      /* found by looking for return addresses: no edge is made of it */
};

struct hot_sample {
	uint32_t thread;                /* its tid */
	const struct hot_frame *frames; /* innermost first */
	size_t frame_cnt;
	bool complete; /* up to the beginning of the thread: only such tell what is common to all */
	bool running;  /* on a CPU; otherwise blocked */
	double ns;     /* what it stands for */
};

/* Threads whose last stack is remembered, to tell what one thread does by turns from what different threads do. */
#define HOT_PATHS_THREADS_MAX 4096

/* A root: on the deepest frame that nearly all stacks share, what it calls to do a request's work. */
struct hot_root {
	uint32_t function;
	uint32_t parent;    /* the shared frame's function; HOT_PATHS_NONE: the beginning of the thread */
	uint64_t call_addr; /* in the parent, 0: none */
	double running_ns, blocked_ns;
	double share; /* of all the time of complete stacks */
};

struct hot_edge {
	uint32_t caller, callee;
	uint64_t call_addr; /* the return address in the caller */
	uint64_t sample_cnt;
	double running_ns, blocked_ns;
};

/* Of one function: time with it anywhere on the stack, counted once where it is recursive, and as the innermost one. */
struct hot_function {
	uint32_t function;
	uint64_t sample_cnt;
	double running_ns, blocked_ns;
	double self_running_ns, self_blocked_ns;
};

struct hot_paths *hot_paths__new(void); /* NULL: out of memory */
void hot_paths__free(struct hot_paths *paths);

/* 0 or -ENOMEM. */
int hot_paths__add(struct hot_paths *paths, const struct hot_sample *sample);
uint64_t hot_paths__sample_cnt(const struct hot_paths *paths);

/*
 * The roots, heaviest first.  Going down from the beginning of the threads, a callee with `shared` (0.9, say) of the
 * time of complete stacks is a frame that nearly all of them have in common; where there is none, what is called begins
 * a request's own work.  Unless it is only that different threads do different things there (a pool's workers beside a
 * listener), and each of them always the same: then the search goes on for each kind of thread on its own.  Callees
 * below `least` of all the time are left out.  0, or -ENOMEM; free(*roots).
 */
int hot_paths__roots(const struct hot_paths *paths, double shared, double least, struct hot_root **roots, size_t *cnt);

/* Every edge seen that was not guessed, or those out of one caller (HOT_PATHS_NONE: all), heaviest first; free(*edges).
 */
int hot_paths__edges(const struct hot_paths *paths, uint32_t caller, struct hot_edge **edges, size_t *cnt);
/* The callees of a function with their time beneath it, one per callee (call_addr of the heaviest); free(*edges). */
int hot_paths__children(const struct hot_paths *paths, uint32_t caller, struct hot_edge **edges, size_t *cnt);

/* Of one function: false if it was on no stack. */
bool hot_paths__function(const struct hot_paths *paths, uint32_t function, struct hot_function *weights);
/* All, heaviest first; free(*functions). */
int hot_paths__functions(const struct hot_paths *paths, struct hot_function **functions, size_t *cnt);

/* hot_calls.c: calls that only sampling sees become edges of the program's call graph; returns how many, or -errno. */
int hot_paths__teach(const struct hot_paths *hot, struct program *program);

#endif
