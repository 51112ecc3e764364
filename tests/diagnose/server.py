# SPDX-License-Identifier: GPL-2.0-or-later
# As server.c, in Python.
import asyncio
import concurrent.futures
import json
import os
import re
import socket
import sys
import threading
import time
import zlib

from switch import is_off

plant, port = sys.argv[1], int(sys.argv[2])
catalogue = [{"id": i, "name": "item %d" % i, "tags": list(range(10))} for i in range(6000)]
lock = threading.Lock()
blob = os.urandom(1 << 19)


def render_catalogue():
    return json.dumps(catalogue)


def match_rules():
    return re.match(r"(a?){16}a{16}", "a" * 16)


def archive_blob():
    return zlib.compress(blob, 6)


def count_words():
    total = 0
    for i in range(200000):
        total += i & 7
    return total


def serve(slow):
    slow = slow and not is_off()
    if plant == "py-lock":
        with lock:
            if slow:
                archive_blob()
    elif slow and plant == "py-own":
        render_catalogue()
    elif slow and plant == "py-regex":
        match_rules()
    elif slow and plant == "py-sleep":
        time.sleep(0.016)


def connection(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        line = client.recv(64)
        if not line:
            return
        serve(line[:1] == b"s")
        client.sendall(b"ok\n")


def counter():
    while True:
        time.sleep(0.18)
        if not is_off():
            count_words()


async def stream(reader, writer):
    """Of two requests, one goes to a pool of threads; the loop answers the other itself."""
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own = 0
    while line := await reader.readline():
        own += 1
        if line[:1] == b"s" and not is_off():
            await asyncio.get_running_loop().run_in_executor(pool, archive_blob)
        elif own % 2:
            await asyncio.get_running_loop().run_in_executor(pool, len, blob)
        writer.write(b"ok\n")


async def serve_streams():
    async with await asyncio.start_server(stream, "127.0.0.1", port) as server:
        await server.serve_forever()


if plant == "py-executor":
    pool = concurrent.futures.ThreadPoolExecutor(2)
    asyncio.run(serve_streams())
listener = socket.create_server(("127.0.0.1", port))
if plant == "py-gil":
    threading.Thread(target=counter, daemon=True).start()
while True:
    client, _ = listener.accept()
    threading.Thread(target=connection, args=(client,), daemon=True).start()
