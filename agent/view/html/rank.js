/* Selected requests against the rest: differences of means, part by part. */
const rank = (() => {
	/* Sums of weighted time; the last part is the latency. */
	function group(rows, list, parts) {
		return boot.sums(list.length, parts.length + 1, (i) => rows.weight[list[i]], (i, put) => {
			const row = list[i], weight = rows.weight[row];
			for (let p = 0; p < parts.length; p++)
				put(p, weight * parts[p].ns[row]);
			put(parts.length, weight * rows.latency[row]);
		});
	}

	/*
	 * Lines by what they contribute to the difference, the largest first: selected requests may be the faster ones.
	 * told(intervals of the shares) follows, null where there are too few requests.
	 */
	function compare(rows, selected, rest, parts, told) {
		const groups = [group(rows, selected, parts), group(rows, rest, parts)];
		const [own, other] = groups.map(boot.means), total = parts.length, whole = own[total] - other[total];
		const lines = parts.map((part, p) => ({
			part, p, selected: own[p], rest: other[p], difference: own[p] - other[p],
			share: whole ? (own[p] - other[p]) / whole : NaN,
		}));
		if (whole)
			boot.run({groups, total, of: 'shares'}, told);
		else
			told(null);
		/* What has no known cause is no answer: it comes last. */
		const sign = whole < 0 ? -1 : 1;
		return {whole, lines: lines.sort((a, b) => !!a.part.plain - !!b.part.plain || sign * (b.difference - a.difference))};
	}
	return {compare};
})();
