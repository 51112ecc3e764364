/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the kernel's record of an interval to a row of the table.  A record is checked before it is believed: times in
 * order, states that partition the latency; what does not add up goes to `unknown` and the row is flagged as torn.
 */
#ifndef WHYLATE_MODEL_INTERVAL_ROW_H
#define WHYLATE_MODEL_INTERVAL_ROW_H

#include <whylate/record.h>

#include "model/request_types.h"
#include "model/thread_names.h"
#include "model/trace_context.h"
#include "probe/symbol_list.h"
#include "shard/table.h"
#include "target/target.h"

/* What lies at an address of that process, pid 0: of the target; NULL when that is not known. */
typedef const char *(*data_namer)(void *owner, uint32_t pid, uint64_t addr, char *buf, size_t sz);

/* What names are looked up in. Owned by the caller; mappings, lists, types and the namer may be NULL. */
struct interval_names {
	const struct thread_names *threads;
	const target_mappings *mappings;
	const target_listeners *listeners;
	const probe_lines *lines;
	const struct request_types *types;
	data_namer data_name;
	void *owner;                 /* its first argument */
	int hw_counter[WL_HW_SLOTS]; /* enum shard_hwcounter of each slot in the record's epoch, -1: none */
};

#define INTERVAL_TYPE_LEN 320
#define DATA_NAME_LEN     160

/* Room for the strings of one row. */
struct interval_texts {
	char type[INTERVAL_TYPE_LEN];
	char lock[DATA_NAME_LEN], fault[DATA_NAME_LEN], syscall[32];
	char culprit[WL_COMM_LEN + 1];
	char trace_id[TRACE_ID_TEXT_SZ], span_id[SPAN_ID_TEXT_SZ];
};

/*
 * What a record's `type` is called, in buf or in the lists, which may be NULL: "tcp:80", or with the type of the
 * request behind a blank, "tcp:80 GET /".
 */
const char *interval_type_name(uint32_t type, const target_listeners *listeners, const probe_lines *lines,
			       const struct request_types *types, char *buf, size_t sz);

/* How many intervals a record of that rate stands for by its selection alone. */
double interval_weight(uint32_t rate);

/*
 * Fills the row; its strings live in *texts and in *names.  0; -EBADMSG for a record whose times are impossible.
 */
int interval_row_make(struct shard_row *row, struct interval_texts *texts, const struct wl_interval_record *record,
		      const struct interval_names *names);

#endif
