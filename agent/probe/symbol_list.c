// SPDX-License-Identifier: GPL-2.0-only
/* The grammar of the symbol list: all of it is understood; what this version does not record yet is refused by name. */
#include "probe/symbol_list.h"

#include "base/log.h"
#include "target/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_LEN_MAX 4096
#define LINE_CNT_MAX 100000
#define BLANKS       " \t"

static const char *const role_names[PROBE_ROLE_CNT] = {
	[PROBE_INTERVAL] = "interval", [PROBE_BEGIN] = "begin",     [PROBE_END] = "end",
	[PROBE_WORK] = "work",         [PROBE_ACQUIRE] = "acquire", [PROBE_RELEASE] = "release",
	[PROBE_ENQUEUE] = "enqueue",   [PROBE_DEQUEUE] = "dequeue", [PROBE_FUNCTION] = "function",
};

static const char *const option_names[] = {"name", "key", "object", "task", "queue"};
#define OPTION_NAME 0
#define OPTION_CNT  (sizeof(option_names) / sizeof(option_names[0]))

enum symbol_form { SYMBOL_PLAIN, SYMBOL_GLOB, SYMBOL_CPLUSPLUS, SYMBOL_USDT, SYMBOL_MALFORMED };

struct parser {
	const char *path;
	uint32_t line_no;
};

/* Words of one line, in place. */
struct words {
	char *role;
	char *module; /* NULL when none is given */
	char *symbol;
	char *options[OPTION_CNT];
};

static int refuse(const struct parser *parser, const char *fmt, ...) WL_PRINTF(2, 3);

static int refuse(const struct parser *parser, const char *fmt, ...)
{
	char why[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	log_error("%s:%u: %s", parser->path, parser->line_no, why);
	return -EINVAL;
}

/* The length of `key` when text is an option, KEY=…; 0 otherwise.  No C++ name has that after a blank. */
static size_t option_key_len(const char *text)
{
	size_t len = 0;

	while (islower((unsigned char)text[len]) || text[len] == '_')
		len++;
	return text[len] == '=' ? len : 0;
}

/* Cuts the next word off; NULL at the end of the line or before a comment. */
static char *next_word(char **cursor)
{
	char *word = *cursor + strspn(*cursor, BLANKS);

	if (!*word || *word == '#')
		return NULL;
	*cursor = word + strcspn(word, BLANKS);
	if (**cursor)
		*(*cursor)++ = '\0';
	return word;
}

/* The symbol may hold blanks (C++): it runs up to the first option, a comment or the end of the line. */
static char *next_symbol(char **cursor)
{
	char *symbol = *cursor + strspn(*cursor, BLANKS), *end = symbol;

	if (!*symbol || *symbol == '#' || option_key_len(symbol))
		return NULL;
	for (;;) {
		char *blank = end + strcspn(end, BLANKS), *next = blank + strspn(blank, BLANKS);

		if (!*next || *next == '#' || option_key_len(next)) {
			*cursor = next;
			*blank = '\0';
			return symbol;
		}
		end = next;
	}
}

/* MODULE:SYMBOL, where "::" belongs to the symbol and ":::" is both; usdt: is no module. */
static void split_module(char *symbol, struct words *words)
{
	char *colon = symbol + strcspn(symbol, ":(<");
	size_t run = strspn(colon, ":");

	words->symbol = symbol;
	if ((run == 1 || run == 3) && strncmp(symbol, "usdt:", 5)) {
		*colon = '\0';
		words->module = symbol;
		words->symbol = colon + 1;
	}
}

static bool is_plain_char(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '.' || c == '$' || c >= 0x80;
}

static bool is_bracketed_well(const char *symbol)
{
	int round = 0, square = 0;

	for (; *symbol && round >= 0 && square >= 0; symbol++) {
		round += (*symbol == '(') - (*symbol == ')');
		square += (*symbol == '[') - (*symbol == ']');
	}
	return !round && !square;
}

static enum symbol_form usdt_form(const char *symbol)
{
	const char *provider = symbol + strlen("usdt:"), *name = strchr(provider, ':');

	if (!name || name == provider || !name[1])
		return SYMBOL_MALFORMED;
	for (const char *c = provider; *c; c++)
		if (!is_plain_char(*c) && !strchr("-*?", *c) && c != name)
			return SYMBOL_MALFORMED;
	return SYMBOL_USDT;
}

static enum symbol_form symbol_form(const char *symbol)
{
	bool glob = false;

	if (!strncmp(symbol, "usdt:", 5))
		return usdt_form(symbol);
	if (strstr(symbol, "::") || strpbrk(symbol, "(<~") || !strncmp(symbol, "operator ", 9)) {
		if (*symbol == '(' && !strchr(symbol, ')'))
			return SYMBOL_MALFORMED;
		return is_bracketed_well(symbol) ? SYMBOL_CPLUSPLUS : SYMBOL_MALFORMED;
	}
	if (!is_bracketed_well(symbol) || isdigit((unsigned char)*symbol))
		return SYMBOL_MALFORMED;
	for (const char *c = symbol; *c; c++) {
		if (strchr("*?[]", *c) || (glob && strchr("!-^", *c)))
			glob = true;
		else if (!is_plain_char(*c))
			return SYMBOL_MALFORMED;
	}
	return glob ? SYMBOL_GLOB : SYMBOL_PLAIN;
}

/* EXPR: arg0…arg5, retval, tid, *(argN+OFF), *(argN+OFF):4 */
static bool is_expression(const char *text)
{
	bool dereferences = !strncmp(text, "*(", 2);
	unsigned long off;
	char *end;

	if (!strcmp(text, "retval") || !strcmp(text, "tid"))
		return true;
	if (dereferences)
		text += 2;
	if (strncmp(text, "arg", 3) || text[3] < '0' || text[3] > '5')
		return false;
	text += 4;
	if (!dereferences)
		return !*text;
	if (text[0] != '+' || !isdigit((unsigned char)text[1]))
		return false;
	errno = 0;
	off = strtoul(text + 1, &end, 0);
	return !errno && off <= INT32_MAX && (!strcmp(end, ")") || !strcmp(end, "):4"));
}

static int parse_role(const struct parser *parser, const char *word, enum probe_role *role)
{
	struct nearest nearest;

	nearest_init(&nearest, word, 1);
	for (size_t i = 0; i < PROBE_ROLE_CNT; i++) {
		if (!strcmp(word, role_names[i])) {
			*role = i;
			return 0;
		}
		nearest_offer(&nearest, role_names[i]);
	}
	if (nearest.cnt)
		return refuse(parser, "unknown role '%.64s': did you mean %s?", word, nearest.names[0]);
	return refuse(
		parser,
		"unknown role '%.64s': it is one of interval, begin, end, work, acquire, release, enqueue, dequeue, "
		"function",
		word);
}

static int parse_option(const struct parser *parser, char *word, struct words *words)
{
	size_t key_len = option_key_len(word), option;
	char *value = word + key_len + 1;

	if (!key_len)
		return refuse(parser, "unexpected '%.64s' after the symbol: options are like name=TEXT or key=EXPR",
			      word);
	word[key_len] = '\0';
	for (option = 0; option < OPTION_CNT && strcmp(word, option_names[option]);)
		option++;
	if (option == OPTION_CNT)
		return refuse(parser, "unknown option '%.64s=': it is one of name, key, object, task, queue", word);
	if (words->options[option])
		return refuse(parser, "option '%s=' is given twice", word);
	if (!*value)
		return refuse(parser, "option '%s=' has no value", word);
	if (option != OPTION_NAME && !is_expression(value))
		return refuse(parser,
			      "malformed expression '%.64s' in %s=: it is one of arg0…arg5, retval, tid, *(argN+OFF), "
			      "*(argN+OFF):4",
			      value, word);
	words->options[option] = value;
	return 0;
}

static int check_symbol(const struct parser *parser, const struct words *words)
{
	if (words->module && !*words->module)
		return refuse(parser, "there is no module before ':' in ':%.64s'", words->symbol);
	if (!*words->symbol)
		return refuse(parser, "there is no symbol after '%.64s:'", words->module ? words->module : words->role);
	if (symbol_form(words->symbol) == SYMBOL_MALFORMED)
		return refuse(parser,
			      "malformed symbol '%.64s': it is a function's name, a glob, a C++ name or "
			      "usdt:PROVIDER:NAME",
			      words->symbol);
	return 0;
}

/* What the grammar has and this version does not record. */
static int check_recorded(const struct parser *parser, const struct words *words, enum probe_role role)
{
	static const char only[] = "this version records only role 'interval' with plain function names";

	if (role != PROBE_INTERVAL)
		return refuse(parser, "role '%s' is not recorded yet: %s", role_names[role], only);
	for (size_t i = 0; i < OPTION_CNT; i++)
		if (i != OPTION_NAME && words->options[i])
			return refuse(parser, "option '%s=' is not recorded yet: %s and name=", option_names[i], only);
	switch (symbol_form(words->symbol)) {
	case SYMBOL_GLOB:
		return refuse(parser, "'%.64s' is a glob, which is not recorded yet: %s", words->symbol, only);
	case SYMBOL_CPLUSPLUS:
		return refuse(parser, "'%.64s' is a C++ name, which is not recorded yet: %s (the mangled one will do)",
			      words->symbol, only);
	case SYMBOL_USDT:
		return refuse(parser, "'%.64s' is a USDT marker, which is not recorded yet: %s", words->symbol, only);
	default:
		return 0;
	}
}

static void probe_line_free(struct probe_line *line)
{
	free(line->module);
	free(line->symbol);
	free(line->name);
}

static int append(const struct parser *parser, const struct words *words, enum probe_role role, probe_lines *lines)
{
	const char *name = words->options[OPTION_NAME] ? words->options[OPTION_NAME] : words->symbol;
	struct probe_line line = {.line_no = parser->line_no, .role = role};

	line.symbol = strdup(words->symbol);
	line.name = strdup(name);
	if (words->module)
		line.module = strdup(words->module);
	if (!line.symbol || !line.name || (words->module && !line.module) || vec_push(lines, line)) {
		probe_line_free(&line);
		log_error("%s: out of memory", parser->path);
		return -ENOMEM;
	}
	return 0;
}

static int parse_line(const struct parser *parser, char *text, probe_lines *lines)
{
	struct words words = {0};
	char *cursor = text, *word;
	enum probe_role role = PROBE_ROLE_CNT;
	int err;

	words.role = next_word(&cursor);
	if (!words.role)
		return 0;
	err = parse_role(parser, words.role, &role);
	if (err)
		return err;
	word = next_symbol(&cursor);
	if (!word)
		return refuse(parser, "role '%s' has no symbol: ROLE [MODULE:]SYMBOL [name=TEXT] …", words.role);
	split_module(word, &words);
	err = check_symbol(parser, &words);
	while (!err && (word = next_word(&cursor)))
		err = parse_option(parser, word, &words);
	if (!err)
		err = check_recorded(parser, &words, role);
	return err ? err : append(parser, &words, role, lines);
}

/* One line without its end, NUL-terminated: 1, 0 at the end of the file, or -errno after saying why. */
static int read_line(const struct parser *parser, FILE *file, char *buf)
{
	size_t len = 0;
	int c;

	while ((c = getc_unlocked(file)) != EOF && c != '\n') {
		/* One byte beyond the limit may still be the CR of a CRLF. */
		if (len > LINE_LEN_MAX)
			break;
		if (!c)
			return refuse(parser, "a NUL byte: this is no text file");
		buf[len++] = c;
	}
	if (ferror(file)) {
		int err = errno ? -errno : -EIO;

		log_error("cannot read symbol list %s: %s", parser->path, strerror(-err));
		return err;
	}
	if (c == EOF && !len)
		return 0;
	if (len && buf[len - 1] == '\r' && (c == '\n' || c == EOF))
		len--;
	if (len > LINE_LEN_MAX)
		return refuse(parser, "the line is longer than %d bytes", LINE_LEN_MAX);
	buf[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)buf[i]) && buf[i] != '\t')
			return refuse(parser, "a control character (0x%02x): this is no text file", (uint8_t)buf[i]);
	return 1;
}

static int read_lines(const char *path, FILE *file, probe_lines *lines)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct parser parser = {.path = path, .line_no = 1};
	char text[LINE_LEN_MAX + 2];
	size_t before = lines->cnt;
	int err;

	while ((err = read_line(&parser, file, text)) > 0) {
		bool marked = parser.line_no == 1 && !strncmp(text, byte_order_mark, 3);

		if (parser.line_no > LINE_CNT_MAX)
			return refuse(&parser, "more than %d lines", LINE_CNT_MAX);
		err = parse_line(&parser, text + (marked ? 3 : 0), lines);
		if (err)
			return err;
		parser.line_no++;
	}
	if (!err && lines->cnt == before) {
		log_error("symbol list %s has no probe: write one line like `interval FUNCTION`", path);
		return -EINVAL;
	}
	return err;
}

int symbol_list_read(const char *path, probe_lines *lines)
{
	FILE *file = fopen(path, "re");
	int err;

	if (!file) {
		err = -errno;
		log_error("cannot open symbol list %s: %s", path, strerror(-err));
		return err;
	}
	err = read_lines(path, file, lines);
	fclose(file);
	if (err)
		symbol_list_free(lines);
	return err;
}

void symbol_list_free(probe_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		probe_line_free(&lines->items[i]);
	vec_free(lines);
}
