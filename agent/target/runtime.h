/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which interpreter or virtual machine runs in a process: its code has names that no ELF file has. */
#ifndef WHYLATE_TARGET_RUNTIME_H
#define WHYLATE_TARGET_RUNTIME_H

#include "target/target.h"

enum runtime {
	RUNTIME_NONE,
#define RUNTIME(id, name, file, advice, again) RUNTIME_##id,
#include "target/runtime.def"
	RUNTIME_CNT
};

/* By what is mapped; the mapping's number goes to *idx (may be NULL). */
enum runtime runtime_of(const target_mappings *mappings, size_t *idx);
bool runtime_is_python(enum runtime runtime);
/* "" for RUNTIME_NONE. */
const char *runtime_name(enum runtime runtime);
/* How its code gets names, as the end of a sentence; has_map: some has. */
const char *runtime_advice(enum runtime runtime, bool has_map);

#endif
