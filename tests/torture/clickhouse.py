# SPDX-License-Identifier: GPL-2.0-or-later
"""A clickhouse-server of one's own, without privilege: its files in a directory, its ports on loopback."""
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

CONFIG = """<?xml version="1.0"?>
<yandex>
<logger><level>warning</level><log>{dir}/server.log</log><errorlog>{dir}/error.log</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex><profiles><default/></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas></yandex>
"""


def binary():
    return shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, directory):
        self.dir = directory
        self.http, self.tcp = free_port(), free_port()
        os.makedirs(directory, exist_ok=True)
        for name, text in (("config.xml", CONFIG), ("users.xml", USERS)):
            with open(f"{directory}/{name}", "w") as out:
                out.write(text.format(dir=directory, http=self.http, tcp=self.tcp))
        self.process = None

    def start(self):
        with open(f"{self.dir}/out.log", "a") as out:
            self.process = subprocess.Popen([binary(), f"--config-file={self.dir}/config.xml"], stdout=out, stderr=out,
                                            cwd=self.dir)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/ping", timeout=1):
                    return self
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"clickhouse-server ended: see {self.dir}/error.log")
                time.sleep(0.05)
        raise SystemExit("clickhouse-server does not answer")

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def ask(self, sql):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/", data=sql.encode(), timeout=1800) as answer:
            return answer.read().decode()
