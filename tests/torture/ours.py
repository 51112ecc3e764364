# SPDX-License-Identifier: GPL-2.0-or-later
"""The program's processes of one run, told by the directory in their environment."""
import os
import pathlib
import socket
import subprocess

WHYLATE = os.path.realpath(os.environ.get("WHYLATE", "build/whylate"))


def ours(dir):
    """The program's processes that work in this directory or below one that does, by name."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes()
            if os.readlink(process / "exe") == WHYLATE and f"TORTURE={dir}".encode() in environ.split(b"\0"):
                found.append((int(process.name), (process / "comm").read_text().strip()))
        except OSError:
            pass
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(dir, *words, **more):
    return subprocess.Popen([WHYLATE, *words], env=dict(os.environ, TORTURE=dir), **more)
