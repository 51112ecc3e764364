/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goroutines of the target's Go programs: with capture_opts.goroutines, requests of the processes that are added belong
 * to goroutines, and what is told of threads is told of goroutines, which have tids of their own (WL_GOROUTINE_TID).
 */
#ifndef WHYLATE_CAPTURE_GOROUTINES_H
#define WHYLATE_CAPTURE_GOROUTINES_H

#include "capture/capture.h"

struct go_layout;

/*
 * Before capture__start(): a process, its program's file (the caller's, which stays open), and where in that file the
 * probes sit, by enum go_site.  0 or -errno.
 */
int capture__add_goroutines(struct capture *capture, pid_t pid, int program_fd, const struct go_layout *layout,
			    const uint64_t *site_offs);

#endif
