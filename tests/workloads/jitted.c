/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Its code is told of in a perf map. */
#include "jitted.h"
