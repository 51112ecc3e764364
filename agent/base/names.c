// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *label;
} categories[] = {
#define CATEGORY(id, name, label) {name, label},
#include <whylate/category.def>
};

static const struct {
	const char *name;
	enum wl_category category;
} states[] = {
#define STATE(id, name, category) {name, WL_CATEGORY_##category},
#include <whylate/state.def>
};

static const struct {
	const char *name;
	bool has_waker;
} contexts[] = {
#define CONTEXT(id, name, has_waker) {name, has_waker},
#include <whylate/context.def>
};

static const struct {
	const char *name;
} certainties[] = {
#define CERTAINTY(id, name, meaning) {name},
#include <whylate/certainty.def>
};

static const struct {
	const char *name, *what;
} handoffs[] = {
#define HANDOFF(id, name, what) {name, what},
#include <whylate/handoff.def>
};

static const char *const tallies[] = {
#define TALLY(id, name) name,
#include <whylate/tally.def>
};

static const struct {
	const char *name, *meaning;
} losses[] = {
#define LOSS(id, name, meaning) {name, meaning},
#include <whylate/losstype.def>
};

/* const char *category_name(enum wl_category category): NULL where there is no such. */
#define TEXT_OF(kind, KIND, table, text)                                 \
	const char *kind##_##text(enum wl_##kind kind)                   \
	{                                                                \
		return kind < WL_##KIND##_CNT ? table[kind].text : NULL; \
	}

/* int category_by_name(const char *name): -1 where there is no such. */
#define BY_NAME(kind, KIND, table)                        \
	int kind##_by_name(const char *name)              \
	{                                                 \
		for (int i = 0; i < WL_##KIND##_CNT; i++) \
			if (!strcmp(table[i].name, name)) \
				return i;                 \
		return -1;                                \
	}

TEXT_OF(category, CATEGORY, categories, name)
TEXT_OF(category, CATEGORY, categories, label)
BY_NAME(category, CATEGORY, categories)
TEXT_OF(state, STATE, states, name)

enum wl_category state_category(enum wl_state state)
{
	return state < WL_STATE_CNT ? states[state].category : WL_CATEGORY_OTHER;
}

BY_NAME(state, STATE, states)
TEXT_OF(context, CONTEXT, contexts, name)

bool context_has_waker(enum wl_context context)
{
	return context < WL_CONTEXT_CNT && contexts[context].has_waker;
}

BY_NAME(context, CONTEXT, contexts)
TEXT_OF(certainty, CERTAINTY, certainties, name)
BY_NAME(certainty, CERTAINTY, certainties)
TEXT_OF(handoff, HANDOFF, handoffs, name)
TEXT_OF(handoff, HANDOFF, handoffs, what)
BY_NAME(handoff, HANDOFF, handoffs)

bool name_is_idle_cpu(const char *name)
{
	return name && !strcmp(name, NAME_IDLE_CPU);
}

const char *tally_name(enum wl_tally tally)
{
	return tally < WL_TALLY_CNT ? tallies[tally] : NULL;
}

TEXT_OF(loss, LOSS, losses, name)
TEXT_OF(loss, LOSS, losses, meaning)

const char *go_wait_text(uint64_t object)
{
	static const char *const texts[] = {
#define GO_WAIT(id, text, state) [WL_GO_WAIT_##id] = text,
#include <whylate/go_wait.def>
	};
	uint64_t wait = object & ~WL_GO_WAIT;

	return object & WL_GO_WAIT && wait < WL_GO_WAIT_CNT ? texts[wait] : NULL;
}
