/* Selected requests against the rest: differences of means by cause, with a block bootstrap in a worker. */
const rank = (() => {
	const BLOCKS = 100, BLOCKS_MIN = 5;
	let worker, serial = 0, waiting;

	/* In the worker.  Blocks of selected and of other requests are drawn apart; 95 % by percentiles. */
	function bootstrap(event) {
		const {id, groups, parts, replicates} = event.data;
		const shares = Array.from({length: parts}, () => new Float64Array(replicates));
		let state = 88172645;
		const random = (limit) => {
			state ^= state << 13;
			state ^= state >>> 17;
			state ^= state << 5;
			return (state >>> 0) % limit;
		};
		for (let r = 0; r < replicates; r++) {
			const means = groups.map(({blocks, weight, sums}) => {
				const total = new Float64Array(parts + 1);
				for (let i = 0; i < blocks; i++) {
					const block = random(blocks);
					total[parts] += weight[block];
					for (let p = 0; p < parts; p++)
						total[p] += sums[block * parts + p];
				}
				return total;
			});
			const difference = (p) => means[0][p] / means[0][parts] - means[1][p] / means[1][parts];
			let whole = 0;
			for (let p = 0; p < parts; p++)
				whole += difference(p);
			for (let p = 0; p < parts; p++)
				shares[p][r] = difference(p) / whole;
		}
		const intervals = shares.map((values) => {
			values.sort();
			return [values[Math.floor(replicates * 0.025)], values[Math.ceil(replicates * 0.975) - 1]];
		});
		postMessage({id, intervals});
	}

	/* Sums of weight and of weighted time, block by block. */
	function blockSums(rows, list, parts) {
		const blocks = Math.max(1, Math.min(BLOCKS, Math.ceil(list.length ** (2 / 3))));
		const weight = new Float64Array(blocks), sums = new Float64Array(blocks * parts.length);
		for (let i = 0; i < list.length; i++) {
			const block = Math.floor(i * blocks / list.length), row = list[i];
			weight[block] += rows.weight[row];
			for (let p = 0; p < parts.length; p++)
				sums[block * parts.length + p] += rows.weight[row] * parts[p].ns[row];
		}
		return {blocks, weight, sums};
	}

	function means(group, parts) {
		const total = group.weight.reduce((a, b) => a + b, 0);
		return parts.map((_, p) => {
			let sum = 0;
			for (let b = 0; b < group.blocks; b++)
				sum += group.sums[b * parts.length + p];
			return total > 0 ? sum / total : 0;
		});
	}

	/*
	 * Lines by what they contribute to the difference, the largest first: selected requests may be the faster ones.
	 * told(intervals) follows, null where there are too few requests.
	 */
	function compare(rows, selected, rest, parts, told) {
		const groups = [blockSums(rows, selected, parts), blockSums(rows, rest, parts)];
		const [own, other] = groups.map((group) => means(group, parts));
		const whole = own.reduce((sum, ns, p) => sum + ns - other[p], 0);
		const lines = parts.map((part, p) => ({
			part, p, selected: own[p], rest: other[p], difference: own[p] - other[p],
			share: whole ? (own[p] - other[p]) / whole : NaN,
		}));
		const id = ++serial;
		waiting = {id, told};
		if (groups.some((group) => group.blocks < BLOCKS_MIN) || !whole) {
			told(null);
		} else {
			if (!worker) {
				worker = new Worker(URL.createObjectURL(new Blob([`onmessage = ${bootstrap}`])));
				worker.onmessage = (event) => {
					if (event.data.id === waiting.id)
						waiting.told(event.data.intervals);
				};
			}
			worker.postMessage({id, groups, parts: parts.length, replicates: 400});
		}
		/* What has no known cause is no answer: it comes last. */
		const sign = whole < 0 ? -1 : 1;
		return {whole, lines: lines.sort((a, b) => !!a.part.plain - !!b.part.plain || sign * (b.difference - a.difference))};
	}
	return {compare};
})();
