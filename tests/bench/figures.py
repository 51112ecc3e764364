# SPDX-License-Identifier: GPL-2.0-or-later
"""From pairs of measurements to ratios with confidence intervals, and to tables in Markdown."""

import math
import os
import statistics

# Student's t, two-sided 95 %, by degrees of freedom; beyond the table the next lower entry, which errs on the safe side.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 12: 2.18, 14: 2.14,
       16: 2.12, 18: 2.10, 20: 2.09, 25: 2.06, 30: 2.04, 40: 2.02, 60: 2.00}


class Ratio:
    """Geometric mean of paired ratios and its 95 % confidence interval, by Student's t on their logarithms."""

    def __init__(self, ratios):
        logs = [math.log(ratio) for ratio in ratios]
        centre = statistics.mean(logs)
        self.count = len(logs)
        self.value = math.exp(centre)
        self.low = self.high = None
        if self.count > 1:
            t = T95[max(freedom for freedom in T95 if freedom <= self.count - 1)]
            half = t * statistics.stdev(logs) / math.sqrt(self.count)
            self.low, self.high = math.exp(centre - half), math.exp(centre + half)

    def __str__(self):
        """As a change in per cent while it is small, as a factor when it is not."""
        if self.value < 2:
            text = f"{(self.value - 1) * 100:+.1f} %"
            return text if self.low is None else f"{text} [{(self.low - 1) * 100:+.1f}, {(self.high - 1) * 100:+.1f}]"
        text = f"×{self.value:.2f}"
        return text if self.low is None else f"{text} [{self.low:.2f}, {self.high:.2f}]"


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value, digits=3):
    """So many significant digits, without an exponent."""
    if value is None:
        return "–"
    if not value:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{decimals}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def first_line(path, prefix=""):
    try:
        with open(path) as file:
            return next((line.split(":", 1)[-1].strip() for line in file if line.startswith(prefix)), "unknown")
    except OSError:
        return "unknown"


def machine():
    with open("/proc/cpuinfo") as cpuinfo:
        virtual = "hypervisor" in cpuinfo.read()
    with open("/proc/meminfo") as meminfo:
        memory_gib = int(meminfo.readline().split()[1]) / 2**20
    return (f"{first_line('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, "
            f"{'virtual machine' if virtual else 'not virtualised'}; Linux {os.uname().release}; "
            f"{first_line('/etc/os-release', 'PRETTY_NAME').partition('=')[2].strip(chr(34))}")
