// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/exposition.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

const double exposition_bounds_s[EXPOSITION_BOUND_CNT] = {
	1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

size_t exposition_bucket(double seconds)
{
	size_t bucket = 0;

	while (bucket < EXPOSITION_BOUND_CNT && seconds > exposition_bounds_s[bucket])
		bucket++;
	return bucket;
}

void exposition_label(FILE *out, const char *name, const char *value)
{
	char *valid = utf8_valid(value);

	fprintf(out, "%s=\"", name);
	for (const char *c = valid ? valid : "?"; *c; c++) {
		if (*c == '\\' || *c == '"')
			fprintf(out, "\\%c", *c);
		else if (*c == '\n')
			fputs("\\n", out);
		else
			fputc(*c, out);
	}
	fputc('"', out);
	free(valid);
}

void exposition_family(FILE *out, bool openmetrics, const char *name, const char *type, const char *help)
{
	const char *suffix = !strcmp(type, "counter") && !openmetrics ? "_total" : "";

	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, type);
}
