/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Its code is told of in a jitdump. */
#define JITTED_DUMP 1
#include "jitted.h"
