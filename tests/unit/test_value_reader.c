// SPDX-License-Identifier: GPL-2.0-or-later
/* Values at a frame, and the plan of what the kernel reads, against direct computation. */
#include "base/random.h"
#include "unit.h"
#include "values/plan.h"
#include "values/reader.h"
#include "values/schema_make.h"
#include "values/step.h"

#include <stdlib.h>
#include <string.h>

#define RBX 3 /* kept by calls, on both architectures one that is: */
#if defined(__aarch64__)
#define KEPT 19
#else
#define KEPT RBX
#endif
#define SCRATCH 0
#define UNUSED  8 /* a call may change it */
#define STACK   0x7fff0000
#define MAX     8

struct taken {
	uint32_t variables[MAX];
	uint64_t values[MAX];
	size_t cnt;
};

static int take(void *owner, uint32_t variable, uint64_t bytes, bool is_word)
{
	struct taken *taken = owner;

	(void)is_word;

	if (taken->cnt < MAX) {
		taken->variables[taken->cnt] = variable;
		taken->values[taken->cnt++] = bytes;
	}
	return 0;
}

static uint64_t value_of(const struct taken *taken, uint32_t variable)
{
	for (size_t i = 0; i < taken->cnt; i++)
		if (taken->variables[i] == variable)
			return taken->values[i];
	return UINT64_MAX;
}

static void add(struct value_schema *schema, uint8_t size, int32_t member_off, uint8_t tags,
		struct value_location location)
{
	struct value_variable variable = {.name = "v",
					  .first_location = (uint32_t)schema->locations.cnt,
					  .location_cnt = 1,
					  .member_off = member_off,
					  .size = size,
					  .tags = tags};

	CU_ASSERT_EQUAL_FATAL(vec_push(&schema->locations, location), 0);
	CU_ASSERT_EQUAL_FATAL(vec_push(&schema->variables, variable), 0);
}

static void clear(struct value_schema *schema)
{
	vec_free(&schema->locations);
	vec_free(&schema->variables);
}

enum { IN_KEPT, IN_SCRATCH, ON_STACK, OFF_STACK, MEMBER, SUM, GLOBAL };

static void make(struct value_schema *schema)
{
	*schema = (struct value_schema){0};
	add(schema, 2, -1, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT});
	add(schema, 8, -1, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, SCRATCH});
	add(schema, 4, -1, VALUE_TAG_COND, (struct value_location){0x150, 0x180, -16, VALUE_AT_CFA, 0});
	add(schema, 4, -1, VALUE_TAG_COND, (struct value_location){0x150, 0x180, 4096, VALUE_AT_CFA, 0});
	add(schema, 4, 12, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT});
	add(schema, 8, -1, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 5, VALUE_IS_SUM, KEPT});
	add(schema, 4, -1, VALUE_TAG_GLOBAL, (struct value_location){0, UINT64_MAX, 0x5000, VALUE_AT_ADDRESS, 0});
}

static void read_at(const struct value_schema *schema, uint64_t addr, bool is_caller, struct taken *taken,
		    struct value_read_counts *counts)
{
	static const struct value_word words[] = {{.addr = 0x12345678 + 12, .bytes = 0xdeadbeefcafe, .size = 8},
						  {.addr = 0x100000 + 0x5000, .bytes = 77, .size = 4}};
	struct unwind_regs regs = {.known = ~0ULL}, innermost = {.known = ~0ULL, .values = {[10] = 55}};
	uint8_t stack[64] = {0};
	uint32_t on_stack = 4711;
	struct value_memory memory = {
		.stack = {.bytes = stack, .addr = STACK, .sz = sizeof(stack)}, .words = words, .word_cnt = 2};
	struct value_frame frame = {.addr = addr,
				    .bias = 0x100000,
				    .cfa = STACK + 48,
				    .regs = &regs,
				    .is_caller = is_caller,
				    .innermost = &innermost};
	struct value_reader *reader;

	regs.values[KEPT] = 0x12345678;
	regs.values[SCRATCH] = 9;
	memcpy(stack + 32, &on_stack, sizeof(on_stack));
	*taken = (struct taken){.cnt = 0};
	*counts = (struct value_read_counts){0};
	CU_ASSERT_EQUAL_FATAL(value_reader__new(schema, &reader), 0);
	CU_ASSERT_EQUAL(value_reader__locals(reader, &frame, &memory, counts, take, taken), 0);
	CU_ASSERT_EQUAL(value_reader__globals(reader, frame.bias, &memory, counts, take, taken), 0);
	value_reader__free(reader);
}

static void values_are_where_the_schema_says(void)
{
	struct value_read_counts counts;
	struct value_schema schema;
	struct taken taken;

	make(&schema);
	read_at(&schema, 0x160, false, &taken, &counts);
	CU_ASSERT_EQUAL(value_of(&taken, IN_KEPT), 0x5678);
	CU_ASSERT_EQUAL(value_of(&taken, IN_SCRATCH), 9);
	CU_ASSERT_EQUAL(value_of(&taken, ON_STACK), 4711);
	CU_ASSERT_EQUAL(value_of(&taken, MEMBER), 0xbeefcafe);
	CU_ASSERT_EQUAL(value_of(&taken, SUM), 0x12345678 + 5);
	CU_ASSERT_EQUAL(value_of(&taken, GLOBAL), 77);
	CU_ASSERT(taken.cnt == 6 && counts.read == 6 && counts.no_memory == 1 && !counts.no_register);
	/* A call may have changed what it need not keep. */
	read_at(&schema, 0x160, true, &taken, &counts);
	CU_ASSERT_EQUAL(value_of(&taken, IN_KEPT), 0x5678);
	CU_ASSERT_EQUAL(value_of(&taken, IN_SCRATCH), UINT64_MAX);
	CU_ASSERT_EQUAL(counts.no_register, 1);
	/* Ranges end before their end. */
	read_at(&schema, 0x180, false, &taken, &counts);
	CU_ASSERT_EQUAL(value_of(&taken, ON_STACK), UINT64_MAX);
	read_at(&schema, 0x200, false, &taken, &counts);
	CU_ASSERT(taken.cnt == 1 && value_of(&taken, GLOBAL) == 77);
	clear(&schema);
}

/* A frame's address lies in its call's last byte: a range that has that and no more ends where the call returns to. */
static void what_outlasts_a_call_is_read_in_callers(void)
{
	const uint8_t scratch = 10, result = 0;
	struct value_schema schema = {0};
	struct value_read_counts counts;
	struct taken taken;

	add(&schema, 8, -1, VALUE_TAG_LOOP, (struct value_location){0x100, 0x161, 0, VALUE_IN_REGISTER, scratch});
	add(&schema, 8, -1, VALUE_TAG_LOOP, (struct value_location){0x100, 0x162, 0, VALUE_IN_REGISTER, scratch});
	add(&schema, 8, -1, VALUE_TAG_LOOP, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, result});
	read_at(&schema, 0x160, true, &taken, &counts);
	CU_ASSERT(taken.cnt == 1 && value_of(&taken, 1) == 55 && counts.no_register == 2);
	read_at(&schema, 0x160, false, &taken, &counts);
	CU_ASSERT_EQUAL(taken.cnt, 3);
	clear(&schema);
}

#define PCS 300

/* The offsets that are read at a program counter, summed so that their order does not matter. */
static uint64_t planned_at(const struct value_plan *plan, uint64_t pc)
{
	uint64_t sum = 0;

	for (size_t r = 0; r < plan->ranges.cnt; r++) {
		const struct value_range *range = &plan->ranges.items[r];

		CU_ASSERT(range->begin < range->end);
		CU_ASSERT(!r || range[-1].end <= range->begin);
		for (uint32_t i = 0; pc >= range->begin && pc < range->end && i < range->cnt; i++)
			sum += random_mix((uint64_t)plan->reads.items[range->first + i].off);
	}
	return sum;
}

static uint64_t wanted_at(const struct value_schema *schema, uint64_t pc)
{
	uint64_t sum = 0;

	for (size_t v = 0; v < schema->variables.cnt; v++) {
		const struct value_location *location = &schema->locations.items[v];

		if (pc >= location->pc_begin && pc < location->pc_end)
			sum += random_mix((uint64_t)schema->variables.items[v].member_off);
	}
	return sum;
}

/* The slices are all that there is, one after the other, each within the limits; variables are in those they say. */
static void check_parts(const struct value_plan *plan, const struct value_schema *schema,
			const struct value_planned *planned)
{
	uint32_t ranges = 0, reads = 0;

	for (size_t p = 0; p < plan->parts.cnt; p++) {
		const struct value_part *part = &plan->parts.items[p];

		CU_ASSERT(part->ranges.first == ranges && part->reads.first == reads);
		CU_ASSERT(!plan->limits.reads || part->reads.cnt <= plan->limits.reads);
		for (uint32_t r = ranges; r < ranges + part->ranges.cnt; r++) {
			const struct value_range *range = &plan->ranges.items[r];

			CU_ASSERT(range->first >= reads && range->first + range->cnt <= reads + part->reads.cnt);
			for (size_t v = 0; v < schema->variables.cnt; v++)
				if (schema->locations.items[v].pc_begin == range->begin)
					CU_ASSERT_EQUAL(planned[v].part, p);
		}
		ranges += part->ranges.cnt;
		reads += part->reads.cnt;
	}
	CU_ASSERT(ranges == plan->ranges.cnt && reads == plan->reads.cnt);
	for (size_t v = 0; v < schema->variables.cnt; v++)
		CU_ASSERT(plan->left_out || planned[v].part < plan->parts.cnt);
}

static void the_plan_has_every_read_where_it_holds(void)
{
	uint64_t seed = 7;

	for (int round = 0; round < 100; round++) {
		struct value_schema schema = {0};
		struct value_plan plan = {0};
		struct value_planned planned[25];

		for (int v = 0; v < 25; v++) {
			uint64_t begin = random_next(&seed) % PCS, len = 1 + random_next(&seed) % 40;

			add(&schema, 4, v * 8, VALUE_TAG_COND,
			    (struct value_location){begin, begin + len, 0, VALUE_IN_REGISTER, KEPT});
		}
		/* Also where a part has room for a third of it. */
		plan.limits.reads = round % 2 ? 60 : 0;
		CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 0, planned), 0);
		check_parts(&plan, &schema, planned);
		for (uint64_t pc = 0; pc < PCS + 50; pc++)
			CU_ASSERT(plan.left_out || planned_at(&plan, pc) == wanted_at(&schema, pc));
		value_plan_free(&plan);
		clear(&schema);
	}
}

static void plans_leave_out_what_is_copied_anyway(void)
{
	struct value_schema schema;
	struct value_plan plan = {0};
	struct value_planned planned[GLOBAL + 1];

	make(&schema);
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 3, planned), 0);
	CU_ASSERT(planned[ON_STACK].part == VALUE_NO_PART && planned[MEMBER].part == 0 && planned[GLOBAL].part == 0);
	/* Only the member and the global lie elsewhere. */
	CU_ASSERT_EQUAL_FATAL(plan.reads.cnt, 1);
	CU_ASSERT(plan.reads.items[0].off == 12 && plan.reads.items[0].reg == KEPT && plan.reads.items[0].sz == 4);
	CU_ASSERT_EQUAL_FATAL(plan.globals.cnt, 1);
	CU_ASSERT(plan.globals.items[0].addr == 0x5000 && plan.globals.items[0].module == 3);
	value_plan_free(&plan);
	clear(&schema);
}

#if defined(__x86_64__)

/* A pointer that -O0 code keeps in its frame: 16 below the frame address is what rbp holds. */
static void pointers_in_frames_are_followed(void)
{
	struct value_schema_opts opts = {.path = "/proc/self/exe", .function = "subject_o0_scan"};
	struct value_plan plan = {0};
	struct value_schema schema;
	struct value_planned *planned;
	uint32_t found = 0, member = 0;

	CU_ASSERT_EQUAL_FATAL(value_schema_make(&schema, &opts), 0);
	for (uint32_t v = 0; v < schema.variables.cnt; v++)
		member = strcmp(schema.variables.items[v].name, "list->len") ? member : v;
	CU_ASSERT_FATAL(schema.variables.items[member].location_cnt == 1);
	planned = calloc(schema.variables.cnt, sizeof(*planned));
	CU_ASSERT_PTR_NOT_NULL_FATAL(planned);
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 0, planned), 0);
	for (uint32_t r = 0; r < plan.reads.cnt; r++) {
		const struct value_read *read = &plan.reads.items[r];
		const struct value_location *location =
			&schema.locations.items[schema.variables.items[member].first_location];

		if (read->off2 == schema.variables.items[member].member_off && read->reg == 6 && read->deref &&
		    read->sz == 4 && read->off == location->off + 16)
			found++;
	}
	CU_ASSERT(found > 0);
	/* Without the table it is not guessed. */
	value_plan_free(&plan);
	plan = (struct value_plan){0};
	vec_free(&schema.frames);
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 0, planned), 0);
	CU_ASSERT(plan.no_frame >= 1 && !plan.reads.cnt);
	free(planned);
	value_plan_free(&plan);
	value_schema_free(&schema);
}

#endif

/* Functions of ten reads each, where there is room for 25: parts of two functions, of which one is read at a time. */
static void what_does_not_fit_is_in_parts(void)
{
	struct value_schema schema = {0};
	struct value_plan plan = {.limits.reads = 25};
	struct value_planned planned[55];

	for (int32_t function = 0; function < 5; function++)
		for (int32_t v = 0; v < 10; v++)
			add(&schema, 4, 100 * function + 8 * v, VALUE_TAG_COND,
			    (struct value_location){0x1000U * ((uint64_t)function + 1),
						    0x1000U * ((uint64_t)function + 1) + 64, 0, VALUE_IN_REGISTER,
						    KEPT});
	for (int v = 0; v < 5; v++)
		add(&schema, 4, -1, VALUE_TAG_GLOBAL,
		    (struct value_location){0, UINT64_MAX, 0x5000 + 8 * v, VALUE_AT_ADDRESS, 0});
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 1, planned), 0);
	CU_ASSERT_EQUAL_FATAL(plan.parts.cnt, 3);
	CU_ASSERT(!plan.left_out && plan.reads.cnt == 50);
	for (uint32_t v = 0; v < 50; v++)
		CU_ASSERT(planned[v].part == v / 20);
	CU_ASSERT_EQUAL(value_plan_turn(&plan, 1, 0x1000), 1);
	CU_ASSERT_EQUAL(planned[50].part, 2);
	CU_ASSERT_EQUAL(value_plan_fits(&plan, 0), 1);
	CU_ASSERT_EQUAL(value_plan_fits(&plan, 2), 1);
	plan.limits.reads = 40;
	CU_ASSERT_EQUAL(value_plan_fits(&plan, 0), 2);
	/* More reads of one function than there is room for. */
	value_plan_free(&plan);
	plan = (struct value_plan){.limits.reads = 9};
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 1, planned), 0);
	CU_ASSERT(plan.left_out == 50 && !plan.reads.cnt && planned[0].part == VALUE_NO_PART);
	/* 20 reads at one place: at each tick 16 of them. */
	value_plan_free(&plan);
	plan = (struct value_plan){0};
	for (uint32_t l = 0; l < 20; l++)
		schema.locations.items[l] = (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT};
	CU_ASSERT_EQUAL_FATAL(value_plan_add(&plan, &schema, 1, planned), 0);
	CU_ASSERT(value_plan_turn(&plan, 1, 0x100) == 2 && value_plan_turn(&plan, 1, 0x1ff) == 2);
	CU_ASSERT(value_plan_turn(&plan, 1, 0x200) == 1 && value_plan_turn(&plan, 2, 0x100) == 1);
	CU_ASSERT_EQUAL(value_plan_turn(&plan, 1, 0x3000), 1);
	value_plan_free(&plan);
	clear(&schema);
}

/* Through registers that calls keep, and through the frame where it is known; each once. */
static void callers_have_members_that_calls_leave_alone(void)
{
	struct value_frame_rule rule = {.reg = WL_STACK_REG_SP, .off = 32, .known = true};
	struct value_caller caller = {.read_cnt = 0};
	struct value_schema schema = {0};
	struct value_reader *reader;

	add(&schema, 4, 12, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT});
	add(&schema, 4, 12, VALUE_TAG_COND, (struct value_location){0x100, 0x180, 0, VALUE_IN_REGISTER, KEPT});
	add(&schema, 4, 16, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, SCRATCH});
	add(&schema, 2, 20, VALUE_TAG_COND, (struct value_location){0x100, 0x200, -24, VALUE_AT_CFA, 0});
	add(&schema, 8, -1, VALUE_TAG_COND, (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT});
	add(&schema, 4, -1, VALUE_TAG_GLOBAL, (struct value_location){0, UINT64_MAX, 0x5000, VALUE_AT_ADDRESS, 0});
	CU_ASSERT_EQUAL_FATAL(value_reader__new(&schema, &reader), 0);
	CU_ASSERT_EQUAL(value_caller_make(&caller, reader, 0x150, &rule), 0);
	CU_ASSERT(caller.read_cnt == 2 && caller.variables.cnt == 3 && !caller.left_out);
	for (uint32_t r = 0; r < caller.read_cnt; r++) {
		const struct value_read *read = &caller.reads[r];

		if (read->reg == KEPT) {
			CU_ASSERT(read->off == 12 && read->sz == 4 && !read->deref);
		} else {
			CU_ASSERT(read->reg == WL_STACK_REG_SP && read->off == 8 && read->off2 == 20 && read->sz == 2 &&
				  read->deref);
		}
	}
	value_caller_free(&caller);
	caller = (struct value_caller){.read_cnt = 0};
	CU_ASSERT_EQUAL(value_caller_make(&caller, reader, 0x150, NULL), 0);
	CU_ASSERT_EQUAL(caller.read_cnt, 1);
	value_caller_free(&caller);
	/* A register that the callee is known to leave alone: the place holds behind the call, too. */
	value_reader__free(reader);
	add(&schema, 4, 24, VALUE_TAG_COND, (struct value_location){0x100, 0x151, 0, VALUE_IN_REGISTER, UNUSED});
	add(&schema, 4, 28, VALUE_TAG_COND, (struct value_location){0x100, 0x152, 0, VALUE_IN_REGISTER, UNUSED});
	CU_ASSERT_EQUAL_FATAL(value_reader__new(&schema, &reader), 0);
	caller = (struct value_caller){.read_cnt = 0};
	CU_ASSERT_EQUAL(value_caller_make(&caller, reader, 0x150, NULL), 0);
	CU_ASSERT(caller.read_cnt == 2);
	for (uint32_t r = 0; r < caller.read_cnt; r++)
		CU_ASSERT(caller.reads[r].reg == KEPT || (caller.reads[r].reg == UNUSED && caller.reads[r].off == 28));
	value_caller_free(&caller);
	value_reader__free(reader);
	/* More than one step holds: two that share a place, one in the frame, and one in a register that this call
	 * keeps, are left out. */
	for (int32_t v = 0; v < VALUE_FRAME_READS_MAX; v++)
		add(&schema, 4, 100 + 4 * v, VALUE_TAG_COND,
		    (struct value_location){0x100, 0x200, 0, VALUE_IN_REGISTER, KEPT});
	CU_ASSERT_EQUAL_FATAL(value_reader__new(&schema, &reader), 0);
	caller = (struct value_caller){.read_cnt = 0};
	CU_ASSERT_EQUAL(value_caller_make(&caller, reader, 0x150, &rule), 0);
	CU_ASSERT(caller.read_cnt == VALUE_FRAME_READS_MAX && caller.left_out == 4);
	value_caller_free(&caller);
	value_reader__free(reader);
	clear(&schema);
}

static struct unwind_rule plain_rule(void)
{
	return (struct unwind_rule){
		.known = true,
		.ra = WL_STACK_REG_PC,
		.cnt = 4,
		.cfa = {.what = UNWIND_REGISTER, .reg = WL_STACK_REG_SP, .off = 32},
		.lines = {{.what = UNWIND_SAVED, .of = KEPT, .off = -16},
			  {.what = UNWIND_UNDEFINED, .of = SCRATCH},
			  {.what = UNWIND_CFA, .of = WL_STACK_REG_SP},
			  {.what = UNWIND_SAVED, .of = WL_STACK_REG_PC, .off = -8}},
	};
}

/* The kernel follows rules of the plain kind, and what it would follow wrongly is none. */
static void steps_are_those_of_plain_rules(void)
{
	struct unwind_rule rule = plain_rule();
	struct value_frame_rule frame;
	struct value_step step;

	CU_ASSERT_FATAL(value_step_make(&rule, &step));
	CU_ASSERT(step.cfa_reg == WL_STACK_REG_SP && step.cfa_off == 32 && step.ra == WL_STACK_REG_PC);
	CU_ASSERT(step.saved_cnt == 2 && step.saved[0].reg == KEPT && step.saved[0].off == -16);
	CU_ASSERT(step.saved[1].reg == WL_STACK_REG_PC && step.saved[1].off == -8 && !step.read_cnt);
	frame = value_step_frame(&step);
	CU_ASSERT(frame.known && frame.reg == WL_STACK_REG_SP && frame.off == 32);
	for (int what = 0; what <= UNWIND_EXPR; what++) {
		rule = plain_rule();
		rule.lines[0].what = (uint8_t)what;
		CU_ASSERT_EQUAL(value_step_make(&rule, &step), what == UNWIND_SAVED);
		rule = plain_rule();
		rule.lines[1].what = (uint8_t)what;
		CU_ASSERT(value_step_make(&rule, &step));
		rule = plain_rule();
		rule.cfa.what = (uint8_t)what;
		CU_ASSERT_EQUAL(value_step_make(&rule, &step), what == UNWIND_REGISTER);
	}
	rule = plain_rule();
	rule.lines[0] = (struct unwind_where){.what = UNWIND_REGISTER, .of = KEPT, .reg = KEPT};
	CU_ASSERT(value_step_make(&rule, &step) && step.saved_cnt == 1);
	rule = plain_rule();
	rule.lines[2].off = 8;
	CU_ASSERT(!value_step_make(&rule, &step));
	rule = plain_rule();
	rule.lines[0].off = INT64_C(1) << 40;
	CU_ASSERT(!value_step_make(&rule, &step));
	rule = plain_rule();
	rule.signal = true;
	CU_ASSERT(!value_step_make(&rule, &step));
	rule = plain_rule();
	rule.start = true;
	CU_ASSERT(!value_step_make(&rule, &step));
	rule = plain_rule();
	rule.known = false;
	CU_ASSERT(!value_step_make(&rule, &step));
}

int suite_value_reader(void)
{
	static const struct unit_test tests[] = {
		{"values are where the schema says", values_are_where_the_schema_says},
		{"the plan has every read where it holds", the_plan_has_every_read_where_it_holds},
		{"what does not fit is in parts", what_does_not_fit_is_in_parts},
		{"callers have members that calls leave alone", callers_have_members_that_calls_leave_alone},
		{"steps are those of plain rules", steps_are_those_of_plain_rules},
		{"plans leave out what is copied anyway", plans_leave_out_what_is_copied_anyway},
#if defined(__x86_64__)
		{"pointers in frames are followed", pointers_in_frames_are_followed},
		{"what outlasts a call is read in callers", what_outlasts_a_call_is_read_in_callers},
#endif
	};

	return unit_suite("value_reader", tests, sizeof(tests) / sizeof(tests[0]));
}
