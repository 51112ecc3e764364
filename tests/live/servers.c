// SPDX-License-Identifier: GPL-2.0-or-later
#include "servers.h"

#include "net.h"
#include "session.h"
#include "target/target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define APACHE_MODULES "/usr/lib/apache2/modules"

/* Suites of two processes may start the same one. */
static void workload_init(struct workload *workload, const char *name)
{
	static unsigned int started_cnt;

	memset(workload, 0, sizeof(*workload));
	workload->name = name;
	workload->go = temp_path("go-%d-%u-%s", (int)getpid(), started_cnt++, name);
}

static bool workload_await(struct workload *workload)
{
	const char *ready;

	if (!CHECKF(process_says(&workload->process, false, "ready {", "skip ", 30), "%s: %s", workload->name,
		    process_err(&workload->process)))
		return false;
	ready = process_out(&workload->process);
	if (!strncmp(ready, "skip ", 5)) {
		skip(workload->name, "%.*s", (int)strcspn(ready + 5, "\n"), ready + 5);
		return false;
	}
	return CHECKF(sscanf(ready, "ready {\"server_pid\":%d,\"port\":%d}", &workload->server_pid, &workload->port) ==
			      2,
		      "%s", ready);
}

bool workload_start(struct workload *workload, const char *name, unsigned int seconds)
{
	workload_init(workload, name);
	return !process_start(&workload->process, "%s/%s --seconds %u --warmup-file %s", workloads_path(), name,
			      seconds, workload->go.s) &&
	       workload_await(workload);
}

/* What it calls itself in a pid namespace of its own, and what we call it. */
static bool is_called(pid_t pid, pid_t own_pid)
{
	struct path path;
	const char *ids;
	bool is = false;
	char *status;

	snprintf(path.s, sizeof(path.s), "/proc/%d/status", (int)pid);
	status = file_read(path.s, NULL);
	ids = status ? strstr(status, "\nNSpid:") : NULL;
	if (ids) {
		size_t len = strcspn(++ids, "\n");

		while (len && ids[len - 1] != '\t')
			len--;
		is = atoi(ids + len) == own_pid;
	}
	free(status);
	return is;
}

bool workload_start_by(struct workload *workload, const char *name, unsigned int seconds, const char *script,
		       const char *dir)
{
	target_processes processes = {0};
	pid_t own_pid;
	char text[16];

	workload_init(workload, name);
	snprintf(text, sizeof(text), "%u", seconds);
	const char *const argv[] = {
		"sh", "-ec",           script,         "sh", workloads_path(), dir, name, "--seconds",
		text, "--warmup-file", workload->go.s, NULL};
	if (process_launch_argv(&workload->process, NULL, argv) || !workload_await(workload))
		return false;
	own_pid = workload->server_pid;
	workload->server_pid = 0;
	CHECK(!target_tree(workload->process.pid, &processes));
	for (size_t i = 0; i < processes.cnt && !workload->server_pid; i++)
		if (is_called(processes.items[i].pid, own_pid))
			workload->server_pid = processes.items[i].pid;
	vec_free(&processes);
	return CHECKF(workload->server_pid, "no process that calls itself %d", (int)own_pid);
}

void workload_go(struct workload *workload)
{
	workload->go_ts = now_ns();
	CHECK(!file_write(workload->go.s, "", 0));
}

bool workload_finish(struct workload *workload, unsigned int timeout_s)
{
	const char *result;
	int code = process_wait(&workload->process, timeout_s);

	if (!CHECKF(code == 0, "%s: exit code %d: %s", workload->name, code, process_err(&workload->process)))
		return false;
	result = strchr(process_out(&workload->process), '\n');
	workload->result = result ? json_tokener_parse(result + 1) : NULL;
	if (!CHECKF(workload->result != NULL, "%s: no result", workload->name))
		return false;
	workload->category = json_text(workload->result, "category");
	workload->culprit_comm = json_text(workload->result, "culprit_comm");
	workload->planted_share = json_number(workload->result, "planted_share");
	workload->intervals = (uint64_t)json_number(workload->result, "intervals");
	return true;
}

void workload_end(struct workload *workload)
{
	/* Its driver cleans up what lies outside of it, a cgroup for instance. */
	process_signal(&workload->process, SIGTERM);
	if (workload->process.pid)
		process_wait(&workload->process, 15);
	process_end(&workload->process);
	if (workload->result)
		json_object_put(workload->result);
	workload->result = NULL;
}

bool redis_start(struct redis *redis, int cpu)
{
	static const char config[] = "bind 127.0.0.1\nsave \"\"\nappendonly no\ndaemonize no\nprotected-mode no\n";
	struct launch launch = {.cpu = cpu};
	struct path file;

	memset(redis, 0, sizeof(*redis));
	redis->port = port_free();
	file = temp_path("redis-%d.conf", redis->port);
	if (!CHECK(!file_write(file.s, config, strlen(config))) ||
	    process_launch(&redis->process, &launch, "redis-server %s --port %d --dir %s", file.s, redis->port,
			   temp_path(".").s))
		return false;
	return port_wait(&redis->process, redis->port, 10);
}

bool redis_answers(const struct redis *redis)
{
	return port_answers(redis->port, "PING\r\n", "+PONG\r\n");
}

bool redis_processed(const struct redis *redis, uint64_t *cnt)
{
	static const char question[] = "INFO stats\r\n", key[] = "total_commands_processed:";
	char text[16384] = "";
	const char *place = NULL;
	size_t len = 0;
	int fd = port_connect(redis->port);
	ssize_t sz = fd < 0 ? -1 : send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL);

	while (sz > 0 && len < sizeof(text) - 1 && !(place && strchr(place, '\r'))) {
		sz = recv(fd, text + len, sizeof(text) - 1 - len, 0);
		len += sz > 0 ? (size_t)sz : 0;
		text[len] = 0;
		place = strstr(text, key);
	}
	if (fd >= 0)
		close(fd);
	return CHECKF(place && sscanf(place + sizeof(key) - 1, "%lu", cnt) == 1, "INFO: %.200s", text);
}

void redis_end(struct redis *redis)
{
	process_end(&redis->process);
}

bool redis_load_start(struct process *load, const struct redis *redis, int cpu, unsigned int requests,
		      unsigned int connections)
{
	struct launch launch = {.cpu = cpu};

	return !process_launch(load, &launch, "redis-benchmark -h 127.0.0.1 -p %d -t get -n %u -c %u --csv",
			       redis->port, requests, connections);
}

bool apache_start(struct process *server, const char *name, int port)
{
	struct path dir = temp_path("%s", name), www = temp_path("%s/www", name),
		    page = temp_path("%s/www/index.html", name), config = temp_path("%s/httpd.conf", name);
	char text[4096];

	snprintf(text, sizeof(text),
		 "ServerRoot %s\nServerName localhost\nListen 127.0.0.1:%d\nPidFile %s/pid\nErrorLog %s/error.log\n"
		 "User nobody\nGroup nogroup\n"
		 "LoadModule mpm_event_module %s/mod_mpm_event.so\nLoadModule authz_core_module %s/mod_authz_core.so\n"
		 "StartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\nMinSpareThreads 1\n"
		 "MaxSpareThreads 8\nKeepAlive On\nMaxKeepAliveRequests 0\nDocumentRoot %s\n"
		 "<Directory %s>\nRequire all granted\n</Directory>\n",
		 dir.s, port, dir.s, dir.s, APACHE_MODULES, APACHE_MODULES, www.s, www.s);
	return CHECK(!mkdir(dir.s, 0755) && !mkdir(www.s, 0755) && !file_write(config.s, text, strlen(text)) &&
		     !file_write(page.s, "hello\n", 6)) &&
	       !process_start(server, "apache2 -f %s -DFOREGROUND", config.s) && port_wait(server, port, 15);
}

bool nginx_start(struct process *server, const char *name, int port, const char *directives)
{
	struct path dir = temp_path("%s", name), config = temp_path("%s/nginx.conf", name),
		    page = temp_path("%s/index.html", name);
	const char *d = dir.s;
	char text[8192];

	snprintf(text, sizeof(text),
		 "daemon off; master_process on; worker_processes 2; user root; error_log %s/error.log; pid %s/pid;\n"
		 "events { worker_connections 256; }\n"
		 "http { access_log off; keepalive_requests 1000000; root %s; client_body_temp_path %s/b;\n"
		 "  proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
		 "  server { listen 127.0.0.1:%d; %s } }\n",
		 d, d, d, d, d, d, d, d, port, directives);
	if (!CHECK(!mkdir(d, 0755) && !file_write(config.s, text, strlen(text)) && !file_write(page.s, "hello\n", 6)))
		return false;
	return !process_start(server, "nginx -e %s/start.log -p %s -c %s", d, d, config.s) &&
	       port_wait(server, port, 10);
}

void nginx_end(struct process *server)
{
	process_signal(server, SIGTERM);
	if (server->pid)
		process_wait(server, 10);
	process_end(server);
}

bool tree_copy(const char *from, const char *to)
{
	struct process process = {0};
	bool good = !process_start(&process, "cp -a %s %s", from, to) &&
		    CHECKF(process_wait(&process, 60) == 0, "cp: %.300s", process_err(&process));

	process_end(&process);
	return good;
}

bool program_missing(const char *test, const char *program)
{
	struct process process;
	bool missing = true;
	const char *const argv[] = {"sh", "-c", "command -v -- \"$0\"", program, NULL};

	if (!process_launch_argv(&process, NULL, argv))
		missing = process_wait(&process, 5) != 0;
	process_end(&process);
	if (missing)
		skip(test, "%s is not installed (scripts/setup.sh test installs it)", program);
	return missing;
}
