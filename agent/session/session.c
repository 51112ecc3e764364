// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/session.h"

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/privilege.h"
#include "capture/capture.h"
#include "session/client.h"
#include "session/exposed.h"
#include "session/list.h"
#include "session/probes.h"
#include "session/recording.h"
#include "session/streaming.h"
#include "target/elf_reader.h"
#include "target/proc_file.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* Libraries are loaded one after the other. */
#define READER_IDLE_NS (2 * SECOND_NS)
/* Records wait for a file's symbols for so long. */
#define READER_PATIENCE_NS 100000000ULL
#define POLL_MS            100
#define ANCESTORS_MAX      8
#define MAPPED_SZ          (128 << 10)
#define RING_SZ            (4 << 20)
/* A program and what it calls take their room beside them. */
#define RING_SZ_CLIENT (2 << 20)
/* Most of what trace mode sends goes through the rings of words; whole intervals do not, if all of them are kept. */
#define RING_SZ_TRACE     (2 << 20)
#define RING_SZ_TRACE_ALL (8 << 20)

static volatile sig_atomic_t stop_signals;

static void on_stop_signal(int signal_no)
{
	/* The second one ends at once, whatever is under way. */
	if (++stop_signals > 1)
		_exit(128 + signal_no);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop_signal};

	stop_signals = 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* A full file-size limit and a closed pipe are errors to report, not ways to die. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

bool recording_is_stopped(void)
{
	return stop_signals;
}

static void refresh_mappings(struct recording *recording, pid_t pid)
{
	target_mappings mappings = {};

	if (target_mappings_read(pid, &mappings))
		return;
	target_mappings_free(&recording->target.mappings);
	recording->target.mappings = mappings;
	recording->target.mappings_ts = monotonic_ns();
}

static bool listens_already(const struct recording *recording, const struct target_listener *listener)
{
	for (size_t i = 0; i < recording->target.listeners.cnt; i++)
		if (!strcmp(recording->target.listeners.items[i].name, listener->name))
			return true;
	return false;
}

/*
 * Where the target listens by now: the kernel side itself sees only sockets of TCP that begin to listen, and nothing
 * between windows.
 */
int recording_refresh_listeners(struct recording *recording)
{
	size_t cnt = recording->target.listeners.cnt;
	target_listeners now = {};
	int err = 0;

	if (!recording_of_sockets(recording) || target_listeners_read(&recording->target.processes, &now))
		return 0;
	for (size_t i = 0; i < now.cnt && !err; i++)
		if (!listens_already(recording, &now.items[i]))
			err = vec_push(&recording->target.listeners, now.items[i]) ? -ENOMEM : 0;
	vec_free(&now);
	if (err || recording->target.listeners.cnt == cnt)
		return err;
	err = capture__set_listeners(recording->capture, &recording->target.processes, &recording->target.listeners);
	if (err)
		log_warn("requests on sockets that the target has opened meanwhile are not seen: %s", strerror(-err));
	return recording_write_listeners(recording);
}

static int every_second(struct recording *recording)
{
	int err = recording_write_loss(recording);

	if (!err)
		err = recording_write_counts(recording);
	if (!err)
		err = recording_summaries_write(recording, false);
	if (!err)
		err = capture__rotate_hw(recording->capture);
	if (!err)
		err = recording_silent_say(recording, false);
	elf_reader_rest(READER_IDLE_NS);
	if (!err)
		err = recording_own_pids_changed(recording);
	if (!err && recording->options->observed) {
		recording_target_cpu(recording);
		err = recording_write_cost(recording);
	}
	if (monotonic_ns() - recording->target.mappings_ts > 10 * SECOND_NS) {
		refresh_mappings(recording, recording->options->pid);
		if (!err)
			err = recording_refresh_listeners(recording);
	}
	if (!recording->options->quiet) {
		double seconds = (monotonic_ns() - recording->clock.begin_ts) / 1e9;

		log_progress("%.0f s: %" PRIu64 " intervals seen, %" PRIu64 " kept", seconds,
			     recording_intervals_seen(recording), recording->intervals.kept);
	}
	return err;
}

typedef int (*recording_step)(struct recording *recording);

/* One after the other, until one fails. */
static int take_steps(struct recording *recording, const recording_step *steps, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		err = steps[i](recording);
	return err;
}

#define TAKE_STEPS(recording, steps) take_steps(recording, steps, sizeof(steps) / sizeof(steps[0]))

/* Everything that was in the rings has been handed over. */
static const recording_step advances[] = {
	recording_probes_advance,
	recording_trace_advance,
	recording_stacks_advance,
};

static const recording_step looks[] = {
	recording_follow_moved, recording_windows_look, recording_client_step,
	recording_budget_keep,  recording_loads_watch,  recording_trace_slots_watch,
};

static bool is_over(struct recording *recording)
{
	recording->target.exited = recording_target_gone(recording);
	return recording->target.exited || recording_probes_lost(recording);
}

static int record_until_done(struct recording *recording)
{
	uint64_t begin = recording->clock.begin_ts, next_second = begin + SECOND_NS;
	int err = 0;

	recording->clock.flushed_ts = begin;
	recording->clock.until_ts =
		recording->options->duration_ns ? begin + recording->options->duration_ns : UINT64_MAX;
	while (!stop_signals && !err) {
		uint64_t now = monotonic_ns(), end = recording->clock.until_ts;
		int timeout_ms = POLL_MS;
		enum pace_class class;

		if (now >= end)
			break;
		if (end - now < POLL_MS * 1000000ULL)
			timeout_ms = (end - now) / 1000000 + 1;
		timeout_ms = recording_windows_timeout(recording, timeout_ms);
		class = recording_windows_pace(recording);
		pace__rest(recording->pace, now + (uint64_t)timeout_ms * 1000000, class);
		if (class == PACE_TIMED) {
			sleep_ns((uint64_t)timeout_ms * 1000000);
			err = recording_windows_step(recording);
			continue;
		}
		err = recording_poll(recording, timeout_ms);
		if (err == -EINTR || err > 0)
			err = 0;
		recording->windows.read_ts = monotonic_ns();
		recording_retain(recording);
		if (!err)
			err = TAKE_STEPS(recording, advances);
		if (!err && is_over(recording))
			break;
		if (!err)
			err = TAKE_STEPS(recording, looks);
		if (recording->symbols.unsafe)
			break;
		capture__measure_cost(recording->capture);
		recording_stream_tick(recording);
		recording_metrics_tick(recording);
		if (!err)
			err = recording_limits_poll(recording);
		recording_govern(recording);
		now = monotonic_ns();
		if (!err && now >= next_second) {
			err = every_second(recording);
			next_second = now + SECOND_NS;
		}
		if (!err && recording_flush_is_due(recording))
			err = journal__flush(&recording->journal);
	}
	log_progress_end();
	/* Whatever was being attached when that happened. */
	return err == -EOWNERDEAD && recording_probes_lost(recording) ? 0 : err;
}

struct program_opts recording_program_opts(const struct recording *recording)
{
	return (struct program_opts){.debuginfo_dir = recording->options->debuginfo_dir, .want_debuginfod = true};
}

int recording_open_program(struct recording *recording)
{
	const struct program_opts opts = recording_program_opts(recording);
	int err = program__open(recording->options->pid, &opts, &recording->program);

	if (err)
		log_error("cannot read the code of process %d: %s", recording->options->pid, strerror(-err));
	return err;
}

static int read_symbols(struct recording *recording)
{
	const struct record_options *options = recording->options;
	int err = symbol_list_read(options->symbols, &recording->symbols.lines);

	if (!err)
		err = recording_open_program(recording);
	if (err)
		return err;
	err = symbol_list_resolve(&recording->symbols.lines, options->symbols, recording->program,
				  &recording->symbols.targets);
	if (!err)
		recording_probes_learn(recording);
	return err;
}

/* The nearest ancestor that listens: a worker closes the socket that its parent accepts on.  0: none. */
static pid_t listening_ancestor(pid_t pid)
{
	struct proc_stat stat;

	for (int i = 0; i < ANCESTORS_MAX && !proc_stat_read(pid, &stat) && stat.ppid > 1; i++) {
		target_processes one = {0};
		target_listeners listeners = {0};
		bool listens = !vec_push(&one, (struct target_process){.pid = stat.ppid}) &&
			       !target_listeners_read(&one, &listeners) && listeners.cnt;

		vec_free(&one);
		vec_free(&listeners);
		pid = stat.ppid;
		if (listens)
			return pid;
	}
	return 0;
}

static void say_listens_nowhere(pid_t pid)
{
	pid_t ancestor = listening_ancestor(pid);
	char comm[16] = "?";

	if (!ancestor) {
		log_warn("process %d listens nowhere: requests are seen only if it starts to; -s FILE makes calls of a "
			 "function the intervals",
			 pid);
		return;
	}
	target_comm(ancestor, ancestor, comm);
	log_warn("process %d listens nowhere, `%s`, which has started it, does: -p %d records the requests of both",
		 pid, comm, ancestor);
}

static int prepare_target(struct recording *recording)
{
	const struct record_options *options = recording->options;
	const struct privilege_uses uses = recording_privilege_uses(recording, true);
	int err;

	privilege_narrow(&uses);
	err = recording_members_open(recording);
	if (err)
		return err;
	target_comm(options->pid, options->pid, recording->target.comm);
	recording_stay_off(recording);
	refresh_mappings(recording, options->pid);
	err = options->symbols ? read_symbols(recording) : recording_find_markers(recording);
	if (err || !recording_of_sockets(recording))
		return err;
	err = target_listeners_read(&recording->target.processes, &recording->target.listeners);
	if (err) {
		log_error("cannot find out where process %d listens: %s", options->pid, strerror(-err));
		return err;
	}
	if (!recording->target.listeners.cnt)
		say_listens_nowhere(options->pid);
	return 0;
}

static int open_capture(struct recording *recording)
{
	const struct record_options *options = recording->options;
	uint32_t ring_sz_trace = options->tail > 0 ? RING_SZ_TRACE : RING_SZ_TRACE_ALL;
	struct capture_opts opts = {
		.processes = &recording->target.processes,
		.listeners = &recording->target.listeners,
		.cgroup = recording_cgroup(recording),
		.sockets = recording_of_sockets(recording),
		.first_bytes = recording->types &&
			       (recording_of_sockets(recording) || probe_lines_have_types(&recording->symbols.lines)),
		.probes = recording_probes_wanted(recording),
		.children = options->children || options->target->cgroup.id,
		.trace = options->trace,
		.outside_max = options->scope_max,
		.rate = options->rate * CAPTURE_RATE_ALL,
		.windows = recording->windows.on,
		.watch_first = recording->windows.on && recording->windows.plan.share >= 1,
		.goroutines = recording->go.processes.cnt > 0,
		.stacks = recording_stacks_hz(recording) > 0,
		.values = recording->options->values ? recording->options->values_depth + 1 : 0,
		.ring_sz = options->ring_sz  ? options->ring_sz
			   : options->trace  ? ring_sz_trace
			   : options->client ? RING_SZ_CLIENT
					     : RING_SZ,
		.hw = options->hw,
		.hw_software = options->hw_software,
		.btf_path = options->btf_path,
	};

	recording->capture = capture__new(&opts);
	return recording->capture ? recording_goroutines_begin(recording) : -errno;
}

static int start_capture(struct recording *recording)
{
	int err = capture__start(recording->capture);

	if (!err)
		err = recording_trace_slots_begin(recording);
	if (!err)
		recording_probes_begin(recording);
	return err;
}

static const recording_step attachments[] = {
	recording_list_open, recording_values_open, recording_budget_try, start_capture, recording_list_begin,
};

static void begin(struct recording *recording)
{
	elf_reader_rest(0);
	recording_confine(recording);
	recording_pace_begin(recording);
	capture__select(recording->capture);
	recording->clock.begin_ts = monotonic_ns();
	recording->clock.own_cpu_begin_ns = own_cpu_ns();
	recording->target.cpu_begin_ns = recording_cpu_ns(recording);
	if (!recording->options->quiet)
		log_info("recording %s (pid %d) into %s%s", recording->target.comm, recording->options->pid,
			 recording->output.dir, recording->options->duration_ns ? "" : " until Ctrl-C");
	recording_windows_begin(recording);
	recording_govern_begin(recording);
}

static const recording_step endings[] = {recording_probes_finish, recording_trace_finish, recording_stacks_finish};

static int write_summaries(struct recording *recording)
{
	return recording_summaries_write(recording, true);
}

static const recording_step totals[] = {
	recording_write_loss,
	write_summaries,
	recording_write_counts,
	recording_write_final,
};

static int end(struct recording *recording, int err)
{
	int late_err;

	recording_pace_end(recording);
	recording->clock.end_ts = monotonic_ns();
	recording_target_cpu(recording);
	recording_silent_say(recording, true);
	capture__stop(recording->capture);
	late_err = recording_poll(recording, 0);
	if (!err && late_err < 0)
		err = late_err;
	if (!err)
		err = TAKE_STEPS(recording, endings);
	/* The counts are final now; what can still be written is written, even after an error. */
	late_err = TAKE_STEPS(recording, totals);
	return err ? err : late_err;
}

static int run(struct recording *recording)
{
	const struct session_client *client = recording->options->client;
	int err;

	recording->clock.begin_ts = monotonic_ns();
	recording_retain(recording);
	err = recording_write_session(recording);
	if (!err) {
		err = TAKE_STEPS(recording, attachments);
		if (err) {
			recording_output_discard(recording);
			return err;
		}
		recording_stream_start(recording);
		err = recording_stacks_start(recording);
		if (!err)
			err = recording_write_own_pids(recording);
	}
	begin(recording);
	if (!err && client)
		err = client->begin(recording->client);
	elf_reader_patience(READER_PATIENCE_NS);
	if (!err)
		err = record_until_done(recording);
	elf_reader_patience(0);
	if (!err && client)
		err = client->end(recording->client);
	err = end(recording, err);
	return !err && recording->probes_lost ? -EOWNERDEAD : err;
}

static void release(struct recording *recording)
{
	stream__free(recording->output.stream);
	capture__free(recording->capture);
	recording_metrics_free(recording);
	trace__free(recording->trace);
	if (recording->client)
		recording->options->client->free(recording->client);
	recording_budget_free(recording);
	recording_loads_free(recording);
	recording_trace_slots_free(recording);
	recording_list_free(recording);
	recording_probes_free(recording);
	stacks__free(recording->stacks);
	retention__free(recording->retention);
	vec_free(&recording->early.records);
	summaries__free(recording->summaries);
	thread_names__free(recording->threads);
	request_types__free(recording->types);
	data_names__free(recording->target.data_names);
	target_mappings_free(&recording->target.mappings);
	recording_goroutines_free(recording);
	recording_members_free(recording);
	vec_free(&recording->target.listeners);
	symbol_list_free(&recording->symbols.lines);
	probe_targets_free(&recording->symbols.targets);
	sampled_values__free(recording->values);
	program__free(recording->program);
}

static int open_handles(struct recording *recording)
{
	const struct record_options *options = recording->options;
	bool types = options->types || probe_lines_have_types(&recording->symbols.lines);

	recording->threads = thread_names__new();
	recording->types = types ? request_types__new(options->type_by) : NULL;
	recording->target.data_names = data_names__new();
	recording->retention = retention__new(options->tail, options->baseline_per_s);
	if (recording->threads && recording->target.data_names && recording->retention &&
	    !recording_summaries_begin(recording) && (recording->types || !types))
		return 0;
	log_error("out of memory");
	return -ENOMEM;
}

/* What comes before the first hook is attached, in this order; each 0, or -errno after one line. */
static const recording_step preparations[] = {
	recording_limits_open,     prepare_target,        open_handles,           recording_stream_open,
	recording_metrics_open,    recording_output_name, recording_windows_init, recording_client_open,
	recording_goroutines_open, open_capture,          recording_output_open,  recording_trace_open,
	recording_probes_open,
};

int recording_run(const struct record_options *options, struct recording_result *result)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int err;

	if (!recording)
		return EXIT_FAILED;
	memset(result, 0, sizeof(*result));
	recording->options = options;
	recording->output.dir = result->dir;
	log_set_verbose(options->verbose);
	catch_signals();
	recording_step_back();
	/*
	 * Reading a program and analysing what was recorded take much for a short time.  Each large piece is a mapping
	 * of its own, which goes back when it is freed; glibc would after a while take them from the heap, and keep it.
	 */
	mallopt(M_MMAP_THRESHOLD, MAPPED_SZ);
	mallopt(M_TRIM_THRESHOLD, MAPPED_SZ);
	err = TAKE_STEPS(recording, preparations);
	if (!err) {
		err = recording_output_close(recording, run(recording));
		result->kept = recording->intervals.kept;
		result->over_limits = recording_over_limits(recording) || recording_stream_over_limits(recording);
	}
	release(recording);
	free(recording);
	if (err)
		return EXIT_FAILED;
	return result->over_limits ? EXIT_LIMITS : EXIT_DONE;
}
