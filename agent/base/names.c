// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/names.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *label;
} categories[] = {
#define CATEGORY(id, name, label) {name, label},
#include <whylate/category.def>
#undef CATEGORY
};

static const struct {
	const char *name;
	enum wl_category category;
} states[] = {
#define STATE(id, name, category) {name, WL_CATEGORY_##category},
#include <whylate/state.def>
#undef STATE
};

static const struct {
	const char *name;
	bool has_waker;
} contexts[] = {
#define CONTEXT(id, name, has_waker) {name, has_waker},
#include <whylate/context.def>
#undef CONTEXT
};

static const struct {
	const char *name, *meaning;
} certainties[] = {
#define CERTAINTY(id, name, meaning) {name, meaning},
#include <whylate/certainty.def>
#undef CERTAINTY
};

static const struct {
	const char *name, *what;
} handoffs[] = {
#define HANDOFF(id, name, what) {name, what},
#include <whylate/handoff.def>
#undef HANDOFF
};

static const char *const tallies[] = {
#define TALLY(id, name) name,
#include <whylate/tally.def>
#undef TALLY
};

static const struct {
	const char *name, *meaning;
} losses[] = {
#define LOSS(id, name, meaning) {name, meaning},
#include <whylate/losstype.def>
#undef LOSS
};

const char *category_name(enum wl_category category)
{
	return category < WL_CATEGORY_CNT ? categories[category].name : NULL;
}

const char *category_label(enum wl_category category)
{
	return category < WL_CATEGORY_CNT ? categories[category].label : NULL;
}

int category_by_name(const char *name)
{
	for (int i = 0; i < WL_CATEGORY_CNT; i++)
		if (!strcmp(categories[i].name, name))
			return i;
	return -1;
}

const char *state_name(enum wl_state state)
{
	return state < WL_STATE_CNT ? states[state].name : NULL;
}

enum wl_category state_category(enum wl_state state)
{
	return state < WL_STATE_CNT ? states[state].category : WL_CATEGORY_OTHER;
}

int state_by_name(const char *name)
{
	for (int i = 0; i < WL_STATE_CNT; i++)
		if (!strcmp(states[i].name, name))
			return i;
	return -1;
}

const char *context_name(enum wl_context context)
{
	return context < WL_CONTEXT_CNT ? contexts[context].name : NULL;
}

bool context_has_waker(enum wl_context context)
{
	return context < WL_CONTEXT_CNT && contexts[context].has_waker;
}

int context_by_name(const char *name)
{
	for (int i = 0; i < WL_CONTEXT_CNT; i++)
		if (!strcmp(contexts[i].name, name))
			return i;
	return -1;
}

const char *certainty_name(enum wl_certainty certainty)
{
	return certainty < WL_CERTAINTY_CNT ? certainties[certainty].name : NULL;
}

const char *certainty_meaning(enum wl_certainty certainty)
{
	return certainty < WL_CERTAINTY_CNT ? certainties[certainty].meaning : NULL;
}

int certainty_by_name(const char *name)
{
	for (int i = 0; i < WL_CERTAINTY_CNT; i++)
		if (!strcmp(certainties[i].name, name))
			return i;
	return -1;
}

const char *handoff_name(enum wl_handoff handoff)
{
	return handoff < WL_HANDOFF_CNT ? handoffs[handoff].name : NULL;
}

const char *handoff_what(enum wl_handoff handoff)
{
	return handoff < WL_HANDOFF_CNT ? handoffs[handoff].what : NULL;
}

int handoff_by_name(const char *name)
{
	for (int i = 0; i < WL_HANDOFF_CNT; i++)
		if (!strcmp(handoffs[i].name, name))
			return i;
	return -1;
}

bool name_is_idle_cpu(const char *name)
{
	return name && !strcmp(name, NAME_IDLE_CPU);
}

const char *tally_name(enum wl_tally tally)
{
	return tally < WL_TALLY_CNT ? tallies[tally] : NULL;
}

const char *loss_name(enum wl_loss loss)
{
	return loss < WL_LOSS_CNT ? losses[loss].name : NULL;
}

const char *loss_meaning(enum wl_loss loss)
{
	return loss < WL_LOSS_CNT ? losses[loss].meaning : NULL;
}
