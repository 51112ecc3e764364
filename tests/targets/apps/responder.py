# SPDX-License-Identifier: GPL-2.0-or-later
"""A NATS client that answers requests for `price`: those whose payload is `slow` after some 20 ms."""
import socket
import sys
import time


def price_item(cnt):
    price = 0
    for i in range(cnt):
        price = (price * 31 + i) % 1000003
    return price


def connect(port):
    while True:
        try:
            sock = socket.create_connection(("127.0.0.1", port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError:
            time.sleep(0.1)


def serve(sock):
    lines = sock.makefile("rb")
    sock.sendall(b"CONNECT {\"verbose\":false}\r\nSUB price 1\r\n")
    for line in lines:
        words = line.split()
        if words[0] == b"PING":
            sock.sendall(b"PONG\r\n")
        elif words[0] == b"MSG":
            if lines.read(int(words[-1]) + 2).startswith(b"slow"):
                price_item(250000)
            sock.sendall(b"PUB %s 2\r\nok\r\n" % words[3])


serve(connect(int(sys.argv[1])))
