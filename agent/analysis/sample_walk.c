// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/sample_walk.h"

#include "base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
/* A call path needs that share of all ticks, or of all waits, for a node of its own. */
#define KEPT_SHARE (1. / 4000)
/* An older recording does not tell a tick's period. */
#define PERIOD_MIN_NS 1000
/* A short wait that was recorded by chance stands for others of its kind, at most for so many. */
#define STANDS_MAX 1000

enum tree_doing category_doing(enum wl_category category)
{
	switch (category) {
	case WL_CATEGORY_ONCPU:
	case WL_CATEGORY_FAULT_MINOR:
		return TREE_RUNNING;
	case WL_CATEGORY_RUNQ:
	case WL_CATEGORY_THROTTLED:
		return TREE_RUNNABLE;
	case WL_CATEGORY_IRQ_HARD:
	case WL_CATEGORY_IRQ_SOFT:
	case WL_CATEGORY_IRQ_TIMER:
	case WL_CATEGORY_IRQ_IPI:
		return TREE_INTERRUPTED;
	case WL_CATEGORY_QUEUE:
		return TREE_DOING_CNT;
	case WL_CATEGORY_LOCK:
		return TREE_LOCK;
	case WL_CATEGORY_IO_DISK:
		return TREE_DISK;
	case WL_CATEGORY_IO_NET:
		return TREE_NET;
	case WL_CATEGORY_SLEEP:
		return TREE_SLEEP;
	case WL_CATEGORY_FAULT_MAJOR:
		return TREE_FAULT;
	default:
		return TREE_OTHER;
	}
}

/* --- which functions -----------------------------------------------------------------------------------------------
 */

/* The C library's way into a wait. */
static bool is_wait_call(const char *name)
{
	static const char *const prefixes[] = {"pthread_",    "__pthread_", "___pthread_", "__GI_",    "futex_",
					       "__futex_",    "lll_",       "__lll_",      "syscall",  "__syscall",
					       "__internal_", "__libc_",    "clock_",      "__clock_", "__nanosleep"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The function of the program in which the sample was taken. */
static uint32_t function_node(const struct samples *samples, const struct sample *sample)
{
	const struct sample_node *nodes = samples->nodes.items;
	uint32_t node = sample->node;

	while (node != SAMPLE_ROOT && nodes[node].kernel)
		node = nodes[node].parent;
	while (sample->end_ts && node != SAMPLE_ROOT && nodes[node].parent != SAMPLE_ROOT &&
	       is_wait_call(samples_name(samples, node)) && is_wait_call(samples_name(samples, nodes[node].parent)))
		node = nodes[node].parent;
	return node;
}

static double length_of(const struct sample *sample)
{
	if (!sample->end_ts)
		return sample->amount;
	return sample->end_ts > sample->ts ? (double)(sample->end_ts - sample->ts) : 0;
}

static int choose_nodes(struct sample_walk *walk)
{
	const struct samples *samples = walk->samples;
	size_t cnt = samples->nodes.cnt;
	double(*amounts)[2] = calloc(cnt, sizeof(*amounts));

	walk->kept = calloc(cnt, sizeof(*walk->kept));
	if (!amounts || !walk->kept) {
		free(amounts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < samples->rows.cnt; i++) {
		const struct sample *sample = &samples->rows.items[i];

		amounts[function_node(samples, sample)][sample->end_ts != 0] += length_of(sample);
	}
	/* A parent's number is the smaller one. */
	for (uint32_t node = (uint32_t)cnt; --node > SAMPLE_ROOT;)
		for (int wait = 0; wait < 2; wait++)
			amounts[samples->nodes.items[node].parent][wait] += amounts[node][wait];
	for (uint32_t node = 1; node < cnt; node++)
		for (int wait = 0; wait < 2; wait++)
			walk->kept[node] |= amounts[node][wait] > 0 &&
					    amounts[node][wait] >= KEPT_SHARE * amounts[SAMPLE_ROOT][wait];
	free(amounts);
	return 0;
}

/* The variance tree's node for that call path, behind `below`. */
static int tree_node(struct sample_walk *walk, struct variance_tree *tree, uint32_t below, uint32_t node, uint32_t *to)
{
	struct tree_call call = {.func = walk->samples->nodes.items[node].name};
	uint32_t parent, id;
	int err;

	*to = below;
	if (node == SAMPLE_ROOT)
		return 0;
	if (idmap__find(&walk->node_ids, below, node, &id)) {
		*to = walk->nodes.items[id];
		return 0;
	}
	err = tree_node(walk, tree, below, walk->samples->nodes.items[node].parent, &parent);
	*to = parent;
	if (!err && walk->kept[node] && !samples_is_start(samples_name(walk->samples, node))) {
		call.behind = parent == below && below != TREE_ROOT;
		err = variance_tree__node(tree, parent, &call, to);
		err = err == -E2BIG ? 0 : err;
	}
	if (err || vec_reserve(&walk->nodes, 1) || idmap__id(&walk->node_ids, below, node, &id))
		return -ENOMEM;
	return vec_push(&walk->nodes, *to);
}

int sample_functions(struct invocations *functions, const struct samples *samples)
{
	size_t cnt = samples->nodes.cnt;
	uint32_t *heights = calloc(cnt + 1, sizeof(*heights)), id;
	int err = heights ? 0 : -ENOMEM;

	*functions = (struct invocations){.arena = arena__new()};
	functions->strings.arena = functions->arena;
	if (err || !functions->arena || intern__id(&functions->strings, "", &id)) {
		free(heights);
		return -ENOMEM;
	}
	for (uint32_t name = 0; name < samples->names.cnt && !err; name++) {
		struct invocation_symbol symbol = {.id = name};

		err = intern__id(&functions->strings, samples->names.strings[name], &symbol.name);
		if (!err)
			err = vec_push(&functions->symbols, symbol);
	}
	for (uint32_t node = (uint32_t)cnt; --node > SAMPLE_ROOT && !err;) {
		const struct sample_node *at = &samples->nodes.items[node];
		uint32_t *height = &functions->symbols.items[at->name].height;

		*height = heights[node] > *height ? heights[node] : *height;
		if (!at->kernel && heights[at->parent] < heights[node] + 1)
			heights[at->parent] = heights[node] + 1;
	}
	free(heights);
	return err;
}

/* --- one interval's path -------------------------------------------------------------------------------------------
 */

struct extraction {
	struct sample_walk *walk;
	struct variance_tree *tree;
	const struct trace_session *session;
	uint32_t row;
};

static uint8_t doing_of(const struct sample *sample)
{
	enum tree_doing doing = category_doing(state_category(sample->state));

	return doing == TREE_DOING_CNT || doing < TREE_BLOCKED ? TREE_OTHER : (uint8_t)doing;
}

/* Short waits are recorded in proportion to their length. */
static double stands_for(const struct sample_walk *walk, const struct sample *sample, uint32_t row)
{
	double recorded = length_of(sample) * walk->dataset->weight[row], stands;

	if (!sample->sid || sample->sid != walk->dataset->sid[row] || !(sample->weight > 0) || !(recorded > 0))
		return 1;
	stands = sample->weight / recorded;
	return stands < 1 ? 1 : stands > STANDS_MAX ? STANDS_MAX : stands;
}

static int add_ticks(struct extraction *in, uint32_t tid, uint32_t below, uint64_t from_ts, uint64_t to_ts)
{
	struct sample_walk *walk = in->walk;
	size_t cnt;
	const struct sample *samples = samples_of(walk->samples, in->session, tid, from_ts, to_ts, &cnt);
	uint32_t node;

	if (sample_times__stretch(&walk->times, tid, from_ts, to_ts))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (samples[i].end_ts || sample_amount(&samples[i], true, from_ts, to_ts) < PERIOD_MIN_NS)
			continue;
		if (tree_node(walk, in->tree, below, function_node(walk->samples, &samples[i]), &node))
			return -ENOMEM;
		walk->ticks++;
		if (node != below && sample_times__tick(&walk->times, tid, node, samples[i].ts, samples[i].amount))
			return -ENOMEM;
	}
	return 0;
}

/* *longest: the node of what it waited in for longest, `below` where that is not known. */
static int add_waits(struct extraction *in, uint32_t tid, uint32_t below, uint64_t from_ts, uint64_t to_ts,
		     uint32_t *longest)
{
	struct sample_walk *walk = in->walk;
	size_t cnt;
	const struct sample *samples = samples_of(walk->samples, in->session, tid, from_ts, to_ts, &cnt);
	double most = 0;
	uint32_t node;

	*longest = below;
	for (size_t i = 0; i < cnt; i++) {
		double ns = samples[i].end_ts ? sample_amount(&samples[i], false, from_ts, to_ts) : 0;

		if (!(ns > 0))
			continue;
		if (tree_node(walk, in->tree, below, function_node(walk->samples, &samples[i]), &node))
			return -ENOMEM;
		walk->waits++;
		if (node == below)
			continue;
		if (ns > most)
			*longest = node;
		most = ns > most ? ns : most;
		ns *= stands_for(walk, &samples[i], in->row);
		if (sample_times__wait(&walk->times, node, (uint64_t)ns, doing_of(&samples[i])))
			return -ENOMEM;
	}
	return 0;
}

static bool is_executing(uint8_t state)
{
	return state_is_on_cpu(state) && !state_is_interrupt(state);
}

static int add_step(struct extraction *in, const struct path_step *step, uint32_t own_tid)
{
	uint32_t longest, unused;

	if (!step->depth || step->certainty == WL_CERTAINTY_AMBIGUOUS || step->tid == own_tid) {
		if (!step->depth && is_executing(step->state))
			return add_ticks(in, step->tid, TREE_ROOT, step->begin_ts, step->end_ts);
		if (!step->depth && !state_is_blocked(step->state))
			return 0;
		return add_waits(in, own_tid, TREE_ROOT, step->begin_ts, step->end_ts, &longest);
	}
	/* The own thread waits, for that one. */
	if (add_waits(in, own_tid, TREE_ROOT, step->begin_ts, step->end_ts, &longest))
		return -ENOMEM;
	if (longest == TREE_ROOT)
		return 0;
	if (is_executing(step->state))
		return add_ticks(in, step->tid, longest, step->begin_ts, step->end_ts);
	return state_is_blocked(step->state) ? add_waits(in, step->tid, longest, step->begin_ts, step->end_ts, &unused)
					     : 0;
}

/* The thread that is on depth 0 next: it is the one that waits. */
static uint32_t own_thread(const struct path *path, size_t step, uint32_t end_tid)
{
	for (; step < path->steps.cnt; step++)
		if (!path->steps.items[step].depth)
			return path->steps.items[step].tid;
	return end_tid;
}

static int take_path(struct extraction *in)
{
	struct sample_walk *walk = in->walk;
	const struct traces *traces = walk->paths->traces;
	const struct trace_interval *interval = &traces->intervals.items[walk->paths->interval_of[in->row]];
	uint32_t own_tid = 0;
	int err;

	in->session = &traces->sessions.items[interval->session];
	err = path_walk(&walk->path, in->session->graph, &interval->base);
	if (err)
		return err == -EINVAL ? 0 : err;
	if (sample_times__begin(&walk->times, 0))
		return -ENOMEM;
	walk->row_of[in->row] = (uint32_t)walk->times.rows.cnt - 1;
	for (size_t i = 0; i < walk->path.steps.cnt && !err; i++) {
		const struct path_step *step = &walk->path.steps.items[i];

		if (step->category == WL_CATEGORY_QUEUE && !step->depth) {
			walk->times.rows.items[walk->row_of[in->row]].queue_ns += step->end_ts - step->begin_ts;
			continue;
		}
		if (!step->depth || !i || !walk->path.steps.items[i - 1].depth)
			own_tid = own_thread(&walk->path, i, interval->base.end_tid);
		err = add_step(in, step, own_tid);
	}
	return err;
}

/* What is known without segments: its samples, and what it waited. */
static int take_own(struct extraction *in)
{
	struct sample_walk *walk = in->walk;
	const struct dataset *dataset = walk->dataset;
	uint64_t begin_ts = dataset->begin_ts[in->row], end_ts = begin_ts + dataset->latency_ns[in->row], from_ts;
	const uint64_t *queue = dataset->category_ns[WL_CATEGORY_QUEUE];
	size_t cnt;
	const struct sample *samples = samples_of_sid(walk->samples, dataset->session_ids[dataset->session[in->row]],
						      dataset->sid[in->row], &cnt);
	uint32_t node;

	if (sample_times__begin(&walk->times, queue ? queue[in->row] : 0))
		return -ENOMEM;
	walk->row_of[in->row] = (uint32_t)walk->times.rows.cnt - 1;
	from_ts = begin_ts + walk->times.rows.items[walk->times.rows.cnt - 1].queue_ns;
	for (size_t i = 0; i < cnt; i++) {
		const struct sample *sample = &samples[i];
		double ns = sample->end_ts ? sample_amount(sample, false, begin_ts, end_ts) : sample->amount;

		if (!(ns > 0) || sample->ts >= end_ts || (!sample->end_ts && ns < PERIOD_MIN_NS))
			continue;
		if (tree_node(walk, in->tree, TREE_ROOT, function_node(walk->samples, sample), &node))
			return -ENOMEM;
		walk->ticks += !sample->end_ts;
		walk->waits += sample->end_ts != 0;
		if (sample->end_ts && sample->ts > from_ts &&
		    sample_times__stretch(&walk->times, sample->tid, from_ts, sample->ts))
			return -ENOMEM;
		if (sample->end_ts > from_ts)
			from_ts = sample->end_ts;
		ns *= sample->end_ts ? stands_for(walk, sample, in->row) : 1;
		if (node != TREE_ROOT &&
		    (sample->end_ts ? sample_times__wait(&walk->times, node, (uint64_t)ns, doing_of(sample))
				    : sample_times__tick(&walk->times, sample->tid, node, sample->ts, ns)))
			return -ENOMEM;
	}
	if (!cnt || from_ts >= end_ts)
		return 0;
	return sample_times__stretch(&walk->times, samples[cnt - 1].tid, from_ts, end_ts);
}

int sample_walk__init(struct sample_walk *walk, struct variance_tree *tree, const struct samples *samples,
		      const struct dataset *dataset, const struct paths *paths)
{
	int err;

	*walk = (struct sample_walk){.samples = samples, .dataset = dataset, .paths = paths};
	variance_tree__estimate(tree);
	walk->row_of = malloc((dataset->row_cnt + 1) * sizeof(*walk->row_of));
	if (!walk->row_of)
		return -ENOMEM;
	memset(walk->row_of, 0xff, (dataset->row_cnt + 1) * sizeof(*walk->row_of));
	err = choose_nodes(walk);
	for (uint32_t row = 0; row < dataset->row_cnt && !err; row++) {
		struct extraction in = {.walk = walk, .tree = tree, .row = row};

		if ((dataset->flags[row] & WL_INTERVAL_LOSSY) || (paths && !paths->ranked[row]))
			continue;
		err = paths ? take_path(&in) : take_own(&in);
	}
	if (!err)
		sample_times__settle(&walk->times);
	return err;
}

void sample_walk__free(struct sample_walk *walk)
{
	sample_times__free(&walk->times);
	free(walk->row_of);
	free(walk->kept);
	idmap__free(&walk->node_ids);
	vec_free(&walk->nodes);
	path__clear(&walk->path);
	*walk = (struct sample_walk){0};
}

int sample_walk__row(struct sample_walk *walk, const struct variance_tree *tree, uint32_t row, struct call_times *to,
		     uint64_t *queue_ns)
{
	uint32_t at = walk->row_of[row];
	int err;

	if (at == NONE)
		return 0;
	*queue_ns = walk->times.rows.items[at].queue_ns;
	err = sample_times__row(&walk->times, tree, at, to);
	return err ? err : 1;
}
