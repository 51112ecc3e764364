# SPDX-License-Identifier: GPL-2.0-or-later
"""Nanoseconds per context switch with a tool at work: two threads that hand a byte to and fro on one CPU."""

import os
import statistics
import subprocess
import sys
import time

from figures import Ratio, median, number, table
from servers import NotPossible

SETTLE_LINES = 2  # what was printed while a tool came or went
ROUNDS = 4


class Switcher:
    """bench_switch as a server: what is traced is its process."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        self.port = 0

    def per_switch_ns(self, lines):
        """Median of so many lines from now on; what waits in the pipe is older."""
        pipe = self.process.stdout.fileno()
        os.set_blocking(pipe, False)
        try:
            while os.read(pipe, 65536):
                pass
        except BlockingIOError:
            pass
        os.set_blocking(pipe, True)
        values = [float(self.process.stdout.readline()) for _ in range(SETTLE_LINES + lines)]
        return statistics.median(values[SETTLE_LINES:])

    def stop(self):
        self.process.kill()
        self.process.wait()


def measure(program, tools, directory, say, lines=4):
    """{label: [(ns with the tool, ns without)]}: each session between two looks without a tool."""
    switcher = Switcher(program)
    samples = {}
    try:
        left = switcher.per_switch_ns(lines)
        for _ in range(ROUNDS):
            for tool in tools:
                try:
                    tool.start(switcher, directory)
                    try:
                        ns = switcher.per_switch_ns(lines)
                    finally:
                        tool.stop()
                except (NotPossible, subprocess.TimeoutExpired, OSError) as reason:
                    say(f"  {tool.label}: not possible here: {reason}")
                    continue
                right = switcher.per_switch_ns(lines)
                samples.setdefault(tool.label, []).append((ns, (left + right) / 2))
                left = right
                say(f"  {tool.label:32} {ns:7.0f} ns per switch, {samples[tool.label][-1][1]:7.0f} without")
    finally:
        switcher.stop()
    return samples


def switch_table(samples):
    rows = []
    for label, pairs in samples.items():
        rows.append([label, number(median([none for _, none in pairs])), number(median([ns for ns, _ in pairs])),
                     number(median([ns - none for ns, none in pairs])), str(Ratio([ns / none for ns, none in pairs]))])
    return table(["configuration", "ns per switch without", "with", "more", "ratio"], rows)
