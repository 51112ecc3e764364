// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfetto.h"

#include "servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTO_DIR "docs"
#define FLOWS_MAX (1 << 20)

/* One packet's track event, as far as arrows go. */
struct event {
	uint64_t track, flow, ended_flow; /* 0: none */
	bool is_wakeup;
};

struct arrows {
	uint32_t *from_track; /* by flow id: where it begins, 0: it does not */
	uint64_t begun, ended, loose, wakeups, between_tracks;
};

static void take_event(struct arrows *arrows, const struct event *event)
{
	if (event->flow && event->flow < FLOWS_MAX) {
		arrows->from_track[event->flow] = (uint32_t)event->track;
		arrows->begun++;
	}
	if (!event->ended_flow || event->ended_flow >= FLOWS_MAX)
		return;
	arrows->ended++;
	if (!arrows->from_track[event->ended_flow]) {
		arrows->loose++;
		return;
	}
	arrows->between_tracks += arrows->from_track[event->ended_flow] != event->track;
	arrows->wakeups += event->is_wakeup;
}

/* protoc's text: "  track_event {", "    track_uuid: 2", "    flow_ids: 7", one to a line; packets end with "}". */
static void take_line(struct arrows *arrows, struct event *event, const char *line)
{
	if (line[0] == '}') {
		take_event(arrows, event);
		memset(event, 0, sizeof(*event));
		return;
	}
	line += strspn(line, " ");
	if (!strncmp(line, "track_uuid: ", 12))
		event->track = strtoull(line + 12, NULL, 10);
	else if (!strncmp(line, "flow_ids: ", 10))
		event->flow = strtoull(line + 10, NULL, 10);
	else if (!strncmp(line, "terminating_flow_ids: ", 22))
		event->ended_flow = strtoull(line + 22, NULL, 10);
	else if (!strncmp(line, "categories: \"wakeup\"", 20))
		event->is_wakeup = true;
}

void perfetto_check(const char *dir, const struct path *file, const char *comm)
{
	struct arrows arrows = {.from_track = calloc(FLOWS_MAX, sizeof(uint32_t))};
	struct process process;
	struct event event = {0};
	char cmd[1400], name[64];

	CHECK(whylate(&process, 60, "export %s --format perfetto -o %s", dir, file->s) == 0);
	process_end(&process);
	if (!arrows.from_track || program_missing("perfetto", "protoc")) {
		free(arrows.from_track);
		return;
	}
	snprintf(cmd, sizeof(cmd), "protoc -I " PROTO_DIR " --decode=perfetto.protos.Trace perfetto.proto < %s",
		 file->s);
	const char *const argv[] = {"sh", "-c", cmd, NULL};
	if (!process_launch_argv(&process, NULL, argv)) {
		const char *text;

		CHECKF(process_wait(&process, 90) == 0, "protoc: %.300s", process_err(&process));
		text = process_out(&process);
		snprintf(name, sizeof(name), "thread_name: \"%.40s\"", comm);
		CHECKF(strstr(text, name) != NULL, "no %s", name);
		CHECK(strstr(text, "TYPE_SLICE_BEGIN") != NULL);
		for (const char *end; (end = strchr(text, '\n')); text = end + 1)
			take_line(&arrows, &event, text);
		CHECKF(arrows.begun > 0 && arrows.begun == arrows.ended && !arrows.loose,
		       "%lu arrows begin, %lu end, %lu of them never began", arrows.begun, arrows.ended, arrows.loose);
		CHECKF(arrows.wakeups > 0 && arrows.between_tracks > 0, "%lu from a waker, %lu to another thread",
		       arrows.wakeups, arrows.between_tracks);
	}
	process_end(&process);
	free(arrows.from_track);
}
