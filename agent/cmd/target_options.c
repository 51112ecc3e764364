// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/target_options.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/order.h"
#include "base/units.h"
#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "TARGET (man page whylate(1), TARGET):\n"
			   "  -p, --pid PID[,PID…]   these processes and their children; may be repeated\n"
			   "      --port PORT        the processes that listen there, in any network namespace\n"
			   "      --comm NAME        the process of that name\n"
			   "      --exe PATH         the process that runs this program\n"
			   "      --unit UNIT        what systemd runs as this unit\n"
			   "      --container ID     a container, by its id or the beginning of it\n"
			   "      --pod UID          a Kubernetes pod\n"
			   "      --cgroup PATH      the processes of a control group and those below it\n"
			   "      --pidns-of PID     -p gives PIDs as seen inside this process's PID namespace\n";

/* "12", "12,13", "12 13": what `pidof` prints is taken, too. */
static int check_pids(const char *command, const char *arg)
{
	char *text = strdup(arg), *rest = text, *word;
	size_t cnt = 0;
	uint64_t pid;
	int err = text ? 0 : -ENOMEM;

	while (!err && (word = strsep(&rest, ", \t\n"))) {
		if (!*word)
			continue;
		cnt++;
		err = units_number(word, INT_MAX, &pid);
		if (!err)
			continue;
		if (isdigit((unsigned char)*word) || *word == '-')
			usage_value(command, "-p", arg, "1234, a process id, or 1234,1235");
		else
			usage_error(command, "-p '%s' is not a process id: --comm %s finds a process by its name", arg,
				    word);
	}
	free(text);
	if (!err && !cnt) {
		usage_error(command, "-p is given no process id: does the process run?");
		err = -EINVAL;
	}
	return err;
}

static int take_pidns(void *ctx, const char *command, const char *arg)
{
	struct target_query *query = ctx;
	uint64_t number;

	if (units_number(arg, INT_MAX, &number))
		return usage_value(command, "--pidns-of", arg, "1234, a process id");
	query->pidns_of = (pid_t)number;
	return 0;
}

static int take(int tag, void *options, const char *command, const char *arg);

#define OF(name, letter, kind)                                                                      \
	OPTION_ROW(name, letter, OPTION_IS_CALL, .take_tagged = take, .has_arg = required_argument, \
		   .tag = TARGET_BY_##kind)
static const struct option_row rows[] = {
	OF("pid", 'p', PID), OF("comm", 0, COMM),     OF("exe", 0, EXE),
	OF("port", 0, PORT), OF("unit", 0, UNIT),     OF("container", 0, CONTAINER),
	OF("pod", 0, POD),   OF("cgroup", 0, CGROUP), OPTION_CALL("pidns-of", take_pidns, .has_arg = required_argument),
};

/* "-p", "--comm" */
static const char *name_of(enum target_kind kind, char *buf, size_t sz)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].tag == (int)kind)
			snprintf(buf, sz, "--%s", rows[i].name);
	return kind == TARGET_BY_PID ? "-p" : buf;
}

static int take(int tag, void *options, const char *command, const char *arg)
{
	struct target_query *query = options;
	enum target_kind kind = (enum target_kind)tag;
	bool once = kind >= TARGET_BY_UNIT;
	char name[32], other[32];
	uint64_t number;
	int err = 0;

	if (query->kind && query->kind != kind)
		return usage_error(command, "a target is named in one way: %s or %s, not both",
				   name_of(query->kind, other, sizeof(other)), name_of(kind, name, sizeof(name)));
	if (query->kind && once)
		return usage_error(command, "%s is given twice: one recording has one",
				   name_of(kind, name, sizeof(name)));
	if (kind == TARGET_BY_PID)
		err = check_pids(command, arg);
	else if (kind == TARGET_BY_PORT && units_number(arg, UINT16_MAX, &number))
		err = usage_value(command, "--port", arg, "8080");
	else if (!*arg)
		err = usage_value(command, name_of(kind, name, sizeof(name)), arg, "a name");
	query->kind = kind;
	return err ? err : vec_push(&query->names, arg);
}

struct option_group target_options_group(struct target_query *query)
{
	return (struct option_group)OPTION_GROUP(rows, query, help);
}

int target_options_check(const struct target_query *query, const char *command)
{
	if (!query->kind)
		return usage_error(command,
				   "which process? Name it with -p PID, --port PORT, --comm NAME …: see "
				   "whylate %s --help",
				   command);
	if (query->pidns_of && query->kind != TARGET_BY_PID)
		return usage_error(command, "--pidns-of goes with -p");
	return EXIT_DONE;
}

void target_options_free(struct target_query *query)
{
	vec_free(&query->names);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

#define ASKED_MAX 20
#define LOOK_MS   400

/* One that listens, with the first of its ports. */
struct listening {
	struct target_process process;
	uint16_t port;
	bool more_ports;
	uint64_t cpu_ns; /* of it and its children; then what was used in between */
};

typedef VEC(struct listening) listening_list;

static uint64_t cpu_of(pid_t pid)
{
	target_processes tree = {0};
	uint64_t cpu_ns = target_tree(pid, &tree) ? 0 : target_cpu_ns(&tree);

	vec_free(&tree);
	return cpu_ns;
}

ORDER(busier, struct listening, BY(b->cpu_ns, a->cpu_ns));

/* The outermost processes of those that listen. */
static int find_listening(listening_list *list)
{
	target_processes all = {0}, owning = {0}, roots = {0};
	target_port_owners owners = {0};
	int err = target_processes_read(&all);

	if (!err)
		err = target_port_owners_read(&all, 0, &owners);
	for (size_t i = 0; i < all.cnt && !err; i++)
		for (size_t j = 0; j < owners.cnt; j++)
			if (owners.items[j].pid == all.items[i].pid && !owners.items[j].udp) {
				err = vec_push(&owning, all.items[i]);
				break;
			}
	if (!err)
		err = target_roots(&owning, &roots);
	for (size_t i = 0; i < roots.cnt && !err; i++) {
		struct listening one = {.process = roots.items[i]};

		for (size_t j = 0; j < owners.cnt; j++) {
			if (owners.items[j].pid != one.process.pid || owners.items[j].udp)
				continue;
			one.more_ports = one.port && one.port != owners.items[j].port;
			one.port = one.port ?: owners.items[j].port;
		}
		one.cpu_ns = cpu_of(one.process.pid);
		err = vec_push(list, one);
	}
	vec_free(&all);
	vec_free(&owning);
	vec_free(&roots);
	vec_free(&owners);
	return err;
}

static void print_listening(const struct listening *one, size_t number)
{
	char cmdline[60] = "";

	target_cmdline(one->process.pid, cmdline, sizeof(cmdline));
	fprintf(stderr, "%3zu. port %-5u%s %-15s pid %-8d %5.1f %% CPU  %s\n", number, one->port,
		one->more_ports ? " …" : "  ", one->process.comm, one->process.pid,
		100.0 * one->cpu_ns / (LOOK_MS * 1e6), cmdline);
}

int target_options_ask(struct target_query *query)
{
	static char pid[16]; /* the query refers to it */
	listening_list list = {0};
	char answer[16] = "";
	int err = find_listening(&list);
	uint64_t number = 0;
	size_t shown;

	if (!err && !list.cnt) {
		log_error("no process listens on a port: name one with -p PID");
		err = -ESRCH;
	} else if (err) {
		log_error("cannot find out who listens: %s", strerror(-err));
	}
	if (err)
		goto cleanup;
	sleep_ns(LOOK_MS * 1000000L);
	for (size_t i = 0; i < list.cnt; i++) {
		uint64_t now_ns = cpu_of(list.items[i].process.pid), then_ns = list.items[i].cpu_ns;

		list.items[i].cpu_ns = now_ns > then_ns ? now_ns - then_ns : 0;
	}
	vec_sort(&list, busier);
	shown = list.cnt < ASKED_MAX ? list.cnt : ASKED_MAX;
	for (size_t i = 0; i < shown; i++)
		print_listening(&list.items[i], i + 1);
	fprintf(stderr, "Which one? [1] ");
	if (!fgets(answer, sizeof(answer), stdin)) {
		fputc('\n', stderr);
		err = -EINVAL;
		goto cleanup;
	}
	answer[strcspn(answer, "\n")] = '\0';
	if (!*answer)
		number = 1;
	else if (units_number(answer, shown, &number))
		err = usage_value("diagnose", "the answer", answer, "1, a line of the list");
	if (err)
		goto cleanup;
	snprintf(pid, sizeof(pid), "%d", list.items[number - 1].process.pid);
	query->kind = TARGET_BY_PID;
	err = vec_push(&query->names, pid);
cleanup:
	vec_free(&list);
	if (err == -EINVAL)
		return EXIT_USAGE;
	return err ? EXIT_FAILED : 0;
}
