/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The causes of one session for its projection into a database: what `report` says of it. */
#ifndef WHYLATE_FLEET_CAUSES_H
#define WHYLATE_FLEET_CAUSES_H

#include "net/project/project.h"

/* As project_opts.causes. */
int project_causes(void *owner, const char *const *paths, size_t path_cnt, project_put_cause *put, void *sink);

#endif
