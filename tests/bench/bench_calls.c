// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a call costs, by what the first instructions of the function are: calls each in turn and prints `NAME
 * NANOSECONDS` per call, over and over, until its stdin ends.  measure_round() is there to be the interval in which the
 * calls lie.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ROUND_CALLS 500
#define ROUND_CNT   20

typedef void (*callee)(const void *);

/* The shapes that compilers make; what comes after the first fast instruction does not matter. */
#define SHAPE(name, first)                                     \
	void shape_##name(const void *);                       \
	__asm__(".pushsection .text\n"                         \
		".globl shape_" #name "\n"                     \
		".type shape_" #name ", @function\n"           \
		".balign 16\n"                                 \
		"shape_" #name ":\n"                           \
		"\t.cfi_startproc\n" first "\tret\n"           \
		"\t.cfi_endproc\n"                             \
		".size shape_" #name ", . - shape_" #name "\n" \
		".popsection\n")

#define PUSH_POP                       \
	"\tpush %rbp\n"                \
	"\t.cfi_adjust_cfa_offset 8\n" \
	"\tmov %rsp, %rbp\n"           \
	"\tlea -16(%rsp), %rsp\n"      \
	"\tmov %rbp, %rsp\n"           \
	"\tpop %rbp\n"                 \
	"\t.cfi_adjust_cfa_offset -8\n"

SHAPE(push, PUSH_POP);
SHAPE(endbr, "\tendbr64\n" PUSH_POP);
SHAPE(nop5, "\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n" PUSH_POP);
SHAPE(branch, "\tmov $1, %eax\n\ttest %eax, %eax\n\tje 1f\n\tnop\n1:\n" PUSH_POP);
SHAPE(leaf, "\tmov %rdi, %rax\n\tlea 3(%rax), %rax\n\timul %rax, %rax\n");

static const struct {
	const char *name;
	callee call;
} shapes[] = {
	{"push", shape_push},     {"endbr", shape_endbr}, {"nop5", shape_nop5},
	{"branch", shape_branch}, {"leaf", shape_leaf},
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void measure_round(callee call);

__attribute__((noipa)) void measure_round(callee call)
{
	for (int i = 0; i < ROUND_CALLS; i++)
		call(shapes);
}

/* The fastest of many rounds is the one that nothing disturbed. */
static double measure(callee call)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < ROUND_CNT; i++) {
		uint64_t begin_ts = now_ns(), took_ns;

		measure_round(call);
		took_ns = now_ns() - begin_ts;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	return (double)best_ns / ROUND_CALLS;
}

int main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	while (!poll(&in, 1, 0)) {
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			printf("%s %.2f\n", shapes[i].name, measure(shapes[i].call));
			fflush(stdout);
		}
		usleep(1000);
	}
	return 0;
}
