/* Shares by latency quantile, and distributions without a cause. */

/* Percentiles as they are read: p90, p99 and p99.9 are equally far apart. */
const nines = {
	of: (p) => -Math.log10(Math.max(1 - p, 1e-6)),
	back: (v) => 1 - 10 ** -v,
	ticks: [0, 0.5, 0.9, 0.99, 0.999, 0.9999],
	label: (p) => 'p' + +(p * 100).toFixed(3),
};

/* All requests by latency. */
const orderOf = (rows) => Uint32Array.from({length: rows.cnt}, (_, i) => i).sort((a, b) => rows.latency[a] - rows.latency[b]);

/*
 * What a chart is about: the selected and the other requests, or all; `list` in the order of time, `order` by latency.
 * Made once for a selection, in one pass.
 */
function groupsOf(selection, of) {
	const {order, ranked, shown, mask, any, selected, rest} = selection, all = of === 'all' || !any, key = all ? 'all' : 'both';
	selection.groups ||= {};
	if (selection.groups[key])
		return selection.groups[key];
	const lists = all ? [Uint32Array.from(order.keys()).filter((row) => shown[row])] : [selected, rest];
	const made = lists.map((list, n) => ({name: all ? 'all requests' : n ? 'the rest' : 'selected', list, order: new Uint32Array(list.length)}));
	const next = [0, 0];
	for (const row of order)
		if (shown[row] && (all || ranked[row])) {
			const group = all || mask[row] ? 0 : 1;
			made[group].order[next[group]++] = row;
		}
	return (selection.groups[key] = made);
}

const shares = (() => {
	const LEFT = 44, BOTTOM = 22, TOP = 18, HEIGHT = 260, BINS = 48, WIDE = 700;
	let canvas, data, parts, panels = [];

	const shade = (p) => (parts[p].plain ? theme('none') : colour(p));

	function fill({name, order}) {
		const {rows} = data, panel = {name, bins: Array.from({length: BINS}, () => ({ns: new Float64Array(parts.length), weight: 0}))};
		let total = 0, before = 0;
		for (const row of order)
			total += rows.weight[row];
		panel.most = nines.of(1 - Math.min(0.5, 10 / order.length));
		for (const row of order) {
			const bin = panel.bins[Math.min(BINS - 1, Math.floor(nines.of((before + rows.weight[row] / 2) / total) / panel.most * BINS))];
			before += rows.weight[row];
			bin.weight += rows.weight[row];
			for (let p = 0; p < parts.length; p++)
				bin.ns[p] += rows.weight[row] * parts[p].ns[row];
		}
		return panel;
	}

	/* Side by side where there is room. */
	function place(width) {
		const beside = panels.length > 1 && width >= WIDE, wide = (beside ? width / panels.length : width) - LEFT - 8;
		panels.forEach((panel, n) => Object.assign(panel, {
			x: LEFT + (beside ? n * width / panels.length : 0), y: beside ? 0 : n * (HEIGHT + 8), wide,
		}));
		return beside ? HEIGHT : panels.length * (HEIGHT + 8);
	}

	function axes(pen, {name, most, x, y, wide}) {
		const bottom = y + HEIGHT - BOTTOM;
		pen.fillStyle = theme('text');
		pen.textAlign = 'left';
		pen.fillText(name, x, y + 8);
		pen.fillStyle = theme('faint');
		pen.textAlign = 'center';
		let free = -Infinity;
		for (const tick of nines.ticks) {
			const at = Math.min(Math.max(x + nines.of(tick) / most * wide, x + 8), x + wide - 16);
			if (nines.of(tick) > most || at < free)
				continue;
			pen.fillText(nines.label(tick), at, bottom + 12);
			free = at + 40;
		}
		pen.textAlign = 'right';
		for (const share of [0, 0.5, 1])
			pen.fillText(percent(share), x - 6, bottom - share * (HEIGHT - BOTTOM - TOP));
	}

	function area(pen, {bins, x, y, wide}) {
		const bottom = y + HEIGHT - BOTTOM, high = HEIGHT - BOTTOM - TOP;
		const met = bins.map((bin, b) => [bin, b]).filter(([bin]) => bin.weight > 0), floor = new Float64Array(BINS);
		parts.forEach((_, p) => {
			/* One bin alone is drawn as wide as it is. */
			const upper = met.flatMap(([bin, b]) => {
				const sum = bin.ns.reduce((a, c) => a + c, 0), top = floor[b] + (sum > 0 ? bin.ns[p] / sum : 0);
				return (met.length > 1 ? [b + 0.5] : [b, b + 1]).map((at) => [x + at / BINS * wide, floor[b], top, b]);
			});
			pen.fillStyle = shade(p);
			pen.beginPath();
			upper.forEach(([px, , top]) => pen.lineTo(px, bottom - top * high));
			[...upper].reverse().forEach(([px, low]) => pen.lineTo(px, bottom - low * high));
			pen.fill();
			upper.forEach(([, , top, b]) => {
				floor[b] = top;
			});
		});
	}

	function draw() {
		if (!panels.length)
			return;
		const {pen} = surface(canvas, place(canvas.clientWidth));
		for (const panel of panels) {
			area(pen, panel);
			axes(pen, panel);
		}
		legend($('shares-legend'), parts.map((part, p) => [shade(p), part.label]));
	}

	function use(chosen, groups) {
		parts = chosen;
		panels = groups.filter(({order}) => order.length).map(fill);
		draw();
	}

	function open(into, from) {
		canvas = into;
		data = from;
		canvas.addEventListener('pointermove', (event) => {
			const [px, py] = pointer(canvas, event);
			const panel = panels.find(({x, y, wide}) => px >= x && px <= x + wide && py >= y && py <= y + HEIGHT);
			const bin = panel?.bins[Math.floor((px - panel.x) / panel.wide * BINS)];
			if (!bin || !bin.weight)
				return;
			const sum = bin.ns.reduce((a, b) => a + b, 0);
			const told = [...bin.ns.keys()].sort((a, b) => bin.ns[b] - bin.ns[a]).slice(0, 4)
				.filter((p) => bin.ns[p] > 0).map((p) => `${percent(bin.ns[p] / sum)} ${parts[p].label}`);
			$('shares-tell').textContent = `${panel.name}, ${duration(sum / bin.weight)}: ${told.join('; ')}`;
		});
	}
	/* Of a panel the shares over all its quantiles, for tests. */
	const means = () => panels.map(({name, bins}) => {
		const all = parts.map((_, p) => bins.reduce((sum, bin) => sum + bin.ns[p], 0)), sum = all.reduce((a, b) => a + b, 0);
		return {name, shares: all.map((ns) => ns / sum)};
	});
	return {open, use, draw, means};
})();

/* Distributions of latency with their intervals, as recorded and without a cause. */
const cdf = (() => {
	const POINTS = 200, CURVES = 3;
	let chart, into, made = null;

	/* Of each curve and point of the grid: of how many requests the latency is there. */
	function sumsOf(rows, list, grid, curves) {
		const low = Math.log(grid[0]), step = (Math.log(grid[POINTS - 1]) - low) / (POINTS - 1), parts = POINTS * curves.length;
		const at = (ns) => Math.max(Math.ceil((Math.log(Math.max(1, ns)) - low) / step - 1e-9), 0);
		return boot.sums(list.length, parts, (i) => rows.weight[list[i]], (i, put) => {
			const row = list[i], own = at(rows.latency[row]);
			curves.forEach((cause, c) => {
				const point = cause && cause.ns[row] ? at(rows.latency[row] - cause.ns[row]) : own;
				if (point < POINTS)
					put(c * POINTS + point, rows.weight[row]);
			});
		});
	}

	/* One curve of a group, as a group of its own. */
	function part(group, c) {
		const sums = new Float64Array(group.blocks * POINTS);
		for (let b = 0; b < group.blocks; b++)
			sums.set(group.sums.subarray(b * group.parts + c * POINTS, b * group.parts + (c + 1) * POINTS), b * POINTS);
		return {...group, parts: POINTS, sums};
	}

	const height = (share) => (share >= 1 - 1e-9 ? null : nines.of(share));

	function bands(u) {
		const pen = u.ctx;
		made.series.forEach(({interval, stroke}) => {
			if (!interval)
				return;
			const x = (i) => u.valToPos(made.grid[i], 'x', true);
			const y = (share) => u.valToPos(Math.min(nines.of(Math.min(share, 1)), made.most), 'y', true);
			pen.save();
			pen.fillStyle = stroke();
			pen.globalAlpha = 0.16;
			pen.beginPath();
			interval.forEach(([, high], i) => pen.lineTo(x(i), y(high)));
			for (let i = interval.length - 1; i >= 0; i--)
				pen.lineTo(x(i), y(interval[i][0]));
			pen.fill();
			pen.restore();
		});
	}

	function draw() {
		if (!made)
			return;
		const style = {stroke: theme('faint'), grid: {stroke: theme('line'), width: 1}, ticks: {stroke: theme('line')}};
		chart?.destroy();
		chart = new uPlot({
			width: Math.max(280, into.clientWidth), height: 280, cursor: {drag: {x: true, y: false}},
			hooks: {drawAxes: [bands]},
			scales: {x: {time: false, distr: 3}, y: {range: [0, made.most]}},
			axes: [
				{...style, values: (_, values) => values.map((v) => (v === null ? '' : duration(v)))},
				{...style, size: 64, splits: () => nines.ticks.map(nines.of).filter((v) => v <= made.most),
					values: (_, values) => values.map((v) => nines.label(nines.back(v)))},
			],
			series: [
				{label: 'latency', value: (_, v) => (v === null ? '–' : duration(v))},
				...made.series.map(({label, stroke, dash}) => ({
					label, stroke: stroke(), width: dash ? 1.5 : 2, dash,
					value: (_, v) => (v === null || v === undefined ? '–' : nines.label(nines.back(v))),
				})),
			],
		}, [made.grid, ...made.series.map(({points}) => points)], into);
	}

	/* Each group as recorded; the first also without each of the causes. */
	function use(element, rows, groups, causes) {
		const met = groups.filter(({order}) => order.length), without = causes.slice(0, CURVES);
		into = element;
		if (!met.length)
			return;
		const high = Math.max(2, ...met.map(({order}) => rows.latency[order[order.length - 1]] * 1.02));
		const low = Math.max(1, Math.min(...met.map(({order}) => rows.latency[order[0]])) / 4);
		const grid = Array.from({length: POINTS}, (_, i) => low * (high / low) ** (i / (POINTS - 1)));
		const mine = {grid, series: [], most: Math.max(1, ...met.map(({order}) => nines.of(1 - 1 / order.length)))};
		made = mine;
		met.forEach(({name, list}, g) => {
			const curves = g ? [null] : [null, ...without.map(({part: cause}) => cause)];
			const group = sumsOf(rows, list, grid, curves), means = boot.means(group);
			curves.forEach((cause, c) => {
				let sum = 0;
				const line = {
					label: cause ? `${name} without cause ${without[c - 1].p + 1}` : name, dash: cause ? [6, 3] : g ? [2, 2] : undefined,
					stroke: () => (cause ? colour(without[c - 1].p) : theme(g ? 'faint' : 'text')),
					points: Array.from({length: POINTS}, (_, i) => {
						sum += means[c * POINTS + i];
						return height(sum);
					}),
				};
				mine.series.push(line);
				boot.run({groups: [part(group, c)], cumulative: true, of: 'means'}, (intervals) => {
					line.interval = intervals;
					if (made === mine && line.interval)
						chart?.redraw(false);
				});
			});
		});
		draw();
	}
	return {use, draw, series: () => made?.series.map(({label, interval}) => ({label, interval: !!interval}))};
})();
