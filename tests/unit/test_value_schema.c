// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The witness of a location is the processor: a child runs the subject in single steps, and at each instruction the
 * variables are read where the schema says they are.  Parameters that nothing writes to have their value throughout.
 */
#include "test_shard_util.h"
#include "unit.h"
#include "values/schema_bytes.h"
#include "values/schema_cache.h"
#include "values/schema_make.h"

#include <errno.h>
#include <glob.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct subject_list {
	long capacity;
	int len;
	unsigned char kind;
	const int *items;
};

struct subject_outer {
	struct subject_list list;
	long first;
	int limit, other, depth, tail, either;
};

int subject_cxx_scan(int key);

#define LEVEL(level)                                                              \
	int subject_##level##_scan(const struct subject_list *list, int key);     \
	int subject_##level##_nested(const struct subject_outer *outer, int key); \
	double subject_##level##_mix(long rounds, double factor, const char *text);
LEVEL(o0)
LEVEL(o2)
LEVEL(o3)
#undef LEVEL

static const struct {
	const char *name;
	int (*scan)(const struct subject_list *list, int key);
	int (*nested)(const struct subject_outer *outer, int key);
	double (*mix)(long rounds, double factor, const char *text);
} levels[] = {
	{"o0", subject_o0_scan, subject_o0_nested, subject_o0_mix},
	{"o2", subject_o2_scan, subject_o2_nested, subject_o2_mix},
	{"o3", subject_o3_scan, subject_o3_nested, subject_o3_mix},
};

static void make(struct value_schema *schema, const char *function, bool all)
{
	struct value_schema_opts opts = {
		.path = "/proc/self/exe", .file = "*value_subject.h", .function = function, .all_locals = all};

	CU_ASSERT(value_schema_make(schema, &opts) == 0);
}

static const struct value_variable *find(const struct value_schema *schema, const char *level, const char *function,
					 const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "subject_%s_%s", level, function);
	for (size_t i = 0; i < schema->variables.cnt; i++) {
		const struct value_variable *variable = &schema->variables.items[i];

		if (!strcmp(variable->name, name) && !strcmp(variable->function, full))
			return variable;
	}
	return NULL;
}

static bool has_tags(const struct value_schema *schema, const char *level, const char *function, const char *name,
		     uint8_t tags)
{
	const struct value_variable *variable = find(schema, level, function, name);

	return variable && (variable->tags & tags) == tags;
}

static void test_tags(void)
{
	struct value_schema schema;

	make(&schema, "subject_*", false);
	CU_ASSERT(!schema.no_code_tags);
	for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
		const char *level = levels[l].name;

		CU_ASSERT(has_tags(&schema, level, "scan", "key", VALUE_TAG_COND));
		CU_ASSERT(has_tags(&schema, level, "scan", "i", VALUE_TAG_ARGS));
		CU_ASSERT(has_tags(&schema, level, "scan", "found", VALUE_TAG_STEP));
		CU_ASSERT(!has_tags(&schema, level, "scan", "i", VALUE_TAG_STEP));
		CU_ASSERT(!has_tags(&schema, level, "scan", "key", VALUE_TAG_STEP));
		CU_ASSERT(has_tags(&schema, level, "scan", "list->len", VALUE_TAG_COND));
		CU_ASSERT(has_tags(&schema, level, "mix", "left", VALUE_TAG_LOOP | VALUE_TAG_COND | VALUE_TAG_ARGS));
		/* Neither tested, nor handed on, nor changed. */
		CU_ASSERT(!find(&schema, level, "mix", "factor"));
		CU_ASSERT(!find(&schema, level, "leaf", "number"));
	}
	/* With optimization its test becomes a flag byte that is combined with another one, without a jump. */
	CU_ASSERT(has_tags(&schema, "o0", "mix", "text", VALUE_TAG_COND));
	CU_ASSERT(has_tags(&schema, "o2", "mix", "text", VALUE_TAG_COND));
	CU_ASSERT(has_tags(&schema, "o2", "news", "changed", VALUE_TAG_COND | VALUE_TAG_STEP));
	CU_ASSERT(has_tags(&schema, "o2", "news", "list->kind", VALUE_TAG_COND));
	CU_ASSERT(!has_tags(&schema, "o2", "news", "list->kind", VALUE_TAG_STEP));
	CU_ASSERT(has_tags(&schema, "o0", "scan", "i", VALUE_TAG_LOOP | VALUE_TAG_COND));
	CU_ASSERT(has_tags(&schema, "o2", "mix", "sum", VALUE_TAG_STEP));
	CU_ASSERT(has_tags(&schema, "o3", "stretch", "round", VALUE_TAG_LOOP | VALUE_TAG_COND));
	value_schema_free(&schema);
}

static void test_types(void)
{
	struct value_schema schema;
	const struct value_variable *variable = NULL;

	make(&schema, NULL, true);
	for (size_t i = 0; i < schema.variables.cnt; i++)
		if (!strcmp(schema.variables.items[i].name, "subject_o2_global"))
			variable = &schema.variables.items[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(variable);
	CU_ASSERT(variable->kind == VALUE_UNSIGNED && variable->size == 8 && variable->tags == VALUE_TAG_GLOBAL);
	CU_ASSERT(!*variable->function && variable->location_cnt == 1);
	variable = find(&schema, "o0", "mix", "factor");
	CU_ASSERT_PTR_NOT_NULL_FATAL(variable);
	CU_ASSERT(variable->kind == VALUE_FLOAT && variable->size == 8);
	variable = find(&schema, "o0", "mix", "text");
	CU_ASSERT_PTR_NOT_NULL_FATAL(variable);
	CU_ASSERT(variable->kind == VALUE_POINTER);
	variable = find(&schema, "o0", "scan", "found");
	CU_ASSERT_PTR_NOT_NULL_FATAL(variable);
	CU_ASSERT(variable->kind == VALUE_SIGNED && variable->size == 4);
	CU_ASSERT_STRING_EQUAL(variable->type, "int");
	value_schema_free(&schema);
}

/* Where the pointer is an offset from another one, and where the member is one of a struct within the struct. */
static void test_nested_members(void)
{
	struct value_schema schema;

	make(&schema, "subject_*", false);
	for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
		const char *level = levels[l].name;

		CU_ASSERT(has_tags(&schema, level, "nested", "part->limit", VALUE_TAG_COND));
		CU_ASSERT(has_tags(&schema, level, "nested", "outer->depth", VALUE_TAG_COND));
		CU_ASSERT(has_tags(&schema, level, "nested", "outer->list.len", VALUE_TAG_ARGS));
		/* Not those at the offset that the instruction has, which is from another pointer. */
		CU_ASSERT_PTR_NULL(find(&schema, level, "nested", "part->first"));
		CU_ASSERT_PTR_NULL(find(&schema, level, "nested", "part->other"));
		/* Nothing tells which of the two it is. */
		CU_ASSERT_PTR_NULL(find(&schema, level, "nested", "outer->as_int"));
		CU_ASSERT_PTR_NULL(find(&schema, level, "nested", "outer->as_unsigned"));
	}
	CU_ASSERT(schema.skipped[VALUE_SKIP_UNION] >= 3);
	value_schema_free(&schema);
}

static void test_bases(void)
{
	static const char *const names[] = {"this->own", "this->depth", "this->level"};
	static const int32_t offs[] = {20, 8, 16};
	struct value_schema_opts opts = {.path = "/proc/self/exe", .file = "*value_subject_cxx.cc"};
	struct value_schema schema;

	CU_ASSERT_EQUAL(subject_cxx_scan(0), 0);
	CU_ASSERT_EQUAL_FATAL(value_schema_make(&schema, &opts), 0);
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		const struct value_variable *found = NULL;

		for (size_t i = 0; i < schema.variables.cnt; i++)
			if (!strcmp(schema.variables.items[i].name, names[n]))
				found = &schema.variables.items[i];
		CU_ASSERT_PTR_NOT_NULL_FATAL(found);
		CU_ASSERT_EQUAL(found->member_off, offs[n]);
		CU_ASSERT(found->tags & VALUE_TAG_COND);
	}
	value_schema_free(&schema);
}

static const struct value_variable *find_global(const struct value_schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->variables.cnt; i++)
		if (!strcmp(schema->variables.items[i].name, name))
			return &schema->variables.items[i];
	return NULL;
}

/* Of struct subject_list: each as far behind its beginning as the ABI says; addresses are left out. */
static void test_members_of_globals(void)
{
	const struct value_variable *capacity, *len, *kind;
	const struct value_location *locations;
	struct value_schema schema;

	make(&schema, NULL, true);
	capacity = find_global(&schema, "subject_o2_whole.capacity");
	len = find_global(&schema, "subject_o2_whole.len");
	kind = find_global(&schema, "subject_o2_whole.kind");
	CU_ASSERT_FATAL(capacity && len && kind);
	CU_ASSERT(capacity->size == 8 && len->size == 4 && kind->size == 1);
	CU_ASSERT(len->tags == VALUE_TAG_GLOBAL && len->kind == VALUE_SIGNED);
	locations = schema.locations.items;
	CU_ASSERT_EQUAL(locations[len->first_location].place, VALUE_AT_ADDRESS);
	CU_ASSERT_EQUAL(locations[len->first_location].off - locations[capacity->first_location].off, 8);
	CU_ASSERT_EQUAL(locations[kind->first_location].off - locations[capacity->first_location].off, 12);
	CU_ASSERT_PTR_NULL(find_global(&schema, "subject_o2_whole.items"));
	CU_ASSERT_PTR_NOT_NULL(find_global(&schema, "subject_o2_outer.part.limit"));
	CU_ASSERT_PTR_NOT_NULL(find_global(&schema, "subject_o2_outer.depth"));
	CU_ASSERT_PTR_NULL(find_global(&schema, "subject_o2_outer.as_int"));
	CU_ASSERT_PTR_NULL(find_global(&schema, "subject_o2_whole"));
	value_schema_free(&schema);
}

/* --- single steps ------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static int take_bias(struct dl_phdr_info *info, size_t sz, void *owner)
{
	(void)sz;
	*(uint64_t *)owner = info->dlpi_addr;
	return 1; /* the program itself comes first */
}

static uint64_t load_bias(void)
{
	uint64_t bias = 0;

	dl_iterate_phdr(take_bias, &bias);
	return bias;
}

static uint64_t register_of(const struct user_regs_struct *regs, uint8_t reg)
{
	const uint64_t by_number[] = {regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi,
				      regs->rbp, regs->rsp, regs->r8,  regs->r9,  regs->r10, regs->r11,
				      regs->r12, regs->r13, regs->r14, regs->r15, regs->rip};

	return reg < sizeof(by_number) / sizeof(by_number[0]) ? by_number[reg] : 0;
}

struct watch {
	const struct value_variable *variable;
	int64_t expected;
	size_t seen, wrong;
};

/* CFA-relative places need the unwinder: they are told by the frame pointer that -O0 code keeps (CFA = rbp + 16). */
static bool read_variable(pid_t pid, const struct value_schema *schema, const struct value_variable *variable,
			  const struct user_regs_struct *regs, uint64_t pc, bool has_frame_pointer, int64_t *value)
{
	for (uint32_t l = 0; l < variable->location_cnt; l++) {
		const struct value_location *location = &schema->locations.items[variable->first_location + l];
		uint64_t raw, addr;

		if (pc < location->pc_begin || pc >= location->pc_end)
			continue;
		raw = register_of(regs, location->reg);
		if (location->place == VALUE_IS_SUM)
			raw += (uint64_t)location->off;
		if (location->place == VALUE_AT_REGISTER || location->place == VALUE_AT_CFA) {
			if (location->place == VALUE_AT_CFA && !has_frame_pointer)
				return false;
			addr = location->place == VALUE_AT_CFA ? regs->rbp + 16 : raw;
			raw = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, addr + (uint64_t)location->off, NULL);
		}
		if (variable->member_off >= 0)
			raw = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, raw + (uint64_t)variable->member_off, NULL);
		*value = variable->size == 4 ? (int32_t)raw : variable->size == 1 ? (uint8_t)raw : (int64_t)raw;
		return true;
	}
	return false;
}

/* Steps the child to its end and compares, wherever a variable is said to be. */
static void step(pid_t pid, const struct value_schema *schema, struct watch *watches, size_t cnt, const char *level)
{
	uint64_t bias = load_bias();
	bool keeps_frame = !strcmp(level, "o0");
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		struct user_regs_struct regs;

		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			break;
		for (size_t w = 0; w < cnt; w++) {
			int64_t value;

			/* In the prologue of -O0 code, DWARF names a place that has not been written yet. */
			if (!read_variable(pid, schema, watches[w].variable, &regs, regs.rip - bias, keeps_frame,
					   &value))
				continue;
			watches[w].seen++;
			watches[w].wrong += value != watches[w].expected;
		}
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			break;
	}
}

#define WATCHES 6

static void test_places(void)
{
	static const int items[] = {4, 9, 4, 4, 7};
	static const struct subject_list list = {.capacity = 80, .len = 5, .kind = 3, .items = items};
	static const struct subject_outer outer = {
		.list = {.len = 11}, .first = 12, .limit = 3, .other = 13, .depth = 14, .tail = 15, .either = 16};
	struct value_schema schema;

	make(&schema, "subject_*", true);
	for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
		struct watch watches[WATCHES] = {
			{find(&schema, levels[l].name, "scan", "key"), 4, 0, 0},
			{find(&schema, levels[l].name, "scan", "list"), (int64_t)(uintptr_t)&list, 0, 0},
			{find(&schema, levels[l].name, "mix", "rounds"), 6, 0, 0},
			{find(&schema, levels[l].name, "scan", "list->len"), 5, 0, 0},
			{find(&schema, levels[l].name, "nested", "part->limit"), 3, 0, 0},
			{find(&schema, levels[l].name, "nested", "outer->list.len"), 11, 0, 0},
		};
		pid_t pid;

		for (size_t w = 0; w < WATCHES; w++)
			CU_ASSERT_FATAL(watches[w].variable != NULL);
		pid = fork();
		if (!pid) {
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			raise(SIGSTOP);
			levels[l].scan(&list, 4);
			levels[l].nested(&outer, 4);
			levels[l].mix(6, 1.5, "text");
			_exit(0);
		}
		step(pid, &schema, watches, WATCHES, levels[l].name);
		for (size_t w = 0; w < WATCHES; w++) {
			CU_ASSERT(watches[w].seen > 0);
			/* -O0: at the beginning, until it has set the frame pointer and stored the variable. */
			CU_ASSERT(watches[w].wrong <= (l ? 0 : 12));
		}
	}
	value_schema_free(&schema);
}

#else

static void test_places(void)
{
	printf("skipped: machine code of this architecture is not analysed ");
}

#endif

static bool is_same(const struct value_schema *a, const struct value_schema *b)
{
	if (a->variables.cnt != b->variables.cnt || a->locations.cnt != b->locations.cnt ||
	    a->functions != b->functions || a->units != b->units || memcmp(a->skipped, b->skipped, sizeof(a->skipped)))
		return false;
	for (size_t v = 0; v < a->variables.cnt; v++) {
		const struct value_variable *x = &a->variables.items[v], *y = &b->variables.items[v];

		if (strcmp(x->file, y->file) || strcmp(x->function, y->function) || strcmp(x->name, y->name) ||
		    strcmp(x->type, y->type) || !x->inlined != !y->inlined ||
		    (x->inlined && strcmp(x->inlined, y->inlined)) || x->line != y->line || x->size != y->size ||
		    x->kind != y->kind || x->tags != y->tags || x->member_off != y->member_off ||
		    x->first_location != y->first_location || x->location_cnt != y->location_cnt)
			return false;
	}
	for (size_t l = 0; l < a->locations.cnt; l++) {
		const struct value_location *x = &a->locations.items[l], *y = &b->locations.items[l];

		if (x->pc_begin != y->pc_begin || x->pc_end != y->pc_end || x->off != y->off || x->place != y->place ||
		    x->reg != y->reg)
			return false;
	}
	return true;
}

/* The only file of the cache. */
static char *kept_file(const char *dir)
{
	char *pattern = NULL, *path = NULL;
	glob_t found = {0};

	if (asprintf(&pattern, "%s/whylate/*.schema", dir) > 0 && !glob(pattern, 0, NULL, &found) &&
	    found.gl_pathc == 1)
		path = strdup(found.gl_pathv[0]);
	globfree(&found);
	free(pattern);
	return path;
}

/* A schema that was kept is the same; a file that is damaged anywhere, cut off, or open to others is made anew. */
static void test_cache(void)
{
	struct value_schema_opts opts = {.path = "/proc/self/exe", .function = "subject_o2_*", .cached = true};
	struct value_schema made, kept;
	schema_bytes bytes = {0};
	struct test_dir dir;
	struct stat st;
	char *path;
	FILE *file;

	test_dir__make(&dir);
	opts.cache_dir = dir.path;
	CU_ASSERT_EQUAL_FATAL(value_schema_make(&made, &opts), 0);
	CU_ASSERT(made.variables.cnt > 5);
	CU_ASSERT_EQUAL(schema_bytes_make(&made, &bytes), 0);
	path = kept_file(dir.path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(path);
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	kept = (struct value_schema){.build_id = made.build_id, .arena = arena__new()};
	CU_ASSERT(schema_cache_load(&kept, &opts) && is_same(&made, &kept));
	value_schema_free(&kept);
	CU_ASSERT_EQUAL_FATAL(value_schema_make(&kept, &opts), 0);
	CU_ASSERT(is_same(&made, &kept));
	value_schema_free(&kept);
	for (long at = 0; at < st.st_size; at += 1 + st.st_size / 97) {
		int before;

		file = fopen(path, "r+");
		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		fseek(file, at, SEEK_SET);
		before = fgetc(file);
		fseek(file, at, SEEK_SET);
		fputc(before ^ 0x40, file);
		fclose(file);
		kept = (struct value_schema){.build_id = made.build_id, .arena = arena__new()};
		CU_ASSERT(!schema_cache_load(&kept, &opts) && !kept.variables.cnt && !kept.locations.cnt);
		value_schema_free(&kept);
		schema_cache_store(&made, &opts, bytes.items, bytes.cnt);
	}
	for (long len = 0; len < st.st_size; len += 1 + st.st_size / 31) {
		CU_ASSERT_EQUAL(truncate(path, len), 0);
		kept = (struct value_schema){.build_id = made.build_id, .arena = arena__new()};
		CU_ASSERT(!schema_cache_load(&kept, &opts));
		value_schema_free(&kept);
		schema_cache_store(&made, &opts, bytes.items, bytes.cnt);
	}
	CU_ASSERT_EQUAL(chmod(path, 0666), 0);
	kept = (struct value_schema){.build_id = made.build_id, .arena = arena__new()};
	CU_ASSERT(!schema_cache_load(&kept, &opts));
	value_schema_free(&kept);
	/* Other questions have other answers. */
	opts.all_locals = true;
	CU_ASSERT_EQUAL_FATAL(value_schema_make(&kept, &opts), 0);
	CU_ASSERT(kept.variables.cnt > made.variables.cnt);
	value_schema_free(&kept);
	value_schema_free(&made);
	vec_free(&bytes);
	free(path);
	test_dir__remove(&dir);
}

static void test_bad_input(void)
{
	struct value_schema schema;
	struct value_schema_opts opts = {.path = "/nonexistent"};

	CU_ASSERT(value_schema_make(&schema, &opts) == -ENOENT);
	value_schema_free(&schema);
	opts.path = "/proc/self/status";
	CU_ASSERT(value_schema_make(&schema, &opts) == -ENOEXEC);
	value_schema_free(&schema);
}

int suite_value_schema(void)
{
	static const struct unit_test tests[] = {
		{"tags tell loops, conditions and arguments", test_tags},
		{"types, sizes and members", test_types},
		{"members of nested structs", test_nested_members},
		{"members of base classes", test_bases},
		{"members of global structs lie where they do", test_members_of_globals},
		{"variables are where the schema says, at each instruction", test_places},
		{"a schema that was kept is the same", test_cache},
		{"what is no binary is refused", test_bad_input},
	};

	return unit_suite("value_schema", tests, sizeof(tests) / sizeof(tests[0]));
}
