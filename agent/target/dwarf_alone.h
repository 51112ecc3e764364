/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DWARF may refer to another file (.gnu_debugaltlink), which libdw opens by itself when it meets such a reference: by
 * whatever path the first file names, a pipe or a device, too.
 */
#ifndef WHYLATE_TARGET_DWARF_ALONE_H
#define WHYLATE_TARGET_DWARF_ALONE_H

#include <elfutils/libdw.h>

/* From now on libdw opens no other file for this one: references to it lead nowhere.  0 or -ENOMEM. */
int dwarf_alone(Dwarf *dwarf);

#endif
