// SPDX-License-Identifier: GPL-2.0-or-later
/* libFuzzer: any words as a CPU's ring of them, read in two parts.  Build and run: make fuzz */
#include "model/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 512

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

/* Every record is whole and of a kind that words stand for. */
static int check(void *owner, const struct wl_record_header *header)
{
	(void)owner;
	switch (header->kind) {
	case WL_RECORD_SEGMENT:
		if (header->sz != sizeof(struct wl_segment_record) ||
		    ((const struct wl_segment_record *)header)->state > WL_STATE_FAULT_PENDING)
			abort();
		return 0;
	case WL_RECORD_WAKEUP:
		if (header->sz != sizeof(struct wl_wakeup_record))
			abort();
		return 0;
	case WL_RECORD_BRIEF:
		if (header->sz !=
			    sizeof(struct wl_brief_record) + ((const struct wl_brief_record *)header)->first_len ||
		    ((const struct wl_brief_record *)header)->first_len > WL_FIRST_MAX)
			abort();
		return 0;
	}
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static uint64_t words[WORDS];
	struct words_reader reader = {0};
	uint64_t cnt = sz / sizeof(words[0]), half, handled = 0;

	if (cnt > WORDS)
		cnt = WORDS;
	memset(words, 0, sizeof(words));
	memcpy(words, bytes, cnt * sizeof(words[0]));
	half = cnt / 2;
	if (words_reader__read(&reader, words, WORDS - 1, 0, half, check, NULL, &handled))
		return 0;
	words_reader__read(&reader, words, WORDS - 1, half, cnt, check, NULL, &handled);
	if (handled > cnt)
		abort();
	return 0;
}
