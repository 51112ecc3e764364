// SPDX-License-Identifier: GPL-2.0-or-later
/* Of each request: whom it waited for, and how it was handed on. */
#include "view/html_data.h"

#include "base/names.h"
#include "view/contexts.h"

#include <stdlib.h>
#include <string.h>

#define CROSSINGS_MAX  60
#define CONTEXTS_SHOWN 200
#define LABEL_SZ       512

/* The context only where `chain` is one: "GET /a, after socket asked by f". */
static const char *side_label(char *buf, size_t sz, const struct contexts *contexts, const char *type, uint32_t chain,
			      bool by_context)
{
	char handed_on[LABEL_SZ];

	if (by_context && chain != CONTEXT_CHAIN_UNKNOWN)
		snprintf(buf, sz, "%s, %s", type,
			 view_handed_on(handed_on, sizeof(handed_on), &contexts->chains, chain));
	else
		snprintf(buf, sz, "%s", type);
	return buf;
}

static void put_crossing(struct html_pack *pack, struct json_object *array, const struct contexts *contexts,
			 const struct context_crossing *crossing, bool by_context)
{
	const char *by = contexts_string(contexts, crossing->by_type);
	struct json_object *line = append_object(&pack->doc, array);
	char label[2 * LABEL_SZ];

	html_pack__put_string(pack, line, "type",
			      side_label(label, sizeof(label), contexts, view_type_name(contexts, crossing->type),
					 crossing->chain, by_context));
	html_pack__put_string(pack, line, "by",
			      side_label(label, sizeof(label), contexts, *by ? by : "no request that is known",
					 crossing->by_chain, by_context));
	put_string(&pack->doc, line, "category", category_name(crossing->category));
}

/* "crosstalk" and its columns "crossing.N"; by context: "crosstalk_by_context" and "crossing_by_context.N". */
static void put_crosstalk(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows,
			  bool by_context)
{
	struct json_object *array =
		put_array(&pack->doc, pack->header, by_context ? "crosstalk_by_context" : "crosstalk");
	const struct context_crosstalk *crosstalk = !contexts    ? NULL
						    : by_context ? &contexts->by_context
								 : &contexts->by_type;
	size_t cnt = crosstalk && (!by_context || contexts_have_chains(contexts)) ? crosstalk->items.cnt : 0;
	uint64_t *by_row = cnt ? calloc(contexts->dataset->row_cnt + 1, sizeof(*by_row)) : NULL;

	if (cnt && !by_row)
		pack->doc.err = -ENOMEM;
	for (size_t i = 0; by_row && i < cnt && i < CROSSINGS_MAX; i++) {
		const struct context_crossing *crossing = &crosstalk->items.items[i];
		char name[48];

		for (size_t w = 0; w < crosstalk->waits.cnt; w++)
			if (crosstalk->waits.items[w].crossing == crossing->id)
				by_row[crosstalk->waits.items[w].row] = crosstalk->waits.items[w].ns;
		put_crossing(pack, array, contexts, crossing, by_context);
		snprintf(name, sizeof(name), "crossing%s.%zu", by_context ? "_by_context" : "", i);
		html_put_sparse(pack, name, by_row, rows);
		memset(by_row, 0, contexts->dataset->row_cnt * sizeof(*by_row));
	}
	free(by_row);
}

void html_crosstalk(struct html_pack *pack, const struct contexts *contexts, const struct html_rows *rows)
{
	put_crosstalk(pack, contexts, rows, false);
	put_crosstalk(pack, contexts, rows, true);
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
			       html_pack__string(pack, id < CONTEXTS_SHOWN ? view_handed_on(label, sizeof(label),
											    &contexts->chains, chain)
									   : "other contexts"),
			       false);
		html_pack__number(pack, id < CONTEXTS_SHOWN ? id : CONTEXTS_SHOWN);
	}
	idmap__free(&ids);
}
