/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `export --format perfetto` of a recording, as protoc reads it with the description that we publish. */
#ifndef WHYLATE_TESTS_PERFETTO_H
#define WHYLATE_TESTS_PERFETTO_H

#include "harness.h"

/*
 * Exports into the file and decodes it: every arrow has both ends, wake-ups and hand-offs among them, and there is a
 * track for threads of that name.  Skipped, which is said, without protoc.
 */
void perfetto_check(const char *dir, const struct path *file, const char *comm);

#endif
