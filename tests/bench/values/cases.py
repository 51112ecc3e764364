# SPDX-License-Identifier: GPL-2.0-or-later
"""Performance bugs of vProf's Table 1, brought back by the patches beside this file, with what makes them slow.

A case starts its server for a kind of run (`normal`, `slow`, or `mixed`: requests of both kinds), and has loads.
"""
import hashlib
import os
import pwd
import selectors
import signal
import socket
import subprocess
import threading
import time

from servers import descendants

DEBIAN_PG = "/usr/lib/postgresql/15/bin"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("no server listens on port %d" % port)


def before_others():
    """What else the machine has to do is no cause; the recorder, an idle task, must run all the same."""
    try:
        with open("/proc/self/autogroup", "w") as file:
            file.write("-5")
    except OSError:
        pass


class Case:
    """What all cases have: files, processes, threads of load."""

    typed = None  # in a mixed run, the type of the requests that are judged
    program = None  # of a build with -pg, what gprof sees; None: there is none
    patience = 3  # seconds from SIGTERM to SIGKILL

    def __init__(self, servers, directory, kind):
        self.servers, self.dir, self.kind = servers, directory, kind
        self.processes, self.threads, self.ended = [], [], False
        self.port = free_port()
        os.makedirs(directory, exist_ok=True)
        os.chmod(directory, 0o755)

    def run(self, *args, **more):
        log = open(os.path.join(self.dir, "log"), "a")
        process = subprocess.Popen(args, stdout=log, stderr=log, start_new_session=True, preexec_fn=before_others, **more)
        self.processes.append(process)
        return process

    def loop(self, work, *args):
        def repeat():
            while not self.ended:
                try:
                    work(*args)
                except OSError:
                    if not self.ended:
                        time.sleep(0.05)

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        self.threads.append(thread)

    def end(self):
        """A backend in an endless loop hears no signal but SIGKILL, and is in no group of its server's."""
        self.ended = True
        children = [pid for process in self.processes for pid in descendants(process.pid) if pid != process.pid]
        for process in reversed(self.processes):
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for process in self.processes:
            try:
                process.wait(self.patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for thread in self.threads:
            thread.join(10)


# --- Redis ----------------------------------------------------------------------------------------------------------

class Redis(Case):
    binary = program = "redis/src/redis-server"

    def start(self, *args):
        self.pid = self.run(os.path.join(self.servers, self.binary), "--port", str(self.port), "--dir", self.dir,
                            "--save", "", *args).pid
        wait_for(self.port)

    @staticmethod
    def encoded(command):
        words = command.split()
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def ask(self, command, pause):
        """One connection that repeats a command."""
        command = self.encoded(command)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            while not self.ended:
                connection.sendall(command)
                reply = connection.recv(1 << 16)
                if reply[:1] == b"$" and reply[:2] != b"$-":
                    head = reply.index(b"\r\n")
                    missing = int(reply[1:head]) + head + 4 - len(reply)
                    while missing > 0:
                        missing -= len(connection.recv(1 << 16))
                time.sleep(pause)


class ClusterNodes(Redis):
    """CLUSTER NODES looks at 16,384 slots for each node: a large cluster."""

    name, file, root, pattern = "redis-8145", "cluster.c", ["clusterGenNodeDescription"], "scalability"
    line = "for (j = 0; j < CLUSTER_SLOTS; j++)"
    source = "redis/src/cluster.c"
    typed = ""

    def start(self):
        count = {"normal": 4, "slow": 400, "mixed": 400}[self.kind]
        with open(os.path.join(self.dir, "nodes.conf"), "w") as file:
            for i in range(count):
                file.write("%s 127.0.0.1:%d@%d %s - 0 0 %d connected %d-%d\n" % (
                    hashlib.sha1(b"%d" % i).hexdigest(), self.port + i % 100, 20000 + i, "master,noaddr" if i else
                    "myself,master", i + 1, i * 16384 // count, (i + 1) * 16384 // count - 1))
            file.write("vars currentEpoch %d lastVoteEpoch 0\n" % count)
        super().start("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-port",
                      str(free_port()))
        for command in (b"GET {a}", b"SET {a} 1", b"CLUSTER INFO"):
            self.loop(self.ask, command, 0.002)
        self.loop(self.ask, b"CLUSTER NODES", 0.2 if self.kind == "mixed" else 0.002)


class BlockedPop(Redis):
    """A push looks at all clients that are blocked on the key for one of a module, although there is no module."""

    name, file, root, pattern = "redis-8668", "blocked.c", ["serveClientsBlockedOnKeyByModule"], "missing_constraint"
    line = "if (receiver->btype != BLOCKED_MODULE) continue;"
    source = "redis/src/blocked.c"
    typed = "LPUSH"

    def start(self):
        super().start("--maxclients", "9000")
        self.loop(self.push, b"jobs", {"normal": 5, "slow": 3000, "mixed": 3000}[self.kind],
                  0.02 if self.kind == "mixed" else 0.002)
        if self.kind == "mixed":
            self.loop(self.push, b"few", 5, 0.002)
        for command in (b"GET a", b"SET a 1"):
            self.loop(self.ask, command, 0.002)

    def push(self, key, waiters, pause):
        poll = selectors.DefaultSelector()
        pop, push = self.encoded(b"BRPOP %s 0" % key), self.encoded(b"LPUSH %s x" % key)
        sockets = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(waiters + 1)]
        producer = sockets.pop()
        for connection in sockets:
            connection.sendall(pop)
            poll.register(connection, selectors.EVENT_READ)
        while not self.ended:
            producer.sendall(push)
            producer.recv(100)
            for ready, _ in poll.select(0.1):
                ready.fileobj.recv(100)
                ready.fileobj.sendall(pop)
            time.sleep(pause)
        for connection in sockets + [producer]:
            connection.close()


# --- Apache httpd ---------------------------------------------------------------------------------------------------

class Httpd(Case):
    binary, program, mpm = "httpd/httpd", "httpd/httpd", "event"

    def start(self, conf):
        base = os.path.join(self.servers, "httpd")
        docs = os.path.join(self.dir, "docs")
        os.makedirs(docs, exist_ok=True)
        with open(os.path.join(docs, "index.html"), "w") as file:
            file.write("whylate\n" * 100)
        with open(os.path.join(self.dir, "httpd.conf"), "w") as file:
            file.write("LoadModule mpm_%s_module %s/server/mpm/%s/.libs/mod_mpm_%s.so\n" % (
                self.mpm, base, self.mpm, self.mpm))
            file.write("ServerRoot %s\nServerName localhost\nListen 127.0.0.1:%d\nDocumentRoot %s\nPidFile pid\n"
                       "DefaultRuntimeDir %s\nTypesConfig /etc/mime.types\nUser www-data\nErrorLog error.log\nLogLevel error\n"
                       "<Directory />\nRequire all granted\n</Directory>\n%s" % (
                           self.dir, self.port, docs, self.dir, conf))
        self.pid = self.run(os.path.join(base, "httpd"), "-DFOREGROUND", "-f", os.path.join(self.dir, "httpd.conf")).pid
        wait_for(self.port)

    def get(self, keep, pause):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            while not self.ended:
                connection.sendall(b"GET /index.html HTTP/1.1\r\nHost: a\r\n%s\r\n" % (
                    b"" if keep else b"Connection: close\r\n"))
                got = b""
                while got[-1:] != b"\n":
                    got = connection.recv(1 << 16)
                    if not got:
                        raise OSError("closed")
                time.sleep(pause)
                if not keep:
                    return


class GracefulRestart(Httpd):
    """A graceful restart connects once for each child that there ever was, also for those that are gone."""

    name, file, root, pattern = "httpd-54852", "mpm_unix.c", ["ap_mpm_pod_killpg"], "missing_constraint"
    line = "for (i = 0; i < num && rv == APR_SUCCESS; i++) {"
    source = "httpd/server/mpm_unix.c"
    mpm = "prefork"

    def start(self):
        super().start("ServerLimit 200\nMaxRequestWorkers 200\nStartServers %d\nMinSpareServers 1\n"
                      "MaxSpareServers 5\nListenBacklog 511\n" % (5 if self.kind == "normal" else 120))
        time.sleep(2)
        self.loop(self.get, False, 0.01)
        self.loop(self.restart)

    def restart(self):
        time.sleep(1)
        os.kill(self.pid, signal.SIGUSR1)


class IdleSpin(Httpd):
    """With less than a second to the next timeout of a kept connection, the listener polls without waiting."""

    name, file, root, pattern = "httpd-52914", "event.c", ["listener_thread"], "wrong_constraint"
    line = "timeout = expiry > now"
    source, binary = "httpd/server/mpm/event/event.c", "httpd/server/mpm/event/.libs/mod_mpm_event.so"
    program = None  # it is in a library, of which gprof sees nothing

    def start(self):
        super().start("StartServers 1\nThreadsPerChild 25\nMaxRequestWorkers 25\nServerLimit 1\nMinSpareThreads 1\n"
                      "MaxSpareThreads 25\nKeepAlive On\nKeepAliveTimeout 2\n")
        for i in range(20):
            if self.kind == "normal":
                self.loop(self.get, False, 0.1)
            else:
                self.loop(self.get, True, 1.8 + i / 20)


class HealthCheck(Httpd):
    """A health check that takes long is begun again at each tick of the watchdog."""

    name, file, root, pattern = ("httpd-62318", "mod_proxy_hcheck.c", ["hc_watchdog_callback"], "missing_constraint")
    line = "(now > worker->s->updated + worker->s->interval)"
    source = "httpd/modules/proxy/mod_proxy_hcheck.c"

    mpm = "prefork"  # the event MPM has httpd-52914

    def start(self):
        backend = socket.socket()
        backend.bind(("127.0.0.1", 0))
        backend.listen(500)
        delay = 0.0 if self.kind == "normal" else 4.0
        members = "".join("BalancerMember http://127.0.0.1:%d/%d hcmethod=GET hcinterval=1\n" % (
            backend.getsockname()[1], i) for i in range(400))
        super().start("ServerLimit 8\nMaxRequestWorkers 8\nStartServers 2\nMinSpareServers 1\nMaxSpareServers 2\n"
                      "<Proxy balancer://all>\n%s</Proxy>\nProxyPass /all balancer://all\n" % members)
        self.loop(self.answer, backend, delay)
        self.loop(self.get, False, 0.01)

    def answer(self, backend, delay):
        backend.settimeout(0.5)
        connection, _ = backend.accept()

        def reply():
            with connection:
                time.sleep(delay)
                try:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    pass

        threading.Thread(target=reply, daemon=True).start()


# --- PostgreSQL -----------------------------------------------------------------------------------------------------

class Postgres(Case):
    binary = program = "postgres/src/backend/postgres"

    def __init__(self, *args):
        super().__init__(*args)
        user = pwd.getpwnam("postgres")
        os.chown(self.dir, user.pw_uid, user.pw_gid)
        self.as_user = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": self.dir}

    def tool(self, *args, **more):
        args = [os.path.join(DEBIAN_PG, args[0])] + list(args[1:])
        return subprocess.run(args, check=True, capture_output=True, text=True, **self.as_user, **more)

    def sql(self, *commands, port=None, database="postgres"):
        args = [word for command in commands for word in ("-c", command)]
        return self.tool("psql", "-h", "127.0.0.1", "-p", str(port or self.port), "-At", "-q", database, *args).stdout

    def serve(self, data, port):
        process = self.run(os.path.join(self.servers, self.binary), "-D", data, "-p", str(port), "-k",
                           self.dir, "-c", "autovacuum=off", "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1",
                           **self.as_user)
        end = time.time() + 30
        while subprocess.run([os.path.join(DEBIAN_PG, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode:
            if time.time() > end:
                raise RuntimeError("PostgreSQL does not start: see %s/log" % self.dir)
            time.sleep(0.1)
        return process.pid

    def begin(self):
        data = os.path.join(self.dir, "data")
        if not os.path.exists(data):
            self.tool("initdb", "-D", data, "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
        self.pid = self.serve(data, self.port)

    def bench(self, script, clients=1, port=None):
        path = os.path.join(self.dir, "script%d.sql" % len(self.processes))
        with open(path, "w") as file:
            file.write(script)
        os.chmod(path, 0o644)
        self.run(os.path.join(DEBIAN_PG, "pgbench"), "-n", "-h", "127.0.0.1", "-p", str(port or self.port), "-f", path,
                 "-T", "60", "-c", str(clients), "postgres", **self.as_user)


class EndlessPrune(Postgres):
    """
    Pruning keeps what a transaction of another database may see, and vacuum tries again until nothing is dead.  The compiler
    has lazy_scan_prune within heap_vacuum_rel.  The request of the vacuum never ends, so that none is late.
    """

    name, file, root, pattern = "postgres-vacuum", "vacuumlazy.c", ["lazy_scan_prune", "heap_vacuum_rel"], "wrong_constraint"
    line = "if (unlikely(res == HEAPTUPLE_DEAD))"  # the jump back has no code of its own
    source = "postgres/src/backend/access/heap/vacuumlazy.c"

    def start(self):
        self.begin()
        self.sql("create table t (id int, v int)", "insert into t select i, 0 from generate_series(1, 2000) i")
        self.sql("create database other")
        for i in range(1 if self.kind == "normal" else 2):
            self.bench("update t set v = v + 1 where id <= 400;\nvacuum t;\n\\sleep 20 ms\n" if not i else
                       "select count(*) from t;\n\\sleep 5 ms\n")
        if self.kind != "normal":
            self.loop(self.hold)

    def hold(self):
        self.sql("begin; select pg_current_xact_id(); select pg_sleep(1); commit", database="other")
        time.sleep(0.2)


class ManyDead(Postgres):
    """For the end of an index the planner steps over dead entries without a limit; a standby cannot mark them."""

    name, file, root, pattern = "postgres-17330", "selfuncs.c", ["get_actual_variable_endpoint"], "scalability"
    line = "while ((tid = index_getnext_tid(index_scan, indexscandir)) != NULL)"
    source = "postgres/src/backend/utils/adt/selfuncs.c"
    typed = ""

    def start(self):
        self.begin()
        primary, standby = self.port, free_port()
        for table, rows in (("few", 20), ("many", 20000)):
            self.sql("create table %s (id int primary key, v int)" % table,
                     "insert into %s select i, 0 from generate_series(1, %d) i" % (table, 40000),
                     "analyze %s" % table, "delete from %s where id > %d" % (table, 40000 - rows))
        copy = os.path.join(self.dir, "standby")
        if not os.path.exists(copy):
            self.tool("pg_basebackup", "-h", "127.0.0.1", "-p", str(primary), "-D", copy, "-R", "-X", "stream", "-c", "fast")
        self.port = standby
        self.pid = self.serve(copy, standby)
        explain = "explain select * from %s a join few c on a.v = c.v where a.id > 39999;\n\\sleep %d ms\n"
        if self.kind != "slow":
            self.bench(explain % ("few", 1))
        if self.kind != "normal":
            self.bench(explain % ("many", 20 if self.kind == "mixed" else 1))


CASES = {case.name: case for case in (ClusterNodes, BlockedPop, GracefulRestart, IdleSpin, HealthCheck, EndlessPrune,
                                      ManyDead)}
