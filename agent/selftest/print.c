// SPDX-License-Identifier: GPL-2.0-or-later
#include "selftest/check.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

bool checks_passed(const checks *list)
{
	for (size_t i = 0; i < list->cnt; i++)
		if (!list->items[i].ok && !list->items[i].skipped)
			return false;
	return list->cnt > 0;
}

int checks_print_text(const checks *list, const char *kernel, const char *machine)
{
	size_t failed = 0, skipped = 0;

	printf("whylate %s self-test on Linux %s, %s\n\n", WHYLATE_VERSION, kernel, machine);
	printf("  %-4s  %-18s %-24s %14s %14s\n", "", "event", "hook", "witness", "seen");
	for (size_t i = 0; i < list->cnt; i++) {
		const struct check *check = &list->items[i];
		char hook[64] = "";

		if (check->tier)
			snprintf(hook, sizeof(hook), "%s:%s (tier %u)", check->feature, check->hook, check->tier);
		failed += !check->ok && !check->skipped;
		skipped += check->skipped;
		if (check->skipped)
			printf("  skip  %-18s %s\n", check->name, check->why);
		else if (!check->tier)
			printf("  FAIL  %-18s %s\n", check->name, check->why);
		else
			printf("  %-4s  %-18s %-24s %14" PRIu64 " %14" PRIu64 " %s%s%s\n", check->ok ? "ok" : "FAIL",
			       check->name, hook, check->witness, check->seen, check->unit, check->why[0] ? "; " : "",
			       check->why);
	}
	printf("\n%s: %zu of %zu checks failed, %zu skipped\n", checks_passed(list) ? "passed" : "FAILED", failed,
	       list->cnt, skipped);
	return fflush(stdout) ? -EIO : 0;
}

int checks_print_json(const checks *list, const char *kernel, const char *machine)
{
	json_object *root = json_object_new_object(), *lines = json_object_new_array();

	json_object_object_add(root, "schema", json_object_new_string("whylate.selftest/1"));
	json_object_object_add(root, "kernel", json_object_new_string(kernel));
	json_object_object_add(root, "machine", json_object_new_string(machine));
	json_object_object_add(root, "passed", json_object_new_boolean(checks_passed(list)));
	for (size_t i = 0; i < list->cnt; i++) {
		const struct check *check = &list->items[i];
		json_object *line = json_object_new_object();

		json_object_object_add(line, "name", json_object_new_string(check->name));
		json_object_object_add(line, "feature", json_object_new_string(check->feature));
		json_object_object_add(line, "hook", check->tier ? json_object_new_string(check->hook) : NULL);
		json_object_object_add(line, "tier", check->tier ? json_object_new_int(check->tier) : NULL);
		json_object_object_add(line, "witness", check->skipped ? NULL : json_object_new_uint64(check->witness));
		json_object_object_add(line, "low", check->skipped ? NULL : json_object_new_uint64(check->low));
		json_object_object_add(line, "seen", check->skipped ? NULL : json_object_new_uint64(check->seen));
		json_object_object_add(line, "length_ns",
				       check->length_ns ? json_object_new_uint64(check->length_ns) : NULL);
		json_object_object_add(line, "unit", json_object_new_string(check->unit));
		json_object_object_add(line, "ok", check->skipped ? NULL : json_object_new_boolean(check->ok));
		json_object_object_add(line, "skipped", json_object_new_boolean(check->skipped));
		json_object_object_add(line, "why", json_object_new_string(check->why));
		json_object_array_add(lines, line);
	}
	json_object_object_add(root, "checks", lines);
	printf("%s\n", json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return fflush(stdout) ? -EIO : 0;
}
