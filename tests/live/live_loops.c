// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event loops that wait in epoll, poll() or select(): a request for which such a loop asked another server ends in a
 * context of its own.  Where a thread waits for the reply in poll() on that connection alone, it does not.
 *
 * One client asks one thing at a time, so that the loop never works for two requests: only its wait tells what it is.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define ASKED  200
#define DIRECT 100

/* Answers each line 2 ms later, so that who asks has to wait. */
static const char store[] = "import socket,sys,time\n"
			    "l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(5)\n"
			    "while True:\n"
			    "    c,_=l.accept()\n"
			    "    while c.recv(100):\n"
			    "        time.sleep(0.002); c.send(b'!\\n')\n";

/* Asks the store for each GET /ask, and answers all else itself.  `alone`: a thread that serves one connection. */
static const char front[] =
	"import select,socket,sys\n"
	"kind=sys.argv[3]\n"
	"l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(5)\n"
	"p=socket.create_connection(('127.0.0.1',int(sys.argv[2])))\n"
	"if kind=='alone':\n"
	"    q=select.poll(); q.register(p,select.POLLIN)\n"
	"    while True:\n"
	"        c,_=l.accept()\n"
	"        while True:\n"
	"            d=c.recv(1000)\n"
	"            if not d: break\n"
	"            if b'/ask' in d: p.send(b'?'); q.poll(); p.recv(100)\n"
	"            c.send(b'!\\n')\n"
	"s={l.fileno():l,p.fileno():p}; asking=None\n"
	"def wait():\n"
	"    if kind=='select': return [f.fileno() for f in select.select(list(s.values()),[],[])[0]]\n"
	"    q=select.poll() if kind=='poll' else select.epoll()\n"
	"    for f in s: q.register(f,1)\n"
	"    return [f for f,_ in q.poll()]\n"
	"while True:\n"
	"    for f in wait():\n"
	"        if f==l.fileno(): c,_=l.accept(); s[c.fileno()]=c; continue\n"
	"        d=s[f].recv(1000)\n"
	"        if f==p.fileno(): asking.send(d)\n"
	"        elif not d: s.pop(f).close()\n"
	"        elif b'/ask' in d: asking=s[f]; p.send(b'?')\n"
	"        else: s[f].send(b'!\\n')\n";

struct ended {
	uint64_t asked, asked_handed_on, direct, direct_handed_on;
};

static void count_ended(void *owner, json_object *row)
{
	bool asked = strstr(json_text(row, "type"), "/ask") != NULL, handed_on;
	struct ended *ended = owner;
	json_object *context;

	handed_on = json_object_object_get_ex(row, "context", &context) && context;
	*(asked ? &ended->asked : &ended->direct) += 1;
	*(asked ? &ended->asked_handed_on : &ended->direct_handed_on) += handed_on;
}

static bool client_asks(const char *question, unsigned int cnt, int port)
{
	struct client client = {
		.question = question, .answer_end = "!\n", .connection_cnt = 1, .requests_each = cnt, .pause_us = 500};
	bool good = client_open(&client, port) && client_run(&client);

	client_close(&client);
	return good;
}

static void test_kind(const char *kind, bool is_loop)
{
	int store_port = port_free(), port = port_free();
	char store_text[16], port_text[16];
	const char *const store_argv[] = {"python3", "-c", store, store_text, NULL};
	const char *const argv[] = {"python3", "-c", front, port_text, store_text, kind, NULL};
	struct process back = {0}, server = {0};
	struct recording recording = {0};
	struct ended ended = {0};

	if (program_missing(kind, "python3"))
		return;
	snprintf(store_text, sizeof(store_text), "%d", store_port);
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&back, NULL, store_argv) || !CHECK(process_runs(&back)))
		goto cleanup;
	sleep_ms(500); /* it serves one connection at a time: none to try it */
	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10) ||
	    !recording_start(&recording, kind, server.pid, "--rate 100%% --tail none --budget 100%% --stacks") ||
	    !client_asks("GET /ask HTTP/1.1\r\n\r\n", ASKED, port) ||
	    !client_asks("GET /direct HTTP/1.1\r\n\r\n", DIRECT, port))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	visit_rows(recording.dir.s, "interval", count_ended, &ended);
	CHECKF(ended.asked == ASKED && ended.direct == DIRECT, "%lu, %lu", ended.asked, ended.direct);
	CHECKF(ended.direct_handed_on == 0, "%lu", ended.direct_handed_on);
	/* The first one may have its reply before it waits. */
	if (is_loop)
		CHECKF(ended.asked_handed_on + 2 >= ASKED, "%lu of %d", ended.asked_handed_on, ASKED);
	else
		CHECKF(ended.asked_handed_on == 0, "%lu", ended.asked_handed_on);
cleanup:
	recording_end(&recording);
	process_end(&server);
	process_end(&back);
}

static void test_epoll(void)
{
	test_kind("epoll", true);
}

static void test_poll(void)
{
	test_kind("poll", true);
}

static void test_select(void)
{
	test_kind("select", true);
}

static void test_alone(void)
{
	test_kind("alone", false);
}

static const struct live_test tests[] = {
	{"loops_epoll", test_epoll, SHORT},
	{"loops_poll", test_poll, REST},
	{"loops_select", test_select, REST},
	{"loops_alone", test_alone, SHORT},
};

int suite_loops(void)
{
	return live_suite("loops", tests, sizeof(tests) / sizeof(tests[0]));
}
