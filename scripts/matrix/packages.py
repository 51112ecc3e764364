# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages without installing them: apt with sources, lists and a cache of its own.

The mirror is the one that apt on this machine is configured with, and so is how to reach it (proxy, timeouts); only the
suites differ.  Everything lives in a directory that the caller owns and removes.
"""
import functools
import os
import re
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """The mirror or a package cannot be had; the text says which and why."""


def host_codename():
    with open("/etc/os-release") as release:
        found = re.search(r"^VERSION_CODENAME=\"?(\w+)", release.read(), re.M)
    if not found:
        raise Unavailable("/etc/os-release names no Debian release")
    return found.group(1)


def _mirrors():
    """(archive, security archive or None) of the running system."""
    try:
        listed = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"],
                                capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable("apt does not say which mirror it uses: %s" % error)
    by_suite = dict(line.split() for line in reversed(listed.splitlines()) if len(line.split()) == 2)
    codename = host_codename()
    if codename not in by_suite:
        raise Unavailable("apt has no mirror for %s configured" % codename)
    return by_suite[codename], by_suite.get(codename + "-security")


def _last_line(output):
    lines = [line for line in output.strip().splitlines() if line.startswith("E:")] or output.strip().splitlines()
    return lines[-1] if lines else "no output"


class PackageState:
    """One architecture's packages of some suites.  `preferences` is text for apt_preferences(5)."""

    def __init__(self, directory, architecture, suites, preferences=""):
        archive, security = _mirrors()
        self.archives = os.path.join(directory, "cache", "archives")
        for path in ("state/lists/partial", "cache/archives/partial", "sources.d", "preferences.d"):
            os.makedirs(os.path.join(directory, path), exist_ok=True)
        signed = "[signed-by=%s] " % KEYRING if os.path.exists(KEYRING) else ""
        with open(os.path.join(directory, "sources.d", "suites.list"), "w") as sources:
            for suite in suites:
                uri = security if suite.endswith("-security") else archive
                if uri:
                    sources.write("deb %s%s %s main\n" % (signed, uri, suite))
        with open(os.path.join(directory, "preferences"), "w") as file:
            file.write(preferences)
        open(os.path.join(directory, "status"), "a").close()
        settings = {
            "Dir::State": directory + "/state", "Dir::State::status": directory + "/status",
            "Dir::Cache": directory + "/cache", "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": directory + "/sources.d", "Dir::Etc::preferences": directory + "/preferences",
            "Dir::Etc::preferencesparts": directory + "/preferences.d", "APT::Architecture": architecture,
            "APT::Architectures": architecture, "Acquire::Languages": "none", "APT::Sandbox::User": "root",
            "Acquire::Retries": "2",
        }
        self.options = [word for item in settings.items() for word in ("-o", "%s=%s" % item)]

    def _run(self, *command, directory=None):
        try:
            done = subprocess.run([command[0], *self.options, *command[1:]], capture_output=True, text=True, cwd=directory,
                                  timeout=600, env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(str(error))
        if done.returncode:
            raise Unavailable(_last_line(done.stderr))
        return done.stdout

    def update(self):
        """A suite that is gone is no error as long as others answer: the packages it lacks will be missed by name."""
        try:
            self._run("apt-get", "-qq", "--error-on=any", "update")
        except Unavailable as error:
            if not self._run("apt-cache", "pkgnames", "libc6"):
                raise Unavailable("the mirror does not answer: %s" % error)

    def versions(self, pattern):
        """[(package, version)] of the packages whose whole name matches, newest first."""
        names = [name for name in self._run("apt-cache", "pkgnames").split() if re.fullmatch(pattern, name)]
        if not names:
            return []
        rows = [tuple(cell.strip() for cell in line.split("|")[:2])
                for line in self._run("apt-cache", "madison", *names).splitlines() if line.count("|") == 2]

        def compare(a, b):
            if a[1] == b[1]:
                return (a[0] > b[0]) - (a[0] < b[0])
            newer = subprocess.run(["dpkg", "--compare-versions", a[1], "gt", b[1]]).returncode == 0
            return -1 if newer else 1

        return sorted(dict.fromkeys(rows), key=functools.cmp_to_key(compare))

    def download(self, package, version, directory):
        """Path of the package's file.  An index may name what the mirror no longer has: Unavailable then."""
        before = set(os.listdir(directory))
        self._run("apt-get", "-qq", "download", "%s=%s" % (package, version), directory=directory)
        return os.path.join(directory, (set(os.listdir(directory)) - before).pop())

    def unpack_with_dependencies(self, packages, directory):
        """Unpacks packages and what they depend on into `directory`, as a tree to compile and link against."""
        self._run("apt-get", "-qq", "-y", "--no-install-recommends", "--download-only", "install", *packages)
        for name in sorted(os.listdir(self.archives)):
            if name.endswith(".deb"):
                subprocess.run(["dpkg-deb", "-x", os.path.join(self.archives, name), directory], check=True)
