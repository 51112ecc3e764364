// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/fleet.h"

#include "base/loghist.h"
#include "base/order.h"

#include <math.h>
#include <string.h>

#define Z95          1.959964
#define STANDS_OUT   1.2
#define STANDS_OUT_P 0.05
#define CHANGE_P     0.01
#define CHANGE_MIN   1.2 /* times */
#define CHANGE_LATE  10  /* late requests on each side */

double fleet_quantile(const struct fleet_bin *bins, size_t cnt, double q)
{
	double total = 0, sum = 0;

	for (size_t i = 0; i < cnt; i++)
		total += bins[i].weight;
	for (size_t i = 0; i < cnt; i++) {
		sum += bins[i].weight;
		if (bins[i].weight > 0 && sum >= q * total)
			return loghist_middle(bins[i].class_no);
	}
	return NAN;
}

static void summarise(struct fleet_group *group, double tail)
{
	double weight2 = 0, error;

	group->requests = 0;
	for (size_t i = 0; i < group->bins.cnt; i++) {
		group->requests += group->bins.items[i].weight;
		weight2 += group->bins.items[i].weight2;
	}
	group->effective = weight2 > 0 ? group->requests * group->requests / weight2 : 0;
	group->median_ns = fleet_quantile(group->bins.items, group->bins.cnt, 0.5);
	group->tail_ns = fleet_quantile(group->bins.items, group->bins.cnt, tail);
	/* Order statistics, normal approximation. */
	error = group->effective > 0 ? Z95 * sqrt(tail * (1 - tail) / group->effective) : 1;
	group->tail_ci.lo = fleet_quantile(group->bins.items, group->bins.cnt, fmax(0, tail - error));
	group->tail_ci.hi = fleet_quantile(group->bins.items, group->bins.cnt, fmin(1, tail + error));
}

ORDER(by_tail, struct fleet_group, BY(isnan(a->tail_ns), isnan(b->tail_ns)), BY(b->tail_ns, a->tail_ns),
      strcmp(a->name, b->name));

/* The median of the known tails without that of group `skip`; the groups are sorted. */
static double peers_tail(const struct fleet_group *groups, size_t known_cnt, size_t skip)
{
	size_t cnt = known_cnt - (skip < known_cnt), low, high;

	if (!cnt)
		return NAN;
	low = (cnt - 1) / 2;
	high = cnt / 2;
	low += low >= skip;
	high += high >= skip;
	return (groups[low].tail_ns + groups[high].tail_ns) / 2;
}

int fleet_compare(struct fleet_group *groups, size_t cnt, double tail)
{
	size_t known_cnt = 0;

	if (!(tail > 0) || !(tail < 1))
		return -EINVAL;
	for (size_t i = 0; i < cnt; i++)
		if (!groups[i].summed)
			summarise(&groups[i], tail);
	qsort(groups, cnt, sizeof(*groups), by_tail);
	while (known_cnt < cnt && !isnan(groups[known_cnt].tail_ns))
		known_cnt++;
	for (size_t i = 0; i < cnt; i++) {
		groups[i].peers_tail_ns = peers_tail(groups, known_cnt, i);
		groups[i].stands_out = groups[i].tail_ns >= STANDS_OUT * groups[i].peers_tail_ns &&
				       groups[i].tail_ci.lo > groups[i].peers_tail_ns;
	}
	return 0;
}

ORDER(by_host_tail, struct fleet_host_tail, BY(a->tail_ns, b->tail_ns));

/* The chance that a sum of ranks of n of all is that large; ties is Σ(t³ − t). */
static double rank_sum_p(double sum, double n, double all, double ties)
{
	double others = all - n, mean = n * (all + 1) / 2;
	double variance = n * others / 12 * (all + 1 - ties / (all * (all - 1)));

	return n > 0 && others > 0 && variance > 0 ? 0.5 * erfc((sum - mean - 0.5) / sqrt(2 * variance)) : 1;
}

int fleet_compare_hosts(struct fleet_group *groups, size_t cnt, const struct fleet_host_tail *hosts, size_t host_cnt)
{
	struct fleet_host_tail *sorted = malloc((host_cnt + 1) * sizeof(*sorted));
	double *sums = calloc(cnt + 1, sizeof(*sums)), ties = 0;
	size_t next;

	if (!sorted || !sums) {
		free(sorted);
		free(sums);
		return -ENOMEM;
	}
	memcpy(sorted, hosts, host_cnt * sizeof(*sorted));
	qsort(sorted, host_cnt, sizeof(*sorted), by_host_tail);
	for (size_t i = 0; i < cnt; i++)
		groups[i].host_cnt = 0;
	for (size_t i = 0; i < host_cnt; i = next) {
		double tied;

		for (next = i + 1; next < host_cnt && sorted[next].tail_ns == sorted[i].tail_ns;)
			next++;
		tied = (double)(next - i);
		ties += tied * tied * tied - tied;
		for (size_t j = i; j < next; j++) {
			if (sorted[j].group >= cnt)
				continue;
			groups[sorted[j].group].host_cnt++;
			sums[sorted[j].group] += ((double)i + 1 + (double)next) / 2;
		}
	}
	for (size_t i = 0; i < cnt; i++) {
		groups[i].rank_p = rank_sum_p(sums[i], groups[i].host_cnt, (double)host_cnt, ties);
		groups[i].stands_out &= groups[i].rank_p < STANDS_OUT_P;
	}
	free(sorted);
	free(sums);
	return 0;
}

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

double fleet_fisher(uint32_t late, uint32_t late_cnt, uint32_t other, uint32_t other_cnt)
{
	uint32_t have = late + other, all = late_cnt + other_cnt;
	uint32_t most = have < late_cnt ? have : late_cnt;
	double p = 0;

	for (uint32_t k = late; k <= most; k++)
		if (have - k <= other_cnt)
			p += exp(log_choose(late_cnt, k) + log_choose(other_cnt, have - k) - log_choose(all, have));
	return p < 1 ? p : 1;
}

ORDER(by_p, struct fleet_fact, BY(a->p, b->p), strcmp(a->key, b->key), strcmp(a->value, b->value));

static bool is_tested(const struct fleet_fact *fact, uint32_t late_cnt, uint32_t other_cnt)
{
	return fact->late && (fact->late < late_cnt || fact->other < other_cnt);
}

void fleet_rank_facts(struct fleet_fact *facts, size_t cnt, uint32_t late_cnt, uint32_t other_cnt)
{
	size_t tested_cnt = 0;
	double least = 0;

	for (size_t i = 0; i < cnt; i++) {
		bool tested = is_tested(&facts[i], late_cnt, other_cnt);

		facts[i].p = tested ? fleet_fisher(facts[i].late, late_cnt, facts[i].other, other_cnt) : 1;
		tested_cnt += tested;
	}
	qsort(facts, cnt, sizeof(*facts), by_p);
	for (size_t i = 0; i < cnt; i++) {
		double factor = i < tested_cnt ? (double)(tested_cnt - i) : 1;

		least = fmax(least, fmin(1, facts[i].p * factor));
		facts[i].p_adjusted = least;
	}
}

/* Of n trials with share p of them, for its own best share. */
static double log_likelihood(double n, double p)
{
	return n > 0 && p > 0 && p < 1 ? n * (p * log(p) + (1 - p) * log(1 - p)) : 0;
}

struct fleet_change fleet_find_change(const struct fleet_step *steps, size_t cnt)
{
	struct fleet_change change = {.p = 1, .before_share = NAN, .after_share = NAN};
	double weight = 0, weight2 = 0, late = 0, before_weight = 0, before_late = 0, best = 0, scale;
	size_t places = 0, at = 0;

	for (size_t i = 0; i < cnt; i++) {
		weight += steps[i].weight;
		weight2 += steps[i].weight2;
		late += steps[i].late;
	}
	if (cnt < 2 || weight <= 0 || weight2 <= 0)
		return change;
	/* Weighted requests count as so many independent ones. */
	scale = weight / weight2;
	for (size_t i = 1; i < cnt; i++) {
		double after_weight, after_late, gain;

		before_weight += steps[i - 1].weight;
		before_late += steps[i - 1].late;
		after_weight = weight - before_weight;
		after_late = late - before_late;
		if (before_weight <= 0 || after_weight <= 0)
			continue;
		places++;
		if ((before_late + after_late) * scale < CHANGE_LATE)
			continue;
		gain = log_likelihood(before_weight * scale, before_late / before_weight) +
		       log_likelihood(after_weight * scale, after_late / after_weight) -
		       log_likelihood(weight * scale, late / weight);
		if (gain > best) {
			best = gain;
			at = i;
			change.before_share = before_late / before_weight;
			change.after_share = after_late / after_weight;
		}
	}
	if (!at)
		return change;
	change.since_ns = steps[at].begin_ns;
	/* Twice the gain is a χ² of one degree at a given place. */
	change.p = fmin(1, (double)places * erfc(sqrt(best)));
	change.found = change.p < CHANGE_P && (change.after_share > CHANGE_MIN * change.before_share ||
					       change.before_share > CHANGE_MIN * change.after_share);
	return change;
}
