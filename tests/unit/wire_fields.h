/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_TESTS_WIRE_FIELDS_H
#define WHYLATE_TESTS_WIRE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A reader of the wire format, as little of it as tests need. */
struct field {
	uint32_t number;
	uint64_t value; /* or how many bytes */
	const uint8_t *bytes;
};

static inline bool next_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static inline bool next_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
	uint64_t tag;

	if (*at == end || !next_varint(at, end, &tag))
		return false;
	field->number = (uint32_t)(tag >> 3);
	field->bytes = NULL;
	if ((tag & 7) == 0)
		return next_varint(at, end, &field->value);
	if ((tag & 7) == 1) {
		memcpy(&field->value, *at, 8);
		*at += 8;
		return *at <= end;
	}
	if ((tag & 7) != 2 || !next_varint(at, end, &field->value) || field->value > (uint64_t)(end - *at))
		return false;
	field->bytes = *at;
	*at += field->value;
	return true;
}

#endif
