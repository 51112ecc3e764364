/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the JSON views build their objects: an error is remembered in the document, null is said by NULL or NAN. */
#ifndef WHYLATE_VIEW_JSON_PUT_H
#define WHYLATE_VIEW_JSON_PUT_H

#include "analysis/results.h"
#include "base/utf8.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* json-c takes NULL for a JSON null, so that a failed allocation has to be remembered apart. */
struct json_doc {
	int err;
};

static inline void put(struct json_doc *doc, struct json_object *object, const char *key, struct json_object *value,
		       bool is_null)
{
	if (!value && !is_null)
		doc->err = -ENOMEM;
	if (!object || json_object_object_add(object, key, value)) {
		doc->err = -ENOMEM;
		json_object_put(value);
	}
}

static inline void append(struct json_doc *doc, struct json_object *array, struct json_object *value, bool is_null)
{
	if (!value && !is_null)
		doc->err = -ENOMEM;
	if (!array || json_object_array_add(array, value)) {
		doc->err = -ENOMEM;
		json_object_put(value);
	}
}

static inline struct json_object *put_object(struct json_doc *doc, struct json_object *object, const char *key)
{
	struct json_object *value = json_object_new_object();

	put(doc, object, key, value, false);
	return doc->err ? NULL : value;
}

/* Writes null and returns NULL if the object is not known. */
static inline struct json_object *put_known_object(struct json_doc *doc, struct json_object *object, const char *key,
						   bool is_known)
{
	if (is_known)
		return put_object(doc, object, key);
	put(doc, object, key, NULL, true);
	return NULL;
}

static inline struct json_object *put_array(struct json_doc *doc, struct json_object *object, const char *key)
{
	struct json_object *value = json_object_new_array();

	put(doc, object, key, value, false);
	return doc->err ? NULL : value;
}

static inline struct json_object *append_object(struct json_doc *doc, struct json_object *array)
{
	struct json_object *value = json_object_new_object();

	append(doc, array, value, false);
	return doc->err ? NULL : value;
}

static inline struct json_object *new_string(const char *str)
{
	char *valid = utf8_valid(str);
	struct json_object *value = valid ? json_object_new_string(valid) : NULL;

	free(valid);
	return value;
}

static inline void put_string(struct json_doc *doc, struct json_object *object, const char *key, const char *str)
{
	put(doc, object, key, str ? new_string(str) : NULL, !str);
}

/* For what the dataset leaves as "" where it is not known. */
static inline void put_known_string(struct json_doc *doc, struct json_object *object, const char *key, const char *str)
{
	put_string(doc, object, key, str && *str ? str : NULL);
}

static inline struct json_object *new_number(double number)
{
	struct json_object *value = json_object_new_double(number == 0 ? 0 : number); /* no "-0.0" */

	if (value)
		json_object_set_serializer(value, json_object_double_to_json_string, (void *)"%.6g", NULL);
	return value;
}

static inline void put_number(struct json_doc *doc, struct json_object *object, const char *key, double number)
{
	bool is_null = !isfinite(number);

	put(doc, object, key, is_null ? NULL : new_number(number), is_null);
}

static inline void put_rounded(struct json_doc *doc, struct json_object *object, const char *key, double number)
{
	bool is_null = !isfinite(number);
	int64_t rounded = 0;

	if (!is_null) /* 2^63 itself does not fit */
		rounded = number >= 0x1p63 ? INT64_MAX : number <= -0x1p63 ? INT64_MIN : llround(number);
	put(doc, object, key, is_null ? NULL : json_object_new_int64(rounded), is_null);
}

static inline void put_count(struct json_doc *doc, struct json_object *object, const char *key, uint64_t count)
{
	put(doc, object, key, json_object_new_uint64(count), false);
}

/* -1: not known */
static inline void put_id(struct json_doc *doc, struct json_object *object, const char *key, int64_t id)
{
	put(doc, object, key, id < 0 ? NULL : json_object_new_int64(id), id < 0);
}

static inline void put_bool(struct json_doc *doc, struct json_object *object, const char *key, bool value)
{
	put(doc, object, key, json_object_new_boolean(value), false);
}

static inline void put_ci(struct json_doc *doc, struct json_object *object, const char *key, struct ci ci)
{
	struct json_object *array = put_array(doc, object, key);

	append(doc, array, isfinite(ci.lo) ? new_number(ci.lo) : NULL, !isfinite(ci.lo));
	append(doc, array, isfinite(ci.hi) ? new_number(ci.hi) : NULL, !isfinite(ci.hi));
}

static inline void put_strings(struct json_doc *doc, struct json_object *object, const char *key,
			       const char *const *strings, size_t cnt)
{
	struct json_object *array = put_array(doc, object, key);

	for (size_t i = 0; i < cnt; i++)
		append(doc, array, strings[i] ? new_string(strings[i]) : NULL, !strings[i]);
}

/*
 * Writes the document and a newline, with nothing in it that a terminal obeys, and releases it; flags are
 * JSON_C_TO_STRING_…. 0, the document's error, -ENOMEM or -EIO.
 */
#define JSON_FLAGS (JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)
int json_finish(FILE *out, const struct json_doc *doc, struct json_object *root, int flags);
/* The parts of a report that are in files of their own: "path" and "crosstalk", in json_path.c. */
void json_put_factors(struct json_doc *doc, struct json_object *root, const struct report *report);
void json_put_path(struct json_doc *doc, struct json_object *root, const struct report *report);
/* Of one cause; of all roots. */
void json_put_root(struct json_doc *doc, struct json_object *line, const struct cause *from);
/* By what two sides differ.  json_compare.c */
struct comparison;
void json_put_difference(struct json_doc *doc, struct json_object *root, const struct comparison *comparison);
void json_put_delivery(struct json_doc *doc, struct json_object *root, const struct report_delivery *from);
void json_put_account(struct json_doc *doc, struct json_object *root, const struct report *report);
/* "values"; the same of recordings that are compared; one of them: `from` NULL is nothing. */
void json_put_values(struct json_doc *doc, struct json_object *root, const struct report *report);
void json_put_value_report(struct json_doc *doc, struct json_object *object, const struct value_report *from);
void json_put_value(struct json_doc *doc, struct json_object *line, const struct value_line *from);

#endif
