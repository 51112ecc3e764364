// SPDX-License-Identifier: GPL-2.0-or-later
/* The projection beside a collector. */
#include "collector.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process whose parent is that one; 0: there is none. */
static pid_t child_of(pid_t parent)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && process_parent(pid) == parent)
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found;
}

/* Within ten seconds; one that nobody has waited for has ended, too. */
static bool has_ended(pid_t pid)
{
	struct path stat_path;
	bool ended = false;

	snprintf(stat_path.s, sizeof(stat_path.s), "/proc/%d/stat", pid);
	for (int i = 0; i < 500 && !ended; i++) {
		char *text = file_read(stat_path.s, NULL);

		ended = !text || strstr(text, ") Z ");
		free(text);
		if (!ended)
			sleep_ms(20);
	}
	return ended;
}

/* The projection ends with its collector, also one that is killed, while a database keeps it waiting for an answer. */
static void test_projection_ends(void)
{
	static const int signals[] = {SIGKILL, SIGTERM};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t sz = sizeof(address);
	int database = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!CHECK(!bind(database, (struct sockaddr *)&address, sz) && !listen(database, 64) &&
		   !getsockname(database, (struct sockaddr *)&address, &sz)))
		return;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct pollfd asked = {.fd = database, .events = POLLIN};
		struct collector collector;
		pid_t keeper, projector;
		int request;

		if (!collector_start(&collector, i ? "ended" : "killed", "--project clickhouse://127.0.0.1:%d/nothing",
				     ntohs(address.sin_port)))
			break;
		CHECK(poll(&asked, 1, 10000) == 1);
		request = accept(database, NULL, NULL);
		keeper = child_of(collector.process.pid);
		projector = keeper ? child_of(keeper) : 0;
		CHECK(keeper && projector);
		process_signal(&collector.process, signals[i]);
		process_wait(&collector.process, 15);
		CHECKF(!projector || has_ended(projector), "the projector (%d) has outlived its collector", projector);
		CHECKF(!keeper || has_ended(keeper), "its keeper (%d) has outlived the collector", keeper);
		if (request >= 0)
			close(request);
		collector_end(&collector);
	}
	close(database);
}

int suite_projection(void)
{
	static const struct live_test tests[] = {
		{"projection_ends", test_projection_ends, SHORT},
	};

	return live_suite("projection", tests, sizeof(tests) / sizeof(tests[0]));
}
