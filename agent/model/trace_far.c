// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_far.h"

#include "base/order.h"

#include <string.h>
#include <sys/socket.h>

#define LOOKS_MAX 4096

bool trace_far_is(const struct wl_socket_record *record)
{
	if (record->family != AF_INET && record->family != AF_INET6)
		return false;
	if (record->family == AF_INET && (record->local_addr[0] == 127 || record->remote_addr[0] == 127))
		return false;
	return memcmp(record->local_addr, record->remote_addr, record->family == AF_INET ? 4 : 16) != 0;
}

static struct trace_far_send *at(struct trace_far *far, uint64_t number)
{
	return &far->sends[number % TRACE_FAR_SENDS];
}

void trace_far__sent(struct trace_far *far, const struct wl_socket_record *record)
{
	*at(far, far->send_cnt++) = (struct trace_far_send){.record = *record};
}

/* The number of the first send that is not before ts. */
static uint64_t first_from(struct trace_far *far, uint64_t ts)
{
	return search_first(far->send_cnt > TRACE_FAR_SENDS ? far->send_cnt - TRACE_FAR_SENDS : 0, far->send_cnt,
			    middle, at(far, middle)->record.ts >= ts);
}

struct trace_far_send *trace_far__next(struct trace_far *far, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				       uint64_t *place)
{
	uint64_t number = *place ? *place : first_from(far, from_ts);

	for (int looks = 0; number < far->send_cnt && looks < LOOKS_MAX; number++, looks++) {
		struct trace_far_send *send = at(far, number);

		if (send->record.ts > to_ts)
			break;
		if (send->record.tid != tid || send->done)
			continue;
		*place = number + 1;
		return send;
	}
	return NULL;
}

void trace_far__met(struct trace_far *far, const struct wl_socket_record *sent)
{
	struct trace_far_send *send;
	uint64_t place = 0;

	while ((send = trace_far__next(far, sent->tid, sent->ts, sent->ts, &place)))
		if (send->record.pos == sent->pos)
			send->done = true;
}
