// SPDX-License-Identifier: GPL-2.0-or-later
/* What is said of a list that is to be recorded with, and whether what was found of it will do. */
#include "base/log.h"
#include "probe/preset.h"
#include "probe/resolve.h"

#include <errno.h>
#include <string.h>

void probe_of_target(const struct probe_target *target, const struct probe_line *line, struct program *program,
		     struct probe *probe)
{
	*probe = (struct probe){
		.func = target->func,
		.role = line->role,
		.line = target->line_idx,
		.want_call_addr = true,
		.file = program__module(program, target->module)->file,
		.plan = target->plan,
		.usdt = target->usdt,
		.usdt_cost = target->usdt_cost,
		.key = line->key,
		.object = line->object,
		.task = line->task,
		.queue = line->queue,
		.type = line->type,
	};
}

struct listing {
	const probe_lines *lines;
	const char *list;
	struct probe_targets *targets;
	bool is_preset;
};

static int say_verdicts(const struct listing *listing)
{
	int err = 0;

	for (size_t i = 0; i < listing->lines->cnt && !err; i++) {
		const struct probe_verdict *verdict = &listing->targets->verdicts.items[i];
		uint32_t line_no = listing->lines->items[i].line_no;

		if (verdict->err && !listing->is_preset) {
			log_error("%s:%u: %s", listing->list, line_no, verdict->why);
			err = verdict->err;
		} else if (verdict->err) {
			log_warn("%s:%u: left out: %s", listing->list, line_no, verdict->why);
		} else if (verdict->why) {
			log_warn("%s:%u: %s", listing->list, line_no, verdict->why);
		}
	}
	return err;
}

/* A program of this name may be the preset's server: "postgres" is "postgresql-query". */
#define SERVER_NAME_LEN 4

/*
 * A preset of another server: no line that begins an interval has a function here, and few others do (those of
 * libraries).  One message says so in place of one a line.
 */
static int check_server(const struct listing *listing, struct program *program)
{
	const char *server = strchr(listing->list, ':') + 1, *name = program__module(program, 0)->name;
	size_t missing = 0;

	for (size_t i = 0; i < listing->lines->cnt; i++) {
		enum probe_role role = listing->lines->items[i].role;

		if (listing->targets->verdicts.items[i].err)
			missing++;
		else if (role == PROBE_INTERVAL || role == PROBE_BEGIN)
			return 0;
	}
	if (4 * missing < 3 * listing->lines->cnt || !strncmp(server, name, SERVER_NAME_LEN))
		return 0;
	log_error("this is not %.64s: %s has no function that begins a request of %s; without -s, requests on sockets "
		  "are recorded",
		  server, name, listing->list);
	return -ENOENT;
}

static void drop_line(struct probe_targets *targets, uint32_t line_idx)
{
	size_t kept = 0;

	for (size_t i = 0; i < targets->targets.cnt; i++)
		if (targets->targets.items[i].line_idx != line_idx)
			targets->targets.items[kept++] = targets->targets.items[i];
	targets->targets.cnt = kept;
	targets->verdicts.items[line_idx].cnt = 0;
}

/* What is left of a preset that was made for another build: does it still make sense? */
static int check_rest(const struct listing *listing)
{
	bool wanted = probe_lines_have_intervals(listing->lines), changed;
	struct probe_targets *targets = listing->targets;
	bool there[PROBE_ROLE_CNT];

	do {
		changed = false;
		memset(there, 0, sizeof(there));
		for (size_t i = 0; i < targets->targets.cnt; i++)
			there[listing->lines->items[targets->targets.items[i].line_idx].role] = true;
		for (uint32_t i = 0; i < listing->lines->cnt; i++) {
			const struct probe_line *line = &listing->lines->items[i];
			enum probe_role counterpart = probe_role_counterpart(line->role);

			if (!targets->verdicts.items[i].cnt || counterpart == PROBE_ROLE_CNT || there[counterpart])
				continue;
			log_warn("%s:%u: left out: role '%s' tells nothing without role '%s', of which nothing is left",
				 listing->list, line->line_no, probe_role_name(line->role),
				 probe_role_name(counterpart));
			drop_line(targets, i);
			changed = true;
		}
	} while (changed);
	if (targets->targets.cnt && (!wanted || there[PROBE_INTERVAL] || there[PROBE_BEGIN]))
		return 0;
	log_error("%s: nothing is left of it that says what a request is: this build of the program needs another list",
		  listing->list);
	return -ENOENT;
}

int symbol_list_resolve(const probe_lines *lines, const char *list, struct program *program,
			struct probe_targets *targets)
{
	struct listing listing = {lines, list, targets, preset_is(list)};
	int err = probe_targets_find(lines, program, targets);

	if (err) {
		log_error("%s: the symbols cannot be looked up: %s", list, strerror(-err));
		return err;
	}
	if (listing.is_preset)
		err = check_server(&listing, program);
	if (!err)
		err = say_verdicts(&listing);
	if (!err && listing.is_preset)
		err = check_rest(&listing);
	if (err)
		probe_targets_free(targets);
	return err;
}
