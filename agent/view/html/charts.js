/* Shares by latency quantile, and distributions without a cause. */

/* Percentiles as they are read: p90, p99 and p99.9 are equally far apart. */
const nines = {
	of: (p) => -Math.log10(Math.max(1 - p, 1e-6)),
	back: (v) => 1 - 10 ** -v,
	ticks: [0, 0.5, 0.9, 0.99, 0.999, 0.9999],
	label: (p) => 'p' + +(p * 100).toFixed(3),
};

/* Those that are shown, by latency. */
function orderOf(rows) {
	const order = new Uint32Array(rows.cnt);
	let cnt = 0;
	for (let i = 0; i < rows.cnt; i++)
		if (rows.shown[i])
			order[cnt++] = i;
	return order.subarray(0, cnt).sort((a, b) => rows.latency[a] - rows.latency[b]);
}

const shares = (() => {
	const LEFT = 44, BOTTOM = 22, HEIGHT = 260, BINS = 48;
	let canvas, data, order, parts, bins;

	const shade = (p) => (parts[p].plain ? theme('none') : colour(p));

	function fill() {
		const {rows} = data;
		let total = 0, before = 0;
		for (const row of order)
			total += rows.weight[row];
		const most = nines.of(1 - Math.min(0.5, 10 / order.length));
		bins = Array.from({length: BINS}, () => ({ns: new Float64Array(parts.length), weight: 0}));
		for (const row of order) {
			const bin = bins[Math.min(BINS - 1, Math.floor(nines.of((before + rows.weight[row] / 2) / total) / most * BINS))];
			before += rows.weight[row];
			bin.weight += rows.weight[row];
			parts.forEach((part, p) => {
				bin.ns[p] += rows.weight[row] * part.ns[row];
			});
		}
		bins.most = most;
	}

	function draw() {
		const {pen, width} = surface(canvas, HEIGHT), bottom = HEIGHT - BOTTOM, wide = width - LEFT - 8;
		const met = bins.map((bin, b) => [bin, b]).filter(([bin]) => bin.weight > 0);
		const at = (b) => LEFT + (b + 0.5) / BINS * wide;
		const floor = new Float64Array(bins.length);
		parts.forEach((_, p) => {
			const upper = met.map(([bin, b]) => {
				const sum = bin.ns.reduce((x, y) => x + y, 0);
				return [at(b), floor[b], floor[b] + (sum > 0 ? bin.ns[p] / sum : 0), b];
			});
			pen.fillStyle = shade(p);
			pen.beginPath();
			upper.forEach(([px, , top]) => pen.lineTo(px, bottom - top * (bottom - 6)));
			[...upper].reverse().forEach(([px, low]) => pen.lineTo(px, bottom - low * (bottom - 6)));
			pen.fill();
			upper.forEach(([, , top, b]) => {
				floor[b] = top;
			});
		});
		pen.fillStyle = theme('faint');
		pen.textAlign = 'center';
		for (const tick of nines.ticks)
			if (nines.of(tick) <= bins.most)
				pen.fillText(nines.label(tick), Math.min(Math.max(LEFT + nines.of(tick) / bins.most * wide, LEFT + 8), width - 24), bottom + 12);
		pen.textAlign = 'right';
		for (const share of [0, 0.5, 1])
			pen.fillText(percent(share), LEFT - 6, bottom - share * (bottom - 6));
	}

	function use(chosen, sorted) {
		parts = chosen;
		order = sorted;
		fill();
		draw();
		legend($('shares-legend'), parts.map((part, p) => [shade(p), part.label]));
	}

	function open(into, from) {
		canvas = into;
		data = from;
		canvas.addEventListener('pointermove', (event) => {
			const bin = bins[Math.floor((pointer(canvas, event)[0] - LEFT) / (canvas.clientWidth - LEFT - 8) * BINS)];
			if (!bin || !bin.weight)
				return;
			const sum = bin.ns.reduce((a, b) => a + b, 0);
			const told = [...bin.ns.keys()].sort((a, b) => bin.ns[b] - bin.ns[a]).slice(0, 4)
				.filter((p) => bin.ns[p] > 0).map((p) => `${percent(bin.ns[p] / sum)} ${parts[p].label}`);
			$('shares-tell').textContent = `${duration(sum / bin.weight)}: ${told.join('; ')}`;
		});
	}
	return {open, use, draw};
})();

const cdf = (() => {
	const POINTS = 240, CURVES = 3;
	let chart, into, made;

	/* The share of requests, by weight, that take at most so long. */
	function curve(rows, order, grid, latencyOf) {
		const sums = new Float64Array(grid.length + 1);
		const low = Math.log(grid[0]), step = (Math.log(grid[grid.length - 1]) - low) / (grid.length - 1);
		let total = 0, sum = 0;
		for (const i of order) {
			const at = Math.ceil((Math.log(Math.max(1, latencyOf(i))) - low) / step - 1e-9);
			sums[Math.min(Math.max(at, 0), grid.length)] += rows.weight[i];
			total += rows.weight[i];
		}
		return grid.map((_, i) => {
			sum += sums[i];
			return sum >= total * (1 - 1e-9) ? null : nines.of(sum / total);
		});
	}

	function draw() {
		const style = {stroke: theme('faint'), grid: {stroke: theme('line'), width: 1}, ticks: {stroke: theme('line')}};
		chart?.destroy();
		chart = new uPlot({
			width: Math.max(280, into.clientWidth), height: 280, cursor: {drag: {x: true, y: false}},
			scales: {x: {time: false, distr: 3}, y: {range: [0, made.most]}},
			axes: [
				{...style, values: (_, values) => values.map((v) => (v === null ? '' : duration(v)))},
				{...style, size: 64, splits: () => nines.ticks.map(nines.of).filter((v) => v <= made.most),
					values: (_, values) => values.map((v) => nines.label(nines.back(v)))},
			],
			series: [
				{label: 'latency', value: (_, v) => (v === null ? '–' : duration(v))},
				...made.names.map((label, n) => ({
					label, stroke: n ? colour(made.colours[n - 1]) : theme('text'), width: n ? 1.5 : 2, dash: n ? [6, 3] : undefined,
					value: (_, v) => (v === null || v === undefined ? '–' : nines.label(nines.back(v))),
				})),
			],
		}, made.series, into);
	}

	function use(element, {rows, causes}, order) {
		if (!order.length)
			return;
		const high = Math.max(2, rows.latency[order[order.length - 1]] * 1.02), low = Math.max(1, rows.latency[order[0]] / 4);
		const grid = Array.from({length: POINTS}, (_, i) => low * (high / low) ** (i / (POINTS - 1)));
		const without = causes.slice(0, CURVES);
		into = element;
		made = {
			names: ['as recorded', ...without.map((_, n) => `without cause ${n + 1}`)],
			colours: without.map((_, n) => n),
			series: [grid, curve(rows, order, grid, (i) => rows.latency[i]),
				...without.map((cause) => curve(rows, order, grid, (i) => rows.latency[i] - cause.ns[i]))],
			most: Math.max(1, nines.of(1 - 1 / order.length)),
		};
		draw();
	}
	return {use, draw: () => chart && draw()};
})();
