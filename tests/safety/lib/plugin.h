/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library that is loaded and unloaded all the time. */
#ifndef SAFETY_LIB_PLUGIN_H
#define SAFETY_LIB_PLUGIN_H

#include <stdint.h>

uint64_t plugin_compute(uint64_t x);
uint64_t plugin_fold(uint64_t x, unsigned int times);

#endif
