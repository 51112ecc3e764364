/*
 * A differential flame graph.  A frame's width is its mean time per selected request; its colour says how much more or
 * less that is than in the rest.  Under a wait stand the threads on the way to its root, then the root's frames.
 */
const flame = (() => {
	const LINE = 19;
	let canvas, data, selected = null, tree, zoom, drawn = [], found = '';

	const node = (name, parent) => ({name, parent, own: 0, rest: 0, children: new Map()});

	function child(of, name) {
		let met = of.children.get(name);
		if (!met) {
			met = node(name, of);
			of.children.set(name, met);
		}
		return met;
	}

	function frames(id) {
		const names = [];
		for (const {nodes, names: texts} = data.header; id; id = nodes[id][0])
			names.push(texts[nodes[id][1]]);
		return names.reverse();
	}

	function add(names, group, ns) {
		let at = tree;
		at[group] += ns;
		for (const name of names) {
			at = child(at, name);
			at[group] += ns;
		}
	}

	/* Time by way is exact; samples divide it among call paths, those of the other group where one has none. */
	function grow() {
		const ways = new Map(), weight = {own: 0, rest: 0};
		tree = node('all', null);
		for (const {row, factor, entries} of data.details) {
			if (!data.rows.shown[row])
				continue;
			const group = selected[row] ? 'own' : 'rest', scale = factor * data.rows.weight[row];
			weight[group] += scale;
			for (const entry of entries) {
				let way = ways.get(entry.way);
				if (!way)
					ways.set(entry.way, way = {own: 0, rest: 0, ticks: {own: new Map(), rest: new Map()}});
				way[group] += scale * entry.ns;
				for (const [at, amount] of entry.ticks)
					way.ticks[group].set(at, (way.ticks[group].get(at) || 0) + scale * amount);
			}
		}
		const stacks = new Map();
		for (const [id, way] of ways)
			for (const group of ['own', 'rest']) {
				if (!way[group] || !weight[group])
					continue;
				const {prefix, leaf} = data.header.ways[id], time = way[group] / weight[group];
				const other = group === 'own' ? 'rest' : 'own';
				const ticks = way.ticks[group].size ? way.ticks[group] : way.ticks[other];
				let all = 0;
				ticks.forEach((amount) => {
					all += amount;
				});
				if (!(all > 0)) {
					add(leaf ? [...prefix, leaf] : prefix, group, time);
					continue;
				}
				ticks.forEach((amount, at) => {
					if (!stacks.has(at))
						stacks.set(at, frames(at));
					add([...prefix, ...stacks.get(at)], group, time * amount / all);
				});
			}
		widen(tree);
		zoom = tree;
	}

	/* Children may be wider together than their parent, where each group has its own. */
	function widen(at) {
		let below = 0;
		at.children.forEach((of) => {
			below += widen(of);
		});
		at.wide = Math.max(at.own, at.rest, below);
		return at.wide;
	}

	function fill(at) {
		const difference = at.own - at.rest, whole = Math.abs(tree.own - tree.rest) || 1;
		if (found && !at.name.toLowerCase().includes(found))
			return mix(theme('panel'), theme('none'), 0.5);
		if (found)
			return theme('glow');
		return mix(theme('none'), theme(difference > 0 ? 'more' : 'less'), Math.min(1, Math.sqrt(Math.abs(difference) / whole)));
	}

	function place(at, x, y, scale) {
		const w = at.wide * scale;
		if (w < 1.2)
			return;
		drawn.push({at, x, y, w});
		let left = x;
		for (const below of [...at.children.values()].sort((a, b) => b.wide - a.wide)) {
			place(below, left, y + 1, scale);
			left += below.wide * scale;
		}
	}

	function draw() {
		const wide = canvas.clientWidth, above = [];
		for (let at = zoom; at; at = at.parent)
			above.unshift(at);
		drawn = above.slice(0, -1).map((at, y) => ({at, x: 0, y, w: wide}));
		place(zoom, 0, above.length - 1, wide / (zoom.wide || 1));
		const deepest = drawn.reduce((most, {y}) => Math.max(most, y), 0);
		const {pen} = surface(canvas, (deepest + 1) * LINE + 2);
		for (const {at, x, y, w} of drawn) {
			pen.globalAlpha = at !== zoom && above.includes(at) ? 0.5 : 1;
			pen.fillStyle = fill(at);
			pen.fillRect(x, y * LINE, Math.max(0.7, w - 1), LINE - 1);
			if (w > 24) {
				pen.fillStyle = theme('text');
				pen.textAlign = 'left';
				pen.fillText(fit(pen, at.name, w - 8), x + 4, y * LINE + LINE / 2);
			}
		}
		pen.globalAlpha = 1;
	}

	function under([px, py]) {
		return drawn.find(({x, y, w}) => px >= x && px < x + w && py >= y * LINE && py < (y + 1) * LINE)?.at;
	}

	function tell(at) {
		$('flame-tell').textContent = `${at.name}: ${duration(at.own)} in a selected request, ${duration(at.rest)} in the rest, ` +
			`difference ${duration(at.own - at.rest)} (${percent((at.own - at.rest) / (tree.own - tree.rest))})`;
	}

	function sumFound(at) {
		if (at.name.toLowerCase().includes(found))
			return at.own - at.rest;
		return [...at.children.values()].reduce((sum, below) => sum + sumFound(below), 0);
	}

	function regrow() {
		grow();
		draw();
		if (tree.own || tree.rest)
			tell(tree);
	}

	function open(into, from) {
		canvas = into;
		data = from;
		$('flame-search').addEventListener('input', (event) => {
			found = event.target.value.trim().toLowerCase();
			draw();
			if (found)
				$('flame-tell').textContent =
					`“${event.target.value.trim()}”: ${percent(sumFound(tree) / (tree.own - tree.rest))} of the difference`;
		});
		$('flame-reset').addEventListener('click', () => {
			zoom = tree;
			draw();
		});
		canvas.addEventListener('pointermove', (event) => {
			const at = under(pointer(canvas, event));
			if (at)
				tell(at);
		});
		canvas.addEventListener('click', (event) => {
			const at = under(pointer(canvas, event));
			if (!at)
				return;
			zoom = at;
			draw();
		});
	}
	return {
		open, draw,
		use(mask) {
			selected = mask;
			regrow();
		},
	};
})();
