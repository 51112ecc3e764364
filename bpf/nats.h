/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NATS: a server that passes messages on.  Both sides of a connection speak when they like, so that not every message
 * that is read gets a reply on its connection, and what is sent on one need not be a reply:
 *
 *   PUB subject reply-to n    is answered on its connection, after a client of another one has answered
 *   PUB subject n             ends where the server sends it on to the first who wants it; where the subject is a
 *                             reply-to of before, it is the answer, and part of that request
 *   SUB, UNSUB, PONG, CONNECT have no reply
 *
 * The server is a Go program: nothing here looks at connections of others.
 */
#ifndef WHYLATE_BPF_NATS_H
#define WHYLATE_BPF_NATS_H

#include "first.h"

/* Of a line so much is read, in which a subject of some 40 bytes and an inbox find room. */
#define NATS_LINE_MAX 128
#define NATS_LINE_MIN 6
/* Lines without a reply that precede the one that counts. */
#define NATS_LINES_MAX 4
/* What is read first may be the middle of a message: the connection is another protocol's after so many looks. */
#define NATS_LOOKS_MAX 4

/* conn->nats: how often it was looked at, and these. */
#define NATS_LOOKS   7
#define NATS_IS      8
#define NATS_ONE_WAY 16 /* the request under way has no reply on this connection */
#define NATS_SERVES  32 /* requests of others are passed on by it */

/* open->message */
#define MESSAGE_ONE_WAY   1
#define MESSAGE_PASSED_ON 2

enum nats_line {
	NATS_OTHER,
	/* from a client */
	NATS_SILENT, /* no reply, and nobody gets it */
	NATS_ANSWERS,
	NATS_TELLS, /* no reply */
	NATS_ASKS,
	/* to a client */
	NATS_PASSES_ON, /* a request waits for the client's answer */
	NATS_DELIVERS,
	NATS_NOTICE, /* the server's own */
};

#define NATS_WORD(a, b, c, d) ((u32)(a) | (u32)(b) << 8 | (u32)(c) << 16 | (u32)(d) << 24)
/* "_INBOX." */
#define NATS_INBOX    0x2e584f424e495fULL
#define NATS_INBOX_SZ 7
/* "CONNECT " */
#define NATS_CONNECT_SZ 8
/* FNV-1a */
#define NATS_HASH_BEGIN 0xcbf29ce484222325ULL
#define NATS_HASH_PRIME 0x100000001b3ULL

/* What a look at a call's bytes has found. */
struct nats_seen {
	u64 len;  /* of the bytes that the call under way has read, or is sending */
	u32 line; /* enum nats_line */
	u32 zero;
	u64 subject, reply_to; /* hashes of those words */
};

struct nats_search {
	u64 at, end;
	u64 words[2]; /* hashes of the two behind the command */
	u32 found;    /* enum nats_line */
	u32 zero;
	u8 line[NATS_LINE_MAX];
};

/* Of a request that waits for its answer, by its reply-to. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} nats_asked SEC(".maps") __weak;

/* 1 where they are the same. */
static __always_inline u32 nats__same(u32 byte, u32 other)
{
	u32 difference = byte ^ other;

	barrier_var(difference);
	return (difference - 1) >> 31;
}

/*
 * How many blanks the line has, and how long it is, NATS_LINE_MAX where it has no end.  Without a branch for each byte,
 * which the verifier would follow.
 */
static __always_inline u32 nats__words(struct nats_search *search, u32 *len)
{
	u64 hashes[2] = {NATS_HASH_BEGIN, NATS_HASH_BEGIN};
	u32 blanks = 0, inside = 1;

	*len = 0;
	for (u32 i = 0; i < NATS_LINE_MAX; i++) {
		u8 byte = search->line[i];

		inside &= ~nats__same(byte, '\r');
		*len += inside;
		blanks += inside & nats__same(byte, ' ');
		for (u32 word = 0; word < 2; word++) {
			u64 mask = -(u64)(inside & nats__same(blanks, word + 1));

			hashes[word] ^= ((hashes[word] ^ byte) * NATS_HASH_PRIME ^ hashes[word]) & mask;
		}
	}
	search->words[0] = hashes[0];
	search->words[1] = hashes[1];
	return blanks;
}

/* has_header: of HPUB, which has a letter and a number more. */
static __always_inline u32 nats__published(const u8 *line, u32 blanks, u32 has_header)
{
	u64 inbox = 0;

	if (blanks == 3 + has_header)
		return NATS_ASKS;
	if (blanks != 2 + has_header)
		return NATS_OTHER;
	__builtin_memcpy(&inbox, has_header ? line + 5 : line + 4, NATS_INBOX_SZ);
	return inbox == NATS_INBOX ? NATS_ANSWERS : NATS_TELLS;
}

static __always_inline u32 nats__line_of(const u8 *line, u32 blanks)
{
	switch (*(const u32 *)line) {
	case NATS_WORD('P', 'U', 'B', ' '):
		return nats__published(line, blanks, 0);
	case NATS_WORD('H', 'P', 'U', 'B'):
		return nats__published(line, blanks, 1);
	case NATS_WORD('S', 'U', 'B', ' '):
		return blanks == 2 || blanks == 3 ? NATS_SILENT : NATS_OTHER;
	case NATS_WORD('U', 'N', 'S', 'U'):
		return blanks == 1 || blanks == 2 ? NATS_SILENT : NATS_OTHER;
	case NATS_WORD('P', 'O', 'N', 'G'):
		return !blanks ? NATS_SILENT : NATS_OTHER;
	case NATS_WORD('C', 'O', 'N', 'N'):
		return line[NATS_CONNECT_SZ] == '{' ? NATS_SILENT : NATS_OTHER;
	case NATS_WORD('P', 'I', 'N', 'G'):
		return !blanks ? NATS_ASKS : NATS_OTHER;
	case NATS_WORD('M', 'S', 'G', ' '):
		return blanks == 4 ? NATS_PASSES_ON : NATS_DELIVERS;
	case NATS_WORD('H', 'M', 'S', 'G'):
		return blanks == 5 ? NATS_PASSES_ON : NATS_DELIVERS;
	case NATS_WORD('I', 'N', 'F', 'O'):
		return NATS_NOTICE;
	}
	return NATS_OTHER;
}

static long nats__next_line(u32 idx, struct nats_search *search)
{
	u64 len = search->end - search->at;
	u32 line_len, blanks, found;

	if (search->at >= search->end)
		return 1;
	if (len > NATS_LINE_MAX)
		len = NATS_LINE_MAX;
	barrier_var(len);
	if (len < NATS_LINE_MIN || len > NATS_LINE_MAX || bpf_probe_read_user(search->line, len, (void *)search->at))
		return 1;
	blanks = nats__words(search, &line_len);
	found = nats__line_of(search->line, blanks);
	/* Of the lines that are longer only the first word counts. */
	if (line_len + 1 >= len && found != NATS_NOTICE && search->line[NATS_CONNECT_SZ] != '{')
		found = NATS_OTHER;
	if (found != NATS_OTHER || !idx)
		search->found = found;
	search->at += line_len + 2;
	return found != NATS_SILENT;
}

/* The first line that counts of the call's bytes. */
VERIFIED_ONCE int nats__look(struct nats_seen *seen)
{
	struct nats_search search = {};
	struct user_vector buffer;

	if (!seen)
		return 0;
	seen->line = NATS_OTHER;
	call_buffer(&buffer);
	if (!buffer.base || !buffer.len)
		return 0;
	search.at = buffer.base;
	search.end = buffer.base + (seen->len < buffer.len ? seen->len : buffer.len);
	bpf_loop(NATS_LINES_MAX, nats__next_line, &search, 0);
	seen->line = search.found;
	seen->subject = search.words[0];
	seen->reply_to = search.words[1];
	return 0;
}

VERIFIED_ONCE u32 nats__line(u64 len)
{
	struct nats_seen seen = {.len = len};

	nats__look(&seen);
	return seen.line;
}

#endif
