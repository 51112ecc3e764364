/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data block of an HTML page: a JSON header and columns of variable-length numbers (LEB128), deflated, in base64.
 * agent/view/html/data.js reads it.
 */
#ifndef WHYLATE_VIEW_HTML_PACK_H
#define WHYLATE_VIEW_HTML_PACK_H

#include "base/vec.h"
#include "view/json_put.h"

#include <stdio.h>

struct html_pack {
	VEC(uint8_t) bytes;
	struct json_doc doc; /* errors of both */
	struct json_object *header, *columns;
};

void html_pack__open(struct html_pack *pack); /* an error is in doc.err */
void html_pack__free(struct html_pack *pack);
/* What follows is of this column; the name is ours. */
void html_pack__column(struct html_pack *pack, const char *name);
void html_pack__number(struct html_pack *pack, uint64_t number);
/* Rounded to 8 bits behind the leading one: a relative error of 0.2 % at most. */
void html_pack__ns(struct html_pack *pack, uint64_t ns);
uint64_t html_pack__ns_code(uint64_t ns);
/* A finite number of any sign, rounded to 11 bits behind the leading one. */
void html_pack__float(struct html_pack *pack, double number);
/* Text from outside as a string of the header: what acts on a display is escaped; NULL: null. */
struct json_object *html_pack__string(struct html_pack *pack, const char *text);
void html_pack__put_string(struct html_pack *pack, struct json_object *object, const char *key, const char *text);

/* The deflated bytes, to be freed with free(): 0 or -ENOMEM. */
int html_pack__deflate(struct html_pack *pack, uint8_t **bytes, size_t *sz);
void html_put_base64(FILE *out, const uint8_t *bytes, size_t sz);

#endif
