/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "trace.h"

void tracer_publish(uint64_t sent_ts);

void tracer_publish(uint64_t sent_ts)
{
	trace_publish(sent_ts);
}
