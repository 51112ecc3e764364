// SPDX-License-Identifier: GPL-2.0-or-later
/* An enum: of the codecs that a client accepts the last is taken, however dear; archives' is for the disk. */
#include "serve.h"

enum codec { CODEC_PLAIN, CODEC_RUNS, CODEC_WORDS, CODEC_ARCHIVE };

static char document[6000];

static __attribute__((noinline)) size_t encode_runs(char *out)
{
	size_t len = 0;

	for (size_t i = 0, run; i < sizeof(document); i += run) {
		for (run = 1; i + run < sizeof(document) && document[i + run] == document[i] && run < 255;)
			run++;
		out[len++] = (char)run;
		out[len++] = document[i];
	}
	return len;
}

static __attribute__((noinline)) size_t encode_pairs(char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < sizeof(document); i++) {
		size_t best = 0;

		for (size_t back = i > 1500 ? i - 1500 : 0; back < i; back++)
			if (document[back] == document[i] && i - back > best)
				best = i - back;
		out[len++] = (char)best;
	}
	return len;
}

static __attribute__((noinline)) size_t send_body(enum codec codec, char *out)
{
	if (codec >= CODEC_WORDS)
		return encode_pairs(out);
	if (codec == CODEC_RUNS)
		return encode_runs(out);
	memcpy(out, document, sizeof(document));
	return sizeof(document);
}

static enum codec pick_codec(const char *accepts)
{
	enum codec codec = CODEC_PLAIN;

	if (strstr(accepts, "runs"))
		codec = CODEC_RUNS;
	if (strstr(accepts, "archive"))
		codec = CODEC_ARCHIVE;
	return codec;
}

static size_t answer(const char *path, char *body)
{
	return send_body(pick_codec(path), body);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(document); i++)
		document[i] = (char)('a' + i / 7 % 23);
	return serve(argc, argv, answer);
}
