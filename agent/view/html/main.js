/* Reads the data block, then lets a selection drive every part of the page. */
(() => {
	const REST = {label: 'other, and no known cause', plain: true};
	let data, order, parts, ready, now;

	function mark(cause) {
		document.querySelectorAll('.cause').forEach((item) => item.classList.toggle('lit', +item.dataset.cause === cause));
		$('ranking').querySelectorAll('tbody tr').forEach((row) => row.classList.toggle('lit', +row.dataset.part === cause));
	}

	/* cause: the number of the root that the part is, -1: it is none. */
	function lights(target, part, cause) {
		target.addEventListener('pointerenter', () => {
			heatmap.light(part.ns);
			mark(cause);
		});
		target.addEventListener('pointerleave', () => {
			heatmap.light(null);
			mark(-1);
		});
	}

	function ranking(lines, intervals, roots) {
		const rows = lines.filter(({difference, selected}) => Math.abs(difference) > 0.5 || selected > 0.5).map((line) => {
			const row = element('tr');
			row.dataset.part = roots ? line.p : -1;
			row.append(element('td', percent(line.share), 'number'),
				element('td', range(intervals && intervals[line.p], percent) || '–', 'number'),
				element('td', duration(line.selected), 'number extra'), element('td', duration(line.rest), 'number extra'),
				element('td', line.part.label, 'about'));
			lights(row, line.part, roots ? line.p : -1);
			return row;
		});
		$('ranking').tBodies[0].replaceChildren(...rows);
	}

	/* What a pick or a rectangle selects; lists are of the requests that have causes, in the order of time. */
	function split(area) {
		const {rows} = data, mask = new Uint8Array(rows.cnt), selected = [], rest = [];
		let any = false;
		for (let i = 0; i < rows.cnt; i++) {
			if (!rows.shown[i])
				continue;
			mask[i] = area && rows.time[i] >= area.t0 && rows.time[i] <= area.t1 && rows.latency[i] >= area.l0 &&
				rows.latency[i] <= area.l1 && (!area.late || rows.group[i] === 2) ? 1 : 0;
			any = any || !!mask[i];
			if (rows.ranked[i])
				(mask[i] ? selected : rest).push(i);
		}
		return {area, mask, selected, rest, any, order, ranked: rows.ranked, shown: rows.shown};
	}

	const setOf = (name) => (name === 'causes' ? parts : name === 'events' ? data.events :
		data.categories.map((c) => ({label: `${c.name}: ${c.label}`, ns: c.ns})));

	/* The causes among the lines of the ranking, the first ones first. */
	function rankAll({area, selected, rest}) {
		const {rows} = data, by = $('rank-by').value;
		const weight = selected.reduce((sum, row) => sum + rows.weight[row], 0);
		const latency = selected.reduce((sum, row) => sum + rows.weight[row] * rows.latency[row], 0) / weight;
		document.body.dataset.ranked = '';
		$('ranking-title').textContent = `Why ${area?.what || 'the selected requests'} differ from the rest`;
		if (!selected.length || !rest.length) {
			$('ranking-tell').textContent = selected.length ? 'Every request is selected: there is no rest.' : 'No request is selected.';
			$('ranking').tBodies[0].replaceChildren();
			document.body.dataset.ranked = 'nothing';
			return data.causes.map((part, p) => ({part, p}));
		}
		const {whole, lines} = rank.compare(rows, selected, rest, setOf(by), (intervals) => {
			/* A worker answers later, compare() itself before it returns. */
			queueMicrotask(() => {
				ranking(lines, intervals, by === 'causes');
				document.body.dataset.ranked = 'intervals';
			});
		});
		ranking(lines, null, by === 'causes');
		$('ranking-tell').textContent = `${count(weight)} requests, ${duration(latency)} on average: ` +
			`${duration(Math.abs(whole))} ${whole < 0 ? 'less' : 'more'} than the rest.` +
			(by === 'events' ? ' Events overlap: their shares do not sum.' : '');
		return by === 'causes' ? lines.filter(({part}) => !part.plain) : data.causes.map((part, p) => ({part, p}));
	}

	const drawShares = () => shares.use(setOf($('shares-by').value), groupsOf(now, $('shares-of').value));
	const drawCdf = () => cdf.use($('cdf'), data.rows, groupsOf(now, $('cdf-of').value), now.causes);

	/* Everything below the heatmap is about this; `recomputed` is how long that took, in ms, intervals included. */
	function select(area) {
		const began = performance.now();
		document.body.dataset.recomputed = '';
		boot.begin(() => {
			document.body.dataset.recomputed = Math.ceil(performance.now() - began);
		});
		now = split(area);
		ready.forEach(({pick, button}) => button.setAttribute('aria-pressed', pick === area));
		heatmap.frame(area && {...area, l0: area.late ? data.header.tail_ns : area.l0});
		now.causes = rankAll(now);
		drawShares();
		drawCdf();
		if (data.details.length)
			flame.use(now.mask);
		stories.use(now);
		crosstalk.use(data.rows, data.crossings, now);
		contextCrosstalk.use(data.rows, data.contextCrossings, now);
		values.use(data, now);
		hosts.use(data, now);
		boot.settle();
	}

	/* Of which type, context and host the requests are that everything is about; only where there are several. */
	function openFilters() {
		const {types, contexts, hosts: names} = data.header, {type, context, host} = data.rows;
		const filters = [['type', types, type], ['context', contexts, context], ['host', names, host]].filter(([, list]) => list.length > 1);
		const chosen = filters.map(([name, list]) => {
			const label = element('label', name + ' '), choose = element('select');
			choose.append(new Option('all', -1), ...list.map((text, n) => new Option(text || '(no name)', n)));
			choose.dataset.filter = name;
			choose.addEventListener('change', () => {
				data.rows.shown.forEach((_, i) => {
					data.rows.shown[i] = filters.every(([, , of], f) => +chosen[f].value < 0 || of[i] === +chosen[f].value) ? 1 : 0;
				});
				heatmap.refill();
				show();
			});
			label.append(choose);
			$('filters').append(label);
			return choose;
		});
	}

	function openPicks() {
		ready = picks(data).map((pick) => {
			const button = element('button', pick.text);
			button.dataset.pick = pick.id;
			button.addEventListener('click', () => select(pick));
			return {pick, button};
		});
		$('picks').replaceChildren('Select: ', ...ready.map(({button}) => button));
		if (data.header.thinned)
			$('picks').append(element('span', `${count(data.rows.cnt)} of ${count(data.header.rows_kept)} kept requests are in this page; weights make up for the others.`, 'faint'));
	}

	/* What charts are made of, and of which requests. */
	function openChoices() {
		const sets = ['causes', 'categories', ...(data.events.length ? ['events'] : [])];
		$('rank-by').replaceChildren(...sets.map((name) => new Option(name)));
		$('shares-by').replaceChildren(...sets.slice(0, 2).map((name) => new Option(name)));
		for (const of of ['shares-of', 'cdf-of'])
			$(of).replaceChildren(new Option('selected requests and the rest', 'both'), new Option('all requests', 'all'));
		$('rank-by').addEventListener('change', () => rankAll(now));
		for (const id of ['shares-by', 'shares-of'])
			$(id).addEventListener('change', drawShares);
		$('cdf-of').addEventListener('change', drawCdf);
		shares.open($('shares'), data);
	}

	/* What depends on which requests are shown. */
	function show() {
		openPicks();
		select(ready[0].pick);
	}

	function redraw() {
		heatmap.draw();
		shares.draw();
		cdf.draw();
		if (data.details.length)
			flame.draw();
		waterfall.draw();
	}

	async function open() {
		data = await readData($('data').textContent);
		parts = [...data.causes, {...REST, ns: data.rest}];
		order = orderOf(data.rows);
		$('explore').hidden = false;
		if (data.details.length) {
			$('flame-section').hidden = false;
			flame.open($('flame'), data);
		}
		heatmap.open($('heatmap'), data, select);
		document.querySelectorAll('.cause').forEach((item) => {
			const cause = +item.dataset.cause;
			if (parts[cause])
				lights(item, parts[cause], cause);
		});
		openFilters();
		openChoices();
		stories.open(data);
		show();
		for (const query of ['(prefers-color-scheme: dark)', 'print'])
			matchMedia(query).addEventListener('change', redraw);
		let frame;
		new ResizeObserver(() => {
			cancelAnimationFrame(frame);
			frame = requestAnimationFrame(redraw);
		}).observe(document.body);
		document.body.dataset.ready = 'yes';
	}

	open().catch((error) => {
		document.body.dataset.ready = 'failed';
		document.querySelector('main').prepend(element('p', `The charts cannot be shown: ${error.message}`, 'bad'));
		throw error;
	});
})();
