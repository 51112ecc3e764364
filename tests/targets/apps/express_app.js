// SPDX-License-Identifier: GPL-2.0-or-later
const app = require('express')();

function buildReport(cnt) {
	let sum = 0;
	for (let i = 0; i < cnt; i++)
		sum = (sum * 31 + i) % 1000003;
	return sum;
}

app.get('/fast', (request, response) => response.send('ok\n'));
app.get('/slow', (request, response) => response.send(buildReport(3000000) + '\n'));
app.listen(Number(process.argv[2]), '127.0.0.1');
