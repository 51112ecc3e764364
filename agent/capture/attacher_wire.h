/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent (attacher.c) and the attaching process (attacher_process.c) say to each other, on a stream socket. */
#ifndef WHYLATE_CAPTURE_ATTACHER_WIRE_H
#define WHYLATE_CAPTURE_ATTACHER_WIRE_H

#include <stdint.h>
#include <sys/types.h>

enum attach_ask {
	ATTACH_ASK_ATTACH, /* with the descriptors of a program and of a file, and `cnt` sites behind it */
	ATTACH_ASK_CLOSE,
};

struct attach_question {
	uint32_t ask;
	uint32_t group;
	uint32_t part; /* enum attach_part */
	int32_t pid;
	uint32_t ticket;
	uint8_t is_return, multi;
	uint8_t zero[2];
	uint64_t cnt;
};

/* To every question; closings are answered when they are done, in any order. */
struct attach_answer {
	uint32_t ask;
	uint32_t ticket;
	int32_t err;
	uint32_t refused;
};

#define ATTACH_SITES_MAX (1 << 20)

/* Fills the whole buffer: 0, -EPIPE at the end of the stream, or -errno. */
int attach_receive(int fd, void *data, size_t sz);
/* Lives until the other end of the socket is closed and everything is taken back. */
_Noreturn void attacher_process(int fd, pid_t agent_pid, bool multi);

#endif
