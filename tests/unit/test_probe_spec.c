// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include "probe/probe.h"

#include <errno.h>
#include <string.h>

static const struct plan with_uretprobe = {.possible = true, .exit = PLAN_EXIT_URETPROBE};
static const struct plan with_sites = {.possible = true, .exit = PLAN_EXIT_SITES};
static const struct plan without_exit = {.possible = true, .exit = PLAN_EXIT_NONE, .exit_why = "it never returns"};

static struct probe probe_of(enum probe_role role, const struct plan *plan)
{
	return (struct probe){.func = 7, .role = role, .line = 3, .file = "/bin/true", .plan = plan};
}

static struct probe_spec made(const struct probe *probe)
{
	struct probe_spec spec;
	const char *why;

	CU_ASSERT_EQUAL(probe_spec_make(probe, &spec, &why), 0);
	CU_ASSERT_PTR_NULL(why);
	CU_ASSERT_EQUAL(spec.func, probe->func);
	CU_ASSERT_EQUAL(spec.line, probe->line);
	return spec;
}

static int refused(const struct probe *probe)
{
	struct probe_spec spec;
	const char *why = NULL;
	int err = probe_spec_make(probe, &spec, &why);

	CU_ASSERT(err < 0);
	CU_ASSERT_PTR_NOT_NULL(why);
	return err;
}

static void test_functions(void)
{
	struct probe probe = probe_of(PROBE_FUNCTION, &with_sites);
	struct probe_spec spec = made(&probe);

	CU_ASSERT_EQUAL(spec.role, SPEC_FUNCTION);
	CU_ASSERT_EQUAL(spec.flags, SPEC_TIMED);
	CU_ASSERT(probe_wants_exit(&probe));
	probe.want_call_addr = true;
	probe.plan = &with_uretprobe;
	CU_ASSERT_EQUAL(made(&probe).flags, SPEC_TIMED | SPEC_CALL_ADDR | SPEC_URETPROBE);
	/* Then its calls are counted, and that is all. */
	probe.plan = &without_exit;
	CU_ASSERT_EQUAL(made(&probe).flags, 0);
	CU_ASSERT(!probe_wants_exit(&probe));
}

static void test_moments(void)
{
	struct probe probe = probe_of(PROBE_BEGIN, &without_exit);

	probe.key = (struct probe_expr){.kind = PROBE_EXPR_ARG, .arg = 0};
	CU_ASSERT_EQUAL(made(&probe).flags, 0);
	CU_ASSERT(!probe_wants_exit(&probe));
	probe.key.kind = PROBE_EXPR_RETVAL;
	CU_ASSERT_EQUAL(refused(&probe), -ENOTSUP);
	probe.plan = &with_sites;
	CU_ASSERT_EQUAL(made(&probe).flags, SPEC_AT_EXIT | SPEC_ON_STACK);
	CU_ASSERT(made(&probe).operands[0].at_exit);
	CU_ASSERT(probe_wants_exit(&probe));
	probe = probe_of(PROBE_INTERVAL, &without_exit);
	CU_ASSERT_EQUAL(refused(&probe), -ENOTSUP);
	probe = probe_of(PROBE_ACQUIRE, &with_sites);
	probe.object = (struct probe_expr){.kind = PROBE_EXPR_ARG, .arg = 0};
	CU_ASSERT_EQUAL(made(&probe).flags, SPEC_AT_EXIT | SPEC_ON_STACK | SPEC_TIMED);
}

static void test_types(void)
{
	struct probe probe = probe_of(PROBE_INTERVAL, &with_sites);
	struct probe_spec spec = made(&probe);

	CU_ASSERT(spec.operands[1].kind == OPERAND_NONE);
	probe.type = (struct probe_expr){.kind = PROBE_EXPR_MEMORY, .arg = 0, .width = 8, .off = 8, .is_string = true};
	spec = made(&probe);
	CU_ASSERT_EQUAL(spec.operands[0].kind, OPERAND_NONE);
	CU_ASSERT(spec.operands[1].kind == OPERAND_REG && spec.operands[1].is_string);
	CU_ASSERT(spec.operands[1].deref_sz == 8 && spec.operands[1].deref_off == 8);
	probe.role = PROBE_FUNCTION;
	CU_ASSERT_EQUAL(made(&probe).operands[1].kind, OPERAND_NONE);
}

static void test_operands(void)
{
	struct probe probe = probe_of(PROBE_ENQUEUE, &with_sites);
	struct probe_spec spec;

	probe.task = (struct probe_expr){.kind = PROBE_EXPR_MEMORY, .arg = 1, .width = 4, .off = -16};
	probe.queue = (struct probe_expr){.kind = PROBE_EXPR_ARG, .arg = 0};
	spec = made(&probe);
	CU_ASSERT_EQUAL(spec.operands[0].kind, OPERAND_REG);
	CU_ASSERT_EQUAL(spec.operands[0].deref_sz, 4);
	CU_ASSERT_EQUAL(spec.operands[0].deref_off, -16);
	CU_ASSERT_EQUAL(spec.operands[1].kind, OPERAND_REG);
	CU_ASSERT_EQUAL(spec.operands[1].deref_sz, 0);
	CU_ASSERT_NOT_EQUAL(spec.operands[0].reg_off, spec.operands[1].reg_off);
#if defined(__x86_64__)
	CU_ASSERT_EQUAL(spec.operands[0].reg_off, 104); /* rsi */
	CU_ASSERT_EQUAL(spec.operands[1].reg_off, 112); /* rdi */
#endif
	probe.task.arg = 6;
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe.task = (struct probe_expr){.kind = PROBE_EXPR_MEMORY, .width = 2};
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe.task = (struct probe_expr){.kind = PROBE_EXPR_TID};
	CU_ASSERT_EQUAL(made(&probe).operands[0].kind, OPERAND_TID);
}

static void test_markers(void)
{
	struct usdt_site site = {
		.arg_cnt = 3,
		.args = {{.kind = USDT_ARG_CONST, .sz = 4, .is_signed = true, .value = -3},
			 {.kind = USDT_ARG_MEMORY, .sz = 8, .scale = 4, .reg_off = 8, .idx_off = 16, .value = 32},
			 {.kind = USDT_ARG_UNREADABLE}},
	};
	struct probe probe = {.role = PROBE_ACQUIRE, .usdt = &site, .file = "/bin/true"};
	struct probe_spec spec;

	probe.object = (struct probe_expr){.kind = PROBE_EXPR_ARG, .arg = 1};
	spec = made(&probe);
	/* A marker is a moment: the lock is held from then on. */
	CU_ASSERT_EQUAL(spec.flags, 0);
	CU_ASSERT_EQUAL(spec.operands[0].kind, OPERAND_MEMORY);
	CU_ASSERT_EQUAL(spec.operands[0].idx_shift, 2);
	CU_ASSERT_EQUAL(spec.operands[0].value, 32);
	probe.object.arg = 0;
	CU_ASSERT_EQUAL(made(&probe).operands[0].value, -3);
	probe.object.arg = 2;
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe.object.arg = 3;
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe.object.kind = PROBE_EXPR_RETVAL;
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe = (struct probe){.role = PROBE_INTERVAL, .usdt = &site, .file = "/bin/true"};
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
	probe.usdt = NULL;
	CU_ASSERT_EQUAL(refused(&probe), -EINVAL);
}

static void test_cookies(void)
{
	static const int32_t biases[] = {0, 8, 4096, -8};

	for (size_t i = 0; i < sizeof(biases) / sizeof(biases[0]); i++) {
		uint64_t cookie = PROBE_COOKIE(PROBE_SPECS_MAX - 1, biases[i]);

		CU_ASSERT_EQUAL(PROBE_COOKIE_SPEC(cookie), PROBE_SPECS_MAX - 1);
		CU_ASSERT_EQUAL(PROBE_COOKIE_BIAS(cookie), biases[i]);
	}
}

int suite_probe_spec(void)
{
	static const struct unit_test tests[] = {
		{"functions that are timed", test_functions},
		{"roles at the entry and at the exit", test_moments},
		{"expressions", test_operands},
		{"types of intervals", test_types},
		{"markers", test_markers},
		{"cookies", test_cookies},
	};

	return unit_suite("probe_spec", tests, sizeof(tests) / sizeof(tests[0]));
}
