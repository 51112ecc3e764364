// SPDX-License-Identifier: GPL-2.0-or-later
/* The grammar of the symbol list. */
#include "probe/symbol_list.h"

#include "base/log.h"
#include "base/user_file.h"
#include "probe/preset.h"
#include "target/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_LEN_MAX 4096
#define LINE_CNT_MAX 100000
#define TYPE_IDX_MAX UINT16_MAX /* records name the line that makes the interval in 16 bits */
#define BLANKS       " \t"

enum option { OPTION_NAME, OPTION_KEY, OPTION_OBJECT, OPTION_TASK, OPTION_QUEUE, OPTION_TYPE, OPTION_CNT };

#define OPTION_BIT(option) (1u << (option))

static const char *const option_names[OPTION_CNT] = {"name", "key", "object", "task", "queue", "type"};

/* What a role takes beyond name=, and the role without which it tells nothing. */
struct role_rule {
	const char *name;
	uint8_t required, defaulted; /* options, by OPTION_BIT(); arg0 is the default */
	bool is_call;                /* lasts from an entry to an exit, which a marker does not have */
	enum probe_role counterpart; /* PROBE_ROLE_CNT: none */
	uint8_t optional;            /* options without a default */
};

static const struct role_rule rules[PROBE_ROLE_CNT] = {
	[PROBE_INTERVAL] = {"interval", 0, 0, true, PROBE_ROLE_CNT, OPTION_BIT(OPTION_TYPE)},
	[PROBE_BEGIN] = {"begin", OPTION_BIT(OPTION_KEY), 0, false, PROBE_END, OPTION_BIT(OPTION_TYPE)},
	[PROBE_END] = {"end", OPTION_BIT(OPTION_KEY), 0, false, PROBE_BEGIN, 0},
	[PROBE_WORK] = {"work", OPTION_BIT(OPTION_KEY), 0, false, PROBE_BEGIN, 0},
	[PROBE_ACQUIRE] = {"acquire", 0, OPTION_BIT(OPTION_OBJECT), false, PROBE_ROLE_CNT, 0},
	[PROBE_RELEASE] = {"release", 0, OPTION_BIT(OPTION_OBJECT), false, PROBE_ACQUIRE, 0},
	[PROBE_ENQUEUE] = {"enqueue", OPTION_BIT(OPTION_TASK), OPTION_BIT(OPTION_QUEUE), false, PROBE_DEQUEUE, 0},
	[PROBE_DEQUEUE] = {"dequeue", OPTION_BIT(OPTION_TASK), OPTION_BIT(OPTION_QUEUE), false, PROBE_ENQUEUE, 0},
	[PROBE_FUNCTION] = {"function", 0, 0, true, PROBE_ROLE_CNT, 0},
};

#define SYMBOL_MALFORMED (-1)

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
	struct probe_expr expr[OPTION_CNT];
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

/* enum probe_symbol_form, or SYMBOL_MALFORMED. */
static int usdt_form(const char *symbol)
{
	const char *provider = symbol + strlen("usdt:"), *name = strchr(provider, ':');

	if (!name || name == provider || !name[1])
		return SYMBOL_MALFORMED;
	for (const char *c = provider; *c; c++)
		if (!is_plain_char(*c) && !strchr("-*?", *c) && c != name)
			return SYMBOL_MALFORMED;
	return PROBE_SYMBOL_USDT;
}

/* In a C++ name `*` also makes a pointer, within arguments, and an operator. */
static int cplusplus_form(const char *symbol)
{
	int depth = 0;

	if ((*symbol == '(' && !strchr(symbol, ')')) || !is_bracketed_well(symbol))
		return SYMBOL_MALFORMED;
	if (strstr(symbol, "operator"))
		return PROBE_SYMBOL_CPLUSPLUS;
	for (const char *c = symbol; *c; c++) {
		depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
		if (!depth && (*c == '*' || *c == '?'))
			return PROBE_SYMBOL_CPLUSPLUS_GLOB;
	}
	return PROBE_SYMBOL_CPLUSPLUS;
}

static int symbol_form(const char *symbol)
{
	bool glob = false;

	uint64_t addr;

	if (!strncmp(symbol, "usdt:", 5))
		return usdt_form(symbol);
	if (*symbol == '+')
		return probe_symbol_address(symbol, &addr) ? PROBE_SYMBOL_ADDRESS : SYMBOL_MALFORMED;
	if (strstr(symbol, "::") || strpbrk(symbol, "(<~") || !strncmp(symbol, "operator ", 9))
		return cplusplus_form(symbol);
	if (!is_bracketed_well(symbol) || isdigit((unsigned char)*symbol))
		return SYMBOL_MALFORMED;
	for (const char *c = symbol; *c; c++) {
		if (strchr("*?[]", *c) || (glob && strchr("!-^", *c)))
			glob = true;
		else if (!is_plain_char(*c))
			return SYMBOL_MALFORMED;
	}
	return glob ? PROBE_SYMBOL_GLOB : PROBE_SYMBOL_PLAIN;
}

static int parse_role(const struct parser *parser, const char *word, enum probe_role *role)
{
	struct nearest nearest;

	nearest_init(&nearest, word, 1);
	for (size_t i = 0; i < PROBE_ROLE_CNT; i++) {
		if (!strcmp(word, rules[i].name)) {
			*role = i;
			return 0;
		}
		nearest_offer(&nearest, rules[i].name);
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
		return refuse(parser, "unknown option '%.64s=': it is one of name, key, object, task, queue, type",
			      word);
	if (words->options[option])
		return refuse(parser, "option '%s=' is given twice", word);
	if (!*value)
		return refuse(parser, "option '%s=' has no value", word);
	if (option == OPTION_TYPE && !probe_type_parse(value, &words->expr[option]))
		return refuse(parser,
			      "malformed expression '%.64s' in type=: it is one of arg0…arg5, *(argN+OFF), "
			      "*(argN+OFF):4, or str() of one that points to a text",
			      value);
	if (option != OPTION_NAME && option != OPTION_TYPE && !probe_expr_parse(value, &words->expr[option]))
		return refuse(parser,
			      "malformed expression '%.64s' in %s=: it is one of arg0…arg5, retval, tid, *(argN+OFF), "
			      "*(argN+OFF):4, or, at +0xADDRESS, %%REGISTER and *(%%REGISTER+OFF)",
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
			      "malformed symbol '%.64s': it is a function's name, a glob, a C++ name, "
			      "usdt:PROVIDER:NAME or +0xADDRESS",
			      words->symbol);
	return 0;
}

/* An address at which a register is read is one instruction; any other is a function. */
static int words_form(const struct words *words)
{
	int form = symbol_form(words->symbol);

	for (size_t i = 0; i < OPTION_CNT; i++)
		if (words->options[i] && words->expr[i].is_reg && form == PROBE_SYMBOL_ADDRESS)
			return PROBE_SYMBOL_PLACE;
	return form;
}

/* An expression that no call of this role can have. */
static int check_expression(const struct parser *parser, const struct words *words, const struct role_rule *rule,
			    enum option option)
{
	uint8_t kind = words->expr[option].kind;
	const char *name = option_names[option];

	if (kind == PROBE_EXPR_TID && option != OPTION_KEY)
		return refuse(parser, "%s=tid says nothing: a thread is no %s; tid is for key=", name, name);
	if (kind == PROBE_EXPR_RETVAL && (option == OPTION_OBJECT || option == OPTION_QUEUE || option == OPTION_TYPE))
		return refuse(parser, "%s=retval comes too late for role '%s': it is wanted at the entry", name,
			      rule->name);
	if (kind == PROBE_EXPR_RETVAL && probe_form_is_place(words_form(words)))
		return refuse(parser, "%s=retval: a marker is no function and returns nothing", name);
	if (words->expr[option].is_reg && words_form(words) != PROBE_SYMBOL_PLACE)
		return refuse(parser, "%s= names a register, which only an instruction at +0xADDRESS has", name);
	return 0;
}

/* Does the line say what its role wants to know, and nothing else?  Fills in what it need not say. */
static int check_role(const struct parser *parser, struct words *words, enum probe_role role, const probe_lines *lines)
{
	const struct role_rule *rule = &rules[role];
	int err = 0;

	if ((role == PROBE_INTERVAL || role == PROBE_BEGIN) && lines->cnt > TYPE_IDX_MAX)
		return refuse(parser, "lines of role '%s' belong among the first %d", rule->name, TYPE_IDX_MAX + 1);
	if (rule->is_call && probe_form_is_place(words_form(words)))
		return refuse(parser, "role '%s' lasts from entry to exit, and a marker is one place: %s", rule->name,
			      role == PROBE_INTERVAL ? "use one marker with begin and one with end" : "use a function");
	for (enum option option = OPTION_KEY; option < OPTION_CNT && !err; option++) {
		bool given = words->options[option];

		if (given && !((rule->required | rule->defaulted | rule->optional) & OPTION_BIT(option)))
			return refuse(parser, "role '%s' has no use for %s=", rule->name, option_names[option]);
		if (!given && rule->required & OPTION_BIT(option))
			return refuse(parser, "role '%s' needs %s=EXPR, as in %s=arg0", rule->name,
				      option_names[option], option_names[option]);
		if (!given && rule->defaulted & OPTION_BIT(option))
			words->expr[option] = (struct probe_expr){.kind = PROBE_EXPR_ARG, .width = 8};
		if (given)
			err = check_expression(parser, words, rule, option);
	}
	return err;
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
	struct probe_line line = {
		.line_no = parser->line_no,
		.role = role,
		.form = words_form(words),
		.named = words->options[OPTION_NAME],
		.key = words->expr[OPTION_KEY],
		.object = words->expr[OPTION_OBJECT],
		.task = words->expr[OPTION_TASK],
		.queue = words->expr[OPTION_QUEUE],
		.type = words->expr[OPTION_TYPE],
	};

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
		err = check_role(parser, &words, role, lines);
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

/* A role that tells nothing without another one. */
static int check_counterparts(const char *path, const probe_lines *lines)
{
	bool there[PROBE_ROLE_CNT] = {0};

	for (size_t i = 0; i < lines->cnt; i++)
		there[lines->items[i].role] = true;
	for (size_t i = 0; i < lines->cnt; i++) {
		const struct probe_line *line = &lines->items[i];
		const struct role_rule *rule = &rules[line->role];
		struct parser parser = {.path = path, .line_no = line->line_no};

		if (rule->counterpart != PROBE_ROLE_CNT && !there[rule->counterpart])
			return refuse(&parser, "role '%s' tells nothing without a line of role '%s' in the same list",
				      rule->name, rules[rule->counterpart].name);
	}
	return 0;
}

int symbol_list_read(const char *list, probe_lines *lines)
{
	char path[PATH_MAX];
	FILE *file;
	int err = preset_path(list, path, sizeof(path));

	if (err)
		return err;
	file = user_file_stream(path);
	if (!file) {
		err = -errno;
		log_error("cannot open symbol list %s: %s", list, strerror(-err));
		return err;
	}
	err = read_lines(list, file, lines);
	fclose(file);
	if (!err)
		err = check_counterparts(list, lines);
	if (err)
		symbol_list_free(lines);
	return err;
}

int symbol_list_add(const char *place, const char *text, probe_lines *lines)
{
	struct parser parser = {.path = place, .line_no = lines->cnt + 1};
	char line[LINE_LEN_MAX + 1];

	if (strlen(text) > LINE_LEN_MAX)
		return refuse(&parser, "the line is longer than %d bytes", LINE_LEN_MAX);
	strcpy(line, text);
	return parse_line(&parser, line, lines);
}

void symbol_list_free(probe_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		probe_line_free(&lines->items[i]);
	vec_free(lines);
}

const char *probe_role_name(enum probe_role role)
{
	return rules[role].name;
}

enum probe_role probe_role_counterpart(enum probe_role role)
{
	return rules[role].counterpart;
}

bool probe_line_needs_exit(const struct probe_line *line)
{
	if (probe_form_is_place(line->form))
		return false;
	return rules[line->role].is_call || line->role == PROBE_ACQUIRE || line->role == PROBE_DEQUEUE ||
	       line->key.kind == PROBE_EXPR_RETVAL || line->task.kind == PROBE_EXPR_RETVAL;
}

uint8_t probe_line_args(const struct probe_line *line)
{
	const struct probe_expr *exprs[] = {&line->key, &line->object, &line->task, &line->queue, &line->type};
	uint8_t args = 0;

	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++)
		if ((exprs[i]->kind == PROBE_EXPR_ARG || exprs[i]->kind == PROBE_EXPR_MEMORY) && !exprs[i]->is_reg)
			args |= 1u << exprs[i]->arg;
	return args;
}

bool probe_lines_have_intervals(const probe_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		if (lines->items[i].role == PROBE_INTERVAL || lines->items[i].role == PROBE_BEGIN)
			return true;
	return false;
}

bool probe_lines_have_types(const probe_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		if (lines->items[i].type.kind != PROBE_EXPR_NONE)
			return true;
	return false;
}

bool probe_lines_only_time(const probe_lines *lines)
{
	for (size_t i = 0; i < lines->cnt; i++)
		if (lines->items[i].role != PROBE_FUNCTION)
			return false;
	return true;
}
