#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""queue.Queue between a reader and two workers, as staged.h has it."""

import queue
import selectors
import signal
import socket
import sys
import threading
import time

jobs = queue.Queue()
notes = []


def worker():
    while True:
        key, kind, tid, put_ns, sock = jobs.get()
        out_ns = time.monotonic_ns()
        until = out_ns + (1000000 if kind == "s" else 50000)
        while time.monotonic_ns() < until:
            pass
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        notes.append((key, kind, tid, put_ns, threading.get_native_id(), out_ns, time.monotonic_ns()))


def log_write(*_):
    with open(sys.argv[2], "w") as log:
        for note in list(notes):
            print(*note, file=log)
    sys.stdout.flush()
    import os
    os._exit(0)


def main():
    signal.signal(signal.SIGTERM, log_write)
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    loop = selectors.DefaultSelector()
    loop.register(listener, selectors.EVENT_READ)
    for _ in range(2):
        threading.Thread(target=worker, daemon=True).start()
    print("ready", flush=True)
    tid = threading.get_native_id()
    while True:
        for key, _ in loop.select():
            if key.fileobj is listener:
                loop.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            data = key.fileobj.recv(1000)
            if not data:
                loop.unregister(key.fileobj)
                continue
            kind, number = data.split(b" ")[1].decode().split("/")[1:3]
            jobs.put((int(number), kind[0], tid, time.monotonic_ns(), key.fileobj))


main()
