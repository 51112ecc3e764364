/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of code that a JIT compiler made, as perf wants them: /tmp/perf-PID.map below the process's own root, under
 * the number that it has in its own PID namespace.  A line says "START SIZE NAME", in hex.  Where there is none, the
 * jitdump file that the process has mapped, as perf finds it: jit-PID.dump.
 *
 * Anybody may make a file of that name: one that is no regular file, or neither the process's nor root's, is not read,
 * nor is more than PERF_MAP_SZ_MAX of it.  The file is read as it grows, a part at a time; lines without sense are
 * passed over.  One thread only.
 */
#ifndef WHYLATE_TARGET_PERF_MAP_H
#define WHYLATE_TARGET_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PERF_MAP_SZ_MAX (500ULL << 20)

struct perf_map;

/* Of a process, whether there is a map of it or not.  NULL: out of memory. */
struct perf_map *perf_map__new(pid_t pid);
void perf_map__free(struct perf_map *map); /* NULL-safe */
/*
 * Looks for what was added, if it has not done so just now, and reads some of it.  0 or -ENOMEM; a file that cannot be
 * had is no error.
 */
int perf_map__refresh(struct perf_map *map, uint64_t now_ts);
/* Has one been read? */
bool perf_map__is_there(const struct perf_map *map);
/*
 * The name of the code that was at the address at that time, as people write it (perf_map_shown()); NULL: there is
 * none.  The text is the map's, until the next call.
 */
const char *perf_map__find(struct perf_map *map, uint64_t addr, uint64_t ts);

/* A line without its end, which need not end in NUL: false when it makes no sense. */
bool perf_map_parse(const char *line, size_t len, uint64_t *start, uint64_t *sz, const char **name, size_t *name_len);
/*
 * "JS:*build /srv/app.js:3:12" and "py::build:/srv/app.py" become "build (app.js:3)" and "build (app.py)": which tier
 * of a compiler made the code is no other function.  Other names stay, as far as there is room.
 */
void perf_map_shown(const char *name, size_t len, char *buf, size_t sz);

#endif
