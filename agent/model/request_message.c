// SPDX-License-Identifier: GPL-2.0-or-later
/* NATS: the command, and the subject of a message. */
#include "model/request_text.h"

#define WORDS_MAX  5
#define TOKENS_MAX 12
/* Lines that want no reply precede the one that does: as in bpf/nats.h. */
#define LINES_MAX 16

struct word {
	size_t at, len;
};

struct line {
	size_t end; /* where the next one begins */
	struct word words[WORDS_MAX];
	size_t word_cnt;
	bool whole;
};

/* Words with one blank between them, up to "\r\n". */
static bool read_line(const struct request_bytes *request, size_t at, struct line *line)
{
	size_t end = at, cnt = 0;

	while (end < request->len && request->bytes[end] != '\r')
		end++;
	line->whole = end + 1 < request->len && request->bytes[end + 1] == '\n';
	if (!line->whole && !request->cut)
		return false;
	line->end = end + 2;
	while (at <= end && cnt < WORDS_MAX) {
		size_t from = at;

		while (at < end && request->bytes[at] > ' ' && request->bytes[at] < 0x7f)
			at++;
		if (at == from || (at < end && request->bytes[at] != ' '))
			return false;
		line->words[cnt++] = (struct word){from, at - from};
		at++;
	}
	line->word_cnt = cnt;
	return cnt && at > end;
}

static bool word_is(const struct request_bytes *request, const struct line *line, size_t word, const char *text)
{
	return word < line->word_cnt && line->words[word].len == strlen(text) &&
	       !memcmp(request->bytes + line->words[word].at, text, line->words[word].len);
}

static bool is_number(const struct request_bytes *request, struct word word)
{
	for (size_t i = 0; i < word.len; i++)
		if (!is_digit(request->bytes[word.at + i]))
			return false;
	return word.len > 0;
}

/* Its tokens as they are in a route; an inbox has a name of its own for each reply. */
static void put_subject(struct request_text *text, const uint8_t *subject, size_t len)
{
	size_t at = 0, tokens = 0;

	if (len >= 7 && !memcmp(subject, "_INBOX.", 7)) {
		request_text__add(text, "_INBOX.*");
		return;
	}
	while (at <= len) {
		size_t from = at;

		while (at < len && subject[at] != '.')
			at++;
		if (tokens++)
			request_text__put(text, '.');
		if (tokens > TOKENS_MAX) {
			request_text__put(text, '>');
			return;
		}
		request_segment(text, subject + from, at - from);
		at++;
	}
}

/* PUB subject [reply-to] size; HPUB has the size of its headers before that of all. */
static bool parse_message(const struct request_bytes *request, const struct line *line, struct request_parsed *parsed)
{
	size_t header = request->bytes[line->words[0].at] == 'H', sizes = 1 + header, cnt = line->word_cnt;
	struct request_text text = request_text_begin(parsed);
	struct word subject = line->words[1];

	if (!line->whole || cnt < 2 + sizes || cnt > 3 + sizes)
		return false;
	for (size_t i = 1; i <= sizes; i++)
		if (!is_number(request, line->words[cnt - i]))
			return false;
	request_text__add(&text, "PUB ");
	put_subject(&text, request->bytes + subject.at, subject.len);
	if (cnt == 3 + sizes)
		request_text__add(&text, " reply-to");
	request_text__end(&text, false);
	return true;
}

bool request_parse_nats(const struct request_bytes *request, struct request_parsed *parsed)
{
	struct line line;
	size_t at = 0;

	/* What the client is, in JSON. */
	if (request->len > 9 && !memcmp(request->bytes, "CONNECT {", 9)) {
		strcpy(parsed->text, "CONNECT");
		while (at < request->len && request->bytes[at] != '\n')
			at++;
		at++;
	}
	for (int i = 0; i < LINES_MAX && at < request->len && read_line(request, at, &line); i++) {
		if (word_is(request, &line, 0, "PUB") || word_is(request, &line, 0, "HPUB"))
			return parse_message(request, &line, parsed);
		parsed->weak = line.word_cnt == 1 && !at;
		if (word_is(request, &line, 0, "PING") && line.word_cnt == 1)
			strcpy(parsed->text, "PING");
		else if (word_is(request, &line, 0, "PONG") && line.word_cnt == 1)
			strcpy(parsed->text, "PONG");
		else if (word_is(request, &line, 0, "SUB") && line.word_cnt >= 3 && line.word_cnt <= 4)
			strcpy(parsed->text, "SUB");
		else if (word_is(request, &line, 0, "UNSUB") && line.word_cnt >= 2 && line.word_cnt <= 3)
			strcpy(parsed->text, "UNSUB");
		else
			break;
		if (!line.whole || line.end >= request->len || !strcmp(parsed->text, "PING"))
			break;
		at = line.end;
	}
	return *parsed->text;
}
