// SPDX-License-Identifier: GPL-2.0-or-later
/* Streaming through a proxy, or past it, with certificates made by the commands of the README. */
#include "net.h"
#include "servers.h"
#include "stream_kit.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A proxy that knows CONNECT only, and leads wherever one wants to go to `to_port`. */
struct proxy {
	pid_t pid;
	int port;
	struct path log; /* the first line of each request */
};

static bool move(int from, int to)
{
	char bytes[16384];
	ssize_t cnt = read(from, bytes, sizeof(bytes));

	for (ssize_t sent = 0, more; sent < cnt; sent += more) {
		more = write(to, bytes + sent, (size_t)(cnt - sent));
		if (more <= 0)
			return false;
	}
	return cnt > 0;
}

/* Reads up to the empty line, a byte at a time: what follows is for the other side. */
static bool read_header(int fd, char *text, size_t sz)
{
	size_t len = 0;

	while (len + 1 < sz && read(fd, text + len, 1) == 1) {
		text[++len] = 0;
		if (len >= 4 && !strcmp(text + len - 4, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void serve_one(int client, int to_port, const char *log_path)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char header[4096];
	int server = -1;
	FILE *log = fopen(log_path, "ae");

	if (!log || !read_header(client, header, sizeof(header)))
		_exit(1);
	header[strcspn(header, "\r")] = 0;
	fprintf(log, "%s\n", header);
	fclose(log);
	if (strncmp(header, "CONNECT ", 8) == 0)
		server = port_connect(to_port);
	if (server < 0 || write(client, established, sizeof(established) - 1) < 0)
		_exit(1);
	struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};

	while (poll(fds, 2, -1) > 0) {
		if (fds[0].revents && !move(client, server))
			break;
		if (fds[1].revents && !move(server, client))
			break;
	}
	_exit(0);
}

static void serve(int fd, int to_port, const char *log_path)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0 && !fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve_one(client, to_port, log_path);
		}
		close(client);
	}
}

static bool proxy_start(struct proxy *proxy, int to_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t sz = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->log = temp_path("proxy-%d", to_port);
	if (!CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 16) &&
		   !getsockname(fd, (struct sockaddr *)&address, &sz)))
		return false;
	proxy->port = ntohs(address.sin_port);
	proxy->pid = fork();
	if (!proxy->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, to_port, proxy->log.s);
	}
	close(fd);
	return CHECK(proxy->pid > 0);
}

static void proxy_end(struct proxy *proxy)
{
	if (proxy->pid <= 0)
		return;
	kill(proxy->pid, SIGKILL);
	waitpid(proxy->pid, NULL, 0);
}

/* Every command about certificates that the README has, as it stands there, in one shell. */
static const char readme_script[] =
	"set -e; mkdir -p \"$1\"\n"
	"awk '/^ *```/ { if (inside && text ~ /openssl/) printf \"%s\", text; inside = !inside; text = \"\"; next }\n"
	"     inside { text = text $0 \"\\n\" }' docs/FLEET.md >\"$1/commands\"\n"
	"cd \"$1\"; test -s commands; sh -e ./commands; openssl verify -CAfile ca.crt collector.pem web-1.crt\n";

static bool readme_certs(struct path *dir)
{
	struct process sh;
	bool good;

	*dir = temp_path("readme-certs");
	const char *const argv[] = {"sh", "-c", readme_script, "sh", dir->s, NULL};

	if (!CHECKF(is_there("docs/FLEET.md"), "the tests are run from the root of the source tree"))
		return false;
	good = !process_launch_argv(&sh, NULL, argv) && CHECKF(process_wait(&sh, 60) == 0, "%s", process_err(&sh));
	process_end(&sh);
	return good;
}

static bool record_some(struct redis *redis, const char *out, const char *options)
{
	struct recording recording;
	struct process load = {0};
	bool good = recording_start(&recording, out, redis->process.pid, "-d 60s %s", options) &&
		    redis_load_start(&load, redis, ANY_CPU, 5000, 10) && CHECK(process_wait(&load, 60) == 0) &&
		    CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process)) &&
		    CHECKF(strstr(process_err(&recording.process), "streamed: ") != NULL, "%s",
			   process_err(&recording.process));

	process_end(&load);
	recording_end(&recording);
	return good;
}

/* The README's certificates, the collector under the README's name, which only the proxy can resolve. */
static void test_through_proxy(void)
{
	struct stream_collector collector = {0};
	struct certs certs = {0};
	struct proxy proxy = {0};
	struct redis redis = {0};
	char url[32], options[8192], *log = NULL;

	if (!readme_certs(&certs.dir))
		return;
	snprintf(certs.server, sizeof(certs.server),
		 "--tls-cert %s/collector.pem --tls-key %s/collector.key --client-ca %s/ca.crt", certs.dir.s,
		 certs.dir.s, certs.dir.s);
	if (!stream_collector_start(&collector, &certs, NULL, "127.0.0.1", "store-proxy") ||
	    !proxy_start(&proxy, atoi(strrchr(collector.address, ':') + 1)) || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", proxy.port);
	snprintf(options, sizeof(options),
		 "--host web-1 --stream https://collector.example:7700 --spool %s --stream-cert %s/web-1.crt "
		 "--stream-key %s/web-1.key --stream-ca %s/ca.crt",
		 temp_path("spool-proxy").s, certs.dir.s, certs.dir.s, certs.dir.s);
	setenv("https_proxy", url, 1);
	if (record_some(&redis, "proxied", options))
		stored_once(temp_path("proxied").s, collector.store.s, 0);
	unsetenv("https_proxy");
	log = file_read(proxy.log.s, NULL);
	CHECKF(log && strstr(log, "CONNECT collector.example:7700 HTTP/1.1\n") != NULL, "the proxy was asked for %s",
	       log ? log : "nothing");
cleanup:
	free(log);
	redis_end(&redis);
	proxy_end(&proxy);
	process_end(&collector.process);
}

/* The same variable, with no_proxy: nobody asks the proxy. */
static void test_past_proxy(void)
{
	struct stream_collector collector = {0};
	struct certs certs;
	struct proxy proxy = {0};
	struct redis redis = {0};
	char url[32], options[4096];

	if (!certs_make(&certs, "127.0.0.1") ||
	    !stream_collector_start(&collector, &certs, NULL, "127.0.0.1", "store-past") ||
	    !proxy_start(&proxy, atoi(strrchr(collector.address, ':') + 1)) || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", proxy.port);
	snprintf(options, sizeof(options), "--stream https://%s --spool %s %s", collector.address,
		 temp_path("spool-past").s, certs.client);
	setenv("https_proxy", url, 1);
	setenv("no_proxy", "127.0.0.1,other.example", 1);
	if (record_some(&redis, "past", options))
		stored_once(temp_path("past").s, collector.store.s, 0);
	unsetenv("https_proxy");
	unsetenv("no_proxy");
	CHECKF(!is_there(proxy.log.s), "the proxy was asked");
cleanup:
	redis_end(&redis);
	proxy_end(&proxy);
	process_end(&collector.process);
}

static const struct live_test tests[] = {
	{"stream_through_proxy", test_through_proxy, SHORT},
	{"stream_past_proxy", test_past_proxy, REST},
};

int suite_proxy(void)
{
	return live_suite("proxy", tests, sizeof(tests) / sizeof(tests[0]));
}
