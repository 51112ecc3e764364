// SPDX-License-Identifier: GPL-2.0-or-later
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_object *report_read(const char *dir, const char *more_args)
{
	struct process process;
	json_object *root = NULL;
	int code = whylate_as(&process, "nobody", 60, "report --json %s %s", more_args ? more_args : "", dir);

	/* Loss beyond the limit is said by the exit code of a report, too. */
	if (CHECKF(code == 0 || code == 3, "exit code %d: %s", code, process_err(&process)))
		root = json_tokener_parse(process_out(&process));
	CHECKF(root != NULL, "no JSON: %.200s", process_out(&process));
	process_end(&process);
	return root;
}

json_object *json_at(json_object *root, const char *path)
{
	char word[64];
	size_t len;

	while (root && *path) {
		len = strcspn(path, ".");
		if (len >= sizeof(word))
			return NULL;
		memcpy(word, path, len);
		word[len] = '\0';
		path += len + (path[len] == '.');
		if (json_object_is_type(root, json_type_array)) {
			size_t idx = strtoul(word, NULL, 10);

			root = idx < json_object_array_length(root) ? json_object_array_get_idx(root, idx) : NULL;
		} else if (!json_object_object_get_ex(root, word, &root)) {
			return NULL;
		}
	}
	return root;
}

double json_number(json_object *root, const char *path)
{
	json_object *value = json_at(root, path);

	return value ? json_object_get_double(value) : NAN;
}

const char *json_text(json_object *root, const char *path)
{
	json_object *value = json_at(root, path);

	return value && json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

json_object *json_breakdown(json_object *root, const char *category)
{
	json_object *lines = json_at(root, "breakdown");

	for (size_t i = 0; lines && i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (!strcmp(json_text(line, "category"), category))
			return line;
	}
	return NULL;
}

double json_outside_share(json_object *lines, const char *but)
{
	double share = 0;

	for (size_t i = 0; lines && i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);
		const char *category = json_text(line, "category");

		if ((!strcmp(category, "runq") || !strncmp(category, "irq.", 4)) && strcmp(category, but) != 0 &&
		    json_number(line, "tail_share") > 0)
			share += json_number(line, "tail_share");
	}
	return share;
}

static bool has_keys(json_object *object, const char *what, const char *keys)
{
	char list[256], *rest;
	bool good = CHECKF(object && json_object_is_type(object, json_type_object), "%s is no object", what);

	snprintf(list, sizeof(list), "%s", keys);
	for (char *key = strtok_r(list, " ", &rest); good && key; key = strtok_r(NULL, " ", &rest))
		good &= CHECKF(json_object_object_get_ex(object, key, NULL), "%s lacks %s", what, key);
	return good;
}

static bool lines_have_keys(json_object *root, const char *what, const char *keys)
{
	json_object *lines = json_at(root, what);
	bool good = CHECKF(lines && json_object_is_type(lines, json_type_array), "%s is no array", what);

	for (size_t i = 0; good && i < json_object_array_length(lines); i++)
		good &= has_keys(json_object_array_get_idx(lines, i), what, keys);
	return good;
}

bool report_check_schema(json_object *root)
{
	json_object *causes = json_at(root, "causes");
	bool good = has_keys(root, "the report", "schema session latency breakdown events factors causes loss");

	good &= CHECK(!strcmp(json_text(root, "schema"), "whylate.report/1"));
	good &= has_keys(json_at(root, "session"), "session",
			 "host kernel pid comm duration_s intervals_seen intervals_kept records_lost hooks_missing");
	good &= has_keys(json_at(root, "latency"), "latency",
			 "count mean_ns variance_ns2 cov p50_ns p90_ns p99_ns p999_ns max_ns");
	good &= lines_have_keys(root, "breakdown",
				"category mean_ns variance_share variance_share_ci tail_share tail_share_ci");
	good &= lines_have_keys(root, "events",
				"event impact impact_adjusted threshold threshold_percentile explained_by");
	good &= lines_have_keys(root, "factors", "functions contribution height score call_sites");
	good &= lines_have_keys(root, "causes", "rank category share share_ci what function object culprit evidence");
	for (size_t i = 0; causes && i < json_object_array_length(causes); i++)
		good &= has_keys(json_at(json_object_array_get_idx(causes, i), "culprit"), "culprit",
				 "pid tid comm function");
	good &= has_keys(json_at(root, "loss"), "loss", "by_class intervals_flagged");
	return good;
}
