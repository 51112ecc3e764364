/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variance behind a function pointer: dispatch() calls one of four commands through a table, which no call graph of the
 * machine code shows; run_report() needs milliseconds now and then.  Planted: the nominal length of its slow work.
 */
#include "common.h"

struct command {
	uint64_t dice;
	uint64_t planted_ns;
};

typedef uint64_t (*command_runner)(struct command *command);

KEPT static uint64_t scan_history(struct command *command)
{
	uint64_t work_ns = 40 * NS_PER_US + random_next(&command->dice) % (4 * NS_PER_US);

	if (random_next(&command->dice) % 1000 < 150) {
		command->planted_ns = random_between(&command->dice, 2 * NS_PER_MS, 5 * NS_PER_MS);
		work_ns += command->planted_ns;
	}
	burn(work_ns);
	return work_ns & 1;
}

KEPT static uint64_t run_report(struct command *command)
{
	burn(60 * NS_PER_US);
	return 1 + scan_history(command);
}

KEPT static uint64_t run_get(struct command *command)
{
	burn(110 * NS_PER_US + random_next(&command->dice) % (10 * NS_PER_US));
	return 2;
}

KEPT static uint64_t run_put(struct command *command)
{
	burn(140 * NS_PER_US + random_next(&command->dice) % (10 * NS_PER_US));
	return 3;
}

KEPT static uint64_t run_delete(struct command *command)
{
	burn(90 * NS_PER_US + random_next(&command->dice) % (10 * NS_PER_US));
	return 4;
}

static const command_runner volatile runners[] = {run_report, run_get, run_put, run_delete};

KEPT static uint64_t dispatch(struct command *command)
{
	uint64_t result = runners[command->dice % 4](command);

	burn(10 * NS_PER_US);
	return result;
}

KEPT static uint64_t parse_command(struct command *command)
{
	burn(120 * NS_PER_US + random_next(&command->dice) % (10 * NS_PER_US));
	return command->dice & 1;
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct command command = {.dice = request->dice | 1ULL << 40};
	uint64_t sum;

	(void)worker;
	sum = parse_command(&command);
	sum += dispatch(&command);
	return command.planted_ns + (sum & 1);
}

static const struct workload workload = {
	.name = "fnptr",
	.category = "oncpu",
	.planted = "scan_history",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
