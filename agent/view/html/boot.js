/* Confidence intervals by a block bootstrap, in a worker: 95 %, by percentiles. */
const boot = (() => {
	const BLOCKS = 100, BLOCKS_MIN = 5, REPLICATES = 400;
	let worker, serial = 0, done;
	const waiting = new Map();

	/*
	 * In the worker.  Groups are drawn apart, each in whole blocks.  A group has sums of `parts` figures and the weight, block
	 * by block; a figure is its sum over the weight, or with `ratios` over the sum that follows it.  `cumulative`: with all
	 * before it.  Of two groups the differences as well, and their shares of the difference of part `total`.
	 */
	function work(event) {
		const {id, groups, replicates, total, cumulative, ratios} = event.data;
		const figures = ratios ? groups[0].parts / 2 : groups[0].parts;
		const sample = () => Array.from({length: figures}, () => new Float64Array(replicates));
		const means = groups.map(sample), pair = groups.length === 2 && groups[1].parts === groups[0].parts;
		const differences = pair ? sample() : [], shares = pair ? sample() : [];
		let state = 88172645;
		const random = (limit) => {
			state ^= state << 13;
			state ^= state >>> 17;
			state ^= state << 5;
			return (state >>> 0) % limit;
		};
		groups.forEach(({blocks, weight, sums, parts}, g) => {
			const all = new Float64Array(parts);
			for (let r = 0; r < replicates; r++) {
				let whole = 0, before = 0;
				all.fill(0);
				for (let i = 0; i < blocks; i++) {
					const block = random(blocks), at = block * parts;
					whole += weight[block];
					for (let p = 0; p < parts; p++)
						all[p] += sums[at + p];
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
		if (pair)
			for (let p = 0; p < figures; p++)
				for (let r = 0; r < replicates; r++) {
					differences[p][r] = means[0][p][r] - means[1][p][r];
					shares[p][r] = differences[p][r] / (means[0][total][r] - means[1][total][r]);
				}
		postMessage({id, means: means.map((group) => group.map(interval)), differences: differences.map(interval),
			shares: shares.map(interval)});
	}

	function start() {
		const url = URL.createObjectURL(new Blob([`onmessage = ${work}`]));
		worker = new Worker(url);
		URL.revokeObjectURL(url);
		worker.onmessage = (event) => {
			const told = waiting.get(event.data.id);
			waiting.delete(event.data.id);
			told(event.data);
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
				worker = null;
				waiting.clear();
			}
			done = whenDone;
		},
		/* told(intervals) follows; null where there are too few requests. */
		run(job, told) {
			if (job.groups.some((group) => group.blocks < BLOCKS_MIN)) {
				told(null);
				return;
			}
			if (!worker)
				start();
			waiting.set(++serial, told);
			worker.postMessage({id: serial, replicates: REPLICATES, total: 0, ...job});
		},
		settle,
	};
})();
