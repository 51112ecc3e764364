/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The causes of a session's hour for its projection into a database: what `report` says of it. */
#ifndef WHYLATE_FLEET_CAUSES_H
#define WHYLATE_FLEET_CAUSES_H

#include "net/project/project.h"

/* As project_opts.causes. */
int project_causes(void *owner, const struct project_segment *segment, const struct project_sink *sink);

#endif
