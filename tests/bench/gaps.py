#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How long clients of a server wait at most, undisturbed and while whylate moves its probes.

A Python server and its clients; every client asks again some milliseconds after its reply.  A pause of the server shows
as the longest reply of all clients together, and as the longest time without any reply.  --other-port tests a server
"""

import argparse
import os
import socket
import subprocess
import sys
import threading
import time

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


class Load:
    def __init__(self, port, clients, pause):
        self.replies = []
        self.ending = False
        self.threads = [threading.Thread(target=self.ask, args=(port, pause, i)) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, port, pause, seed):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        count = seed
        while not self.ending:
            begin = time.monotonic()
            connection.sendall(b"%d\n" % count)
            if not connection.recv(64):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whylate", default="build/whylate")
    parser.add_argument("--command", default="diagnose -d 8s --rounds 3 --json")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.01)
    parser.add_argument("--before", type=float, default=5)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    load = None
    try:
        load = Load(int(server.stdout.readline()), args.clients, args.pause)
        time.sleep(1)
        begin = time.monotonic()
        time.sleep(args.before)
        undisturbed = load.worst(begin, time.monotonic())
        say("undisturbed", undisturbed)
        begin = time.monotonic()
        subprocess.run([os.path.abspath(args.whylate), *args.command.split(), "-p", str(server.pid)], cwd="/tmp",
                       stdout=subprocess.DEVNULL, stderr=None if args.verbose else subprocess.DEVNULL, check=False)
        disturbed = load.worst(begin, time.monotonic())
        say("whylate", disturbed)
        say("afterwards", (time.sleep(1), load.worst(time.monotonic() - 1, time.monotonic()))[1])
        return 0
    finally:
        if load:
            load.end()
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
