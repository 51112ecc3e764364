/* Tables of selected requests against the rest: who delays whom, values of variables, hosts. */
const range = (interval, form) => (interval && isFinite(interval[0]) ? `[${form(interval[0])} to ${form(interval[1])}]` : '');

/* Who waits, by who is in the way; of each the kinds of wait. */
function makeCrosstalk(id) {
	const MOST = 12, SHARE_MIN = 0.005; /* of the difference */

	/* Of each crossing the mean wait in requests of both groups, and how many of the selected met it. */
	function sums(rows, crossings, list, mask, of) {
		const total = crossings.length, waits = new Map();
		crossings.forEach(({rows: met, values}, c) => met.forEach((row, i) => {
			if (rows.ranked[row] && rows.shown[row] && mask[row] === of) {
				if (!waits.has(row))
					waits.set(row, []);
				waits.get(row).push(c, values[i]);
			}
		}));
		return boot.sums(list.length, total + 1, (i) => rows.weight[list[i]], (i, put) => {
			const row = list[i], weight = rows.weight[row], met = waits.get(row) || [];
			put(total, weight * rows.latency[row]);
			for (let w = 0; w < met.length; w += 2)
				put(met[w], weight * met[w + 1]);
		});
	}

	function fill(lines) {
		const unique = (names) => [...new Set(names)].slice(0, MOST);
		const holders = unique(lines.map(({by}) => by)), waiters = unique(lines.map(({type}) => type));
		const head = element('tr'), most = Math.max(0.01, ...lines.map(({share}) => share));
		head.append(element('th', 'waits ╲ in the way'), ...holders.map((name) => element('th', name)));
		$(id).replaceChildren(head, ...waiters.map((waiter) => {
			const row = element('tr');
			row.append(element('th', waiter), ...holders.map((holder) => {
				const met = lines.filter(({type, by}) => type === waiter && by === holder), cell = element('td');
				cell.append(...met.flatMap((line) => [element('div', `${line.category}: ${percent(line.share)} ${range(line.interval, percent)}`),
					element('div', `${duration(line.own)}, rest ${duration(line.other)}`, 'faint')]));
				if (met.length)
					cell.style.setProperty('--heat', 50 * Math.min(1, Math.max(0, ...met.map(({share}) => share)) / most));
				return cell;
			}));
			return row;
		}));
	}

	return {
		use(rows, crossings, {mask, selected, rest}) {
			const total = crossings.length;
			$(id + '-section').hidden = !total || !selected.length || !rest.length;
			if ($(id + '-section').hidden)
				return;
			const groups = [sums(rows, crossings, selected, mask, 1), sums(rows, crossings, rest, mask, 0)], [own, other] = groups.map(boot.means);
			const whole = own[total] - other[total];
			const all = crossings.map(({type, by, category}, c) => ({type, by, category, c, own: own[c], other: other[c],
				share: whole ? (own[c] - other[c]) / whole : NaN})).filter((line) => line.own > 0 || line.other > 0);
			const lines = all.filter(({share}) => !(Math.abs(share) < SHARE_MIN)).sort((a, b) => b.share - a.share);
			$(id + '-section').hidden = !all.length;
			$(id + '-note').textContent = 'Shares of the difference, and the wait per selected request and in the rest.' +
				(lines.length < all.length ? ` ${all.length - lines.length} of less than ${percent(SHARE_MIN)} are left out.` : '');
			fill(lines);
			if (whole)
				boot.run({groups, total, of: 'shares'}, (made) => {
					lines.forEach((line) => {
						line.interval = made?.[line.c];
					});
					fill(lines);
				});
		},
	};
}

const crosstalk = makeCrosstalk('crosstalk'), contextCrosstalk = makeCrosstalk('context-crosstalk');

/* Means of variables in selected requests and in the rest, as distributions. */
const values = (() => {
	const BINS = 24, WIDTH = 160, HIGH = 14;

	function quantiles(points, shares) {
		const sorted = [...points].sort((a, b) => a.value - b.value), total = sorted.reduce((sum, {weight}) => sum + weight, 0);
		return shares.map((share) => {
			let sum = 0;
			return (sorted.find(({weight}) => (sum += weight) >= share * total) || sorted[sorted.length - 1])?.value;
		});
	}

	const figure = (value) => (value === undefined ? '–' : +value.toPrecision(4) + '').replace('e+', 'e');

	/* Both on one scale, which is logarithmic where values are far apart. */
	function strips(own, other) {
		const all = [...own, ...other].map(({value}) => value), low = Math.min(...all), high = Math.max(...all);
		const log = low > 0 && high > 100 * low, at = (value) => (log ? Math.log(value) : value);
		const binOf = (value) => (high > low ? Math.min(BINS - 1, Math.floor((at(value) - at(low)) / (at(high) - at(low)) * BINS)) : 0);
		const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
		svg.setAttribute('width', WIDTH);
		svg.setAttribute('height', 2 * HIGH + 2);
		svg.setAttribute('class', 'strips');
		[[own, 'own'], [other, 'other']].forEach(([points, name], n) => {
			const bins = new Float64Array(BINS);
			points.forEach(({value, weight}) => {
				bins[binOf(value)] += weight;
			});
			const most = Math.max(...bins);
			bins.forEach((weight, b) => {
				if (!weight)
					return;
				const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect'), tall = Math.max(1, weight / most * HIGH);
				Object.entries({x: b * WIDTH / BINS, width: WIDTH / BINS - 1, y: n ? HIGH + 2 : HIGH - tall, height: tall, class: name})
					.forEach(([key, value]) => rect.setAttribute(key, value));
				svg.append(rect);
			});
		});
		return svg;
	}

	function line({variable, in: where, means}, {rows, mask, shown}) {
		const own = [], other = [], weighted = rows.weight;
		means.rows.forEach((row, i) => {
			if (shown[row])
				(mask[row] ? own : other).push({value: means.values[i], weight: weighted[row]});
		});
		const [low, high] = quantiles(other, [0.05, 0.95]);
		const group = boot.sums(own.length, 2, () => 1, (i, put) => {
			put(1, own[i].weight);
			if (other.length && (own[i].value < low || own[i].value > high))
				put(0, own[i].weight);
		});
		const sum = (part) => group.sums.reduce((all, amount, i) => all + (i % 2 === part ? amount : 0), 0);
		return {variable, where, own, other, low, high, group, beyond: own.length && other.length ? sum(0) / sum(1) : NaN};
	}

	const median = (points) => figure(quantiles(points, [0.5])[0]);

	function fill(lines) {
		$('values-selected').tBodies[0].replaceChildren(...lines.map((of) => {
			const row = element('tr'), plot = element('td');
			plot.append(strips(of.own, of.other));
			row.append(element('th', of.variable), element('td', of.where, 'label'), element('td', median(of.own), 'number'),
				element('td', of.other.length ? `${median(of.other)} (${figure(of.low)} to ${figure(of.high)})` : '–', 'number'),
				element('td', percent(of.beyond), 'number'), element('td', range(of.interval, percent), 'number extra'), plot);
			return row;
		}));
	}

	return {
		use(data, selection) {
			const lines = data.values.map((value) => line(value, {...selection, rows: data.rows})).filter(({own}) => own.length)
				.sort((a, b) => (b.beyond || 0) - (a.beyond || 0));
			$('values-section').hidden = !lines.length;
			fill(lines);
			/* The page has a table of late requests against typical ones for those who have no script. */
			if ($('values') && data.values.length)
				$('values').hidden = true;
			lines.forEach((of) => boot.run({groups: [of.group], ratios: true, of: 'means'}, (made) => {
				of.interval = made?.[0];
				fill(lines);
			}));
		},
	};
})();

/* How many of each host's requests are selected, and their latencies. */
const hosts = (() => {
	function median(order, rows, holds) {
		const list = order.filter(holds), total = list.reduce((sum, row) => sum + rows.weight[row], 0);
		let sum = 0;
		return rows.latency[list.find((row) => (sum += rows.weight[row]) >= total / 2)];
	}

	function fill(lines) {
		$('hosts-selected').tBodies[0].replaceChildren(...lines.map(({name, share, interval, own, other}) => {
			const row = element('tr');
			row.append(element('th', name), element('td', percent(share), 'number'), element('td', range(interval, percent), 'number'),
				element('td', duration(own), 'number'), element('td', duration(other), 'number'));
			return row;
		}));
	}

	return {
		use({header, rows}, {order, mask, shown, any}) {
			$('hosts-section').hidden = header.hosts.length < 2 || !any;
			if ($('hosts-section').hidden)
				return;
			const list = order.filter((row) => shown[row]).sort(), cnt = header.hosts.length;
			const group = boot.sums(list.length, 2 * cnt, () => 1, (i, put) => {
				const row = list[i], host = rows.host[row];
				put(2 * host + 1, rows.weight[row]);
				if (mask[row])
					put(2 * host, rows.weight[row]);
			});
			const sum = (part) => group.sums.reduce((all, amount, i) => all + (i % (2 * cnt) === part ? amount : 0), 0);
			const lines = header.hosts.map((name, host) => ({name, host, share: sum(2 * host) / sum(2 * host + 1),
				own: median(order, rows, (row) => mask[row] && rows.host[row] === host),
				other: median(order, rows, (row) => shown[row] && !mask[row] && rows.host[row] === host)}))
				.sort((a, b) => (b.share || 0) - (a.share || 0));
			fill(lines);
			boot.run({groups: [group], ratios: true, of: 'means'}, (made) => {
				lines.forEach((line) => {
					line.interval = made?.[line.host];
				});
				fill(lines);
			});
		},
	};
})();
