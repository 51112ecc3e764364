// SPDX-License-Identifier: GPL-2.0-or-later
/* Queues that were found in a running process, as lines of a symbol list; what looked like one and is none follows. */
#include "base/exit_code.h"
#include "base/units.h"
#include "view/format.h"
#include "view/json_put.h"
#include "view/probes.h"

#define REJECTED_MAX  10
#define REMARK_COLUMN 60

static void put_threads(struct page *page, uint32_t cnt, const char *comm, uint32_t tid)
{
	page__printf(page, "%u thread%s (", cnt, cnt == 1 ? "" : "s");
	page__put(page, cnt == 1 ? "" : "as ");
	page__name(page, comm[0] ? comm : "?", 16);
	page__printf(page, " %u)", tid);
}

static void print_pair(struct page *page, const struct queue_study *study, const struct queue_pair *pair)
{
	char count[FORMAT_SZ], duration[FORMAT_SZ];

	page__end_line(page);
	page__name(page, queue_line_of(study, pair->in)->text, 4096);
	page__to(page, REMARK_COLUMN);
	page__printf(page, "# %s values by ", format_count(count, pair->in_cnt));
	put_threads(page, pair->in_threads, pair->in_comm, pair->in_tid);
	page__end_line(page);
	page__name(page, queue_line_of(study, pair->out)->text, 4096);
	page__to(page, REMARK_COLUMN);
	page__printf(page, "# %s of them by ", format_count(count, pair->crossed));
	put_threads(page, pair->out_threads, pair->out_comm, pair->out_tid);
	page__line(page, ", median %s later", units_duration_text(duration, sizeof(duration), (double)pair->median_ns));
}

static void print_rejected(struct page *page, const struct queue_study *study)
{
	char count[FORMAT_SZ];

	if (!study->rejected.cnt)
		return;
	page__end_line(page);
	page__line(page, "# No queues:");
	for (size_t i = 0; i < study->rejected.cnt && i < REJECTED_MAX; i++) {
		const struct queue_pair *pair = &study->rejected.items[i];

		page__put(page, "#   ");
		page__name(page, queue_line_of(study, pair->in)->text, 4096);
		page__end_line(page);
		page__put(page, "#   ");
		page__name(page, queue_line_of(study, pair->out)->text, 4096);
		page__to(page, REMARK_COLUMN);
		page__line(page, " %s crossed: %s", format_count(count, pair->crossed),
			   queue_verdict_text(pair->verdict));
	}
	if (study->rejected.cnt > REJECTED_MAX)
		page__line(page, "#   and %zu more", study->rejected.cnt - REJECTED_MAX);
}

/* Of the lines, those that were probed, and of these those that were passed. */
static size_t watched_cnt(const struct queue_study *study, size_t *passed)
{
	size_t watched = 0;

	*passed = 0;
	for (size_t i = 0; i < study->lines.cnt; i++) {
		watched += study->lines.items[i].watched;
		*passed += study->lines.items[i].hits > 0;
	}
	return watched;
}

/* Why there is nothing to be seen, or not all of it. */
static void print_reach(const struct probes_options *options, struct program *program, const struct queue_study *study,
			size_t watched, size_t passed, struct page *page)
{
	const char *name = probes_module_name(program, 0);

	if (study->left_out)
		page__line(page, "# There was no time to read %zu functions more", study->left_out);
	if (study->dropped) {
		page__line(page, "# %zu places more were not watched: the likeliest come first", study->dropped);
	}
	if (!watched || passed)
		return;
	page__printf(
		page,
		"# No probe was hit: process %d and its children had no load, or take locks of their own, which are",
		options->pid);
	page__end_line(page);
	page__printf(page, "# not recognized, nor are queues between processes; %zu functions with places are in ",
		     study->own_lock_functions);
	page__name(page, name, 60);
	page__line(page, " itself");
}

static void print_text(const struct probes_options *options, struct program *program, const struct queue_study *study,
		       struct page *page)
{
	char count[FORMAT_SZ], share[FORMAT_SZ];
	size_t passed, watched = watched_cnt(study, &passed);

	page__put(page, "# whylate probes suggest --queues: ");
	page__name(page, probes_module_name(program, 0), 60);
	page__line(page, " (pid %d), %s functions with critical sections", options->pid,
		   format_count(count, study->lock_functions));
	page__printf(page, "# %zu probes watched for %.1f s, %zu of them hit, %s of a CPU", watched, study->seconds,
		     passed, format_share(share, study->cost));
	page__printf(page, "; %s values seen", format_count(count, study->values));
	page__line(page, ", %s lost", study->lost ? format_count(count, study->lost) : "none");
	print_reach(options, program, study, watched, passed, page);
	if (!study->pairs.cnt)
		page__line(page, "# No queue: nothing that went in on one thread came out on another, each time once");
	if (study->few) {
		page__line(page, "# Over %zu pairs of places too few values crossed to tell: watch for longer (-d)",
			   study->few);
	}
	for (size_t i = 0; i < study->pairs.cnt; i++)
		print_pair(page, study, &study->pairs.items[i]);
	print_rejected(page, study);
}

static void put_pairs(struct json_doc *doc, struct json_object *root, const char *key, const struct queue_study *study,
		      const queue_pairs *pairs)
{
	struct json_object *array = put_array(doc, root, key);

	for (size_t i = 0; i < pairs->cnt; i++) {
		const struct queue_pair *pair = &pairs->items[i];
		struct json_object *object = append_object(doc, array);

		put_string(doc, object, "enqueue", queue_line_of(study, pair->in)->text);
		put_string(doc, object, "dequeue", queue_line_of(study, pair->out)->text);
		put_string(doc, object, "verdict", queue_verdict_text(pair->verdict));
		put_count(doc, object, "put_in", pair->in_cnt);
		put_count(doc, object, "taken_out", pair->out_cnt);
		put_count(doc, object, "crossed", pair->crossed);
		put_count(doc, object, "same_thread", pair->same_thread);
		put_count(doc, object, "taken_again", pair->again);
		put_count(doc, object, "never_put_in", pair->unseen);
		put_number(doc, object, "median_ns", pair->crossed ? (double)pair->median_ns : NAN);
		put_count(doc, object, "in_threads", pair->in_threads);
		put_count(doc, object, "out_threads", pair->out_threads);
		put_string(doc, object, "in_thread", pair->in_comm);
		put_string(doc, object, "out_thread", pair->out_comm);
		put_bool(doc, object, "one_lock", pair->lock_known);
	}
}

int probes_queues(const struct probes_options *options, struct program *program, const struct queue_study *study)
{
	size_t passed, watched = watched_cnt(study, &passed);
	struct json_object *root;
	struct json_doc doc = {0};
	struct page page;

	if (options->json) {
		root = json_object_new_object();
		put_string(&doc, root, "schema", "whylate.probes.queues/1");
		put_number(&doc, root, "watched_s", study->seconds);
		put_number(&doc, root, "cost_of_a_cpu", study->cost);
		put_count(&doc, root, "lock_functions", study->lock_functions);
		put_count(&doc, root, "unread_functions", study->left_out);
		put_count(&doc, root, "own_lock_functions", study->own_lock_functions);
		put_count(&doc, root, "places", study->places);
		put_count(&doc, root, "unwatched_places", study->dropped);
		put_count(&doc, root, "probes", watched);
		put_count(&doc, root, "probes_hit", passed);
		put_count(&doc, root, "values", study->values);
		put_count(&doc, root, "values_lost", study->lost);
		put_count(&doc, root, "pairs_with_few_values", study->few);
		put_pairs(&doc, root, "queues", study, &study->pairs);
		put_pairs(&doc, root, "rejected", study, &study->rejected);
		return probes_json_close(&doc, root, EXIT_DONE);
	}
	page__open(&page, stdout, false);
	print_text(options, program, study, &page);
	return probes_page_close(&page, EXIT_DONE);
}
