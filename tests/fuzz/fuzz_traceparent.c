// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any bytes as the trace context of a request: a traceparent header behind the part that the kernel side
 * looks for, and a thread's context.  Build and run: make fuzz
 */
#include "model/trace_context.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static void check_id(const char *text, size_t len)
{
	if (strnlen(text, len + 1) != len || strspn(text, "0123456789abcdef") != len || strspn(text, "0") == len)
		abort();
}

static void check(const struct wl_trace_context *context, bool is_whole)
{
	/* What is around them may not be written. */
	struct {
		char trace_id[TRACE_ID_TEXT_SZ], span_id[SPAN_ID_TEXT_SZ], behind;
	} texts;

	memset(&texts, 'x', sizeof(texts));
	if (trace_context_texts(context, texts.trace_id, texts.span_id)) {
		check_id(texts.trace_id, TRACE_ID_TEXT_SZ - 1);
		check_id(texts.span_id, SPAN_ID_TEXT_SZ - 1);
	} else if (is_whole) {
		abort();
	}
	if (texts.behind != 'x')
		abort();
}

static char digit_of(uint8_t byte)
{
	return "0123456789abcdef"[byte & 15];
}

/* One that is in order, with the input's digits in it, must be understood. */
static void check_good(const uint8_t *bytes, size_t sz)
{
	struct wl_trace_context context = {.kind = WL_TRACE_HEADER};
	const char version[] = "traceparent: 00-";
	size_t at = sizeof(version) - 1;

	if (sz < 48)
		return;
	memcpy(context.bytes, version, at);
	for (size_t i = 0; i < 32; i++)
		context.bytes[at++] = (uint8_t)(i ? digit_of(bytes[i]) : '1');
	context.bytes[at++] = '-';
	for (size_t i = 0; i < 16; i++)
		context.bytes[at++] = (uint8_t)(i ? digit_of(bytes[32 + i]) : '1');
	context.bytes[at] = '-';
	check(&context, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	struct wl_trace_context context = {0};

	if (!sz)
		return 0;
	context.kind = bytes[0] % 4;
	memcpy(context.bytes, bytes + 1, sz - 1 < sizeof(context.bytes) ? sz - 1 : sizeof(context.bytes));
	check(&context, false);
	check_good(bytes, sz);
	return 0;
}
