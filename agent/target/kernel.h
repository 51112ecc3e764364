/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is the running kernel one that can be recorded on?  What it can measure is found out by trying (capture/hooks.h). */
#ifndef WHYLATE_TARGET_KERNEL_H
#define WHYLATE_TARGET_KERNEL_H

#include <stddef.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/*
 * Why a kernel with this `uname -r` and `uname -v` is below what whylate was made for and tested on, and what to do, in
 * one line; 0: it is not, -ENOTSUP: it is.
 */
int kernel_below_floor(const char *release, const char *version, char *why, size_t sz);

/* The same for the running kernel and for BTF, its own or the file's (NULL: none given): 0, or -errno and why. */
int kernel_unfit(const char *btf_path, char *why, size_t sz);

#endif
