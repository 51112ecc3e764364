# SPDX-License-Identifier: GPL-2.0-or-later
"""The servers that are measured, and what loads them.  Each listens on a loopback port of its own and lives in a
temporary directory; stop() ends exactly the processes that start() began."""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections import namedtuple

# What a load generator says: requests that were answered, in how many seconds, the 99th percentile it saw (None if it
# does not tell), and its own CPU time.
Load = namedtuple("Load", "requests seconds p99_us cpu_ns")

LOAD_TIMEOUT_S = 60


class NotPossible(Exception):
    """Something cannot run on this machine; the message says why."""


def descendants(pid):
    """The process and all that stem from it and are alive."""
    children = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat:
                parent = int(stat.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def cpu_ns(pid):
    """CPU time of a process tree so far.  Threads that live are read to the nanosecond; what has been waited for adds
    up in the parent, which shows it in ticks of 10 ms."""
    total = 0
    for one in descendants(pid):
        try:
            for tid in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{tid}/schedstat") as schedstat:
                    total += int(schedstat.read().split()[0])
            with open(f"/proc/{one}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) * 1000000000 // os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return total


def find_program(name, *more_dirs):
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *more_dirs]))
    if not path:
        raise NotPossible(f"{name} is not installed")
    return path


def on_cpus(which, argv):
    """The command, confined to the server's ("server") or the load generator's ("load") half of the CPUs, or to one; "all":
    to none of them."""
    if which == "all":
        return argv
    cpus = sorted(os.sched_getaffinity(0))
    half = (len(cpus) + 1) // 2
    if isinstance(which, int):
        mine = [which]
    else:
        mine = cpus[:half] if which == "server" or len(cpus) == 1 else cpus[half:]
    return ["taskset", "-c", ",".join(map(str, mine)), *argv]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def run_load(argv, cwd=None):
    """Runs a load generator; returns its output and its CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(on_cpus("load", argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
                          timeout=LOAD_TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise NotPossible(f"{argv[0]} failed: {done.stdout.strip()[-200:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, int(used * 1e9)


def output(argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=LOAD_TIMEOUT_S).stdout


def ask(port, question, until):
    """The answer of a server that is asked on a connection of its own, to where `until` is in it."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(5)
        connection.sendall(question)
        while until not in answer:
            more = connection.recv(65536)
            if not more:
                break
            answer += more
    return answer


class Server:
    """One server: start(), load() as often as wanted, stop().  endless() is the command of the same load for so many
    seconds or, where the client knows only a number of requests, until it is stopped; answered() is the server's own
    count of requests so far."""

    name = None
    what = None
    cpus = "server"  # as on_cpus() takes it

    def __init__(self, directory):
        self.directory = os.path.join(directory, self.name)
        os.mkdir(self.directory)
        self.port = free_port()
        self.process = None

    def launch(self, argv):
        log = open(os.path.join(self.directory, "log"), "w")
        self.process = subprocess.Popen(on_cpus(self.cpus, argv), stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=subprocess.STDOUT)
        log.close()
        for _ in range(100):
            if self.process.poll() is not None:
                with open(os.path.join(self.directory, "log")) as log:
                    raise NotPossible(f"{self.name} ended at once: {log.read().strip()[-300:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise NotPossible(f"{self.name} does not listen after 10 s")

    @property
    def pid(self):
        return self.process.pid

    stop_signal = signal.SIGTERM

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Redis(Server):
    name = "redis-server"
    what = "redis-benchmark -c 50 -t get, no pipelining"

    def start(self):
        self.client = find_program("redis-benchmark")
        self.launch([find_program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                     "--appendonly", "no", "--dir", self.directory])

    def load(self, rate, seconds):
        """About so many seconds of load if the server does `rate` requests per second."""
        count = max(int(rate * seconds), 500)
        out, used = run_load([self.client, "-p", str(self.port), "-c", "50", "-n", str(count), "-t", "get", "--csv"])
        fields = [field.strip('"') for field in out.strip().splitlines()[-1].split(",")]
        return Load(count, count / float(fields[1]), float(fields[6]) * 1000, used)

    def endless(self, seconds):
        return [self.client, "-p", str(self.port), "-c", "50", "-n", "2000000000", "-t", "get"]

    def answered(self):
        return int(re.search(rb"total_commands_processed:(\d+)", ask(self.port, b"INFO stats\r\n", b"total_net_input"))[1])


class Memcached(Server):
    name = "memcached"
    what = "load_memcached, 50 connections, 9 gets to 1 set"

    def start(self):
        self.client = os.path.join(self.directory, "load_memcached")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load_memcached.c")
        built = subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", source, "-o", self.client], stderr=subprocess.PIPE, text=True)
        if built.returncode:
            raise NotPossible(f"load_memcached.c does not compile: {built.stderr[-300:]}")
        self.launch([find_program("memcached"), "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-u", "root"])

    def load(self, rate, seconds):
        count = max(int(rate * seconds), 500)
        out, used = run_load([self.client, str(self.port), "50", str(count)])
        requests, took, _, p99_us = out.split()
        return Load(int(requests), float(took), float(p99_us), used)

    def endless(self, seconds):
        return [self.client, str(self.port), "50", "2000000000"]

    def answered(self):
        stats = ask(self.port, b"stats\r\n", b"END\r\n")
        return sum(int(re.search(rb"STAT %s (\d+)" % name, stats)[1]) for name in (b"cmd_get", b"cmd_set"))


class Postgres(Server):
    name = "postgres"
    what = "pgbench -S -M prepared -c 8, scale 10"
    stop_signal = signal.SIGINT  # fast shutdown: connections are cut off

    def program(self, bin_dir):
        return find_program("postgres", bin_dir)

    def start(self):
        versions = sorted(os.listdir("/usr/lib/postgresql")) if os.path.isdir("/usr/lib/postgresql") else []
        bin_dir = f"/usr/lib/postgresql/{versions[-1]}/bin" if versions else ""
        postgres = self.program(bin_dir)
        self.client = find_program("pgbench", bin_dir)
        data = os.path.join(self.directory, "data")
        # PostgreSQL refuses to run as root.
        for path in (os.path.dirname(self.directory), self.directory):
            os.chmod(path, 0o755)
        shutil.chown(self.directory, "postgres")
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        run_load(as_postgres + [find_program("initdb", bin_dir), "-D", data, "-A", "trust", "--no-sync"])
        self.launch(as_postgres + [postgres, "-D", data, "-h", "127.0.0.1", "-p", str(self.port), "-k", self.directory,
                                   "-c", "fsync=off", "-c", "autovacuum=off"])
        self.connect = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        for _ in range(50):  # it listens a moment before it lets anybody in
            try:
                run_load([self.client, *self.connect, "-i", "-q", "-s", "10", "postgres"])
                return
            except NotPossible as reason:
                last = reason
                time.sleep(0.2)
        raise last

    def load(self, rate, seconds):
        count = max(int(rate * seconds / 8), 50)
        out, used = run_load([self.client, *self.connect, "-n", "-S", "-M", "prepared", "-c", "8", "-t", str(count),
                              "-l", "--sampling-rate=0.1", "postgres"], cwd=self.directory)
        took = count * 8 / float(re.search(r"tps = ([\d.]+)", out)[1])
        lengths = []
        for name in os.listdir(self.directory):
            if name.startswith("pgbench_log."):
                with open(os.path.join(self.directory, name)) as log:
                    lengths += [int(line.split()[2]) for line in log]
                os.unlink(os.path.join(self.directory, name))
        lengths.sort()
        return Load(count * 8, took, lengths[int(len(lengths) * 0.99)] if lengths else None, used)

    def endless(self, seconds):
        return [self.client, *self.connect, "-n", "-S", "-M", "prepared", "-c", "8", "-T", str(int(seconds)), "postgres"]

    def answered(self):
        psql = os.path.join(os.path.dirname(self.client), "psql")
        return int(output([psql, *self.connect, "-At", "-c", "select sum(xact_commit) from pg_stat_database", "postgres"]))


class Nginx(Server):
    name = "nginx"
    what = "wrk -t1 -c16, a file of 1 KiB, one worker"

    def start(self):
        self.client = find_program("wrk")
        os.chmod(os.path.dirname(self.directory), 0o755)
        os.chmod(self.directory, 0o755)
        with open(os.path.join(self.directory, "index.html"), "w") as page:
            page.write("x" * 1024)
        config = os.path.join(self.directory, "nginx.conf")
        with open(config, "w") as conf:
            conf.write(f"daemon off; worker_processes 1; pid {self.directory}/pid; error_log {self.directory}/error.log;\n"
                       f"events {{ worker_connections 256; }}\n"
                       f"http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {self.directory};\n"
                       f"server {{ listen 127.0.0.1:{self.port}; root {self.directory}; location = /status {{ stub_status; }} }} }}\n")
        self.launch([find_program("nginx"), "-c", config, "-p", self.directory])

    def load(self, rate, seconds):
        out, used = run_load([self.client, "-t1", "-c16", f"-d{max(round(seconds), 1)}s", "--latency",
                              f"http://127.0.0.1:{self.port}/index.html"])
        requests, took = re.search(r"(\d+) requests in ([\d.]+)s", out).groups()
        p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
        return Load(int(requests), float(took), float(p99) * {"us": 1, "ms": 1e3, "s": 1e6}[unit], used)

    def endless(self, seconds):
        return [self.client, "-t1", "-c16", f"-d{int(seconds)}s", f"http://127.0.0.1:{self.port}/index.html"]

    def answered(self):
        status = ask(self.port, b"GET /status HTTP/1.0\r\n\r\n", b"Waiting")
        return int(re.search(rb"\n \d+ \d+ (\d+)", status)[1])


class MariaDB(Server):
    name = "mariadbd"
    what = "sysbench oltp_point_select, 8 threads, 20,000 rows"

    def start(self):
        self.client = find_program("sysbench")
        data = os.path.join(self.directory, "data")
        for path in (os.path.dirname(self.directory), self.directory):
            os.chmod(path, 0o755)
        run_load([find_program("mariadb-install-db"), "--no-defaults", "--user=root", f"--datadir={data}",
                  "--auth-root-authentication-method=normal", "--skip-test-db"])
        sock = os.path.join(self.directory, "sock")
        self.launch([find_program("mariadbd"), "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={sock}",
                     f"--port={self.port}", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0"])
        run_load([find_program("mariadb"), "--no-defaults", "-S", sock, "-u", "root", "-e", "create database sbtest"])
        self.arguments = [self.client, "oltp_point_select", f"--mysql-socket={sock}", "--mysql-user=root",
                          "--table-size=20000", "--threads=8"]
        run_load([*self.arguments, "prepare"])

    def load(self, rate, seconds):
        out, used = run_load([*self.arguments, f"--time={max(round(seconds), 1)}", "--percentile=99", "run"])
        queries = int(re.search(r"total:\s+(\d+)", out)[1])
        took = float(re.search(r"total time:\s+([\d.]+)s", out)[1])
        p99_ms = float(re.search(r"99th percentile:\s+([\d.]+)", out)[1])
        return Load(queries, took, p99_ms * 1000, used)

    def endless(self, seconds):
        return [*self.arguments, f"--time={int(seconds)}", "run"]

    def answered(self):
        sock = os.path.join(self.directory, "sock")
        return int(output([find_program("mariadb"), "--no-defaults", "-S", sock, "-u", "root", "-N", "-e",
                           "show global status like 'Questions'"]).split()[1])


# Those that the bars of the design name.
BY_NAME = {"redis": Redis, "memcached": Memcached, "postgres": Postgres, "nginx": Nginx, "mariadb": MariaDB}
