# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools on one server, each session between two loads without one: what the others of this directory measure with."""

import subprocess
import sys
import time

from figures import Ratio, median, number, table
from servers import NotPossible, cpu_ns

WARM_UP_S = 0.15


def say(text):
    print(text, file=sys.stderr, flush=True)


def memory_peak_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


class Bench:
    """All measurements of one server: samples[label] is a list of (measurement, mean of its neighbours)."""

    def __init__(self, server, directory, seconds):
        self.server = server
        self.directory = directory
        self.seconds = seconds
        self.rates = {}  # requests per second by label, as last seen: sets how many make up the wanted seconds
        self.samples = {}
        self.sessions = {}
        self.impossible = {}
        self.last_none = None

    def load(self, label):
        rate = self.rates.get(label)
        if not rate:
            probe = self.server.load(2000, 0.5)
            rate = probe.requests / probe.seconds
        warm_up = self.server.load(rate, WARM_UP_S)
        rate = min(rate, warm_up.requests / warm_up.seconds)
        before = cpu_ns(self.server.pid)
        done = self.server.load(rate, self.seconds)
        used = cpu_ns(self.server.pid) - before
        self.rates[label] = done.requests / done.seconds
        return {"server_ns": used / done.requests, "both_ns": (used + done.cpu_ns) / done.requests,
                "rate": done.requests / done.seconds, "p99_us": done.p99_us, "seconds": done.seconds}

    def none(self):
        measured = self.load("none")
        self.last_none = measured
        return measured

    def session(self, tool):
        """One tool on the server under load, with what it says in the end."""
        measured = None
        tool.start(self.server, self.directory)
        try:
            before, begin = cpu_ns(tool.process.pid), time.monotonic()
            measured = self.load(tool.label)
            # The load's warm-up is in it too: the share of a CPU is what counts.
            measured["tool_share"] = (cpu_ns(tool.process.pid) - before) / 1e9 / (time.monotonic() - begin)
            measured["tool_kib"] = memory_peak_kib(tool.process.pid)
        finally:
            said = tool.stop()
        self.sessions.setdefault(tool.label, []).append(said)
        return measured

    def compare(self, tool):
        """`tool` (None: the control) between two loads without one."""
        label = tool.label if tool else "control"
        if label in self.impossible:
            return
        if not self.last_none:
            self.none()
        left = self.last_none
        try:
            measured = self.session(tool) if tool else self.load("none")
        except (NotPossible, subprocess.TimeoutExpired, OSError) as reason:
            self.impossible[label] = str(reason)
            self.last_none = None
            say(f"    {label}: not possible here: {reason}")
            return
        right = self.none()
        base = {key: (left[key] + right[key]) / 2 for key in left if left[key] and right[key]}
        self.samples.setdefault(label, []).append((measured, base))
        say(f"    {label:32} {measured['server_ns']:9.0f} ns of CPU per request, "
            f"{(measured['server_ns'] / base['server_ns'] - 1) * 100:+7.2f} %; {measured['rate']:9.0f} requests/s")

    def ratio(self, label, key):
        pairs = [(one[key], base[key]) for one, base in self.samples.get(label, ()) if one.get(key) and base.get(key)]
        return Ratio([one / base for one, base in pairs]) if pairs else None

    def row(self, label):
        if label not in self.samples:
            return [label, f"not possible here: {self.impossible.get(label, 'no time')}"] + [""] * 8
        measured = [one for one, _ in self.samples[label]]
        said = self.sessions.get(label, [])
        shares = [one["tool_share"] for one in measured if "tool_share" in one]
        per_record = median([one["bytes"] / one["records"] for one in said if one["records"]])
        return [label, number(median([one["server_ns"] for one in measured]) / 1000),
                str(self.ratio(label, "server_ns")), str(self.ratio(label, "both_ns")),
                f"{median([one['rate'] for one in measured]) / 1000:.1f} k ({self.ratio(label, 'rate')})",
                f"{number(median([one['p99_us'] for one in measured]))} µs",
                f"{number(median(shares) * 100, 2)} %" if shares else "",
                f"{median([one['records'] for one in said]):,.0f}" if said else "",
                number(per_record) if said else "",
                worst_loss(said)]

    def table(self, labels):
        head = ["configuration", "server CPU per request, µs", "… against none", "server + load generator",
                "requests/s", "p99", "tool's CPU", "records", "bytes per record", "lost (worst session)"]
        none = [base for pairs in self.samples.values() for _, base in pairs]
        rows = [["none", number(median([one["server_ns"] for one in none]) / 1000), "", "",
                 f"{median([one['rate'] for one in none]) / 1000:.1f} k",
                 f"{number(median([one.get('p99_us') for one in none]))} µs", "", "", "", ""]] if none else []
        return table(head, rows + [self.row(label) for label in labels])


def worst_loss(said):
    """The tool's words in the session that lost most."""
    return max((one["lost"] for one in said), key=lambda words: int(words.split()[0]) if words[0].isdigit() else 1,
               default="")
