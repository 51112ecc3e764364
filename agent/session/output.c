// SPDX-License-Identifier: GPL-2.0-or-later
/* Where the shards of a recording go, from the name of the directory to the line that says what is in it. */
#include "base/dirs.h"
#include "session/exposed.h"
#include "session/recording.h"
#include "session/streaming.h"
#include "shard/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int make_dir_name(const struct recording *recording, char *dir, size_t sz)
{
	const struct record_options *options = recording->options;
	char comm[16] = "", stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (options->dir || !recording_keeps_files(recording)) {
		const char *name = options->dir ? options->dir : recording_stream_name(recording);

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

/* Shards of two recordings in one directory would be read as one: a directory that holds any is refused. */
static int check_unused(const char *dir)
{
	DIR *stream = dir_open(AT_FDCWD, dir, 0);
	const struct dirent *entry;
	int err = 0;

	while (!err && (entry = dir_next(stream)))
		err = shard_name_is(entry->d_name) ? -EEXIST : 0;
	dir_close(stream, 0);
	if (err)
		log_error("directory '%s' already holds a recording: name another one with -o, or remove it", dir);
	return err;
}

int recording_output_name(struct recording *recording)
{
	int err = make_dir_name(recording, recording->output.dir, RECORDED_DIR_SZ);

	if (err)
		log_error("directory name '%.64s…' is too long", recording->options->dir);
	else if (recording_keeps_files(recording))
		err = check_unused(recording->output.dir);
	return err;
}

int recording_output_open(struct recording *recording)
{
	const char *dir = recording->output.dir;
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

void recording_output_discard(struct recording *recording)
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
		rmdir(recording->output.dir);
}

int recording_output_close(struct recording *recording, int err)
{
	int flush_err, free_err;
	struct shard_writer_stats stats;

	if (!recording->journal.writer)
		return err;
	flush_err = shard_writer__flush(recording->journal.writer, true);
	shard_writer__stats(recording->journal.writer, &stats);
	free_err = shard_writer__free(recording->journal.writer);
	recording->journal.writer = NULL;
	err = err ?: flush_err ?: free_err;
	if (err)
		log_error("the recording in '%s' ended early: %s; what was written until then can be read",
			  recording->output.dir, strerror(-err));
	if (!recording->options->quiet)
		recording_say_summary(recording, recording->output.dir, &stats);
	recording_stream_close(recording);
	return err;
}
