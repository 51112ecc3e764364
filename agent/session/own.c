// SPDX-License-Identifier: GPL-2.0-or-later
/* What the agent does so that requests do not wait for it, and what a recording says of its own processes. */
#include "base/dirs.h"
#include "base/log.h"
#include "base/priority.h"
#include "session/exposed.h"
#include "session/probes.h"
#include "session/recording.h"
#include "session/streaming.h"
#include "target/symbols_child.h"

#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Windows end in time, in steps of milliseconds; otherwise only the rings are urgent, and their backlog is watched. */
#define PATIENCE_WINDOWS_NS 10000000ULL
#define PATIENCE_NS         100000000ULL

/* Starting up and ending, the agent shares the CPU: an idle task would take minutes for it on a busy machine. */
void recording_step_back(void)
{
	int err = priority_raise(0);

	if (err)
		log_debug("cannot become a batch task: %s", strerror(-err));
}

struct privilege_uses recording_privilege_uses(const struct recording *recording, bool probes)
{
	const struct record_options *options = recording->options;

	return (struct privilege_uses){
		.more_processes = (options->children && probes) || options->target->cgroup.id || options->stacks_hz ||
				  options->client,
		.changes_user = recording_uploads(recording) || options->metrics,
		.spools = options->stream.url,
	};
}

/* Can it be written without a capability? */
static bool file_is_own(const char *path)
{
	char dir[PATH_MAX];
	struct stat st;

	if (!path || !strcmp(path, "-"))
		return true;
	snprintf(dir, sizeof(dir), "%s", path);
	return dir_is_own(dirname(dir)) && (stat(path, &st) || (st.st_uid == geteuid() && st.st_mode & S_IWUSR));
}

void recording_confine(const struct recording *recording)
{
	struct privilege_uses uses = recording_privilege_uses(recording, recording_probes_wanted(recording));

	uses.writes_foreign = (recording_keeps_files(recording) && !dir_is_own(recording->output.dir)) ||
			      !file_is_own(recording->options->output);
	if (recording->options->confine)
		privilege_confine(&uses);
}

void recording_stay_off(const struct recording *recording)
{
	cpu_set_t ours, theirs, apart;

	CPU_ZERO(&theirs);
	for (size_t i = 0; i < recording->target.processes.cnt; i++)
		target_cpus(recording->target.processes.items[i].pid, &theirs);
	if (sched_getaffinity(0, sizeof(ours), &ours) || !priority_cpus(&ours, &theirs, &apart))
		return;
	if (!sched_setaffinity(0, sizeof(apart), &apart))
		log_debug("the agent keeps to the %d CPUs that the target is not bound to", CPU_COUNT(&apart));
}

static double backlog(void *ctx)
{
	const struct recording *recording = ctx;

	return capture__backlog(recording->capture);
}

void recording_pace_begin(struct recording *recording)
{
	const struct pace_opts opts = {
		.patience_ns = recording->windows.on ? PATIENCE_WINDOWS_NS : PATIENCE_NS,
		.backlog = backlog,
		.ctx = recording,
	};

	recording->pace = pace__new(&opts);
}

void recording_pace_end(struct recording *recording)
{
	if (recording->pace)
		log_debug("the agent was raised %" PRIu64 " times from an idle to a batch task",
			  pace__raised(recording->pace));
	pace__free(recording->pace);
	recording->pace = NULL;
}

int recording_own_pids_changed(struct recording *recording)
{
	if (symbols_children_starts() == recording->symbols_starts)
		return 0;
	return recording_write_own_pids(recording);
}

int recording_write_own_pids(struct recording *recording)
{
	const pid_t others[] = {
		capture__attacher_pid(recording->capture),
		recording->output.stream ? stream__pid(recording->output.stream) : 0,
		recording_metrics_pid(recording),
		recording->options->observed ? getppid() : 0,
	};
	pid_t readers[SYMBOLS_PIDS];
	size_t reader_cnt = symbols_children_pids(readers);
	char pids[128];
	int len = snprintf(pids, sizeof(pids), "%d", getpid());

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i] > 0)
			len += snprintf(pids + len, sizeof(pids) - (size_t)len, " %d", others[i]);
	for (size_t i = 0; i < reader_cnt; i++)
		len += snprintf(pids + len, sizeof(pids) - (size_t)len, " %d", readers[i]);
	recording->symbols_starts = symbols_children_starts();
	return journal__say(&recording->journal, "agent_pids", "%s", pids);
}
