/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `project`, and `collect --project`, were told. */
#ifndef WHYLATE_FLEET_PROJECTION_H
#define WHYLATE_FLEET_PROJECTION_H

#include "net/project/project.h"

#define PROJECT_SALT_MIN 16
#define PROJECT_SALT_MAX 256

struct project_options {
	struct project_opts project;
	struct clickhouse_opts database;
	bool verify, follow;
	const char *salt_path; /* of --redact; NULL: none */
	char salt[PROJECT_SALT_MAX + 1];
};

#define PROJECT_PATIENCE_NS 60000000000ULL

/* Reads the salt and the credentials; NULL after a line that says what is wrong. */
struct clickhouse *project_open(struct project_options *options);
/* An exit code.  Takes the signals that end a program. */
int project_run(const struct project_options *options, struct clickhouse *server);

#endif
