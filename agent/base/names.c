// SPDX-License-Identifier: GPL-2.0-only
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
