// SPDX-License-Identifier: GPL-2.0-or-later
/* Which processes the target is while it is recorded: those that were named, their children, a cgroup's members. */
#include "session/recording.h"
#include "session/sinks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct target_cgroup *recording_cgroup(const struct recording *recording)
{
	const struct target_cgroup *cgroup = &recording->options->target->cgroup;

	return cgroup->id ? cgroup : NULL;
}

int recording_members_open(struct recording *recording)
{
	const struct target_set *target = recording->options->target;
	int err;

	for (size_t i = 0; i < target->pids.cnt; i++) {
		int fd = (int)syscall(SYS_pidfd_open, target->pids.items[i], 0);

		if (fd >= 0 && vec_push(&recording->target.pidfds, fd)) {
			close(fd);
			log_error("out of memory");
			return -ENOMEM;
		}
	}
	err = target_set_processes(target, recording->options->children, &recording->target.processes);
	if (err)
		log_error("process %d cannot be looked at: %s", recording->options->pid, strerror(-err));
	return err;
}

void recording_members_free(struct recording *recording)
{
	for (size_t i = 0; i < recording->target.pidfds.cnt; i++)
		close(recording->target.pidfds.items[i]);
	vec_free(&recording->target.pidfds);
	vec_free(&recording->target.processes);
}

bool recording_target_gone(struct recording *recording)
{
	/* Its processes may end one after the other while the next ones begin. */
	if (recording_cgroup(recording))
		return !target_cgroup_exists(recording_cgroup(recording));
	for (size_t i = recording->target.pidfds.cnt; i > 0; i--) {
		struct pollfd pollfd = {.fd = recording->target.pidfds.items[i - 1], .events = POLLIN};

		if (poll(&pollfd, 1, 0) <= 0)
			return false;
		if (recording->target.pidfds.cnt == 1)
			return true;
		close(pollfd.fd);
		recording->target.pidfds.items[i - 1] = recording->target.pidfds.items[--recording->target.pidfds.cnt];
	}
	return false;
}

/* --- CPU time ----------------------------------------------------------------------------------------------------- */

uint64_t recording_cpu_ns(struct recording *recording)
{
	int64_t cpu_ns = (int64_t)target_cpu_ns(&recording->target.processes) + recording->target.cpu_offset_ns;

	/* Between the exit of a child and its parent's wait for it, its CPU time is in nobody's account. */
	if (cpu_ns > (int64_t)recording->target.cpu_seen_ns)
		recording->target.cpu_seen_ns = (uint64_t)cpu_ns;
	return recording->target.cpu_seen_ns;
}

static int64_t cpu_of(pid_t pid)
{
	target_processes one = {0};
	int64_t cpu_ns = vec_push(&one, ((struct target_process){.pid = pid})) ? 0 : (int64_t)target_cpu_ns(&one);

	vec_free(&one);
	return cpu_ns;
}

/* --- who comes and goes ------------------------------------------------------------------------------------------- */

static size_t index_of(const struct recording *recording, pid_t pid)
{
	size_t i = 0;

	while (i < recording->target.processes.cnt && recording->target.processes.items[i].pid != pid)
		i++;
	return i;
}

static int process_joined(struct recording *recording, const struct target_process *process, bool is_new)
{
	if (index_of(recording, process->pid) < recording->target.processes.cnt)
		return 0;
	/* What it did before is not the target's. */
	if (!is_new)
		recording->target.cpu_offset_ns -= cpu_of(process->pid);
	return vec_push(&recording->target.processes, *process);
}

static void process_left(struct recording *recording, pid_t pid)
{
	size_t i = index_of(recording, pid);
	bool is_orphan;
	uint64_t cpu_ns;

	if (i == recording->target.processes.cnt || recording->target.processes.cnt == 1)
		return;
	is_orphan = index_of(recording, recording->target.processes.items[i].ppid) == recording->target.processes.cnt;
	cpu_ns = is_orphan ? recording_cpu_ns(recording) : 0;
	/* The main process stays the first. */
	if (i)
		recording->target.processes.items[i] =
			recording->target.processes.items[recording->target.processes.cnt - 1];
	else
		memmove(recording->target.processes.items, recording->target.processes.items + 1,
			(recording->target.processes.cnt - 1) * sizeof(recording->target.processes.items[0]));
	recording->target.processes.cnt--;
	/* Its time stays the target's, and no parent among the target's processes takes it over. */
	if (is_orphan)
		recording->target.cpu_offset_ns =
			(int64_t)cpu_ns - (int64_t)target_cpu_ns(&recording->target.processes);
}

static bool is_member(const target_processes *members, pid_t pid)
{
	for (size_t i = 0; i < members->cnt; i++)
		if (members->items[i].pid == pid)
			return true;
	return false;
}

int recording_follow_moved(struct recording *recording)
{
	target_processes members = {0};
	int err = capture__follow_moved(recording->capture);

	if (err <= 0)
		return err;
	err = target_cgroup_processes(recording_cgroup(recording), &members);
	for (size_t i = 0; !err && i < members.cnt; i++)
		err = process_joined(recording, &members.items[i], false);
	for (size_t i = recording->target.processes.cnt; !err && i > 0; i--) {
		pid_t pid = recording->target.processes.items[i - 1].pid;

		if (is_member(&members, pid) || recording->target.processes.cnt == 1)
			continue;
		capture__drop_process(recording->capture, pid, false);
		process_left(recording, pid);
	}
	vec_free(&members);
	if (!err)
		err = recording_refresh_listeners(recording);
	/* The cgroup may be gone: the next look ends the recording. */
	return err == -ENOENT ? 0 : err;
}

static int take_main_thread(struct recording *recording, const struct wl_task_record *record)
{
	struct target_process process = {.pid = (pid_t)record->pid, .ppid = (pid_t)record->parent_pid};

	int err = 0;

	switch (record->event) {
	case WL_TASK_SEEN:
		capture__adopt_process(recording->capture, record->pid, record->ts);
		if (record->creator_tid)
			err = recording_trace_slots_fork(recording, process.ppid, process.pid);
		/* What a server's children use is its CPU time, too. */
		return err ? err : process_joined(recording, &process, record->creator_tid != 0);
	case WL_TASK_EXEC:
		return recording_trace_slots_find(recording, process.pid);
	case WL_TASK_EXIT:
		capture__drop_process(recording->capture, record->pid, true);
		recording_trace_slots_exit(recording, process.pid);
		process_left(recording, process.pid);
		break;
	}
	return 0;
}

int recording_processes_take(struct recording *recording, struct taken *taken)
{
	const struct wl_task_record *record = (const struct wl_task_record *)taken->header;

	if (record->event < WL_TASK_SEEN || record->event > WL_TASK_RENAMED)
		return -EBADMSG;
	return record->pid != record->tid || record->outside ? 0 : take_main_thread(recording, record);
}
