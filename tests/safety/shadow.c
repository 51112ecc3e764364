/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program with a shadow stack, where CPU, kernel and C library have it (it is to be started with
 * GLIBC_TUNABLES=glibc.cpu.x86_shstk=on): a return address that was changed ends it.  Prints `skip …` where it has
 * none.
 */
#include "safety.h"

#include <sys/syscall.h>

#define SHSTK_STATUS 0x5005
#define SHSTK_IS_ON  1UL

static bool has_shadow_stack(void)
{
#ifdef __x86_64__
	unsigned long features = 0;

	return !syscall(SYS_arch_prctl, SHSTK_STATUS, &features) && features & SHSTK_IS_ON;
#else
	return false;
#endif
}

KEPT static uint64_t leaf(uint64_t x)
{
	return safety_mix(x);
}

KEPT static uint64_t down(uint64_t x, int depth)
{
	uint64_t sum = depth ? down(x + 1, depth - 1) : 0;

	return sum + leaf(x);
}

int main(int argc, char **argv)
{
	if (!has_shadow_stack()) {
		printf("skip no shadow stack: this CPU, kernel or C library has none\n");
		return 77;
	}
	safety_begin(argc, argv);
	for (uint64_t i = 0; safety_goes_on(); i++) {
		uint64_t x = safety_mix(i), sum = 0;

		for (uint64_t depth = 0; depth <= i % 20; depth++)
			sum += safety_mix(x + depth);
		safety_check(down(x, (int)(i % 20)) == sum, "down from %d", (int)(i % 20));
		safety_sleep_us(300);
	}
	return safety_verdict();
}
