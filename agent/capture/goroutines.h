/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goroutines of the target's Go programs: with capture_opts.goroutines, requests of the processes that are added belong
 * to goroutines, and what is told of threads is told of goroutines, which have tids of their own (WL_GOROUTINE_TID).
 */
#ifndef WHYLATE_CAPTURE_GOROUTINES_H
#define WHYLATE_CAPTURE_GOROUTINES_H

#include "capture/capture.h"

struct go_layout;
struct goroutines;

/*
 * Before capture__start(): a process, its program's file (the caller's, which stays open), and where in that file the
 * probes sit, by enum go_site.  0 or -errno.
 */
int capture__add_goroutines(struct capture *capture, pid_t pid, int program_fd, const struct go_layout *layout,
			    const uint64_t *site_offs);

/*
 * For this room: with opts.goroutines, starts the process that attaches, before the programs are loaded; clears the
 * option where the kernel bears no probes.  0 or -errno after one line.
 */
int goroutines__open(struct capture *capture);
/* Without them their tables take no memory. 0 or -errno. */
struct bpf_map;
int goroutines__shrink(struct bpf_map *goroutines, struct bpf_map *layouts);
void goroutines__set_table(struct goroutines *goroutines, int layouts_fd);
void goroutines__free(struct goroutines *goroutines); /* NULL-safe */
/* With the hooks of a window, or for good.  0 or -errno after one line; no-ops without goroutines. */
int goroutines__attach(struct capture *capture);
void goroutines__detach(struct capture *capture);

#endif
