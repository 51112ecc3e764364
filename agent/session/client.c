// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/client.h"

#include "session/recording.h"

#define NO_SELECTION 1 /* of 2^32 */

const struct record_options *session__options(const struct recording *recording)
{
	return recording->options;
}

const char *session__dir(const struct recording *recording)
{
	return recording->output.dir;
}

struct journal *session__journal(struct recording *recording)
{
	return &recording->journal;
}

int session__program(struct recording *recording, struct program **program)
{
	int err = recording->program ? 0 : recording_open_program(recording);

	*program = recording->program;
	return err;
}

struct session_moment session__now(struct recording *recording)
{
	capture__counts(recording->capture, &recording->counts);
	return (struct session_moment){
		.ts = monotonic_ns(),
		.seen = recording->counts.seen,
		.cpu_ns = recording_cpu_ns(recording),
	};
}

/* --- time --------------------------------------------------------------------------------------------------------- */

void session__pause(struct recording *recording)
{
	recording->clock.paused_rate = capture__rate(recording->capture);
	capture__set_rate(recording->capture, NO_SELECTION);
	pauses__begin(&recording->clock.pauses, monotonic_ns());
}

void session__resume(struct recording *recording)
{
	capture__set_rate(recording->capture, recording->clock.paused_rate);
	session__extend(recording, pauses__end(&recording->clock.pauses, monotonic_ns()));
}

uint64_t session__pauses(const struct recording *recording, uint32_t *cnt)
{
	*cnt = recording->clock.pauses.cnt;
	return pauses__ns(&recording->clock.pauses, monotonic_ns());
}

void session__extend(struct recording *recording, uint64_t ns)
{
	if (recording->clock.until_ts != UINT64_MAX)
		recording->clock.until_ts += ns;
}

void session__end_at(struct recording *recording, uint64_t ts)
{
	recording->clock.until_ts = ts;
}

void session__take_time(struct recording *recording, uint64_t ns)
{
	pace__allow(recording->pace, monotonic_ns() + ns);
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

void session__learn(struct recording *recording, struct hot_paths *hot)
{
	recording->hot = hot;
}

void session__stop_stacks(struct recording *recording)
{
	capture__stop_stacks(recording->capture);
	if (recording->stacks)
		stacks__end(recording->stacks);
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

bool session__listed(const struct recording *recording, size_t idx, struct session_listed *listed)
{
	const struct probe_target *target;

	if (idx >= recording->symbols.targets.targets.cnt)
		return false;
	target = &recording->symbols.targets.targets.items[idx];
	*listed = (struct session_listed){
		.role = recording->symbols.lines.items[target->line_idx].role,
		.has_func = !target->usdt,
		.func = target->func,
	};
	return true;
}

int session__count_calls(struct recording *recording, uint64_t seconds_max, const uint64_t *addrs, size_t cnt,
			 struct call_rate *rates)
{
	const struct call_rates_opts opts = {
		.processes = &recording->target.processes,
		.mappings = &recording->target.mappings,
		.seconds_max = seconds_max,
		.is_stopped = recording_is_stopped,
	};

	return call_rates__count(&opts, addrs, cnt, rates);
}

bool session__probes_many(const struct recording *recording)
{
	return capture__survey(recording->capture)->tier[HOOK_FEATURE_PROBE] == 1;
}

/* --- the client, as the session calls it -------------------------------------------------------------------------- */

int recording_client_open(struct recording *recording)
{
	const struct record_options *options = recording->options;

	return options->client ? options->client->open(recording, options->client_options, &recording->client) : 0;
}

bool recording_client_probes(const struct recording *recording)
{
	return recording->options->client && recording->options->client->probes;
}

bool recording_client_probing(const struct recording *recording)
{
	return recording->client && recording->options->client->probes &&
	       recording->options->client->is_probing(recording->client);
}

int recording_client_step(struct recording *recording)
{
	session__extend(recording, pauses__hold(&recording->clock.pauses, monotonic_ns()));
	return recording->client ? recording->options->client->step(recording->client) : 0;
}
