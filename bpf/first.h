/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first bytes of a request, from which the agent tells its type.  They are read from the target's own buffer when
 * the call that read them has copied them there: its arguments are still in the task's registers.  Only what is read by
 * read(), recv(), recvfrom(), readv() and recvmsg() is found this way, not what io_uring or splice() read.
 */
#ifndef WHYLATE_BPF_FIRST_H
#define WHYLATE_BPF_FIRST_H

#include "trace_context.h"
#include "wait.h"
#include "words.h"

struct user_vector {
	u64 base;
	u64 len;
};

/* Where struct msghdr, as user space has it, points to its vectors: on every 64-bit architecture. */
#define MSGHDR_VECTORS_AT 16

/* Where the call that the current task is in has put what it read, or has what it sends; len 0: not known. */
static __always_inline void call_buffer(struct user_vector *buffer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long nr = call_of(task, regs);
	u64 vectors;

	buffer->base = 0;
	buffer->len = 0;
	if (nr < 0)
		return;
	vectors = syscall_arg(regs, 1);
	switch (cfg_knobs.read_class[nr & (KNOB_SYSCALLS - 1)]) {
	case READ_BUFFER:
		buffer->base = vectors;
		buffer->len = syscall_arg(regs, 2);
		return;
	case READ_MESSAGE:
		if (bpf_probe_read_user(&vectors, sizeof(vectors), (void *)vectors + MSGHDR_VECTORS_AT))
			return;
		break;
	case READ_VECTOR:
		break;
	default:
		return;
	}
	if (bpf_probe_read_user(buffer, sizeof(*buffer), (void *)vectors))
		buffer->len = 0;
}

/* MySQL: header of a packet, and what the reply to COM_STMT_PREPARE has: that it is one, and the statement's number. */
#define MYSQL_PREPARE      0x16
#define MYSQL_PREPARED_SZ  12
#define MYSQL_HEADER_SZ    4
#define MYSQL_REPLY_SZ     9
#define MYSQL_COMMAND_AT   4
#define MYSQL_STATEMENT_AT 5
#define MYSQL_SEQUENCE_AT  3

/* The call under way sends the reply to that interval: see WL_FIRST_PREPARED. */
VERIFIED_ONCE int open__note_prepared(struct open_interval *open)
{
	u8 reply[MYSQL_REPLY_SZ] = {};
	struct user_vector buffer;

	if (!open || open->conn <= WL_FIRST_STRING || open->first_len <= MYSQL_STATEMENT_AT ||
	    open->first[MYSQL_SEQUENCE_AT] || open->first[MYSQL_COMMAND_AT] != MYSQL_PREPARE)
		return 0;
	call_buffer(&buffer);
	if (buffer.len < sizeof(reply) || bpf_probe_read_user(reply, sizeof(reply), (void *)buffer.base))
		return 0;
	if (reply[0] < MYSQL_PREPARED_SZ || reply[1] || reply[2] || reply[MYSQL_SEQUENCE_AT] != 1 ||
	    reply[MYSQL_COMMAND_AT])
		return 0;
	__builtin_memcpy(open->first, reply + MYSQL_STATEMENT_AT, MYSQL_HEADER_SZ);
	open->first[MYSQL_COMMAND_AT] = WL_FIRST_PREPARED;
	return 0;
}

/* The call under way has read so many bytes of it.  True: more would be of use. */
VERIFIED_ONCE bool open__add_first(struct open_interval *open, u64 read_len)
{
	struct user_vector buffer;
	u32 at, len;

	if (!open || open->first_len > WL_FIRST_ENOUGH)
		return false;
	call_buffer(&buffer);
	open->first_total += read_len;
	if (read_len > buffer.len)
		read_len = buffer.len;
	at = open->first_len & WL_FIRST_ENOUGH;
	len = read_len > WL_FIRST_MAX ? WL_FIRST_MAX : read_len;
	if (!len || bpf_probe_read_user(open->first + at, len, (void *)buffer.base))
		return false;
	if (!at)
		open__find_trace(open, buffer.base, read_len);
	at += len;
	open->first_len = at > WL_FIRST_MAX ? WL_FIRST_MAX : at;
	return at <= WL_FIRST_ENOUGH;
}

/* What a symbol list's type= says of it. */
VERIFIED_ONCE int open__set_type(struct open_interval *open, u64 value, u32 is_string)
{
	long len = sizeof(value);

	if (!open)
		return 0;
	open->conn = is_string ? WL_FIRST_STRING : WL_FIRST_NUMBER;
	if (is_string)
		len = bpf_probe_read_user_str(open->first, WL_FIRST_MAX, (void *)value) - 1;
	else
		*(u64 *)open->first = value;
	if (len <= 0 || len >= WL_FIRST_MAX)
		return 0;
	open->first_len = len;
	open->first_total = len;
	return 0;
}

/* Their number. */
static __always_inline u32 open__copy_first(const struct open_interval *open, u8 *first)
{
	__builtin_memcpy(first, open->first, WL_FIRST_MAX);
	return open->first_len;
}

/* In front of a brief record. */
static __always_inline void words__put_first(struct word_writer *writer, const struct open_interval *open)
{
	const u64 *bytes = (const u64 *)open->first;
	u32 len = open->first_len;

	if (!len)
		return;
	words__put(writer, WL_FIRST_WORD(len, open->first_total));
	words__put(writer, open->conn);
	for (u32 i = 0; i < WL_FIRST_MAX / 8 && i * 8 < len; i++)
		words__put(writer, bytes[i]);
}

#endif
