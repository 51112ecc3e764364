// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/session.h"

#include "base/exit_code.h"
#include "base/log.h"
#include "base/names.h"
#include "base/privilege.h"
#include "capture/capture.h"
#include "session/client.h"
#include "session/exposed.h"
#include "session/list.h"
#include "session/probes.h"
#include "session/recording.h"
#include "session/streaming.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define POLL_MS   100
#define MAPPED_SZ (128 << 10)
#define RING_SZ   (4 << 20)
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
		bool timed;

		if (now >= end)
			break;
		if (end - now < POLL_MS * 1000000ULL)
			timeout_ms = (end - now) / 1000000 + 1;
		timeout_ms = recording_windows_timeout(recording, timeout_ms);
		timed = recording_windows_timed(recording);
		pace__rest(recording->pace, now + (uint64_t)timeout_ms * 1000000, timed);
		if (timed) {
			const struct timespec pause = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

			nanosleep(&pause, NULL);
			err = recording_windows_step(recording);
			continue;
		}
		err = capture__poll(recording->capture, timeout_ms, recording_on_record, recording);
		if (err == -EINTR || err > 0)
			err = 0;
		recording_retain(recording);
		if (!err)
			err = recording_probes_advance(recording);
		if (!err)
			err = recording_trace_advance(recording, capture__polled_ts(recording->capture));
		if (!err)
			err = recording_stacks_advance(recording, capture__polled_ts(recording->capture));
		if (!err && recording_target_gone(recording)) {
			recording->target.exited = true;
			break;
		}
		if (!err && recording_probes_lost(recording))
			break;
		if (!err)
			err = recording_follow_moved(recording);
		if (!err)
			err = recording_windows_step(recording);
		if (!err)
			err = recording_client_step(recording);
		if (!err)
			err = recording_budget_keep(recording);
		if (!err)
			err = recording_loads_watch(recording);
		if (!err)
			err = recording_trace_slots_watch(recording);
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

static int prepare_target(struct recording *recording)
{
	const struct record_options *options = recording->options;
	const struct privilege_uses uses = recording_privilege_uses(recording, true);
	int err;

	privilege_narrow(&uses);
	err = recording_members_open(recording);
	if (err)
		return err;
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
		log_warn("process %d listens nowhere: requests are seen only if it starts to; -s FILE makes calls of a "
			 "function the intervals",
			 options->pid);
	return 0;
}

static int make_dir_name(struct recording *recording, char *dir, size_t sz)
{
	const struct record_options *options = recording->options;
	char comm[16] = "", stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (options->dir || !recording_keeps_files(recording)) {
		const char *name = options->dir ? options->dir : options->stream.url;

		if (strlen(name) >= sz)
			return -ENAMETOOLONG;
		strcpy(dir, name);
		return 0;
	}
	target_comm(options->pid, options->pid, comm);
	for (char *c = comm; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
			*c = '_';
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	snprintf(dir, sz, "whylate-%s-%d-%s", comm, options->pid, stamp);
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
		.values = recording->options->values,
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

/* Shards of two recordings in one directory would be read as one: a directory that holds any is refused. */
static int check_unused(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int err = 0;

	while (stream && !err && (entry = readdir(stream))) {
		size_t len = strlen(entry->d_name);

		if (len > 4 && !strcmp(entry->d_name + len - 4, ".wls"))
			err = -EEXIST;
	}
	if (stream)
		closedir(stream);
	if (err)
		log_error("directory '%s' already holds a recording: name another one with -o, or remove it", dir);
	return err;
}

static int open_output(struct recording *recording, const char *dir)
{
	const struct record_options *options = recording->options;
	char host[SHARD_HOST_MAX + 1];
	struct shard_writer_opts opts = {
		.dir = recording_keeps_files(recording) ? dir : NULL,
		.host = recording_host(recording, host),
		.rotate_bytes = options->rotate_bytes,
		.rotate_age_ns = options->rotate_age_ns,
		.session_id = monotonic_ns() ^ (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid() << 48,
	};
	int err = recording_stream_begin(recording, &opts);

	if (err)
		return err;
	recording_metrics_begin(recording, opts.session_id);
	recording->output.made_dir = access(dir, F_OK) != 0;
	recording->journal.writer = shard_writer__new(&opts);
	if (recording->journal.writer)
		return 0;
	err = -errno;
	log_error("cannot write to directory '%s': %s", dir, strerror(-err));
	recording_stream_discard(recording);
	return err;
}

/* Nothing was recorded: leave the directory as it was. */
static void discard_output(struct recording *recording, const char *dir)
{
	char path[PATH_MAX];

	if (!recording->journal.writer)
		return;
	snprintf(path, sizeof(path), "%s", shard_writer__path(recording->journal.writer));
	shard_writer__free(recording->journal.writer);
	recording->journal.writer = NULL;
	recording_stream_discard(recording);
	if (!recording_keeps_files(recording))
		return;
	unlink(path);
	if (recording->output.made_dir)
		rmdir(dir);
}

static int run(struct recording *recording, const char *dir)
{
	int err, late_err;

	recording->clock.begin_ts = monotonic_ns();
	recording_retain(recording);
	err = recording_write_session(recording);
	if (!err) {
		err = recording_list_open(recording);
		if (!err)
			err = recording_values_open(recording);
		if (!err)
			err = recording_budget_try(recording);
		if (!err)
			err = capture__start(recording->capture);
		if (!err)
			err = recording_trace_slots_begin(recording);
		if (!err)
			recording_probes_begin(recording);
		if (!err)
			err = recording_list_begin(recording);
		if (err) {
			discard_output(recording, dir);
			return err;
		}
		recording_stream_start(recording);
		err = recording_stacks_start(recording);
		if (!err)
			err = recording_write_own_pids(recording);
	}
	recording_confine(recording);
	recording_pace_begin(recording);
	capture__select(recording->capture);
	recording->clock.begin_ts = monotonic_ns();
	recording->clock.own_cpu_begin_ns = own_cpu_ns(recording);
	recording->target.cpu_begin_ns = recording_cpu_ns(recording);
	if (!recording->options->quiet)
		log_info("recording %s (pid %d) into %s%s", recording->target.comm, recording->options->pid, dir,
			 recording->options->duration_ns ? "" : " until Ctrl-C");
	recording_windows_begin(recording);
	recording_govern_begin(recording);
	if (!err && recording->client)
		err = recording->options->client->begin(recording->client);
	if (!err)
		err = record_until_done(recording);
	if (!err && recording->client)
		err = recording->options->client->end(recording->client);
	recording_pace_end(recording);
	recording->clock.end_ts = monotonic_ns();
	recording_target_cpu(recording);
	recording_silent_say(recording, true);
	capture__stop(recording->capture);
	late_err = capture__poll(recording->capture, 0, recording_on_record, recording);
	if (!err && late_err < 0)
		err = late_err;
	if (!err)
		err = recording_probes_finish(recording);
	if (!err)
		err = recording_trace_finish(recording);
	if (!err)
		err = recording_stacks_finish(recording);
	/* The counts are final now; what can still be written is written, even after an error. */
	late_err = recording_write_loss(recording);
	if (!late_err)
		late_err = recording_summaries_write(recording, true);
	if (!late_err)
		late_err = recording_write_counts(recording);
	if (!late_err)
		late_err = recording_write_final(recording);
	if (!err)
		err = late_err;
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

static int say_end(struct recording *recording, const char *dir, int err)
{
	int close_err = recording->journal.writer ? shard_writer__flush(recording->journal.writer, true) : 0;
	struct shard_writer_stats stats = {};

	if (recording->journal.writer)
		shard_writer__stats(recording->journal.writer, &stats);
	if (recording->journal.writer) {
		int free_err = shard_writer__free(recording->journal.writer);

		recording->journal.writer = NULL;
		if (!close_err)
			close_err = free_err;
	}
	if (!err)
		err = close_err;
	if (err)
		log_error("the recording in '%s' ended early: %s; what was written until then can be read", dir,
			  strerror(-err));
	if (!recording->options->quiet)
		recording_say_summary(recording, dir, &stats);
	recording_stream_close(recording);
	return err;
}

int recording_run(const struct record_options *options, struct recording_result *result)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int err;

	if (!recording)
		return EXIT_FAILED;
	memset(result, 0, sizeof(*result));
	recording->options = options;
	log_set_verbose(options->verbose);
	catch_signals();
	recording_step_back();
	/*
	 * Reading a program and analysing what was recorded take much for a short time.  Each large piece is a mapping
	 * of its own, which goes back when it is freed; glibc would after a while take them from the heap, and keep it.
	 */
	mallopt(M_MMAP_THRESHOLD, MAPPED_SZ);
	mallopt(M_TRIM_THRESHOLD, MAPPED_SZ);
	err = recording_limits_open(recording);
	if (err)
		goto cleanup;
	options = recording->options;
	err = prepare_target(recording);
	if (err)
		goto cleanup;
	target_comm(options->pid, options->pid, recording->target.comm);
	recording->threads = thread_names__new();
	if (options->types || probe_lines_have_types(&recording->symbols.lines))
		recording->types = request_types__new(options->type_by);
	recording->target.data_names = data_names__new();
	recording->retention = retention__new(options->tail, options->baseline_per_s);
	if (!recording->threads || !recording->target.data_names || !recording->retention ||
	    recording_summaries_begin(recording) || (options->types && !recording->types)) {
		err = -ENOMEM;
		log_error("out of memory");
		goto cleanup;
	}
	err = recording_stream_open(recording) ?: recording_metrics_open(recording);
	if (err)
		goto cleanup;
	err = make_dir_name(recording, result->dir, sizeof(result->dir));
	if (err) {
		log_error("directory name '%.64s…' is too long", options->dir);
		goto cleanup;
	}
	if (recording_keeps_files(recording))
		err = check_unused(result->dir);
	if (err)
		goto cleanup;
	recording->output.dir = result->dir;
	err = recording_windows_init(recording);
	if (err)
		goto cleanup;
	if (options->client)
		err = options->client->open(recording, options->client_options, &recording->client);
	if (err)
		goto cleanup;
	err = recording_goroutines_open(recording);
	if (err)
		goto cleanup;
	err = open_capture(recording);
	if (err)
		goto cleanup;
	err = open_output(recording, result->dir);
	if (err)
		goto cleanup;
	err = recording_trace_open(recording);
	if (!err)
		err = recording_probes_open(recording);
	if (err)
		goto cleanup;
	err = run(recording, result->dir);
	if (recording->journal.writer)
		err = say_end(recording, result->dir, err);
	result->kept = recording->intervals.kept;
	result->over_limits = recording_over_limits(recording) || recording_stream_over_limits(recording);
cleanup:
	release(recording);
	free(recording);
	if (err)
		return EXIT_FAILED;
	return result->over_limits ? EXIT_LIMITS : EXIT_DONE;
}
