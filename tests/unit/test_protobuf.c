// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/protobuf.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static void the_wire_format_is_that_of_protocol_buffers(void)
{
	/* From the documentation of the encoding: field 1 = 150, field 2 = "testing", field 3 = a message with the
	 * first. */
	static const uint8_t expected[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',  'i',  'n',  'g', 0x1a,
					   0x03, 0x08, 0x96, 0x01, 0xf9, 0x02, 1,    0,    0,    0,    0,    0,   0,
					   0x80, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	struct proto message = {0}, within = {0};

	proto__uint(&within, 1, 150);
	proto__uint(&message, 1, 150);
	proto__string(&message, 2, "testing");
	proto__message(&message, 3, &within);
	proto__fixed64(&message, 47, 0x8000000000000001ULL);
	proto__uint(&message, 4, UINT64_MAX);
	CU_ASSERT_EQUAL(message.err, 0);
	CU_ASSERT_EQUAL_FATAL(message.cnt, sizeof(expected));
	CU_ASSERT(!memcmp(message.items, expected, sizeof(expected)));
	proto__free(&message);
	proto__free(&within);
}

/* An independent reader: -1 where the bytes end too early. */
static int64_t read_varint(const uint8_t *bytes, size_t sz, size_t *off, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (*off >= sz)
			return -1;
		*value |= (uint64_t)(bytes[*off] & 0x7f) << shift;
		if (!(bytes[(*off)++] & 0x80))
			return 0;
	}
	return -1;
}

static uint64_t random_of_any_size(void)
{
	uint64_t value = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();

	return value >> rand() % 64;
}

static void packed_values_come_back(void)
{
	srand(11);
	for (int round = 0; round < 2000; round++) {
		size_t cnt = (size_t)(1 + rand() % 40), off = 0;
		struct proto message = {0};
		uint64_t values[40], value, sz;

		for (size_t i = 0; i < cnt; i++)
			values[i] = random_of_any_size();
		proto__packed(&message, 5, values, cnt);
		CU_ASSERT_FATAL(!message.err && message.items[off++] == (5 << 3 | 2));
		CU_ASSERT_FATAL(!read_varint(message.items, message.cnt, &off, &sz) && off + sz == message.cnt);
		for (size_t i = 0; i < cnt; i++)
			CU_ASSERT_FATAL(!read_varint(message.items, message.cnt, &off, &value) && value == values[i]);
		CU_ASSERT_EQUAL_FATAL(off, message.cnt);
		proto__free(&message);
	}
}

static void no_packed_value_is_no_field(void)
{
	struct proto message = {0};

	proto__packed(&message, 5, NULL, 0);
	CU_ASSERT(!message.err && !message.cnt);
	proto__free(&message);
}

static void doubles_come_back(void)
{
	static const double doubles[] = {0.0, -1.5, 1e300, 0x1p-1074};
	struct proto message = {0};

	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		proto__reset(&message);
		proto__double(&message, 4, doubles[i]);
		CU_ASSERT_EQUAL_FATAL(message.cnt, 9);
		CU_ASSERT(message.items[0] == (4 << 3 | 1) && !memcmp(message.items + 1, &doubles[i], 8));
	}
	proto__free(&message);
}

int suite_protobuf(void)
{
	static const struct unit_test tests[] = {
		{"the wire format is that of protocol buffers", the_wire_format_is_that_of_protocol_buffers},
		{"packed values come back", packed_values_come_back},
		{"no packed value is no field", no_packed_value_is_no_field},
		{"doubles come back", doubles_come_back},
	};

	return unit_suite("protobuf", tests, sizeof(tests) / sizeof(tests[0]));
}
