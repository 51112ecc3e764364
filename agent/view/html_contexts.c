// SPDX-License-Identifier: GPL-2.0-or-later
/* Of each request: whom it waited for, and how it was handed on. */
#include "view/html_data.h"

#include "base/names.h"
#include "view/contexts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CROSSINGS_MAX  60
#define CONTEXTS_SHOWN 200
#define LABEL_SZ       512

static void put_crossing(struct html_pack *pack, struct json_object *array, const struct contexts *contexts,
			 const struct context_crossing *crossing)
{
	const char *type = contexts->dataset->strings[contexts->types.items[crossing->type].name];
	const char *by = contexts_string(contexts, crossing->by_type);
	struct json_object *line = append_object(&pack->doc, array);

	html_pack__put_string(pack, line, "type", *type ? type : "(no name)");
	html_pack__put_string(pack, line, "by", *by ? by : "no request that is known");
	put_string(&pack->doc, line, "category", category_name(crossing->category));
}

void html_crosstalk(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows)
{
	struct json_object *array = put_array(&pack->doc, pack->header, "crosstalk");
	size_t cnt = contexts ? contexts->crossings.cnt : 0;
	uint64_t *by_row = cnt ? calloc(contexts->dataset->row_cnt + 1, sizeof(*by_row)) : NULL;

	if (cnt && !by_row)
		pack->doc.err = -ENOMEM;
	for (size_t i = 0; by_row && i < cnt && i < CROSSINGS_MAX; i++) {
		const struct context_crossing *crossing = &contexts->crossings.items[i];
		char name[32];

		for (size_t w = 0; w < contexts->waits.cnt; w++)
			if (contexts->waits.items[w].crossing == crossing->id)
				by_row[contexts->waits.items[w].row] = contexts->waits.items[w].ns;
		put_crossing(pack, array, contexts, crossing);
		snprintf(name, sizeof(name), "crossing.%zu", i);
		html_put_sparse(pack, name, by_row, rows);
		memset(by_row, 0, contexts->dataset->row_cnt * sizeof(*by_row));
	}
	free(by_row);
}

/* A column where there are several. */
void html_contexts(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows)
{
	struct json_object *names = put_array(&pack->doc, pack->header, "contexts");
	struct idmap ids = {0};
	char label[LABEL_SZ];

	if (!contexts || !contexts->row_chain)
		return;
	html_pack__column(pack, "context");
	for (size_t i = 0; i < rows->cnt; i++) {
		uint32_t chain = contexts->row_chain[rows->rows[i]], known = ids.cnt, id;

		if (idmap__id(&ids, chain, 0, &id)) {
			pack->doc.err = -ENOMEM;
			break;
		}
		if (id == known && id <= CONTEXTS_SHOWN)
			append(&pack->doc, names,
			       html_pack__string(pack, id < CONTEXTS_SHOWN
							       ? view_handed_on(label, sizeof(label), contexts, chain)
							       : "other contexts"),
			       false);
		html_pack__number(pack, id < CONTEXTS_SHOWN ? id : CONTEXTS_SHOWN);
	}
	idmap__free(&ids);
}
