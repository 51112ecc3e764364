// SPDX-License-Identifier: GPL-2.0-or-later
/* --interactive: the user chooses which function is opened next. */
#include "base/log.h"
#include "base/utf8.h"
#include "rounds/rounds_internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_BYTES 1024 /* of stdin, looked at in one go */

/* A function that can be chosen: only variances can be broken down further, and of some nothing was measured. */
static const struct factor_line *choice(const struct rounds *rounds, size_t number)
{
	const struct factor_report *report = rounds->analysis.findings.report.factors;
	const struct factor_line *line;

	if (!number || number > report->line_cnt)
		return NULL;
	line = &report->lines[number - 1];
	return line->functions[1] || isnan(line->contribution) ? NULL : line;
}

void rounds_ask(const struct rounds *rounds)
{
	log_progress_end();
	fprintf(stderr, "Which function is to be opened next?\n");
	for (size_t number = 1; number <= rounds->analysis.findings.report.factors->line_cnt; number++) {
		const struct factor_line *line = choice(rounds, number);

		char *name = line ? utf8_printable(line->functions[0], utf8_locale()) : NULL;

		if (line)
			fprintf(stderr, "%4zu  %3.0f %%  %s%s\n", number, line->contribution * 100, name ? name : "?",
				line->body[0] ? " itself" : "");
		free(name);
	}
	fprintf(stderr, "A number, u and a number to take out one that you understand, or Enter to leave the choice "
			"to whylate: ");
}

/* Takes what has come on stdin: true when a line is complete.  After the last one nobody is asked any more. */
static bool read_answer(struct rounds *rounds)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct round_answer *answer = &rounds->answer;
	char c;

	/* Whatever comes, the rings are looked at again soon. */
	for (int i = 0; i < ANSWER_BYTES && poll(&input, 1, 0) > 0; i++) {
		ssize_t got = read(STDIN_FILENO, &c, 1);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			return false;
		if (got <= 0) {
			rounds->options.interactive = false;
			return true;
		}
		if (c == '\n')
			return true;
		if (answer->len < sizeof(answer->text) - 1)
			answer->text[answer->len] = isprint((unsigned char)c) ? c : ' ';
		answer->len++;
	}
	return false;
}

/* The line of that number is understood. */
static void take_out(struct rounds *rounds, const struct factor_line *line)
{
	char name[1024];

	snprintf(name, sizeof(name), "%s%s", line->functions[0], line->body[0] ? FACTOR_ITSELF : "");
	if (factor_names_add(rounds->options.understood, name))
		log_warn("out of memory: %s stays in", name);
	else
		rounds->again = true;
}

bool rounds_take_answer(struct rounds *rounds)
{
	const struct factor_line *line = NULL;
	struct round_answer answer;
	bool is_cut, is_empty;
	const char *text;
	char *end;

	if (!read_answer(rounds))
		return false;
	answer = rounds->answer;
	rounds->answer = (struct round_answer){0};
	rounds->chosen = FACTOR_NONE;
	text = answer.text + strspn(answer.text, " ");
	is_cut = answer.len >= sizeof(answer.text);
	is_empty = !*text && !is_cut;
	if (!is_empty) {
		bool understood = *text == 'u';
		unsigned long number = strtoul(text + understood, &end, 10);

		line = end[strspn(end, " ")] || is_cut ? NULL : choice(rounds, number);
		if (line && understood) {
			take_out(rounds, line);
			return false;
		}
		if (line)
			rounds->chosen = line->symbols[0];
		else
			fprintf(stderr, "There is no function of number %s%s\n", text, is_cut ? "…" : "");
	}
	if (!rounds->options.interactive)
		log_info("nobody answers any more: the choice is whylate's");
	else if (!line && !is_empty)
		rounds_ask(rounds);
	return line || is_empty || !rounds->options.interactive;
}
