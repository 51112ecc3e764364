# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels the matrix runs on, what each must be able to do, and the cache of their images."""
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from packages import PackageState, Unavailable

BOOKWORM = ("bookworm", "bookworm-security")
NEWER = ("bookworm-backports", "trixie", "trixie-backports")

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "whylate", "kernels")

# Debian signs an image some days after it is built: until then only the unsigned package has it.
IMAGE = r"linux-image(-unsigned)?-%s(-unsigned)?"


class Kernel:
    """`tiers`: what this kernel bears of each feature that has several; the first of a feature is what it takes by itself.

    They are written down instead of asked for, so that a tier that ceases to work is a failure and not an absence.
    `modules`: what it needs to write to the guest's disk and does not have built in; `unchecked`: checks that the self-test
    has to skip there.
    """

    def __init__(self, name, architecture, package, suites, tiers, each_push=True, modules=(), unchecked=()):
        self.name, self.architecture, self.package, self.suites = name, architecture, package, suites
        self.tiers, self.each_push, self.modules, self.unchecked = tiers, each_push, modules, unchecked


OLD = {"fault": (1, 2, 3), "socket": (2, 3), "probe": (2,)}
NEW = {"fault": (1, 2, 3), "socket": (1, 2, 3), "probe": (1, 2)}
# Softirqs run in a thread of their own there.
RT = ("softirq",)
# No link that names no process.
SINGLE = ("probe.newcomers", "probe.stranger")
DISK = ("crc32c_generic", "nvme", "ext4")

KERNELS = (
    Kernel("6.1 cloud", "amd64", IMAGE % r"6\.1\.0-\d+-cloud-amd64", BOOKWORM, OLD, unchecked=SINGLE),
    Kernel("6.12 cloud", "amd64", IMAGE % r"6\.12\.\d+\+deb1\d-cloud-amd64", NEWER, NEW),
    # From 7.1 on linux-image is empty and its dependency linux-binary has the image.
    Kernel("7.2 cloud", "amd64", r"linux-binary-(unsigned-)?7\.2\.\d+\+deb\d+-cloud-amd64", NEWER, NEW),
    Kernel("6.12 rt", "amd64", IMAGE % r"6\.12\.\d+\+deb1\d-rt-amd64", NEWER, NEW, modules=DISK, unchecked=RT),
    Kernel("6.1 rt", "amd64", IMAGE % r"6\.1\.0-\d+-rt-amd64", BOOKWORM, OLD, each_push=False, modules=DISK,
           unchecked=RT + SINGLE),
    # No fentry on arm64 before 6.4, and no tracepoint at page faults.
    Kernel("6.1 arm64", "arm64", IMAGE % r"6\.1\.0-\d+-cloud-arm64", BOOKWORM,
           {"fault": (3,), "socket": (3,), "probe": (2,)}, each_push=False, unchecked=SINGLE),
)


class Cache:
    """DIRECTORY/NAME/{vmlinuz,release,modules/}: all that is kept of a package."""

    def __init__(self, directory):
        self.directory = directory

    def _path(self, kernel, file):
        return os.path.join(self.directory, kernel.name.replace(" ", "-"), file)

    def image(self, kernel):
        return self._path(kernel, "vmlinuz")

    def modules(self, kernel):
        """Their files, in the order in which they can be loaded."""
        directory = self._path(kernel, "modules")
        return [os.path.join(directory, name) for name in sorted(os.listdir(directory))] if os.path.isdir(directory) else []

    def release(self, kernel):
        with open(self._path(kernel, "release")) as file:
            return file.read().strip()

    def has(self, kernel):
        return os.path.exists(self.image(kernel)) and os.path.exists(self._path(kernel, "release")) and \
            len(self.modules(kernel)) >= len(kernel.modules)

    def fetch(self, kernels, say):
        """Fetches the newest of each that the mirror still has.  {kernel: why not} of those that could not be had."""
        missing = {}
        for architecture in sorted({kernel.architecture for kernel in kernels}):
            wanted = [kernel for kernel in kernels if kernel.architecture == architecture]
            with tempfile.TemporaryDirectory(prefix="whylate-apt.") as directory:
                try:
                    suites = list(dict.fromkeys(suite for kernel in wanted for suite in kernel.suites))
                    state = PackageState(directory, architecture, suites)
                    state.update()
                except Unavailable as error:
                    missing.update((kernel, str(error)) for kernel in wanted)
                    continue
                for kernel in wanted:
                    try:
                        self._fetch_one(kernel, state, directory, say)
                    except Unavailable as error:
                        missing[kernel] = str(error)
        return missing

    def _fetch_one(self, kernel, state, directory, say):
        why = "no package of that name (%s) in %s" % (kernel.package, ", ".join(kernel.suites))
        for package, version in state.versions(kernel.package):
            try:
                deb = state.download(package, version, directory)
            except Unavailable as error:
                why = "%s %s: %s" % (package, version, error)
                continue
            say("%s: %s %s" % (kernel.name, package, version))
            try:
                self._keep(kernel, deb)
                return
            finally:
                os.unlink(deb)
        raise Unavailable(why)

    def _keep(self, kernel, deb):
        os.makedirs(self.directory, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=".fetch.", dir=self.directory)
        try:
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as unpacking, \
                    tarfile.open(fileobj=unpacking.stdout, mode="r|") as files:
                release = _keep_files(files, fresh, kernel.modules)
            if not release:
                raise Unavailable("%s holds no kernel" % os.path.basename(deb))
            with open(os.path.join(fresh, "release"), "w") as file:
                file.write(release + "\n")
            kept = os.path.dirname(self.image(kernel))
            shutil.rmtree(kept, ignore_errors=True)
            os.rename(fresh, kept)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _keep_files(files, directory, wanted):
    """The image, and the wanted modules with those that they need.  The kernel's release, or None."""
    release, modules = None, {}
    for member in files:
        image = re.fullmatch(r"\./(?:boot/vmlinuz-([^/]+)|(?:usr/)?lib/modules/([^/]+)/vmlinuz)", member.name)
        module = re.search(r"/kernel/(?:drivers/nvme|fs|lib|crypto|block)/(?:.*/)?([^/]+)\.ko(\.xz)?$", member.name)
        if image and member.isfile():
            release = image.group(1) or image.group(2)
            with open(os.path.join(directory, "vmlinuz"), "wb") as file:
                shutil.copyfileobj(files.extractfile(member), file)
            if not wanted:
                break
        elif module and wanted:
            data = files.extractfile(member).read()
            modules[module.group(1).replace("-", "_")] = lzma.decompress(data) if module.group(2) else data
    if wanted:
        os.mkdir(os.path.join(directory, "modules"))
    for number, name in enumerate(_in_order(modules, wanted)):
        with open(os.path.join(directory, "modules", "%02d-%s.ko" % (number, name)), "wb") as file:
            file.write(modules[name])
    return release


def _in_order(modules, wanted):
    """Names of the modules, each after those that its .modinfo says it depends on."""
    order = []

    def visit(name):
        if name in order or name not in modules:
            return  # what is not there is built in
        needed = re.search(rb"\0depends=([^\0]*)\0", modules[name])
        for other in needed.group(1).decode().replace("-", "_").split(",") if needed else ():
            visit(other)
        order.append(name)

    for name in wanted:
        visit(name)
    return order
