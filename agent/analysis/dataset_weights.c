// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the spool dropped (net/spool.h).  A row of the baseline sample stands for as many intervals as its weight says;
 * where some of a recording's were dropped, those that are left stand for them, too, so that weights sum to what there
 * was.  That rests on the dropped ones having been like the others, so that they count as lost, by their weight.
 */
#include "analysis/dataset_build.h"

#include "model/session.h"

#include <math.h>

/* What the spool of one recording says of its rows. */
struct spool_account {
	uint64_t emitted, lost, emitted_baseline, lost_baseline;
};

static void read_accounts(const struct dataset_build *build, struct spool_account *accounts)
{
	for (size_t i = 0; i < build->losses.cnt; i++) {
		const struct build_loss *loss = &build->losses.items[i];
		struct spool_account *account = &accounts[loss->session];

		if (loss->class == WL_LOSS_SPOOL) {
			account->emitted = loss->emitted;
			account->lost = loss->lost < loss->emitted ? loss->lost : loss->emitted;
		} else if (loss->class == WL_LOSS_SPOOL_BASELINE) {
			account->emitted_baseline = loss->emitted;
			account->lost_baseline = loss->lost < loss->emitted ? loss->lost : loss->emitted;
		}
	}
}

/* How many intervals went with the rows that were dropped; *factor: of the weights of the baseline that is left. */
static double lost_weight(const struct spool_account *account, const struct build_session *session, double *factor)
{
	uint64_t baseline = account->lost_baseline < account->lost ? account->lost_baseline : account->lost;
	uint64_t left = account->emitted_baseline - account->lost_baseline, seen;
	double lost = (double)(account->lost - baseline);

	*factor = 1;
	if (baseline && left) {
		*factor = (double)account->emitted_baseline / (double)left;
		return lost + session->asked_baseline_weight * (*factor - 1);
	}
	/* Nothing of it is left that could tell what they stood for, but what was seen in all. */
	if (baseline && build_session__number(session, "intervals_seen", &seen) && (double)seen > session->weight)
		return lost + ((double)seen - session->weight);
	return lost + (double)baseline;
}

static int say_dropped(struct dataset_build *build, uint64_t rows, uint64_t of_rows, bool all)
{
	char *note = arena__printf(build->arena,
				   "%llu of %llu rows of the baseline sample were dropped before they reached the "
				   "collector: %s",
				   (unsigned long long)rows, (unsigned long long)of_rows,
				   all ? "nothing stands for them" : "the others stand for them, too");

	return note ? dataset_build__note(build, note) : -ENOMEM;
}

int dataset_build__reweight(struct dataset_build *build)
{
	struct spool_account *accounts = calloc(build->sessions.cnt + 1, sizeof(*accounts));
	struct dataset *dataset = build->dataset;
	int err = 0;

	if (!accounts)
		return -ENOMEM;
	read_accounts(build, accounts);
	for (size_t i = 0; i < build->sessions.cnt && !err; i++) {
		struct build_session *session = &build->sessions.items[i];

		session->baseline_factor = 1;
		if (session->unwanted || !accounts[i].lost)
			continue;
		dataset->spool_lost_weight += lost_weight(&accounts[i], session, &session->baseline_factor);
		if (accounts[i].lost_baseline)
			err = say_dropped(build, accounts[i].lost_baseline, accounts[i].emitted_baseline,
					  session->baseline_factor == 1);
	}
	for (size_t row = 0; row < dataset->row_cnt && dataset->spool_lost_weight > 0; row++)
		if (dataset->flags[row] & WL_INTERVAL_BASELINE)
			dataset->weight[row] *= build->sessions.items[dataset->session[row]].baseline_factor;
	free(accounts);
	return err;
}

#define HW_EPOCH_NS   1000000000ULL /* of recordings that do not tell */
#define HW_FACTOR_MAX 100.0         /* epochs are not all equally long */

/* 0: counters were never swapped. */
static uint64_t hw_epoch_ns(const struct build_session *session)
{
	uint64_t rotations, epoch_ns;

	if (build_session__number(session, SESSION_HW_EPOCH_NS, &epoch_ns) && epoch_ns)
		return epoch_ns;
	return build_session__number(session, SESSION_HW_ROTATIONS, &rotations) ? 0 : HW_EPOCH_NS;
}

/*
 * Epochs of length E follow each other without regard to the intervals: one that takes L falls on a border with
 * probability L/E, and then has no values.  So each that has them stands for 1/(1 - L/E) of its length.
 */
double build_session__hw_factor(struct build_session *session, uint64_t worked_ns, double weight, bool has_hw)
{
	if (!session->hw_epoch_known) {
		session->hw_epoch_ns = hw_epoch_ns(session);
		session->hw_epoch_known = true;
	}
	session->has_hw |= has_hw;
	if (!session->hw_epoch_ns)
		return 1;
	if (worked_ns >= session->hw_epoch_ns) {
		session->above_epoch_weight += weight;
		return HW_FACTOR_MAX;
	}
	return fmin(HW_FACTOR_MAX, 1 / (1 - (double)worked_ns / (double)session->hw_epoch_ns));
}

int dataset_build__hw_end(struct dataset_build *build)
{
	double above = 0, all = 0;
	uint64_t epoch_ns = 0;
	char *note;

	for (size_t i = 0; i < build->sessions.cnt; i++) {
		const struct build_session *session = &build->sessions.items[i];

		if (!session->has_hw || session->unwanted)
			continue;
		above += session->above_epoch_weight;
		epoch_ns = session->hw_epoch_ns > epoch_ns ? session->hw_epoch_ns : epoch_ns;
	}
	for (size_t row = 0; row < build->dataset->row_cnt; row++)
		all += build->dataset->weight[row];
	if (!(above > 0) || !(all > 0))
		return 0;
	note = arena__printf(
		build->arena,
		"%.2g %% of the requests took longer than the %.2g s for which the same hardware counters are "
		"on: they have no values, and events of counters say nothing of them",
		100 * fmin(1, above / all), (double)epoch_ns / 1e9);
	return note ? dataset_build__note(build, note) : -ENOMEM;
}
