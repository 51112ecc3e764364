/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol lists that ship with the product: `preset:NAME` stands for the file NAME.symbols. */
#ifndef WHYLATE_PROBE_PRESET_H
#define WHYLATE_PROBE_PRESET_H

#include <stdbool.h>
#include <stddef.h>

#define PRESET_PREFIX "preset:"

bool preset_is(const char *list);
/*
 * The file that `list` means: itself, unless it is preset:NAME.  Presets are in share/whylate/presets beside the
 * directory of the running program, in `presets` of that directory (before installation), or where WHYLATE_PRESETS
 * says. 0, or -errno after one line, which names the presets that there are.
 */
int preset_path(const char *list, char *path, size_t sz);

#endif
