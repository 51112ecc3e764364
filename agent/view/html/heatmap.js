/* Requests by time and log latency, weights applied.  A dragged rectangle selects; a root lights its cells. */
const heatmap = (() => {
	const LEFT = 64, BOTTOM = 22, TOP = 6, RIGHT = 8, CELL = 6, HEIGHT = 300;
	let canvas, data, grid, box = null, drag = null, lit = null, select;

	const x = (time) => LEFT + (time - grid.from) / (grid.to - grid.from) * grid.width;
	const y = (latency) => TOP + (1 - (Math.log(latency) - grid.low) / (grid.high - grid.low)) * grid.height;
	const timeAt = (px) => grid.from + (Math.min(Math.max(px - LEFT, 0), grid.width) / grid.width) * (grid.to - grid.from);
	const latencyAt = (py) =>
		Math.exp(grid.low + (1 - Math.min(Math.max(py - TOP, 0), grid.height) / grid.height) * (grid.high - grid.low));

	function layout(width) {
		const {rows} = data;
		let from = Infinity, to = -Infinity, low = Infinity, high = -Infinity;
		for (let i = 0; i < rows.cnt; i++) {
			const log = Math.log(Math.max(1, rows.latency[i]));
			from = Math.min(from, rows.time[i]);
			to = Math.max(to, rows.time[i]);
			low = Math.min(low, log);
			high = Math.max(high, log);
		}
		grid = {from, to: Math.max(to, from + 1e-6), low: low - 0.05, high: Math.max(high, low + 1) + 0.05,
			width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM};
		grid.columns = Math.max(1, Math.floor(grid.width / CELL));
		grid.lines = Math.floor(grid.height / CELL);
		grid.cells = new Float64Array(grid.columns * grid.lines);
		grid.cellOf = new Uint32Array(rows.cnt);
		for (let i = 0; i < rows.cnt; i++) {
			if (!rows.shown[i])
				continue;
			const column = Math.min(grid.columns - 1,
				Math.floor((rows.time[i] - grid.from) / (grid.to - grid.from) * grid.columns));
			const line = Math.min(grid.lines - 1, Math.floor(
				(Math.log(Math.max(1, rows.latency[i])) - grid.low) / (grid.high - grid.low) * grid.lines));
			grid.cellOf[i] = line * grid.columns + column;
			grid.cells[grid.cellOf[i]] += rows.weight[i];
		}
		grid.most = grid.cells.reduce((most, cell) => Math.max(most, cell), 1);
	}

	/* Of each cell the share of its requests' time that the root took. */
	function glow() {
		const shares = new Float64Array(grid.cells.length), total = new Float64Array(grid.cells.length);
		for (let i = 0; i < data.rows.cnt; i++) {
			if (!data.rows.shown[i])
				continue;
			shares[grid.cellOf[i]] += data.rows.weight[i] * lit[i];
			total[grid.cellOf[i]] += data.rows.weight[i] * data.rows.latency[i];
		}
		return shares.map((sum, i) => (total[i] > 0 ? sum / total[i] : 0));
	}

	function axes(pen) {
		pen.fillStyle = theme('faint');
		pen.textAlign = 'right';
		for (let ns = 1; ns < 1e13; ns *= 10)
			if (Math.log(ns) >= grid.low && Math.log(ns) <= grid.high) {
				pen.fillText(duration(ns), LEFT - 6, y(ns));
				pen.fillRect(LEFT - 4, y(ns), 4, 1);
			}
		pen.textAlign = 'center';
		const span = grid.to - grid.from, wanted = Math.max(2, Math.floor(grid.width / 110));
		const unit = 10 ** Math.floor(Math.log10(span / wanted));
		const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => span / s <= wanted) || span;
		for (let at = Math.ceil(grid.from / step) * step; at <= grid.to; at += step)
			pen.fillText(moment(at), Math.min(x(at), LEFT + grid.width - 20), TOP + grid.height + 12);
	}

	function draw() {
		const {pen, width} = surface(canvas, HEIGHT);
		if (!grid || grid.width !== width - LEFT - RIGHT)
			layout(width);
		const cold = theme('heat-0'), hot = theme('heat-1'), light = theme('glow'), shares = lit && glow();
		const cw = grid.width / grid.columns, ch = grid.height / grid.lines;
		for (let cell = 0; cell < grid.cells.length; cell++) {
			if (!grid.cells[cell])
				continue;
			const strength = Math.log1p(grid.cells[cell]) / Math.log1p(grid.most);
			pen.globalAlpha = shares ? 0.35 : 1;
			pen.fillStyle = mix(cold, hot, 0.15 + 0.85 * strength);
			const px = LEFT + (cell % grid.columns) * cw;
			const py = TOP + grid.height - (Math.floor(cell / grid.columns) + 1) * ch;
			pen.fillRect(px, py, Math.max(1, cw - 0.5), Math.max(1, ch - 0.5));
			if (shares && shares[cell] > 0.02) {
				pen.globalAlpha = 0.25 + 0.75 * shares[cell];
				pen.fillStyle = light;
				pen.fillRect(px, py, Math.max(1, cw - 0.5), Math.max(1, ch - 0.5));
			}
		}
		pen.globalAlpha = 1;
		axes(pen);
		const frame = drag || box;
		if (frame) {
			const left = x(Math.max(frame.t0, grid.from)), right = x(Math.min(frame.t1, grid.to));
			const top = y(Math.min(frame.l1, Math.exp(grid.high))), bottom = y(Math.max(frame.l0, Math.exp(grid.low)));
			pen.strokeStyle = theme('select');
			pen.lineWidth = 2;
			pen.strokeRect(left, top, Math.max(2, right - left), Math.max(2, bottom - top));
		}
	}

	function rectangle(a, b) {
		return {t0: timeAt(Math.min(a[0], b[0])), t1: timeAt(Math.max(a[0], b[0])),
			l0: latencyAt(Math.max(a[1], b[1])), l1: latencyAt(Math.min(a[1], b[1]))};
	}

	/* Of day, where the recording knows it. */
	function clock(seconds) {
		const begin = data.header.begin_wall_ms;
		return begin ? ` (${new Date(begin + seconds * 1000).toISOString().slice(11, 23)} UTC)` : '';
	}

	function tell(at) {
		const column = Math.floor((at[0] - LEFT) / grid.width * grid.columns);
		const line = Math.floor((1 - (at[1] - TOP) / grid.height) * grid.lines);
		if (column < 0 || column >= grid.columns || line < 0 || line >= grid.lines)
			return;
		const requests = grid.cells[line * grid.columns + column];
		$('heatmap-tell').textContent = `at ${moment(timeAt(at[0]))}${clock(timeAt(at[0]))}, about ${duration(latencyAt(at[1]))}: ` +
			`${count(requests)} request${Math.round(requests) === 1 ? '' : 's'}`;
	}

	function open(into, from, selected) {
		let begin = null;
		canvas = into;
		data = from;
		select = selected;
		canvas.addEventListener('pointerdown', (event) => {
			begin = pointer(canvas, event);
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener('pointermove', (event) => {
			const at = pointer(canvas, event);
			if (!begin)
				return tell(at);
			drag = rectangle(begin, at);
			draw();
		});
		canvas.addEventListener('pointerup', (event) => {
			const at = pointer(canvas, event), moved = begin && Math.hypot(at[0] - begin[0], at[1] - begin[1]) > 4;
			const chosen = begin && moved ? rectangle(begin, at) : null;
			begin = drag = null;
			if (chosen)
				select(chosen);
			draw();
		});
		canvas.addEventListener('pointercancel', () => {
			begin = drag = null;
			draw();
		});
		canvas.addEventListener('keydown', (event) => {
			if (event.key === 'Escape')
				select(null);
		});
		draw();
	}
	return {
		open, draw,
		frame(rectangleOrNull) {
			box = rectangleOrNull;
			draw();
		},
		light(partOrNull) {
			lit = partOrNull;
			draw();
		},
		/* Other requests are shown. */
		refill() {
			grid = undefined;
			draw();
		},
		/* Where a point lies on the page, for tests. */
		place: (time, latency) => [x(time), y(latency)],
	};
})();
