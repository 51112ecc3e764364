/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Go runtime of a process: where its scheduler switches goroutines, where it keeps what is to be read of them, and
 * the names of functions.  Go 1.18 and later on x86-64; offsets by DWARF, which are held against the process's own
 * goroutines, or by the version of Go, where there is no DWARF and the version is known.  Functions are found by the
 * runtime's own table, which stays when a program is stripped.  Nothing in the file or the process is trusted.
 */
#ifndef WHYLATE_TARGET_GO_RUNTIME_H
#define WHYLATE_TARGET_GO_RUNTIME_H

#include "bpf/go_layout.h"
#include "target/elf_image.h"
#include "target/target.h"

struct go_runtime;

/*
 * Of a process by what it has mapped.  0, or -errno: -ENOENT it is no Go program, -ESRCH it has ended; -ENOTSUP its
 * goroutines cannot be told apart, for the reason in `why`, which names the version where that is the reason.
 */
#define GO_WHY_SZ 192
int go_runtime__open(pid_t pid, const target_mappings *mappings, struct go_runtime **go, char why[GO_WHY_SZ]);
void go_runtime__free(struct go_runtime *go); /* NULL-safe */
const struct go_layout *go_runtime__layout(const struct go_runtime *go);
/* Offset in the file. */
uint64_t go_runtime__site(const struct go_runtime *go, enum go_site site);
/* The program's file, open; the runtime's own. */
int go_runtime__fd(const struct go_runtime *go);
/* "go1.19.8" */
const char *go_runtime__version(const struct go_runtime *go);
/* By debugging information, not by the version. */
bool go_runtime__by_dwarf(const struct go_runtime *go);
/*
 * How a goroutine is called that began with the function at that address of the process: "go:" and the function without
 * its package, as much as a thread's name has room for.  False: no function is there.
 */
bool go_runtime__role(const struct go_runtime *go, uint64_t start_pc, char comm[16]);

/* --- parts, for tests --------------------------------------------------------------------------------------------- */

/* By the version: 0, -ENOTSUP: it is not known. */
int go_layout_by_version(const char *version, struct go_layout *layout);
/* Bytes to the first instruction of a function that a probe is cheap on, with the arguments still in registers; -1:
 * there is none. */
int go_probe_off(const uint8_t *code, size_t sz);
/* "net/http.(*conn).serve" → "go:conn.serve" */
void go_role_of(const char *function, char comm[16]);

#endif
