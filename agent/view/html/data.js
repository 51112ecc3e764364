/*
 * The data block: base64 of a deflated stream that holds the size of a JSON header (32 bits), the header, and columns
 * of variable-length numbers.  agent/view/html_data.c writes it.
 */
async function readData(text) {
	const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	const headerSize = new DataView(bytes.buffer).getUint32(0, true);
	const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerSize)));

	function column(name) {
		let at = 4 + headerSize + header.columns[name];
		return () => {
			let value = 0, scale = 1, byte;
			do {
				byte = bytes[at++];
				value += (byte & 127) * scale;
				scale *= 128;
			} while (byte & 128);
			return value;
		};
	}
	/* Nanoseconds with 8 bits behind the leading one: the middle of what the code stands for. */
	function ns(code) {
		if (code < 512)
			return code;
		const shift = Math.floor(code / 256) - 1;
		return (code - shift * 256 + 0.5) * 2 ** shift - 0.5;
	}
	return readRows(header, column, ns);
}

/* Of the rows that have any: which they are, and how much. */
function readSparse(next, value) {
	const cnt = next(), rows = new Uint32Array(cnt), values = new Float32Array(cnt);
	for (let i = 0, row = -1; i < cnt; i++) {
		row += next() + 1;
		rows[i] = row;
		values[i] = value(next());
	}
	return {rows, values};
}

function dense({rows, values}, cnt) {
	const all = new Float32Array(cnt);
	rows.forEach((row, i) => {
		all[row] = values[i];
	});
	return all;
}

/* The upper 20 bits of a 32-bit floating-point number. */
const floatOf = (() => {
	const view = new DataView(new ArrayBuffer(4));
	return (code) => {
		view.setUint32(0, code * 4096);
		return view.getFloat32(0);
	};
})();

function readRows(header, column, ns) {
	const cnt = header.rows;
	const rows = {
		cnt,
		time: new Float64Array(cnt), /* s since the first */
		latency: new Float64Array(cnt), weight: new Float64Array(cnt),
		shown: new Uint8Array(cnt).fill(1), /* of the chosen type and host */
		type: new Uint16Array(cnt), host: new Uint16Array(cnt), context: new Uint16Array(cnt), group: new Uint8Array(cnt), ranked: new Uint8Array(cnt),
	};
	const begin = column('begin'), group = column('group'), type = column('type'), weight = column('weight');
	const mask = column('mask'), host = header.hosts.length > 1 ? column('host') : () => 0;
	const context = header.contexts.length ? column('context') : () => 0;
	const categories = header.categories.map((category) => ({
		...category, ns: new Float32Array(cnt), next: column('ns.' + category.name), met: false,
	}));
	let time = 0;
	for (let i = 0; i < cnt; i++) {
		const step = begin(), flags = group();
		time += step % 2 ? -(step + 1) / 2 : step / 2;
		rows.time[i] = time * header.time_unit_ns / 1e9;
		rows.group[i] = flags & 3;
		rows.ranked[i] = flags >> 2;
		rows.type[i] = type();
		rows.host[i] = host();
		rows.context[i] = context();
		rows.weight[i] = header.weights[weight()];
		for (let bits = mask(), c = 0; bits; bits >>= 1, c++) {
			if (!(bits & 1))
				continue;
			categories[c].ns[i] = ns(categories[c].next());
			categories[c].met = true;
			rows.latency[i] += categories[c].ns[i];
		}
	}
	const causes = header.causes.map((cause, n) => ({...cause, ns: dense(readSparse(column('cause.' + n), ns), cnt)}));
	/* What is in no cause; only of requests that are ranked by root. */
	const rest = new Float32Array(cnt);
	for (let i = 0; i < cnt; i++) {
		let left = rows.latency[i];
		for (const cause of causes)
			left -= cause.ns[i];
		rest[i] = Math.max(0, left);
	}
	return {header, rows, categories: categories.filter((c) => c.met), causes, rest,
		events: header.events.map((label, n) => ({label, ns: dense(readSparse(column('event.' + n), ns), cnt)})),
		crossings: header.crosstalk.map((crossing, n) => ({...crossing, ...readSparse(column('crossing.' + n), ns)})),
		contextCrossings: header.crosstalk_by_context.map((crossing, n) => ({...crossing, ...readSparse(column('crossing_by_context.' + n), ns)})),
		values: header.values.map((value, n) => ({...value, means: readSparse(column('value.' + n), floatOf)})),
		details: header.ways.length ? readDetails(header, column('detail'), ns) : []};
}

/* Of some requests, each way by which a root reached them, and the samples that fell into it. */
function readDetails(header, next, ns) {
	const details = [];
	let row = -1;
	for (let left = next(); left; left--) {
		row += next() + 1;
		const detail = {row, factor: header.detail_factors[next()], entries: []};
		for (let entries = next(); entries; entries--) {
			const entry = {way: next(), ns: ns(next()), ticks: []};
			for (let ticks = next(); ticks; ticks--)
				entry.ticks.push([next(), ns(next())]);
			detail.entries.push(entry);
		}
		details.push(detail);
	}
	return details;
}
