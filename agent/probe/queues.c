// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/queues.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"

#include <errno.h>
#include <string.h>

#define WRAPPER_ROUNDS  6    /* wrappers of wrappers: without inlining, of std::mutex in std::unique_lock */
#define WRAPPER_SZ_MAX  1024 /* bytes of code */
#define EXCHANGE_SZ_MAX 192
#define LOCKLESS_NS     1500000000ULL /* of CPU time, for what may be a queue without a lock that is known */

static const struct {
	const char *name;
	enum section_call calls;
} known[] = {
	{"pthread_mutex_lock", SECTION_CALL_LOCK},
	{"pthread_mutex_trylock", SECTION_CALL_TRY_LOCK},
	{"pthread_mutex_unlock", SECTION_CALL_UNLOCK},
	{"pthread_spin_lock", SECTION_CALL_LOCK},
	{"pthread_spin_trylock", SECTION_CALL_TRY_LOCK},
	{"pthread_spin_unlock", SECTION_CALL_UNLOCK},
	{"pthread_rwlock_wrlock", SECTION_CALL_LOCK},
	{"pthread_rwlock_rdlock", SECTION_CALL_LOCK},
	{"pthread_rwlock_unlock", SECTION_CALL_UNLOCK},
	{"mtx_lock", SECTION_CALL_LOCK},
	{"mtx_unlock", SECTION_CALL_UNLOCK},
	{"pthread_cond_wait", SECTION_CALL_WAIT},
	{"pthread_cond_timedwait", SECTION_CALL_WAIT},
	{"pthread_cond_clockwait", SECTION_CALL_WAIT},
	{"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", SECTION_CALL_WAIT},
	{"sem_wait", SECTION_CALL_DOWN},
	{"sem_timedwait", SECTION_CALL_DOWN},
	{"pthread_cond_signal", SECTION_CALL_WAKE},
	{"pthread_cond_broadcast", SECTION_CALL_WAKE},
	{"_ZNSt18condition_variable10notify_oneEv", SECTION_CALL_WAKE},
	{"_ZNSt18condition_variable10notify_allEv", SECTION_CALL_WAKE},
	{"sem_post", SECTION_CALL_UP},
	{"write", SECTION_CALL_WAKE},
	{"eventfd_write", SECTION_CALL_WAKE},
	{"_ZSt20__throw_system_errori", SECTION_CALL_ENDS},
	{"_ZSt20__throw_length_errorPKc", SECTION_CALL_ENDS},
	{"_ZSt19__throw_logic_errorPKc", SECTION_CALL_ENDS},
	{"_ZSt24__throw_out_of_range_fmtPKcz", SECTION_CALL_ENDS},
	{"_ZSt25__throw_bad_function_callv", SECTION_CALL_ENDS},
	{"_ZSt17__throw_bad_allocv", SECTION_CALL_ENDS},
	{"_ZSt28__throw_bad_array_new_lengthv", SECTION_CALL_ENDS},
	{"_ZSt21__glibcxx_assert_failPKciS0_S0_", SECTION_CALL_ENDS},
	{"_ZSt9terminatev", SECTION_CALL_ENDS},
	{"__cxa_throw", SECTION_CALL_ENDS},
	{"__cxa_rethrow", SECTION_CALL_ENDS},
	{"_Unwind_Resume", SECTION_CALL_ENDS},
	{"__stack_chk_fail", SECTION_CALL_ENDS},
	{"__assert_fail", SECTION_CALL_ENDS},
	{"abort", SECTION_CALL_ENDS},
	{"exit", SECTION_CALL_ENDS},
	{"_exit", SECTION_CALL_ENDS},
};

/* They implement what others lock with. */
static const char *const own_locks[] = {"libc.so", "ld-linux", "libpthread.so", "linux-vdso"};

struct wrapper {
	uint32_t module;
	uint64_t addr;
	const char *name; /* NULL: other modules cannot call it */
	uint32_t tag;
};

struct finder {
	struct program *program;
	struct queue_places *places;
	VEC(struct wrapper) wrappers;
	uint64_t until_cpu_ns;
};

typedef VEC(uint32_t) function_ids;

static bool is_searched(struct program *program, uint32_t idx)
{
	const struct program_module *module = program__module(program, idx);

	for (size_t i = 0; i < sizeof(own_locks) / sizeof(own_locks[0]); i++)
		if (!strncmp(module->name, own_locks[i], strlen(own_locks[i])))
			return false;
	return !module->is_go && !module->gone && !module->awaited;
}

/* What of the targets is wanted. */
enum targets_of {
	TARGETS_LOCKS,    /* what tells a function that may have a section */
	TARGETS_SECTIONS, /* … and what its code is read with */
	TARGETS_LOCKLESS, /* what tells a function that may have a queue without a lock */
	TARGETS_ALL,
};

static bool is_wanted(enum targets_of of, uint32_t tag)
{
	uint32_t calls = SECTION_TAG_CALLS(tag);

	switch (of) {
	case TARGETS_LOCKS:
		return calls != SECTION_CALL_EXCHANGE && calls != SECTION_CALL_ENDS;
	case TARGETS_SECTIONS:
		return calls != SECTION_CALL_EXCHANGE;
	case TARGETS_LOCKLESS:
		return section_call_exchanges(calls);
	case TARGETS_ALL:
		break;
	}
	return true;
}

static int targets_make(struct finder *finder, uint32_t module, enum targets_of of, struct call_targets *targets)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !err; i++)
		if (is_wanted(of, SECTION_TAG(known[i].calls, 0)))
			err = call_targets_add(finder->program, module, known[i].name, SECTION_TAG(known[i].calls, 0),
					       targets);
	for (size_t i = 0; i < finder->wrappers.cnt && !err; i++) {
		const struct wrapper *wrapper = &finder->wrappers.items[i];

		if (!is_wanted(of, wrapper->tag))
			continue;
		if (wrapper->name)
			err = call_targets_add(finder->program, module, wrapper->name, wrapper->tag, targets);
		if (wrapper->module == module && !err)
			err = vec_push(&targets->items, ((struct call_target){wrapper->addr, wrapper->tag}));
	}
	return err ? err : call_targets_complete(finder->program, module, targets);
}

ORDER(id_cmp, uint32_t, BY(*a, *b));

/* The functions that the sites lie in, each once. */
static int functions_of(struct finder *finder, uint32_t module, const call_site_addrs *sites, function_ids *functions)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < sites->cnt && !err; i++) {
		uint32_t id = program__function_at(finder->program, module, sites->items[i]);

		if (id != PROGRAM_NONE && !program__function(finder->program, id)->is_part)
			err = vec_push(functions, id);
	}
	vec_sort(functions, id_cmp);
	for (size_t i = 0; i < functions->cnt; i++)
		if (!i || functions->items[i] != functions->items[kept - 1])
			functions->items[kept++] = functions->items[i];
	functions->cnt = kept;
	return err;
}

/* The functions that call one of the targets. */
static int functions_find(struct finder *finder, uint32_t module, const struct call_targets *targets,
			  function_ids *functions)
{
	call_site_addrs sites = {0};
	int err = call_sites_find(finder->program, module, targets, &sites);

	if (!err)
		err = functions_of(finder, module, &sites, functions);
	vec_free(&sites);
	return err;
}

static bool is_wrapper(const struct finder *finder, uint32_t module, uint64_t addr)
{
	for (size_t i = 0; i < finder->wrappers.cnt; i++)
		if (finder->wrappers.items[i].module == module && finder->wrappers.items[i].addr == addr)
			return true;
	return false;
}

static int wrapper_add(struct finder *finder, const struct program_function *function, enum section_call calls,
		       int lock_arg)
{
	struct wrapper wrapper = {
		.module = function->module,
		.addr = function->addr,
		.name = function->source == FUNCTION_DYNSYM || function->source == FUNCTION_SYMTAB ? function->name
												   : NULL,
		.tag = SECTION_TAG(calls, lock_arg),
	};

	return is_wrapper(finder, function->module, function->addr) ? 0 : vec_push(&finder->wrappers, wrapper);
}

static int places_add(struct finder *finder, const struct program_function *function, const struct sections *sections,
		      bool has_locks)
{
	int err = 0;

	for (size_t i = 0; i < sections->uses.cnt && !err; i++) {
		const struct section_use *use = &sections->uses.items[i];
		struct queue_place place = {
			.module = function->module,
			.function = function->id,
			.use = *use,
			.waits = use->out && sections->waits,
			.wakes = !use->out && sections->wakes,
		};

		/* New memory: it is filled in and not looked at. */
		if (!use->only_written)
			err = vec_push(&finder->places->items, place);
	}
	finder->places->lock_functions += has_locks;
	finder->places->own_lock_functions += has_locks && !function->module && sections->uses.cnt;
	return err;
}

/* In one module: for_wrappers: short functions that are locks themselves; otherwise: places. */
static int module_read(struct finder *finder, uint32_t module, bool for_wrappers)
{
	struct call_targets locks = {0}, targets = {0};
	function_ids functions = {0};
	int err = targets_make(finder, module, TARGETS_LOCKS, &locks);

	if (!err)
		err = functions_find(finder, module, &locks, &functions);
	if (!err && functions.cnt)
		err = targets_make(finder, module, TARGETS_SECTIONS, &targets);
	for (size_t i = 0; i < functions.cnt && !err; i++) {
		const struct program_function *function = program__function(finder->program, functions.items[i]);
		struct sections sections;

		if (for_wrappers ? function->size > WRAPPER_SZ_MAX : is_wrapper(finder, module, function->addr))
			continue;
		if (process_cpu_ns() > finder->until_cpu_ns) {
			finder->places->left_out += functions.cnt - i;
			break;
		}
		err = sections_find(finder->program, functions.items[i], &targets, &sections);
		if (!err && !for_wrappers)
			err = places_add(finder, function, &sections, true);
		else if (!err && sections.locks != sections.unlocks)
			err = wrapper_add(finder, function, sections.locks ? SECTION_CALL_LOCK : SECTION_CALL_UNLOCK,
					  sections.lock_arg);
		sections_free(&sections);
	}
	vec_free(&functions);
	call_targets_free(&locks);
	call_targets_free(&targets);
	/* A module that cannot be read has no places. */
	return err == -ENOMEM ? err : 0;
}

static int modules_read(struct finder *finder, bool for_wrappers)
{
	int err = 0;

	for (uint32_t module = 0; module < program__module_cnt(finder->program) && !err; module++)
		if (is_searched(finder->program, module))
			err = module_read(finder, module, for_wrappers);
	return err;
}

/* --- without a lock that is known ----------------------------------------------------------------------------------
 */

/* In one module: for_wrappers: short functions that exchange what lies in memory; otherwise: places. */
static int lockless_read(struct finder *finder, uint32_t module, bool for_wrappers)
{
	struct call_targets sites_of = {0}, targets = {0};
	function_ids functions = {0};
	call_site_addrs sites = {0};
	int err = exchange_sites_find(finder->program, module, &sites);

	if (!err && !for_wrappers)
		err = targets_make(finder, module, TARGETS_ALL, &targets);
	if (!err && !for_wrappers)
		err = targets_make(finder, module, TARGETS_LOCKLESS, &sites_of);
	if (!err && !for_wrappers)
		err = call_sites_find(finder->program, module, &sites_of, &sites);
	if (!err)
		err = functions_of(finder, module, &sites, &functions);
	for (size_t i = 0; i < functions.cnt && !err; i++) {
		const struct program_function *function = program__function(finder->program, functions.items[i]);
		struct sections sections;

		if (for_wrappers && function->size > EXCHANGE_SZ_MAX)
			continue;
		/* Most of what is left only looks like it. */
		if (process_cpu_ns() > finder->until_cpu_ns)
			break;
		err = sections_find_lockless(finder->program, functions.items[i], &targets, &sections);
		if (!err && for_wrappers && sections.exchanges)
			err = wrapper_add(finder, function, SECTION_CALL_EXCHANGE, -1);
		else if (!err && !for_wrappers)
			err = places_add(finder, function, &sections, false);
		sections_free(&sections);
	}
	vec_free(&sites);
	vec_free(&functions);
	call_targets_free(&sites_of);
	call_targets_free(&targets);
	return err == -ENOMEM ? err : 0;
}

static int lockless_modules_read(struct finder *finder)
{
	int err = 0;

	for (int round = 0; round < 2; round++)
		for (uint32_t module = 0; module < program__module_cnt(finder->program) && !err; module++)
			if (is_searched(finder->program, module))
				err = lockless_read(finder, module, !round);
	return err;
}

/* What waits or wakes, what is moved in the section itself, what may be a pointer; the executable before its libraries.
 */
static int score_of(const struct queue_place *place)
{
	return 16 * !place->use.lockless + 8 * (place->waits || place->wakes) + 4 * !place->use.handed +
	       2 * (place->use.place.sz == 8) + !place->module;
}

ORDER(place_cmp, struct queue_place, BY(score_of(b), score_of(a)), BY(a->function, b->function),
      BY(a->use.addr, b->use.addr));

int queue_places_find(struct program *program, size_t max, uint64_t limit_ns, struct queue_places *places)
{
	uint64_t begin_cpu_ns = process_cpu_ns();
	size_t known_before = SIZE_MAX;
	/* Most of the time is for the places themselves. */
	struct finder finder = {.program = program, .places = places, .until_cpu_ns = begin_cpu_ns + limit_ns / 3};
	int err = 0;

	memset(places, 0, sizeof(*places));
	for (int round = 0; round < WRAPPER_ROUNDS && !err && known_before != finder.wrappers.cnt; round++) {
		known_before = finder.wrappers.cnt;
		err = modules_read(&finder, true);
	}
	if (!err) {
		places->left_out = 0;
		finder.until_cpu_ns = begin_cpu_ns + limit_ns;
		err = modules_read(&finder, false);
	}
	places->sections_ns = process_cpu_ns() - begin_cpu_ns;
	if (!err && process_cpu_ns() < finder.until_cpu_ns) {
		if (finder.until_cpu_ns > process_cpu_ns() + LOCKLESS_NS)
			finder.until_cpu_ns = process_cpu_ns() + LOCKLESS_NS;
		err = lockless_modules_read(&finder);
	}
	log_debug("%zu functions wrap locks; %zu functions have critical sections, with %zu places",
		  finder.wrappers.cnt, places->lock_functions, places->items.cnt);
	vec_free(&finder.wrappers);
	vec_sort(&places->items, place_cmp);
	for (uint32_t i = 0; i < places->items.cnt; i++)
		places->items.items[i].group = i;
	queue_places_limit(places, max);
	return err;
}

void queue_places_limit(struct queue_places *places, size_t max)
{
	if (places->items.cnt <= max)
		return;
	places->dropped += places->items.cnt - max;
	places->items.cnt = max;
}

void queue_places_free(struct queue_places *places)
{
	vec_free(&places->items);
}
