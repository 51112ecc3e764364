// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether control can leave a function other than by returning to its caller: an exception, the unwinding of a
 * cancelled thread, a longjmp, a switch of stacks.  The answer "never" is a proof over everything that is called
 * beneath.
 */
#include "target/function_code.h"
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

#define VISITS_MAX      2000
#define ARRAY_CNT(list) (sizeof(list) / sizeof((list)[0]))

bool name_is_listed(const char *name, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* They end the process, one way or another: what is thrown in them goes nowhere. */
static bool ends_process(const char *name)
{
	static const char *const names[] = {
		"abort",
		"exit",
		"_exit",
		"_Exit",
		"quick_exit",
		"__assert_fail",
		"__assert_perror_fail",
		"__stack_chk_fail",
		"__fortify_fail",
		"__chk_fail",
		"__libc_fatal",
		"__libc_message",
		"__libc_assert_fail",
		"__malloc_assert",
		"malloc_printerr",
		"futex_fatal_error",
		"_ZSt9terminatev",
		"__cxa_pure_virtual",
		"__cxa_call_terminate",
		"__clang_call_terminate",
	};

	return name_is_listed(name, names, ARRAY_CNT(names));
}

static bool continues_elsewhere(const char *name)
{
	static const char *const names[] = {
		"swapcontext", "setcontext",        "longjmp",         "_longjmp",      "siglongjmp",
		"__longjmp",   "__libc_siglongjmp", "____longjmp_chk", "__longjmp_chk",
	};

	return name_is_listed(name, names, ARRAY_CNT(names));
}

/*
 * What the C library promises, which its code does not show: deep down nearly all of it can reach a cancellation point,
 * or a pointer into the vDSO.  None of these calls anything of the program's.
 */
static bool is_promised(const char *name)
{
	static const char *const names[] = {
		"malloc",
		"free",
		"calloc",
		"realloc",
		"memalign",
		"posix_memalign",
		"aligned_alloc",
		"pthread_mutex_lock",
		"pthread_mutex_trylock",
		"pthread_mutex_timedlock",
		"pthread_mutex_clocklock",
		"pthread_mutex_unlock",
		"pthread_mutex_unlock_usercnt",
		"pthread_rwlock_rdlock",
		"pthread_rwlock_tryrdlock",
		"pthread_rwlock_timedrdlock",
		"pthread_rwlock_clockrdlock",
		"pthread_rwlock_wrlock",
		"pthread_rwlock_trywrlock",
		"pthread_rwlock_timedwrlock",
		"pthread_rwlock_clockwrlock",
		"pthread_rwlock_unlock",
		"pthread_spin_lock",
		"pthread_spin_trylock",
		"pthread_spin_unlock",
		"pthread_cond_signal",
		"pthread_cond_broadcast",
		"pthread_barrier_wait",
		"sem_post",
		"sem_trywait",
		"clock_gettime",
		"clock_getres",
		"gettimeofday",
		"time",
		"sched_getcpu",
		"tunable_get_val",
	};

	return name_is_listed(name, names, ARRAY_CNT(names));
}

/* POSIX.1-2017, §2.9.5.2, those that servers wait in: left only by a thread that somebody cancels. */
static bool is_cancellation_point(const char *name)
{
	static const char *const names[] = {
		"accept",
		"accept4",
		"clock_nanosleep",
		"close",
		"connect",
		"epoll_wait",
		"epoll_pwait",
		"fcntl",
		"fcntl64",
		"fdatasync",
		"fsync",
		"getrandom",
		"msync",
		"nanosleep",
		"open",
		"open64",
		"openat",
		"openat64",
		"poll",
		"ppoll",
		"pread",
		"pread64",
		"preadv",
		"pselect",
		"pthread_cond_clockwait",
		"pthread_cond_timedwait",
		"pthread_cond_wait",
		"pwrite",
		"pwrite64",
		"pwritev",
		"read",
		"readv",
		"recv",
		"recvfrom",
		"recvmmsg",
		"recvmsg",
		"select",
		"sem_clockwait",
		"sem_timedwait",
		"sem_wait",
		"send",
		"sendmmsg",
		"sendmsg",
		"sendto",
		"sleep",
		"usleep",
		"wait",
		"wait4",
		"waitpid",
		"write",
		"writev",
	};

	return name_is_listed(name, names, ARRAY_CNT(names));
}

bool c_library_is_alone_in(const char *name)
{
	return is_promised(name) || is_cancellation_point(name);
}

struct proof {
	struct program *program;
	VEC(uint32_t) visited; /* all that have been reached; also the queue */
	uint8_t *seen;
	uint32_t room;
	bool cancels;
};

static int reach(struct proof *proof, uint32_t id)
{
	uint32_t room = proof->room ? proof->room : 1024;
	uint8_t *seen;

	if (id >= proof->room) {
		while (room <= id)
			room *= 2;
		seen = realloc(proof->seen, room);
		if (!seen)
			return -ENOMEM;
		memset(seen + proof->room, 0, room - proof->room);
		proof->seen = seen;
		proof->room = room;
	}
	if (proof->seen[id])
		return 0;
	proof->seen[id] = 1;
	return vec_push(&proof->visited, id);
}

static bool is_c_library(const struct proof *proof, const struct function *function)
{
	const char *module = proof->program->modules.items[function->public.module]->name;

	return !strncmp(module, "libc.so.6", 9) || !strncmp(module, "ld-linux", 8);
}

/* Needs no look at its code. */
static bool is_harmless(const struct proof *proof, const struct function *function)
{
	const char *name = function->public.name;

	if (function->throws == THROW_NEVER || function->is_leaf || function->public.is_ifunc || ends_process(name))
		return true;
	if (!is_c_library(proof, function))
		return false;
	name += strspn(name, "_");
	return is_promised(name) || (!proof->cancels && is_cancellation_point(name));
}

/* Can this one, for itself, be the reason? */
static bool is_reason(struct proof *proof, struct function *function)
{
	return function->throws == THROW_PERHAPS || continues_elsewhere(function->public.name) ||
	       program__calls_indirectly(proof->program, function->public.id) || function->unresolved_calls;
}

/*
 * Everything that is called beneath, until one is found of which not all callees are known.  When none is found, the
 * proof holds for all that have been visited.
 */
static bool prove_never(struct proof *proof, uint32_t id)
{
	if (reach(proof, id))
		return false;
	for (size_t i = 0; i < proof->visited.cnt; i++) {
		struct function *function = program_function_of(proof->program, proof->visited.items[i]);

		if (is_harmless(proof, function))
			continue;
		if (proof->visited.cnt > VISITS_MAX || is_reason(proof, function))
			return false;
		for (uint32_t j = 0; j < function->static_cnt; j++) {
			const struct function *callee = program_function_of(proof->program, function->edges[j].callee);

			if ((callee->throws == THROW_PERHAPS && !is_harmless(proof, callee)) ||
			    reach(proof, callee->public.id))
				return false;
		}
	}
	for (size_t i = 0; i < proof->visited.cnt; i++)
		program_function_of(proof->program, proof->visited.items[i])->throws = THROW_NEVER;
	return true;
}

bool program__leaves_elsewhere(struct program *program, uint32_t id)
{
	const struct function *function = program_function_of(program, id);
	struct module *module = function ? program_module_of(program, function->public.module) : NULL;

	return module && (continues_elsewhere(function->public.name) ||
			  module_sets_stack_in(program, module, function->public.addr, function->public.size));
}

bool program__may_throw(struct program *program, uint32_t id)
{
	struct function *function = program_function_of(program, id);
	struct proof proof = {.program = program};

	if (!function)
		return true;
	if (function->throws == THROW_UNKNOWN) {
		proof.cancels = program_has_mark(program, ELF_MARK_CANCELS);
		if (!prove_never(&proof, id))
			function->throws = THROW_PERHAPS;
		vec_free(&proof.visited);
		free(proof.seen);
	}
	return function->throws == THROW_PERHAPS;
}

void program__throws_forget(struct program *program)
{
	program->linked_known = false;
	for (size_t i = 0; i < program->modules.cnt; i++)
		for (size_t j = 0; j < program->modules.items[i]->functions.cnt; j++)
			program->modules.items[i]->functions.items[j].throws = THROW_UNKNOWN;
}
