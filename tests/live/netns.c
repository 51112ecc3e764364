// SPDX-License-Identifier: GPL-2.0-or-later
#include "netns.h"

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static bool ip_does(bool quiet, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool ip_does(bool quiet, const char *fmt, ...)
{
	struct process process;
	char what[256];
	va_list args;
	bool good;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	good = !process_start(&process, "ip %s", what) && process_wait(&process, 20) == 0;
	if (!quiet)
		CHECKF(good, "ip %s: %s", what, process_err(&process));
	process_end(&process);
	return good;
}

/* Of runs that are no more. */
static void sweep(void)
{
	DIR *dir = opendir("/run/netns");
	struct dirent *entry;
	char side;
	int pid;

	while (dir && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "wl-live-%d-%c", &pid, &side) == 2 && kill(pid, 0) && errno == ESRCH)
			ip_does(true, "netns del %s", entry->d_name);
	if (dir)
		closedir(dir);
}

/* In a chroot, say, a namespace can be made and not be entered: iproute2 mounts a sysfs for it. */
static bool can_be_entered(const struct netns_pair *pair, const char *test)
{
	struct process process;
	bool good;

	process_start(&process, "ip netns exec %s true", pair->left);
	good = process_wait(&process, 20) == 0;
	if (!good)
		skip(test, "no network namespace can be entered: %s", process_err(&process));
	process_end(&process);
	return good;
}

bool netns_pair_make(struct netns_pair *pair, const char *test, const char *left_ip, const char *right_ip)
{
	const char *left = pair->left, *right = pair->right;

	snprintf(pair->left, sizeof(pair->left), "wl-live-%d-l", getpid());
	snprintf(pair->right, sizeof(pair->right), "wl-live-%d-r", getpid());
	sweep();
	return ip_does(false, "netns add %s", left) && ip_does(false, "netns add %s", right) &&
	       can_be_entered(pair, test) &&
	       ip_does(false, "-n %s link add wl0 type veth peer name wl1 netns %s", left, right) &&
	       ip_does(false, "-n %s addr add %s/24 dev wl0", left, left_ip) &&
	       ip_does(false, "-n %s addr add %s/24 dev wl1", right, right_ip) &&
	       ip_does(false, "-n %s link set wl0 up", left) && ip_does(false, "-n %s link set wl1 up", right) &&
	       ip_does(false, "-n %s link set lo up", left) && ip_does(false, "-n %s link set lo up", right);
}

void netns_pair_set_cable(const struct netns_pair *pair, bool up)
{
	ip_does(false, "-n %s link set wl1 %s", pair->right, up ? "up" : "down");
}

void netns_pair_remove(const struct netns_pair *pair)
{
	if (*pair->left)
		ip_does(true, "netns del %s", pair->left);
	if (*pair->right)
		ip_does(true, "netns del %s", pair->right);
}
