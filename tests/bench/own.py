#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What whylate itself is of a tail: small servers on busy CPUs, diagnosed one after the other.

Each CPU has a task that is busy for 60 % of the time, in turns of some milliseconds, beside the server and its load.
Prints for each run the share of the tail that requests waited for a CPU that whylate had, and the rank of the first
cause that names whylate.  Exit code 1: a share above 2 %, or whylate among the first three causes.
"""

import argparse
import json
import os
import subprocess
import sys

SERVERS = ["cpu", "sleep", "mutex", "minfault", "often"]
SHARE_MAX = 0.02
RANK_MAX = 3

# Without the privilege for SCHED_FIFO, which no process of whylate's could disturb.
UNPRIVILEGED = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]

BUSY = """
import os, random, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    end = time.monotonic() + random.uniform(0.003, 0.009)
    while time.monotonic() < end:
        pass
    time.sleep(random.uniform(0.002, 0.006))
"""


def start_server(args, name):
    path = os.path.join(args.workloads, name)
    server = subprocess.Popen(UNPRIVILEGED + [path, "--seconds", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    line = server.stdout.readline()
    if not line.startswith("ready "):
        server.kill()
        return None, None
    return server, json.loads(line[len("ready "):])["server_pid"]


def own_share(report):
    """Of the report's own line, or, where a version has none, of the causes that name whylate."""
    own = report.get("our_own")
    named = [cause for cause in report["causes"] if str(cause["culprit"]["comm"]).startswith("whylate")]
    share = own["share"] if own else sum(cause["share"] for cause in named)
    return share or 0, min((cause["rank"] for cause in named), default=None)


def one_run(args, name):
    server, pid = start_server(args, name)
    if not server:
        return None
    try:
        result = subprocess.run([args.whylate, *args.command.split(), "-p", str(pid), "-d", args.duration, "--json"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=args.scratch, check=False)
        return json.loads(result.stdout) if result.stdout else None
    finally:
        server.kill()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--duration", default="5s")
    parser.add_argument("--command", default="diagnose --rounds 2")
    parser.add_argument("--whylate", default="build/whylate")
    parser.add_argument("--workloads", default="build/workloads")
    parser.add_argument("--scratch", default="/tmp")
    args = parser.parse_args()
    args.whylate = os.path.abspath(args.whylate)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY, str(cpu)]) for cpu in sorted(os.sched_getaffinity(0))]
    failed = 0
    try:
        for run in range(args.runs):
            name = SERVERS[run % len(SERVERS)]
            report = one_run(args, name)
            if not report or not report["causes"]:
                print(f"{run + 1:3} {name:10} no report")
                failed += 1
                continue
            share, rank = own_share(report)
            failed += share > SHARE_MAX or (rank is not None and rank <= RANK_MAX)
            first = report["causes"][0]
            print(f"{run + 1:3} {name:10} own {share * 100:6.2f} %  rank {rank or '-'}  "
                  f"first: {first['share'] * 100:3.0f} % {first['what']}", flush=True)
    finally:
        for process in busy:
            process.kill()
    print(f"{failed} of {args.runs} runs above {SHARE_MAX * 100:.0f} % or among the first {RANK_MAX} causes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
