// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/recorder.h"

#include "base/exit_code.h"
#include "session/session.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t recorder_start(const struct record_options *options, const char *dir, uint64_t shard_ns)
{
	pid_t parent = getpid(), pid = fork();
	struct record_options recorder = *options;
	struct recording_result result;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, SIG_IGN);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	recorder.dir = dir;
	recorder.rotate_age_ns = shard_ns;
	recorder.duration_ns = 0;
	recorder.quiet = true;
	recorder.confine = true;
	recorder.observed = true;
	_exit(recording_run(&recorder, &result));
}
