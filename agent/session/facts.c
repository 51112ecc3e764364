// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "model/session.h"
#include "session/list.h"
#include "session/probes.h"
#include "session/recording.h"
#include "target/elf_file.h"
#include "target/elf_reader.h"
#include "target/symbols_child.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void add_to_list(char *list, size_t sz, const char *item)
{
	size_t len = strlen(list);

	if (*item)
		snprintf(list + len, sz - len, "%s%s", len ? "," : "", item);
}

bool recording_of_sockets(const struct recording *recording)
{
	return !recording_probes_wanted(recording) || !probe_lines_have_intervals(&recording->symbols.lines);
}

static struct hook_purpose purpose_of(const struct recording *recording)
{
	return (struct hook_purpose){
		.sockets = recording_of_sockets(recording),
		.trace = recording->options->trace,
		.probes = recording_probes_wanted(recording),
		.stacks = recording_stacks_hz(recording) > 0,
		.goroutines = recording->go.processes.cnt > 0,
	};
}

static bool feature_missing(const struct recording *recording, int feature)
{
	const struct hook_survey *survey = capture__survey(recording->capture);

	return hook_feature_wanted(feature, purpose_of(recording)) && !survey->tier[feature] &&
	       features[feature].need != HOOK_NEED_EXTRA;
}

static int write_hooks(struct recording *recording)
{
	const struct hook_survey *survey = capture__survey(recording->capture);
	char used[SESSION_TEXT_MAX] = "", missing[1024] = "", unmeasured[512] = "", item[64];

	for (int f = 0; f < HOOK_FEATURE_CNT; f++) {
		if (feature_missing(recording, f)) {
			add_to_list(missing, sizeof(missing), features[f].name);
			add_to_list(unmeasured, sizeof(unmeasured), features[f].categories);
			continue;
		}
		for (size_t i = 0; i < hook_cnt; i++) {
			if ((int)hooks[i].feature != f || !hook_taken(survey, i, purpose_of(recording)))
				continue;
			snprintf(item, sizeof(item), "%s:%s", hook_kind_name(hooks[i].kind), hooks[i].hook);
			add_to_list(used, sizeof(used), item);
		}
	}
	if (recording->options->hw && !capture__has_hw(recording->capture))
		add_to_list(missing, sizeof(missing), "hardware_counters");
	journal__say(&recording->journal, "hooks", "%s", used);
	journal__say(&recording->journal, "hooks_missing", "%s", missing);
	return journal__say(&recording->journal, "categories_unmeasured", "%s", unmeasured);
}

int recording_write_listeners(struct recording *recording)
{
	char list[SESSION_TEXT_MAX] = "";

	for (size_t i = 0; i < recording->target.listeners.cnt; i++)
		add_to_list(list, sizeof(list), recording->target.listeners.items[i].name);
	return journal__say(&recording->journal, "listeners", "%s", list);
}

static int write_modules(struct recording *recording)
{
	struct shard_row *row = &recording->journal.row;
	pid_t pid = recording->options->pid;

	for (size_t i = 0; i < recording->target.mappings.cnt; i++) {
		const struct target_mapping *mapping = &recording->target.mappings.items[i];
		char path[4200], build_id[ELF_ROWS_BUILD_ID_HEX] = "";
		int err;

		if (!mapping->exec || mapping->path[0] != '/')
			continue;
		if (!target_mapping_file(pid, mapping, path, sizeof(path)))
			elf_file_build_id(path, build_id);
		memset(row->nulls, 0, sizeof(row->nulls));
		row->values[MODULE_PID].u64 = pid;
		row->values[MODULE_START_ADDR].u64 = mapping->start;
		row->values[MODULE_END_ADDR].u64 = mapping->end;
		row->values[MODULE_FILE_OFF].u64 = mapping->file_off;
		row->values[MODULE_PATH].str = mapping->path;
		row->values[MODULE_BUILD_ID].str = build_id;
		if (!build_id[0])
			shard_row__set_null(row, MODULE_BUILD_ID);
		err = journal__append(&recording->journal, SHARD_TABLE_MODULE, row);
		if (err)
			return err;
	}
	return 0;
}

const char *recording_host(const struct recording *recording, char buf[SHARD_HOST_MAX + 1])
{
	struct utsname uts;

	uname(&uts);
	snprintf(buf, SHARD_HOST_MAX + 1, "%s", recording->options->host ? recording->options->host : uts.nodename);
	return buf;
}

int recording_write_limits(struct recording *recording)
{
	journal__say(&recording->journal, "tail", "%g", recording->options->tail);

	return journal__say(&recording->journal, "baseline", "%g", recording->options->baseline_per_s);
}

int recording_write_session(struct recording *recording)
{
	const struct record_options *options = recording->options;
	char cmdline[SESSION_TEXT_MAX] = "", host[SHARD_HOST_MAX + 1];
	uint64_t mono_ns, wall_ns;
	struct utsname uts;

	uname(&uts);
	target_cmdline(options->pid, cmdline, sizeof(cmdline));
	mono_ns = monotonic_ns();
	wall_ns = realtime_ns();
	journal__say(&recording->journal, "version", "%s", WHYLATE_VERSION);
	journal__say(&recording->journal, "host", "%s", recording_host(recording, host));
	journal__say(&recording->journal, "kernel", "%s", uts.release);
	journal__say(&recording->journal, "machine", "%s, %ld CPUs", uts.machine, sysconf(_SC_NPROCESSORS_ONLN));
	journal__say(&recording->journal, "pid", "%d", options->pid);
	journal__say(&recording->journal, "comm", "%s", recording->target.comm);
	if (!options->no_cmdline)
		journal__say(&recording->journal, "cmdline", "%s", cmdline);
	journal__say(&recording->journal, "mono_anchor_ns", "%" PRIu64, mono_ns);
	journal__say(&recording->journal, "wall_anchor_ns", "%" PRIu64, wall_ns);
	journal__say(&recording->journal, "mode", "%s", options->trace ? "trace" : "counters");
	journal__say(&recording->journal, "source", "%s", recording_of_sockets(recording) ? "sockets" : "functions");
	recording_write_limits(recording);
	if (recording->symbols.marked)
		journal__say(&recording->journal, "markers", "whylate");
	if (options->symbols)
		journal__say(&recording->journal, "symbols", "%s",
			     options->symbols_name ? options->symbols_name : options->symbols);
	recording_write_listeners(recording);
	write_hooks(recording);
	recording_write_settings(recording);
	write_modules(recording);
	return journal__flush(&recording->journal);
}

int recording_write_loss(struct recording *recording)
{
	const struct wl_loss_count *loss;
	uint64_t ts = monotonic_ns();
	uint32_t cpu_cnt;

	capture__counts(recording->capture, &recording->counts);
	loss = capture__loss_per_cpu(recording->capture, &cpu_cnt);
	for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++)
		for (int class = 0; class < WL_LOSS_CNT; class ++) {
			const struct wl_loss_count *count = &loss[cpu * WL_LOSS_CNT + class];

			if (count->emitted || count->lost)
				journal__loss(&recording->journal, ts, class, cpu, count->emitted, count->lost);
		}
	recording_probes_write_loss(recording, ts);
	recording_trace_write_loss(recording, ts);
	return recording->journal.err;
}

static int write_hw(struct recording *recording, uint64_t now)
{
	uint32_t epoch_cnt, rotations = capture__hw_rotations(recording->capture, &epoch_cnt);

	if (!rotations)
		return 0;
	journal__say(&recording->journal, SESSION_HW_ROTATIONS, "%u", rotations);
	if (rotations < 2 || epoch_cnt < 2)
		return recording->journal.err;
	/* The one that is on is not over. */
	return journal__say(&recording->journal, SESSION_HW_EPOCH_NS, "%" PRIu64,
			    (now - recording->clock.begin_ts) / (epoch_cnt - 1));
}

/* Replies whose last bytes were held back: "NS:COUNT …". */
static int write_held(struct recording *recording)
{
	const struct capture_counts *counts = &recording->counts;
	char text[CAPTURE_HELD_CLASSES * 32] = "";
	size_t len = 0;

	if (!counts->replies)
		return 0;
	for (size_t i = 0; i < CAPTURE_HELD_CLASSES; i++)
		if (counts->held[i].cnt)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%" PRIu64 ":%" PRIu64,
						len ? " " : "", counts->held[i].ns, counts->held[i].cnt);
	journal__say(&recording->journal, SESSION_REPLIES, "%" PRIu64, counts->replies);
	journal__say(&recording->journal, SESSION_REPLIES_HELD, "%s", text);
	journal__say(&recording->journal, SESSION_RESENT, "%" PRIu64, counts->resent);
	return journal__say(&recording->journal, SESSION_HELD_BY_WINDOW, "%" PRIu64, counts->held_by_window);
}

int recording_write_counts(struct recording *recording)
{
	const struct capture_counts *counts = &recording->counts;
	uint64_t now = recording->clock.end_ts ? recording->clock.end_ts : monotonic_ns();

	journal__say(&recording->journal, "begin_ts", "%" PRIu64, recording->clock.begin_ts);
	journal__say(&recording->journal, "end_ts", "%" PRIu64, now);
	journal__say(&recording->journal, "intervals_seen", "%" PRIu64, recording_intervals_seen(recording));
	if (recording_windows_rested(recording)) {
		uint64_t selecting_ns, attached_ns;

		window_plan__times(&recording->windows.plan, now, &selecting_ns, &attached_ns);
		journal__say(&recording->journal, "windows", "%" PRIu64, recording->windows.plan.window_cnt);
		journal__say(&recording->journal, "windows_selecting_ns", "%" PRIu64, selecting_ns);
		journal__say(&recording->journal, "windows_attached_ns", "%" PRIu64, attached_ns);
	}
	write_hw(recording, now);
	journal__say(&recording->journal, "intervals_selected", "%" PRIu64, counts->selected);
	journal__say(&recording->journal, "intervals_abandoned", "%" PRIu64, counts->abandoned);
	write_held(recording);
	journal__say(&recording->journal, "asks", "%" PRIu64, counts->asks);
	journal__say(&recording->journal, "asks_unsure", "%" PRIu64, counts->asks_unsure);
	journal__say(&recording->journal, "records_received", "%" PRIu64, recording->intervals.received);
	journal__say(&recording->journal, "rows_kept", "%" PRIu64, recording->intervals.kept);
	recording_probes_write_counts(recording);
	recording_trace_write_counts(recording);
	recording_stacks_write_counts(recording);
	return journal__say(&recording->journal, "rate", "%g",
			    recording->windows.on ? recording->windows.plan.rate
						  : (double)capture__rate(recording->capture) / CAPTURE_RATE_ALL);
}

uint64_t own_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return symbols_children_cpu_ns() + (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ULL +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
}

void recording_target_cpu(struct recording *recording)
{
	uint64_t cpu_ns = recording_cpu_ns(recording);

	recording->target.cpu_ns =
		cpu_ns > recording->target.cpu_begin_ns ? cpu_ns - recording->target.cpu_begin_ns : 0;
}

/* Below this share of a CPU the target is idle, and a share of its CPU time says nothing. */
#define IDLE_CPUS 0.01

static bool target_idles(const struct recording *recording)
{
	return recording->target.cpu_ns < IDLE_CPUS * (recording->clock.end_ts - recording->clock.begin_ts);
}

/* A few always do: connections are closed, threads end. */
static bool many_never_ended(const struct recording *recording)
{
	return recording->counts.abandoned > (recording->counts.seen + recording->counts.abandoned) / 100;
}

#define NEVER_ENDED                                                                                                    \
	"%" PRIu64 " intervals began and never ended: their connections were closed, their threads ended, or no line " \
	"of role 'end' of a symbol list met their keys"

static int write_censored(struct recording *recording)
{
	struct capture_censored censored;

	capture__censored(recording->capture, &censored);
	journal__say(&recording->journal, "intervals_censored", "%" PRIu64, censored.cnt);
	journal__say(&recording->journal, "censored_weight", "%.0f", censored.weight);
	return journal__say(&recording->journal, "censored_longest_ns", "%" PRIu64, censored.longest_ns);
}

/* What cannot be told by first bytes: the requests of one listener are inside TLS. */
static int write_type_notes(struct recording *recording)
{
	char name[INTERVAL_TYPE_LEN];
	uint32_t type;

	for (size_t i = 0; recording->types && (type = request_types__listener(recording->types, i)); i++) {
		if (request_types__protocol(recording->types, type) != REQUEST_TLS)
			continue;
		journal__note(&recording->journal,
			      "requests on %s are TLS inside the process: their types are not visible",
			      interval_type_name(type, &recording->target.listeners, &recording->symbols.lines, NULL,
						 name, sizeof(name)));
	}
	return recording->journal.err;
}

/* Which protocol each listener spoke, "tcp:80 http, …". */
static int write_protocols(struct recording *recording)
{
	char list[SESSION_TEXT_MAX] = "", name[INTERVAL_TYPE_LEN], line[INTERVAL_TYPE_LEN + 16];
	uint32_t type;

	for (size_t i = 0; (type = request_types__listener(recording->types, i)); i++) {
		const char *protocol = request_protocol_name(request_types__protocol(recording->types, type));

		if (WL_TYPE_SOURCE(type) == WL_SOURCE_FUNCTION)
			continue;
		snprintf(line, sizeof(line), "%s %s",
			 interval_type_name(type, &recording->target.listeners, &recording->symbols.lines, NULL, name,
					    sizeof(name)),
			 protocol ? protocol : "unknown");
		add_to_list(list, sizeof(list), line);
	}
	return journal__say(&recording->journal, "protocols", "%s", list);
}

int recording_write_cost(struct recording *recording)
{
	uint64_t bpf_ns;
	size_t cnt;

	capture__cost(recording->capture, &cnt, &bpf_ns);
	if (capture__cost_known(recording->capture))
		journal__say(&recording->journal, "cost_bpf_ns", "%" PRIu64, bpf_ns);
	return journal__say(&recording->journal, "target_cpu_ns", "%" PRIu64, recording->target.cpu_ns);
}

static void write_reader_notes(struct recording *recording)
{
	struct elf_reader_counts counts;

	elf_reader_counts(&counts);
	if (counts.late)
		journal__note(&recording->journal,
			      "reading what %u files say of their code took long: until it was read, call paths had "
			      "addresses in place of these files' functions",
			      counts.late);
	if (counts.given_up)
		journal__note(
			&recording->journal,
			"whylate-symbols could not read %u tables of the target's files: without them functions have "
			"no names, or stacks are unwound by guesses",
			counts.given_up);
}

/* What tracing may have cost; on a target that does little it is nothing. */
static double budget_ns(const struct recording *recording)
{
	double lasted_ns = (double)(monotonic_ns() - recording->clock.begin_ts);
	double budget = recording->options->budget;

	return fmax(budget * recording->target.cpu_ns, govern_nothing(budget) * lasted_ns);
}

int recording_write_final(struct recording *recording)
{
	const struct capture_unprobed unprobed = capture__unprobed(recording->capture);
	uint64_t bpf_ns;
	size_t cnt;

	capture__cost(recording->capture, &cnt, &bpf_ns);
	recording_write_cost(recording);
	if (!capture__cost_known(recording->capture))
		journal__note(&recording->journal, "what tracing cost is not known: measuring it takes CAP_SYS_ADMIN");
	journal__say(&recording->journal, "cost_agent_ns", "%" PRIu64,
		     own_cpu_ns() - recording->clock.own_cpu_begin_ns);
	write_censored(recording);
	recording_govern_write_notes(recording);
	if (!target_idles(recording) && bpf_ns > budget_ns(recording))
		journal__note(&recording->journal,
			      "tracing cost %.1f %% of the target's CPU time on the whole machine, over the "
			      "budget of %g %%%s",
			      100.0 * bpf_ns / recording->target.cpu_ns, 100 * recording->options->budget,
			      recording_windows_hint(recording));
	recording_budget_write_notes(recording);
	recording_loads_write_note(recording);
	recording_stacks_write_note(recording);
	recording_goroutines_write_note(recording);
	write_reader_notes(recording);
	if (unprobed.cnt)
		journal__note(&recording->journal,
			      "%" PRIu64 " processes that began while they were recorded ran for %.3g ms in all before "
			      "they had their probes, %" PRIu64
			      " of them or more to their end: calls in that time were not seen",
			      unprobed.cnt, (double)unprobed.ns / 1e6, unprobed.gone_cnt);
	if (many_never_ended(recording))
		journal__note(&recording->journal, NEVER_ENDED, recording->counts.abandoned);
	if (recording->target.exited)
		journal__note(&recording->journal, "the target exited while it was recorded");
	if (recording->probes_lost)
		journal__note(&recording->journal,
			      "the recording ended early: whylate-attach, which held its probes, was killed");
	if (recording->types)
		write_protocols(recording);
	write_type_notes(recording);
	if (recording->intervals.impossible)
		journal__note(&recording->journal, "%" PRIu64 " records were thrown away: their times cannot be true",
			      recording->intervals.impossible);
	return recording->journal.err;
}

bool recording_over_limits(const struct recording *recording)
{
	const struct wl_loss_count *loss = recording->counts.loss;
	uint64_t unopened = loss[WL_LOSS_OPEN_FULL].lost + loss[WL_LOSS_CUT].lost;
	uint64_t lost = loss[WL_LOSS_INTERVAL].lost + loss[WL_LOSS_TASK].lost + unopened;
	uint64_t emitted = loss[WL_LOSS_INTERVAL].emitted + loss[WL_LOSS_TASK].emitted + unopened;
	uint64_t missing = 0;

	for (int f = 0; f < HOOK_FEATURE_CNT; f++)
		missing += feature_missing(recording, f);
	return lost > recording->options->max_loss * emitted || missing > recording->options->max_missing;
}

static void say_loss(const struct recording *recording)
{
	const struct wl_loss_count *interval = &recording->counts.loss[WL_LOSS_INTERVAL];
	char text[512] = "";

	for (int class = 0; class < WL_LOSS_CNT; class ++) {
		uint64_t lost = recording->counts.loss[class].lost;
		size_t len = strlen(text);

		if (lost && class != WL_LOSS_MISSED_SWITCH)
			snprintf(text + len, sizeof(text) - len, "%s%" PRIu64 " %s", len ? ", " : "", lost,
				 loss_name(class));
	}
	log_info("loss: %s (emitted %" PRIu64 " = received %" PRIu64 " + lost %" PRIu64 "; received = kept %" PRIu64
		 " + passed over by retention %" PRIu64 ")",
		 text[0] ? text : "none", interval->emitted, recording->intervals.received, interval->lost,
		 recording->intervals.kept, recording->intervals.passed_over + recording->intervals.impossible);
}

static void say_missed_switches(const struct recording *recording)
{
	uint64_t missed = recording->counts.loss[WL_LOSS_MISSED_SWITCH].lost;

	if (missed)
		log_info("this kernel did not report %" PRIu64
			 " context switches or ends of interrupts (missed_switch); intervals that they touched are "
			 "flagged",
			 missed);
}

static void say_cost(struct recording *recording)
{
	double seconds = (recording->clock.end_ts - recording->clock.begin_ts) / 1e9;
	const struct capture_cost *costs;
	uint64_t bpf_ns;
	size_t cnt;

	costs = capture__cost(recording->capture, &cnt, &bpf_ns);
	for (size_t i = 0; i < cnt; i++)
		if (costs[i].run_ns * 100 >= bpf_ns)
			log_debug("  %-28s %12" PRIu64 " runs  %6.0f ns each  %5.1f %%", costs[i].program,
				  costs[i].run_cnt, (double)costs[i].run_ns / costs[i].run_cnt,
				  100.0 * costs[i].run_ns / bpf_ns);
	if (!capture__cost_known(recording->capture))
		log_info("cost: not known, because measuring it takes CAP_SYS_ADMIN; agent %.2f %% of a CPU",
			 (own_cpu_ns() - recording->clock.own_cpu_begin_ns) / 1e7 / seconds);
	else if (!target_idles(recording))
		log_info("cost: BPF %.1f ms on the whole machine, %.2f %% of the target's CPU time; agent %.2f %% of a "
			 "CPU",
			 bpf_ns / 1e6, 100.0 * bpf_ns / recording->target.cpu_ns,
			 (own_cpu_ns() - recording->clock.own_cpu_begin_ns) / 1e7 / seconds);
	else
		log_info("cost: BPF %.1f ms%s; agent %.2f %% of a CPU", bpf_ns / 1e6,
			 recording->target.exited ? "" : ", the target was idle",
			 (own_cpu_ns() - recording->clock.own_cpu_begin_ns) / 1e7 / seconds);
}

void recording_say_summary(struct recording *recording, const char *dir, const struct shard_writer_stats *stats)
{
	uint64_t rows = stats->rows_on_disk[SHARD_TABLE_INTERVAL];

	if (recording->options->brief && !recording->options->verbose) {
		recording_probes_say(recording);
		say_cost(recording);
		return;
	}
	if (recording_windows_rested(recording)) {
		uint64_t selecting_ns, attached_ns;

		window_plan__times(&recording->windows.plan, recording->clock.end_ts, &selecting_ns, &attached_ns);
		log_info("observed in %" PRIu64 " windows%s: selecting %.2f %%, attached %.2f %% of the time; the "
			 "number of intervals seen is an estimate",
			 recording->windows.plan.window_cnt,
			 recording->windows.plan.past_cnt > recording->windows.plan.window_cnt
				 ? " and, while the budget allowed it, all the time"
				 : "",
			 100.0 * selecting_ns / (recording->clock.end_ts - recording->clock.begin_ts),
			 100.0 * attached_ns / (recording->clock.end_ts - recording->clock.begin_ts));
	}
	log_info("%.1f s%s: %" PRIu64 " intervals seen, %" PRIu64 " selected, %" PRIu64 " kept; %" PRIu64
		 " bytes in %s, %.0f per kept interval",
		 (recording->clock.end_ts - recording->clock.begin_ts) / 1e9,
		 recording->target.exited ? " (the target exited)" : "", recording_intervals_seen(recording),
		 recording->counts.selected, rows, stats->bytes, dir, rows ? (double)stats->bytes / rows : 0);
	say_loss(recording);
	if (many_never_ended(recording))
		log_info(NEVER_ENDED, recording->counts.abandoned);
	say_missed_switches(recording);
	recording_probes_say(recording);
	recording_trace_say(recording);
	recording_stacks_say(recording);
	say_cost(recording);
}
