// SPDX-License-Identifier: GPL-2.0-or-later
/* Go programs among the target's processes, whose requests belong to goroutines. */
#include "capture/goroutines.h"

#include "session/probes.h"
#include "session/recording.h"
#include "target/go_runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Of more processes at the beginning the files would be read for too long. */
#define PROCESSES_MAX 16

/* Why not, NULL: requests may belong to goroutines. */
static const char *why_threads(const struct recording *recording)
{
	if (!recording->options->goroutines)
		return "--no-goroutines";
	if (recording_probes_wanted(recording))
		return "functions or markers are probed, whose calls belong to threads";
	return NULL;
}

static void say_threads(struct recording *recording, pid_t pid, const char *why)
{
	if (recording->go.why[0])
		return;
	snprintf(recording->go.why, sizeof(recording->go.why), "%s", why);
	recording->go.why_pid = pid;
	if (!recording->options->quiet && recording->options->goroutines)
		log_warn("process %d is a Go program, and its requests are those of threads, not of goroutines: %s; a "
			 "request that another thread answers is flagged `moved`",
			 pid, why);
}

static int open_process(struct recording *recording, pid_t pid)
{
	const char *not_any = why_threads(recording);
	char why[GO_WHY_SZ];
	struct recorded_go process = {.pid = pid};
	target_mappings mappings = {0};
	int err = target_mappings_read(pid, &mappings);

	if (!err)
		err = go_runtime__open(pid, &mappings, &process.go, why);
	target_mappings_free(&mappings);
	if (!err && not_any) {
		go_runtime__free(process.go);
		say_threads(recording, pid, not_any);
		return 0;
	}
	if (err == -ENOTSUP)
		say_threads(recording, pid, not_any ? not_any : why);
	if (err)
		return err == -ENOMEM ? err : 0;
	log_debug("process %d: goroutines of %s, by %s", pid, go_runtime__version(process.go),
		  go_runtime__by_dwarf(process.go) ? "its debugging information" : "its version");
	err = vec_push(&recording->go.processes, process);
	if (err)
		go_runtime__free(process.go);
	return err;
}

int recording_goroutines_open(struct recording *recording)
{
	int err = 0;

	for (size_t i = 0; !err && i < recording->target.processes.cnt && i < PROCESSES_MAX; i++)
		err = open_process(recording, recording->target.processes.items[i].pid);
	if (err)
		log_error("out of memory");
	return err;
}

int recording_goroutines_begin(struct recording *recording)
{
	int err = 0;

	if (!recording_has_goroutines(recording))
		return 0;
	for (size_t i = 0; !err && i < recording->go.processes.cnt; i++) {
		const struct recorded_go *process = &recording->go.processes.items[i];
		uint64_t offs[GO_SITE_CNT] = {0};

		for (int site = GO_SITE_EXECUTE; site < GO_SITE_CNT; site++)
			offs[site] = go_runtime__site(process->go, site);
		err = capture__add_goroutines(recording->capture, process->pid, go_runtime__fd(process->go),
					      go_runtime__layout(process->go), offs);
	}
	if (err)
		log_error("cannot follow goroutines: %s", strerror(-err));
	return err;
}

bool recording_has_goroutines(const struct recording *recording)
{
	return recording->go.processes.cnt && capture__survey(recording->capture)->tier[HOOK_FEATURE_GOROUTINE];
}

void recording_goroutine_name(const struct recording *recording, const struct wl_task_record *record, char *comm)
{
	struct wl_goroutine_start start;

	memcpy(&start, record->comm, sizeof(start));
	for (size_t i = 0; i < recording->go.processes.cnt; i++)
		if ((uint32_t)recording->go.processes.items[i].pid == record->pid &&
		    go_runtime__role(recording->go.processes.items[i].go, start.start_pc, comm))
			return;
	strcpy(comm, "goroutine");
}

int recording_goroutines_write_note(struct recording *recording)
{
	if (!recording->go.why[0])
		return 0;
	return journal__note(&recording->journal,
			     "process %d is a Go program, and its requests are those of threads, not of goroutines: %s",
			     recording->go.why_pid, recording->go.why);
}

void recording_goroutines_free(struct recording *recording)
{
	for (size_t i = 0; i < recording->go.processes.cnt; i++)
		go_runtime__free(recording->go.processes.items[i].go);
	vec_free(&recording->go.processes);
}
