// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/suggest.h"

#include "base/hash.h"
#include "base/order.h"
#include "probe/cxx_name.h"

#include <ctype.h>
#include <string.h>

#define WORDS_MAX    16
#define WORD_LEN_MAX 24

/* What a word in a name can mean; several at once. */
enum sense {
	SERVE = 1,        /* what is done to a request */
	REQUEST = 2,      /* … and what it is called */
	LOCK = 4,         /* what is locked */
	TAKE = 8,         /* … and taken */
	GIVE = 16,        /* … and given back */
	QUEUE = 32,       /* what tasks wait in */
	PUT = 64,         /* … and are put into */
	GET = 128,        /* … and taken from */
	ASIDE = 256,      /* set-up, questions, printing: not the thing itself */
	NO_REQUEST = 512, /* spoils only a request */
	VAGUE = 1024,     /* says little by itself */
};

static const struct {
	const char *word;
	unsigned senses;
} lexicon[] = {
	{"process", SERVE},
	{"handle", SERVE},
	{"dispatch", SERVE},
	{"serve", SERVE},
	{"execute", SERVE},
	{"exec", SERVE},
	{"do", SERVE | VAGUE},
	{"run", SERVE | VAGUE},
	{"call", SERVE | VAGUE},
	{"perform", SERVE | VAGUE},
	{"invoke", SERVE | VAGUE},
	{"request", REQUEST},
	{"req", REQUEST},
	{"command", REQUEST},
	{"cmd", REQUEST},
	{"query", REQUEST},
	{"message", REQUEST},
	{"msg", REQUEST},
	{"packet", REQUEST},
	{"transaction", REQUEST},
	{"txn", REQUEST},
	{"rpc", REQUEST},
	{"statement", REQUEST},
	{"stmt", REQUEST},
	{"portal", REQUEST},
	{"lock", LOCK | TAKE},
	{"mutex", LOCK},
	{"latch", LOCK},
	{"rwlock", LOCK | TAKE},
	{"sem", LOCK},
	{"semaphore", LOCK},
	{"acquire", TAKE},
	{"enter", TAKE},
	{"rdlock", LOCK | TAKE},
	{"wrlock", LOCK | TAKE},
	{"wait", TAKE | GET},
	{"unlock", LOCK | GIVE},
	{"release", GIVE},
	{"leave", GIVE},
	{"signal", GIVE},
	{"queue", QUEUE},
	{"job", QUEUE},
	{"task", QUEUE},
	{"work", QUEUE},
	{"fifo", QUEUE},
	{"enqueue", QUEUE | PUT},
	{"dequeue", QUEUE | GET},
	{"push", PUT},
	{"put", PUT},
	{"submit", PUT},
	{"post", PUT | GIVE},
	{"add", PUT},
	{"append", PUT},
	{"insert", PUT},
	{"pop", GET},
	{"get", GET | NO_REQUEST},
	{"take", GET},
	{"fetch", GET},
	{"next", GET | NO_REQUEST},
	{"init", ASIDE},
	{"initialize", ASIDE},
	{"setup", ASIDE},
	{"create", ASIDE},
	{"destroy", ASIDE},
	{"free", ASIDE},
	{"alloc", ASIDE},
	{"new", ASIDE},
	{"delete", ASIDE},
	{"set", ASIDE},
	{"is", ASIDE},
	{"has", ASIDE},
	{"parse", ASIDE},
	{"print", ASIDE},
	{"log", ASIDE},
	{"dump", ASIDE},
	{"check", ASIDE},
	{"register", ASIDE},
	{"config", ASIDE},
	{"stats", ASIDE},
	{"count", ASIDE},
	{"size", ASIDE},
	{"cmp", ASIDE},
	{"hash", ASIDE},
	{"copy", ASIDE},
	{"error", ASIDE},
	{"err", ASIDE},
	{"info", ASIDE},
	{"try", ASIDE},
	{"trylock", ASIDE},
	{"conditional", ASIDE},
	{"test", ASIDE},
	{"debug", ASIDE},
	{"held", ASIDE},
	{"option", ASIDE},
	{"show", ASIDE},
	{"help", ASIDE},
	{"name", ASIDE},
	{"type", ASIDE},
	{"attr", ASIDE},
	{"timed", ASIDE},
	{"abort", ASIDE},
	{"cancel", ASIDE},
	{"all", ASIDE},
	{"clear", ASIDE},
	{"reset", ASIDE},
	{"shmem", ASIDE},
	{"close", ASIDE},
	{"open", ASIDE},
	{"end", ASIDE},
	{"finish", NO_REQUEST},
	{"after", NO_REQUEST},
	{"before", NO_REQUEST},
	{"header", NO_REQUEST},
	{"headers", NO_REQUEST},
	{"line", NO_REQUEST},
	{"args", NO_REQUEST},
	{"buffer", NO_REQUEST},
	{"internal", NO_REQUEST},
};

struct words {
	char text[WORDS_MAX][WORD_LEN_MAX];
	unsigned senses[WORDS_MAX];
	size_t cnt;
};

static unsigned senses_of(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < sizeof(lexicon) / sizeof(lexicon[0]); i++)
		if (!strcmp(word, lexicon[i].word))
			return lexicon[i].senses;
	/* lwlock, spinlock, spinunlock */
	if (len > 6 && !strcmp(word + len - 6, "unlock"))
		return LOCK | GIVE;
	if (len > 4 && len < 10 && !strcmp(word + len - 4, "lock") && !strchr("bc", word[len - 5])) /* block, clock */
		return LOCK | TAKE;
	return 0;
}

/* snake_case, camelCase, LWLockAcquire and Class::method alike: words of small letters. */
static void words_split(const char *name, size_t len, struct words *words)
{
	size_t word_len = 0;

	words->cnt = 0;
	for (size_t i = 0; i <= len && words->cnt < WORDS_MAX; i++) {
		unsigned char c = i < len ? name[i] : '_';
		bool upper = isupper(c), after_lower = i && islower((unsigned char)name[i - 1]);
		bool before_lower = i + 1 < len && islower((unsigned char)name[i + 1]);
		bool ends = !isalnum(c) || (upper && word_len && (after_lower || before_lower));

		if (ends && word_len) {
			words->text[words->cnt][word_len] = '\0';
			words->senses[words->cnt] = senses_of(words->text[words->cnt]);
			words->cnt++;
			word_len = 0;
		}
		if (isalnum(c) && words->cnt < WORDS_MAX && word_len < WORD_LEN_MAX - 1)
			words->text[words->cnt][word_len++] = tolower(c);
	}
}

/* The words that say whose lock or queue it is. */
static uint64_t stem_of(const struct words *words)
{
	uint64_t hash = FNV1A_BEGIN;

	for (size_t i = 0; i < words->cnt; i++)
		if (!(words->senses[i] & (TAKE | GIVE | PUT | GET)))
			hash = fnv1a_text(fnv1a_text(hash, words->text[i]), " ");
	return hash;
}

/* Where the part of a name behind its last "::" begins, as far as len; the whole name when there is none. */
static size_t last_part(const char *name, size_t len)
{
	for (size_t i = len; i > 1; i--)
		if (name[i - 1] == ':' && name[i - 2] == ':')
			return i;
	return 0;
}

/* What a method does its own name says; its class only says to what. */
static unsigned senses_of_name(const char *name, struct words *words, size_t *extra)
{
	size_t len = strcspn(name, "<("), method = last_part(name, len),
	       class = last_part(name, method ? method - 2 : 0);
	unsigned senses = 0;

	*extra = 0;
	if (method) {
		words_split(name + class, method - 2 - class, words);
		for (size_t i = 0; i < words->cnt; i++)
			senses |= words->senses[i] & (REQUEST | LOCK | QUEUE);
	}
	words_split(name + method, len - method, words);
	for (size_t i = 0; i < words->cnt; i++) {
		senses |= words->senses[i];
		*extra += !words->senses[i];
	}
	/* The stem is that of the class, too. */
	words_split(name + class, len - class, words);
	return senses;
}

bool suggest_role(const char *name, struct suggestion *suggestion)
{
	struct words words;
	size_t extra;
	unsigned senses = senses_of_name(name, &words, &extra);

	if (senses & ASIDE)
		return false;
	suggestion->score = 100 - 8 * (int)extra;
	suggestion->stem = stem_of(&words);
	if ((senses & LOCK) && (senses & GIVE) && !(senses & QUEUE)) {
		suggestion->role = PROBE_RELEASE;
	} else if ((senses & LOCK) && (senses & TAKE) && !(senses & (QUEUE | REQUEST))) {
		suggestion->role = PROBE_ACQUIRE;
	} else if ((senses & QUEUE) && (senses & PUT)) {
		suggestion->role = PROBE_ENQUEUE;
	} else if ((senses & QUEUE) && (senses & GET)) {
		suggestion->role = PROBE_DEQUEUE;
	} else if ((senses & SERVE) && (senses & REQUEST)) {
		suggestion->role = PROBE_INTERVAL;
		suggestion->score -= (senses & NO_REQUEST ? 30 : 0) + (senses & VAGUE ? 10 : 0);
	} else {
		return false;
	}
	return suggestion->score > 40;
}

ORDER(suggestion_cmp, struct suggestion, BY(a->role, b->role), BY(b->score, a->score), BY(a->func, b->func));

static int suggest_function(const struct program_function *function, suggestions *found)
{
	struct suggestion suggestion = {.func = function->id};
	struct cxx_name name;
	bool says;
	int err;

	if (function->is_part || function->is_ifunc || function->source == FUNCTION_EH_FRAME)
		return 0;
	if (strncmp(function->name, "_Z", 2)) {
		says = suggest_role(function->name, &suggestion);
	} else {
		err = cxx_name_make(function->shown, &name);
		if (err)
			return err;
		says = suggest_role(name.key, &suggestion);
		cxx_name_free(&name);
	}
	/* What a library does is, more often than not, not what the server is about. */
	suggestion.score -= function->module ? 25 : 0;
	return says ? vec_push(found, suggestion) : 0;
}

int suggestions_make(struct program *program, size_t max_per_role, suggestions *found)
{
	size_t of_role[PROBE_ROLE_CNT] = {0}, kept = 0;
	int err = 0;

	for (uint32_t module = 0; module < program__module_cnt(program); module++) {
		uint32_t first, cnt;

		/* Of Go's functions nothing but their time is to be had. */
		if (program__module(program, module)->is_go || program__module_functions(program, module, &first, &cnt))
			continue;
		for (uint32_t i = 0; i < cnt && !err; i++)
			err = suggest_function(program__function(program, first + i), found);
	}
	if (err) {
		vec_free(found);
		return err;
	}
	vec_sort(found, suggestion_cmp);
	for (size_t i = 0; i < found->cnt; i++)
		if (of_role[found->items[i].role]++ < max_per_role)
			found->items[kept++] = found->items[i];
	found->cnt = kept;
	return 0;
}

const struct suggestion *suggestion_partner(const suggestions *all, struct program *program,
					    const struct suggestion *of, enum probe_role role)
{
	uint32_t module = program__function(program, of->func)->module;

	for (size_t i = 0; i < all->cnt; i++)
		if (all->items[i].role == role && all->items[i].stem == of->stem &&
		    program__function(program, all->items[i].func)->module == module)
			return &all->items[i];
	return NULL;
}
