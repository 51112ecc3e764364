// SPDX-License-Identifier: GPL-2.0-or-later
/* A body as frames, each of them checked before anything is stored. */
#include "net/collect/collector_internal.h"

#include <errno.h>
#include <string.h>

void request__refuse(struct request *request, enum refusal refusal, const char *why)
{
	if (request->refusal)
		return;
	request->refusal = refusal;
	request->why = why;
	if (!request->retry_s && refusal_may_come_again(refusal))
		request->retry_s = refusal == REFUSAL_DISK_FULL ? 10 : 1;
	/* Nobody is going to read it. */
	request__free_body(request);
}

/* One per thread that checks; they are large, so they are kept. */
static struct block_checker *take_checker(struct collector *collector)
{
	struct block_checker *checker = NULL;

	pthread_mutex_lock(&collector->checkers_lock);
	if (collector->checker_cnt)
		checker = collector->checkers[--collector->checker_cnt];
	pthread_mutex_unlock(&collector->checkers_lock);
	return checker ?: calloc(1, sizeof(*checker));
}

static void free_checker(struct block_checker *checker)
{
	block_checker__clear(checker);
	free(checker);
}

static void give_checker(struct collector *collector, struct block_checker *checker)
{
	bool kept;

	pthread_mutex_lock(&collector->checkers_lock);
	kept = collector->checker_cnt < CHECKERS_MAX;
	if (kept)
		collector->checkers[collector->checker_cnt++] = checker;
	pthread_mutex_unlock(&collector->checkers_lock);
	if (!kept)
		free_checker(checker);
}

void collector__free_checkers(struct collector *collector)
{
	while (collector->checker_cnt)
		free_checker(collector->checkers[--collector->checker_cnt]);
}

/* The host's clock anchors, from what its session says of itself. */
static void take_anchors(struct request *request, const struct shard_block *block)
{
	const struct shard_block_column *key = shard_block__column(block, "key"),
					*value = shard_block__column(block, "value");

	if (!key || !value || key->type != SHARD_STR || value->type != SHARD_STR || key->nulls || value->nulls)
		return;
	for (uint32_t i = 0; i < block->row_cnt; i++) {
		if (!strcmp(key->values[i].str, "mono_anchor_ns"))
			request->times.mono_anchor_ns = strtoll(value->values[i].str, NULL, 10);
		else if (!strcmp(key->values[i].str, "wall_anchor_ns"))
			request->times.wall_anchor_ns = strtoll(value->values[i].str, NULL, 10);
	}
}

static void note_times(struct request *request, const struct block_checked *checked)
{
	const struct shard_block_header *header = &checked->header;

	if (!strcmp(header->table, "session"))
		take_anchors(request, &checked->block);
	else if (!strcmp(header->table, "interval") && header->min_ts <= header->max_ts && header->max_ts < INT64_MAX &&
		 (int64_t)header->max_ts > request->times.max_ts)
		request->times.max_ts = header->max_ts;
}

static int check_frame(struct request *request, struct block_checker *checker, const struct store_frame *frame)
{
	struct block_checked checked;
	const char *what;
	int err;

	if (frame->frame.kind == PROTOCOL_END)
		return 0;
	err = block_checker__check(checker, frame->payload, frame->frame.sz, request->session_id, &checked, &what);
	if (err) {
		request__refuse(request,
				err == -ENOMEM  ? REFUSAL_BUSY
				: err == -E2BIG ? REFUSAL_TOO_LARGE
						: REFUSAL_MALFORMED,
				err == -ENOMEM ? "no memory" : what);
		return err;
	}
	if (!strcmp(checked.header.table, "value") && !request->collector->opts.allow_values) {
		request__refuse(request, REFUSAL_VALUES, "values of variables are not taken here (--allow-values)");
		return -EPERM;
	}
	note_times(request, &checked);
	if (!strcmp(checked.header.table, "interval"))
		request->row_cnt += checked.header.row_cnt;
	return 0;
}

static const char *why_no_frame(int err)
{
	switch (err) {
	case -EAGAIN:
		return "the body ends within a frame";
	case -ENODATA:
		return "no frame begins where one should";
	case -EBADMSG:
		return "its checksum is wrong";
	case -EOVERFLOW:
		return "its number or size is beyond the limit";
	default:
		return "its kind is not known here";
	}
}

static void check_frames(struct request *request, struct block_checker *checker)
{
	struct store_frame frame;
	size_t off = 0;
	int ret;

	while ((ret = protocol_body__next(request->body.items, request->body.cnt, &off, &frame.frame, &frame.payload)) >
	       0) {
		request->bad_frame = request->frames.cnt;
		if (request->frames.cnt >= PROTOCOL_FRAMES_MAX)
			return request__refuse(request, REFUSAL_TOO_LARGE, "too many frames in one request");
		if (vec_push(&request->frames, frame))
			return request__refuse(request, REFUSAL_BUSY, "no memory");
		if (check_frame(request, checker, &frame))
			return;
	}
	request->bad_frame = ret ? (int64_t)request->frames.cnt : -1;
	if (ret) {
		/* Its number is known if its header is. */
		if (ret == -EBADMSG &&
		    !protocol_frame__get(&frame.frame, request->body.items + off, request->body.cnt - off))
			(void)vec_push(&request->frames, frame);
		request__refuse(request, REFUSAL_MALFORMED, why_no_frame(ret));
	} else if (!request->frames.cnt) {
		request__refuse(request, REFUSAL_MALFORMED, "there is no frame in it");
	}
}

void request__check(struct request *request)
{
	struct block_checker *checker;

	if (request->body.cnt != request->body_sz)
		return request__refuse(request, REFUSAL_MALFORMED, "the body is shorter than its Content-Length");
	checker = take_checker(request->collector);
	if (!checker)
		return request__refuse(request, REFUSAL_BUSY, "no memory");
	block_checker__begin(checker);
	check_frames(request, checker);
	give_checker(request->collector, checker);
}
