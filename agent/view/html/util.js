'use strict';
/* Text, colours, canvases: what every chart needs.  Names from a recording enter the page as text nodes only. */
const $ = (id) => document.getElementById(id);

function element(tag, text, className) {
	const made = document.createElement(tag);
	if (text !== undefined)
		made.textContent = text;
	if (className)
		made.className = className;
	return made;
}

/* Three digits and a unit, as the text report. */
function duration(ns) {
	if (!isFinite(ns))
		return '–';
	const sign = ns < 0 ? '-' : '', units = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];
	ns = Math.abs(ns);
	let at = 0;
	while (at < 3 && ns / units[at][1] >= 999.5)
		at++;
	const value = ns / units[at][1];
	const digits = at === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	return sign + value.toFixed(digits) + ' ' + units[at][0];
}

/* Since the first request. */
const moment = (seconds) => '+' + (seconds < 1e-9 ? '0 s' : duration(seconds * 1e9));

function percent(share) {
	if (!isFinite(share))
		return '–';
	const value = share * 100;
	return (Math.abs(value) < 0.95 && Math.abs(value) >= 0.05 ? value.toFixed(1) : Math.round(value).toString()) + ' %';
}

const count = (number) => Math.round(number).toLocaleString('en-US');

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

/* The colour of the n-th line of a legend: hues far apart, later ones paler. */
const HUES = [212, 24, 160, 280, 48, 340, 190, 95];
const colour = (n) => `hsl(${HUES[n % HUES.length]} ${n < HUES.length ? theme('sat') : '28%'} ${theme('light')})`;

function mix(from, to, share) {
	const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
	const a = parse(from), b = parse(to);
	return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * share)).join(' ')})`;
}

/* A drawing surface of so many CSS pixels of height, sharp on any display. */
function surface(canvas, height) {
	const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
	canvas.style.height = height + 'px';
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const pen = canvas.getContext('2d');
	pen.setTransform(ratio, 0, 0, ratio, 0, 0);
	pen.clearRect(0, 0, width, height);
	pen.font = '12px system-ui, sans-serif';
	pen.textBaseline = 'middle';
	return {pen, width, height};
}

/* As much of a text as fits. */
function fit(pen, text, width) {
	if (pen.measureText(text).width <= width)
		return text;
	let keep = Math.floor(width / 6.5);
	while (keep > 1 && pen.measureText(text.slice(0, keep) + '…').width > width)
		keep--;
	return keep > 1 ? text.slice(0, keep) + '…' : '';
}

function legend(list, lines) {
	list.replaceChildren(...lines.map(([fill, text]) => {
		const item = element('li');
		const mark = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
		const square = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
		square.setAttribute('width', 10);
		square.setAttribute('height', 10);
		square.setAttribute('fill', fill);
		mark.append(square);
		item.append(mark, text);
		return item;
	}));
}

const pointer = (canvas, event) => {
	const box = canvas.getBoundingClientRect();
	return [event.clientX - box.left, event.clientY - box.top];
};
