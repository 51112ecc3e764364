// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/capabilities.h"

#include <errno.h>

bool capability_had(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t value = CAP_CLEAR;

	return caps && !cap_get_flag(caps, cap, CAP_EFFECTIVE, &value) && value == CAP_SET;
}

int capabilities_keep(const cap_value_t *wanted, size_t cnt)
{
	cap_t had = cap_get_proc(), kept = cap_init();
	int err = had && kept ? 0 : -errno;

	for (size_t i = 0; i < cnt && !err; i++) {
		cap_value_t cap = wanted[i];

		if (!capability_had(had, cap))
			continue;
		if (cap_set_flag(kept, CAP_PERMITTED, 1, &cap, CAP_SET) ||
		    cap_set_flag(kept, CAP_EFFECTIVE, 1, &cap, CAP_SET))
			err = -errno;
	}
	if (!err && cap_set_proc(kept))
		err = -errno;
	cap_free(kept);
	cap_free(had);
	return err;
}

void capabilities_keep_reading(void)
{
	static const cap_value_t reading[] = {CAP_DAC_READ_SEARCH};

	/* With more than it needs it works as well. */
	(void)capabilities_keep(reading, 1);
}
