// SPDX-License-Identifier: GPL-2.0-or-later
#include "view_fixture.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

const char *const fixture_evidence[2] = {
	"late 1.77 ms, typical 3 µs on average; 96 % of the late requests met it",
	"`backup` (pid 901) had the CPU in 88 % of them, on CPU 1, and it ran there "
	"for 3.9 s of the 30.0 s that were recorded",
};

static void fixture_breakdown(struct fixture *fixture)
{
	static const struct breakdown_line first[] = {
		{WL_CATEGORY_RUNQ, true, 41234.4, 0.62, {0.58, 0.66}, 0.41, {0.372, 0.449}, 3012, 1.77e6},
		{WL_CATEGORY_FAULT_MAJOR, true, 20000, 0.31, {0.2, 0.4}, 0.22, {-0.024, 0.3}, 0, 9.8e5},
		{WL_CATEGORY_ONCPU, true, 150765.6, -0.002, {-0.01, 0.004}, 0.006, {0, 0.01}, 177e3, 199e3},
	};
	size_t at = 0;

	for (; at < 3; at++)
		fixture->report.breakdown[at] = first[at];
	for (int i = 0; i < WL_CATEGORY_CNT; i++) {
		struct breakdown_line *line = &fixture->report.breakdown[at];

		if (i == WL_CATEGORY_RUNQ || i == WL_CATEGORY_FAULT_MAJOR || i == WL_CATEGORY_ONCPU)
			continue;
		*line = (struct breakdown_line){.category = i, .measured = i != WL_CATEGORY_THROTTLED};
		if (!line->measured)
			line->mean_ns = line->tail_share = NAN;
		at++;
	}
}

void fixture_init(struct fixture *fixture)
{
	static const char *const hooks[] = {"tp_btf/sched_switch"};
	static const char *const notes[] = {"the rate was lowered to 25 % after 12 s: tracing cost more than 3 %"};
	static const struct shard_damage damage[] = {{"/var/tmp/rec/host7-1-3.wls", 81920, 1234, "torn tail"}};

	memset(fixture, 0, sizeof(*fixture));
	fixture->hw = (struct dataset_event){.name = "hw.cycles", .values = fixture->hw_values};
	fixture->dataset = (struct dataset){
		.row_cnt = 12402,
		.host = "host7",
		.kernel = "6.18",
		.comm = "redis-server",
		.pid = 812,
		.duration_s = 30,
		.intervals_seen = 104233,
		.intervals_flagged = 7,
		.hooks_missing = (const char **)hooks,
		.hooks_missing_cnt = 1,
		.notes = (const char **)notes,
		.note_cnt = 1,
		.damage = damage,
		.damage_cnt = 1,
		.events = &fixture->hw,
		.event_cnt = 1,
	};
	fixture->dataset.category_unmeasured[WL_CATEGORY_THROTTLED] = true;
	fixture->dataset.loss[WL_LOSS_INTERVAL].emitted = 12402;
	fixture->causes[0] = (struct cause){
		.rank = 1,
		.category = WL_CATEGORY_RUNQ,
		.share = 0.41,
		.share_ci = {0.372, 0.449},
		.variance_share = 0.62,
		.what = "waiting for a CPU; `backup` (pid 901) ran instead",
		.culprit_comm = "backup",
		.culprit_pid = 901,
		.culprit_tid = 902,
		.evidence = (const char **)fixture_evidence,
		.evidence_cnt = 2,
	};
	fixture->causes[1] = (struct cause){
		.rank = 2,
		.category = WL_CATEGORY_FAULT_MAJOR,
		.share = 0.22,
		.share_ci = {-0.024, 0.3},
		.variance_share = 0.31,
		.what = "major page faults in /usr/lib/x86_64-linux-gnu/libc.so.6",
		.object = "libc.so.6",
		.culprit_pid = -1,
		.culprit_tid = -1,
		.evidence_cnt = 0,
	};
	fixture->causes[2] = (struct cause){
		.rank = 3,
		.category = WL_CATEGORY_ONCPU,
		.share = 0.006,
		.share_ci = {NAN, NAN},
		.variance_share = NAN,
		.what = "running its own code",
		.object = "",
		.culprit_comm = "",
		.culprit_pid = -1,
		.culprit_tid = -1,
		.evidence_cnt = 0,
	};
	fixture->events[0] = (struct event_line){
		.event = "runq.preempt.ns",
		.gain = 0.41,
		.gain_ci = {0.35, 0.44},
		.impact = 0.38,
		.impact_ci = {0.31, 0.4},
		.impact_adjusted = 0.38,
		.threshold = 1.2e6,
		.threshold_percentile = 0.973,
		.explained_overlap = NAN,
		.correlated_with = "hw.cycles",
		.correlation = 0.7,
		.mean = 41000,
	};
	fixture->events[1] = (struct event_line){
		.event = "switch.involuntary.count",
		.gain = 0.36,
		.gain_ci = {NAN, NAN},
		.impact = 0.36,
		.impact_ci = {NAN, NAN},
		.impact_adjusted = 0.021,
		.threshold = 4,
		.threshold_percentile = 0.97,
		.explained_by = "runq.preempt.ns",
		.explained_overlap = 0.92,
		.mean = 0.25,
	};
	fixture->events[2] = (struct event_line){
		.event = "hw.branches",
		.gain = 0.3,
		.impact = 0.3,
		.impact_adjusted = NAN,
		.threshold = 1e6,
		.threshold_percentile = 0.9,
		.dropped_for = "hw.branch_misses",
		.mean = 9,
	};
	fixture->events[3] = (struct event_line){
		.event = "fault.minor.count",
		.threshold = NAN,
		.threshold_percentile = NAN,
	};
	fixture->types[0] = (struct type_line){"tcp:6379", 104000.4, 212e3, 4.31e6, 0.9};
	fixture->types[1] = (struct type_line){"unix:/run/redis.sock", 233, 1e6, NAN, 0.1};
	fixture->report.dataset = &fixture->dataset;
	fixture->report.tail = 0.99;
	fixture->report.tail_threshold_ns = 4.31e6;
	fixture->report.length = (struct length_line){1040, 0.06, 0.2, 2.7, 0.33, 8.1};
	fixture->report.latency = (struct latency_summary){
		104233.2, 212000.6, 2.25e12, 2.12, 180e3, 250e3, 4.31e6, 7.2e6, 9.8e6,
	};
	fixture->report.causes = fixture->causes;
	fixture->report.cause_cnt = 3;
	fixture->report.events = fixture->events;
	fixture->report.event_cnt = 4;
	fixture->report.types = fixture->types;
	fixture->report.type_cnt = 2;
	fixture_breakdown(fixture);
}

void fixture_init_empty(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->dataset.pid = -1;
	fixture->report.dataset = &fixture->dataset;
	fixture->report.tail = 0.99;
	fixture->report.tail_threshold_ns = NAN;
	fixture->report.length = (struct length_line){0, NAN, 0.2, NAN, NAN, NAN};
	fixture->report.latency = (struct latency_summary){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	fixture->report.records_lost_share = NAN;
}

bool fixture_is_utf8(const char *str)
{
	uint32_t codepoint;

	while (*str)
		if (!utf8_next(&str, &codepoint))
			return false;
	return true;
}
