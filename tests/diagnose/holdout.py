# SPDX-License-Identifier: GPL-2.0-or-later
# As holdout.c, in Python: a thread that keeps the interpreter, a helper program behind a lock.
import os
import random
import socket
import subprocess
import sys
import threading
import time

from switch import is_off

plant, port = sys.argv[1], int(sys.argv[2])
lock = threading.Lock()
scores = [random.random() for _ in range(60000)]
helper = None


def rank_all():
    return sorted(scores)[0]


def statistics():
    while True:
        time.sleep(0.18)
        if not is_off():
            rank_all()


def format_label(slow):
    with lock:
        helper.stdin.write(b"slow\n" if slow else b"get\n")
        helper.stdin.flush()
        helper.stdout.readline()


def connection(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while line := client.recv(64):
        if plant == "ho-py-helper":
            format_label(line[:1] == b"s" and not is_off())
        client.sendall(b"ok\n")


if plant == "ho-py-helper":
    helper = subprocess.Popen([os.path.join(os.environ["PLANTED"], "holdout"), "format", "0"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
listener = socket.create_server(("127.0.0.1", port))
if plant == "ho-py-rank":
    threading.Thread(target=statistics, daemon=True).start()
while True:
    connected, _ = listener.accept()
    threading.Thread(target=connection, args=(connected,), daemon=True).start()
