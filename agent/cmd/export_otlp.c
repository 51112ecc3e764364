// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/export_otlp.h"

#include "base/exit_code.h"
#include "base/log.h"
#include "base/user_file.h"
#include "view/export_otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int put_url(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	return otlp_send__post(owner, bytes, sz, span_cnt);
}

int export_otlp_url(struct shard_reader *reader, bool metrics, const struct otlp_send_opts *opts)
{
	const char *items = metrics ? "data points" : "spans";
	const struct otlp_send_stats *stats;
	const char *what;
	struct otlp_send *send = otlp_send__new(opts, &what);
	int err, code;

	if (!send) {
		log_error("cannot use '%s': %s", what,
			  errno == EBADMSG ? "it wants lines NAME: VALUE" : user_file_why(-errno));
		return EXIT_FAILED;
	}
	err = export_otlp_all(reader, metrics, put_url, send);
	stats = otlp_send__stats(send);
	if (err == -EHOSTDOWN)
		log_error("'%s' does not take %s: %s", opts->url, items, stats->why);
	else if (err == -ENOENT)
		log_error("there is no request to export");
	else if (err)
		log_error("the export to '%s' failed: %s", opts->url, strerror(-err));
	log_info("%" PRIu64 " %s in %" PRIu64 " requests sent to %s, after %" PRIu64 " retries", stats->spans, items,
		 stats->requests, opts->url, stats->retries);
	code = err ? EXIT_FAILED : EXIT_DONE;
	if (stats->dropped_spans) {
		log_warn("%" PRIu64 " %s were dropped: %s", stats->dropped_spans, items, stats->why);
		code = err ? EXIT_FAILED : EXIT_LIMITS;
	}
	otlp_send__free(send);
	return code;
}
