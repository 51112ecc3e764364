// SPDX-License-Identifier: GPL-2.0-or-later
/* Loops that wait for a spin lock, in machine code. */
#include "unit.h"

#include "target/spin.h"

#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__
#define LOOP 4
#define END  16
#define HINT 4
/* mov w2, 1; yield; ldaxr w0, [x1]; cbnz w0, yield; ret */
static const uint8_t acquire[] = {0x22, 0x00, 0x80, 0x52, 0x3f, 0x20, 0x03, 0xd5, 0x20, 0xfc,
				  0x5f, 0x88, 0xc0, 0xff, 0xff, 0x35, 0xc0, 0x03, 0x5f, 0xd6};
static const uint8_t nop[] = {0x1f, 0x20, 0x03, 0xd5};
#else
#define LOOP 7
#define END  21
#define HINT 7
/* mov $1, %edx; jmp xchg; pause; mov %edx, %eax; xchg %eax, lock(%rip); test %eax, %eax; jne pause; ret */
static const uint8_t acquire[] = {0xba, 0x01, 0x00, 0x00, 0x00, 0xeb, 0x02, 0xf3, 0x90, 0x89, 0xd0,
				  0x87, 0x05, 0x7e, 0x73, 0x02, 0x00, 0x85, 0xc0, 0x75, 0xf2, 0xc3};
static const uint8_t nop[] = {0x66, 0x90};
#endif

static void a_loop_with_a_hint_spins(void)
{
	for (size_t at = 0; at < sizeof(acquire); at++)
		CU_ASSERT_EQUAL(code_spins(acquire, sizeof(acquire), at), at >= LOOP && at < END);
}

static void a_loop_without_one_does_not(void)
{
	uint8_t other[sizeof(acquire)];

	memcpy(other, acquire, sizeof(other));
	memcpy(other + HINT, nop, sizeof(nop));
	for (size_t at = 0; at < sizeof(other); at++)
		CU_ASSERT_FALSE(code_spins(other, sizeof(other), at));
}

/* Code that is cut off, and any bytes: nothing outside of them is read. */
static void any_bytes_will_do(void)
{
	unsigned int state = 7;

	for (size_t sz = 0; sz <= sizeof(acquire); sz++) {
		uint8_t *bytes = malloc(sz + 1);

		CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
		bytes = realloc(bytes, sz ? sz : 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
		memcpy(bytes, acquire, sz);
		for (size_t at = 0; at < sizeof(acquire); at++)
			CU_ASSERT(sz == sizeof(acquire) || sz > END - 2 || !code_spins(bytes, sz, at));
		for (size_t i = 0; i < sz; i++)
			bytes[i] = rand_r(&state) % 4 ? (uint8_t)rand_r(&state) : acquire[i];
		for (size_t at = 0; at < 2 * sizeof(acquire); at++)
			code_spins(bytes, sz, at);
		free(bytes);
	}
}

int suite_spin(void)
{
	static const struct unit_test tests[] = {
		{"a loop with a hint spins", a_loop_with_a_hint_spins},
		{"a loop without one does not", a_loop_without_one_does_not},
		{"any bytes will do", any_bytes_will_do},
	};

	return unit_suite("spin", tests, sizeof(tests) / sizeof(tests[0]));
}
