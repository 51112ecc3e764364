// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/cxx_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Does the word stand at text[at], and is it a word there? */
static bool word_at(const char *text, size_t at, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(text + at, word, len) && !is_name_char(text[at + len]) && (!at || !is_name_char(text[at - 1]));
}

/* The length of "operator" and the signs that belong to it, which are no brackets. */
static size_t operator_len(const char *text)
{
	size_t len = strlen("operator");

	if (!strncmp(text + len, "()", 2) || !strncmp(text + len, "[]", 2))
		return len + 2;
	return len + strspn(text + len, "<>=!+-*/%^&|~,");
}

/* The length of a group of round brackets; up to the end of the text where it is never closed. */
static size_t group_len(const char *text)
{
	size_t len = 0;
	int depth = 0;

	do {
		depth += (text[len] == '(') - (text[len] == ')');
	} while (text[len] && (len++, depth));
	return len;
}

/* After a group that ends here, does the name go on: f(int)::{lambda()#1}, f() const::x?  The length up to "::". */
static bool scope_follows(const char *text, size_t *len)
{
	*len = strspn(text, " ");
	if (!strncmp(text + *len, "const", 5))
		*len += 5;
	return !strncmp(text + *len, "::", 2);
}

/* Where the name without a return type begins, and where its arguments do (the end, when it has none). */
static void split(const char *text, size_t *begin, size_t *args)
{
	static const char anonymous[] = "(anonymous namespace)";
	bool in_operator = false;
	size_t at = 0;
	int depth = 0;

	*begin = 0;
	while (text[at]) {
		if (text[at] == 'o' && word_at(text, at, "operator") && !depth) {
			at += operator_len(text + at);
			in_operator = true; /* operator unsigned long: blanks are part of it */
		} else if (text[at] == '(' && !depth) {
			size_t len = group_len(text + at), more = 0;

			if (!scope_follows(text + at + len, &more)) {
				if (strncmp(text + at, anonymous, strlen(anonymous)))
					break;
				more = 0;
			}
			at += len + more;
		} else {
			depth += (text[at] == '<' || text[at] == '{') - (text[at] == '>' || text[at] == '}');
			if (text[at] == ' ' && !depth && !in_operator) {
				if (text[at + 1] == '[') /* [clone .x] without arguments */
					break;
				*begin = at + 1;
			}
			at++;
		}
	}
	*args = at;
}

/* Copies text without blanks and ABI tags; returns the end. */
static char *squeeze(char *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!strncmp(text + i, "[abi:", 5)) {
			const char *end = strchr(text + i, ']');

			if (end && (size_t)(end - text) < len) {
				i = end - text;
				continue;
			}
		}
		if (text[i] != ' ' && text[i] != '\t')
			*to++ = text[i];
	}
	return to;
}

int cxx_name_make(const char *text, struct cxx_name *name)
{
	size_t begin, args, len = strlen(text), key_len;
	char *end;

	name->full = malloc(len + 1);
	if (!name->full)
		return -ENOMEM;
	split(text, &begin, &args);
	if (begin > args)
		begin = 0;
	end = squeeze(name->full, text + begin, args - begin);
	key_len = end - name->full;
	name->has_args = text[args] == '(';
	end = squeeze(end, text + args, len - args);
	*end = '\0';
	name->key = strndup(name->full, strstr(text + args, "[clone ") ? len : key_len);
	if (name->key)
		return 0;
	cxx_name_free(name);
	return -ENOMEM;
}

void cxx_name_free(struct cxx_name *name)
{
	free(name->key);
	free(name->full);
	name->key = name->full = NULL;
}
