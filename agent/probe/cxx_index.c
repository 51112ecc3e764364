// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/cxx_index.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

ORDER(entry_cmp, struct cxx_entry, strcmp(a->name.key, b->name.key), strcmp(a->name.full, b->name.full),
      BY(a->func, b->func));

int cxx_index_make(struct cxx_index *index, struct program *program, uint32_t module)
{
	VEC(struct cxx_entry) entries = {0};
	uint32_t first, cnt;
	int err = program__module_functions(program, module, &first, &cnt);

	for (uint32_t i = 0; i < cnt && !err; i++) {
		const struct program_function *function = program__function(program, first + i);
		struct cxx_entry entry = {.func = first + i};

		if (!function || function->is_part || strncmp(function->name, "_Z", 2))
			continue;
		err = cxx_name_make(function->shown, &entry.name);
		if (!err && vec_push(&entries, entry)) {
			cxx_name_free(&entry.name);
			err = -ENOMEM;
		}
	}
	*index = (struct cxx_index){entries.items, entries.cnt, entries.room};
	if (err)
		cxx_index_free(index);
	else if (index->cnt)
		qsort(index->entries, index->cnt, sizeof(*index->entries), entry_cmp);
	return err;
}

void cxx_index_free(struct cxx_index *index)
{
	for (size_t i = 0; i < index->cnt; i++)
		cxx_name_free(&index->entries[i].name);
	free(index->entries);
	memset(index, 0, sizeof(*index));
}

static int wanted_cmp(const struct cxx_name *wanted, const struct cxx_name *name)
{
	int order = strcmp(wanted->key, name->key);

	return order || !wanted->has_args ? order : strcmp(wanted->full, name->full);
}

const struct cxx_entry *cxx_index_find(const struct cxx_index *index, const struct cxx_name *wanted, size_t *cnt)
{
	size_t low = search_first(0, index->cnt, middle, wanted_cmp(wanted, &index->entries[middle].name) <= 0), end;

	for (end = low; end < index->cnt && !wanted_cmp(wanted, &index->entries[end].name);)
		end++;
	*cnt = end - low;
	return *cnt ? &index->entries[low] : NULL;
}
