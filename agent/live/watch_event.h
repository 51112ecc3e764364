/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done with the directory of an event: reports, and the user's program, by processes without privilege. */
#ifndef WHYLATE_LIVE_WATCH_EVENT_H
#define WHYLATE_LIVE_WATCH_EVENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watch_event {
	const char *when; /* the condition */
	char dir[PATH_MAX];
	double value;
	bool is_time; /* the value is in ns */
	int64_t wall_s;
	pid_t pid; /* of the target */
};

struct watch_user {
	bool changes; /* not root: it is the user itself */
	uid_t uid;
	gid_t gid;
	char name[64];
};

/* name NULL: who called sudo, else nobody.  0 or -ENOENT. */
int watch_user_find(struct watch_user *user, const char *name);

/* Whether that user, in a process of its own, could run a program or look into a directory: 0 or -errno. */
int watch_user_may(const struct watch_user *user, const char *path, bool is_dir);

/* "23.1 ms", "1250"; static memory. */
const char *watch_event_value(const struct watch_event *event);

/*
 * Starts a process that writes report.txt, report.json and report.html, and then becomes `exec` (NULL: none), whose
 * working directory is "/": event->dir is absolute.
 */
void watch_event__finish(const struct watch_event *event, const struct watch_user *user, const char *exec);
/* Collects those that have ended; waits for all. */
void watch_event_reap(void);
void watch_event_wait(void);

#endif
