// SPDX-License-Identifier: GPL-2.0-or-later
#include "clickhouse_fixture.h"

#include "test_shard_util.h"
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BINARY "/usr/sbin/clickhouse-server"

static struct {
	struct test_dir dir;
	int http_port, tcp_port;
	pid_t pid;
	char url[64];
} fixture;

static const char config[] =
	"<?xml version=\"1.0\"?>\n<yandex>\n"
	"<logger><level>warning</level><log>%1$s/server.log</log><errorlog>%1$s/error.log</errorlog></logger>\n"
	"<http_port>%2$d</http_port><tcp_port>%3$d</tcp_port><listen_host>127.0.0.1</listen_host>\n"
	"<path>%1$s/data/</path><tmp_path>%1$s/tmp/</tmp_path><users_config>users.xml</users_config>\n"
	"<default_profile>default</default_profile><default_database>default</default_database>\n"
	"<mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>\n</yandex>\n";
/* Without a password: anybody; owner, writer, reader: only the database `granted`, each with less than the one before.
 */
#define USER(name, profile, databases)                                        \
	"<" name "><password>" CLICKHOUSE_FIXTURE_PASSWORD                    \
	"</password><networks><ip>127.0.0.1</ip></networks><profile>" profile \
	"</profile><quota>default</quota>" databases "</" name ">\n"
#define ITS_DATABASE "<allow_databases><database>granted</database></allow_databases>"
static const char users[] =
	"<?xml version=\"1.0\"?>\n<yandex><profiles><default/><without_ddl><allow_ddl>0</allow_ddl></without_ddl>"
	"<reading><readonly>1</readonly></reading></profiles><users><default><password></password>\n"
	"<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>\n" USER(
		"owner", "default", ITS_DATABASE) USER("writer", "without_ddl", ITS_DATABASE)
		USER("reader", "reading", ITS_DATABASE) "</users>\n<quotas><default/></quotas></yandex>\n";

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int free_port(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t sz = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !getsockname(fd, (struct sockaddr *)&address, &sz))
		port = ntohs(address.sin_port);
	close(fd);
	return port;
}

static bool answers(void)
{
	const struct sockaddr_in address = loopback(fixture.http_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected = !connect(fd, (const struct sockaddr *)&address, sizeof(address));

	close(fd);
	return connected;
}

static void write_config(void)
{
	char path[128], text[2048];

	snprintf(path, sizeof(path), "%s/config.xml", fixture.dir.path);
	snprintf(text, sizeof(text), config, fixture.dir.path, fixture.http_port, fixture.tcp_port);
	test_file__write(path, (const uint8_t *)text, strlen(text));
	snprintf(path, sizeof(path), "%s/users.xml", fixture.dir.path);
	test_file__write(path, (const uint8_t *)users, strlen(users));
}

static void run_server(void)
{
	char option[128];
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	snprintf(option, sizeof(option), "--config-file=%s/config.xml", fixture.dir.path);
	execl(BINARY, BINARY, option, NULL);
	_exit(127);
}

void clickhouse_fixture_kill(void)
{
	if (!fixture.pid)
		return;
	kill(fixture.pid, SIGKILL);
	waitpid(fixture.pid, NULL, 0);
	fixture.pid = 0;
}

static void end(void)
{
	clickhouse_fixture_kill();
	if (fixture.dir.path[0])
		test_dir__remove(&fixture.dir);
}

const char *clickhouse_fixture(void)
{
	if (access(BINARY, X_OK)) {
		printf("\n    skipped: %s is not installed ", BINARY);
		return NULL;
	}
	if (!fixture.dir.path[0]) {
		test_dir__make(&fixture.dir);
		fixture.http_port = free_port();
		fixture.tcp_port = free_port();
		snprintf(fixture.url, sizeof(fixture.url), "clickhouse://127.0.0.1:%d/", fixture.http_port);
		write_config();
		atexit(end);
	}
	if (!fixture.pid) {
		fixture.pid = fork();
		if (!fixture.pid)
			run_server();
	}
	for (int i = 0; i < 600 && !answers(); i++)
		usleep(50000);
	CU_ASSERT_FATAL(answers());
	return fixture.url;
}

uint64_t clickhouse_fixture_number(struct clickhouse *server, const char *sql)
{
	struct clickhouse_rows rows;
	uint64_t number = UINT64_MAX;

	CU_ASSERT_EQUAL_FATAL(clickhouse__ask(server, sql, 1, &rows), 0);
	CU_ASSERT_FATAL(rows.row_cnt == 1 && clickhouse_u64(rows.cells[0], &number));
	clickhouse_rows__free(&rows);
	return number;
}
