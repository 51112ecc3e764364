/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What OTLP's spans and metrics have in common: sessions, attributes, resource and scope. */
#ifndef WHYLATE_VIEW_OTLP_COMMON_H
#define WHYLATE_VIEW_OTLP_COMMON_H

#include "base/idmap.h"
#include "base/protobuf.h"
#include "base/vec.h"
#include "shard/reader.h"

/* What a session says of itself. */
struct otlp_session {
	uint64_t id;
	char host[80], comm[32], kernel[80];
	uint64_t pid;
	int64_t mono_ns, wall_ns; /* its anchors, 0: not seen */
};

struct otlp_sessions {
	struct idmap ids;
	VEC(struct otlp_session) items;
};

/* 0 or -errno. */
int otlp_sessions__read(struct otlp_sessions *sessions, struct shard_reader *reader);
/* NULL: there is none. */
const struct otlp_session *otlp_sessions__find(const struct otlp_sessions *sessions, uint64_t id);
void otlp_sessions__free(struct otlp_sessions *sessions);
bool otlp_session__has_clock(const struct otlp_session *session);
/* From its monotonic clock to CLOCK_REALTIME. */
uint64_t otlp_session__wall(const struct otlp_session *session, uint64_t ts);

/* Memory for the messages within. */
struct otlp_scratch {
	struct proto part, value;
};

void otlp_scratch__free(struct otlp_scratch *scratch);
/* Attributes; an empty text (or NULL) is none. */
void otlp_put_text(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, const char *text);
void otlp_put_number(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, uint64_t number);
void otlp_put_double(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, double number);
void otlp_put_resource(struct otlp_scratch *scratch, struct proto *to, uint32_t field,
		       const struct otlp_session *session);
void otlp_put_scope(struct proto *to, uint32_t field);

#endif
