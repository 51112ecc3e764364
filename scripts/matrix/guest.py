# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that are not there: an initramfs with the program under test, booted by QEMU under software emulation."""
import os
import re
import shutil
import subprocess
import time

QEMU_MIN = 10
MACHINES = {
    # la57 and cx16 matter: docs/KERNELS.md has the pitfalls.
    "amd64": ("qemu-system-x86_64", ["-machine", "q35", "-cpu", "max,la57=off"], "ttyS0"),
    "arm64": ("qemu-system-aarch64", ["-machine", "virt", "-cpu", "cortex-a72"], "ttyAMA0"),
}
# The kernel replaces its own instructions behind a breakpoint. A virtual CPU that is emulated may meet the breakpoint after
# the kernel has forgotten it.
EMULATION = "Oops: int3"
MEMORY_MB = 1024
DISK_MB = 64


def missing_tool(architecture):
    """Why no guest of that architecture can be run here, or None."""
    command = MACHINES[architecture][0]
    try:
        version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "no %s (scripts/setup.sh matrix installs it)" % command
    found = re.search(r"version (\d+)", version)
    if not found or int(found.group(1)) < QEMU_MIN:
        return "%s is older than %d, which corrupts newer guests" % (command, QEMU_MIN)
    return None


# --- the initramfs ----------------------------------------------------------------------------------------------------
def _needed(path):
    """(interpreter or None, libraries) of an ELF file."""
    dump = subprocess.run(["readelf", "-W", "-l", "-d", path], capture_output=True, text=True, check=True).stdout
    interpreter = re.search(r"program interpreter: ([^\]]+)\]", dump)
    return interpreter and interpreter.group(1), re.findall(r"\(NEEDED\).*\[([^\]]+)\]", dump)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _libraries(program, sysroot):
    """{path in the guest: path here} of what the dynamic linker will want for `program`."""
    folders = [sysroot + folder for base in ("/usr/local/lib", "/lib", "/usr/lib")
               for folder in (base, base + "/x86_64-linux-gnu", base + "/aarch64-linux-gnu")]
    interpreter, work = _needed(program)
    machine = os.path.realpath(sysroot + interpreter).rpartition("/")[0] if interpreter else None
    found = {interpreter: sysroot + interpreter} if interpreter else {}
    while work:
        name = work.pop()
        if "/usr/lib/" + name in found or name == os.path.basename(interpreter or ""):
            continue
        paths = (os.path.join(folder, name) for folder in filter(None, [machine] + folders))
        path = next(filter(os.path.exists, paths), None)
        if not path:
            raise FileNotFoundError("%s, which %s needs" % (name, os.path.basename(program)))
        found["/usr/lib/" + name] = path
        work += _needed(path)[1]
    return found


class Archive:
    """A cpio archive of the kind that the kernel unpacks at boot ("newc"); not compressed, an emulated CPU is slow."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.inode = 0
        self.folders = set()

    def _entry(self, name, mode, data=b""):
        self.inode += 1
        name = name.lstrip("/").encode()
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"
        self.file.write(header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4))

    def add(self, name, data, mode=0o755):
        parts = name.strip("/").split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in self.folders:
                self.folders.add(folder)
                self._entry(folder, 0o040755)
        self._entry(name, 0o100000 | mode, data)

    def add_file(self, name, path):
        with open(path, "rb") as file:
            self.add(name, file.read())

    def close(self):
        self._entry("TRAILER!!!", 0)
        self.file.write(b"\0" * (-self.file.tell() % 512))
        self.file.close()


def build_initramfs(path, program, busybox, sysroot="", more=()):
    """`more`: (path in the guest, path here) of further files; what programs among them link with is added."""
    archive = Archive(path)
    archive.add_file("init", os.path.join(os.path.dirname(__file__), "init"))
    archive.add_file("bin/busybox", busybox)
    archive.add_file("bin/whylate", program)
    libraries = _libraries(program, sysroot)
    for name, file in more:
        archive.add_file(name, file)
        if is_elf(file):
            libraries.update(_libraries(file, sysroot))
    for name, library in sorted(libraries.items()):
        archive.add_file(name, library)
    archive.close()


# --- a guest ----------------------------------------------------------------------------------------------------------
class Run:
    """One command in the guest."""

    def __init__(self, name):
        self.name, self.output, self.stderr, self.status = name, "", "", None


class Outcome:
    def __init__(self):
        self.release, self.runs, self.kernel_says, self.finished = None, {}, "", False
        self.seconds, self.timed_out, self.log = 0.0, False, ""


def _parse(log):
    outcome, run, sink = Outcome(), None, None
    for line in log.replace("\r", "").split("\n"):
        mark = re.match(r"@@ (\w+) ?(\S*) ?(\S*)$", line)
        if not mark:
            if sink == "output":
                run.output += line + "\n"
            elif sink == "stderr":
                run.stderr += line + "\n"
            elif sink == "kernel" and line.strip():
                outcome.kernel_says += line + "\n"
            continue
        what, name, status = mark.groups()
        sink = None
        if what == "booted":
            outcome.release = name
        elif what == "begin":
            run, sink = Run(name), "output"
            outcome.runs[name] = run
        elif what == "stderr" and run:
            sink = "stderr"
        elif what == "end" and run:
            run.status = int(status) if status.isdigit() else None
        elif what == "kernel":
            sink = "kernel"
        elif what == "done":
            outcome.finished = True
    return outcome


def _own_initramfs(path, common, runs, modules):
    """What all guests share, and behind it an archive of what is this one's."""
    own = Archive(path + ".own")
    own.add("matrix/runs", "".join("%s %s\n" % item for item in runs.items()).encode(), 0o644)
    for module in modules:
        own.add_file("matrix/modules/" + os.path.basename(module), module)
    own.close()
    with open(path, "wb") as whole:
        for part in (common, path + ".own"):
            with open(part, "rb") as file:
                shutil.copyfileobj(file, whole)


def _make_disk(path):
    with open(path, "wb") as disk:
        disk.truncate(DISK_MB << 20)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", path], check=True, stdin=subprocess.DEVNULL,
                   env={**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"})


def boot(directory, architecture, image, initramfs, modules, runs, limit_s, started):
    """Boots, waits and tells.  `runs`: {name: command}; `started` is given the process, for who must end it early."""
    command, machine, console = MACHINES[architecture]
    paths = {name: os.path.join(directory, name) for name in ("initramfs", "disk", "console")}
    _own_initramfs(paths["initramfs"], initramfs, runs, modules)
    _make_disk(paths["disk"])
    begin = time.monotonic()
    with open(paths["console"], "wb") as log:
        # Should this program be killed, the guest ends as well.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "nice", command, "-accel", "tcg,thread=multi", *machine, "-smp", "2",
             "-m", str(MEMORY_MB), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none",
             "-serial", "stdio", "-drive", "if=none,id=disk,format=raw,cache=unsafe,file=" + paths["disk"],
             "-device", "nvme,drive=disk,serial=matrix", "-kernel", image, "-initrd", paths["initramfs"], "-append",
             "console=%s quiet loglevel=1 panic=-1 mitigations=off" % console],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        started(process)
        try:
            process.wait(limit_s)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            process.kill()
            process.wait()
    with open(paths["console"], errors="replace") as log:
        text = log.read()
    outcome = _parse(text)
    outcome.seconds, outcome.timed_out, outcome.log = time.monotonic() - begin, timed_out, text
    return outcome
