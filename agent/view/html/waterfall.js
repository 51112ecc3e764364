/* One request's critical path: a line for each thread, arrows to who woke it, owned the lock or handed work on. */
const waterfall = (() => {
	const LEFT = 150, LINE = 26, TOP = 4, BOTTOM = 22;
	let canvas, data, story = null, threads = [], drawn = [];

	const left = () => Math.min(LEFT, canvas.clientWidth / 4);
	const categoryColour = (category) => colour(data.header.categories.findIndex(({name}) => name === category));

	function use(chosen) {
		story = chosen;
		threads = [];
		for (const step of story.steps) {
			const key = step.thread + ' ' + step.depth;
			step.line = threads.findIndex((thread) => thread.key === key);
			if (step.line < 0)
				step.line = threads.push({key, name: step.thread, depth: step.depth}) - 1;
		}
		draw();
		$('waterfall-tell').textContent = `${story.title}. Arrows lead to the thread that was waited for.`;
		$('steps').tBodies[0].replaceChildren(...story.steps.map((step) => {
			const row = element('tr');
			row.append(element('td', '+' + duration(step.at_ns), 'number'), element('td', duration(step.ns), 'number'),
				element('td', step.category), element('td', step.thread), element('td', step.about, 'about'), element('td', step.call_path || '', 'about'));
			return row;
		}));
	}

	function arrow(pen, x, from, to) {
		const tip = to > from ? -4 : 4;
		pen.strokeStyle = pen.fillStyle = theme('text');
		pen.lineWidth = 1;
		pen.beginPath();
		pen.moveTo(x, from);
		pen.lineTo(x, to + tip);
		pen.stroke();
		pen.beginPath();
		pen.moveTo(x, to);
		pen.lineTo(x - 3, to + tip);
		pen.lineTo(x + 3, to + tip);
		pen.fill();
	}

	function draw() {
		if (!story)
			return;
		const height = TOP + threads.length * LINE + BOTTOM, {pen, width} = surface(canvas, height);
		const x = (ns) => left() + ns / story.latency_ns * (width - left() - 10);
		const middle = (line) => TOP + line * LINE + LINE / 2;
		pen.textAlign = 'left';
		threads.forEach((thread, line) => {
			pen.fillStyle = theme(thread.depth ? 'faint' : 'text');
			pen.fillText(fit(pen, thread.name, left() - 12), 4, middle(line));
			pen.fillStyle = theme('line');
			pen.fillRect(left(), middle(line), width - left() - 10, 1);
		});
		drawn = story.steps.map((step) => ({step, x: x(step.at_ns), w: Math.max(1, x(step.at_ns + step.ns) - x(step.at_ns)),
			y: middle(step.line) - 8}));
		for (const {step, x: at, w, y} of drawn) {
			pen.fillStyle = categoryColour(step.category);
			pen.fillRect(at, y, w, 16);
		}
		story.steps.forEach((step, n) => {
			const before = story.steps[n - 1];
			if (!before || before.line === step.line)
				return;
			/* The deeper thread is the one that was waited for. */
			const [from, to] = before.depth <= step.depth ? [before, step] : [step, before];
			arrow(pen, x(step.at_ns), middle(from.line) + (to.line > from.line ? 9 : -9), middle(to.line) + (to.line > from.line ? -9 : 9));
		});
		const met = [...new Set(story.steps.map((step) => step.category))];
		legend($('waterfall-legend'), met.map((category) => [categoryColour(category), category]));
		pen.fillStyle = theme('faint');
		for (const share of width < 560 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
			pen.textAlign = share === 1 ? 'right' : 'center';
			pen.fillText(duration(share * story.latency_ns), x(share * story.latency_ns), height - 10);
		}
	}

	function open(into, from) {
		canvas = into;
		data = from;
		canvas.addEventListener('pointermove', (event) => {
			const [px, py] = pointer(canvas, event);
			const met = drawn.filter(({x, y, w}) => px >= x - 1 && px <= x + w + 1 && py >= y && py <= y + 16).pop();
			if (!met)
				return;
			const {step} = met;
			$('waterfall-tell').textContent = `+${duration(step.at_ns)}, ${duration(step.ns)} ${step.category}, ${step.thread}` +
				(step.about ? `: ${step.about}` : '') + (step.call_path ? ` — ${step.call_path}` : '');
		});
	}
	return {open, use, draw};
})();

/* Which request the waterfall shows: one of the selected, where there is any. */
const stories = (() => {
	let data, current = null;

	function show(story) {
		current = story;
		$('story-pick').value = data.header.stories.indexOf(story);
		waterfall.use(story);
	}

	function use({mask, shown}) {
		const all = data.header.stories, of = (holds) => all.filter(holds).sort((a, b) => b.latency_ns - a.latency_ns);
		const groups = [
			['selected', of(({row}) => row !== null && mask[row])],
			['the rest', of(({row}) => row !== null && shown[row] && !mask[row])],
			['not among the requests of this page', of(({row}) => row === null)],
		].filter(([, list]) => list.length);
		$('story-pick').replaceChildren(...groups.map(([name, list]) => {
			const group = element('optgroup');
			group.label = name;
			group.append(...list.map((story) => new Option(story.title, all.indexOf(story))));
			return group;
		}));
		$('story-section').hidden = !groups.length;
		if (!groups.length)
			return;
		const [name, list] = groups[0];
		$('story-note').textContent = name === 'selected' ? '' : 'Of the selected requests none is in this page step by step.';
		show(list.includes(current) ? current : list[0]);
	}

	function open(from) {
		data = from;
		const all = data.header.stories;
		if (!all.length)
			return;
		waterfall.open($('waterfall'), data);
		$('story-pick').addEventListener('change', (event) => show(all[+event.target.value]));
		document.querySelectorAll('.cause').forEach((item) => {
			const story = all.find(({cause}) => cause === +item.dataset.cause);
			if (!story)
				return;
			const button = element('button', 'its slowest request', 'link');
			button.addEventListener('click', () => {
				show(story);
				$('story-section').scrollIntoView({behavior: 'smooth'});
			});
			item.append(button);
		});
	}
	/* For tests. */
	const shown = () => ({at: data.rows.time[current.row], latency_ns: current.latency_ns});
	return {open, use, current: shown};
})();
