# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the p99 that a report predicts without a root the one of the server without its plant?

A machine's pace changes within minutes, so the plant of one running server is switched on and off in turns of some
seconds, at the same load.  Each turn is recorded.  A turn with the plant predicts the p99 of those without it; those
without it are also each other's control: where they differ by more than 20 %, nothing can be judged.
"""
import json
import os
import struct
import subprocess
import time

TURNS = ("on-1", "off-1", "on-2", "off-2")
# The p99 without the plant is measured and needs requests; the one with it is part of what a prediction is made of.
SECONDS = {"on": "5s", "off": "10s"}
WITHIN = 0.2


def record(whylate, planted, where):
    """One directory of shards for each turn, and when it was by the clients' clock."""
    times = {}
    for turn in TURNS:
        planted.switch(turn.startswith("off"))
        time.sleep(0.5)
        begin = time.monotonic_ns()
        with open(os.path.join(where, turn + ".log"), "w", encoding="utf-8") as log:
            subprocess.run([whylate, "diagnose", "-p", str(planted.server.pid), "-q", "--budget", "100%",
                            "-d", SECONDS[turn.split("-")[0]], "-o", os.path.join(where, turn)], stdout=log, stderr=log, timeout=60, check=False)
        times[turn] = (begin, time.monotonic_ns())
    with open(os.path.join(where, "times.json"), "w", encoding="ascii") as file:
        json.dump(times, file)


def report(whylate, where):
    run = subprocess.run([whylate, "report", where, "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        return {}


def p99_by_clients(where, turn):
    """In ns; None: no client has a clock of its own."""
    path = os.path.join(where, "clients")
    if not os.path.exists(path):
        return None
    with open(os.path.join(where, "times.json"), encoding="ascii") as file:
        begin, end = json.load(file)[turn]
    with open(path, "rb") as file:
        data = file.read()
    took = sorted(ns for ts, ns in struct.iter_unpack("=QQ", data[:len(data) // 16 * 16]) if begin <= ts < end)
    return took[min(int(len(took) * 0.99), len(took) - 1)] if took else None


def apart(values):
    """By how much the larger one exceeds the smaller one."""
    values = [value for value in values if value]
    return max(values) / min(values) - 1 if len(values) > 1 else float("inf")


def mean(values):
    values = [value for value in values if value]
    return sum(values) / len(values) if values else None


def holds(predicted, interval, measured):
    low, high = (predicted if ns is None else ns for ns in interval or (predicted, predicted))
    return abs(measured - predicted) <= WITHIN * measured or low <= measured <= high


def ms(ns):
    return "-" if ns is None else "%.2f" % (ns / 1e6)


def judge(whylate, where, choose):
    """The verdicts of the turns with the plant (None: it cannot be judged), and a line for each.

    `choose` takes a report and returns the cause that is the plant, or None.
    """
    reports = {turn: report(whylate, os.path.join(where, turn)) for turn in TURNS}
    p99 = {turn: (reports[turn].get("latency") or {}).get("p99_ns") for turn in TURNS}
    clients = {turn: p99_by_clients(where, turn) for turn in TURNS}
    off = [turn for turn in TURNS if turn.startswith("off")]
    measured, control = mean([p99[turn] for turn in off]), apart([p99[turn] for turn in off])
    verdicts, lines = [], []
    for turn in TURNS:
        if turn in off:
            continue
        cause = choose(reports[turn])
        gain = (cause or {}).get("gain") or {}
        predicted, interval = gain.get("p99_ns"), gain.get("p99_ci") or (None, None)
        good = None
        if predicted is not None and measured:
            good = holds(predicted, interval, measured)
        judged = control <= WITHIN and good is not None
        verdicts.append(good if judged else None)
        lines.append("%-4s | %s | %s [%s, %s] | %s | %s | %s | %s | %s" % (
            turn, ms(p99[turn]), ms(predicted), ms(interval[0]), ms(interval[1]),
            ", ".join(ms(p99[turn]) for turn in off),
            "%.2f" % (predicted / measured) if predicted is not None and measured else "-",
            ms(clients[turn]), ms(mean([clients[turn] for turn in off])),
            ("not named" if cause is None else "no gain" if good is None else
             ("yes" if good else "NO") if judged else
             "not judged: the turns without it differ by %.0f %%" % (100 * control)) +
            (", at least" if gain.get("lower_bound") else "")))
    return verdicts, lines


HEADER = "turn | p99 with, ms | predicted without | measured without | ratio | by clients: with | without | holds"
