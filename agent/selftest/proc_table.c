// SPDX-License-Identifier: GPL-2.0-or-later
#include "selftest/proc_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Which column a CPU has: those that are offline have none in /proc/interrupts. */
static int column_of(char *header, uint32_t cpu, uint32_t *column, uint32_t *column_cnt)
{
	bool found = false;
	char *save = NULL;

	*column_cnt = 0;
	for (char *word = strtok_r(header, " \t\n", &save); word; word = strtok_r(NULL, " \t\n", &save)) {
		char *end = NULL;

		if (strncmp(word, "CPU", 3) || !isdigit((unsigned char)word[3]))
			return -EBADMSG;
		if (strtoul(word + 3, &end, 10) == cpu && !*end) {
			*column = *column_cnt;
			found = true;
		}
		(*column_cnt)++;
	}
	return found ? 0 : *column_cnt ? -ENOENT : -EBADMSG;
}

/* A row may have fewer numbers than there are columns (ERR, MIS): it belongs to no CPU then. */
static uint64_t row_value(char *line, uint32_t column, uint32_t column_cnt, proc_row_weight weight)
{
	char *colon = strchr(line, ':'), *at, *end;
	uint64_t value = 0;

	if (!colon)
		return 0;
	*colon = '\0';
	line += strspn(line, " \t");
	at = colon + 1;
	for (uint32_t i = 0; i < column_cnt; i++) {
		uint64_t number;

		at += strspn(at, " \t");
		if (!isdigit((unsigned char)*at))
			return 0;
		number = strtoull(at, &end, 10);
		at = end;
		if (i == column)
			value = number;
	}
	at += strspn(at, " \t");
	at[strcspn(at, "\n")] = '\0';
	return value * weight(line, at);
}

int proc_table_sum(FILE *table, uint32_t cpu, proc_row_weight weight, uint64_t *sum)
{
	uint32_t column = 0, column_cnt;
	char *line = NULL;
	size_t sz = 0;
	int err;

	*sum = 0;
	errno = 0;
	if (getline(&line, &sz, table) < 0) {
		err = errno ? -errno : -EBADMSG;
		free(line);
		return err;
	}
	err = column_of(line, cpu, &column, &column_cnt);
	while (!err && getline(&line, &sz, table) >= 0)
		*sum += row_value(line, column, column_cnt, weight);
	free(line);
	return err;
}
