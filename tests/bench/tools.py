# SPDX-License-Identifier: GPL-2.0-or-later
"""The tools that are compared: how each is started on a server, known to be at work, ended, and what it says then."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

from servers import NotPossible, descendants, find_program

TRACEFS = "/sys/kernel/tracing"

# What whylate hooks on x86 for socket requests, but for vectors that hardly ever fire.
EVENTS = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup",
          "irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry", "irq:softirq_exit",
          "irq_vectors:local_timer_entry", "irq_vectors:local_timer_exit",
          "irq_vectors:reschedule_entry", "irq_vectors:reschedule_exit",
          "irq_vectors:call_function_entry", "irq_vectors:call_function_exit",
          "irq_vectors:call_function_single_entry", "irq_vectors:call_function_single_exit",
          "exceptions:page_fault_user", "exceptions:page_fault_kernel",
          "sock:sk_data_ready", "sock:sock_recv_length", "sock:sock_send_length"]

STOP_TIMEOUT_S = 60


def disk_bytes(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def existing_events():
    return [event for event in EVENTS if os.path.isdir(f"{TRACEFS}/events/{event.replace(':', '/')}")]


def perf_result(tool):
    stats = subprocess.run(["perf", "report", "--stats", "-i", tool.data], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, timeout=STOP_TIMEOUT_S).stdout
    total = stats.split("stats:")[1] if "stats:" in stats else stats  # "Aggregated stats:" comes first
    count = {kind: int(n) for kind, n in re.findall(r"(SAMPLE|LOST|LOST_SAMPLES) events:\s+(\d+)", total)}
    said = re.search(r"lost (\d+) (?:events|chunks)", tool.said() + stats)
    lost_words = f", and {said[0]}" if said else ""
    lost = count.get("LOST", 0) + count.get("LOST_SAMPLES", 0)
    return {"bytes": disk_bytes(tool.data), "records": count.get("SAMPLE", 0),
            "lost": (f"{lost} lost records" if lost else "0") + lost_words}


def mount_tracefs():
    """True if it was not there and has to go again."""
    if os.path.isdir(f"{TRACEFS}/events"):
        return False
    return subprocess.run(["mount", "-t", "tracefs", "nodev", TRACEFS]).returncode == 0


class Tool:
    """One session of a tool on a server.  After stop(): bytes written; records, what they are and in how many of them;
    lost, in the tool's own words."""

    label = None
    settle_s = 0.8
    record = None  # what one record is

    def start(self, server, directory):
        self.directory = os.path.join(directory, "session")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.mkdir(self.directory)
        self.out = os.path.join(self.directory, "out")
        self.err = os.path.join(self.directory, "err")
        self.data = os.path.join(self.directory, "data")
        with open(self.out, "w") as out, open(self.err, "w") as err:
            # A session of its own: what a shell sends to its foreground group is not for the tool.
            self.process = subprocess.Popen(self.command(server), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            cwd=self.directory, start_new_session=True)
        try:
            self.wait_until_ready()
        except BaseException:  # Ctrl-C too: nobody else would end it
            self.kill()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + 15
        while not self.ready() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.05)
        time.sleep(self.settle_s)
        if self.process.poll() is not None:
            raise NotPossible(f"{self.name()} ended at once: {self.said()[-300:]}")

    def kill(self):
        if self.process.poll() is None:
            for pid in descendants(self.process.pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def name(self):
        return self.label

    def said(self):
        with open(self.out, errors="replace") as out, open(self.err, errors="replace") as err:
            return (out.read(20000) + err.read(20000)).strip().replace("\n", " | ")

    def ready(self):
        return True

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except BaseException as reason:
            self.kill()
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
            raise NotPossible(f"{self.name()} did not end within {STOP_TIMEOUT_S} s of Ctrl-C")
        return self.result()


class Whylate(Tool):
    record = "interval"

    def __init__(self, binary, *options, label=None):
        self.binary = binary
        self.options = options
        self.label = label or " ".join(("whylate", *options))

    def command(self, server):
        return [self.binary, "record", "-p", str(server.pid), *self.options, "-o", self.data, "-d", "120s"]

    def ready(self):
        with open(self.err) as err:
            return "recording" in err.read()

    def result(self):
        with open(self.err) as err:
            text = err.read()
        counts = re.search(r"(\d+) intervals seen, (\d+) selected, (\d+) kept", text)
        if not counts:
            raise NotPossible(f"whylate printed no summary: {self.said()[-300:]}")
        loss = re.search(r"loss: (.*)", text)[1]
        emitted = re.search(r"emitted (\d+) = received \d+ \+ lost (\d+)", text)
        hooks = {name: (int(runs), int(ns)) for name, runs, ns in
                 re.findall(r"(on_\w+)\s+(\d+) runs\s+(\d+) ns each", text)}
        return {"bytes": disk_bytes(self.data), "records": int(counts[3]), "seen": int(counts[1]), "hooks": hooks,
                "lost": f"{emitted[2]} of {int(emitted[1]):,}" if emitted else loss.split("(")[0].strip()}


class WhylateTrace(Whylate):
    """Trace mode: a record is a row, of an interval or of its detail."""

    record = "row"

    def command(self, server):
        return super().command(server) + ["--mode", "trace"]

    def result(self):
        said = super().result()
        with open(self.err) as err:
            found = re.search(r"trace: (\d+) segments, (\d+) wake-ups, (\d+) hand-offs received; (\d+), (\d+), (\d+) written",
                              err.read())
        if not found:
            raise NotPossible(f"whylate printed no summary of its trace: {self.said()[-300:]}")
        with open(self.err) as err:
            lost = re.search(r"loss: (.*?) \(", err.read())[1]
        counts = [int(number) for number in found.groups()]
        return {**said, "events": sum(counts[:3]), "records": said["records"] + sum(counts[3:]),
                "lost": "0" if lost == "none" else lost}


class PerfSched(Tool):
    """perf record of the scheduler's tracepoints, on the whole machine: wake-ups come from anywhere."""

    record = "event"
    label = "perf record -a -e 'sched:*'"

    def command(self, server):
        return [find_program("perf"), "record", "-o", self.data, "-a", "-e", "sched:*"]

    def result(self):
        return perf_result(self)


class BpftraceOffCpu(Tool):
    record = "stack"
    label = "bpftrace, off-CPU stacks"
    settle_s = 1.0

    def command(self, server):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "offcpu.bt")
        with open(f"/proc/{server.pid}/comm") as comm:
            return [find_program("bpftrace"), script, comm.read().strip()]

    def ready(self):
        with open(self.out) as out:
            return "Attaching" in out.read(1000)

    def result(self):
        with open(self.out, errors="replace") as out:
            switches = re.search(r"@switches: (\d+)", out.read())
        return {"bytes": disk_bytes(self.out), "records": int(switches[1]) if switches else 0, "lost": "0"}


class Bpftrace(Tool):
    record = "line"
    settle_s = 1.0

    def __init__(self, one_in):
        self.one_in = one_in
        self.label = "bpftrace, every request" if one_in == 1 else f"bpftrace, one request in {one_in}"

    def command(self, server):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "requests.bt")
        return [find_program("bpftrace"), script, str(server.pid), str(server.port), str(self.one_in)]

    def ready(self):
        with open(self.out) as out:
            return "Attaching" in out.read(1000)

    def result(self):
        lost = lines = 0
        for path in (self.out, self.err):
            with open(path, errors="replace") as text:
                for line in text:
                    found = re.match(r"Lost (\d+) events", line)
                    lost += int(found[1]) if found else 0
                    lines += line[:1].isdigit()
        return {"bytes": disk_bytes(self.out), "records": lines, "lost": f"{lost} of {lines + lost:,}"}


class PerfRecord(Tool):
    record = "event"
    label = "perf record -p"

    def command(self, server):
        return [find_program("perf"), "record", "-o", self.data, "-p", str(server.pid),
                *(arg for event in existing_events() for arg in ("-e", event))]

    def result(self):
        return perf_result(self)


class PerfTrace(Tool):
    record = "event"
    label = "perf trace -p"
    settle_s = 1.2

    def command(self, server):
        return [find_program("perf"), "trace", "-o", self.data, "-p", str(server.pid), "-e", ",".join(existing_events())]

    def result(self):
        lines = lost = 0
        for path in (self.data, self.err):
            with open(path, errors="replace") as text:
                for line in text:
                    found = re.search(r"LOST (\d+) events", line)
                    lost += int(found[1]) if found else 0
                    lines += not found
        return {"bytes": disk_bytes(self.data), "records": lines, "lost": f"{lost} of {lines + lost:,}"}


class TraceCmd(Tool):
    record = "event"
    label = "trace-cmd record -P"
    settle_s = 1.0

    def command(self, server):
        targets = [arg for tid in self.threads(server) for arg in ("-P", tid)]
        argv = [find_program("trace-cmd"), "record", "-o", self.data, *targets,
                *(arg for event in existing_events() for arg in ("-e", event))]
        return argv if self.function_tracer_works() else self.without_function_tracer(argv)

    @staticmethod
    def threads(server):
        tids = []
        for pid in descendants(server.pid):
            with contextlib.suppress(FileNotFoundError):  # it has ended
                tids += os.listdir(f"/proc/{pid}/task")
        return tids

    @staticmethod
    def function_tracer_works():
        try:
            with open("/proc/sys/kernel/ftrace_enabled", "r+") as file:
                value = file.read()
                file.seek(0)
                file.write(value)
        except OSError:
            return False
        return True

    def without_function_tracer(self, argv):
        """A kernel whose function tracer is dead refuses writes to its files, and trace-cmd gives up (or crashes) on
        that although it records events only.  In a mount namespace of its own it sees plain files there instead."""
        on, empty = os.path.join(self.directory, "on"), os.path.join(self.directory, "empty")
        with open(on, "w") as file:
            file.write("1\n")
        open(empty, "w").close()
        script = [f"mount --bind {on} /proc/sys/kernel/ftrace_enabled"]
        for name in ("set_ftrace_filter", "set_ftrace_notrace", "set_graph_function", "set_graph_notrace",
                     "set_ftrace_pid", "set_ftrace_notrace_pid"):
            script.append(f"[ ! -e {TRACEFS}/{name} ] || mount --bind {empty} {TRACEFS}/{name}")
        return ["unshare", "-m", "sh", "-ec", "; ".join(script + ['exec "$@"']), "sh", *argv]

    def ready(self):
        with open(self.out) as out:
            return os.path.exists(f"{self.data}.cpu0") or "Hit Ctrl^C" in out.read()

    def result(self):
        stats = subprocess.run(["trace-cmd", "report", "--stat", "-i", self.data], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, timeout=STOP_TIMEOUT_S).stdout
        total = {key: sum(int(n) for n in re.findall(rf"^{key}: (\d+)", stats, re.M))
                 for key in ("entries", "overrun", "dropped events", "read events")}
        lost = total["overrun"] + total["dropped events"]
        return {"bytes": disk_bytes(self.data), "records": total["read events"] + total["entries"],
                "lost": f"{lost} of {total['read events'] + total['entries'] + lost:,}"}


class TraceCmdSched(TraceCmd):
    """The scheduler's events of the target's threads, one by one: given the system's name alone, or without -P,
    trace-cmd 3.1 crashes where the function tracer is dead."""

    label = "trace-cmd record -c -P, sched events"

    def command(self, server):
        targets = [arg for tid in self.threads(server) for arg in ("-P", tid)]
        events = [arg for event in ("sched_switch", "sched_waking", "sched_wakeup", "sched_migrate_task")
                  for arg in ("-e", f"sched:{event}")]
        # -c: a PostgreSQL backend is forked when its client comes, after all this.
        argv = [find_program("trace-cmd"), "record", "-o", self.data, "-c", *targets, *events]
        return argv if self.function_tracer_works() else self.without_function_tracer(argv)
