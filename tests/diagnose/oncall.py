# SPDX-License-Identifier: GPL-2.0-or-later
# As oncall.c, in Python: a database within the process behind a lock, a copy of a large document.
import copy
import socket
import sqlite3
import sys
import threading

from switch import is_off

plant, port = sys.argv[1], int(sys.argv[2])
lock = threading.Lock()
base = sqlite3.connect(":memory:", check_same_thread=False)
document = [{"name": str(i), "tags": [i, i + 1]} for i in range(1500)]


def look_up(slow):
    with lock:
        if slow:
            base.execute("select count(*) from orders where note like '%99%9'").fetchone()
        else:
            base.execute("select note from orders where id = 7").fetchone()


def copy_document():
    return copy.deepcopy(document)


def connection(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while line := client.recv(64):
        slow = line[:1] == b"s" and not is_off()
        if plant == "oc-py-sqlite":
            look_up(slow)
        elif slow:
            copy_document()
        client.sendall(b"ok\n")


if plant == "oc-py-sqlite":
    base.execute("create table orders (id integer primary key, note text)")
    base.executemany("insert into orders values (?, ?)", ((i, "order %d of a day" % i) for i in range(100000)))
listener = socket.create_server(("127.0.0.1", port))
while True:
    connected, _ = listener.accept()
    threading.Thread(target=connection, args=(connected,), daemon=True).start()
