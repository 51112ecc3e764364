// SPDX-License-Identifier: GPL-2.0-only
#include "probe/site_probe.h"

void site_probe_make(const struct probe_site *site, const struct probe_line *line, uint32_t func, struct plan *plan,
		     struct probe *probe)
{
	*plan = (struct plan){.possible = true, .exit = PLAN_EXIT_URETPROBE, .uretprobe_off = site->file_off};
	plan->entry = (struct plan_site){.file_off = site->file_off, .cost = PLAN_STEPPED};
	*probe = (struct probe){
		.func = func,
		.role = line->role,
		.line = site->line_idx,
		.want_call_addr = true,
		.file = site->file,
		.plan = plan,
		.key = line->key,
		.object = line->object,
		.task = line->task,
		.queue = line->queue,
	};
}
