// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: after a loss all segments of a window are sent again, also those that have arrived. */
#include "serve.h"

enum { WINDOW = 1024 };

struct segment {
	int arrived;
	unsigned sent;
	unsigned char bytes[256];
};

struct stream {
	struct segment segments[WINDOW];
	unsigned first, next;
};

static struct stream streams[2];

static __attribute__((noinline)) uint32_t seal(const unsigned char *bytes, size_t len)
{
	uint32_t sum = 17;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

static __attribute__((noinline)) uint32_t send_again(struct stream *stream)
{
	uint32_t sum = 0;

	for (unsigned at = stream->first; at != stream->next; at++) {
		struct segment *segment = &stream->segments[at % WINDOW];

		for (int copy = 0; copy < 8; copy++)
			sum ^= seal(segment->bytes, sizeof(segment->bytes) - (size_t)copy);
		segment->sent++;
		if (!segment->arrived)
			sum++;
	}
	return sum;
}

static size_t answer(const char *path, char *body)
{
	struct stream *stream = &streams[!strncmp(path, "/acked", 6)];

	return (size_t)sprintf(body, "%08x\n", send_again(stream));
}

int main(int argc, char **argv)
{
	streams[0].next = 12;
	streams[1].next = 1000;
	for (int i = 12; i < 1000; i++)
		streams[1].segments[i].arrived = 1;
	return serve(argc, argv, answer);
}
