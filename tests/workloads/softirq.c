/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network softirqs: for some tens of milliseconds, twice a second, `flood` sends multicast packets on the loopback device
 * of a network namespace of the workload's own, whose receive packet steering gives all protocol work to the server's
 * CPU.  Each packet goes to hundreds of sockets that nobody reads.  Planted: the gaps that the computing server thread
 * sees in its clock.
 */
#include "common.h"
#include "storm.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>

#define WORK_NS	       (1500 * NS_PER_US)
#define RECEIVER_CNT   1000
#define STOLEN_PERCENT 80

static void flood_burst(struct run *run, struct packet_storm *storm, uint64_t duration_ns)
{
	uint64_t until_ts = clock_now_ns() + duration_ns, took_ns, next_ts;

	/* One packet at a time: a backlog would go to ksoftirqd, which is a thread like any other. */
	while (clock_now_ns() < until_ts) {
		took_ns = packet_storm_send(storm, 2 * NS_PER_MS);
		next_ts = clock_now_ns() + took_ns * (100 - STOLEN_PERCENT) / STOLEN_PERCENT;
		while (clock_now_ns() < next_ts)
			;
		atomic_fetch_add(&run->board->extra[0], 1);
		atomic_fetch_add(&run->board->extra[1], took_ns);
	}
}

static int flood_body(struct run *run)
{
	static struct packet_storm storm;
	uint64_t random_state = clock_now_ns();
	int err;

	thread_name("flood");
	err = packet_storm_open(&storm, RECEIVER_CNT);
	if (err)
		return err;
	thread_pin(CPU_LOAD);
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	while (!run_stopped(run)) {
		sleep_for_ns(random_between(&random_state, 300 * NS_PER_MS, 700 * NS_PER_MS));
		flood_burst(run, &storm, random_between(&random_state, 20 * NS_PER_MS, 30 * NS_PER_MS));
	}
	return 0;
}

static int loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		err = -errno;
	close(fd);
	return err;
}

static int steer_to_cpu(int cpu)
{
	char mask[64] = "";
	int fd, err = 0;

	/* Groups of 32 CPUs, the highest first. */
	snprintf(mask, sizeof(mask), "%x", 1U << (cpu % 32));
	for (int group = cpu / 32; group > 0 && strlen(mask) < sizeof(mask) - 10; group--)
		strcat(mask, ",00000000");
	fd = open("/sys/class/net/lo/queues/rx-0/rps_cpus", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, mask, strlen(mask)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* The driver moves into the namespaces, and everything that it forks is born there. */
static int prepare(struct run *run)
{
	int err;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		return run_skip(run, "a network namespace of our own: %s", strerror(errno));
	/* sysfs shows the devices of the namespace in which it was mounted. */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		return run_skip(run, "a sysfs of our own: %s", strerror(errno));
	err = loopback_up();
	if (err)
		return run_skip(run, "the loopback device: %s", strerror(-err));
	err = steer_to_cpu(cpu_number(CPU_SERVER));
	return err ? run_skip(run, "receive packet steering: %s", strerror(-err)) : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	(void)worker;
	(void)request;
	return spin_watching_gaps(WORK_NS, NULL);
}

static void report(const struct run *run, FILE *out)
{
	unsigned long packet_cnt = atomic_load(&run->board->extra[0]);

	fprintf(out, ",\"packet_cnt\":%lu,\"packet_cost_ns\":%lu", packet_cnt,
		packet_cnt ? atomic_load(&run->board->extra[1]) / packet_cnt : 0);
}

static const struct workload workload = {
	.name = "softirq",
	.category = "irq.soft",
	.connection_cnt = 1,
	.rate_hz = 200,
	.default_duration_s = 8,
	.cpu_cnt_needed = 2,
	.prepare = prepare,
	.helper = flood_body,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
