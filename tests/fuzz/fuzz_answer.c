// SPDX-License-Identifier: GPL-2.0-or-later
/* libFuzzer: any text as a collector's answer to the uploader, and as an answer that holds the usual keys. */
#include "net/send/upload_client.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static void check(const char *text)
{
	struct upload_answer answer = {.frame = -1};
	size_t len;

	upload_answer__parse(&answer, text);
	len = strnlen(answer.text, sizeof(answer.text));
	if (len == sizeof(answer.text) || answer.status || answer.error || answer.retry_after_ns)
		abort();
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)answer.text[i]))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static const char head[] = "{\"frame\":1,\"duplicates\":2,\"error\":\"";
	char *text = malloc(sizeof(head) + sz + 3);

	if (!text)
		return 0;
	memcpy(text, bytes, sz);
	text[sz] = '\0';
	check(text);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + sizeof(head) - 1, bytes, sz);
	memcpy(text + sizeof(head) - 1 + sz, "\"}", 3);
	check(text);
	free(text);
	return 0;
}
