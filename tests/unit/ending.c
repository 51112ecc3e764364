// SPDX-License-Identifier: GPL-2.0-or-later
#include "ending.h"

#include "unit.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 5000 /* a millisecond each */

static bool reaches(pid_t pid, char state)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	char path[64], now = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < LOOKS && now != state; i++) {
		FILE *file = fopen(path, "re");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &now) != 1)
			now = 0;
		if (file)
			fclose(file);
		if (now != state)
			nanosleep(&pause, NULL);
	}
	return now == state;
}

void ending_await_state(pid_t pid, char state)
{
	CU_ASSERT(reaches(pid, state));
}

pid_t ending_when_asked(pid_t pid, int signal_no)
{
	pid_t caller = getpid(), killer;

	kill(pid, SIGSTOP);
	ending_await_state(pid, 'T');
	killer = fork();
	if (!killer) {
		reaches(caller, 'S');
		kill(pid, signal_no);
		kill(pid, SIGCONT);
		_exit(0);
	}
	return killer;
}
