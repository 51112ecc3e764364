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
 * A connection has one request at a time: that of the first message that is read when none is under way.  The others
 * are counted (WL_LOSS_MESSAGE).
 *
 * The server is a Go program: nothing here looks at connections of others.
 */
#ifndef WHYLATE_BPF_NATS_H
#define WHYLATE_BPF_NATS_H

#include "first.h"

/* Of a line so much is read, in which a subject of some 40 bytes and an inbox find room. */
#define NATS_LINE_MAX 128
#define NATS_LINE_MIN 6
/* Lines of a read, of messages and without a reply, that are looked at. */
#define NATS_LINES_MAX 16
/* The most that a server can be told to take as one message. */
#define NATS_PAYLOAD_MAX (64u << 20)
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
	u64 len;               /* of the bytes that the call under way has read, or is sending */
	u32 line;              /* enum nats_line */
	u32 message_cnt;       /* that tell or ask something, the first of them and those behind it */
	u64 subject, reply_to; /* hashes of those words */
};

struct nats_search {
	struct user_vector left; /* of the call's bytes */
	u64 words[2];            /* hashes of the two behind the command of the first line that counts */
	/* Of the line: its length, NATS_LINE_MAX where it has no end; the number that its last word is. */
	u32 len, blank_cnt, number;
	u16 message_cnt;
	u8 found; /* enum nats_line */
	u8 is_found;
	u8 line[NATS_LINE_MAX];
};

/* Of a request that waits for its answer, by its reply-to. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} nats_asked SEC(".maps") __weak;

/* A callback of bpf_loop(), because the verifier would walk every path through an open loop. */
static long nats__next_byte(u32 idx, struct nats_search **of)
{
	struct nats_search *search = *of;
	u8 byte = search->line[idx & (NATS_LINE_MAX - 1)];

	if (byte == '\r')
		return 1;
	search->len++;
	search->number = search->number * 10 + byte - '0';
	if (byte == ' ') {
		search->blank_cnt++;
		search->number = 0;
	}
	if (search->is_found)
		return 0;
	if (search->blank_cnt == 1)
		search->words[0] = (search->words[0] ^ byte) * NATS_HASH_PRIME;
	if (search->blank_cnt == 2)
		search->words[1] = (search->words[1] ^ byte) * NATS_HASH_PRIME;
	return 0;
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

static __always_inline bool nats__publishes(const u8 *line)
{
	u32 word = *(const u32 *)line;

	return word == NATS_WORD('P', 'U', 'B', ' ') || word == NATS_WORD('H', 'P', 'U', 'B');
}

static long nats__next_line(u32 idx, struct nats_search **of)
{
	struct nats_search *search = *of;
	u64 len = search->left.len, taken;
	u32 found;

	if (len > NATS_LINE_MAX)
		len = NATS_LINE_MAX;
	barrier_var(len);
	if (len < NATS_LINE_MIN || len > NATS_LINE_MAX ||
	    bpf_probe_read_user(search->line, len, (void *)search->left.base))
		return 1;
	search->len = search->blank_cnt = search->number = 0;
	if (!search->is_found)
		search->words[0] = search->words[1] = NATS_HASH_BEGIN;
	bpf_loop(NATS_LINE_MAX, nats__next_byte, of, 0);
	found = nats__line_of(search->line, search->blank_cnt);
	search->message_cnt += nats__publishes(search->line) ? found != NATS_ANSWERS : found == NATS_ASKS;
	/* Of the lines that are longer only the first word counts. */
	if (search->len + 1 >= len && found != NATS_NOTICE && search->line[NATS_CONNECT_SZ] != '{')
		found = NATS_OTHER;
	if (!search->is_found && (found != NATS_OTHER || !idx)) {
		search->found = found;
		search->is_found = found != NATS_SILENT;
	}
	taken = search->len + 2;
	if (nats__publishes(search->line)) {
		if (search->number > NATS_PAYLOAD_MAX)
			return 1;
		taken += search->number + 2;
	}
	search->left.base += taken;
	search->left.len -= taken < search->left.len ? taken : search->left.len;
	return found == NATS_OTHER || found > NATS_ASKS;
}

/* A call that the verifier looks at once: it knows nothing of what the lines are then, and a loop is one turn to it. */
VERIFIED_ONCE int nats__lines(struct nats_search *search)
{
	if (search)
		bpf_loop(NATS_LINES_MAX, nats__next_line, &search, 0);
	return 0;
}

/* The first line that counts of the call's bytes, and how many messages there are. */
VERIFIED_ONCE int nats__look(struct nats_seen *seen)
{
	struct nats_search search = {};

	if (!seen)
		return 0;
	seen->line = NATS_OTHER;
	call_buffer(&search.left);
	if (!search.left.base || !search.left.len)
		return 0;
	if (seen->len < search.left.len)
		search.left.len = seen->len;
	nats__lines(&search);
	seen->line = search.found;
	seen->message_cnt = search.message_cnt;
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
