/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names, wait classes and read classes of the system calls of include/whylate/syscall.def, by number. */
#ifndef WHYLATE_BASE_SYSCALLS_H
#define WHYLATE_BASE_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* NULL for a call that is not in the list. */
const char *syscall_name(uint32_t nr);
/* Fills classes[nr] (enum wait_class of bpf/knobs.h) for all nr below cnt; 0 (other) where nothing is known. */
void syscall_wait_classes(uint8_t *classes, size_t cnt);
/* Likewise enum read_class, 0 (nowhere) for calls that read from no socket. */
void syscall_read_classes(uint8_t *classes, size_t cnt);

#endif
