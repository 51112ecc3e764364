# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers of one's own, without privilege: their files in a directory, their ports on loopback.  A clickhouse-server, and
several as a cluster with a ZooKeeper."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from ours import free_port

CONFIG = """<?xml version="1.0"?>
<yandex>
<logger><level>warning</level><log>{dir}/server.log</log><errorlog>{dir}/error.log</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>{cluster}
</yandex>
"""
CLUSTER = """
<interserver_http_host>127.0.0.1</interserver_http_host><interserver_http_port>{interserver}</interserver_http_port>
<zookeeper><node><host>127.0.0.1</host><port>{zookeeper}</port></node><session_timeout_ms>3000</session_timeout_ms></zookeeper>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
<macros><shard>{shard}</shard><replica>{replica}</replica></macros>
<remote_servers><{name}>{shards}</{name}></remote_servers>"""
USERS = """<?xml version="1.0"?>
<yandex><profiles><default/></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default/></quotas></yandex>
"""


def binary():
    return shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def zookeeper_classes():
    """The Java classes of Debian's libzookeeper-java; None: they are not installed, or there is no Java."""
    jar = "/usr/share/java/zookeeper.jar"
    return jar if os.path.exists(jar) and shutil.which("java") else None


class ZooKeeper:
    def __init__(self, directory):
        self.dir, self.port, self.process = directory, free_port(), None
        os.makedirs(f"{directory}/data", exist_ok=True)
        with open(f"{directory}/zoo.cfg", "w") as out:
            out.write(f"tickTime=500\ndataDir={directory}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                      "admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=srvr\n")

    def start(self):
        with open(f"{self.dir}/out.log", "a") as out:
            self.process = subprocess.Popen(
                ["java", "-Dzookeeper.forceSync=no", "-Xmx192m", "-XX:+UseSerialGC", "-XX:CICompilerCount=2", "-cp",
                 ":".join([zookeeper_classes(), *glob.glob("/usr/share/java/slf4j-simple.jar")]),
                 "org.apache.zookeeper.server.ZooKeeperServerMain", f"{self.dir}/zoo.cfg"],
                stdout=out, stderr=out, cwd=self.dir)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"ZooKeeper ended: see {self.dir}/out.log")
            # It accepts connections before it serves; clickhouse-server 18.16 crashes where it finds it like that.
            if self.serves():
                return self
            time.sleep(0.1)
        raise SystemExit("ZooKeeper does not answer")

    def serves(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as asked:
                asked.sendall(b"srvr")
                return b"Mode:" in asked.recv(4096)
        except OSError:
            return False

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class Server:
    def __init__(self, directory):
        self.dir = directory
        self.http, self.tcp, self.interserver = free_port(), free_port(), free_port()
        os.makedirs(directory, exist_ok=True)
        self.configure("")
        self.process = None

    def configure(self, cluster):
        for name, text in (("config.xml", CONFIG), ("users.xml", USERS)):
            with open(f"{self.dir}/{name}", "w") as out:
                out.write(text.format(dir=self.dir, http=self.http, tcp=self.tcp, cluster=cluster))

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


class Cluster:
    """So many shards of so many servers each, called `name`."""

    def __init__(self, directory, shards, replicas, name="fleet"):
        self.name = name
        self.zookeeper = ZooKeeper(f"{directory}/zookeeper")
        self.servers = [Server(f"{directory}/server-{i}") for i in range(shards * replicas)]
        texts = []
        for s in range(shards):
            members = self.servers[s * replicas:(s + 1) * replicas]
            texts.append("<shard><internal_replication>true</internal_replication>" + "".join(
                f"<replica><host>127.0.0.1</host><port>{m.tcp}</port></replica>" for m in members) + "</shard>")
        for i, server in enumerate(self.servers):
            server.configure(CLUSTER.format(name=name, shards="".join(texts), zookeeper=self.zookeeper.port,
                                            interserver=server.interserver, shard=i // replicas, replica=f"replica-{i}"))

    def start(self):
        self.zookeeper.start()
        for server in self.servers:
            server.start()
        return self

    def kill(self):
        for server in self.servers:
            server.kill()
        self.zookeeper.kill()

    def ask_all(self, sql):
        for server in self.servers:
            server.ask(sql)
