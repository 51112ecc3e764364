/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent (symbols.c) and whylate-symbols (symbols_process.c) say to each other, in packets. */
#ifndef WHYLATE_TARGET_SYMBOLS_WIRE_H
#define WHYLATE_TARGET_SYMBOLS_WIRE_H

#include "target/elf_rows.h"
#include "target/inlines.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols_work;

enum symbols_ask {
	SYMBOLS_ASK_OPEN, /* with the file's descriptor */
	SYMBOLS_ASK_INLINED,
	SYMBOLS_ASK_GO,         /* with the file's descriptor */
	SYMBOLS_ASK_TABLE,      /* a struct symbols_table_question, with the file's descriptor */
	SYMBOLS_ASK_OPEN_LINES, /* as SYMBOLS_ASK_OPEN, for source lines */
	SYMBOLS_ASK_LINE,       /* of that address: the answer's name is the file */
};

struct symbols_question {
	uint32_t ask;
	uint32_t file; /* the agent's number of it */
	uint64_t seq;
	uint64_t addr;
};

/* The symbol tables of the file, or of what a section of it unpacks to.  The answer is that of elf_rows.h. */
struct symbols_table_question {
	struct symbols_question head;
	uint64_t packed_off, packed_sz; /* .gnu_debugdata; 0: the file's own */
	uint64_t left;                  /* bytes of symbols that may be read */
	uint64_t at;                    /* of ELF_READ_DATUM, the kind of symbol of ELF_READ_VARIABLE */
	uint16_t what;                  /* enum elf_what */
	uint16_t is_debug;              /* of another file, whose segments these are */
	uint32_t code_cnt;
	char name[ELF_VARIABLE_NAME_SZ]; /* of ELF_READ_VARIABLE */
	struct elf_code code[ELF_ROWS_CODE_MAX];
};

/* Of SYMBOLS_ASK_GO: offsets in the runtime's structures, as of struct go_layout. */
struct symbols_go {
	uint32_t goid, status, wait_reason, start_pc;
	uint32_t sched, sched_sz;
	uint32_t stopping_off, stopping_sz;
};

/* To every question, in their order. */
struct symbols_answer {
	uint64_t seq;
	uint32_t err;
	uint32_t cnt;  /* of names */
	uint32_t line; /* of SYMBOLS_ASK_LINE */
	uint32_t pad;
	union {
		char names[INLINES_DEPTH_MAX * INLINES_NAME_SZ]; /* one behind the other, each with its NUL */
		struct symbols_go go;
	};
};

#define SYMBOLS_ANSWER_HEAD offsetof(struct symbols_answer, names)
#define SYMBOLS_FILES_MAX   256
/* The process could not give up what it must not have. */
#define SYMBOLS_EXIT_UNCONFINED 2

/*
 * Bytes of names in an answer of sz bytes to that question, whose names are made printable; -EBADMSG: it is none.
 * Nothing that it says is trusted.
 */
ssize_t symbols_answer_check(struct symbols_answer *answer, size_t sz, const struct symbols_question *question);
/* The same of an answer to SYMBOLS_ASK_GO: 0 or -EBADMSG. */
int symbols_go_check(const struct symbols_answer *answer, size_t sz, const struct symbols_question *question);
/* Lives until the other end of the socket is closed, or its parent has ended. */
_Noreturn void symbols_process(int fd, pid_t parent, const struct symbols_work *work);

#endif
