/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Short records as words: in trace mode most records are stretches of a thread in one state, each beginning where the
 * one before ended, and most of their fields are those of the one before.  So each CPU has a ring of 64-bit words in
 * memory that the agent maps, and only what changed is written.
 *
 * The low four bits of a word are its tag.  TIME, THREAD, SID and TYPE change what holds for the words after them;
 * SEGMENT, WAKEUP and BRIEF are records, some of them followed by words without a tag; FIRST belongs to the BRIEF after
 * it.  Writer and reader begin with nothing: time, thread, sid and type are 0.
 */
#ifndef WHYLATE_WORDS_H
#define WHYLATE_WORDS_H

#include <whylate/record.h>

#define WL_WORD_TAG_BITS  4
#define WL_WORD_TAG(word) ((word) & ((1 << WL_WORD_TAG_BITS) - 1))

enum wl_word {
	WL_WORD_TIME = 1,    /* 4: the time, nanoseconds */
	WL_WORD_THREAD = 2,  /* 4: pid, 26: tid, 48: it is none of the target's, 49: a goroutine */
	WL_WORD_SID = 3,     /* 4: the interval that the thread works for */
	WL_WORD_TYPE = 4,    /* 4: of that interval, 32 bits */
	WL_WORD_SEGMENT = 5, /* see WL_SEGMENT_WORD() */
	WL_WORD_WAKEUP = 6,  /* see WL_WAKEUP_WORD() */
	WL_WORD_BRIEF = 7,   /* see WL_BRIEF_WORD() */
	WL_WORD_FIRST = 8,   /* see WL_FIRST_WORD() */
};

/* What a field has room for. The kernel's tids have at most 22 bits, and a sid's upper part is a count. */
#define WL_WORD_ID_BITS               22
#define WL_WORD_LENGTH_BITS           48
#define WL_WORD_FITS(value, bits)     (!((__wl_u64)(value) >> (bits)))
#define WL_WORD_FIELD(word, at, bits) ((__wl_u64)(word) >> (at) & ((1ULL << (bits)) - 1))

#define WL_TIME_WORD(ts)   ((__wl_u64)(ts) << WL_WORD_TAG_BITS | WL_WORD_TIME)
#define WL_SID_WORD(sid)   ((__wl_u64)(sid) << WL_WORD_TAG_BITS | WL_WORD_SID)
#define WL_TYPE_WORD(type) ((__wl_u64)(type) << WL_WORD_TAG_BITS | WL_WORD_TYPE)
#define WL_THREAD_WORD(pid, tid, outside)                                                \
	((__wl_u64)(pid) << WL_WORD_TAG_BITS |                                           \
	 (__wl_u64)((tid) & ~WL_GOROUTINE_TID) << (WL_WORD_TAG_BITS + WL_WORD_ID_BITS) | \
	 (__wl_u64) !!(outside) << 48 | (__wl_u64) !!((tid) & WL_GOROUTINE_TID) << 49 | WL_WORD_THREAD)

/*
 * A stretch of length_ns that begins at the time and ends at what is the time then.  5 bits of the state, 2 of the
 * flags (enum wl_segment_flag but OUTSIDE), how many words follow: 0; 1, of a fault: its address; 2, of a wait: the
 * object, sysno << 32 | owner; 2, of one for a CPU: other_ns, pid << 32 | tid.
 */
#define WL_SEGMENT_WORD(state, flags, more, length_ns)                                                            \
	((__wl_u64)(state) << 4 | (__wl_u64)(flags) << 9 | (__wl_u64)(more) << 11 | (__wl_u64)(length_ns) << 16 | \
	 WL_WORD_SEGMENT)

/*
 * The thread was woken now.  Followed by the waker's pid << 32 | tid and, where the bits say so, arrived_sid and io_ts.
 * sysno is the waker's system call + 1, 0 for none.
 */
#define WL_WAKEUP_WORD(context, file, state, arrived, io, sysno)                                                     \
	((__wl_u64)(context) << 4 | (__wl_u64)(file) << 8 | (__wl_u64)(state) << 12 | (__wl_u64) !!(arrived) << 17 | \
	 (__wl_u64) !!(io) << 18 | (__wl_u64)(sysno) << 24 | WL_WORD_WAKEUP)

/*
 * An interval that need not be known in detail ended after_ns after the time, which it does not change, on the thread.
 * Followed by its sid, its type << 32 | rate, pickup_ts - begin_ts << 32 | end_ts - pickup_ts, and the pid << 32 | tid
 * of who picked it up.
 */
#define WL_BRIEF_WORD(flags, after_ns) ((__wl_u64)(flags) << 4 | (__wl_u64)(after_ns) << 24 | WL_WORD_BRIEF)
#define WL_BRIEF_FLAG_BITS             16
#define WL_BRIEF_AFTER_BITS            40

/*
 * The first bytes of the interval that the next BRIEF is of, of `total` that were read.  Followed by the number of its
 * connection and `len` bytes in as many words as they take, the lowest byte first.
 */
#define WL_FIRST_WORD(len, total) ((__wl_u64)(len) << 4 | (__wl_u64)(total) << 16 | WL_WORD_FIRST)
#define WL_FIRST_LEN_BITS         12
#define WL_FIRST_TOTAL_BITS       32
#define WL_FIRST_WORDS(len)       (((len) + 7) / 8)

/* The longest record and all that may have to be said before it. */
#define WL_WORDS_MAX (9 + 2 + WL_FIRST_WORDS(WL_FIRST_MAX))

/* The words of one CPU; `words` are a power of two of them. */
struct wl_word_ring {
	__wl_u64 head; /* words written since the beginning */
	__wl_u64 busy; /* a record is being written */
	/* What holds for the next word. */
	__wl_u64 ts;
	__wl_u64 thread; /* a WL_THREAD_WORD() */
	__wl_u64 sid;
	__wl_u64 type;
	__wl_u64 reader_woken_ts;
	__wl_u64 zero;
	__wl_u64 emitted[WL_LOSS_CNT]; /* by class, into these words; without room they go to the other ring */
	__wl_u64 tail __attribute__((aligned(64))); /* words read: the agent writes it */
	__wl_u64 words[] __attribute__((aligned(64)));
};

#endif
