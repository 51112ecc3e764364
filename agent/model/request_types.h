/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of a recording's requests by their first bytes.  Texts are numbered from 1 on; the number becomes part of
 * the record's type (WL_TYPE_NAMED).
 *
 * Which protocol a listener speaks is told by its requests: the one whose form most of them have, if at least half of
 * them have it.  Memory is bounded: REQUEST_ROUTES_MAX texts per listener, then "other"; a bounded number of prepared
 * statements and of requests that are remembered by sid.  One thread only, no I/O.
 */
#ifndef WHYLATE_MODEL_REQUEST_TYPES_H
#define WHYLATE_MODEL_REQUEST_TYPES_H

#include <whylate/record.h>

#include "model/request_parse.h"

#define REQUEST_ROUTES_MAX 200
#define REQUEST_OTHER      "other"

struct request_types;

/* Of that protocol; REQUEST_NONE: of whichever it is.  NULL when out of memory. */
struct request_types *request_types__new(enum request_protocol only);
void request_types__free(struct request_types *types); /* NULL-safe */

/*
 * The type of the record, whose first_len bytes are `first`, with the number of its text; as it is, if it has none.
 * The sid is remembered.  Without memory the type stays as it is.  *is_early: it executes a statement whose
 * preparation was not taken so far; may be NULL.
 */
uint32_t request_types__take(struct request_types *types, const struct wl_brief_record *record, const uint8_t *first,
			     bool *is_early);
/* The same type for what else is known of that sid; as it is, if it is not remembered.  NULL types: as it is. */
uint32_t request_types__of(const struct request_types *types, uint64_t sid, uint32_t type);
/* The text of a type's number; NULL: it has none. */
const char *request_types__text(const struct request_types *types, uint32_t type);

/* The protocol that the listener of that type speaks; REQUEST_NONE: none that is known. */
enum request_protocol request_types__protocol(const struct request_types *types, uint32_t type);
/* The idx-th listener's type, 0: there are not so many. */
uint32_t request_types__listener(const struct request_types *types, size_t idx);

#endif
