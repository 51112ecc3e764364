// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/output.h"

#include "base/clock.h"
#include "base/dirs.h"
#include "base/whole_io.h"
#include "shard/format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEQ_END 1000000u

struct shard_output {
	char *dir;
	char *path; /* of the last shard that was created; "" before */
	char host[SHARD_HOST_MAX + 1];
	uint64_t session_id;
	uint32_t seq; /* of the next one */
	int fd;
	bool nowhere; /* no directory: the sizes are kept, the bytes are not */
	int err;      /* of the last append to this shard */
	uint64_t sz;
	uint64_t created_ts;
	uint64_t total_bytes;
	uint32_t shard_cnt;
};

void shard_host_name(char out[SHARD_HOST_MAX + 1], const char *host)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t sz = 0;

	for (; host && host[sz] && sz < SHARD_HOST_MAX; sz++)
		out[sz] = strchr(allowed, host[sz]) ? host[sz] : '_';
	out[sz] = 0;
	/* Neither a hidden file nor something that a command takes for an option. */
	if (!sz)
		strcpy(out, "host");
	else if (out[0] == '.' || out[0] == '-')
		out[0] = '_';
}

struct shard_output *shard_output__new(const char *dir, const char *host, uint64_t session_id)
{
	struct shard_output *output;
	int err = dir ? make_dirs(dir, 0755) : 0;

	if (err) {
		errno = -err;
		return NULL;
	}
	output = calloc(1, sizeof(*output));
	if (!output)
		return NULL;
	output->fd = -1;
	output->session_id = session_id;
	output->nowhere = !dir;
	output->dir = strdup(dir ?: "");
	output->path = strdup("");
	shard_host_name(output->host, host);
	if (output->dir && output->path)
		return output;
	shard_output__free(output);
	errno = ENOMEM;
	return NULL;
}

/* Takes the first sequence number that is free: a file that exists is somebody's data. */
static int output__open_next(struct shard_output *output)
{
	if (output->nowhere)
		return 0;
	for (; output->seq < SEQ_END; output->seq++) {
		char *path;

		if (asprintf(&path, "%s/%s-%016" PRIx64 "-%06u.wls", output->dir, output->host, output->session_id,
			     output->seq) < 0)
			return -ENOMEM;
		output->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
		if (output->fd >= 0) {
			free(output->path);
			output->path = path;
			return 0;
		}
		free(path);
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int output__put_header(struct shard_output *output)
{
	struct shard_file_header header = {
		.major = SHARD_VERSION_MAJOR,
		.minor = SHARD_VERSION_MINOR,
		.session_id = output->session_id,
		.seq = output->seq,
		.created_wall_ts = realtime_ns(),
	};
	struct shard_buf bytes = {0};
	char text[256];
	int err;

	snprintf(text, sizeof(text), "whylate shard, layout: docs/SHARD-FORMAT.md; writer: whylate %s; host: %s\n",
		 WHYLATE_VERSION, output->host);
	err = shard_file_header__put(&bytes, &header, text);
	if (!err)
		err = shard_output__append(output, bytes.items, bytes.cnt);
	vec_free(&bytes);
	return err;
}

int shard_output__create(struct shard_output *output, uint64_t now_ts)
{
	int err = output__open_next(output);

	if (err)
		return err;
	output->sz = 0;
	output->err = 0;
	output->created_ts = now_ts;
	err = output__put_header(output);
	if (err) {
		unlink(output->path);
		close(output->fd);
		output->fd = -1;
		return err;
	}
	output->seq++;
	output->shard_cnt++;
	return 0;
}

int shard_output__append(struct shard_output *output, const void *bytes, size_t sz)
{
	if (output->fd < 0 && !output->nowhere)
		return -EBADF;
	if (output->err)
		return output->err;
	output->err = output->nowhere ? 0 : whole_write(output->fd, bytes, sz, IO_HERE);
	if (output->err) {
		/* If even the cut fails, a reader finds a torn tail and says so: no more is lost than the same rows. */
		while (ftruncate(output->fd, output->sz) && errno == EINTR)
			;
		return output->err;
	}
	output->sz += sz;
	output->total_bytes += sz;
	return 0;
}

int shard_output__sync(struct shard_output *output)
{
	return !output->nowhere && fdatasync(output->fd) ? -errno : 0;
}

int shard_output__close(struct shard_output *output)
{
	int fd = output->fd;

	output->fd = -1;
	return fd >= 0 && close(fd) ? -errno : 0;
}

const char *shard_output__path(const struct shard_output *output)
{
	return output->path;
}

uint64_t shard_output__sz(const struct shard_output *output)
{
	return output->sz;
}

uint64_t shard_output__created_ts(const struct shard_output *output)
{
	return output->created_ts;
}

uint64_t shard_output__total_bytes(const struct shard_output *output)
{
	return output->total_bytes;
}

uint32_t shard_output__shard_cnt(const struct shard_output *output)
{
	return output->shard_cnt;
}

void shard_output__free(struct shard_output *output)
{
	if (!output)
		return;
	shard_output__close(output);
	free(output->dir);
	free(output->path);
	free(output);
}
