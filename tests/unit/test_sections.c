// SPDX-License-Identifier: GPL-2.0-or-later
/* Critical sections of functions in this very program, as three optimisations left them. */
#include "probe/sections.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
struct subject_queue;
void subject_keep(struct subject_queue *queue, void *const *job);

/* Only its address is of use. */
void subject_keep(struct subject_queue *queue, void *const *job)
{
	(void)queue;
	(void)job;
}

static const char *const levels[] = {"o0", "o2", "o3"};

#define LEVEL_CNT (sizeof(levels) / sizeof(levels[0]))

static struct {
	struct program *program;
	struct call_targets targets;
} subject;

static void subject_open(void)
{
	static const struct {
		const char *name;
		enum section_call calls;
	} known[] = {
		{"pthread_mutex_lock", SECTION_CALL_LOCK},
		{"pthread_mutex_unlock", SECTION_CALL_UNLOCK},
		{"pthread_cond_wait", SECTION_CALL_WAIT},
		{"pthread_cond_signal", SECTION_CALL_WAKE},
		{"abort", SECTION_CALL_ENDS},
	};

	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &subject.program), 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CU_ASSERT_EQUAL_FATAL(call_targets_add(subject.program, 0, known[i].name,
						       SECTION_TAG(known[i].calls, 0), &subject.targets),
				      0);
	CU_ASSERT_EQUAL_FATAL(call_targets_complete(subject.program, 0, &subject.targets), 0);
	CU_ASSERT(subject.targets.items.cnt >= 4);
}

static void subject_close(void)
{
	call_targets_free(&subject.targets);
	program__free(subject.program);
	memset(&subject, 0, sizeof(subject));
}

static void read_function(const char *level, const char *name, struct sections *sections)
{
	char symbol[100];
	uint32_t id;

	snprintf(symbol, sizeof(symbol), "subject_%s_%s", level, name);
	id = program__function_find(subject.program, 0, symbol);
	CU_ASSERT_NOT_EQUAL_FATAL(id, PROGRAM_NONE);
	CU_ASSERT_EQUAL_FATAL(sections_find(subject.program, id, &subject.targets, sections), 0);
}

static void read_lockless(const char *level, const char *name, struct sections *sections)
{
	char symbol[100];
	uint32_t id;

	snprintf(symbol, sizeof(symbol), "subject_%s_%s", level, name);
	id = program__function_find(subject.program, 0, symbol);
	CU_ASSERT_NOT_EQUAL_FATAL(id, PROGRAM_NONE);
	CU_ASSERT_EQUAL_FATAL(sections_find_lockless(subject.program, id, &subject.targets, sections), 0);
}

/* How many values go in, or come out, that are the argument, or are left where it points to; -1: that are none. */
static unsigned int uses_of(const struct sections *sections, bool out, int arg)
{
	unsigned int cnt = 0;

	for (size_t i = 0; i < sections->uses.cnt; i++)
		cnt += sections->uses.items[i].out == out && sections->uses.items[i].arg == arg;
	return cnt;
}

static void what_goes_in(void)
{
	static const struct {
		const char *name;
		int arg;
		uint8_t sz;
	} cases[] = {{"push", 1, 8}, {"push_number", 1, 4}, {"push_checked", 1, 8}, {"push_nested", 2, 8}};

	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct sections sections;

			read_function(levels[level], cases[i].name, &sections);
			CU_ASSERT_EQUAL(uses_of(&sections, false, cases[i].arg), 1);
			CU_ASSERT_EQUAL(sections.uses.cnt, 1);
			if (sections.uses.cnt) {
				CU_ASSERT_EQUAL(sections.uses.items[0].place.sz, cases[i].sz);
				CU_ASSERT_NOT_EQUAL(sections.uses.items[0].place.reg, CODE_NO_REG);
				CU_ASSERT_NOT_EQUAL(sections.uses.items[0].addr, 0);
			}
			CU_ASSERT_EQUAL(sections.wakes, !i);
			CU_ASSERT(!sections.locks && !sections.unlocks);
			sections_free(&sections);
		}
	subject_close();
}

static void what_comes_out(void)
{
	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		struct sections sections;

		read_function(levels[level], "pop", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, true, -1), 1);
		CU_ASSERT_EQUAL(sections.uses.cnt, 1);
		CU_ASSERT(sections.uses.cnt && sections.uses.items[0].returned);
		CU_ASSERT(sections.waits);
		sections_free(&sections);
		read_function(levels[level], "pop_object", &sections);
		CU_ASSERT(uses_of(&sections, true, -1) >= 1);
		sections_free(&sections);
		read_function(levels[level], "pop_flagged", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, true, -1), 1);
		CU_ASSERT(sections.uses.cnt && sections.uses.items[0].returned);
		CU_ASSERT(!sections.locks && !sections.unlocks);
		sections_free(&sections);
		read_function(levels[level], "pop_to", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, true, 1), 1);
		CU_ASSERT_EQUAL(uses_of(&sections, false, 0) + uses_of(&sections, false, 1), 0);
		CU_ASSERT(!sections.waits);
		sections_free(&sections);
	}
	subject_close();
}

static void what_is_no_hand_off(void)
{
	static const char *const names[] = {"add", "clear", "is_empty", "unlocked"};

	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct sections sections;

			read_function(levels[level], names[i], &sections);
			CU_ASSERT_EQUAL(sections.uses.cnt, 0);
			if (sections.uses.cnt)
				fprintf(stderr, "%s, %s: %zu\n", levels[level], names[i], sections.uses.cnt);
			sections_free(&sections);
		}
	subject_close();
}

static void locks_in_functions_of_their_own(void)
{
	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		struct sections sections;

		read_function(levels[level], "lock", &sections);
		CU_ASSERT(sections.locks && !sections.unlocks);
		CU_ASSERT_EQUAL(sections.lock_arg, 0);
		sections_free(&sections);
		read_function(levels[level], "unlock", &sections);
		CU_ASSERT(!sections.locks && sections.unlocks);
		sections_free(&sections);
	}
	subject_close();
}

static void what_goes_in_from_another_section(void)
{
	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		struct sections sections;
		unsigned int found = 0;

		read_function(levels[level], "push_recycled", &sections);
		for (size_t i = 0; i < sections.uses.cnt; i++)
			found += !sections.uses.items[i].out && sections.uses.items[i].addr &&
				 sections.uses.items[i].arg < 0;
		CU_ASSERT_EQUAL(found, 1);
		sections_free(&sections);
	}
	subject_close();
}

static void what_is_passed_by_reference(void)
{
	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		struct sections sections;

		read_function(levels[level], "push_reference", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, false, 1), 1);
		CU_ASSERT_EQUAL(sections.uses.cnt, 1);
		CU_ASSERT(sections.uses.cnt && sections.uses.items[0].handed);
		sections_free(&sections);
	}
	subject_close();
}

static void what_comes_out_on_one_way_only(void)
{
	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		struct sections sections;

		read_function(levels[level], "pop_moved", &sections);
		CU_ASSERT(uses_of(&sections, true, -1) >= 1);
		sections_free(&sections);
		read_function(levels[level], "pop_inner", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, true, -1), 1);
		sections_free(&sections);
		read_function(levels[level], "pop_or_end", &sections);
		CU_ASSERT_EQUAL(uses_of(&sections, true, -1), 1);
		CU_ASSERT(!sections.locks && !sections.unlocks);
		sections_free(&sections);
	}
	subject_close();
}

/* Without optimisation the address of an element is computed in steps that are not followed. */
static void what_goes_in_from_an_array(void)
{
	subject_open();
	for (size_t level = 1; level < LEVEL_CNT; level++) {
		struct sections sections;
		unsigned int found = 0;

		read_function(levels[level], "push_events", &sections);
		for (size_t i = 0; i < sections.uses.cnt; i++)
			found += !sections.uses.items[i].out && sections.uses.items[i].addr &&
				 sections.uses.items[i].place.reg != CODE_NO_REG &&
				 sections.uses.items[i].place.sz == 8;
		CU_ASSERT(found >= 1); /* several, where the loop is unrolled */
		sections_free(&sections);
	}
	subject_close();
}

/* What passes without a lock, or under one that is no function, and what only counts. */
static void what_has_no_lock(void)
{
	static const struct {
		const char *name;
		bool out;
		int arg;
	} cases[] = {{"push_lockless", false, 1},
		     {"pop_lockless", true, -1},
		     {"push_spinning", false, 1},
		     {"pop_spinning", true, -1}};
	struct sections sections;

	subject_open();
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			bool found = false;

			read_lockless(levels[level], cases[i].name, &sections);
			for (size_t j = 0; j < sections.uses.cnt; j++) {
				const struct section_use *use = &sections.uses.items[j];

				found |= use->out == cases[i].out && use->arg == cases[i].arg && !use->addr &&
					 use->returned == use->out;
				CU_ASSERT(use->lockless);
				CU_ASSERT(!use->addr || use->place.reg != CODE_NO_REG);
			}
			CU_ASSERT(found);
			CU_ASSERT(sections.exchanges && !sections.takes);
			sections_free(&sections);
		}
		read_lockless(levels[level], "count_lockless", &sections);
		CU_ASSERT(!sections.exchanges && !sections.uses.cnt);
		sections_free(&sections);
		read_lockless(levels[level], "push", &sections);
		CU_ASSERT(sections.takes && !sections.uses.cnt);
		sections_free(&sections);
	}
	subject_close();
}

/* The calls that a look at every byte finds are those that disassembly finds. */
static void every_call_is_found(void)
{
	call_site_addrs sites = {0};
	unsigned int found = 0;

	subject_open();
	CU_ASSERT_EQUAL_FATAL(call_sites_find(subject.program, 0, &subject.targets, &sites), 0);
	for (size_t level = 0; level < LEVEL_CNT; level++) {
		char symbol[100];
		struct function_code code;
		uint32_t id;

		snprintf(symbol, sizeof(symbol), "subject_%s_push", levels[level]);
		id = program__function_find(subject.program, 0, symbol);
		CU_ASSERT_EQUAL_FATAL(program__function_code(subject.program, id, &code), 0);
		for (size_t i = 0; i < code.pieces[0].insns.cnt; i++) {
			const struct code_insn *insn = &code.pieces[0].insns.items[i];
			bool is_site = false;

			for (size_t j = 0; j < sites.cnt; j++)
				is_site |= sites.items[j] == insn->addr;
			CU_ASSERT_EQUAL(is_site, call_target_of(&subject.targets, insn) != NULL);
			found += is_site;
		}
		function_code_free(&code);
	}
	CU_ASSERT_EQUAL(found, 3 * LEVEL_CNT);
	vec_free(&sites);
	subject_close();
}
#endif

static const struct unit_test tests[] = {
#ifdef __x86_64__
	{"what_goes_in", what_goes_in},
	{"what_comes_out", what_comes_out},
	{"what_is_no_hand_off", what_is_no_hand_off},
	{"what_goes_in_from_another_section", what_goes_in_from_another_section},
	{"what_is_passed_by_reference", what_is_passed_by_reference},
	{"what_comes_out_on_one_way_only", what_comes_out_on_one_way_only},
	{"what_goes_in_from_an_array", what_goes_in_from_an_array},
	{"what_has_no_lock", what_has_no_lock},
	{"locks_in_functions_of_their_own", locks_in_functions_of_their_own},
	{"every_call_is_found", every_call_is_found},
#endif
};

int suite_sections(void)
{
	return unit_suite("sections", tests, sizeof(tests) / sizeof(tests[0]));
}
