#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of one port: load.py KIND PORT FAST SLOW.  One request in 30 is a slow one; prints `ready` after the first reply."""
import random
import socket
import sys
import threading
import time

KIND, PORT, FAST, SLOW = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
CLIENTS, THINK_S, SLOW_IN = 4, 0.005, 30
said = threading.Event()


def connect():
    while True:
        try:
            sock = socket.create_connection(("127.0.0.1", PORT), timeout=20)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError:
            time.sleep(0.2)


def until(sock, end):
    got = b""
    while not end(got):
        more = sock.recv(65536)
        if not more:
            raise ConnectionError
        got += more
    return got


def ask(sock, text, end=lambda got: got.endswith(b"\n")):
    sock.sendall(text.encode())
    return until(sock, end)


def whole(got):
    head, blank, body = got.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= int(length[0].split(b":")[1]) if length else body.endswith(b"0\r\n\r\n")


def http(sock):
    while True:
        yield ask(sock, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (SLOW if random.randrange(SLOW_IN) == 0 else FAST), whole)


def amqp(sock):
    """The server's offer of mechanisms, on a connection of its own."""
    sock.sendall(b"AMQP\0\0\x09\x01")
    yield until(sock, lambda got: len(got) > 7 and got[-1] == 0xce)


def nats(sock):
    until(sock, lambda got: got.endswith(b"\r\n"))
    ask(sock, 'CONNECT {"verbose":true}\r\n')
    while True:
        yield ask(sock, "PING\r\n", lambda got: b"PONG\r\n" in got)


def nats_request(sock):
    """To whoever answers it, through the server."""
    inbox, lines = "_INBOX.%d" % random.randrange(1 << 40), sock.makefile("rb")
    lines.readline()
    sock.sendall(('CONNECT {"verbose":false}\r\nSUB %s 1\r\n' % inbox).encode())
    while True:
        what = SLOW if random.randrange(SLOW_IN) == 0 else FAST
        sock.sendall(("PUB price %s %d\r\n%s\r\n" % (inbox, len(what), what)).encode())
        while not (line := lines.readline()).startswith(b"MSG"):
            if not line:
                raise ConnectionError
            if line.startswith(b"PING"):
                sock.sendall(b"PONG\r\n")
        yield lines.read(int(line.split()[-1]) + 2)


def imap(sock):
    until(sock, lambda got: got.endswith(b"\r\n"))
    done = lambda got: b"\na " in b"\n" + got and got.endswith(b"\r\n")
    ask(sock, "a LOGIN user%d secret\r\n" % random.randrange(4), done)
    while True:
        yield ask(sock, "a STATUS INBOX (MESSAGES UIDNEXT)\r\n", done)


def smtp(sock):
    until(sock, lambda got: got.endswith(b"\r\n"))
    ask(sock, "HELO client\r\n")
    while True:
        ask(sock, "MAIL FROM:<a@example.org>\r\n")
        yield ask(sock, "RCPT TO:<%s@example.org>\r\n" % ("slow" if random.randrange(SLOW_IN) == 0 else "fast"))
        ask(sock, "RSET\r\n")


def client():
    while True:
        sock = connect()
        try:
            for _ in globals()[KIND](sock):
                if not said.is_set():
                    said.set()
                    print("ready", flush=True)
                time.sleep(random.uniform(0, 2 * THINK_S))
        except OSError:
            pass
        sock.close()
        time.sleep(THINK_S)


for _ in range(CLIENTS):
    threading.Thread(target=client).start()
