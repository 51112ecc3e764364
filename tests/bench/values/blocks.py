# SPDX-License-Identifier: GPL-2.0-or-later
"""Distances between basic blocks of a function, from its disassembly (vProf's bb-dist, section 6.1)."""
import os
import re
import subprocess


def source_lines(path, text):
    """The numbers of the lines that have the text: those of other functions are in no block of this one."""
    with open(path, errors="replace") as file:
        return {number for number, line in enumerate(file, 1) if text in line}


def disassemble(binary, function):
    """Instructions as (address, mnemonic, target of a jump or None, file, line)."""
    text = subprocess.run(["objdump", "-d", "-l", "--no-show-raw-insn", "--disassemble=" + function, binary],
                          capture_output=True, text=True).stdout
    instructions, file, line = [], "", 0
    for row in text.splitlines():
        place = re.match(r"(/\S+):(\d+)", row)
        code = re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*(.*)", row)
        if place:
            file, line = os.path.basename(place.group(1)), int(place.group(2))
        elif code:
            target = re.match(r"([0-9a-f]+) <", code.group(3)) if code.group(2).startswith("j") else None
            instructions.append((int(code.group(1), 16), code.group(2), int(target.group(1), 16) if target else None,
                                 file, line))
    return instructions


def blocks_of(instructions):
    """Basic blocks, each with its lines, and their edges in both directions."""
    begins = {target for _, _, target, _, _ in instructions if target} | {instructions[0][0]}
    blocks, edges, of_address = [], [], {}
    new = True
    for address, mnemonic, target, file, line in instructions:
        if new or address in begins:
            if blocks and not new:
                edges.append((len(blocks) - 1, address))
            blocks.append(set())
        of_address[address] = len(blocks) - 1
        blocks[-1].add((file, line))
        new = mnemonic.startswith(("j", "ret"))
        if target:
            edges.append((len(blocks) - 1, target))
        if new and not mnemonic.startswith(("jmp", "ret")):
            edges.append((len(blocks) - 1, None))  # falls through, to the next block
    near = [set() for _ in blocks]
    for block, address in edges:
        other = block + 1 if address is None else of_address.get(address)
        if other is not None and other < len(blocks):
            near[block].add(other)
            near[other].add(block)
    return blocks, near


def distances(make, servers, function, where):
    """(mean, least) number of edges between the blocks of the anomalous samples and those of the bug; None: not known."""
    binary = os.path.join(servers, make.binary)
    instructions = disassemble(binary, function)
    bugs = {(os.path.basename(make.source), line) for line in
            source_lines(os.path.join(servers, make.source), make.line)}
    if not instructions or not bugs or not where or not where.get("line"):
        return None
    blocks, near = blocks_of(instructions)
    reached = {i: 0 for i, lines in enumerate(blocks) if bugs & lines}
    front = list(reached)
    while front:
        block = front.pop(0)
        for other in near[block] - set(reached):
            reached[other] = reached[block] + 1
            front.append(other)
    found = [reached[i] for i, lines in enumerate(blocks)
             if (os.path.basename(where["file"] or ""), where["line"]) in lines and i in reached]
    return (sum(found) / len(found), min(found)) if found else None
