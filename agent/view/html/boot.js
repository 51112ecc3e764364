/* Confidence intervals by a block bootstrap, in a worker: 95 %, by percentiles. */
const boot = (() => {
	const BLOCKS = 100, BLOCKS_MIN = 5, REPLICATES = 400;
	let worker = null, serial = 0, done;
	const waiting = new Map();

	/*
	 * In the worker.  Groups are drawn apart, each in whole blocks.  A group has sums of `parts` figures and the weight, block
	 * by block; a figure is its sum over the weight, or with `ratios` over the sum that follows it.  `cumulative`: with all
	 * before it.  `of` says what the intervals are of: 'means' of the first group, or of two groups the 'differences', or
	 * their 'shares' of the difference of part `total`.
	 */
	function work(event) {
		const {id, groups, replicates, total, cumulative, ratios, of} = event.data;
		const figures = ratios ? groups[0].parts / 2 : groups[0].parts;
		const means = groups.map(() => Array.from({length: figures}, () => new Float64Array(replicates)));
		let state = 88172645;
		const random = (limit) => {
			state ^= state << 13;
			state ^= state >>> 17;
			state ^= state << 5;
			return (state >>> 0) % limit;
		};
		groups.forEach(({blocks, weight, sums, parts}, g) => {
			const all = new Float64Array(parts), times = new Uint32Array(blocks);
			for (let r = 0; r < replicates; r++) {
				let whole = 0, before = 0;
				all.fill(0);
				times.fill(0);
				for (let i = 0; i < blocks; i++)
					times[random(blocks)]++;
				/* A replicate lacks a third of the blocks, and sums none of them twice. */
				for (let block = 0; block < blocks; block++) {
					const cnt = times[block], at = block * parts;
					if (!cnt)
						continue;
					whole += cnt * weight[block];
					for (let p = 0; p < parts; p++)
						all[p] += cnt * sums[at + p];
				}
				for (let p = 0; p < figures; p++) {
					const figure = ratios ? all[2 * p] / all[2 * p + 1] : all[p] / whole;
					before += figure;
					means[g][p][r] = cumulative ? before : figure;
				}
			}
		});
		const interval = (values) => {
			const known = values.filter((value) => value === value).sort();
			return known.length ? [known[Math.floor(known.length * 0.025)], known[Math.ceil(known.length * 0.975) - 1]] : [NaN, NaN];
		};
		const less = (p) => means[0][p].map((mean, r) => mean - means[1][p][r]), whole = of === 'shares' ? less(total) : null;
		postMessage({id, intervals: means[0].map((mean, p) =>
			interval(of === 'means' ? mean : of === 'differences' ? less(p) : less(p).map((part, r) => part / whole[r])))});
	}

	function start() {
		const url = URL.createObjectURL(new Blob([`onmessage = ${work}`]));
		worker = new Worker(url);
		URL.revokeObjectURL(url);
		worker.onmessage = (event) => {
			const told = waiting.get(event.data.id);
			waiting.delete(event.data.id);
			told(event.data.intervals);
			settle();
		};
	}

	function settle() {
		if (!waiting.size && done) {
			done();
			done = null;
		}
	}

	/* A group of so many items in their order: add(i, put) calls put(part, amount). */
	function sums(cnt, parts, weightOf, add) {
		const blocks = Math.max(1, Math.min(BLOCKS, Math.ceil(cnt ** (2 / 3))));
		const group = {blocks, parts, weight: new Float64Array(blocks), sums: new Float64Array(blocks * parts)};
		let base = 0;
		const put = (part, amount) => {
			group.sums[base + part] += amount;
		};
		for (let i = 0; i < cnt; i++) {
			const block = Math.floor(i * blocks / cnt);
			base = block * parts;
			group.weight[block] += weightOf(i);
			add(i, put);
		}
		return group;
	}

	/* It is there before the first selection needs it. */
	start();
	return {
		sums,
		means({blocks, parts, weight, sums: of}) {
			const total = weight.reduce((a, b) => a + b, 0), all = new Float64Array(parts);
			for (let b = 0; b < blocks; b++)
				for (let p = 0; p < parts; p++)
					all[p] += of[b * parts + p];
			return all.map((sum) => (total > 0 ? sum / total : 0));
		},
		/* What an earlier selection still waits for is of no use. */
		begin(whenDone) {
			if (waiting.size) {
				worker.terminate();
				waiting.clear();
				start();
			}
			done = whenDone;
		},
		/* told(intervals) follows; null where there are too few requests. */
		run(job, told) {
			if (job.groups.some((group) => group.blocks < BLOCKS_MIN)) {
				told(null);
				return;
			}
			waiting.set(++serial, told);
			worker.postMessage({id: serial, replicates: REPLICATES, total: 0, ...job});
		},
		settle,
	};
})();
