// SPDX-License-Identifier: GPL-2.0-or-later
// Today's ClickHouse behind HTTP, by npm's chdb (in-process), as far as the projection speaks it: statements, and INSERTs
// of compressed RowBinary with their tokens.  Prints its port; one request at a time.
//
//   NODE_PATH=DIR/node_modules node modern.js DIRECTORY
const fs = require('fs');
const http = require('http');
const zlib = require('zlib');
const { Session } = require('chdb');

const session = new Session(`${process.argv[2]}/chdb`);

function carry_out(url, body) {
  const query = url.searchParams.get('query');
  if (!query) return session.query(body.toString(), 'TabSeparated') || '';
  const file = `${process.argv[2]}/body`;
  const token = url.searchParams.get('insert_deduplication_token');
  fs.writeFileSync(file, body);
  const into = query.replace(/ FORMAT RowBinary$/, '');
  const settings = token ? ` SETTINGS insert_deduplication_token = '${token}'` : '';
  return session.query(`${into} FROM INFILE '${file}'${settings} FORMAT RowBinary`) || '';
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const raw = Buffer.concat(parts);
    try {
      const body = request.headers['content-encoding'] === 'gzip' ? zlib.gunzipSync(raw) : raw;
      const answer = carry_out(new URL(request.url, 'http://localhost'), body);
      response.end(answer);
    } catch (error) {
      const text = String(error.message || error);
      const code = /Code: (\d+)/.exec(text);
      response.writeHead(500, code ? { 'X-ClickHouse-Exception-Code': code[1] } : {});
      response.end((code ? text.slice(code.index) : text) + '\n');
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
