# SPDX-License-Identifier: GPL-2.0-or-later
# As switch.h, in Python.
import mmap
import os

switch = b"\0"
if "PLANTED_OFF" in os.environ:
    with open(os.environ["PLANTED_OFF"], "rb") as file:
        switch = mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ)


def is_off():
    return switch[0] != 0
