// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_context.h"

#include "model/request_text.h"

#include <stdio.h>

#define HEADER_NAME_LEN (sizeof("traceparent:") - 1)

/* `len` digits and a terminating NUL.  False: other bytes, or nothing but zeros, which means that there is no id. */
static bool copy_id(char *to, const uint8_t *from, size_t len)
{
	bool is_zero = true;

	for (size_t i = 0; i < len; i++) {
		if (!is_digit(from[i]) && !(from[i] >= 'a' && from[i] <= 'f'))
			return false;
		is_zero &= from[i] == '0';
		to[i] = (char)from[i];
	}
	to[len] = '\0';
	return !is_zero;
}

/* VERSION-TRACE_ID-SPAN_ID-FLAGS; ff is no version. */
static bool header_texts(const uint8_t *bytes, char *trace_id, char *span_id)
{
	const size_t trace_len = 2 * WL_TRACE_ID_LEN, span_len = 2 * WL_SPAN_ID_LEN;
	const size_t needed = 3 + trace_len + 1 + span_len + 1;
	const uint8_t *at = bytes + HEADER_NAME_LEN, *end = bytes + WL_TRACE_HEADER_LEN;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if ((size_t)(end - at) < needed || !is_hex(at[0]) || !is_hex(at[1]) || (at[0] == 'f' && at[1] == 'f') ||
	    at[2] != '-' || at[3 + trace_len] != '-' || at[needed - 1] != '-')
		return false;
	return copy_id(trace_id, at + 3, trace_len) && copy_id(span_id, at + 3 + trace_len + 1, span_len);
}

static void put_hex(char *to, const uint8_t *bytes, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static bool thread_texts(const uint8_t *bytes, char *trace_id, char *span_id)
{
	static const uint8_t zeros[WL_TRACE_ID_LEN];

	put_hex(trace_id, bytes, WL_TRACE_ID_LEN);
	put_hex(span_id, bytes + WL_TRACE_ID_LEN, WL_SPAN_ID_LEN);
	return memcmp(bytes, zeros, WL_TRACE_ID_LEN) && memcmp(bytes + WL_TRACE_ID_LEN, zeros, WL_SPAN_ID_LEN);
}

bool trace_context_texts(const struct wl_trace_context *context, char trace_id[TRACE_ID_TEXT_SZ],
			 char span_id[SPAN_ID_TEXT_SZ])
{
	switch (context->kind) {
	case WL_TRACE_HEADER:
		return header_texts(context->bytes, trace_id, span_id);
	case WL_TRACE_THREAD:
		return thread_texts(context->bytes, trace_id, span_id);
	default:
		return false;
	}
}
