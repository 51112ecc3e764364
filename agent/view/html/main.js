/* Reads the data block, then lets a selection drive every part of the page. */
(() => {
	const REST = {label: 'other, and no known cause', plain: true};
	let data, parts, ready;

	function mark(lines, cause) {
		document.querySelectorAll('.cause').forEach((item) => item.classList.toggle('lit', +item.dataset.cause === cause));
		lines?.forEach((row) => row.classList.toggle('lit', +row.dataset.part === cause));
	}

	function lights(target, p) {
		const part = parts[p];
		if (!part)
			return;
		target.addEventListener('pointerenter', () => {
			heatmap.light(part.ns);
			mark($('ranking').querySelectorAll('tbody tr'), p);
		});
		target.addEventListener('pointerleave', () => {
			heatmap.light(null);
			mark($('ranking').querySelectorAll('tbody tr'), -1);
		});
	}

	function ranking(lines, intervals) {
		const rows = lines.filter(({difference, selected}) => Math.abs(difference) > 0.5 || selected > 0.5).map((line) => {
			const row = element('tr');
			const interval = intervals && intervals[line.p];
			row.dataset.part = line.p;
			row.append(element('td', percent(line.share), 'number'),
				element('td', interval ? `[${percent(interval[0])} to ${percent(interval[1])}]` : '–', 'number'),
				element('td', duration(line.selected), 'number extra'), element('td', duration(line.rest), 'number extra'),
				element('td', line.part.label, 'about'));
			lights(row, line.p);
			return row;
		});
		$('ranking').tBodies[0].replaceChildren(...rows);
	}

	/* What a pick or a rectangle selects, of the requests that have causes. */
	function split(area) {
		const {rows} = data, mask = new Uint8Array(rows.cnt), selected = [], rest = [];
		for (let i = 0; i < rows.cnt; i++) {
			if (!rows.shown[i])
				continue;
			mask[i] = area && rows.time[i] >= area.t0 && rows.time[i] <= area.t1 && rows.latency[i] >= area.l0 &&
				rows.latency[i] <= area.l1 && (!area.late || rows.group[i] === 2) ? 1 : 0;
			if (rows.ranked[i])
				(mask[i] ? selected : rest).push(i);
		}
		return {mask, selected, rest};
	}

	function select(area) {
		const {mask, selected, rest} = split(area);
		const weight = selected.reduce((sum, row) => sum + data.rows.weight[row], 0);
		const latency = selected.reduce((sum, row) => sum + data.rows.weight[row] * data.rows.latency[row], 0) / weight;
		document.body.dataset.ranked = '';
		ready.forEach(({pick, button}) => button.setAttribute('aria-pressed', pick === area));
		heatmap.frame(area && {...area, l0: area.late ? data.header.tail_ns : area.l0});
		$('ranking-title').textContent = `Why ${area?.what || 'the selected requests'} differ from the rest`;
		if (!selected.length || !rest.length) {
			$('ranking-tell').textContent = selected.length ? 'Every request is selected: there is no rest.' : 'No request is selected.';
			$('ranking').tBodies[0].replaceChildren();
			document.body.dataset.ranked = 'nothing';
		} else {
			const {whole, lines} = rank.compare(data.rows, selected, rest, parts, (intervals) => {
				/* A worker answers later, compare() itself before it returns. */
				queueMicrotask(() => {
					ranking(lines, intervals);
					document.body.dataset.ranked = 'intervals';
				});
			});
			ranking(lines, null);
			$('ranking-tell').textContent = `${count(weight)} requests, ${duration(latency)} on average: ` +
				`${duration(Math.abs(whole))} ${whole < 0 ? 'less' : 'more'} than the rest.`;
		}
		if (data.details.length)
			flame.use(mask);
	}

	/* Of which type and host the requests are that everything is about; only where there are several. */
	function openFilters() {
		const {types, hosts} = data.header;
		const filters = [['type', types, data.rows.type], ['host', hosts, data.rows.host]].filter(([, names]) => names.length > 1);
		const chosen = filters.map(([name, names]) => {
			const label = element('label', name + ' '), choose = element('select');
			choose.append(new Option('all', -1), ...names.map((text, n) => new Option(text || '(no name)', n)));
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

	function openStories() {
		const {stories} = data.header, choose = $('story-pick');
		if (!stories.length)
			return;
		$('story-section').hidden = false;
		choose.replaceChildren(...stories.map((story, n) => new Option(story.title, n)));
		choose.addEventListener('change', () => waterfall.use(stories[+choose.value]));
		waterfall.open($('waterfall'), data);
		waterfall.use(stories[0]);
		document.querySelectorAll('.cause').forEach((item) => {
			const at = stories.findIndex((story) => story.cause === +item.dataset.cause);
			if (at < 0)
				return;
			const button = element('button', 'its slowest request', 'link');
			button.addEventListener('click', () => {
				choose.value = at;
				waterfall.use(stories[at]);
				$('story-section').scrollIntoView({behavior: 'smooth'});
			});
			item.append(button);
		});
	}

	/* Types that wait, by types that are in the way; of each the kinds of wait. */
	function openCrosstalk() {
		const lines = data.header.crosstalk.filter((line) => line.mean_ns > 0);
		if (!lines.length)
			return;
		const unique = (names) => [...new Set(names)].slice(0, 12);
		const holders = unique(lines.map((line) => line.by)), waiters = unique(lines.map((line) => line.type));
		const head = element('tr'), most = Math.max(0.01, ...lines.map((line) => line.tail_share));
		head.append(element('th', 'waits ╲ in the way'), ...holders.map((name) => element('th', name)));
		$('crosstalk').replaceChildren(head, ...waiters.map((waiter) => {
			const row = element('tr');
			row.append(element('th', waiter), ...holders.map((holder) => {
				const met = lines.filter((line) => line.type === waiter && line.by === holder), cell = element('td');
				cell.append(...met.map((line) => element('div', `${line.category}: ${percent(line.tail_share)} of the tail, ` +
					`${count(line.count)} × ${duration(line.mean_ns)}`, 'whole')));
				if (met.length)
					cell.style.background =
						mix(theme('panel'), theme('glow'), 0.5 * Math.min(1, Math.max(0, ...met.map((line) => line.tail_share)) / most));
				return cell;
			}));
			return row;
		}));
		$('crosstalk-section').hidden = false;
	}

	const setOf = (name) => (name === 'causes' ? parts : data.categories.map((c) => ({label: `${c.name}: ${c.label}`, ns: c.ns})));

	function openShares() {
		const by = $('shares-by');
		by.replaceChildren(...['causes', 'categories'].map((name) => new Option(name)));
		by.addEventListener('change', () => shares.use(setOf(by.value), orderOf(data.rows)));
		shares.open($('shares'), data);
	}

	/* What depends on which requests are shown. */
	function show() {
		const order = orderOf(data.rows);
		openPicks();
		shares.use(setOf($('shares-by').value), order);
		cdf.use($('cdf'), data, order);
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
		$('explore').hidden = false;
		if (data.details.length) {
			$('flame-section').hidden = false;
			flame.open($('flame'), data);
		}
		heatmap.open($('heatmap'), data, select);
		document.querySelectorAll('.cause').forEach((item) => lights(item, +item.dataset.cause));
		openFilters();
		openShares();
		openStories();
		openCrosstalk();
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
