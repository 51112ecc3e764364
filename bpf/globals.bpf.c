// SPDX-License-Identifier: GPL-2.0-or-later
/* The variables that all programs share; the maps are in context.h. */
#define WHYLATE_GLOBALS
#include "context.h"

const volatile struct knobs cfg_knobs;
struct controls controls;
u32 goroutine_cnt;
u32 flow_generation = FLOW_GENERATION_FIRST;

char LICENSE[] SEC("license") = "GPL";
