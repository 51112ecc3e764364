// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind_subject.h"

#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))

#if defined(__aarch64__)
const uint8_t subject_kept[SUBJECT_KEPT] = {19, 20, 21, 22, 23, 29};
#else
const uint8_t subject_kept[SUBJECT_KEPT] = {3, 6, 12, 13, 14, 15};
#endif

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
	struct subject_view *view = arg;

	if (view->backtrace_cnt == SUBJECT_FRAMES_MAX)
		return _URC_END_OF_STACK;
	for (size_t i = 0; i < SUBJECT_KEPT; i++)
		view->kept[view->backtrace_cnt][i] = _Unwind_GetGR(context, subject_kept[i]);
	view->backtrace[view->backtrace_cnt++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void copy_registers(uint64_t *regs, const ucontext_t *context)
{
#if defined(__x86_64__)
	static const int places[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		regs[i] = context->uc_mcontext.gregs[places[i]];
#else
	for (int i = 0; i < 31; i++)
		regs[i] = context->uc_mcontext.regs[i];
	regs[WL_STACK_REG_SP] = context->uc_mcontext.sp;
	regs[WL_STACK_REG_PC] = context->uc_mcontext.pc;
#endif
}

/* Not beyond the end of the stack's mapping. */
static size_t stack_left(uint64_t sp)
{
	pthread_attr_t attr;
	void *addr = NULL;
	size_t sz = 0;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &addr, &sz);
	pthread_attr_destroy(&attr);
	return sp >= (uint64_t)(uintptr_t)addr && sp < (uint64_t)(uintptr_t)addr + sz
		       ? (uint64_t)(uintptr_t)addr + sz - sp
		       : 0;
}

NOINLINE void subject_look(struct subject_view *view)
{
	const volatile uint8_t *bytes;
	ucontext_t context;
	size_t left;

	getcontext(&context);
	copy_registers(view->regs, &context);
	view->backtrace_cnt = 0;
	_Unwind_Backtrace(note_frame, view);
	left = stack_left(view->regs[WL_STACK_REG_SP]);
	view->stack_sz = view->stack_wanted && view->stack_wanted < left ? view->stack_wanted : left;
	if (view->stack_sz > sizeof(view->stack))
		view->stack_sz = sizeof(view->stack);
	/* No memcpy(), which the sanitizers watch. */
	bytes = (const volatile uint8_t *)(uintptr_t)view->regs[WL_STACK_REG_SP];
	for (size_t i = 0; i < view->stack_sz; i++)
		view->stack[i] = bytes[i];
}

/* What comes after the call keeps it from being a jump. */
static volatile int after;
static struct subject_view *sorting_for;
static int sorting_rounds, sorting_shape;
static void go_on(int rounds, int shape, struct subject_view *view);

static NOINLINE void plain(int rounds, int shape, struct subject_view *view)
{
	go_on(rounds, shape, view);
	after++;
}

static NOINLINE void big(int rounds, int shape, struct subject_view *view)
{
	volatile char room[1500];

	room[after & 1] = 1;
	go_on(rounds, shape, view);
	after += room[0];
}

static NOINLINE void with_alloca(int rounds, int shape, struct subject_view *view)
{
	volatile char *room = alloca(100 + (after & 63));

	room[0] = 1;
	go_on(rounds, shape, view);
	after += room[0];
}

static NOINLINE void aligned(int rounds, int shape, struct subject_view *view)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[after & 1] = 1;
	go_on(rounds, shape, view);
	after += room[0];
}

static void (*volatile pointer)(int rounds, int shape, struct subject_view *view) = plain;

static NOINLINE void by_pointer(int rounds, int shape, struct subject_view *view)
{
	pointer(rounds, shape, view);
	after++;
}

static NOINLINE int compare(const void *left, const void *right)
{
	struct subject_view *view = sorting_for;

	(void)left;
	(void)right;
	sorting_for = NULL;
	if (view)
		go_on(sorting_rounds, sorting_shape, view);
	return ++after & 0;
}

static NOINLINE void by_qsort(int rounds, int shape, struct subject_view *view)
{
	int items[2] = {2, 1};

	sorting_for = view;
	sorting_rounds = rounds;
	sorting_shape = shape;
	qsort(items, 2, sizeof(items[0]), compare);
	after++;
}

static void (*const shapes[SUBJECT_SHAPE_CNT])(int rounds, int shape, struct subject_view *view) = {
	[SUBJECT_PLAIN] = plain,        [SUBJECT_BIG] = big,
	[SUBJECT_ALLOCA] = with_alloca, [SUBJECT_ALIGNED] = aligned,
	[SUBJECT_POINTER] = by_pointer, [SUBJECT_QSORT] = by_qsort,
};

static NOINLINE void go_on(int rounds, int shape, struct subject_view *view)
{
	if (shape == SUBJECT_SHAPE_CNT && rounds > 1) {
		shape = 0;
		rounds--;
	}
	if (shape == SUBJECT_SHAPE_CNT)
		subject_look(view);
	else
		shapes[shape](rounds, shape + 1, view);
	after++;
}

NOINLINE void subject_call(enum subject_shape shape, struct subject_view *view)
{
	shapes[shape](1, SUBJECT_SHAPE_CNT, view);
	after++;
}

NOINLINE void subject_call_nested(int rounds, struct subject_view *view)
{
	go_on(rounds, 0, view);
	after++;
}
