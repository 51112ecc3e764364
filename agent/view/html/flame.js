/*
 * A differential flame graph.  A frame's width is its mean time per selected request; its colour says how much more or
 * less that is than in the rest.  Under a wait stand the threads on the way to its root, then the root's frames.
 */
const flame = (() => {
	const LINE = 19;
	const NODES = 300; /* the widest have intervals */
	let canvas, data, selected = null, tree, zoom, drawn = [], found = '';

	const node = (name, parent) => ({name, parent, own: 0, rest: 0, children: new Map(), number: -1});

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

	/* The nodes from the whole down to the last name. */
	function along(names) {
		const path = [tree];
		for (const name of names)
			path.push(child(path[path.length - 1], name));
		return path;
	}

	/* What all stacks begin with: nothing, or the request's type or context. */
	function above(row) {
		const by = $('flame-by').value;
		return by === 'none' ? [] : [data.header[by + 's'][data.rows[by][row]] || '(no name)'];
	}

	/* Of a way and what stands above it; there are many entries, and mostly nothing above. */
	const keyOf = (way, first) => (first.length ? way + ' ' + first : way);

	const shown = () => data.details.filter(({row}) => data.rows.shown[row]);

	/* Sums by way, and by what stands above it. */
	function sumWays() {
		const ways = new Map(), weight = {own: 0, rest: 0};
		for (const detail of shown()) {
			const group = selected[detail.row] ? 'own' : 'rest', first = above(detail.row);
			const scale = detail.factor * data.rows.weight[detail.row];
			weight[group] += scale;
			for (const entry of detail.entries) {
				const key = keyOf(entry.way, first);
				let way = ways.get(key);
				if (!way)
					ways.set(key, way = {id: entry.way, first, own: 0, rest: 0, ticks: {own: new Map(), rest: new Map()}});
				way[group] += scale * entry.ns;
				for (const [at, amount] of entry.ticks)
					way.ticks[group].set(at, (way.ticks[group].get(at) || 0) + scale * amount);
			}
		}
		return {ways, weight};
	}

	/*
	 * Time by way is exact; samples divide it among call paths, those of the other group where one has none.  Of each way and
	 * group: `paths` of its samples, by which a request's samples become time, or `fixed` shares.
	 */
	function grow() {
		const {ways, weight} = sumWays(), stacks = new Map();
		tree = node('all', null);
		for (const way of ways.values())
			for (const group of ['own', 'rest']) {
				if (!way[group] || !weight[group])
					continue;
				const {prefix, leaf} = data.header.ways[way.id], names = [...way.first, ...prefix];
				const own = way.ticks[group].size > 0, ticks = own ? way.ticks[group] : way.ticks[group === 'own' ? 'rest' : 'own'];
				const made = way[group + 'Made'] = {own, paths: new Map(), scale: 0};
				let all = 0;
				ticks.forEach((amount) => {
					all += amount;
				});
				made.scale = all > 0 ? way[group] / all : 0;
				if (!(all > 0))
					made.paths.set(-1, {path: along(leaf ? [...names, leaf] : names), share: 1});
				else
					ticks.forEach((amount, at) => {
						if (!stacks.has(at))
							stacks.set(at, frames(at));
						made.paths.set(at, {path: along([...names, ...stacks.get(at)]), share: amount / all});
					});
				made.paths.forEach(({path, share}) => path.forEach((at) => {
					at[group] += way[group] / weight[group] * share;
				}));
			}
		widen(tree);
		zoom = tree;
		return ways;
	}

	function number() {
		const nodes = [];
		const walk = (at) => {
			nodes.push(at);
			at.children.forEach(walk);
		};
		walk(tree);
		nodes.sort((a, b) => b.wide - a.wide);
		nodes.slice(0, NODES).forEach((at, n) => {
			at.number = n;
		});
		return nodes.slice(0, NODES);
	}

	/* Each request's own part of the nodes, as it went into them. */
	function intervals(ways) {
		const nodes = number(), mine = tree, details = shown();
		for (const {ownMade, restMade} of ways.values())
			for (const made of [ownMade, restMade])
				made?.paths.forEach((one) => {
					one.numbers = one.path.map((at) => at.number).filter((n) => n >= 0);
				});
		const groups = ['own', 'rest'].map((group) => {
			const list = details.filter(({row}) => (selected[row] ? 'own' : 'rest') === group);
			const scaleOf = ({factor, row}) => factor * data.rows.weight[row];
			return boot.sums(list.length, nodes.length, (i) => scaleOf(list[i]), (i, put) => {
				const detail = list[i], first = above(detail.row), scale = scaleOf(detail);
				const add = ({numbers}, amount) => {
					for (const n of numbers)
						put(n, amount);
				};
				for (const entry of detail.entries) {
					const made = ways.get(keyOf(entry.way, first))[group + 'Made'];
					if (made?.own && made.scale)
						for (const [at, amount] of entry.ticks)
							add(made.paths.get(at), scale * amount * made.scale);
					else
						made?.paths.forEach((one) => add(one, scale * entry.ns * one.share));
				}
			});
		});
		boot.run({groups, of: 'differences'}, (made) => {
			if (!made || tree !== mine)
				return;
			nodes.forEach((at, n) => {
				at.interval = made[n];
			});
			draw();
			if (!found)
				tell(zoom);
		});
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
		/* What may be chance stays pale. */
		const chance = at.interval && at.interval[0] <= 0 && at.interval[1] >= 0;
		return mix(theme('none'), theme(difference > 0 ? 'more' : 'less'),
			Math.min(1, Math.sqrt(Math.abs(difference) / whole)) * (chance ? 0.3 : 1));
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
			`difference ${duration(at.own - at.rest)}` +
			(at.interval ? ` [${duration(at.interval[0])} to ${duration(at.interval[1])}]` : '') +
			` (${percent((at.own - at.rest) / (tree.own - tree.rest))})`;
	}

	function sumFound(at) {
		if (at.name.toLowerCase().includes(found))
			return at.own - at.rest;
		return [...at.children.values()].reduce((sum, below) => sum + sumFound(below), 0);
	}

	function regrow() {
		const ways = grow();
		draw();
		intervals(ways);
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
		const choices = [['none', 'nothing'], ...['type', 'context'].filter((by) => data.header[by + 's'].length > 1).map((by) => [by, by])];
		$('flame-by').replaceChildren(...choices.map(([by, text]) => new Option(text, by)));
		$('flame-by').parentElement.hidden = choices.length < 2;
		$('flame-by').addEventListener('change', regrow);
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
		/* The frames that are drawn, for tests. */
		frames: () => drawn.map(({at, x, y, w}) => ({name: at.name, x: x + w / 2, y: (y + 0.5) * LINE, w, difference: at.own - at.rest,
			interval: at.interval})),
		use(mask) {
			selected = mask;
			regrow();
		},
	};
})();
