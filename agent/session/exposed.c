// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/exposed.h"

#include "base/idmap.h"
#include "base/log.h"
#include "base/names.h"
#include "net/send/metrics_server.h"
#include "session/sinks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TYPES_KNOWN_MAX 4096 /* the requests of further types are `other` without being looked up */

struct recorded_metrics {
	struct metrics_server *server;
	struct live_metrics live;
	uint64_t session_id;
	struct idmap types;
	VEC(uint32_t) series; /* of each type that was seen */
	bool gone_said;
};

int recording_metrics_open(struct recording *recording)
{
	const struct record_options *options = recording->options;
	struct recorded_metrics *metrics;
	char host[SHARD_HOST_MAX + 1];
	int err;

	if (!options->metrics)
		return 0;
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		return -ENOMEM;
	metrics->server = metrics_server__new(options->metrics, options->metrics_insecure);
	if (!metrics->server) {
		err = -errno;
		free(metrics);
		return err;
	}
	snprintf(metrics->live.host, sizeof(metrics->live.host), "%s", recording_host(recording, host));
	snprintf(metrics->live.comm, sizeof(metrics->live.comm), "%s", recording->target.comm);
	recording->output.metrics = metrics;
	return 0;
}

void recording_metrics_begin(struct recording *recording, uint64_t session_id)
{
	if (recording->output.metrics)
		recording->output.metrics->session_id = session_id;
}

static int series_of(struct recording *recording, uint32_t type, uint32_t *series)
{
	struct recorded_metrics *metrics = recording->output.metrics;
	char name[INTERVAL_TYPE_LEN];
	uint32_t no = metrics->types.cnt;
	int err;

	*series = LIVE_TYPES_MAX;
	if (metrics->types.cnt >= TYPES_KNOWN_MAX && !idmap__find(&metrics->types, type, 0, &no)) {
		*series = live_metrics__series(&metrics->live, "other");
		return 0;
	}
	err = idmap__id(&metrics->types, type, 0, &no);
	if (!err && no == metrics->series.cnt)
		err = vec_push(
			&metrics->series,
			live_metrics__series(&metrics->live, interval_type_name(type, &recording->target.listeners,
										&recording->symbols.lines,
										recording->types, name, sizeof(name))));
	if (!err)
		*series = metrics->series.items[no];
	return err ? -ENOMEM : 0;
}

int recording_metrics_take(struct recording *recording, struct taken *taken)
{
	const struct wl_brief_record *ended = taken->ended;
	uint32_t series;
	int err = recording->output.metrics ? series_of(recording, ended->type, &series) : 0;

	if (recording->output.metrics && !err)
		live_metrics__saw(&recording->output.metrics->live, series, ended->end_ts - ended->begin_ts,
				  interval_weight(ended->rate));
	return err;
}

static bool is_late(const struct recording *recording, uint64_t latency_ns)
{
	/* Where everything is kept there is no such bound. */
	return recording->options->tail > 0 && latency_ns >= retention__late_ns(recording->retention);
}

int recording_metrics_kept(struct recording *recording, uint32_t type, const struct shard_row *row)
{
	uint64_t latency_ns = row->values[INTERVAL_END_TS].u64 - row->values[INTERVAL_BEGIN_TS].u64;
	uint64_t category_ns[WL_CATEGORY_CNT] = {0};
	struct recorded_metrics *metrics = recording->output.metrics;
	struct recorded_wait waits[RECORDED_WAITS_MAX];
	struct live_exemplar exemplar = {0};
	double weight = row->values[INTERVAL_WEIGHT].f64;
	uint32_t series;
	size_t cnt;
	int err;

	if (!metrics || !is_late(recording, latency_ns))
		return 0;
	err = series_of(recording, type, &series);
	if (err)
		return err;
	for (int s = 0; s < WL_STATE_CNT; s++)
		category_ns[state_category(s)] += row->values[interval_column_length(s)].u64;
	exemplar.session = metrics->session_id;
	exemplar.sid = row->values[INTERVAL_SID].u64;
	if (!shard_row__is_null(row, INTERVAL_TRACE_ID) && row->values[INTERVAL_TRACE_ID].str)
		snprintf(exemplar.trace_id, sizeof(exemplar.trace_id), "%s", row->values[INTERVAL_TRACE_ID].str);
	live_metrics__late(&metrics->live, series, latency_ns, weight, category_ns, &exemplar);
	live_metrics__root(&metrics->live, WL_CATEGORY_ONCPU, "own code", "",
			   weight * (double)category_ns[WL_CATEGORY_ONCPU]);
	cnt = recording_waits_of(row, waits);
	for (size_t w = 0; w < cnt; w++) {
		bool cpu = waits[w].category == WL_CATEGORY_RUNQ;

		live_metrics__root(&metrics->live, waits[w].category, cpu ? "cpu" : waits[w].what,
				   cpu ? waits[w].what : waits[w].by, weight * waits[w].ns);
	}
	return 0;
}

static void take_totals(struct recording *recording, struct live_metrics *live)
{
	const struct wl_loss_count *loss;
	uint64_t bpf_ns;
	uint32_t cpu_cnt;
	size_t cnt;

	recording_target_cpu(recording);
	capture__counts(recording->capture, &recording->counts);
	capture__cost(recording->capture, &cnt, &bpf_ns);
	live->seen = (double)recording_intervals_seen(recording);
	live->agent_s = (double)(own_cpu_ns() - recording->clock.own_cpu_begin_ns) / 1e9;
	live->bpf_s = capture__cost_known(recording->capture) ? (double)bpf_ns / 1e9 : NAN;
	live->target_s = (double)recording->target.cpu_ns / 1e9;
	loss = capture__loss_per_cpu(recording->capture, &cpu_cnt);
	memset(live->lost, 0, sizeof(live->lost));
	for (uint32_t i = 0; i < cpu_cnt * WL_LOSS_CNT; i++) {
		live->loss_known[i % WL_LOSS_CNT] |= loss[i].emitted || loss[i].lost;
		live->lost[i % WL_LOSS_CNT] += loss[i].lost;
	}
}

void recording_metrics_tick(struct recording *recording)
{
	struct recorded_metrics *metrics = recording->output.metrics;

	if (!metrics)
		return;
	if (!metrics->gone_said && waitpid(metrics_server__pid(metrics->server), NULL, WNOHANG) > 0) {
		metrics->gone_said = true;
		log_warn("the server of --metrics has ended: the recording goes on without it");
	}
	if (metrics->gone_said || !metrics_server__wants(metrics->server))
		return;
	take_totals(recording, &metrics->live);
	metrics_server__put(metrics->server, &metrics->live);
}

pid_t recording_metrics_pid(const struct recording *recording)
{
	return recording->output.metrics ? metrics_server__pid(recording->output.metrics->server) : 0;
}

void recording_metrics_free(struct recording *recording)
{
	if (!recording->output.metrics)
		return;
	metrics_server__free(recording->output.metrics->server);
	idmap__free(&recording->output.metrics->types);
	vec_free(&recording->output.metrics->series);
	free(recording->output.metrics);
	recording->output.metrics = NULL;
}
