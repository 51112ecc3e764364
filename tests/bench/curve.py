# SPDX-License-Identifier: GPL-2.0-or-later
"""What probes on functions cost PostgreSQL against their number.

Two servers do the same, each on a CPU of its own and with a program file of its own, and take turns in being probed.
The load runs all the time: before the tool comes, while it attaches, with all probes on, and after it has gone.  A
session appends to the file of --raw, and the table is made of all sessions in it, so that a long series can be measured
in parts."""

import math
import os
import re
import shutil
import subprocess
import threading
import time

from compare import say
from figures import Ratio, median, table
from servers import NotPossible, Postgres, cpu_ns, find_program, on_cpus
from tools import Tool, Whylate

BASE_S = 4
MEASURE_S = 8
LET_GO_S = 2  # by then what does not fit the budget is no longer probed
PERF_TIMEOUT_S = 100
FORGET_S = 15  # until the kernel has taken out thousands of breakpoints


class PostgresTpcb(Postgres):
    name = "postgres"
    what = "pgbench TPC-B, -M simple, 8 clients, scale 10, fsync off; two servers, one of them probed, each on a CPU of its own"

    def __init__(self, directory, cpu):
        os.mkdir(directory)
        super().__init__(directory)
        self.cpus = cpu

    def program(self, bin_dir):
        """A copy of its own: what is probed in a file is probed for all who run it."""
        original = os.path.realpath(super().program(bin_dir))
        home = os.path.dirname(os.path.dirname(original))
        # It looks for its other parts beside where it lies itself.
        for part in (home, home.replace("/lib/", "/share/")):
            shutil.copytree(part, self.directory + part)
        return self.directory + original

    def stream(self, seconds):
        return Stream(self, on_cpus(self.cpus, [self.client, *self.connect, "-n", "-c", "8", "-P", "1", "-T",
                                                str(int(seconds)), "postgres"]))


class Stream:
    """A load that goes on: once a second, how many transactions there were and how much CPU time the server has used."""

    def __init__(self, server, argv):
        self.server = server
        self.marks = []  # (when, transactions until then, CPU time until then)
        self.process = subprocess.Popen(argv, cwd=server.directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        done = last_s = 0.0
        for line in self.process.stderr:
            said = re.match(r"progress: ([\d.]+) s, ([\d.]+) tps", line)
            if said:
                done += float(said[2]) * (float(said[1]) - last_s)
                last_s = float(said[1])
                self.marks.append((time.monotonic(), done, cpu_ns(self.server.pid)))

    def between(self, begin, end):
        """CPU nanoseconds per transaction, and transactions a second, over the whole seconds in between."""
        marks = [mark for mark in self.marks if begin <= mark[0] <= end]
        if len(marks) < 2 or marks[-1][1] <= marks[0][1]:
            return None
        (first_s, first, first_ns), (last_s, last, last_ns) = marks[0], marks[-1]
        return {"ns": (last_ns - first_ns) / (last - first), "rate": (last - first) / (last_s - first_s)}

    def wait(self, seconds):
        """From when to when."""
        begin = time.monotonic()
        time.sleep(seconds)
        if self.process.poll() is not None:
            raise NotPossible("the load has ended by itself")
        return begin, time.monotonic()

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(10)


def seconds_of(argv, timeout_s, **more):
    begin = time.monotonic()
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout_s, **more)
    except subprocess.TimeoutExpired:
        return None, f"more than {timeout_s} s"
    return time.monotonic() - begin, done.stderr[-200:] if done.returncode else ""


def perf_forget():
    subprocess.run(["perf", "probe", "-q", "-d", "probe_*:*"], stderr=subprocess.DEVNULL, timeout=PERF_TIMEOUT_S)


class WhylateList(Whylate):
    def __init__(self, binary, names, *options, label, settle_s=0):
        super().__init__(binary, *options, label=label)
        self.names, self.settle_s = names, settle_s

    def command(self, server):
        symbols = os.path.join(self.directory, "symbols")
        with open(symbols, "w") as file:
            file.writelines(f"function postgres:{name}\n" for name in self.names)
        listed = ["-s", symbols] if self.names else []
        return [self.binary, "record", "-p", str(server.pid), *listed, *self.options, "-o", self.data, "-d", "120s"]

    def wait_until_ready(self):
        deadline = time.monotonic() + 15
        while not self.ready() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.05)
        if self.process.poll() is not None or not self.ready():
            raise NotPossible(f"{self.name()} does not record: {self.said()[-300:]}")
        time.sleep(self.settle_s)

    def on(self):
        """How many of the functions are still probed at the end."""
        let_go = [line for line in self.said().splitlines() if "and unmeasured" in line and "over the budget" in line]
        return len(self.names) - sum(line.count("calls a second") + sum(map(int, re.findall(r"and (\d+) more", line)))
                                     for line in let_go)


class BpftraceList(Tool):
    """Sum of the time in each function: what whylate records per call, without the request it belongs to."""

    settle_s = 1.0

    def __init__(self, path, names, label):
        self.path, self.names, self.label = path, names, label

    def command(self, server):
        script = os.path.join(self.directory, "script.bt")
        with open(script, "w") as file:
            for idx, name in enumerate(self.names):
                file.write(f"uprobe:{self.path}:{name} {{ @s[tid, {idx}] = nsecs; }}\n"
                           f"uretprobe:{self.path}:{name} /@s[tid, {idx}]/ "
                           f"{{ @t[{idx}] = sum(nsecs - @s[tid, {idx}]); delete(@s[tid, {idx}]); }}\n")
            file.write('interval:s:1 { printf("attached\\n"); }\nEND { clear(@s); }\n')
        return ["env", "BPFTRACE_MAX_PROBES=4096", find_program("bpftrace"), script]

    def ready(self):
        with open(self.out) as out:
            return "attached" in out.read(10000)

    def result(self):
        return {}

    def on(self):
        return len(self.names)


class PerfProbeList(Tool):
    """perf probe on entries and returns, recorded on all CPUs: per process it takes half a minute to detach.  What perf
    refuses by its name is left out."""

    settle_s = 1.0

    def __init__(self, path, names, label):
        self.path, self.names, self.label = path, names, label
        self.added = 0

    def command(self, server):
        perf = find_program("perf")
        self.added = 0
        for name in self.names:
            argv = [perf, "probe", "-q", "-x", self.path, "-a", name, "-a", f"{name}%return"]
            self.added += seconds_of(argv, PERF_TIMEOUT_S)[1] == ""
        if not self.added:
            raise NotPossible("perf probe adds none of them")
        return [perf, "record", "-q", "-o", self.data, "-m", "1M", "-e", "probe_*:*", "-a"]

    def stop(self):
        try:
            return super().stop()
        finally:
            perf_forget()

    def result(self):
        return {}

    def on(self):
        return self.added


def session(server, twin, directory, tool, seconds):
    """One tool on the server under load, which is there before and afterwards.  The twin, under the same load, shows what
    the machine does by itself, and what the tool costs those whom it does not look at."""
    load, other = (one.stream(2 * BASE_S + seconds + 120) for one in (server, twin))
    try:
        load.wait(1)
        before = load.wait(BASE_S)
        if tool:
            begin = time.monotonic()
            tool.start(server, directory)
            starting = (begin, time.monotonic())
            try:
                during = load.wait(seconds)
            finally:
                tool.stop()
            load.wait(2)
        else:
            during = load.wait(seconds)
        after = load.wait(BASE_S)
    finally:
        load.end()
        other.end()

    def figures(stream):
        """Without the tool, the means of before and after: CPU time per transaction, and rate; and what was with it."""
        spans = [stream.between(*span) for span in (before, during, after)]
        if not all(spans):
            raise NotPossible("too few transactions to count")
        base = (math.sqrt(spans[0]["ns"] * spans[2]["ns"]), (spans[0]["rate"] + spans[2]["rate"]) / 2)
        return *base, spans[1]

    base_ns, base_rate, measured = figures(load)
    twin_base_ns, _, twin_measured = figures(other)
    found = {"ratio": measured["ns"] / base_ns, "twin": twin_measured["ns"] / twin_base_ns,
             "rate": measured["rate"], "base_rate": base_rate}
    if tool:
        start = load.between(*starting)
        found.update(start_s=starting[1] - starting[0], start_ratio=start["ns"] / base_ns if start else None, on=tool.on())
    return found


def row(label, sessions):
    starts = [one["start_ratio"] for one in sessions if one.get("start_ratio")]
    return [label, str(median([one["on"] for one in sessions])) if "on" in sessions[0] else "",
            str(Ratio([one["ratio"] for one in sessions])), str(Ratio([one["twin"] for one in sessions])),
            f"{median([one['rate'] for one in sessions]):,.0f} of {median([one['base_rate'] for one in sessions]):,.0f}",
            f"{median([one['start_s'] for one in sessions]):.1f} s" if "on" in sessions[0] else "",
            str(Ratio(starts)) if starts else "", str(len(sessions))]


def order(label):
    count = re.search(r"\d+", label)
    return int(count[0]) if count else 0, label


def report(raw, impossible):
    rows = [row(label, raw[label]) for label in sorted(raw, key=order)]
    rows += [[label, "", f"not possible here: {why}", "", "", "", "", ""] for label, why in impossible.items()]
    print(f"### {PostgresTpcb.what}\n\n" +
          table(["functions", "of which on", "server CPU per transaction", "the other server's", "transactions/s", "start",
                 "… CPU meanwhile", "sessions"], rows) + "\n")


def tools_of(options, path, names):
    for count in (int(count) for count in options.counts.split(",")):
        some = names[:count]
        for kind in options.tools.split(","):
            if kind == "whylate":
                yield WhylateList(options.whylate, some, "--budget", "100%", label=f"whylate, {count}, no budget")
            elif kind == "governed":
                yield WhylateList(options.whylate, some, label=f"whylate, {count}", settle_s=LET_GO_S)
            elif kind == "windows":
                yield WhylateList(options.whylate, some, "--rate", "5%", label=f"whylate, {count}, 5 %", settle_s=LET_GO_S)
            elif kind == "bpftrace":
                yield BpftraceList(path, some, f"bpftrace, {count}")
            elif kind == "perf":
                yield PerfProbeList(path, some, f"perf, {count}")
            else:
                yield None


def measure(options, directory, raw, called_functions):
    """called_functions(server): their names; those of the first part are taken again."""
    raw.setdefault("sessions", {})
    cpus = sorted(os.sched_getaffinity(0))[:2]
    servers = [PostgresTpcb(os.path.join(directory, f"on-{cpu}"), cpu) for cpu in cpus]
    impossible = {}
    try:
        if len(servers) < 2:
            raise NotPossible("there are no two CPUs")
        for one in servers:
            one.start()
        if "names" not in raw:
            load = servers[0].stream(60)
            try:
                load.wait(1)
                raw["names"] = called_functions(servers[0])
                load.wait(FORGET_S)
            finally:
                load.end()
        for number in range(2 * options.rounds):
            server, twin = servers[number % 2], servers[1 - number % 2]
            path = os.path.realpath(f"/proc/{server.pid}/exe")
            for tool in tools_of(options, path, raw["names"]):
                label = tool.label if tool else "none (control)"
                try:
                    found = session(server, twin, directory, tool, max(options.seconds, MEASURE_S))
                except (NotPossible, subprocess.TimeoutExpired, OSError) as reason:
                    impossible[label] = str(reason)
                    say(f"    {label}: not possible here: {reason}")
                    continue
                raw["sessions"].setdefault(label, []).append(found)
                say(f"    {label:32} {found}")
    finally:
        for one in servers:
            one.stop()
    report(raw["sessions"], impossible)
