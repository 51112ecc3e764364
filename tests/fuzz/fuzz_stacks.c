// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any sequence of the sampler's records, of ends of intervals and of polls, with any numbers in them; and
 * where the code of a process that has ended was, by those numbers.
 */
#include "model/stack_samples.h"
#include "session/past_program.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

struct seen {
	uint64_t given, seen;
};

#define NEED(ok)                 \
	do {                     \
		if (!(ok))       \
			abort(); \
	} while (0)

static void check_sample(const struct stack_sample *sample)
{
	NEED(sample->user && sample->user->refs && sample->state < WL_STATE_CNT);
	NEED(isfinite(sample->weight_ns) && sample->weight_ns >= 0);
	NEED(!sample->end_ts || sample->end_ts >= sample->ts);
}

static int give(void *owner, const struct stack_sample *sample)
{
	((struct seen *)owner)->given++;
	check_sample(sample);
	return 0;
}

static int see(void *owner, const struct stack_sample *sample)
{
	((struct seen *)owner)->seen++;
	check_sample(sample);
	return 0;
}

static void doubt(void *owner, uint64_t key, bool is_ambiguous)
{
	(void)owner, (void)key, (void)is_ambiguous;
}

struct input {
	const uint8_t *bytes;
	size_t left;
};

static uint64_t take(struct input *input, size_t sz)
{
	uint64_t value = 0;

	sz = sz < input->left ? sz : input->left;
	memcpy(&value, input->bytes, sz);
	input->bytes += sz;
	input->left -= sz;
	return value;
}

/* Small numbers, which meet again, or any. */
static uint64_t number(struct input *input)
{
	uint64_t form = take(input, 1);

	return form & 0x80 ? take(input, 8) : form & 0x40 ? take(input, 2) : form & 0x3f;
}

static struct stack_text *text(struct input *input, struct stack_texts *texts)
{
	char frames[] = "main;handle;x";

	frames[sizeof(frames) - 2] = (char)('a' + take(input, 1) % 4);
	return stack_texts__get(texts, frames, true, 0, NULL, 0);
}

static struct stack_values *values(struct input *input)
{
	struct stack_values *made = calloc(1, sizeof(*made) + sizeof(made->items[0]));

	if (!made)
		return NULL;
	made->cnt = 1;
	made->items[0] = (struct stack_value){.value = number(input), .variable = (uint32_t)number(input)};
	return made;
}

/* --- processes that have ended ------------------------------------------------------------------------------------ */

static void check_mappings(target_mappings *mappings, int err)
{
	NEED(!err || err == -ENOENT);
	for (size_t i = 0; i < mappings->cnt && !err; i++) {
		const struct target_mapping *mapping = &mappings->items[i];

		NEED(mapping->start < mapping->end && mapping->exec && mapping->path);
		NEED(!i || mapping->start >= mappings->items[i - 1].start);
	}
	target_mappings_free(mappings);
}

/* The numbers of a process that ran the same program lead to its files, and to our own file. */
static void map_past(struct input *input, const struct wl_stack_record *record, bool is_own)
{
	static char own_path[PATH_MAX];
	static uint64_t own_ino;
	target_mappings mappings = {0}, made = {0};
	struct past_code known = {&mappings, number(input), number(input), number(input)};
	struct target_mapping items[3] = {{0}};
	struct wl_stack_record own = *record;
	struct stat own_stat;

	for (size_t i = 0; i < 3; i++) {
		items[i].start = number(input);
		items[i].end = number(input);
		items[i].ino = number(input);
		items[i].exec = take(input, 1) & 1;
		items[i].path = i ? "/bin/program" : "/memfd:jit";
	}
	mappings.items = items;
	mappings.cnt = 3;
	check_mappings(&made, past_map_as(&known, record, &made));
	if (!is_own)
		return;
	if (!own_ino) {
		NEED(readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) > 0 && !stat(own_path, &own_stat));
		own_ino = own_stat.st_ino;
	}
	own.exe_ino = own_ino;
	made = (target_mappings){0};
	check_mappings(&made, past_map_file(getpid(), own_path, &own, &made));
}

static void find_path(struct input *input)
{
	struct wl_program_record record = {.ino = number(input), .pid = (uint32_t)number(input)};
	char path[PATH_MAX];

	record.parent_pid = take(input, 1) & 1 ? (uint32_t)getpid() : (uint32_t)number(input);
	for (size_t i = 0; i < sizeof(record.path) && input->left; i++)
		record.path[i] = (char)take(input, 1);
	NEED(!past_program_path(&record, path) || (path[0] == '/' && strlen(path) < sizeof(path)));
}

static void step(struct input *input, struct stack_samples *samples, struct stack_texts *texts)
{
	uint8_t what = (uint8_t)take(input, 1);
	struct wl_stack_record record = {0};
	struct wl_stack_wait_record wait = {0};
	uint64_t sid, begin_ts, end_ts;

	switch (what % 6) {
	case 0:
	case 1:
		record.ts = number(input);
		record.sid = number(input);
		record.period_ns = number(input);
		record.key = number(input);
		record.pid = (uint32_t)number(input);
		record.tid = (uint32_t)number(input);
		record.rate = (uint32_t)number(input);
		record.delays = (uint32_t)number(input);
		record.state = (uint32_t)number(input);
		record.flags = (uint32_t)number(input);
		record.context = number(input);
		record.kernel_cnt = (uint32_t)number(input);
		record.exe_ino = number(input);
		record.exe_start = number(input);
		record.mmap_base = number(input);
		if (what & 32)
			map_past(input, &record, what & 64);
		NEED(!stack_samples__take(samples, &record, text(input, texts), what & 8 ? text(input, texts) : NULL,
					  what & 16 ? values(input) : NULL));
		break;
	case 2:
		wait.ts = number(input);
		wait.sid = number(input);
		wait.key = number(input);
		wait.blocked_ns = number(input);
		wait.runq_ns = number(input);
		wait.pid = (uint32_t)number(input);
		wait.tid = (uint32_t)number(input);
		wait.rate = (uint32_t)number(input);
		wait.chance = (uint32_t)number(input);
		wait.delays = (uint32_t)number(input);
		wait.state = (uint32_t)number(input);
		wait.context = number(input);
		wait.object = number(input);
		wait.sysno = (uint32_t)number(input);
		wait.begin_cpu = (uint32_t)number(input);
		NEED(!stack_samples__take_wait(samples, &wait));
		break;
	case 3:
		sid = number(input);
		begin_ts = number(input);
		end_ts = number(input);
		NEED(!stack_samples__interval(samples, sid, begin_ts, end_ts, (double)(what >> 4)));
		break;
	case 4:
		find_path(input);
		break;
	default:
		NEED(!stack_samples__advance(samples, number(input)));
	}
}

/* Making one takes longer than using it: some inputs follow each other. */
#define ROUNDS 256

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static struct seen seen;
	static struct stack_texts *texts;
	static struct stack_samples *samples;
	static unsigned int rounds;
	const struct stack_sinks sinks = {.give = give, .see = see, .doubt = doubt, .owner = &seen};
	struct stack_sample_counts counts;
	struct input input = {bytes, sz};

	if (!samples) {
		seen = (struct seen){0};
		texts = stack_texts__new();
		samples = stack_samples__new(texts, &sinks);
		NEED(texts && samples);
	}
	while (input.left)
		step(&input, samples, texts);
	stack_samples__counts(samples, &counts);
	NEED(counts.taken == counts.given + counts.forgotten + counts.open);
	if (++rounds % ROUNDS)
		return 0;
	NEED(!stack_samples__finish(samples));
	stack_samples__counts(samples, &counts);
	NEED(!counts.open && counts.taken == counts.given + counts.forgotten);
	NEED(counts.given == seen.given && counts.taken == seen.seen);
	stack_samples__free(samples);
	stack_texts__free(texts);
	samples = NULL;
	return 0;
}
