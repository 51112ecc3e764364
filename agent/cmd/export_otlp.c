// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd/export_otlp.h"

#include "analysis/traces.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/user_file.h"
#include "view/export_otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int run(struct shard_reader *reader, int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt),
	       void *owner)
{
	struct otlp_stats stats;
	struct traces traces;
	int err = 0, found = traces_load(&traces, reader);

	if (found < 0)
		return found;
	err = export_otlp(reader, found ? &traces : NULL, put, owner, &stats);
	if (found)
		traces_free(&traces);
	if (stats.without_clock)
		log_warn("%" PRIu64 " requests are not exported: nothing says what time it was in their recording",
			 stats.without_clock);
	return err;
}

static int put_file(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	(void)span_cnt;
	return fwrite(bytes, 1, sz, owner) == sz ? 0 : -EIO;
}

int export_otlp_file(FILE *out, struct shard_reader *reader)
{
	return run(reader, put_file, out);
}

static int put_url(void *owner, const void *bytes, size_t sz, size_t span_cnt)
{
	return otlp_send__post(owner, bytes, sz, span_cnt);
}

int export_otlp_url(struct shard_reader *reader, const struct otlp_send_opts *opts)
{
	const struct otlp_send_stats *stats;
	const char *what;
	struct otlp_send *send = otlp_send__new(opts, &what);
	int err, code;

	if (!send) {
		log_error("cannot use '%s': %s", what,
			  errno == EBADMSG ? "it wants lines NAME: VALUE" : user_file_why(-errno));
		return EXIT_FAILED;
	}
	err = run(reader, put_url, send);
	stats = otlp_send__stats(send);
	if (err == -EHOSTDOWN)
		log_error("'%s' does not take spans: %s", opts->url, stats->why);
	else if (err == -ENOENT)
		log_error("there is no request to export");
	else if (err)
		log_error("the export to '%s' failed: %s", opts->url, strerror(-err));
	log_info("%" PRIu64 " spans in %" PRIu64 " requests sent to %s, after %" PRIu64 " retries", stats->spans,
		 stats->requests, opts->url, stats->retries);
	code = err ? EXIT_FAILED : EXIT_DONE;
	if (stats->dropped_spans) {
		log_warn("%" PRIu64 " spans were dropped: %s", stats->dropped_spans, stats->why);
		code = err ? EXIT_FAILED : EXIT_LIMITS;
	}
	otlp_send__free(send);
	return code;
}
