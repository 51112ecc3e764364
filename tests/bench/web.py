# SPDX-License-Identifier: GPL-2.0-or-later
"""The servers of which Whodunit (EuroSys 2007, section 8.3) tells a cost: Apache with a connection for each request, and
Squid as a cache in front of an nginx."""

import os
import re

import servers

APACHE_MODULES = "/usr/lib/apache2/modules"


class Apache(servers.Server):
    name = "apache"
    what = "ab -c 16 without keep-alive, a file of 1 KiB, event MPM with 16 threads"

    def start(self):
        self.client = servers.find_program("ab")
        www = os.path.join(self.directory, "www")
        for path in (os.path.dirname(self.directory), self.directory):
            os.chmod(path, 0o755)
        os.mkdir(www)
        with open(os.path.join(www, "index.html"), "w") as page:
            page.write("x" * 1024)
        config = os.path.join(self.directory, "httpd.conf")
        with open(config, "w") as conf:
            for module in ("mpm_event", "authz_core", "status"):
                conf.write(f"LoadModule {module}_module {APACHE_MODULES}/mod_{module}.so\n")
            conf.write(f"ServerRoot {self.directory}\nServerName localhost\nListen 127.0.0.1:{self.port}\n"
                       f"PidFile {self.directory}/pid\nErrorLog {self.directory}/error.log\nUser nobody\nGroup nogroup\n"
                       f"StartServers 1\nServerLimit 1\nThreadsPerChild 16\nMaxRequestWorkers 16\nMaxConnectionsPerChild 0\n"
                       f"KeepAlive Off\nExtendedStatus On\nDocumentRoot {www}\n<Directory {www}>\nRequire all granted\n"
                       f"</Directory>\n<Location /status>\nSetHandler server-status\n</Location>\n")
        self.launch([servers.find_program("apache2"), "-f", config, "-DFOREGROUND"])

    def endless(self, seconds):
        # ab keeps a row for each of -n requests.
        return [self.client, "-q", "-c", "16", "-t", str(int(seconds)), "-n", "10000000",
                f"http://127.0.0.1:{self.port}/index.html"]

    def answered(self):
        status = servers.ask(self.port, b"GET /status?auto HTTP/1.0\r\n\r\n", b"Scoreboard")
        return int(re.search(rb"Total Accesses: (\d+)", status)[1])


# In front of an origin's port, with a directory of its own.
SQUID = """http_port 127.0.0.1:{port} accel defaultsite=a no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query originserver name=origin
http_access allow all
cache_peer_access origin allow all
cache_mem 64 MB
access_log none
cache_log {dir}/cache.log
pid_filename {dir}/pid
coredump_dir {dir}
"""


def squid_command(config):
    return [servers.find_program("squid"), "-N", "-f", config]


class Origin(servers.Nginx):
    name = "origin"
    cpus = "load"


class Squid(servers.Server):
    """Nine of ten requests are for what it has in memory."""

    name = "squid"
    what = "wrk -t1 -c16, 1 KiB from memory, every tenth from an nginx behind it"

    def start(self):
        self.client = servers.find_program("wrk")
        for path in (os.path.dirname(self.directory), self.directory):
            os.chmod(path, 0o777)
        self.origin = Origin(self.directory)
        self.origin.start()
        config, script = (os.path.join(self.directory, name) for name in ("squid.conf", "mix.lua"))
        with open(config, "w") as conf:
            conf.write(SQUID.format(dir=self.directory, port=self.port, origin=self.origin.port))
            conf.write("acl never urlpath_regex never\ncache deny never\nrefresh_pattern . 10000 100% 10000\n")
        with open(script, "w") as mix:
            mix.write('local n = 0\nfunction request()\n  n = n + 1\n'
                      '  return wrk.format("GET", n % 10 == 0 and "/index.html?never" or "/index.html")\nend\n')
        self.script = script
        self.launch(squid_command(config))

    def stop(self):
        super().stop()
        self.origin.stop()

    def endless(self, seconds):
        return [self.client, "-t1", "-c16", f"-d{int(seconds)}s", "-s", self.script,
                f"http://127.0.0.1:{self.port}/index.html"]

    def answered(self):
        counters = servers.ask(self.port, b"GET /squid-internal-mgr/counters HTTP/1.0\r\n\r\n", b"page_faults")
        return int(re.search(rb"client_http.requests = (\d+)", counters)[1])


BY_NAME = {one.name: one for one in (Apache, Squid)}
