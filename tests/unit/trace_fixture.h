/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of trace mode, made up: what it must be found to say is known. */
#ifndef WHYLATE_TESTS_TRACE_FIXTURE_H
#define WHYLATE_TESTS_TRACE_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_SESSION 0x77ULL
#define TRACE_PID     100 /* of the server `web`, whose thread 101 serves `tcp:80` and 102 serves `tcp:81` */
#define TRACE_FLUSHER 103 /* `flusher`, of the same process: it holds lock web+0x40 for tcp:81's sid, or for nobody */
#define TRACE_HOG     900 /* another process, `hog`, that takes the CPU from the holder */
#define TRACE_PERIOD  1000000ULL

/*
 * `cnt` intervals of type tcp:80, one each TRACE_PERIOD, begin at k·TRACE_PERIOD.  A typical one runs for 100 µs. Every
 * tenth one is late: it waits 500 µs for the lock, which `flusher` holds; during 200 µs of that `hog` has its CPU, and
 * during the other 300 µs it is in fsync.  Interval k has sid k + 1; while it holds the lock, `flusher` works for an
 * interval of type tcp:81 with sid cnt + 1, which is there as well, ends last, and waits for nobody.  Interval 5 is
 * flagged as LOSSY, it must be counted and not ranked.
 */
void trace_fixture_write(const char *dir, uint64_t cnt);
/* The same, but retention has not kept that one: only the segments know of which type it was. */
void trace_fixture_write_unkept(const char *dir, uint64_t cnt);

/*
 * The same with the calls that were made meanwhile, of functions of `web`: handle() for all of an interval of tcp:80,
 * within it get_lock() during the wait, from one of two call sites in turn; on `flusher`, flush() from the late
 * interval's begin until the lock is released, in it sync() while it waits for the disk.
 */
void trace_fixture_write_calls(const char *dir, uint64_t cnt);

/*
 * The same with contexts: TRACE_CONTEXT, and TRACE_CONTEXT_BEHIND behind it.  Late intervals end in the former and the
 * latter in turn, from 5 on; the holder's ends in the latter.
 */
void trace_fixture_write_contexts(const char *dir, uint64_t cnt);

#define TRACE_CONTEXT        30
#define TRACE_CONTEXT_BEHIND 31

#define TRACE_LATE_NS    600000ULL
#define TRACE_TYPICAL_NS 100000ULL

#endif
