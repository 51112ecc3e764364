#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long clients of a server wait at most, undisturbed and while whylate moves its probes.

A Python server, PostgreSQL or MariaDB, and its clients; every client asks again some milliseconds after its reply.  A
pause of the server shows as the longest reply of all clients together, and as the longest time without any reply.
"""

import argparse
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

import servers  # noqa: E402

SERVER = r"""
import json, os, socket, sys, threading
def work(n):
    return sum(len(json.dumps({"k": i, "v": [i] * 8})) for i in range(n))
def serve(connection):
    file = connection.makefile("rwb", buffering=0)
    for line in file:
        file.write(b"%d\n" % work(20 if line[0] % 10 else 200))
server = socket.create_server(("127.0.0.1", 0), backlog=64)
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""


QUERY = "select count(*) from generate_series(1, 300)"
QUERY_MARIADB = "select benchmark(300, md5(1))"


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise OSError("the server closed the connection")
        data += part
    return data


class PythonClient:
    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.file = self.connection.makefile("rwb", buffering=0)

    def ask(self, count):
        self.file.write(b"%d\n" % count)
        self.file.readline()


class PostgresClient:
    """The simple query protocol, version 3."""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        words = b"user\0postgres\0database\0postgres\0\0"
        self.connection.sendall(struct.pack("!ii", len(words) + 8, 196608) + words)
        self.until_ready()

    def until_ready(self):
        while True:
            kind, length = struct.unpack("!ci", read_exactly(self.connection, 5))
            read_exactly(self.connection, length - 4)
            if kind == b"Z":
                return

    def ask(self, _):
        text = QUERY.encode() + b"\0"
        self.connection.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        self.until_ready()


class MariaDBClient:
    """Protocol 4.1 over the Unix socket, a text query."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.packet()
        # CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION; an empty password.
        self.send(1, struct.pack("<IIB23x", 0x8200, 1 << 24, 33) + b"root\0\0")
        if self.packet()[0] != 0:
            raise OSError("the server refused root")

    def packet(self):
        header = read_exactly(self.connection, 4)
        return read_exactly(self.connection, header[0] | header[1] << 8 | header[2] << 16)

    def send(self, number, data):
        self.connection.sendall(struct.pack("<I", len(data) | number << 24) + data)

    def ask(self, _):
        self.send(0, b"\3" + QUERY_MARIADB.encode())
        ends = 0
        while ends < 2:
            data = self.packet()
            if data[0] == 0xff:
                raise OSError(data)
            ends += data[0] == 0xfe and len(data) < 9


class Load:
    def __init__(self, connect, clients, pause):
        self.replies = []
        self.ending = False
        self.threads = [threading.Thread(target=self.ask, args=(connect(), pause, i)) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, client, pause, count):
        while not self.ending:
            begin = time.monotonic()
            try:
                client.ask(count)
            except OSError:
                return
            self.replies.append((time.monotonic(), time.monotonic() - begin))
            count = (count + 1) % 10 if count % 50 else count + 1
            time.sleep(pause)

    def end(self):
        self.ending = True
        for thread in self.threads:
            thread.join()

    def worst(self, begin, end):
        inside = sorted(reply for reply in list(self.replies) if begin <= reply[0] <= end)
        silence = max((b[0] - a[0] for a, b in zip(inside, inside[1:])), default=0)
        latencies = sorted(reply[1] for reply in inside)
        p99 = latencies[len(latencies) * 99 // 100] if latencies else 0
        return len(inside), p99, max(latencies, default=0), silence


def say(name, figures):
    count, p99, longest, silence = figures
    print(f"{name:12} {count:7} replies  p99 {p99 * 1e3:7.1f} ms  longest {longest * 1e3:7.1f} ms  "
          f"longest silence {silence * 1e3:7.1f} ms", flush=True)


class Python:
    def __init__(self, _):
        self.process = None

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    def open(self):
        return PythonClient(self.port)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Postgres(servers.Postgres):
    def open(self):
        return PostgresClient(self.port)


class MariaDB(servers.MariaDB):
    def open(self):
        return MariaDBClient(os.path.join(self.directory, "sock"))


SERVERS = {"python": Python, "postgres": Postgres, "mariadb": MariaDB}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=SERVERS, default="python")
    parser.add_argument("--whylate", default="build/whylate")
    parser.add_argument("--command", default="diagnose -d 8s --rounds 3 --json")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.01)
    parser.add_argument("--before", type=float, default=5)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = SERVERS[args.server](directory)
        load = None
        try:
            server.start()
            load = Load(server.open, args.clients, args.pause)
            time.sleep(1)
            begin = time.monotonic()
            time.sleep(args.before)
            say("undisturbed", load.worst(begin, time.monotonic()))
            begin = time.monotonic()
            subprocess.run([os.path.abspath(args.whylate), *args.command.split(), "-p", str(server.pid)], cwd="/tmp",
                           stdout=subprocess.DEVNULL, stderr=None if args.verbose else subprocess.DEVNULL, check=False)
            say("whylate", load.worst(begin, time.monotonic()))
            say("afterwards", (time.sleep(1), load.worst(time.monotonic() - 1, time.monotonic()))[1])
        finally:
            if load:
                load.end()
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
