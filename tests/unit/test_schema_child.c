// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that reads variables: what it has, how it ends, and that nothing it answers is trusted. */
#include "unit.h"
#include "values/plan.h"
#include "values/reader.h"
#include "values/schema_child.h"
#include "values/schema_make.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct value_schema_opts own_subject = {.path = "/proc/self/exe", .function = "subject_o[02]_*"};

static void make_bytes(schema_bytes *bytes)
{
	struct value_schema schema;

	CU_ASSERT_EQUAL_FATAL(value_schema_make(&schema, &own_subject), 0);
	CU_ASSERT_FATAL(schema.variables.cnt > 5 && schema.frames.cnt > 0);
	CU_ASSERT_EQUAL_FATAL(schema_bytes_make(&schema, bytes), 0);
	value_schema_free(&schema);
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

/* What is taken can be used: everything in it is within its bounds. */
static void use(const struct value_schema *schema)
{
	struct value_planned *planned = calloc(schema->variables.cnt + 1, sizeof(*planned));
	struct value_reader *reader = NULL;
	struct value_plan plan = {.left_out = 0};
	struct value_frame_rule rule;
	size_t text_sz = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(planned);
	for (size_t v = 0; v < schema->variables.cnt; v++) {
		const struct value_variable *variable = &schema->variables.items[v];

		text_sz += strlen(variable->file) + strlen(variable->name) + strlen(variable->type);
		CU_ASSERT_FATAL(variable->location_cnt && variable->kind < VALUE_TYPE_CNT);
		CU_ASSERT_FATAL(variable->first_location + variable->location_cnt <= schema->locations.cnt);
		value_schema_frame(schema, schema->locations.items[variable->first_location].pc_begin, &rule);
		CU_ASSERT_FATAL(rule.begin < rule.end);
	}
	CU_ASSERT(text_sz || !schema->variables.cnt);
	CU_ASSERT_EQUAL(value_reader__new(schema, &reader), 0);
	CU_ASSERT_EQUAL(value_plan_add(&plan, schema, 0, planned), 0);
	value_plan_free(&plan);
	value_reader__free(reader);
	free(planned);
}

static int take(const void *bytes, size_t sz)
{
	struct value_schema schema;
	void *copy = malloc(sz + 1);
	int err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	memcpy(copy, bytes, sz);
	CU_ASSERT_EQUAL_FATAL(value_schema_begin(&schema), 0);
	err = schema_bytes_take(&schema, copy, sz);
	/* Nothing of it leads into the bytes. */
	free(copy);
	if (err)
		CU_ASSERT(!schema.variables.cnt && !schema.locations.cnt && !schema.frames.cnt)
	else
		use(&schema);
	value_schema_free(&schema);
	return err;
}

static void torn_bytes_are_refused(void)
{
	schema_bytes bytes = {0};

	make_bytes(&bytes);
	CU_ASSERT_EQUAL(take(bytes.items, bytes.cnt), 0);
	for (size_t sz = 0; sz < bytes.cnt; sz += 1 + bytes.cnt / 499) {
		CU_ASSERT_EQUAL(take(bytes.items, sz), -EBADMSG);
		schema_bytes_seal(bytes.items, sz);
		CU_ASSERT_EQUAL(take(bytes.items, sz), -EBADMSG);
		schema_bytes_seal(bytes.items, bytes.cnt);
	}
	vec_free(&bytes);
}

/* Each byte in turn is another one, and the checksum is right: it is refused, or can be used. */
static void hostile_bytes_are_refused_or_harmless(void)
{
	static const uint8_t others[] = {0x00, 0x7f, 0xff, 0x40};
	schema_bytes bytes = {0};
	size_t refused = 0;

	make_bytes(&bytes);
	for (size_t at = 16; at < bytes.cnt; at += at < 400 ? 1 : 1 + bytes.cnt / 997)
		for (size_t i = 0; i < sizeof(others); i++) {
			uint8_t before = bytes.items[at];
			int err;

			bytes.items[at] = before ^ (others[i] ? others[i] : before);
			schema_bytes_seal(bytes.items, bytes.cnt);
			err = take(bytes.items, bytes.cnt);
			CU_ASSERT(!err || err == -EBADMSG);
			refused += err != 0;
			bytes.items[at] = before;
		}
	CU_ASSERT(refused > 100);
	vec_free(&bytes);
}

static void heads_are_not_trusted(void)
{
	struct schema_head head = {.build_id = "0123456789abcdef", .link = "server.debug"}, bad;

	CU_ASSERT_EQUAL(schema_head_check(&head), 0);
	bad = head;
	strcpy(bad.build_id, "../../etc/passwd");
	CU_ASSERT_EQUAL(schema_head_check(&bad), -EBADMSG);
	bad = head;
	strcpy(bad.link, "../shadow");
	CU_ASSERT_EQUAL(schema_head_check(&bad), -EBADMSG);
	bad = head;
	memset(bad.build_id, 'a', sizeof(bad.build_id));
	CU_ASSERT_EQUAL(schema_head_check(&bad), -EBADMSG);
	bad = head;
	memset(bad.link, 'a', sizeof(bad.link));
	CU_ASSERT_EQUAL(schema_head_check(&bad), -EBADMSG);
	bad = head;
	bad.err = UINT32_MAX;
	CU_ASSERT_EQUAL(schema_head_check(&bad), -EBADMSG);
}

/* --- the process -------------------------------------------------------------------------------------------------- */

static bool has_line(pid_t pid, const char *file, const char *part)
{
	char path[64], line[1024];
	bool found = false;
	FILE *text;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	text = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	while (fgets(line, sizeof(line), text))
		found |= strstr(line, part) != NULL;
	fclose(text);
	return found;
}

static void begin(struct symbols_child *child, const struct value_schema_opts *opts)
{
	struct schema_head head;
	int fd = open(opts->path, O_RDONLY | O_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(schema_child__begin(child, opts, fd, -1, false, &head), 0);
	close(fd);
}

static void it_has_no_privilege(void)
{
	struct symbols_child child = SYMBOLS_CHILD_NONE;
	schema_bytes bytes = {0};

	begin(&child, &own_subject);
	CU_ASSERT(has_line(child.pid, "status", "Name:\twhylate-symbols"));
	CU_ASSERT(has_line(child.pid, "status", "CapPrm:\t0000000000000000"));
	CU_ASSERT(has_line(child.pid, "status", "CapEff:\t0000000000000000"));
	CU_ASSERT(has_line(child.pid, "status", "NoNewPrivs:\t1"));
	CU_ASSERT(has_line(child.pid, "limits", "Max file size             0 "));
	CU_ASSERT_EQUAL(schema_child__finish(&child, &own_subject, &bytes), 0);
	CU_ASSERT_EQUAL(take(bytes.items, bytes.cnt), 0);
	CU_ASSERT_EQUAL(waitpid(child.pid, NULL, WNOHANG), -1);
	vec_free(&bytes);
}

/* The error that is reported when this signal ends the process before it has answered. */
static int ended_by(int signal_no)
{
	struct symbols_child child = SYMBOLS_CHILD_NONE;
	schema_bytes bytes = {0};
	int err;

	begin(&child, &own_subject);
	kill(child.pid, signal_no);
	err = schema_child__finish(&child, &own_subject, &bytes);
	CU_ASSERT(child.socket_fd < 0);
	CU_ASSERT_EQUAL(waitpid(child.pid, NULL, WNOHANG), -1);
	vec_free(&bytes);
	return err;
}

static void its_end_is_told(void)
{
	CU_ASSERT_EQUAL(ended_by(SIGKILL), -EBADMSG);
	CU_ASSERT_EQUAL(ended_by(SIGXCPU), -ETIME);
}

static void it_ends_when_the_agent_stops(void)
{
	atomic_bool stop = true;
	struct value_schema_opts opts = own_subject;
	struct symbols_child child = SYMBOLS_CHILD_NONE;
	schema_bytes bytes = {0};

	begin(&child, &opts);
	opts.stop = &stop;
	kill(child.pid, SIGSTOP);
	CU_ASSERT_EQUAL(schema_child__finish(&child, &opts, &bytes), -ECANCELED);
	CU_ASSERT_EQUAL(waitpid(child.pid, NULL, WNOHANG), -1);
	vec_free(&bytes);
}

int suite_schema_child(void)
{
	static const struct unit_test tests[] = {
		{"torn bytes are refused", torn_bytes_are_refused},
		{"hostile bytes are refused, or harmless", hostile_bytes_are_refused_or_harmless},
		{"heads are not trusted", heads_are_not_trusted},
		{"it has no privilege", it_has_no_privilege},
		{"its end is told", its_end_is_told},
		{"it ends when the agent stops", it_ends_when_the_agent_stops},
	};

	return unit_suite("schema_child", tests, sizeof(tests) / sizeof(tests[0]));
}
