# SPDX-License-Identifier: GPL-2.0-or-later
# As hops.c, in Python: a pool of two processes, a lock whose owner waits for an upstream or for a disk.
import multiprocessing
import os
import socket
import sys
import threading
import time
import zlib

from switch import is_off

plant, port = sys.argv[1], int(sys.argv[2])
lock = threading.Lock()
blob = bytes(range(256)) * 1024


def archive_blob():
    for _ in range(4):
        zlib.compress(blob, 9)


def price_item():
    return 1


def ask_upstream(line):
    with lock:
        upstream.sendall(line)
        upstream.recv(64)


def flush_ledger():
    begin = time.monotonic()
    while time.monotonic() - begin < 0.016:
        os.pwrite(ledger, blob, 0)
        os.fdatasync(ledger)


def keep_ledger():
    while True:
        time.sleep(0.18)
        if not is_off():
            with lock:
                flush_ledger()


def serve(line):
    slow = line[:1] == b"s" and not is_off()
    if plant == "hp-py-mp":
        pool.apply(archive_blob if slow else price_item)
    elif plant == "hp-py-upstream":
        ask_upstream(line)
    else:
        with lock:
            pass


def connection(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while line := client.recv(64):
        serve(line)
        client.sendall(b"ok\n")


def connect():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port + 1))
        except OSError:
            time.sleep(0.02)


if plant == "hp-py-mp":
    pool = multiprocessing.get_context("fork").Pool(2)
elif plant == "hp-py-upstream":
    upstream = connect()
else:
    ledger = os.open("/var/tmp/whylate-hops-py.ledger", os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink("/var/tmp/whylate-hops-py.ledger")
    threading.Thread(target=keep_ledger, daemon=True).start()
listener = socket.create_server(("127.0.0.1", port))
while True:
    connected, _ = listener.accept()
    threading.Thread(target=connection, args=(connected,), daemon=True).start()
