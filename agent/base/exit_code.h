/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program's exit codes, DESIGN §7. */
#ifndef WHYLATE_BASE_EXIT_CODE_H
#define WHYLATE_BASE_EXIT_CODE_H

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_LIMITS = 3, /* done, but loss or missing hooks exceed the stated limit */
	EXIT_WORSE = 4,  /* compare: B is worse than A beyond the limit */
};

#endif
