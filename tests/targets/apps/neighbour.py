# SPDX-License-Identifier: GPL-2.0-or-later
"""A batch job beside the server: bursts of 5 ms on the CPU, some forty a second."""
import random
import time


def burn_cycles(until):
    while time.monotonic() < until:
        pass


with open("/proc/self/comm", "w") as comm:
    comm.write("neighbour")
while True:
    burn_cycles(time.monotonic() + 0.005)
    time.sleep(random.uniform(0.01, 0.03))
