/* Ready selections: the tail, what began at the largest change, and the densest episode of late requests. */
const picks = (() => {
	const BINS = 200, LATE_MIN = 5, SCORE_MIN = 8;

	function bins({rows}) {
		let from = Infinity, to = -Infinity;
		for (let i = 0; i < rows.cnt; i++) {
			from = Math.min(from, rows.time[i]);
			to = Math.max(to, rows.time[i]);
		}
		to = Math.max(to, from + 1e-6);
		const late = new Float64Array(BINS), all = new Float64Array(BINS), seen = new Float64Array(BINS);
		for (let i = 0; i < rows.cnt; i++) {
			if (!rows.shown[i])
				continue;
			const bin = Math.min(BINS - 1, Math.floor((rows.time[i] - from) / (to - from) * BINS));
			all[bin] += rows.weight[i];
			if (rows.group[i] === 2) {
				late[bin] += rows.weight[i];
				seen[bin]++;
			}
		}
		return {from, to, late, all, seen, at: (bin) => from + (to - from) * bin / BINS};
	}

	/*
	 * Kulldorff's scan statistic: of all windows, the one whose number of late requests is least likely at the rate of
	 * the whole recording.
	 */
	function scan(late, all, seen, widest) {
		const K = late.reduce((a, b) => a + b, 0), N = all.reduce((a, b) => a + b, 0);
		const rows = seen.reduce((a, b) => a + b, 0);
		/* Weighted requests are worth no more than the rows that they rest on. */
		const scale = K > 0 ? rows / K : 0;
		let best = {score: 0};
		for (let from = 0; from < BINS; from++) {
			let k = 0, n = 0, met = 0;
			for (let to = from; to < Math.min(BINS, from + widest); to++) {
				k += late[to];
				n += all[to];
				met += seen[to];
				const expected = K * n / N;
				if (met < LATE_MIN || k <= 2 * expected || expected <= 0)
					continue;
				const score = scale * (k * Math.log(k / expected) +
					(K > k ? (K - k) * Math.log((K - k) / (K - expected)) : 0));
				if (score > best.score)
					best = {score, from, to: to + 1};
			}
		}
		return best.score >= SCORE_MIN ? best : null;
	}

	/* Before and after which moment does the share of late requests differ most? */
	function change(late, all) {
		const K = late.reduce((a, b) => a + b, 0), N = all.reduce((a, b) => a + b, 0);
		let k = 0, n = 0, best = {distance: -1, bin: BINS / 2};
		for (let bin = 1; bin < BINS; bin++) {
			k += late[bin - 1];
			n += all[bin - 1];
			const distance = Math.abs(k / K - n / N);
			if (n > 0.1 * N && n < 0.9 * N && distance > best.distance)
				best = {distance, bin};
		}
		return best.bin;
	}

	return (data) => {
		const {from, to, late, all, seen, at} = bins(data), {header} = data;
		const whole = {t0: from, t1: to, l0: 0, l1: Infinity};
		const episode = scan(late, all, seen, BINS / 2), changed = at(change(late, all));
		const made = [{id: 'tail', text: `the tail (≥ ${duration(header.tail_ns)})`, what: 'late requests', late: true, ...whole}];
		made.push({id: 'span', text: `after ${moment(changed)}`, what: `requests after ${moment(changed)}`, ...whole, t0: changed});
		if (episode) {
			const t0 = at(episode.from), t1 = at(episode.to);
			const when = `${moment(t0)}, for ${duration((t1 - t0) * 1e9)}`;
			made.push({id: 'episode', text: `episode at ${when}`, what: `late requests of the episode at ${when},`, late: true, ...whole, t0, t1});
		}
		return made;
	};
})();
