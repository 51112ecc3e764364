// SPDX-License-Identifier: GPL-2.0-or-later
/* C++ names, what names suggest, and the lists that ship with the product. */
#include "probe/cxx_name.h"
#include "probe/preset.h"
#include "probe/suggest.h"
#include "said.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

static void cxx_names_compare_by_key_and_by_all(void)
{
	static const struct {
		const char *text, *key, *full;
		bool has_args;
	} cases[] = {
		{"do_command(THD*, bool)", "do_command", "do_command(THD*,bool)", true},
		{"do_command", "do_command", "do_command", false},
		{"void std::swap<int>(int&, int&)", "std::swap<int>", "std::swap<int>(int&,int&)", true},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)",
		 "std::vector<int,std::allocator<int>>::push_back",
		 "std::vector<int,std::allocator<int>>::push_back(intconst&)", true},
		{"(anonymous namespace)::f(char) const", "(anonymousnamespace)::f",
		 "(anonymousnamespace)::f(char)const", true},
		{"A::operator<(A const&)", "A::operator<", "A::operator<(Aconst&)", true},
		{"A::operator()(int)", "A::operator()", "A::operator()(int)", true},
		{"operator new(unsigned long)", "operatornew", "operatornew(unsignedlong)", true},
		{"A::operator unsigned long() const", "A::operatorunsignedlong", "A::operatorunsignedlong()const",
		 true},
		{"f(int)::{lambda(char)#1}::operator()(char) const", "f(int)::{lambda(char)#1}::operator()",
		 "f(int)::{lambda(char)#1}::operator()(char)const", true},
		{"f() const::g(int)", "f()const::g", "f()const::g(int)", true},
		{"ns::f[abi:cxx11](int)", "ns::f", "ns::f(int)", true},
		{"ns::f(int) [clone .cold]", "ns::f(int)[clone.cold]", "ns::f(int)[clone.cold]", true},
		{"plain.constprop.0", "plain.constprop.0", "plain.constprop.0", false},
		{"", "", "", false},
		{"f(", "f", "f(", true},
		{"((((", "", "((((", true},
		{"<<>>", "<<>>", "<<>>", false},
		{" ", "", "", false},
		{"operator", "operator", "operator", false},
		{"[abi:", "[abi:", "[abi:", false},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct cxx_name name;

		CU_ASSERT_EQUAL_FATAL(cxx_name_make(cases[i].text, &name), 0);
		if (strcmp(name.key, cases[i].key) || strcmp(name.full, cases[i].full) ||
		    name.has_args != cases[i].has_args) {
			fprintf(stderr, "'%s' became '%s' and '%s'\n", cases[i].text, name.key, name.full);
			CU_FAIL("C++ name");
		}
		cxx_name_free(&name);
	}
}

static void no_text_upsets_a_name(void)
{
	static const char *const pieces[] = {
		"operator", "(",  ")",      "<",       ">",      "::",   " ",
		"const",    "{",  "}",      "[abi:x]", "[clone", "f",    "(anonymous namespace)",
		"*",        "[]", "lambda", "~",       "\xff",   "[abi:"};
	uint64_t random = 7;

	for (int i = 0; i < 5000; i++) {
		struct suggestion suggestion = {0};
		struct cxx_name name;
		char text[512] = "";
		size_t len = 0;

		for (int piece = 0; piece < 14; piece++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			len += sprintf(text + len, "%s", pieces[(random >> 33) % ARRAY_CNT(pieces)]);
		}
		CU_ASSERT_EQUAL_FATAL(cxx_name_make(text, &name), 0);
		CU_ASSERT(strlen(name.key) <= len && strlen(name.full) <= len);
		suggest_role(text, &suggestion);
		cxx_name_free(&name);
	}
}

static void names_suggest_roles(void)
{
	static const struct {
		const char *name;
		enum probe_role role;
	} cases[] = {
		{"dispatch_command", PROBE_INTERVAL},
		{"processCommand", PROBE_INTERVAL},
		{"PortalRun", PROBE_INTERVAL},
		{"ngx_http_process_request", PROBE_INTERVAL},
		{"ap_process_async_request", PROBE_INTERVAL},
		{"LWLockAcquire", PROBE_ACQUIRE},
		{"LWLockRelease", PROBE_RELEASE},
		{"pthread_mutex_lock", PROBE_ACQUIRE},
		{"pthread_mutex_unlock", PROBE_RELEASE},
		{"PolyLock_rwlock::wrlock", PROBE_ACQUIRE},
		{"ap_queue_push_socket", PROBE_ENQUEUE},
		{"ap_queue_pop_something", PROBE_DEQUEUE},
		{"tpool::thread_pool_generic::submit_task(tpool::task*)", PROBE_ENQUEUE},
	};
	static const char *const nothing[] = {
		"main",
		"LWLockInitialize",
		"getLRUClock",
		"blockClient",
		"pthread_mutex_init",
		"parse_msg",
		"process",
		"is_request_finished",
		"",
		"_____",
		"::",
		"request_count",
	};
	struct suggestion first = {0}, second = {0};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		struct suggestion suggestion = {0};

		if (!suggest_role(cases[i].name, &suggestion) || suggestion.role != cases[i].role) {
			fprintf(stderr, "%s suggests the wrong role\n", cases[i].name);
			CU_FAIL("role");
		}
	}
	for (size_t i = 0; i < ARRAY_CNT(nothing); i++)
		if (suggest_role(nothing[i], &first)) {
			fprintf(stderr, "%s suggests %s\n", nothing[i], probe_role_name(first.role));
			CU_FAIL("role");
		}
	/* The two sides of one lock are known by what is left of their names. */
	CU_ASSERT(suggest_role("LWLockAcquire", &first) && suggest_role("LWLockRelease", &second));
	CU_ASSERT_EQUAL(first.stem, second.stem);
	CU_ASSERT(suggest_role("pthread_mutex_unlock", &second));
	CU_ASSERT_NOT_EQUAL(first.stem, second.stem);
	CU_ASSERT(suggest_role("pthread_mutex_lock", &first));
	CU_ASSERT_EQUAL(first.stem, second.stem);
}

/* The directory of the lists, seen from wherever the tests are run. */
static bool presets_are_there(void)
{
	return !setenv("WHYLATE_PRESETS", "presets", 1);
}

static void every_preset_parses(void)
{
	static const char *const expected[] = {"postgresql", "mariadb", "redis", "nginx", "apache", "memcached"};
	struct dirent *entry;
	size_t cnt = 0;
	DIR *dir;

	CU_ASSERT_FATAL(presets_are_there());
	dir = opendir("presets");
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while ((entry = readdir(dir))) {
		char *end = strstr(entry->d_name, ".symbols"), list[300];
		probe_lines lines = {0};

		if (!end)
			continue;
		*end = '\0';
		snprintf(list, sizeof(list), "preset:%s", entry->d_name);
		CU_ASSERT_EQUAL(symbol_list_read(list, &lines), 0);
		CU_ASSERT(lines.cnt > 0);
		symbol_list_free(&lines);
		cnt++;
	}
	closedir(dir);
	CU_ASSERT(cnt >= ARRAY_CNT(expected));
	for (size_t i = 0; i < ARRAY_CNT(expected); i++) {
		char list[64], path[PATH_MAX];

		snprintf(list, sizeof(list), "preset:%s", expected[i]);
		CU_ASSERT_EQUAL(preset_path(list, path, sizeof(path)), 0);
	}
	unsetenv("WHYLATE_PRESETS");
}

static void an_unknown_preset_names_those_that_there_are(void)
{
	static const char *const bad[] = {"preset:postgres", "preset:", "preset:../presets/redis", "preset:a/b"};
	char path[PATH_MAX];

	CU_ASSERT_FATAL(presets_are_there());
	for (size_t i = 0; i < ARRAY_CNT(bad); i++) {
		said_begin();
		CU_ASSERT_EQUAL(preset_path(bad[i], path, sizeof(path)), -ENOENT);
		CU_ASSERT(said_one_line(said_end(), "there are apache, mariadb, memcached, nginx, postgresql"));
	}
	setenv("WHYLATE_PRESETS", "/nonexistent", 1);
	said_begin();
	CU_ASSERT_EQUAL(preset_path("preset:redis", path, sizeof(path)), -ENOENT);
	CU_ASSERT(said_one_line(said_end(), "there are none in /nonexistent"));
	unsetenv("WHYLATE_PRESETS");
	CU_ASSERT_EQUAL(preset_path("some/file", path, sizeof(path)), 0);
	CU_ASSERT_STRING_EQUAL(path, "some/file");
}

int suite_probe_names(void)
{
	static const struct unit_test tests[] = {
		{"C++ names compare by key and by all of them", cxx_names_compare_by_key_and_by_all},
		{"no text upsets a name", no_text_upsets_a_name},
		{"names suggest roles", names_suggest_roles},
		{"every preset parses", every_preset_parses},
		{"an unknown preset names those that there are", an_unknown_preset_names_those_that_there_are},
	};

	return unit_suite("probe_names", tests, sizeof(tests) / sizeof(tests[0]));
}
