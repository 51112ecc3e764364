/* SPDX-License-Identifier: GPL-2.0-only */
/* Probes of sites for which nobody has planned: at the function's first instruction, with a uretprobe there. */
#ifndef WHYLATE_PROBE_SITE_PROBE_H
#define WHYLATE_PROBE_SITE_PROBE_H

#include "probe/probe.h"

/* Numbers the function; *plan is what the probe points to. */
void site_probe_make(const struct probe_site *site, const struct probe_line *line, uint32_t func, struct plan *plan,
		     struct probe *probe);

#endif
