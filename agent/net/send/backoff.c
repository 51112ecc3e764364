// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/backoff.h"

void backoff__init(struct backoff *backoff, uint64_t seed)
{
	*backoff = (struct backoff){.rng = seed ? seed : 1};
}

void backoff__succeed(struct backoff *backoff)
{
	backoff->failure_cnt = 0;
	backoff->until_ts = 0;
}

/* xorshift64*: [0, n) */
static uint64_t random_below(struct backoff *backoff, uint64_t n)
{
	backoff->rng ^= backoff->rng >> 12;
	backoff->rng ^= backoff->rng << 25;
	backoff->rng ^= backoff->rng >> 27;
	return (backoff->rng * 0x2545f4914f6cdd1dULL >> 11) % n;
}

void backoff__fail(struct backoff *backoff, uint64_t now_ts, uint64_t asked_ns)
{
	uint64_t wait_ns = BACKOFF_FIRST_NS;

	for (uint32_t i = 0; i < backoff->failure_cnt && wait_ns < BACKOFF_CAP_NS; i++)
		wait_ns *= 2;
	if (wait_ns > BACKOFF_CAP_NS)
		wait_ns = BACKOFF_CAP_NS;
	if (backoff->failure_cnt < UINT32_MAX)
		backoff->failure_cnt++;
	if (asked_ns > BACKOFF_ASKED_CAP_NS)
		asked_ns = BACKOFF_ASKED_CAP_NS;
	/* Half of it is certain.  What was asked for is never undercut. */
	wait_ns = wait_ns / 2 + random_below(backoff, wait_ns / 2 + 1);
	backoff->until_ts = now_ts + (asked_ns ? asked_ns + wait_ns / 4 : wait_ns);
}
