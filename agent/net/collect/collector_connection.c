// SPDX-License-Identifier: GPL-2.0-or-later
/* Connections: who is at the other end, and how long each may take. */
#include "net/collect/collector_internal.h"

#include "base/clock.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void describe_client(struct MHD_Connection *mhd, char client[CLIENT_SZ])
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	socklen_t sz = sizeof(struct sockaddr_in);

	strcpy(client, "somebody");
	if (!info || !info->client_addr)
		return;
	if (info->client_addr->sa_family == AF_INET6)
		sz = sizeof(struct sockaddr_in6);
	if (getnameinfo(info->client_addr, sz, client, CLIENT_SZ, NULL, 0, NI_NUMERICHOST))
		strcpy(client, "somebody");
}

/* It counts no more; its thread notices and cleans up. */
static void connection__shut(struct collector *collector, struct connection *connection)
{
	connection->shut = true;
	connection->peer->connection_cnt--;
	collector->connection_cnt--;
	shutdown(connection->fd, SHUT_RDWR);
}

/* Nothing is lost with it: nobody asks for anything, or has had, or will have, a refusal. */
static bool is_expendable(const struct connection *connection)
{
	return connection->idle_since_ts || connection->refused;
}

/*
 * Whether `left` should go rather than `right`: those without work before those with some, then those of the address
 * that has most connections, then the one whose time is up first, which is the one that came or was idle first.
 */
static bool goes_before(const struct connection *left, const struct connection *right)
{
	if (is_expendable(left) != is_expendable(right))
		return is_expendable(left);
	if (left->peer->connection_cnt != right->peer->connection_cnt)
		return left->peer->connection_cnt > right->peer->connection_cnt;
	return left->deadline_ts < right->deadline_ts;
}

/*
 * Who has most goes, or NULL.  A connection at work goes only for somebody who has fewer, and not while the store has
 * its blocks (no deadline).
 */
static struct connection *choose_to_go(const struct collector *collector, const struct connection *newest)
{
	struct connection *first = NULL;

	for (struct connection *it = collector->connections; it; it = it->next) {
		if (it == newest || it->shut || !it->deadline_ts)
			continue;
		if (!is_expendable(it) && it->peer->connection_cnt <= newest->peer->connection_cnt)
			continue;
		if (!first || goes_before(it, first))
			first = it;
	}
	return first;
}

/*
 * Until there are no more than may be; where nobody is to go, the newest is one too many and stays until it has heard
 * that, or others need the room.  How many went that have had no answer; `client` is whose the last of these was.
 */
static uint32_t make_way(struct collector *collector, struct connection *newest, char client[CLIENT_SZ])
{
	uint32_t refused_cnt = 0;

	while (collector->connection_cnt > collector->opts.max_connections) {
		struct connection *first = choose_to_go(collector, newest);

		if (!first) {
			newest->excess = true;
			break;
		}
		connection__shut(collector, first);
		if (first->served && is_expendable(first))
			continue;
		refused_cnt++;
		strcpy(client, first->client);
	}
	return refused_cnt;
}

static struct connection *collector__add_connection(struct collector *collector, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *connection = calloc(1, sizeof(*connection));
	uint64_t now_ts = monotonic_ns();
	char client[CLIENT_SZ];
	uint32_t refused_cnt;

	if (!connection)
		return NULL;
	connection->fd = info ? info->connect_fd : -1;
	connection->idle_since_ts = now_ts;
	connection->deadline_ts = now_ts + collector->opts.timeout_ns;
	describe_client(mhd, connection->client);
	pthread_mutex_lock(&collector->connections_lock);
	connection->peer = peers__hold(&collector->peers, connection->client);
	if (!connection->peer) {
		pthread_mutex_unlock(&collector->connections_lock);
		free(connection);
		return NULL;
	}
	connection->peer->connection_cnt++;
	connection->next = collector->connections;
	if (connection->next)
		connection->next->before = connection;
	collector->connections = connection;
	collector->connection_cnt++;
	refused_cnt = make_way(collector, connection, client);
	pthread_mutex_unlock(&collector->connections_lock);
	for (; refused_cnt; refused_cnt--)
		metrics__refused(&collector->metrics, REFUSAL_BUSY, client, "", "too many connections, it had most");
	return connection;
}

/* libmicrohttpd closes the socket after this: until then nobody else can have its number. */
static void collector__drop_connection(struct collector *collector, struct connection *connection)
{
	pthread_mutex_lock(&collector->connections_lock);
	if (connection->next)
		connection->next->before = connection->before;
	if (connection->before)
		connection->before->next = connection->next;
	else
		collector->connections = connection->next;
	if (!connection->shut) {
		connection->peer->connection_cnt--;
		collector->connection_cnt--;
	}
	peers__drop(&collector->peers, connection->peer);
	pthread_mutex_unlock(&collector->connections_lock);
	free(connection->names);
	free(connection);
}

void collector_on_connection(void *cls, struct MHD_Connection *mhd, void **context,
			     enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = collector__add_connection(cls, mhd);
	else if (*context)
		collector__drop_connection(cls, *context);
}

void connection__set_deadline(struct collector *collector, struct connection *connection, uint64_t in_ns)
{
	pthread_mutex_lock(&collector->connections_lock);
	connection->deadline_ts = in_ns ? monotonic_ns() + in_ns : 0;
	connection->idle_since_ts = 0;
	connection->served = true;
	pthread_mutex_unlock(&collector->connections_lock);
}

void connection__set_idle(struct collector *collector, struct connection *connection)
{
	pthread_mutex_lock(&collector->connections_lock);
	connection->idle_since_ts = monotonic_ns();
	connection->deadline_ts = connection->idle_since_ts + collector->opts.timeout_ns;
	connection->refused = false;
	pthread_mutex_unlock(&collector->connections_lock);
}

void connection__set_refused(struct collector *collector, struct connection *connection)
{
	pthread_mutex_lock(&collector->connections_lock);
	connection->refused = true;
	pthread_mutex_unlock(&collector->connections_lock);
}

static void judge_certificate(struct collector *collector, struct connection *connection, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	char names[IDENTITY_NAMES_SZ];

	connection->judged = true;
	connection->verdict = IDENTITY_NONE;
	if (!collector->trust || !info || !info->tls_session)
		return;
	connection->verdict = identity_certificate(info->tls_session, collector->trust, names, &connection->why);
	if (connection->verdict != IDENTITY_FITS)
		return;
	connection->names = strdup(names);
	if (!connection->names)
		connection->verdict = IDENTITY_NONE;
}

enum identity_verdict connection__judge(struct collector *collector, struct connection *connection,
					struct MHD_Connection *mhd, const char *host, const char **why)
{
	const char *authorization = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	const struct identity_tokens *tokens = collector->opts.material.tokens;
	enum identity_verdict verdict;

	if (!collector->opts.material.client_ca_pem && !tokens->cnt)
		return IDENTITY_FITS;
	if (!connection->judged)
		judge_certificate(collector, connection, mhd);
	if (connection->verdict == IDENTITY_FITS && identity_names_have(connection->names, host))
		return IDENTITY_FITS;
	verdict = identity_tokens__judge(tokens, authorization, host);
	if (verdict == IDENTITY_FITS)
		return verdict;
	if (verdict == IDENTITY_OTHER || connection->verdict == IDENTITY_FITS) {
		*why = verdict == IDENTITY_OTHER ? "the token belongs to another host"
						 : "the certificate belongs to another host";
		return IDENTITY_OTHER;
	}
	if (connection->verdict == IDENTITY_UNKNOWN)
		*why = connection->why;
	else if (verdict == IDENTITY_UNKNOWN)
		*why = "the token is not known";
	else
		*why = tokens->cnt ? "neither a certificate nor a token" : "no certificate";
	return IDENTITY_UNKNOWN;
}

/* Ends the connections whose time is up; their threads notice and clean up. */
void collector__close_slow(struct collector *collector)
{
	uint64_t now_ts = monotonic_ns();
	char client[CLIENT_SZ] = "";
	uint32_t slow_cnt = 0;

	pthread_mutex_lock(&collector->connections_lock);
	for (struct connection *it = collector->connections; it; it = it->next) {
		if (it->shut || !it->deadline_ts || it->deadline_ts > now_ts)
			continue;
		connection__shut(collector, it);
		if (!it->idle_since_ts || !it->served) {
			slow_cnt++;
			strcpy(client, it->client);
		}
	}
	pthread_mutex_unlock(&collector->connections_lock);
	for (; slow_cnt; slow_cnt--)
		metrics__refused(&collector->metrics, REFUSAL_SLOW, client, "", "it did not arrive in time");
}
