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

	/* Which of the means, the smallest first: the same for every selection. */
	function sortedOf(value) {
		const {values} = value.means;
		value.sorted ||= Uint32Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
		return value.sorted;
	}

	/* Selected requests, and the others: of each the values in their order. */
	function split(value, {rows, mask, shown}) {
		const {rows: of, values} = value.means;
		const [own, other] = [0, 1].map(() => ({values: new Float64Array(of.length), weights: new Float64Array(of.length), cnt: 0, total: 0}));
		for (const i of sortedOf(value)) {
			const row = of[i], group = mask[row] ? own : other;
			if (!shown[row])
				continue;
			group.values[group.cnt] = values[i];
			group.weights[group.cnt++] = rows.weight[row];
			group.total += rows.weight[row];
		}
		return {own, other};
	}

	function quantile({values, weights, cnt, total}, share) {
		let i = 0;
		for (let sum = weights[0]; i < cnt - 1 && sum < share * total; sum += weights[i])
			i++;
		return cnt ? values[i] : undefined;
	}

	const figure = (value) => (value === undefined ? '–' : +value.toPrecision(4) + '').replace('e+', 'e');

	/* Both on one scale, which is logarithmic where values are far apart. */
	function strips(own, other) {
		const met = [own, other].filter(({cnt}) => cnt), low = Math.min(...met.map(({values}) => values[0]));
		const high = Math.max(...met.map(({values, cnt}) => values[cnt - 1]));
		const log = low > 0 && high > 100 * low, at = (value) => (log ? Math.log(value) : value);
		const binOf = (value) => (high > low ? Math.min(BINS - 1, Math.floor((at(value) - at(low)) / (at(high) - at(low)) * BINS)) : 0);
		const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
		svg.setAttribute('width', WIDTH);
		svg.setAttribute('height', 2 * HIGH + 2);
		svg.setAttribute('class', 'strips');
		[[own, 'own'], [other, 'other']].forEach(([{values, weights, cnt}, name], n) => {
			const bins = new Float64Array(BINS);
			for (let i = 0; i < cnt; i++)
				bins[binOf(values[i])] += weights[i];
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

	function line(value, selection) {
		const {rows, mask, shown} = selection, {rows: of, values} = value.means, {own, other} = split(value, selection);
		const [low, high] = [0.05, 0.95].map((share) => quantile(other, share));
		const list = Uint32Array.from(of.keys()).filter((i) => shown[of[i]] && mask[of[i]]); /* in the order of time */
		const group = boot.sums(list.length, 2, () => 1, (i, put) => {
			const weight = rows.weight[of[list[i]]], met = values[list[i]];
			put(1, weight);
			if (other.cnt && (met < low || met > high))
				put(0, weight);
		});
		const sum = (part) => group.sums.reduce((all, amount, i) => all + (i % 2 === part ? amount : 0), 0);
		return {value, own, other, low, high, group, beyond: own.cnt && other.cnt ? sum(0) / sum(1) : NaN};
	}

	function rowOf({value, own, other, low, high, beyond}, interval) {
		const row = element('tr'), plot = element('td');
		plot.append(strips(own, other));
		row.append(element('th', value.variable), element('td', value.in, 'label'), element('td', figure(quantile(own, 0.5)), 'number'),
			element('td', other.cnt ? `${figure(quantile(other, 0.5))} (${figure(low)} to ${figure(high)})` : '–', 'number'),
			element('td', percent(beyond), 'number'), interval, plot);
		return row;
	}

	return {
		use(data, selection) {
			const lines = data.values.map((value) => line(value, {...selection, rows: data.rows})).filter(({own}) => own.cnt)
				.sort((a, b) => (b.beyond || 0) - (a.beyond || 0));
			$('values-section').hidden = !lines.length;
			/* The page has a table of late requests against typical ones for those who have no script. */
			if ($('values') && data.values.length)
				$('values').hidden = true;
			$('values-selected').tBodies[0].replaceChildren(...lines.map((of) => {
				const interval = element('td', '', 'number extra');
				boot.run({groups: [of.group], ratios: true, of: 'means'}, (made) => {
					interval.textContent = range(made?.[0], percent);
				});
				return rowOf(of, interval);
			}));
		},
	};
})();

/* How many of each host's requests are selected, and their latencies. */
const hosts = (() => {
	/* Of each host's other requests, and of its selected ones. */
	function medians(rows, {order, mask, shown}, cnt) {
		const total = new Float64Array(2 * cnt), sum = new Float64Array(2 * cnt), found = new Float64Array(2 * cnt).fill(NaN);
		const list = order.filter((row) => shown[row]), groupOf = (row) => 2 * rows.host[row] + mask[row];
		for (const row of list)
			total[groupOf(row)] += rows.weight[row];
		for (const row of list) {
			const group = groupOf(row), before = sum[group];
			sum[group] += rows.weight[row];
			if (before < total[group] / 2 && sum[group] >= total[group] / 2)
				found[group] = rows.latency[row];
		}
		return found;
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
		use({header, rows}, selection) {
			const {order, mask, shown, any} = selection;
			$('hosts-section').hidden = header.hosts.length < 2 || !any;
			if ($('hosts-section').hidden)
				return;
			const list = order.filter((row) => shown[row]).sort(), cnt = header.hosts.length, middle = medians(rows, selection, cnt);
			const group = boot.sums(list.length, 2 * cnt, () => 1, (i, put) => {
				const row = list[i], host = rows.host[row];
				put(2 * host + 1, rows.weight[row]);
				if (mask[row])
					put(2 * host, rows.weight[row]);
			});
			const sum = (part) => group.sums.reduce((all, amount, i) => all + (i % (2 * cnt) === part ? amount : 0), 0);
			const lines = header.hosts.map((name, host) => ({name, host, share: sum(2 * host) / sum(2 * host + 1),
				own: middle[2 * host + 1], other: middle[2 * host]})).sort((a, b) => (b.share || 0) - (a.share || 0));
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
