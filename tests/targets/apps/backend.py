# SPDX-License-Identifier: GPL-2.0-or-later
"""An origin server: /slow prices items for some 20 ms."""
import http.server
import sys


def price_item(cnt):
    price = 0
    for i in range(cnt):
        price = (price * 31 + i) % 1000003
    return price


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write: two would meet Nagle's algorithm

    def do_GET(self):
        if "slow" in self.path:
            price_item(250000)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
