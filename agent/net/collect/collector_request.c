// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests, from header to answer, in the threads of libmicrohttpd. */
#include "net/collect/collector_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BODY_BYTES_PER_S (64u << 10)  /* a client that is slower than this is cut off */
#define BODY_STEP        (256u << 10) /* most bodies get all at once: one that was let in is not refused half way */
#define CLIENT_SHARE     4

/* Where several may come out, MHD_NO ends the connection. */
static enum MHD_Result respond(struct request *request, unsigned status, const char *type, char *text, size_t sz)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(sz, text, MHD_RESPMEM_MUST_FREE);
	char retry[16];
	enum MHD_Result ret;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->is_get ? "POST" : "GET, HEAD");
	if (request->retry_s) {
		snprintf(retry, sizeof(retry), "%u", request->retry_s);
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, retry);
	}
	if (request->connection->excess || request->closes)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	connection__set_deadline(request->collector, request->connection, request->collector->opts.timeout_ns);
	ret = MHD_queue_response(request->mhd, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result respond_refusal(struct request *request)
{
	char frame[32] = "null", seq[32] = "null", *text;
	int sz;

	metrics__refused(&request->collector->metrics, request->refusal, request->connection->client, request->host,
			 request->why);
	if (request->bad_frame >= 0) {
		snprintf(frame, sizeof(frame), "%" PRId64, request->bad_frame);
		if ((size_t)request->bad_frame < request->frames.cnt)
			snprintf(seq, sizeof(seq), "%" PRIu64, request->frames.items[request->bad_frame].frame.seq);
	}
	sz = asprintf(&text, "{\"error\": \"%s\", \"frame\": %s, \"seq\": %s}\n", request->why, frame, seq);
	return sz < 0 ? MHD_NO : respond(request, refusal_status(request->refusal), "application/json", text, sz);
}

static enum MHD_Result respond_stored(struct request *request)
{
	char *text;
	int sz = asprintf(&text, "{\"stored\": %u, \"duplicates\": %u}\n", request->result.stored,
			  request->result.duplicates);

	return sz < 0 ? MHD_NO : respond(request, MHD_HTTP_OK, "application/json", text, sz);
}

static enum MHD_Result respond_health(struct request *request)
{
	int err = metrics__store_err(&request->collector->metrics);
	bool good = !err && !atomic_load(&request->collector->stopping);
	char *text;
	int sz = good  ? asprintf(&text, "ok\n")
		 : err ? asprintf(&text, "the store cannot be written: %s\n", strerror(-err))
		       : asprintf(&text, "stopping\n");

	return sz < 0 ? MHD_NO
		      : respond(request, good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", text, sz);
}

static enum MHD_Result respond_metrics(struct request *request)
{
	struct collector *collector = request->collector;
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);
	int err;

	if (!out)
		return MHD_NO;
	pthread_mutex_lock(&collector->connections_lock);
	collector->metrics.connections = collector->connection_cnt;
	pthread_mutex_unlock(&collector->connections_lock);
	collector->metrics.body_bytes = atomic_load(&collector->body_bytes);
	err = metrics__print(&collector->metrics, out);
	if (fclose(out) || err) {
		free(text);
		return MHD_NO;
	}
	return respond(request, MHD_HTTP_OK, "text/plain; version=0.0.4", text, sz);
}

/* The announced size of the body: false where there is none that is understood. */
static bool body_size(struct MHD_Connection *mhd, uint64_t *sz)
{
	const char *text = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	char *end;

	*sz = 0;
	if (!text || MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return false;
	errno = 0;
	*sz = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno)
		return true;
	*sz = 0;
	return false;
}

static bool content_is_coded(struct MHD_Connection *mhd)
{
	const char *text = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_ENCODING);

	return text && strcmp(text, "identity");
}

static void check_identity(struct request *request)
{
	const char *why = "";

	switch (connection__judge(request->collector, request->connection, request->mhd, request->host, &why)) {
	case IDENTITY_FITS:
		return;
	case IDENTITY_OTHER:
		return request__refuse(request, REFUSAL_OTHER_HOST, why);
	default:
		return request__refuse(request, REFUSAL_UNKNOWN, why);
	}
}

/* A client that has shown who it is has budgets of its own; the others share those of their address. */
static void client_key(const struct request *request, char key[LIMITER_KEY_SZ])
{
	const struct collector *collector = request->collector;
	bool named = !request->refusal && (collector->trust || collector->opts.material.tokens->cnt);

	snprintf(key, LIMITER_KEY_SZ, named ? "%s" : "@%s", named ? request->host : request->connection->client);
}

static void check_rate(struct request *request)
{
	struct collector *collector = request->collector;
	char client[LIMITER_KEY_SZ];
	unsigned wait_s;

	client_key(request, client);
	wait_s = limiter__take(&collector->limiter, client, request->body_sz, monotonic_ns());
	if (!wait_s)
		return;
	request->refusal = REFUSAL_NONE; /* whatever else is wrong with it, it is one too many */
	request->retry_s = wait_s;
	request__refuse(request, REFUSAL_RATE, "too many requests, bytes or rows");
}

static void take_rows(struct request *request)
{
	char client[LIMITER_KEY_SZ];

	client_key(request, client);
	limiter__take_rows(&request->collector->limiter, client, request->row_cnt, monotonic_ns());
}

static void begin_post(struct request *request, const char *path)
{
	int err = protocol_path__get(path, request->host, &request->session_id);
	bool has_size = body_size(request->mhd, &request->body_sz);

	if (err) {
		request->host[0] = 0;
		if (err == -EINVAL)
			request__refuse(request, REFUSAL_MALFORMED, "the path's host or session is not well-formed");
		else
			request__refuse(request, REFUSAL_NOT_FOUND, "there is no such path");
		return;
	}
	if (!has_size)
		request__refuse(request, REFUSAL_NO_LENGTH, "the body has no Content-Length");
	else if (request->body_sz > PROTOCOL_BODY_MAX)
		request__refuse(request, REFUSAL_TOO_LARGE, "the body is larger than 8 MiB");
	else if (content_is_coded(request->mhd))
		request__refuse(request, REFUSAL_MALFORMED, "the body has a Content-Encoding");
	if (!request->refusal)
		check_identity(request);
	check_rate(request);
	if (atomic_load(&request->collector->stopping))
		request__refuse(request, REFUSAL_STOPPING, "the collector is stopping");
	if (request->connection->excess)
		request__refuse(request, REFUSAL_BUSY, "too many connections");
}

static void begin(struct request *request, const char *path, const char *method, const char *version)
{
	bool own_path = !strcmp(path, "/healthz") || !strcmp(path, "/metrics");
	const char *why = collector_why_not_strict(request->mhd, method, path, version);

	request->is_get = !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	if (why) {
		/* Where the body ends is not certain: nothing behind this is read. */
		request->closes = true;
		request__refuse(request, REFUSAL_MALFORMED, why);
		return check_rate(request);
	}
	if (!strcmp(method, MHD_HTTP_METHOD_POST) && !own_path)
		begin_post(request, path);
	else if (request->is_get ? !own_path && protocol_path__get(path, request->host, &request->session_id) : false)
		request__refuse(request, REFUSAL_NOT_FOUND, "there is no such path");
	else if (!request->is_get || !own_path)
		request__refuse(request, REFUSAL_METHOD, "the path does not take this method");
	if (request->is_get && own_path)
		check_rate(request);
}

static struct request *request__new(struct collector *collector, struct MHD_Connection *mhd)
{
	struct connection *connection = connection_of(mhd);
	struct request *request = connection ? calloc(1, sizeof(*request)) : NULL;

	if (!request)
		return NULL;
	request->collector = collector;
	request->mhd = mhd;
	request->connection = connection;
	request->bad_frame = -1;
	atomic_fetch_add(&collector->request_cnt, 1);
	return request;
}

/* A quarter of what there is, but a body that is as large as any may be must fit. */
static uint64_t memory_of_client(const struct collector *collector)
{
	uint64_t all = collector->opts.max_memory, share = all / CLIENT_SHARE;

	return share > PROTOCOL_BODY_MAX ? share : all < PROTOCOL_BODY_MAX ? all : PROTOCOL_BODY_MAX;
}

/* Whose memory the body takes from. */
static bool hold_peer(struct request *request)
{
	struct collector *collector = request->collector;
	char client[LIMITER_KEY_SZ];

	if (request->peer)
		return true;
	client_key(request, client);
	pthread_mutex_lock(&collector->connections_lock);
	request->peer = peers__hold(&collector->peers, client);
	pthread_mutex_unlock(&collector->connections_lock);
	return request->peer;
}

/* Adds what a body takes, of its client's share and of all; or takes it back. */
static bool take_memory(struct request *request, uint64_t sz)
{
	struct collector *collector = request->collector;
	uint64_t of_client = atomic_fetch_add(&request->peer->body_bytes, sz) + sz;
	uint64_t of_all = atomic_fetch_add(&collector->body_bytes, sz) + sz;

	return of_client <= memory_of_client(collector) && of_all <= collector->opts.max_memory;
}

static void return_memory(struct request *request, uint64_t sz)
{
	if (!request->peer)
		return;
	atomic_fetch_sub(&request->peer->body_bytes, sz);
	atomic_fetch_sub(&request->collector->body_bytes, sz);
}

void request__free_body(struct request *request)
{
	return_memory(request, request->body.room);
	vec_free(&request->body);
}

/* Room for so many bytes more, within what the client and all requests together may use. */
static int make_room(struct request *request, size_t more)
{
	size_t before = request->body.room, wanted = request->body.cnt + more;

	if (wanted <= before)
		return 0;
	if (!hold_peer(request))
		return -ENOMEM;
	wanted = wanted < 2 * before ? 2 * before : wanted;
	wanted = wanted < BODY_STEP ? BODY_STEP : wanted;
	if (wanted > request->body_sz)
		wanted = request->body_sz;
	if (take_memory(request, wanted - before)) {
		uint8_t *grown = realloc(request->body.items, wanted);

		if (grown) {
			request->body.items = grown;
			request->body.room = wanted;
			return 0;
		}
	}
	return_memory(request, wanted - before);
	return -ENOMEM;
}

static void take_body(struct request *request, const char *bytes, size_t sz)
{
	if (request->refusal)
		return;
	if (sz > request->body_sz - request->body.cnt)
		return request__refuse(request, REFUSAL_MALFORMED, "the body is longer than its Content-Length");
	if (make_room(request, sz)) {
		connection__set_refused(request->collector, request->connection);
		return request__refuse(request, REFUSAL_BUSY, "too much memory is in use, by all or by this client");
	}
	memcpy(request->body.items + request->body.cnt, bytes, sz);
	request->body.cnt += sz;
}

/* A body that comes anyway is read to its end, so that the answer arrives and the connection can be used again. */
static bool answer_at_once(const struct request *request)
{
	return request->refusal && (!request->body_sz || request->closes || request->body_sz > PROTOCOL_BODY_MAX ||
				    MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT));
}

/* What the store said. */
static void decide(struct request *request)
{
	request->decided = true;
	switch (request->err) {
	case 0:
		return;
	case -EEXIST:
		request->bad_frame = request->result.bad_frame;
		return request__refuse(request, REFUSAL_CONFLICT, "a frame of this number is stored with other bytes");
	case -ENOBUFS:
		request->bad_frame = request->result.bad_frame;
		return request__refuse(request, REFUSAL_CONFLICT, "the session's frames have too many gaps");
	case -ENOSPC:
	case -EDQUOT:
		return request__refuse(request, REFUSAL_DISK_FULL, "the disk is full");
	case -ENOENT:
	case -ESTALE:
	case -ENOTDIR:
	case -ENODEV:
		return request__refuse(request, REFUSAL_STORE_GONE, "the store's directory is gone");
	case -ECANCELED:
		return request__refuse(request, REFUSAL_STOPPING, "the collector is stopping");
	default:
		return request__refuse(request, REFUSAL_FAILED, strerrordesc_np(-request->err) ?: "the store failed");
	}
}

static enum MHD_Result answer(struct request *request, const char *path)
{
	struct collector *collector = request->collector;

	if (request->is_get && !request->refusal)
		return strcmp(path, "/metrics") ? respond_health(request) : respond_metrics(request);
	if (!request->refusal && !request->queued) {
		request__check(request);
		if (!request->refusal) {
			take_rows(request);
			request->queued = true;
			connection__set_deadline(collector, request->connection, 0);
			MHD_suspend_connection(request->mhd);
			collector__queue(collector, request);
			return MHD_YES;
		}
	}
	if (request->queued && !request->decided)
		decide(request);
	return request->refusal ? respond_refusal(request) : respond_stored(request);
}

enum MHD_Result collector_on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
				     const char *version, const char *data, size_t *data_sz, void **context)
{
	struct request *request = *context;

	if (!request) {
		request = *context = request__new(cls, mhd);
		if (!request)
			return MHD_NO;
		begin(request, url, method, version);
		connection__set_deadline(request->collector, request->connection,
					 request->collector->opts.timeout_ns +
						 (request->body_sz < PROTOCOL_BODY_MAX ? request->body_sz : 0) *
							 1000000000 / BODY_BYTES_PER_S);
		if (request->refusal)
			connection__set_refused(request->collector, request->connection);
		return answer_at_once(request) ? respond_refusal(request) : MHD_YES;
	}
	if (*data_sz) {
		take_body(request, data, *data_sz);
		*data_sz = 0;
		return MHD_YES;
	}
	return answer(request, url);
}

void collector_on_completed(void *cls, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode code)
{
	struct collector *collector = cls;
	struct request *request = *context;

	(void)mhd;
	(void)code;
	if (!request)
		return;
	*context = NULL;
	connection__set_idle(collector, request->connection);
	request__free_body(request);
	pthread_mutex_lock(&collector->connections_lock);
	peers__drop(&collector->peers, request->peer);
	pthread_mutex_unlock(&collector->connections_lock);
	vec_free(&request->frames);
	free(request);
	atomic_fetch_sub(&collector->request_cnt, 1);
}
