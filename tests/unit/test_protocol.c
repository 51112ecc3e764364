// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/protocol.h"
#include "shard/crc32c.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

#define SESSION 0x0123456789abcdefULL

static void put_frame(struct shard_buf *body, uint8_t kind, uint64_t seq, const char *payload)
{
	struct protocol_frame frame = {
		.kind = kind, .seq = seq, .sz = strlen(payload), .crc = crc32c(0, payload, strlen(payload))};

	CU_ASSERT_FATAL(!vec_reserve(body, PROTOCOL_FRAME_HEADER_SZ + frame.sz));
	protocol_frame__put(body->items + body->cnt, &frame);
	memcpy(body->items + body->cnt + PROTOCOL_FRAME_HEADER_SZ, payload, frame.sz);
	body->cnt += PROTOCOL_FRAME_HEADER_SZ + frame.sz;
}

static void frames(void)
{
	struct protocol_frame frame;
	struct shard_buf body = {0};
	const uint8_t *payload;
	size_t off = 0;

	put_frame(&body, PROTOCOL_BLOCK, 0, "first");
	put_frame(&body, PROTOCOL_BLOCK, PROTOCOL_SEQ_MAX, "second, longer");
	put_frame(&body, PROTOCOL_END, 7, "");
	/* Found by fuzzing: a request without a body. */
	CU_ASSERT(protocol_body__next(NULL, 0, &off, &frame, &payload) == 0);
	CU_ASSERT(protocol_body__next(body.items, body.cnt, &off, &frame, &payload) == 1);
	CU_ASSERT(frame.kind == PROTOCOL_BLOCK && frame.seq == 0 && frame.sz == 5 && !memcmp(payload, "first", 5));
	CU_ASSERT(protocol_body__next(body.items, body.cnt, &off, &frame, &payload) == 1);
	CU_ASSERT(frame.seq == PROTOCOL_SEQ_MAX && frame.sz == 14 && !memcmp(payload, "second, longer", 14));
	CU_ASSERT(protocol_body__next(body.items, body.cnt, &off, &frame, &payload) == 1);
	CU_ASSERT(frame.kind == PROTOCOL_END && frame.seq == 7 && frame.sz == 0);
	CU_ASSERT(off == body.cnt);
	CU_ASSERT(protocol_body__next(body.items, body.cnt, &off, &frame, &payload) == 0);
	vec_free(&body);
}

/* Cut anywhere, it is cut short; changed anywhere, it is noticed. */
static void frames_damaged(void)
{
	struct protocol_frame frame;
	struct shard_buf body = {0};
	const uint8_t *payload;
	size_t off;

	put_frame(&body, PROTOCOL_BLOCK, 3, "payload");
	for (size_t sz = 1; sz < body.cnt; sz++) {
		uint8_t *cut = malloc(sz); /* so that a byte too many is seen */

		CU_ASSERT_FATAL(cut != NULL);
		memcpy(cut, body.items, sz);
		off = 0;
		CU_ASSERT(protocol_body__next(cut, sz, &off, &frame, &payload) == -EAGAIN && off == 0);
		free(cut);
	}
	for (size_t i = 0; i < body.cnt; i++) {
		int expected = i < PROTOCOL_FRAME_MAGIC_SZ ? -ENODATA : -EBADMSG;

		body.items[i] ^= 0x20;
		off = 0;
		CU_ASSERT(protocol_body__next(body.items, body.cnt, &off, &frame, &payload) == expected && off == 0);
		body.items[i] ^= 0x20;
	}
	vec_free(&body);
}

static int get_put(const struct protocol_frame *frame)
{
	uint8_t bytes[PROTOCOL_FRAME_HEADER_SZ];
	struct protocol_frame got;

	protocol_frame__put(bytes, frame);
	return protocol_frame__get(&got, bytes, sizeof(bytes));
}

static void frames_beyond_limits(void)
{
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_BLOCK, 0, PROTOCOL_PAYLOAD_MAX, 0}) == 0);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_BLOCK, 0, PROTOCOL_PAYLOAD_MAX + 1, 0}) == -EOVERFLOW);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_BLOCK, 0, UINT32_MAX, 0}) == -EOVERFLOW);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_BLOCK, PROTOCOL_SEQ_MAX + 1, 1, 0}) == -EOVERFLOW);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_BLOCK, 0, 0, 0}) == -EOVERFLOW);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_END, 0, 1, 0}) == -EOVERFLOW);
	CU_ASSERT(get_put(&(struct protocol_frame){0, 0, 1, 0}) == -ENOTSUP);
	CU_ASSERT(get_put(&(struct protocol_frame){PROTOCOL_END + 1, 0, 1, 0}) == -ENOTSUP);
}

static void hosts(void)
{
	static const char *const good[] = {
		"a",
		"Host-1.example_2",
		"_x",
		"0123456789012345678901234567890123456789012345678901234567890123",
	};
	static const char *const bad[] = {
		"",     ".",         "..",  ".a",
		"-a",   "a/b",       "a b", "a%2e",
		"a\\b", "h\xc3\xa4", "a\n", "01234567890123456789012345678901234567890123456789012345678901234",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT(protocol_host_is_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT(!protocol_host_is_valid(bad[i]));
}

static void tokens(void)
{
	char longest[PROTOCOL_TOKEN_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[PROTOCOL_TOKEN_MAX + 1] = 0;
	CU_ASSERT(!protocol_token_is_valid(longest));
	longest[PROTOCOL_TOKEN_MAX] = 0;
	CU_ASSERT(protocol_token_is_valid(longest));
	CU_ASSERT(protocol_token_is_valid("0123456789abcde~"));
	CU_ASSERT(!protocol_token_is_valid("0123456789abcde"));
	CU_ASSERT(!protocol_token_is_valid("0123456789 abcdef"));
	CU_ASSERT(!protocol_token_is_valid("0123456789\tabcdef"));
	CU_ASSERT(!protocol_token_is_valid("0123456789abcdef\xff"));
}

static void paths(void)
{
	static const struct {
		const char *path;
		int ret;
	} cases[] = {
		{"/v1/hosts/h/sessions/0123456789abcdef/blocks", 0},
		{"/v1/hosts/h/sessions/0123456789abcdef/blocks/", -ENOENT},
		{"/v1/hosts/h/sessions/0123456789abcdef/block", -ENOENT},
		{"/v1/hosts/h/sessions/0123456789abcdef", -ENOENT},
		{"/v1/hosts/h/sessions/0123456789ABCDEF/blocks", -EINVAL},
		{"/v1/hosts/h/sessions/0123456789abcde/blocks", -EINVAL},
		{"/v1/hosts/h/sessions/00123456789abcdef/blocks", -EINVAL},
		{"/v1/hosts/h/sessions//blocks", -EINVAL},
		{"/v1/hosts//sessions/0123456789abcdef/blocks", -EINVAL},
		{"/v1/hosts/../sessions/0123456789abcdef/blocks", -EINVAL},
		{"/v1/hosts/../../sessions/0123456789abcdef/blocks", -ENOENT},
		{"/v1/hosts/%2e%2e/sessions/0123456789abcdef/blocks", -EINVAL},
		{"/v1/hosts/h", -ENOENT},
		{"/v2/hosts/h/sessions/0123456789abcdef/blocks", -ENOENT},
		{"v1/hosts/h/sessions/0123456789abcdef/blocks", -ENOENT},
		{"/", -ENOENT},
		{"", -ENOENT},
	};
	char host[SHARD_HOST_MAX + 1], path[PROTOCOL_PATH_SZ], longest[SHARD_HOST_MAX + 1];
	uint64_t session_id;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT(protocol_path__get(cases[i].path, host, &session_id) == cases[i].ret);
	memset(longest, 'h', SHARD_HOST_MAX);
	longest[SHARD_HOST_MAX] = 0;
	protocol_path__put(path, longest, SESSION);
	CU_ASSERT(strlen(path) == PROTOCOL_PATH_SZ - 1);
	CU_ASSERT(!protocol_path__get(path, host, &session_id));
	CU_ASSERT(!strcmp(host, longest) && session_id == SESSION);
}

static const struct unit_test tests[] = {
	{"frames", frames},
	{"damaged frames", frames_damaged},
	{"frames beyond the limits", frames_beyond_limits},
	{"host names", hosts},
	{"tokens", tokens},
	{"request paths", paths},
};

int suite_protocol(void)
{
	return unit_suite("protocol", tests, sizeof(tests) / sizeof(tests[0]));
}
